"""One client's connection: its requests, one behind the other, and what is written for them."""

import anyio
import h11
from anyio.abc import ByteStream
from attrs import define, field

from examples.raw_socket.wire import Wire, fields
from pipeline.errors import ClientError
from pipeline.reply import Head

KEEP_ALIVE_SECONDS = 75.0
"""How long a client may take to send the head of its next request."""
BODY_SECONDS = 75.0
"""How long a client may take to send more of a body."""
LINGER_SECONDS = 1.0
"""How long is read what a client still sends when it has been answered, so that it sees the answer."""
PIPELINED_BYTES = 4 * 1024 * 1024
"""So much may a client send of further requests while one is answered. Behind more it could not be seen to leave."""


@define
class Connection:
    """A client on a stream of bytes. Whoever made the stream closes it."""

    stream: ByteStream
    status: int = field(init=False, default=0)
    """Of the answer to the present request; 0 until it has begun."""
    _wire: Wire = field(init=False)
    _bodiless: bool = field(init=False, default=False)
    """The present request is a HEAD: its answer has no body."""

    def __attrs_post_init__(self) -> None:
        self._wire = Wire(self.stream, h11.Connection(h11.SERVER))

    async def request(self) -> h11.Request | None:
        """The next request; None if there is none.

        Raises `h11.RemoteProtocolError` for what is no request.
        """
        self.status = 0
        with anyio.move_on_after(KEEP_ALIVE_SECONDS):
            event = await self._wire.event()
            if isinstance(event, h11.Request):
                self._bodiless = event.method == b"HEAD"
                return event
        return None

    async def body(self, request: h11.Request, most: int) -> bytes:
        """Its body, or enough of it to see that it has more than `most` bytes.

        Raises `ClientError` if it cannot be read.
        """
        if self._wire.http.they_are_waiting_for_100_continue:
            await self._wire.send(h11.InformationalResponse(status_code=100, headers=[]))
        body = bytearray()
        try:
            while len(body) <= most:
                with anyio.fail_after(BODY_SECONDS):
                    event = await self._wire.event()
                if not isinstance(event, h11.Data):
                    break
                body += event.data
        except TimeoutError as error:
            raise ClientError("the body did not come in time") from error
        except h11.RemoteProtocolError as error:
            raise ClientError("the body cannot be read") from error
        return bytes(body)

    async def whole(self, head: Head, body: bytes) -> None:
        """Send an answer at once."""
        headers = fields({**head.headers, "content-length": str(len(body))})
        content = () if self._bodiless else (h11.Data(data=body),)
        await self._wire.send(h11.Response(status_code=head.status, headers=headers), *content, h11.EndOfMessage())
        self.status = head.status

    async def begin(self, head: Head) -> None:
        """Send the head of an answer."""
        await self._wire.send(h11.Response(status_code=head.status, headers=fields(head.headers)))
        self.status = head.status

    async def write(self, data: bytes) -> None:
        """Send some of the body."""
        await self._wire.send(h11.Data(data=data))

    async def end(self) -> None:
        """Send the end of the body."""
        await self._wire.send(h11.EndOfMessage())

    def renewed(self) -> bool:
        """Whether the client may send another request."""
        http = self._wire.http
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
            return True
        return False

    async def left(self) -> None:
        """Wait until the client leaves. What it sends meanwhile belongs to its next request.

        One that sends more than `PIPELINED_BYTES` of that has to leave. One that closes its side alone and goes on
        reading (`nc -N`) has left too: TCP tells both in the same way, and an upstream that nobody reads costs more.
        """
        ahead = len(self._wire.http.trailing_data[0])
        try:
            while ahead <= PIPELINED_BYTES:
                data = await self.stream.receive()
                self._wire.http.receive_data(data)
                ahead += len(data)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def linger(self) -> None:
        """Let the client read to the end of the last answer."""
        with anyio.move_on_after(LINGER_SECONDS):
            await self.stream.send_eof()
            async for _ in self.stream:
                pass
