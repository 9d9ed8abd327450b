"""The example proxy over HTTP: the real SDK in front of it, the embedded replay or a scripted server behind it."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anthropic
import anyio
import pytest
from aiohttp import web
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import MessageParam, ToolResultBlockParam
from attrs import define, evolve, field

from examples.proxy.app import serving
from examples.proxy.config import Config
from examples.proxy.listen import listening
from examples.proxy.replay import ReplayUpstream
from pipeline.errors import StageError
from pipeline.events import StreamError
from pipeline.limits import DEFAULT_LIMITS
from pipeline.stage import Stage

pytestmark = pytest.mark.anyio

QUESTION: MessageParam = {"role": "user", "content": "What is the weather in Paris?"}
REQUEST: dict[str, Any] = {"model": "m", "max_tokens": 64, "messages": [QUESTION], "stream": True}
HELLO = b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
CALL = (
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",'
    b'"function":{"name":"look","arguments":"{\\"a"}}]}}]}\n\n'
)
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
COUNTS = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\n'


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp runs on asyncio only."""
    return "asyncio"


@define
class Server:
    """An upstream that answers as its test says, and notes what it is asked and whether somebody leaves."""

    answer: Callable[["Server", web.Request], Awaitable[web.StreamResponse]]
    asked: list[Any] = field(factory=list, init=False)
    headers: list[Any] = field(factory=list, init=False)
    reached: asyncio.Event = field(factory=asyncio.Event, init=False)
    go_on: asyncio.Event = field(factory=asyncio.Event, init=False)
    left: asyncio.Event = field(factory=asyncio.Event, init=False)

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._complete)
        return application

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.headers.append(request.headers)
        self.reached.set()
        try:
            return await self.answer(self, request)
        except asyncio.CancelledError:
            self.left.set()
            raise


async def begin(request: web.Request, *frames: bytes, content_type: str = "text/event-stream") -> web.StreamResponse:
    """The head of a stream and its first frames."""
    response = web.StreamResponse(headers={"content-type": content_type, "x-request-id": "req-7"})
    await response.prepare(request)
    for frame in frames:
        await response.write(frame)
    return response


def playing(*frames: bytes, content_type: str = "text/event-stream") -> Server:
    """An upstream that streams these frames and ends."""

    async def answer(server: Server, request: web.Request) -> web.StreamResponse:
        return await begin(request, *frames, content_type=content_type)

    return Server(answer)


def pausing(*frames: bytes) -> Server:
    """An upstream that sends these frames, waits for its test, and finishes."""

    async def answer(server: Server, request: web.Request) -> web.StreamResponse:
        response = await begin(request, *frames)
        await server.go_on.wait()
        await response.write(FINISH)
        return response

    return Server(answer)


def refusing(status: int, body: str, content_type: str = "application/json", **headers: str) -> Server:
    """An upstream that answers with a whole body."""

    async def answer(server: Server, request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=body, content_type=content_type, headers=named)

    return Server(answer)


async def never(server: Server, request: web.Request) -> web.StreamResponse:
    """No head, until somebody leaves."""
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def proxy_over(server: Server, config: Config | None = None, **options: Any) -> AsyncIterator[str]:
    """The proxy before a scripted upstream."""
    config = evolve(config or Config(), port=0)
    async with (
        listening(server.application()) as upstream,
        serving(evolve(config, upstream=f"{upstream}/v1"), **options) as url,
    ):
        yield url


@asynccontextmanager
async def sdk(url: str) -> AsyncIterator[AsyncAnthropic]:
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncAnthropic(base_url=url, api_key="client-key", max_retries=0, http_client=http) as client:
        yield client


@asynccontextmanager
async def posted(url: str, body: Any = REQUEST, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """A request by hand."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/messages", data=data, **options) as reply:
        yield reply


def events(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: ")]


async def streamed(url: str) -> list[dict[str, Any]]:
    async with posted(url) as reply:
        assert reply.status == 200
        return events(await reply.read())


async def refused(url: str, body: Any = REQUEST, **options: Any) -> tuple[int, dict[str, Any]]:
    """Status and error of an answer in the Messages shape."""
    async with posted(url, body, **options) as reply:
        answer = await reply.json()
        assert answer["type"] == "error"
        return reply.status, answer["error"]


def types(stream: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in stream]


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


@pytest.mark.parametrize(
    ("status", "body", "expected", "named"),
    [
        (401, '{"error":{"message":"no such key","code":"invalid_api_key"}}', 401, "authentication_error"),
        (403, "no", 403, "permission_error"),
        (404, '{"error":{"message":"no such model"}}', 404, "not_found_error"),
        (400, '{"error":{"message":"too long","code":"context_length_exceeded"}}', 400, "invalid_request_error"),
        (422, '{"detail":[{"msg":"top_p is odd"}]}', 400, "invalid_request_error"),
        (429, '{"error":{"message":"slow down"}}', 429, "rate_limit_error"),
        (429, '{"error":{"message":"pay","code":"insufficient_quota"}}', 429, "billing_error"),
        (500, "[" * 5_000, 500, "api_error"),
        (502, "x" * 200_000, 500, "api_error"),
        (503, '{"error":{"message":"busy"}}', 529, "overloaded_error"),
        (302, "", 502, "api_error"),
        (201, "{}", 502, "api_error"),
    ],
)
async def test_an_upstream_error_keeps_its_class_and_gets_the_messages_shape(
    status: int, body: str, expected: int, named: str
) -> None:
    server = refusing(status, body, location="/elsewhere")
    async with proxy_over(server) as url:
        answered, error = await refused(url)
    assert (answered, error["type"]) == (expected, named)
    assert len(server.asked) == 1
    if "message" in body:
        assert error["message"] == json.loads(body)["error"]["message"]


async def test_the_sdk_raises_the_class_a_user_expects_and_sees_when_to_retry() -> None:
    server = refusing(429, '{"error":{"message":"slow down"}}', retry_after="7", x_request_id="req-9", x_secret="s")
    async with proxy_over(server) as url, sdk(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=True)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.request_id == "req-9"
    assert "x-secret" not in caught.value.response.headers


async def test_a_page_for_people_is_no_answer() -> None:
    async with proxy_over(refusing(200, "<html>Sign in</html>", "text/html")) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (502, "api_error")
    assert error["message"] == "the upstream answered with status 200, text/html"


async def test_what_is_no_event_stream_fails_inside_the_stream() -> None:
    async with proxy_over(playing(b"Sign in here", content_type="text/plain")) as url:
        (event,) = await streamed(url)
    assert event["error"]["type"] == "api_error"
    assert "not an event stream" in event["error"]["message"]


async def test_an_upstream_that_cannot_be_reached_is_a_502() -> None:
    async with listening(web.Application()) as gone:
        pass
    async with serving(Config(port=0, upstream=f"{gone}/v1")) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (502, "api_error")
    assert error["message"] == "the upstream cannot be reached: ClientConnectorError"


async def test_an_upstream_that_does_not_answer_is_a_504() -> None:
    server = Server(never)
    async with proxy_over(server, Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.05))) as url:
        status, error = await refused(url)
        with anyio.fail_after(10):
            await server.left.wait()
    assert (status, error["type"]) == (504, "timeout_error")


async def test_an_upstream_that_falls_silent_is_cut() -> None:
    server = pausing(HELLO)
    async with proxy_over(server, Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.05))) as url:
        stream = await streamed(url)
        with anyio.fail_after(10):
            await server.left.wait()
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert "nothing for 0.05 seconds" in stream[-1]["error"]["message"]


async def test_a_call_that_the_upstream_cuts_stays_open_before_the_error(caplog: pytest.LogCaptureFixture) -> None:
    async def reset(server: Server, request: web.Request) -> web.StreamResponse:
        response = await begin(request, HELLO, CALL)
        assert request.transport is not None
        request.transport.abort()
        return response

    caplog.set_level(logging.INFO, "streamweir")
    for server in (playing(HELLO, CALL), Server(reset)):
        async with proxy_over(server) as url:
            stream = await streamed(url)
            async with sdk(url) as client, client.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as read:
                with pytest.raises(anthropic.APIStatusError):
                    await read.get_final_message()
        assert types(stream)[-3:] == ["content_block_start", "content_block_delta", "error"]
        assert stream[-2]["delta"]["partial_json"] == '{"a'
    assert [record.getMessage().split()[3] for record in caplog.records if record.name == "streamweir.proxy"] == [
        "cut"
    ] * 4


async def test_an_error_in_the_stream_ends_it_in_the_messages_shape() -> None:
    failing = b'data: {"error":{"message":"out of memory","code":500}}\n\n'
    async with proxy_over(playing(HELLO, failing, HELLO)) as url:
        stream = await streamed(url)
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert stream[-1]["error"] == {"type": "api_error", "message": "out of memory"}


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


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": None}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"stream": False}, "stream"),
        ({"stream": None}, "stream"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
    ],
)
async def test_a_bad_request_is_a_400_that_names_the_member(change: dict[str, Any], named: str) -> None:
    body = {name: value for name, value in (REQUEST | change).items() if value is not None}
    server = playing(FINISH)
    async with proxy_over(server) as url:
        status, error = await refused(url, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(f"{named}: ")
    assert server.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 300 + b"]" * 300])
async def test_a_body_that_is_no_object_is_a_400(body: bytes) -> None:
    async with proxy_over(playing(FINISH)) as url:
        status, error = await refused(url, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("the body")


async def test_a_body_that_cannot_be_decoded_is_a_400() -> None:
    async with proxy_over(playing(FINISH)) as url:
        status, error = await refused(url, b"no gzip", headers={"content-encoding": "gzip"})
    assert (status, error["message"]) == (400, "the body cannot be read")


async def test_a_request_that_is_too_large_is_a_413() -> None:
    size = len(json.dumps(REQUEST))
    async with proxy_over(playing(HELLO, FINISH), Config(limits=evolve(DEFAULT_LIMITS, request_bytes=size))) as url:
        assert types(await streamed(url))[-1] == "message_stop"
        status, error = await refused(url, json.dumps(REQUEST).encode() + b" ")
    assert (status, error["type"]) == (413, "request_too_large")
    assert error["message"] == f"the request is larger than {size} bytes"


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/nothing"), ("GET", "/v1/messages"), ("GET", "/")])
async def test_an_unknown_path_is_a_404_in_the_messages_shape(method: str, path: str) -> None:
    async with (
        proxy_over(playing(FINISH)) as url,
        aiohttp.ClientSession() as session,
        session.request(method, url + path) as reply,
    ):
        assert reply.status == 404
        error = (await reply.json())["error"]
    assert error == {"type": "not_found_error", "message": f"there is no {method} {path}"}


async def test_a_beta_in_the_query_changes_nothing_and_healthz_answers() -> None:
    async with proxy_over(playing(HELLO, FINISH)) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/messages?beta=true", json=REQUEST) as reply:
            assert reply.status == 200
            assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
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
    assert server.headers[0]["authorization"] == "Bearer upstream-key"
    assert "client-key" not in str(server.headers[0])
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
    lines = [record.getMessage() for record in caplog.records if record.name == "streamweir.proxy"]
    assert [re.sub(r"[\d.]+s$", "TIME", line) for line in lines] == [
        "POST /v1/messages 200 complete input=9 cache_read=0 cache_write=0 output=4 reasoning=0 TIME",
        "POST /v1/messages 400 failed - TIME",
        "POST /v1/messages 400 failed - TIME",
    ]
    assert "BadHttpMessage" in caplog.text
    assert "SECRET" not in caplog.text
    assert "SECRET" not in repr(Config(api_key="SECRET"))
