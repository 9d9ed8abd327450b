"""The pipeline inside the anthropic SDK's own HTTP transport: the SDK over a Chat server, and no proxy between them.

python -m examples.sdk_transport [BASE_URL [MODEL [PROMPT]]]; a key, if the server wants one, stands in OPENAI_API_KEY.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack

import httpx2
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from attrs import define, field

from examples.gateway.config import Config
from examples.gateway.relay import url_of
from examples.gateway.table import Asked, Gateway
from pipeline.drive import through
from pipeline.reply import Head, Refusal
from pipeline.route import Exchange

LOST = (httpx2.TransportError, httpx2.DecodingError)
"""What reading a reply raises when the connection is lost, or the compressed body is broken."""


@define
class RouteTransport(httpx2.AsyncBaseTransport):
    """Every request of the SDK is an exchange of the gateway; what it asks goes to the upstream of `config`.

    What the connection to the upstream raises goes to the SDK, which tries again; but once the reply has begun, a
    lost connection or a broken body is an answer that was cut, told in its own words.
    `inner` is closed with this transport.
    """

    config: Config
    inner: httpx2.AsyncBaseTransport = field(factory=httpx2.AsyncHTTPTransport)
    gateway: Gateway = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.gateway = Gateway.of(self.config)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, when its first bytes are there."""
        target, body = request.url.raw_path.decode(), await request.aread()
        headers = {name: value for name, value in request.headers.items() if name != "host"}  # there is no host here
        exchange = self.gateway.open(Asked(method=request.method, target=target, headers=headers, body=body))
        asked = exchange.request
        if isinstance(asked, Refusal):
            return whole(asked)
        method = "POST" if asked.body else "GET"
        headers = {**exchange.route.upstream.headers(self.config.api_key), **asked.headers}
        url = url_of(self.config.upstream, asked)
        upstream = await self.inner.handle_async_request(
            httpx2.Request(method, url, headers=headers, content=asked.body, extensions=request.extensions)
        )
        reply = exchange.reply(upstream.status_code, upstream.headers)
        answer = Body(exchange, upstream, through(until_lost(upstream), reply.chain))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(answer.aclose)
            answer.first = await anext(answer.rest, b"")
            stack.pop_all()
        head = reply.head or Head(502, {})
        return httpx2.Response(head.status, headers=head.headers, stream=answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


@define
class Body(httpx2.AsyncByteStream):
    """The rest of an answer, made while it is read. Whoever closes it closes the upstream's."""

    exchange: Exchange
    upstream: httpx2.Response
    rest: AsyncGenerator[bytes, None]
    first: bytes = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.first
        async for data in self.rest:
            yield data

    async def aclose(self) -> None:
        """Once the answer has ended, that changes nothing."""
        self.exchange.cancel()
        await self.rest.aclose()
        await self.upstream.aclose()


async def until_lost(reply: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """A reply's body, as far as it comes; the chain sees whether it was all of it."""
    try:
        async for data in reply.aiter_bytes():
            yield data
    except LOST:
        return


def whole(answer: Refusal) -> httpx2.Response:
    """An answer that needs no upstream."""
    return httpx2.Response(answer.head.status, headers=answer.head.headers, content=answer.body)


def client_of(config: Config) -> AsyncAnthropic:
    """The SDK over another API. Its own key goes nowhere."""
    http = DefaultAsyncHttpxClient(transport=RouteTransport(config))
    return AsyncAnthropic(base_url="http://route", api_key="none", http_client=http)


async def main(base_url: str = "http://127.0.0.1:8000/v1", model: str = "default", prompt: str = "Hello!") -> None:
    """Ask once, and print the answer as it comes."""
    config = Config(upstream=base_url, api_key=os.environ.get("OPENAI_API_KEY", ""))
    async with (
        client_of(config) as client,
        client.messages.stream(model=model, max_tokens=1024, messages=[{"role": "user", "content": prompt}]) as stream,
    ):
        async for text in stream.text_stream:
            print(text, end="", flush=True)
        print(f"\n({(await stream.get_final_message()).stop_reason})")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
