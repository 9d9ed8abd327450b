"""HTTP/1.1 events on a stream of bytes."""

from collections.abc import Mapping

import anyio
import h11
from anyio.abc import ByteStream
from attrs import frozen


@frozen
class Wire:
    """One side of a connection. Whoever made the stream closes it."""

    stream: ByteStream
    http: h11.Connection

    async def event(self) -> object:
        """What the other side says next.

        Raises `h11.RemoteProtocolError` for what is not HTTP, or breaks off.
        """
        while (event := self.http.next_event()) is h11.NEED_DATA:
            await self.read()
        return event

    async def read(self) -> None:
        """Read once. Nothing is lost if that is cancelled."""
        try:
            data = await self.stream.receive()
        except anyio.EndOfStream:
            data = b""
        self.http.receive_data(data)

    async def send(self, *events: h11.Event) -> None:
        """Say something, in one write."""
        if data := b"".join(self.http.send(event) or b"" for event in events):
            await self.stream.send(data)


def fields(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as they stand on the wire."""
    return [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()]
