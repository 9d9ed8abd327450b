"""Compressed bodies, of clients' requests and of upstreams' replies: one way to read them for every host."""

import zlib
from collections.abc import Awaitable, Callable, Mapping

import anyio
from attrs import define, field

from pipeline.errors import ClientError, UpstreamError

IDENTITY = ("", "identity")
KNOWN = ("gzip", "x-gzip", "deflate")
PIECE = 1024 * 1024
"""So much is unpacked of a reply at once; a little may unpack to very much."""
SHOWN = 40
"""So many characters are shown of an encoding that nobody knows."""

Receive = Callable[[], Awaitable[bytes]]


class UnknownEncoding(ClientError):
    """The body is compressed in a way that nobody here knows."""


def inflating(encoding: str, first: bytes) -> "zlib._Decompress":
    """What unpacks a body that begins so. Some servers' `deflate` lacks the wrapper that it must have."""
    bare = encoding == "deflate" and bool(first) and first[0] & 0x0F != zlib.DEFLATED
    return zlib.decompressobj(wbits=-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)  # else by its header


def decoded(body: bytes, encoding: str, most: int) -> bytes:
    """A client's body as it was, or enough of it to see that it has more than `most` bytes.

    Raises `ClientError` if it is broken, `UnknownEncoding` if nobody knows how to read it.
    """
    if encoding in IDENTITY or len(body) > most:
        return body
    if encoding not in KNOWN:
        raise UnknownEncoding(f"a body compressed as {encoding[:SHOWN]!r} is not read; send it as it is, or as gzip")
    inflate = inflating(encoding, body)
    try:
        plain = inflate.decompress(body, most + 1)
    except zlib.error as error:
        raise ClientError("the body cannot be read") from error
    if not inflate.eof and len(plain) <= most:
        raise ClientError("the body cannot be read")
    return plain


def encoding_of(headers: Mapping[str, str]) -> str:
    """How a body is compressed, by the headers before it."""
    return next((value.strip().lower() for name, value in headers.items() if name.lower() == "content-encoding"), "")


def unpacked(receive: Receive, encoding: str) -> Receive:
    """A reply's body as it was, if it came compressed though nobody asked for that.

    Raises `UpstreamError` if nobody knows how.
    """
    if encoding in IDENTITY:
        return receive
    if encoding not in KNOWN:
        raise UpstreamError(f"the upstream's answer is compressed as {encoding[:SHOWN]!r}, which nobody asked for")
    return Unpacked(receive, encoding).receive


@define
class Unpacked:
    """A body that is unpacked while it comes. One that lacks its end, or is broken, is a connection that was lost."""

    packed: Receive
    encoding: str
    _inflate: "zlib._Decompress | None" = field(init=False, default=None)

    async def receive(self) -> bytes:
        """More of it; nothing at the end. Nothing is lost if that is cancelled.

        Raises `anyio.BrokenResourceError` if it breaks off.
        """
        while not (plain := self._rest()) and (data := await self.packed()):
            if plain := self._plain(data):
                break
        if not plain and self._inflate is not None and not self._inflate.eof:
            raise anyio.BrokenResourceError
        return plain

    def _rest(self) -> bytes:
        """What can be said without reading more: the last piece may have been as large as one may be."""
        inflate = self._inflate
        if inflate is None or (inflate.eof and not inflate.unused_data):
            return b""
        return self._plain(inflate.unused_data if inflate.eof else inflate.unconsumed_tail)

    def _plain(self, data: bytes) -> bytes:
        if self._inflate is None or self._inflate.eof:
            self._inflate = inflating(self.encoding, data)  # it begins, or another one stands behind the first
        try:
            return self._inflate.decompress(data, PIECE)
        except zlib.error as error:
            raise anyio.BrokenResourceError from error
