"""What stands behind the paths of the example hosts, and what real clients send there."""

import json
from typing import Any

import pytest
from anthropic import NotFoundError, RateLimitError, beta_async_tool
from anthropic.types.beta import BetaMessageParam
from attrs import evolve

from examples.gateway.config import Config
from pipeline.dialect import dialect
from pipeline.estimate import estimate
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from tests import responses_stream as rs
from tests.test_request_clients import CLAUDE_CODE
from tests.upstreams import (
    CHAT,
    EVERY_HOST,
    MESSAGES,
    QUESTION,
    REQUEST,
    RESPONSES,
    SCRIPTS,
    Host,
    Script,
    Server,
    begin,
    browser,
    events,
    over,
    playing,
    posted,
    refused,
    refusing,
    sdk,
    sse,
    types,
)

pytestmark = [pytest.mark.anyio, EVERY_HOST]
EVERY_DIALECT = pytest.mark.parametrize("script", SCRIPTS)

LIST = {"object": "list", "data": [{"id": "b", "object": "model", "created": 1_790_000_000}, {"id": "c"}]}


# Models


@EVERY_DIALECT
async def test_the_upstreams_models_are_listed_behind_those_of_the_map(host: Host, script: Script) -> None:
    server = refusing(200, json.dumps(LIST))
    config = Config(models={"a": "b", "c": "d"}, api_key="key")
    async with over(host, server, config, dialect=script.dialect) as url, sdk(url) as client:
        page = await client.models.list()
        one = await client.models.retrieve("b")
    assert [(model.type, model.id, model.display_name) for model in page.data] == [("model", id, id) for id in "acb"]  # noqa: A001
    assert [model.created_at.year for model in page.data] == [1970, 1970, 2026]
    assert (page.has_more, page.first_id, page.last_id) == (False, "a", "b")
    assert one.id == "b"
    query = "?limit=1000" if script is MESSAGES else ""
    assert server.targets == [f"GET /v1/models{query}"] * 2
    assert server.headers[0].items() >= dialect(script.dialect).headers("key").items()


@pytest.mark.parametrize(
    "said",
    [
        '{"models":["b",{"name":"c"}]}',
        '[{"id":"b"},"c"]',
        '{"data":[{"id":"b","created":"soon"},7,{"id":9},{},{"id":""},null,{"id":"c","created":1e99}]}',
    ],
)
async def test_a_list_of_models_is_read_in_whatever_form_it_comes(host: Host, said: str) -> None:
    async with over(host, refusing(200, said)) as url, sdk(url) as client:
        assert [model.id for model in (await client.models.list()).data] == ["b", "c"]


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, "{}"), (405, ""), (501, "no"), (200, "<html>hello</html>"), (200, '{"data":{}}'), (200, "")],
)
async def test_an_upstream_without_a_list_has_the_models_of_the_map(host: Host, status: int, body: str) -> None:
    async with over(host, refusing(status, body), Config(models={"a": "b"})) as url, sdk(url) as client:
        assert [model.id for model in (await client.models.list()).data] == ["a"]
        assert (await client.models.retrieve("a")).id == "a"
        with pytest.raises(NotFoundError, match="there is no model b"):
            await client.models.retrieve("b")


async def test_the_embedded_upstream_has_no_models_of_its_own(host: Host) -> None:
    async with host(Config(port=0)) as url, browser() as client:
        openai = await client.get(f"{url}/v1/models")
        messages = await client.get(f"{url}/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert openai.json() == {"object": "list", "data": []}
    assert messages.json() == {"data": [], "has_more": False, "first_id": None, "last_id": None}


async def test_an_upstream_that_refuses_to_list_its_models_is_told(host: Host) -> None:
    async with over(host, refusing(429, '{"error":{"message":"slow down"}}')) as url, sdk(url) as client:
        with pytest.raises(RateLimitError, match="slow down"):
            await client.models.list()


async def test_a_list_of_models_that_breaks_off_is_told(host: Host) -> None:
    async def cut(server: Server, client: Any) -> None:
        await begin(client, b'{"data":[', content_type="application/json")

    async with over(host, Server(cut)) as url, browser() as client:
        assert (await client.get(f"{url}/v1/models")).status_code == 502


async def test_a_list_of_models_is_bounded(host: Host) -> None:
    config = Config(limits=evolve(DEFAULT_LIMITS, answer_bytes=50))
    async with over(host, refusing(200, json.dumps(LIST)), config) as url, browser() as client:
        reply = await client.get(f"{url}/v1/models")
    assert (reply.status_code, "50 bytes" in reply.text) == (502, True)


# Counting tokens


async def test_a_count_of_tokens_is_an_estimate_and_says_so(host: Host) -> None:
    server = playing()
    asked: dict[str, Any] = {"model": "m", "messages": [QUESTION], "system": "Be brief." * 40}
    async with over(host, server) as url, browser() as client, sdk(url) as official:
        reply = await client.post(f"{url}/v1/messages/count_tokens?beta=true", json=asked)
        counted = await official.messages.count_tokens(**asked)
        refusal = await client.post(f"{url}/v1/messages/count_tokens", json={"model": "m"})
    parsed = dialect("messages").parse({**asked, "max_tokens": 1}, ledger=Ledger(), limits=DEFAULT_LIMITS)
    assert reply.json() == {"input_tokens": estimate(parsed).input}
    assert reply.headers["x-streamweir-estimate"] == "characters"
    assert counted.input_tokens == estimate(parsed).input > 90
    assert (refusal.status_code, refusal.json()["error"]["type"]) == (400, "invalid_request_error")
    assert server.asked == []


# Signs of life


async def test_it_says_that_it_is_there(host: Host) -> None:
    server = playing()
    async with over(host, server) as url, browser() as client:
        health = await client.get(f"{url}/healthz")
        heads = [
            await client.head(url + path) for path in ("/", "/api/hello", "/healthz", "/v1/messages", "/v1/models")
        ]
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert [(head.status_code, head.content) for head in heads] == [(200, b"")] * 5
    assert server.asked == []


# What real clients send


@EVERY_DIALECT
async def test_what_claude_code_sends_is_accepted(host: Host, script: Script) -> None:
    server = playing(script.hello, script.finish)
    async with over(host, server, dialect=script.dialect) as url:
        async with posted(url, CLAUDE_CODE, query="?beta=true") as reply:
            assert types(events(await reply.aread()))[-1] == "message_stop"
        async with posted(url, {**CLAUDE_CODE, "stream": False}, query="?beta=true") as reply:
            assert json.loads(await reply.aread())["content"] == [{"type": "text", "text": "Hello"}]
    beside = "?beta=true" if script.dialect == "messages" else ""
    assert server.targets == [f"POST {script.path}{beside}"] * 2


async def test_a_thread_may_be_created_and_its_continuation_is_told_as_lost(host: Host) -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with over(host, server) as url:
        async with posted(url, {**REQUEST, "thread": {"type": "create"}}) as reply:
            assert reply.status_code == 200
        status, error = await refused(url, {**REQUEST, "thread": {"type": "continue", "previous_message_id": "msg_1"}})
    assert (status, error["type"], error["details"]) == (404, "not_found_error", {"error_code": "thread_not_found"})
    assert len(server.asked) == 1
    assert "thread" not in server.asked[0]


CALL = rs.call('{"city":"Paris"}', name="get_weather", call_id="call_1")
ASKED: BetaMessageParam = {"role": "user", "content": "What is the weather in Paris?"}
TURNS = [
    sse(rs.created(), rs.added({**CALL, "arguments": ""}), rs.done(CALL), rs.terminal(output=[CALL])),
    RESPONSES.hello + RESPONSES.finish,
]


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # the SDK's, left to the collector
async def test_the_sdks_tool_runner_replays_the_conversation_that_no_thread_keeps(host: Host) -> None:
    @beta_async_tool
    async def get_weather(city: str) -> str:
        """The weather."""
        return f"18 degrees in {city}"

    turns = iter(TURNS)
    server = Server(lambda _, client: playing(next(turns)).answer(server, client))
    async with over(host, server, dialect="responses") as url, sdk(url) as client:
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=64, messages=[ASKED], tools=[get_weather], stream=True
        )
        texts = [block.text async for stream in runner async for block in _blocks(stream) if block.type == "text"]
    assert texts == ["Hello"]
    first, second = server.asked
    assert [tool["name"] for tool in second["tools"]] == ["get_weather"] == [tool["name"] for tool in first["tools"]]
    assert [item.get("type", "message") for item in second["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert second["input"][2]["output"] == "18 degrees in Paris"
    assert {item["call_id"] for item in second["input"][1:]} == {"call_1"}


async def _blocks(stream: Any) -> Any:
    for block in (await stream.get_final_message()).content:
        yield block
