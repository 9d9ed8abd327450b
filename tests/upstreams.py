"""Scripted upstreams behind the example proxy, and clients in front of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import MessageParam
from attrs import define, evolve, field

from examples.gateway.config import Config
from examples.proxy.app import serving
from examples.proxy.listen import listening

QUESTION: MessageParam = {"role": "user", "content": "What is the weather in Paris?"}
REQUEST: dict[str, Any] = {"model": "m", "max_tokens": 64, "messages": [QUESTION], "stream": True}
HELLO = b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
CALL = (
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",'
    b'"function":{"name":"look","arguments":"{\\"a"}}]}}]}\n\n'
)
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
COUNTS = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\n'


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
    options: dict[str, Any] = {"max_retries": 0, "timeout": 60.0, "http_client": http}
    async with AsyncAnthropic(base_url=url, api_key="client-key", **options) as client:
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
