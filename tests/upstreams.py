"""The example hosts, scripted upstreams behind them, and clients in front of them."""

import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import h11
import httpx
import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import MessageParam
from anyio.abc import SocketAttribute, SocketStream
from attrs import define, evolve, field, frozen
from openai import AsyncOpenAI
from openai import DefaultAsyncHttpxClient as OpenAIHttpxClient

from examples.gateway.config import Config
from examples.proxy.app import serving as on_aiohttp
from examples.raw_socket.connection import Connection
from examples.raw_socket.server import serving as on_sockets
from pipeline.drive import SOURCE_ERRORS
from pipeline.reply import Head
from tests import messages_stream as ms
from tests import responses_stream as rs

Host = Callable[..., AbstractAsyncContextManager[str]]

HOSTS = [
    pytest.param(on_aiohttp, "asyncio", id="aiohttp"),
    pytest.param(on_sockets, "asyncio", id="raw-asyncio"),
    pytest.param(on_sockets, "trio", id="raw-trio"),
]
EVERY_HOST = pytest.mark.parametrize(("host", "anyio_backend"), HOSTS)

QUESTION: MessageParam = {"role": "user", "content": "What is the weather in Paris?"}
REQUEST: dict[str, Any] = {"model": "m", "max_tokens": 64, "messages": [QUESTION], "stream": True}
MOST = 1 << 30


@frozen(kw_only=True)
class Script:
    """What an upstream of one dialect says."""

    dialect: str
    path: str
    hello: bytes
    """The beginning of a stream, with the text Hello."""
    call: bytes
    """Then the beginning of a call."""
    finish: bytes
    """The end of a stream that said Hello."""
    error: bytes
    """An error in a stream: the model is out of memory."""
    refusal: bytes
    """The same, where a stream begins with it."""
    whole: bytes
    """A whole answer that says Hello."""

    @property
    def mark(self) -> Any:
        return pytest.param(self, id=self.dialect)


def sse(*events: rs.Json) -> bytes:
    """Events as a Responses server writes them."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


CHAT = Script(
    dialect="chat",
    path="/v1/chat/completions",
    hello=b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n',
    call=b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1",'
    b'"type":"function","function":{"name":"look","arguments":"{\\"a"}}]}}]}\n\n',
    finish=b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\ndata: [DONE]\n\n',
    error=b'data: {"error":{"message":"out of memory","type":"server_error"}}\n\n',
    refusal=b'data: {"error":{"message":"out of memory","type":"server_error"}}\n\n',
    whole=b'{"id":"1","model":"m","choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":4}}',
)
USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
RESPONSES = Script(
    dialect="responses",
    path="/v1/responses",
    hello=sse(rs.created(), rs.added(rs.message()), rs.text("Hello")),
    call=sse(rs.added(rs.call(name="look"), 1), rs.arguments('{"a', 1)),
    finish=sse(rs.done(rs.message("Hello")), rs.terminal(output=[rs.message("Hello")], usage=USAGE)),
    error=sse(
        rs.event("response.failed", response=rs.response("failed", error={"code": "x", "message": "out of memory"}))
    ),
    refusal=sse(rs.event("error", code="x", message="out of memory")),
    whole=json.dumps(rs.response(output=[rs.message("Hello")], usage=USAGE)).encode(),
)
MESSAGES = Script(
    dialect="messages",
    path="/v1/messages",
    hello=sse(ms.begin(usage={"input_tokens": 9, "output_tokens": 1}), ms.start(ms.TEXT), ms.text("Hello")),
    call=sse(ms.stop(), ms.start(ms.call(name="look"), 1), ms.given('{"a', 1)),
    finish=sse(ms.stop(), ms.told(usage={"output_tokens": 4}), ms.END),
    error=sse(ms.event("error", error={"type": "api_error", "message": "out of memory"})),
    refusal=sse(ms.event("error", error={"type": "api_error", "message": "out of memory"})),
    whole=json.dumps(
        ms.message({**ms.TEXT, "text": "Hello"}, stop_reason="end_turn", usage={"input_tokens": 9, "output_tokens": 4})
    ).encode(),
)
SCRIPTS = [CHAT.mark, RESPONSES.mark, MESSAGES.mark]


LOST: tuple[type[Exception], ...] = (h11.RemoteProtocolError, *SOURCE_ERRORS)


@define
class Server:
    """An upstream that answers as its test says, and notes what it is asked and whether somebody leaves."""

    answer: Callable[["Server", Connection], Awaitable[None]]
    asked: list[Any] = field(factory=list, init=False)
    targets: list[str] = field(factory=list, init=False)
    headers: list[dict[str, str]] = field(factory=list, init=False)
    reached: anyio.Event = field(factory=anyio.Event, init=False)
    go_on: anyio.Event = field(factory=anyio.Event, init=False)
    left: anyio.Event = field(factory=anyio.Event, init=False)

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            try:
                await self._serve(Connection(stream))
            except* LOST:
                pass

    async def _serve(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            body = await connection.body(request, MOST)
            self.asked.append(json.loads(body) if body else None)
            self.targets.append(f"{request.method.decode()} {request.target.decode()}")
            self.headers.append({name.decode(): value.decode() for name, value in request.headers})
            self.reached.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, connection, tasks.cancel_scope)
                await self.answer(self, connection)
                tasks.cancel_scope.cancel()
            if not connection.renewed():
                return

    async def _watch(self, connection: Connection, answering: anyio.CancelScope) -> None:
        await connection.left()
        self.left.set()
        answering.cancel()


async def begin(client: Connection, *frames: bytes, content_type: str = "text/event-stream", status: int = 200) -> None:
    """The head of an answer and its first frames."""
    await client.begin(Head(status, {"content-type": content_type, "x-request-id": "req-7"}))
    for frame in frames:
        await client.write(frame)


def playing(*frames: bytes, content_type: str = "text/event-stream", status: int = 200) -> Server:
    """An upstream that streams these frames and ends."""

    async def answer(server: Server, client: Connection) -> None:
        await begin(client, *frames, content_type=content_type, status=status)
        await client.end()

    return Server(answer)


def pausing(*frames: bytes, end: bytes = CHAT.finish) -> Server:
    """An upstream that sends these frames, waits for its test, and finishes."""

    async def answer(server: Server, client: Connection) -> None:
        await begin(client, *frames)
        await server.go_on.wait()
        await client.write(end)
        await client.end()

    return Server(answer)


def cutting(*frames: bytes, content_type: str = "text/event-stream") -> Server:
    """An upstream that closes the connection in the middle of the body."""

    async def answer(server: Server, client: Connection) -> None:
        await begin(client, *frames, content_type=content_type)

    return Server(answer)


def resetting(*frames: bytes) -> Server:
    """An upstream that resets the connection, when its test has read the frames."""

    async def answer(server: Server, client: Connection) -> None:
        await begin(client, *frames)
        await server.go_on.wait()
        raw: socket.socket = client.stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return Server(answer)


def refusing(status: int, body: str, content_type: str = "application/json", **headers: str) -> Server:
    """An upstream that answers with a whole body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(server: Server, client: Connection) -> None:
        await client.whole(Head(status, {"content-type": content_type, **named}), body.encode())

    return Server(answer)


async def never(server: Server, client: Connection) -> None:
    """No head, until somebody leaves."""
    await anyio.sleep_forever()


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[str]:
    """The base URL of a scripted upstream."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def over(
    host: Host, server: Server, config: Config | None = None, *, dialect: str = "chat", **options: Any
) -> AsyncIterator[str]:
    """A host before a scripted upstream; its base URL."""
    async with listening(server) as upstream:
        config = evolve(config or Config(), port=0, dialect=dialect, upstream=upstream)
        async with host(config, **options) as url:
            yield url


@asynccontextmanager
async def sdk(url: str) -> AsyncIterator[AsyncAnthropic]:
    http = DefaultAsyncHttpxClient(trust_env=False, verify=False)  # no certificates are loaded
    options: dict[str, Any] = {"max_retries": 0, "timeout": 60.0, "http_client": http}
    async with AsyncAnthropic(base_url=url, api_key="client-key", **options) as client:
        yield client


browser = partial(httpx.AsyncClient, trust_env=False, verify=False, timeout=60)
"""An HTTP client."""


@asynccontextmanager
async def openai_sdk(url: str) -> AsyncIterator[AsyncOpenAI]:
    http = OpenAIHttpxClient(trust_env=False, verify=False)
    options: dict[str, Any] = {"max_retries": 0, "timeout": 60.0, "http_client": http}
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="client-key", **options) as client:
        yield client


@asynccontextmanager
async def posted(url: str, body: Any = REQUEST, query: str = "", **options: Any) -> AsyncIterator[httpx.Response]:
    """A request by hand."""
    content, target = body if isinstance(body, bytes) else json.dumps(body).encode(), f"{url}/v1/messages{query}"
    async with browser() as client, client.stream("POST", target, content=content, **options) as reply:
        yield reply


async def until(word: bytes, reply: httpx.Response) -> tuple[bytes, AsyncIterator[bytes]]:
    """What comes until a word has, and what will come after it."""
    received, rest = b"", reply.aiter_raw()
    while word not in received:
        received += await anext(rest)
    return received, rest


def events(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: ")]


async def streamed(url: str, body: Any = REQUEST) -> list[dict[str, Any]]:
    async with posted(url, body) as reply:
        assert reply.status_code == 200
        return events(await reply.aread())


async def refused(url: str, body: Any = REQUEST, **options: Any) -> tuple[int, dict[str, Any]]:
    """Status and error of an answer in the Messages shape."""
    async with posted(url, body, **options) as reply:
        answer = json.loads(await reply.aread())
        assert answer["type"] == "error"
        return reply.status_code, answer["error"]


def types(stream: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in stream]
