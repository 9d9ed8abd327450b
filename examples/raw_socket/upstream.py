"""The server behind the host, asked by httpx."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import ClassVar

import anyio
import httpx
from attrs import define, field

from examples.gateway.relay import UpstreamReply
from pipeline.dialect import Dialect
from pipeline.drive import SOURCE_ERRORS
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.route import UpstreamRequest

CONNECT_SECONDS = 30.0


@define
class Upstream:
    """One server, asked over one pool of connections."""

    lost: ClassVar[tuple[type[Exception], ...]] = (*SOURCE_ERRORS, httpx.HTTPError)

    url: str
    dialect: Dialect
    client: httpx.AsyncClient
    api_key: str = field(default="", repr=False)
    limits: Limits = DEFAULT_LIMITS

    @asynccontextmanager
    async def ask(self, request: UpstreamRequest) -> AsyncIterator[UpstreamReply]:
        """The reply, when its head is there. It is closed when the block is left.

        Raises `UpstreamError` if none comes.
        """
        reply = await self._asked(request)
        try:
            yield UpstreamReply(reply.status_code, reply.headers, reply.aiter_bytes())
        finally:
            with anyio.CancelScope(shield=True):
                await reply.aclose()

    async def _asked(self, request: UpstreamRequest) -> httpx.Response:
        headers = {**request.headers, **(self.dialect.headers(self.api_key) if self.api_key else {})}
        method = "POST" if request.body else "GET"
        asked = self.client.build_request(method, f"{self.url}/{request.path}", content=request.body, headers=headers)
        try:
            with anyio.fail_after(self.limits.idle_seconds or None):
                return await self.client.send(asked, stream=True)
        except TimeoutError as error:
            raise UpstreamError("the upstream did not answer in time", kind=ErrorKind.TIMEOUT) from error
        except self.lost as error:
            message = f"the upstream cannot be reached: {type(error).__name__}"
            raise UpstreamError(message, kind=ErrorKind.CUT, code="connection_failed") from error


@asynccontextmanager
async def connections(transport: httpx.AsyncBaseTransport | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A pool for any number of streams, which share no cookies and take no proxy from the environment."""
    async with httpx.AsyncClient(
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        headers={"accept-encoding": "identity"},
        limits=httpx.Limits(max_connections=None),
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        transport=transport,
        trust_env=False,
    ) as client:
        yield client
