"""examples.gateway.compressed: compressed requests and replies, the same at every host."""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from examples.gateway.compressed import PIECE, UnknownEncoding, decoded, encoding_of, unpacked
from examples.raw_socket.connection import Connection
from pipeline.errors import ClientError, UpstreamError
from pipeline.reply import Head
from tests.test_proxy_openai import ASKED
from tests.upstreams import (
    CHAT,
    EVERY_HOST,
    REQUEST,
    SCRIPTS,
    Host,
    Script,
    Server,
    browser,
    events,
    over,
    playing,
    posted,
    refused,
    streamed,
    types,
)

pytestmark = pytest.mark.anyio


def bare(data: bytes) -> bytes:
    """What some servers take for deflate."""
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare),
]
EVERY_ENCODING = pytest.mark.parametrize(("encoding", "pack"), PACKED)


# Requests


@EVERY_ENCODING
def test_a_compressed_body_is_read_as_far_as_it_may_go(encoding: str, pack: Any) -> None:
    body = pack(b"a" * 1_000)
    assert decoded(body, encoding, 1_000) == b"a" * 1_000
    assert decoded(body, encoding, 100) == b"a" * 101
    for broken in (body[:-9], b"no gzip", b""):
        with pytest.raises(ClientError, match="cannot be read"):
            decoded(broken, encoding, 1_000)


@pytest.mark.parametrize("encoding", ["", "identity"])
def test_a_plain_body_is_itself(encoding: str) -> None:
    assert decoded(b"abc", encoding, 9) == b"abc"


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_a_body_that_is_too_large_as_it_comes_is_not_looked_at(encoding: str) -> None:
    assert decoded(b"abc", encoding, 2) == b"abc"


@pytest.mark.parametrize("encoding", ["zstd", "br", "gzip, gzip", "x" * 99])
def test_a_body_that_nobody_knows_how_to_read_is_named(encoding: str) -> None:
    with pytest.raises(UnknownEncoding) as raised:
        decoded(b"abc", encoding, 9)
    assert repr(encoding[:40]) in str(raised.value)


@pytest.mark.parametrize(
    ("headers", "encoding"),
    [({}, ""), ({"Content-Encoding": " GZIP "}, "gzip"), ({"content-type": "x", "content-encoding": "br"}, "br")],
)
def test_the_headers_say_how_a_body_is_compressed(headers: dict[str, str], encoding: str) -> None:
    assert encoding_of(headers) == encoding


@EVERY_HOST
@pytest.mark.parametrize("path", ["/messages", *ASKED])
async def test_a_request_that_nobody_knows_how_to_read_is_a_415_in_the_clients_words(host: Host, path: str) -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with over(host, server) as url, browser() as client:
        headers = {"content-encoding": "zstd"}
        reply = await client.post(f"{url}/v1{path}", content=b"(\xb5/\xfdzz", headers=headers)
        assert reply.status_code == 415
        told = reply.json()["error"]
        assert (told["type"], "'zstd'" in told["message"]) == ("invalid_request_error", True)
        assert ("param" in told) == (path != "/messages")
        assert server.asked == []
        body = gzip.compress(json.dumps(REQUEST).encode())
        async with posted(url, body, headers={"content-encoding": "GZIP"}) as answer:
            assert types(events(await answer.aread()))[-1] == "message_stop"


# Replies


class Reads:
    """What a connection brings, read by read."""

    def __init__(self, *reads: bytes) -> None:
        self.reads = [*reads]

    async def __call__(self) -> bytes:
        return self.reads.pop(0) if self.reads else b""


async def all_of(encoding: str, *reads: bytes) -> bytes:
    receive, out = unpacked(Reads(*reads), encoding), b""
    while piece := await receive():
        assert len(piece) <= PIECE
        out += piece
    return out


def begun(data: bytes) -> bytes:
    """All of a packed body but its end."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@EVERY_ENCODING
@pytest.mark.parametrize("size", [1, 2, 7, 10_000_000])
async def test_a_compressed_reply_is_unpacked_while_it_comes(encoding: str, pack: Any, size: int) -> None:
    text = b"".join(b"%d," % number for number in range(500))
    assert await all_of(encoding, *cut(pack(text), size)) == text


@pytest.mark.parametrize("size", [1, 10_000_000])
async def test_one_body_behind_the_other_is_one_body(size: int) -> None:
    assert await all_of("gzip", *cut(gzip.compress(b"ab") + gzip.compress(b"cd"), size)) == b"abcd"


@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7])
@pytest.mark.parametrize("size", [100, 10_000_000])
async def test_what_unpacks_to_very_much_comes_piece_by_piece(length: int, size: int) -> None:
    assert len(await all_of("gzip", *cut(gzip.compress(b"a" * length), size))) == length


async def test_what_has_come_is_passed_on_before_there_is_more() -> None:
    assert await unpacked(Reads(begun(CHAT.hello)), "gzip")() == CHAT.hello


@pytest.mark.parametrize("encoding", ["", "identity"])
async def test_a_plain_reply_is_read_as_it_comes(encoding: str) -> None:
    reads = Reads()
    assert unpacked(reads, encoding) is reads


@EVERY_ENCODING
async def test_a_reply_without_its_end_is_one_that_was_lost(encoding: str, pack: Any) -> None:
    with pytest.raises(anyio.BrokenResourceError):
        await all_of(encoding, pack(b"abc" * 99)[:-5])
    with pytest.raises(anyio.BrokenResourceError):
        await all_of(encoding, b"\xff\xffno")
    assert await all_of(encoding) == b""


async def test_a_reply_that_nobody_knows_how_to_read_is_named() -> None:
    with pytest.raises(UpstreamError, match="compressed as 'br', which nobody asked for"):
        unpacked(Reads(b"x"), "br")


def sending(body: bytes, encoding: str, kind: str, status: int = 200) -> Server:
    async def answer(server: Server, client: Connection) -> None:
        await client.whole(Head(status, {"content-type": kind, "content-encoding": encoding}), body)

    return Server(answer)


@EVERY_HOST
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_host_reads_an_upstream_that_compresses_unasked(host: Host, script: Script) -> None:
    stream = script.hello + script.finish
    for encoding, pack in PACKED:
        server = sending(pack(stream), encoding, "text/event-stream")
        async with over(host, server, dialect=script.dialect) as url:
            assert types(await streamed(url))[-1] == "message_stop"
            assert server.headers[0]["accept-encoding"] == "identity"
        server = sending(pack(script.whole), encoding, "application/json")
        async with (
            over(host, server, dialect=script.dialect) as url,
            posted(url, {**REQUEST, "stream": False}) as reply,
        ):
            assert json.loads(await reply.aread())["content"][0]["text"] == "Hello"
            assert "content-encoding" not in reply.headers
        refusal = sending(pack(b'{"error":{"message":"slow down"}}'), encoding, "application/json", 429)
        async with over(host, refusal, dialect=script.dialect) as url:
            assert await refused(url) == (429, {"type": "rate_limit_error", "message": "slow down"})


@EVERY_HOST
@pytest.mark.parametrize("stream", [True, False])
async def test_a_host_tells_what_it_cannot_read_of_an_upstream(host: Host, stream: bool) -> None:
    body = {**REQUEST, "stream": stream}
    async with over(host, sending(b"abcde", "br", "text/event-stream")) as url:
        status, error = await refused(url, body)
        assert (status, error["type"]) == (502, "api_error")
        assert error["message"] == "the upstream's answer is compressed as 'br', which nobody asked for"
    async with over(host, sending(b"abcde", "gzip", "text/event-stream")) as url:
        status, error = await refused(url, body)
        assert (status, error["type"]) == (502, "api_error")
    packed = begun(CHAT.hello)
    async with over(host, sending(packed, "gzip", "text/event-stream")) as url:
        if stream:
            assert types(await streamed(url, body))[-1] == "error"
        else:
            assert (await refused(url, body))[0] == 502
