"""The server behind the host: a connection a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar
from urllib.parse import urlsplit, urlunsplit

import anyio
import h11
from anyio.abc import ByteStream
from attrs import define, field, frozen

from examples.gateway.relay import HEAD_BYTES, UpstreamReply, url_of
from examples.raw_socket.wire import Wire, fields
from pipeline.dialect import Dialect
from pipeline.drive import SOURCE_ERRORS
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.route import UpstreamRequest

CONNECT_SECONDS = 30.0
PORTS = {"http": 80, "https": 443}

LOST: tuple[type[Exception], ...] = (*SOURCE_ERRORS, h11.RemoteProtocolError)
UNREACHED: tuple[type[Exception], ...] = (*LOST, anyio.EndOfStream)
"""What keeps a reply from beginning; a handshake that breaks off ends the stream."""


@frozen
class SocketUpstream:
    """One server."""

    lost: ClassVar[tuple[type[Exception], ...]] = LOST

    url: str
    dialect: Dialect
    api_key: str = field(default="", repr=False)
    limits: Limits = DEFAULT_LIMITS

    @asynccontextmanager
    async def ask(self, request: UpstreamRequest) -> AsyncIterator[UpstreamReply]:
        """The reply, when its head is there. It is closed when the block is left.

        Raises `UpstreamError` if none comes.
        """
        stream = None
        try:
            try:
                with anyio.fail_after(self.limits.idle_seconds or None):
                    stream = await self._connected()
                    answer = Answer(Wire(stream, h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)))
                    await answer.wire.send(self._head(request), h11.Data(data=request.body), h11.EndOfMessage())
                    head = await answer.head()
            except TimeoutError as error:
                raise UpstreamError("the upstream did not answer in time", kind=ErrorKind.TIMEOUT) from error
            except UNREACHED as error:
                message = f"the upstream cannot be reached: {type(error).__name__}"
                raise UpstreamError(message, kind=ErrorKind.CUT, code="connection_failed") from error
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
            yield UpstreamReply(head.status_code, headers, answer.receive)
        finally:
            if stream is not None:
                await anyio.aclose_forcefully(stream)

    async def _connected(self) -> ByteStream:
        parts = urlsplit(self.url)
        port = parts.port or PORTS[parts.scheme]
        with anyio.fail_after(CONNECT_SECONDS):
            if parts.scheme == "https":
                return await anyio.connect_tcp(parts.hostname or "", port, tls=True, tls_standard_compatible=False)
            return await anyio.connect_tcp(parts.hostname or "", port)

    def _head(self, request: UpstreamRequest) -> h11.Request:
        parts = urlsplit(url_of(self.url, request))
        headers = {
            "host": parts.netloc,
            "user-agent": "streamweir",
            "accept-encoding": "identity",
            "connection": "close",
            "content-length": str(len(request.body)),
            **self.dialect.headers(self.api_key),
            **request.headers,
        }
        method = "POST" if request.body else "GET"
        target = urlunsplit(("", "", parts.path, parts.query, ""))
        return h11.Request(method=method, target=target, headers=fields(headers))


@define
class Answer:
    """What comes back on a connection."""

    wire: Wire
    _ended: bool = field(init=False, default=False)

    async def head(self) -> h11.Response:
        """The head of the answer.

        Raises `h11.RemoteProtocolError` if there is none.
        """
        while not isinstance(event := await self.wire.event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the connection was closed before the answer")
        return event

    async def receive(self) -> bytes:
        """All of the body that one read brought; nothing at the end. Nothing is lost if that is cancelled.

        Raises `h11.RemoteProtocolError` if the body breaks off.
        """
        data = b""
        while not self._ended:
            try:
                event = self.wire.http.next_event()
            except h11.RemoteProtocolError:
                if data:
                    break  # it is raised again at the next call
                raise
            if isinstance(event, h11.Data):
                data += event.data
            elif event is not h11.NEED_DATA:
                self._ended = True
            elif data:
                break
            else:
                await self.wire.read()
        return data
