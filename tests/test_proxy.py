"""The example proxy over HTTP: the real SDK in front of it, the embedded replay or a scripted server behind it."""

import asyncio
import logging
import re
from typing import Any

import aiohttp
import anyio
import pytest
from anthropic.types import MessageParam, ToolResultBlockParam
from attrs import define, evolve

from examples.gateway.config import Config
from examples.proxy.app import serving
from examples.proxy.replay import ReplayUpstream
from pipeline.errors import StageError
from pipeline.events import StreamError
from pipeline.limits import DEFAULT_LIMITS
from pipeline.stage import Stage
from tests.upstreams import (
    COUNTS,
    FINISH,
    HELLO,
    QUESTION,
    REQUEST,
    Server,
    events,
    never,
    pausing,
    playing,
    posted,
    proxy_over,
    refused,
    refusing,
    sdk,
    streamed,
    types,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp runs on asyncio only."""
    return "asyncio"


async def test_the_sdk_reads_both_turns_of_the_embedded_upstream_in_order() -> None:
    async with serving(Config(port=0), replay=ReplayUpstream(pace=0)) as url, sdk(url) as client:
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
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION, *again]) as stream:
            assert (await stream.get_final_message()).stop_reason == "tool_use"


async def test_blocks_are_numbered_from_zero_and_each_is_closed_before_the_next_opens() -> None:
    async with serving(Config(port=0), replay=ReplayUpstream(pace=0)) as url:
        stream = await streamed(url)
    blocks = [(event["type"], event["index"]) for event in stream if "index" in event]
    edges = [block for block in blocks if block[0] != "content_block_delta"]
    assert edges == [(f"content_block_{edge}", index) for index in range(5) for edge in ("start", "stop")]
    assert [index for _, index in blocks] == sorted(index for _, index in blocks)
    assert types(stream)[0] == "message_start"
    assert types(stream)[-2:] == ["message_delta", "message_stop"]


async def test_what_the_upstream_sends_leaves_before_it_sends_more() -> None:
    server = pausing(HELLO)
    async with proxy_over(server) as url, posted(url) as reply:
        with anyio.fail_after(10):
            received = b""
            while b'"text":"Hello"' not in received:
                received += await reply.content.readany()
            server.go_on.set()
            received += await reply.read()
    assert types(events(received))[-1] == "message_stop"


async def test_two_streams_at_once_do_not_know_of_each_other() -> None:
    server = pausing(HELLO)
    async with proxy_over(server) as url, posted(url) as one, posted(url) as other:
        server.go_on.set()
        assert types(events(await one.read())) == types(events(await other.read()))


async def test_a_client_is_pinged_while_the_upstream_is_silent() -> None:
    server = pausing()
    config = Config(limits=evolve(DEFAULT_LIMITS, ping_seconds=0.01))
    async with proxy_over(server, config) as url, posted(url) as reply:
        with anyio.fail_after(10):
            received = b""
            while received.count(b"event: ping") < 2:
                received += await reply.content.readany()
            server.go_on.set()
            received += await reply.read()
    assert types(events(received))[-1] == "message_stop"


async def test_a_client_that_leaves_closes_the_upstream(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamweir")
    replay = ReplayUpstream(pace=0.01)
    async with serving(Config(port=0), replay=replay) as url:
        async with posted(url) as reply:
            await reply.content.readany()
            reply.close()
        with anyio.fail_after(10):
            await replay.left.wait()
    assert [record.getMessage()[:35] for record in caplog.records] == ["POST /v1/messages 200 cancelled - 0"]


@pytest.mark.parametrize("head", [True, False], ids=["after the head", "before the head"])
async def test_a_client_that_leaves_before_the_first_byte_closes_the_upstream(
    head: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamweir")
    server = pausing() if head else Server(never)
    async with proxy_over(server) as url, aiohttp.ClientSession() as session:
        with anyio.fail_after(10):
            asking = asyncio.create_task(session.post(f"{url}/v1/messages", json=REQUEST))
            await server.reached.wait()
            if head:
                (await asking).close()
            asking.cancel()
            await server.left.wait()
    status = "200" if head else "-"
    assert [record.getMessage()[:-6] for record in caplog.records] == [f"POST /v1/messages {status} cancelled - "]


async def test_a_whole_answer_where_a_stream_was_asked_for_is_streamed() -> None:
    whole = b'{"id":"1","model":"m","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    async with proxy_over(playing(whole, content_type="application/json")) as url:
        stream = await streamed(url)
    assert types(stream)[-1] == "message_stop"


@define
class Broken(Stage[bytes, bytes]):
    """A chain that writes once and breaks."""

    def receive(self, items: Any) -> Any:
        raise StageError(f"could not read {b''.join(items)!r}").after([b"event: ping\ndata: {}\n\n"])

    def receive_eof(self, cause: StreamError | None = None) -> Any:
        return ()


async def test_a_fault_of_ours_drops_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamweir")
    async with proxy_over(playing(HELLO), recipe=lambda *_, **__: Broken()) as url, posted(url) as reply:
        assert await reply.content.readany() == b"event: ping\ndata: {}\n\n"
        with pytest.raises(aiohttp.ClientPayloadError):
            await reply.read()
    logged, fault = caplog.records
    assert logged.getMessage().startswith("POST /v1/messages 200 failed - ")
    assert fault.exc_text is not None
    assert fault.exc_text.endswith("StageError")
    assert "Hello" not in caplog.text


async def test_a_beta_in_the_query_changes_nothing_and_healthz_answers() -> None:
    async with proxy_over(playing(HELLO, FINISH)) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/messages?beta=true", json=REQUEST) as reply:
            assert reply.status == 200
            assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert reply.headers["cache-control"] == "no-cache"
            assert reply.headers["request-id"] == "req-7"
            assert types(events(await reply.read()))[-1] == "message_stop"
        async with session.get(f"{url}/healthz") as health:
            assert (health.status, await health.json()) == (200, {"status": "ok"})
        async with session.head(f"{url}/healthz") as health:
            assert health.status == 200


async def test_the_upstream_gets_its_own_key_and_no_header_of_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server = playing(HELLO, FINISH)
    secret = {"authorization": "Bearer client-key", "x-api-key": "client-key", "cookie": "a=client-key"}
    async with proxy_over(server, Config(api_key="upstream-key")) as url, posted(url, headers=secret) as reply:
        await reply.read()
    async with proxy_over(server) as url, posted(url, headers=secret) as reply:
        await reply.read()
    keyed, keyless = server.headers
    assert keyed["authorization"] == "Bearer upstream-key"
    assert "authorization" not in keyless
    assert "client-key" not in str(server.headers)
    assert keyed["accept-encoding"] == "identity"
    assert server.asked[0]["messages"] == [QUESTION]


async def test_the_log_has_one_line_an_exchange_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = {"authorization": "Bearer SECRET", "x-api-key": "SECRET"}
    body = REQUEST | {"messages": [{"role": "user", "content": "SECRET"}]}
    echo = HELLO.replace(b"Hello", b"SECRET")
    async with proxy_over(playing(echo, COUNTS, FINISH), Config(api_key="SECRET")) as url:
        async with posted(f"{url}", body, headers=secret) as reply:
            await reply.read()
        async with posted(url, b'{"SECRET', headers=secret, params={"key": "SECRET"}) as reply:
            await reply.read()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nx-api-key: SECRET\x00\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.0 400")
        writer.close()
        await writer.wait_closed()
    async with proxy_over(refusing(400, '{"error":{"message":"SECRET"}}')) as url:
        await refused(url, body)
        async with aiohttp.ClientSession() as session, session.get(f"{url}/a%0ab{'c' * 300}") as unknown:
            assert unknown.status == 404
    lines = [record.getMessage() for record in caplog.records if record.name == "streamweir.proxy"]
    assert [re.sub(r"[\d.]+s$", "TIME", line) for line in lines] == [
        "POST /v1/messages 200 complete input=9 cache_read=0 cache_write=0 output=4 reasoning=0 TIME",
        "POST /v1/messages 400 failed - TIME",
        "POST /v1/messages 400 failed - TIME",
        f"GET /a%0Ab{'c' * 194} 404 failed - TIME",
    ]
    assert "BadHttpMessage" in caplog.text
    assert "SECRET" not in caplog.text
    assert "SECRET" not in repr(Config(api_key="SECRET"))
