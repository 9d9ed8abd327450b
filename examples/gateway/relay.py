"""The way of one exchange through a host, whatever moves its bytes."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

import anyio
from attrs import frozen

from examples.gateway.access import Access
from examples.gateway.compressed import encoding_of, unpacked
from pipeline.drive import SOURCE_ERRORS, Driven, drive
from pipeline.errors import PipelineError
from pipeline.reply import Head, Refusal
from pipeline.route import Exchange, UpstreamRequest
from pipeline.stage import cause_of

HEAD_BYTES = 64 * 1024
"""How long a line in the head of an upstream's reply may be."""


class Client(Protocol):
    """Where an answer goes. One that has left is told by one of `SOURCE_ERRORS`, or by cancelling."""

    @property
    def status(self) -> int:
        """The answer's status; 0 until it has begun."""

    async def whole(self, head: Head, body: bytes) -> None:
        """Send an answer at once."""

    async def begin(self, head: Head) -> None:
        """Send the head of an answer; its body follows."""

    async def write(self, data: bytes) -> None:
        """Send some of the body."""

    async def end(self) -> None:
        """There is no more of it."""


@frozen
class UpstreamReply:
    """An upstream's reply: its head, and where its body is read from, as `drive` wants it."""

    status: int
    headers: Mapping[str, str]
    body: Callable[[], Awaitable[bytes]] | AsyncIterable[bytes]


class Upstream(Protocol):
    """A server that is asked."""

    @property
    def lost(self) -> tuple[type[Exception], ...]:
        """What reading a reply raises when the connection is lost."""

    def ask(self, request: UpstreamRequest) -> AbstractAsyncContextManager[UpstreamReply]:
        """The reply, when its head is there. It is closed when the block is left, however that happens.

        Raises `UpstreamError` if none comes.
        """


def url_of(base: str, request: UpstreamRequest) -> str:
    """Where a request goes: behind the path of the base, with the base's query and its own."""
    start, _, always = base.partition("?")
    path, _, query = request.path.partition("?")
    both = "&".join(filter(None, (always, query)))
    return f"{start}/{path}?{both}" if both else f"{start}/{path}"


async def opened(exchange: Awaitable[Exchange], access: Access) -> Exchange:
    """The exchange that a client's request begins; none if it leaves before that is there. The log is told."""
    try:
        begun = await exchange
    except (*SOURCE_ERRORS, anyio.get_cancelled_exc_class()):
        access.outcome.cancel()
        raise
    access.outcome = begun.outcome
    return begun


async def relay(exchange: Exchange, upstream: Upstream, client: Client) -> None:
    """Ask the upstream, if that is needed, and answer the client; the head goes out with the first bytes.

    Raises a `PipelineError` when the answer has begun and cannot go on: all that is left is to drop the connection.
    """
    if isinstance(exchange.request, Refusal):
        await client.whole(exchange.request.head, exchange.request.body)
        return
    driven = Driven()
    try:
        async with upstream.ask(exchange.request) as asked:
            reply = exchange.reply(asked.status, asked.headers)
            body = asked.body
            if not isinstance(body, AsyncIterable):
                body = unpacked(body, encoding_of(asked.headers))

            async def send(data: bytes) -> None:
                if not client.status and reply.head is not None:
                    await client.begin(reply.head)
                await client.write(data)

            limits = exchange.route.limits
            await drive(body, reply.chain, send, limits=limits, source_errors=upstream.lost, driven=driven)
    except PipelineError as error:
        refusal = exchange.failed(cause_of(error))
        if client.status:
            raise
        await client.whole(refusal.head, refusal.body)
        return
    except (*SOURCE_ERRORS, anyio.get_cancelled_exc_class()):
        exchange.cancel()
        raise
    finally:
        exchange.outcome.hold = driven.longest_silence
    with suppress(*SOURCE_ERRORS):  # the answer is whole; a client that has left by now has all of it
        await client.end()
