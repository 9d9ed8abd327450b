"""`make demo`: what it prints, and that it fails when anything is missing or out of order."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from examples import demo, demo_openai
from examples.gateway.config import Config
from examples.proxy.listen import listening

README = (Path(__file__).parents[1] / "README.md").read_text()
STOP: dict[str, Any] = {"type": "content_block_stop", "index": 0}
TEXT: dict[str, Any] = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
SAY: dict[str, Any] = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
CALL: dict[str, Any] = TEXT | {"content_block": {"type": "tool_use", "id": "c", "name": "get_time", "input": {}}}
ARGUE: dict[str, Any] = SAY | {"delta": {"type": "input_json_delta", "partial_json": '{"a'}}


def test_the_demo_prints_every_block_of_both_turns_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    edges = [f"[{at}] {kind} {edge}" for at, kind in enumerate(demo.FIRST) for edge in ("begins", "ends")]
    assert [line for line in lines if line.startswith("[")][:10] == edges
    assert '    {"timezone": "Europe/Paris"}' in lines
    assert "    The tools say: 18 °C and clear in Paris; 14:05 in Europe/Paris. Enjoy Paris!" in lines
    assert "--- every block in order, each closed before the next" in lines
    for dialect in ("Chat", "Responses"):
        at = lines.index(f"--- the same with the openai SDK, in {dialect}")
        assert lines[at + 1 : at + 4] == [
            'get_weather {"city": "Paris"} says: 18 °C and clear in Paris',
            'get_time {"timezone": "Europe/Paris"} says: 14:05 in Europe/Paris',
            "The tools say: 18 °C and clear in Paris; 14:05 in Europe/Paris. Enjoy Paris!",
        ]
    assert printed.err == ""
    parts = re.search(r"```text\n(.*?)```", README, re.DOTALL)
    assert parts
    for part in parts[1].split("...\n"):
        assert part in printed.out, "the README shows what is not printed"


def test_the_demo_fails_when_the_upstream_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(Config(port=0, upstream="http://127.0.0.1:1/v1")) == 1
    assert "demo failed: " in capsys.readouterr().err


def test_the_demo_fails_when_a_block_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "FIRST", ["text"])
    assert demo.main() == 1
    assert "demo failed: expected ['text'], got ['thinking', " in capsys.readouterr().err


def test_the_demo_fails_when_the_answer_does_not_name_the_results(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(demo.TOOLS, "get_time", lambda timezone: "{result}")
    monkeypatch.setattr("examples.gateway.replay.RESULT", b"nothing")
    assert demo.main() == 1
    assert "demo failed: the answer does not name 18 " in capsys.readouterr().err


def test_the_demo_fails_when_the_openai_sdk_sees_something_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(url: str) -> None:
        """The first half is another test's."""

    monkeypatch.setattr(demo, "messages", nothing)
    monkeypatch.setattr(demo_openai, "ITEMS", ["message"])
    assert demo.main() == 1
    assert "demo failed: expected ['message'], got ['reasoning', " in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(demo, "TOOLS", {"get_time": demo.TOOLS["get_time"], "get_weather": demo.TOOLS["get_weather"]})
        assert demo.main() == 1
    assert "demo failed: expected calls of ['get_time', 'get_weather'], got ['get_weather'" in capsys.readouterr().err


@asynccontextmanager
async def answering(*events: dict[str, Any]) -> AsyncIterator[AsyncAnthropic]:
    """A client of a Messages server that streams these events, whatever they are."""
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    end: list[dict[str, Any]] = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    stream = [{"type": "message_start", "message": message}, *events, *end]

    async def answer(request: web.Request) -> web.Response:
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream)
        return web.Response(text=text, content_type="text/event-stream")

    application = web.Application()
    application.router.add_post("/v1/messages", answer)
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with (
        listening(application) as url,
        AsyncAnthropic(base_url=url, api_key="demo", timeout=60, http_client=http) as client,
    ):
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("events", "wrong"),
    [
        ([TEXT, SAY, STOP], ""),
        ([TEXT, SAY], "the last block was not closed"),
        ([TEXT, TEXT | {"index": 1}], "block 1 opens out of order"),
        ([TEXT, STOP, SAY], "a delta for block 0, which is not open"),
        ([CALL, ARGUE, STOP], "(are not the arguments|Unterminated string)"),
        ([], r"expected \['text'\], got \[\]"),
    ],
)
async def test_the_demo_sees_what_is_wrong_with_a_stream(events: list[dict[str, Any]], wrong: str) -> None:
    async with answering(*events) as client:
        expected = ["tool_use" if CALL in events else "text"]
        if wrong:
            with pytest.raises(ValueError, match=wrong):
                await demo.turn(client, [demo.QUESTION], expected)
        else:
            assert [block.type for block in await demo.turn(client, [demo.QUESTION], expected)] == expected
