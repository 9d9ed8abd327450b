"""HTTP/1.1 on the plain socket, from both sides: what the example host reads and writes there."""

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import h11
import pytest
from anyio.abc import SocketStream
from attrs import evolve

from examples.gateway.config import Config
from examples.gateway.relay import UpstreamReply
from examples.raw_socket import connection
from examples.raw_socket.server import serving
from examples.raw_socket.upstream import SocketUpstream
from pipeline.dialect import dialect
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.limits import DEFAULT_LIMITS
from pipeline.route import UpstreamRequest
from tests.upstreams import CHAT, REQUEST, Server, listening, never, over, pausing, playing, refusing

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
OK = b'{"status":"ok"}'
ASKED = UpstreamRequest("chat/completions", {"accept": "*/*"}, b"{}")


def post(body: bytes, *headers: bytes, path: bytes = b"/v1/messages") -> bytes:
    """A request with that body."""
    lines = [b"POST %s HTTP/1.1" % path, b"host: localhost", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[SocketStream]:
    with anyio.fail_after(20):
        async with await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
            yield stream


async def rest(stream: SocketStream) -> bytes:
    """All that comes until the host closes."""
    return b"".join([piece async for piece in stream])


async def until(end: bytes, stream: SocketStream) -> bytes:
    """What comes, until it ends so."""
    received = b""
    while not received.endswith(end):
        received += await stream.receive()
    return received


# The client's side


async def test_a_connection_serves_one_request_behind_the_other() -> None:
    async with serving(Config(port=0)) as url, connected(url) as stream:
        for _ in range(3):
            await stream.send(HEALTH)
            answer = await until(OK, stream)
            assert answer.startswith(b"HTTP/1.1 200 \r\n")
            assert b"content-length: 15\r\n" in answer
        await stream.send(HEALTH[:-2] + b"connection: close\r\n\r\n")
        assert (await rest(stream)).endswith(OK)


async def test_requests_that_come_together_are_answered_in_order() -> None:
    async with over(serving, playing(CHAT.hello, CHAT.finish)) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode()) + HEALTH + HEALTH)
        received = await until(OK, stream)
        while received.count(OK) < 2:
            received += await until(OK, stream)
    assert received.index(b"message_stop") < received.index(OK)


async def test_a_client_may_send_its_next_request_while_it_is_answered() -> None:
    server = pausing(CHAT.hello)
    async with over(serving, server) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode()))
        await server.reached.wait()
        await stream.send(HEALTH)
        server.go_on.set()
        received = await until(OK, stream)
    assert b"message_stop" in received


async def test_what_a_client_sends_ahead_waits_and_is_not_lost() -> None:
    server = pausing(CHAT.hello)
    async with over(serving, server) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode()))
        await server.reached.wait()
        large = post(b" " * 200_000)
        await stream.send(large + HEALTH)
        server.go_on.set()
        received = await until(OK, stream)
    assert b"message_stop" in received
    assert b"HTTP/1.1 400 " in received


async def test_a_client_that_sends_too_much_ahead_has_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    server = pausing(CHAT.hello)
    async with over(serving, server) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode()))
        await server.reached.wait()
        monkeypatch.setattr(connection, "PIPELINED_BYTES", 1_000)
        await stream.send(HEALTH * (2_000 // len(HEALTH)))
        await server.left.wait()
        with contextlib.suppress(anyio.BrokenResourceError):
            assert OK not in await rest(stream)


async def test_a_client_that_leaves_behind_what_it_sent_ahead_closes_the_upstream() -> None:
    server = pausing(CHAT.hello)
    async with over(serving, server) as url:
        async with connected(url) as stream:
            await stream.send(post(json.dumps(REQUEST).encode()))
            await server.reached.wait()
            await stream.send(post(b" " * 200_000))
        with anyio.fail_after(20):
            await server.left.wait()


@pytest.mark.parametrize("cut", [-1, -40])
async def test_a_body_that_does_not_come_is_not_waited_for_without_end(
    cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.05)
    async with serving(Config(port=0)) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode())[:cut])
        received = await rest(stream)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["message"] == "the body did not come in time"


async def test_a_client_that_closes_its_side_has_left() -> None:
    server = pausing(CHAT.hello)
    async with over(serving, server) as url, connected(url) as stream:
        await stream.send(post(json.dumps(REQUEST).encode()))
        await server.reached.wait()
        await stream.send_eof()
        await server.left.wait()


async def test_a_client_that_asks_before_it_sends_its_body_is_told_to_go_on() -> None:
    body = json.dumps(REQUEST).encode()
    head, _, _ = post(body, b"expect: 100-continue").partition(body)
    async with over(serving, playing(CHAT.hello, CHAT.finish)) as url, connected(url) as stream:
        await stream.send(head)
        assert (await until(b"\r\n\r\n", stream)).startswith(b"HTTP/1.1 100 ")
        await stream.send(body)
        assert b"message_stop" in await until(b"0\r\n\r\n", stream)


async def test_a_body_may_come_in_chunks() -> None:
    body = json.dumps(REQUEST).encode()
    async with over(serving, playing(CHAT.hello, CHAT.finish)) as url, connected(url) as stream:
        await stream.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (body[:9], body[9:], b""):
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        assert b"message_stop" in await until(b"0\r\n\r\n", stream)


async def test_a_client_of_http_1_0_reads_until_the_connection_is_closed() -> None:
    body = json.dumps(REQUEST).encode()
    async with over(serving, playing(CHAT.hello, CHAT.finish)) as url, connected(url) as stream:
        await stream.send(post(body).replace(b"HTTP/1.1", b"HTTP/1.0"))
        received = await rest(stream)
    assert b"chunked" not in received
    assert b"message_stop" in received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\na: " + b"a" * 100_000, b"431"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: a\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", b"400"),
    ],
)
async def test_what_is_no_request_is_told_in_the_messages_shape(sent: bytes, status: bytes) -> None:
    async with serving(Config(port=0)) as url:
        async with connected(url) as stream:
            await stream.send(sent)
            received = await rest(stream)
        async with connected(url) as stream:
            await stream.send(HEALTH)
            assert (await until(OK, stream)).startswith(b"HTTP/1.1 200 ")
    assert received.startswith(b"HTTP/1.1 %s " % status)
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


async def test_a_body_that_is_too_large_is_refused_before_it_has_come() -> None:
    config = Config(port=0, limits=evolve(DEFAULT_LIMITS, request_bytes=1_000))
    async with serving(config) as url, connected(url) as stream:
        await stream.send(post(b" " * 100_000)[:50_000])
        received = await rest(stream)
    assert received.startswith(b"HTTP/1.1 413 ")


async def test_a_client_that_says_nothing_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE_SECONDS", 0.05)
    async with serving(Config(port=0)) as url, connected(url) as stream:
        await stream.send(HEALTH[:10])
        assert await rest(stream) == b""


# The upstream's side


def upstream(url: str, idle_seconds: float = 300) -> SocketUpstream:
    return SocketUpstream(url, dialect("chat"), "key", evolve(DEFAULT_LIMITS, idle_seconds=idle_seconds))


async def everything(reply: UpstreamReply) -> bytes:
    assert callable(reply.body)
    body = b""
    while piece := await reply.body():
        body += piece
    return body


async def test_an_upstream_is_asked_and_its_reply_read_to_the_end() -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with listening(server) as url, upstream(url).ask(ASKED) as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
        assert await everything(reply) == CHAT.hello + CHAT.finish
        assert await everything(reply) == b""
    assert server.targets == [f"POST {CHAT.path}"]
    assert server.headers[0]["authorization"] == "Bearer key"
    assert server.headers[0]["connection"] == "close"
    assert server.headers[0]["host"] in url


async def test_a_request_without_a_body_is_a_get() -> None:
    server = refusing(200, "{}")
    async with listening(server) as url, upstream(url).ask(UpstreamRequest("models", {}, b"")) as reply:
        assert await everything(reply) == b"{}"
    assert server.targets == ["GET /v1/models"]


async def test_a_wait_for_the_body_may_be_cancelled_and_taken_up_again() -> None:
    server = pausing(CHAT.hello)
    async with listening(server) as url, upstream(url).ask(ASKED) as reply:
        assert callable(reply.body)
        body = b""
        while body != CHAT.hello:
            body += await reply.body()
        with anyio.move_on_after(0.05) as waiting:
            await reply.body()
        assert waiting.cancelled_caught
        server.go_on.set()
        assert await everything(reply) == CHAT.finish


async def test_an_upstream_may_answer_before_it_answers() -> None:
    async def early(server: Server, client: Any) -> None:
        await client.stream.send(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async with listening(Server(early)) as url, upstream(url).ask(ASKED) as reply:
        assert (reply.status, await everything(reply)) == (200, b"ok")


async def test_what_came_before_a_break_is_read_before_the_break_is_raised() -> None:
    async def broken(server: Server, client: Any) -> None:
        await client.stream.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nno size\r\n")

    async with listening(Server(broken)) as url, upstream(url).ask(ASKED) as reply:
        assert callable(reply.body)
        body = b""
        while body != b"ok":
            body += await reply.body()
        for _ in range(2):
            with pytest.raises(h11.RemoteProtocolError):
                await reply.body()


async def test_an_upstream_that_does_not_answer_in_time_is_left() -> None:
    server = Server(never)
    async with listening(server) as url:
        with pytest.raises(UpstreamError) as caught:
            async with upstream(url, idle_seconds=0.5).ask(ASKED):
                raise AssertionError
        with anyio.fail_after(10):
            await server.left.wait()
    assert caught.value.kind is ErrorKind.TIMEOUT


async def test_an_upstream_that_shows_no_certificate_is_not_asked() -> None:
    server = playing(CHAT.hello)
    async with listening(server) as url:
        with pytest.raises(UpstreamError) as caught:
            async with upstream(url.replace("http:", "https:")).ask(ASKED):
                raise AssertionError
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CUT, "connection_failed")
    assert server.asked == []
