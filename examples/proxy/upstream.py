"""The server behind the proxy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import aiohttp
from attrs import define, field
from yarl import URL

from examples.gateway.relay import HEAD_BYTES, UpstreamReply, url_of
from pipeline.dialect import Dialect
from pipeline.drive import SOURCE_ERRORS
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.route import UpstreamRequest

CONNECT_SECONDS = 30.0


@define
class PooledUpstream:
    """One server, asked over one pool of connections."""

    lost: ClassVar[tuple[type[Exception], ...]] = (*SOURCE_ERRORS, aiohttp.ClientError)

    url: str
    dialect: Dialect
    session: aiohttp.ClientSession
    api_key: str = field(default="", repr=False)
    limits: Limits = DEFAULT_LIMITS

    @asynccontextmanager
    async def ask(self, request: UpstreamRequest) -> AsyncIterator[UpstreamReply]:
        """The reply, when its head is there. It is closed when the block is left.

        Raises `UpstreamError` if none comes.
        """
        reply = await self._asked(request)
        try:
            yield UpstreamReply(reply.status, reply.headers, reply.content.readany)
        finally:
            reply.close()

    async def _asked(self, request: UpstreamRequest) -> aiohttp.ClientResponse:
        headers = {**self.dialect.headers(self.api_key), **request.headers}
        method = "POST" if request.body else "GET"
        try:
            async with asyncio.timeout(self.limits.idle_seconds or None):
                url = URL(url_of(self.url, request), encoded=True)  # else its query is quoted anew
                return await self.session.request(
                    method, url, data=request.body, headers=headers, allow_redirects=False
                )
        except TimeoutError as error:
            raise UpstreamError("the upstream did not answer in time", kind=ErrorKind.TIMEOUT) from error
        except self.lost as error:
            message = f"the upstream cannot be reached: {type(error).__name__}"
            raise UpstreamError(message, kind=ErrorKind.CUT, code="connection_failed") from error


@asynccontextmanager
async def connections() -> AsyncIterator[aiohttp.ClientSession]:
    """A pool for any number of streams, which share no cookies and take no proxy from the environment."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"accept-encoding": "identity"},
        auto_decompress=False,
        max_line_size=HEAD_BYTES,
        max_field_size=HEAD_BYTES,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield session
