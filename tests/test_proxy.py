"""The example hosts over HTTP: the real SDK or a plain client in front, a scripted upstream behind."""

import json
import logging
import re
from typing import Any

import anyio
import httpx
import pytest
from anthropic.types import Message, MessageParam, ToolResultBlockParam
from attrs import define, evolve

from examples.gateway.config import Config
from pipeline.errors import StageError
from pipeline.events import StreamError
from pipeline.limits import DEFAULT_LIMITS
from pipeline.stage import Stage
from tests.upstreams import (
    CHAT,
    EVERY_HOST,
    QUESTION,
    REQUEST,
    SCRIPTS,
    Host,
    Script,
    Server,
    browser,
    events,
    never,
    over,
    pausing,
    playing,
    posted,
    refused,
    refusing,
    sdk,
    streamed,
    types,
    until,
)

pytestmark = [pytest.mark.anyio, EVERY_HOST]
EVERY_DIALECT = pytest.mark.parametrize("script", SCRIPTS)

LOG = "streamweir.access"


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the log, without how long it took."""
    lines = [record.getMessage() for record in caplog.records if record.name == LOG]
    return [re.sub(r"( silence=[\d.]+s)? [\d.]+s$", "", line) for line in lines]


async def test_the_sdk_reads_both_turns_of_the_embedded_upstream_in_order(host: Host) -> None:
    async with host(Config(port=0), pace=0) as url, sdk(url) as client:
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
            first = await stream.get_final_message()
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "thinking", "tool_use"]
        calls = [block for block in first.content if block.type == "tool_use"]
        assert [call.input for call in calls] == [{"city": "Paris"}, {"timezone": "Europe/Paris"}]
        assert first.stop_reason == "tool_use"
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f'"{call.name}" \\ 18 °C'} for call in calls
        ]
        said: list[MessageParam] = [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ]
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION, *said]) as stream:
            text = await stream.get_final_text()
        assert text == 'The tools say: "get_weather" \\ 18 °C; "get_time" \\ 18 °C. Enjoy Paris!'
        again: list[MessageParam] = [*said, {"role": "assistant", "content": text}, QUESTION]
        whole = await client.messages.create(model="m", max_tokens=64, messages=[QUESTION, *again])
        assert whole.stop_reason == "tool_use"
        assert [block.type for block in whole.content] == [block.type for block in first.content]


async def test_blocks_are_numbered_from_zero_and_each_is_closed_before_the_next_opens(host: Host) -> None:
    async with host(Config(port=0), pace=0) as url:
        stream = await streamed(url)
    blocks = [(event["type"], event["index"]) for event in stream if "index" in event]
    edges = [block for block in blocks if block[0] != "content_block_delta"]
    assert edges == [(f"content_block_{edge}", index) for index in range(5) for edge in ("start", "stop")]
    assert [index for _, index in blocks] == sorted(index for _, index in blocks)
    assert types(stream)[0] == "message_start"
    assert types(stream)[-2:] == ["message_delta", "message_stop"]


@EVERY_DIALECT
async def test_what_the_upstream_sends_leaves_before_it_sends_more(host: Host, script: Script) -> None:
    server = pausing(script.hello, end=script.finish)
    async with over(host, server, dialect=script.dialect) as url, posted(url) as reply:
        with anyio.fail_after(10):
            received, rest = await until(b"Hello", reply)
            server.go_on.set()
            received += b"".join([piece async for piece in rest])
    assert types(events(received))[-1] == "message_stop"


@EVERY_DIALECT
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("asked", [True, False])
async def test_whatever_form_the_upstream_answers_in_the_client_gets_what_it_asked_for(
    host: Host, script: Script, streams: bool, asked: bool
) -> None:
    answers = playing(script.hello, script.finish) if streams else playing(script.whole, content_type="text/plain")
    async with over(host, answers, dialect=script.dialect) as url, sdk(url) as client:
        message: Message
        if asked:
            async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
    assert [block.text for block in message.content if block.type == "text"] == ["Hello"]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 9, 4)
    assert answers.targets == [f"POST {script.path}"]
    assert bool(answers.asked[0].get("stream")) is asked


async def test_two_streams_at_once_do_not_know_of_each_other(host: Host) -> None:
    server = pausing(CHAT.hello)
    async with over(host, server) as url, posted(url) as one, posted(url) as other:
        server.go_on.set()
        assert types(events(await one.aread())) == types(events(await other.aread()))


async def test_a_client_is_pinged_while_the_upstream_is_silent(host: Host) -> None:
    server = pausing()
    config = Config(limits=evolve(DEFAULT_LIMITS, ping_seconds=0.01))
    async with over(host, server, config) as url, posted(url) as reply:
        with anyio.fail_after(10):
            received, rest = b"", reply.aiter_raw()
            while received.count(b"event: ping") < 2:
                received += await anext(rest)
            server.go_on.set()
            received += b"".join([piece async for piece in rest])
    assert types(events(received))[-1] == "message_stop"


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # httpx's, left to the collector
async def test_a_client_that_leaves_closes_the_upstream(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOG)
    server = pausing(CHAT.hello)
    async with over(host, server) as url:
        async with posted(url) as reply:
            await until(b"Hello", reply)
        with anyio.fail_after(10):
            await server.left.wait()
    (line,) = logged(caplog)
    assert line.startswith("POST /v1/messages 200 cancelled input=")
    assert line.endswith(" estimated")


@pytest.mark.parametrize("head", [True, False], ids=["after the head", "before the head"])
async def test_a_client_that_leaves_before_the_first_byte_closes_the_upstream(
    host: Host, head: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOG)
    server = pausing() if head else Server(never)

    async def ask(url: str) -> None:
        async with posted(url) as reply:
            await reply.aread()

    async with over(host, server) as url:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, url)
                await server.reached.wait()
                tasks.cancel_scope.cancel()
            await server.left.wait()
    assert logged(caplog) == ["POST /v1/messages - cancelled -"]


@define
class Broken(Stage[bytes, bytes]):
    """A chain that writes once, if it is to, and breaks."""

    first: tuple[bytes, ...]

    def receive(self, items: Any) -> Any:
        raise StageError(f"could not read {b''.join(items)!r}").after(self.first)

    def receive_eof(self, cause: StreamError | None = None) -> Any:
        return ()


async def test_a_fault_of_ours_drops_the_connection(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamweir")
    first = b"event: ping\ndata: {}\n\n"
    server = playing(CHAT.hello)
    async with over(host, server, recipe=lambda *_, **__: Broken((first,))) as url, posted(url) as reply:
        received, rest = await until(first, reply)
        assert received == first
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(rest)
        async with browser() as client:
            assert (await client.get(f"{url}/healthz")).status_code == 200
    (line, _) = logged(caplog)
    assert line == "POST /v1/messages 200 failed:internal -"
    (fault,) = [record for record in caplog.records if record.name == "streamweir.http"]
    assert fault.exc_text is not None
    assert "StageError" in fault.exc_text
    assert "Hello" not in caplog.text


async def test_a_fault_of_ours_before_the_first_byte_is_a_500(host: Host) -> None:
    async with over(host, playing(CHAT.hello), recipe=lambda *_, **__: Broken(())) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (500, "api_error")


async def test_the_heads_of_an_answer(host: Host) -> None:
    async with over(host, playing(CHAT.hello, CHAT.finish)) as url:
        async with posted(url, query="?beta=true") as reply:
            assert reply.status_code == 200
            assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert reply.headers["cache-control"] == "no-cache"
            assert reply.headers["request-id"] == "req-7"
            assert types(events(await reply.aread()))[-1] == "message_stop"
        async with posted(url, {**REQUEST, "stream": False}) as reply:
            assert reply.status_code == 200
            assert reply.headers["content-type"] == "application/json"
            assert reply.headers["request-id"] == "req-7"
            assert json.loads(await reply.aread())["type"] == "message"


async def test_the_upstream_gets_its_own_key_and_no_header_of_the_clients(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server = playing(CHAT.hello, CHAT.finish)
    secret = {"authorization": "Bearer client-key", "x-api-key": "client-key", "cookie": "a=client-key"}
    async with over(host, server, Config(api_key="upstream-key")) as url, posted(url, headers=secret) as reply:
        await reply.aread()
    async with over(host, server) as url, posted(url, headers=secret) as reply:
        await reply.aread()
    keyed, keyless = server.headers
    assert keyed["authorization"] == "Bearer upstream-key"
    assert "authorization" not in keyless
    assert "client-key" not in str(server.headers)
    assert keyed["accept-encoding"] == "identity"
    assert server.asked[0]["messages"] == [QUESTION]


async def test_the_upstream_keeps_no_cookie_for_the_next_client(host: Host) -> None:
    server = refusing(200, CHAT.whole.decode(), set_cookie="who=somebody")
    async with over(host, server) as url:
        await streamed(url)
        await streamed(url)
    assert not any("cookie" in headers for headers in server.headers)


async def test_a_model_goes_up_by_the_name_that_the_map_gives_it(host: Host) -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with over(host, server, Config(models={"m": "theirs"})) as url:
        stream = await streamed(url)
        await streamed(url, {**REQUEST, "model": "other"})
    assert [asked["model"] for asked in server.asked] == ["theirs", "other"]
    assert types(stream)[-1] == "message_stop"


async def test_the_log_has_one_line_an_exchange_and_no_secret(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = {"authorization": "Bearer SECRET", "x-api-key": "SECRET"}
    body = REQUEST | {"messages": [{"role": "user", "content": "SECRET"}]}
    echo = CHAT.hello.replace(b"Hello", b"SECRET")
    async with over(host, playing(echo, CHAT.finish), Config(api_key="SECRET")) as url:
        async with posted(url, body, headers=secret) as reply:
            await reply.aread()
        async with posted(url, b'{"SECRET', query="?key=SECRET", headers=secret) as reply:
            await reply.aread()
        async with await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
            await stream.send(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-api-key: SECRET\x00\r\n\r\n")
            assert (await stream.receive()).split()[1] == b"400"
    async with over(host, refusing(400, '{"error":{"message":"SECRET"}}')) as url:
        await refused(url, body)
        async with browser() as client:
            assert (await client.get(f"{url}/a%0ab{'c' * 300}")).status_code == 404
    assert logged(caplog) == [
        "POST /v1/messages 200 complete input=9 cache_read=0 cache_write=0 output=4 reasoning=0",
        "POST /v1/messages 400 failed:invalid_request -",
        "POST /v1/messages 400 failed:invalid_request -",
        f"GET /a%0ab{'c' * 194} 404 failed:not_found -",
    ]
    ours = [record for record in caplog.records if record.name.startswith("streamweir")]
    assert "SECRET" not in "".join(map(logging.Formatter().format, ours))
    assert "SECRET" not in repr(Config(api_key="SECRET"))
