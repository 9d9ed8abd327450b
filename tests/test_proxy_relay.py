"""examples.gateway.relay and access: how an exchange ends when the client leaves, and what the log says of it."""

import logging
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute
from attrs import define, field

from examples.gateway.access import Access
from examples.gateway.relay import UpstreamReply, opened, relay
from pipeline.errors import ErrorKind
from pipeline.events import StreamError
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Head
from pipeline.route import Exchange, UpstreamRequest
from tests.exchange import opened as begun
from tests.upstreams import CHAT, EVERY_HOST, Host, over, pausing, playing, streamed, types

pytestmark = pytest.mark.anyio
LOG = "streamweir.access"
EVERY_LOOP = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@define
class Answering:
    """An upstream whose reply begins and then waits; whether it was closed."""

    lost: tuple[type[Exception], ...] = (OSError,)
    asked: anyio.Event = field(factory=anyio.Event)
    frames: list[bytes] = field(factory=lambda: [CHAT.hello])
    closed: bool = False

    @asynccontextmanager
    async def ask(self, request: UpstreamRequest) -> AsyncIterator[UpstreamReply]:
        try:
            yield UpstreamReply(200, {}, self._receive)
        finally:
            self.closed = True

    async def _receive(self) -> bytes:
        if self.frames:
            return self.frames.pop()
        self.asked.set()
        await anyio.sleep_forever()
        raise AssertionError


@define
class Leaving:
    """A client to which nothing can be written, or, without an error, one that reads."""

    error: Exception | None = None
    status: int = 0

    async def whole(self, head: Head, body: bytes) -> None:
        self.status = head.status

    async def begin(self, head: Head) -> None:
        self.status = head.status

    async def write(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error

    async def end(self) -> None:
        raise AssertionError


@EVERY_LOOP
@pytest.mark.parametrize(
    "error", [anyio.BrokenResourceError(), anyio.ClosedResourceError(), ConnectionResetError("gone")], ids=repr
)
async def test_an_exchange_whose_client_cannot_be_written_to_is_cancelled_and_its_upstream_closed(
    error: Exception,
) -> None:
    upstream, exchange = Answering(), begun()
    with pytest.raises(type(error)):
        await relay(exchange, upstream, Leaving(error))
    assert (exchange.outcome.verdict, exchange.outcome.error) == (Verdict.CANCELLED, None)
    assert upstream.closed


@define
class Reading(Leaving):
    """A client that reads all, and leaves before it is told that this was all."""

    async def write(self, data: bytes) -> None:
        pass

    async def end(self) -> None:
        raise self.error or AssertionError


@EVERY_LOOP
@pytest.mark.parametrize("error", [anyio.BrokenResourceError(), ConnectionResetError("gone")], ids=repr)
async def test_a_client_that_leaves_behind_the_end_of_its_answer_has_all_of_it(error: Exception) -> None:
    exchange = begun()
    await relay(exchange, Answering(frames=[b"", CHAT.finish, CHAT.hello]), Reading(error))
    assert exchange.outcome.verdict is Verdict.COMPLETE


@EVERY_LOOP
async def test_an_exchange_that_is_cancelled_says_so_and_its_upstream_is_closed() -> None:
    upstream, exchange = Answering(), begun()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay, exchange, upstream, Leaving())
        with anyio.fail_after(10):
            await upstream.asked.wait()
        assert exchange.outcome.verdict is None
        tasks.cancel_scope.cancel()
    assert exchange.outcome.verdict is Verdict.CANCELLED
    assert upstream.closed


@EVERY_LOOP
async def test_a_request_that_never_comes_whole_is_cancelled() -> None:
    async def broken() -> Exchange:
        raise anyio.BrokenResourceError

    async def waiting() -> Exchange:
        await anyio.sleep_forever()
        raise AssertionError

    async def faulty() -> Exchange:
        raise KeyError

    access = Access("POST", "/")
    with pytest.raises(anyio.BrokenResourceError):
        await opened(broken(), access)
    assert access.outcome.verdict is Verdict.CANCELLED
    access = Access("POST", "/")
    with anyio.move_on_after(0):
        await opened(waiting(), access)
    assert access.outcome.verdict is Verdict.CANCELLED
    access = Access("POST", "/")
    with pytest.raises(KeyError):
        await opened(faulty(), access)
    assert access.outcome.verdict is None


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Outcome(), "-"),
        (Outcome(Verdict.CANCELLED), "cancelled"),
        (Outcome(Verdict.COMPLETE), "complete"),
        (Outcome(Verdict.FAILED, error=StreamError(ErrorKind.QUOTA, "SECRET")), "failed:quota"),
    ],
)
def test_the_log_says_how_it_ended_and_nothing_that_it_does_not_know(
    outcome: Outcome, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOG)
    Access("POST", "/v1/messages?key=SECRET", 200, outcome).write()
    (line,) = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(rf"POST /v1/messages 200 {word} - \d\.\d{{3}}s", line)


@EVERY_HOST
async def test_a_client_that_resets_its_connection_in_the_middle_is_cancelled_and_its_upstream_closed(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOG)
    server = pausing(CHAT.hello)
    body = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
    async with over(host, server) as url:
        async with await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
            await stream.send(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            )
            received = b""
            while b"Hello" not in received:
                received += await stream.receive()
            raw: socket.socket = stream.extra(SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
        with anyio.fail_after(10):
            await server.left.wait()
    assert [record.getMessage().split()[2:4] for record in caplog.records if record.name == LOG] == [
        ["200", "cancelled"]
    ]


@EVERY_HOST
async def test_a_client_that_breaks_off_its_request_is_told_from_a_fault_of_ours(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOG)
    async with over(host, playing(CHAT.hello, CHAT.finish)) as url:
        async with await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
            await stream.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
        assert types(await streamed(url))[-1] == "message_stop"
    words = {record.getMessage().split()[3] for record in caplog.records if record.name == LOG}
    assert words - {"complete"} <= {"cancelled", "failed:invalid_request"}
    assert "complete" in words
