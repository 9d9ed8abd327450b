"""The Chat server behind the proxy, and what its refusals mean."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from attrs import define, field

from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError, kind_of_status
from pipeline.jsontext import dumps, loads
from pipeline.limits import DEFAULT_LIMITS, Limits
from stages.dialects.chat.errors import error_in

CONNECT_SECONDS = 30.0
ERROR_BYTES = 64 * 1024
"""So much of an error's body is read."""

PASSED_ON = {"retry-after": "retry-after", "retry-after-ms": "retry-after-ms", "x-request-id": "request-id"}
"""Headers of the upstream's reply that a client gets, by the name it knows them by."""


class RefusedError(UpstreamError):
    """The upstream answered, and it is no stream. `headers` go to the client with the error."""

    def __init__(self, message: str, *, kind: ErrorKind, code: str = "", headers: Mapping[str, str]) -> None:
        super().__init__(message, kind=kind, code=code)
        self.headers = headers


@define
class Upstream:
    """One Chat server, asked over one pool of connections."""

    url: str
    session: aiohttp.ClientSession
    api_key: str = field(default="", repr=False)
    limits: Limits = DEFAULT_LIMITS

    async def ask(self, request: Mapping[str, Any]) -> aiohttp.ClientResponse:
        """The reply, when its head is there and says that a stream follows. Whoever asks closes it.

        Raises `UpstreamError`: `RefusedError` if the server answered, otherwise why it did not.
        """
        try:
            async with asyncio.timeout(self.limits.idle_seconds or None):
                reply = await self.session.post(
                    f"{self.url}/chat/completions", data=dumps(request), headers=self._headers(), allow_redirects=False
                )
                if is_stream(reply.status, reply.content_type):
                    return reply
                async with reply:
                    body = await _beginning(reply.content)
        except TimeoutError as error:
            raise UpstreamError("the upstream did not answer in time", kind=ErrorKind.TIMEOUT) from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"the upstream cannot be reached: {type(error).__name__}"
            raise UpstreamError(message, kind=ErrorKind.CUT, code="connection_failed") from error
        raise refusal(reply.status, reply.content_type, body, reply.headers)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        return {**headers, "authorization": f"Bearer {self.api_key}"} if self.api_key else headers


@asynccontextmanager
async def connections() -> AsyncIterator[aiohttp.ClientSession]:
    """A pool for any number of streams, which share no cookies and take no proxy from the environment."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"accept-encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield session


def is_stream(status: int, content_type: str) -> bool:
    """Whether what follows is for the chain: an answer that is no page for people."""
    return status == 200 and content_type != "text/html"


def refusal(status: int, content_type: str, body: bytes, headers: Mapping[str, str]) -> RefusedError:
    """An answer that is no stream, as an error. What the body names counts for more than the status."""
    kind = kind_of_status(status) if status >= 400 else ErrorKind.INVALID_RESPONSE
    message, code = f"the upstream answered with status {status}, {content_type}", ""
    if (found := error_in(_json(body))) is not None:
        message, code = found.message, found.code
        kind = kind if found.kind is ErrorKind.API else found.kind
    return RefusedError(message, kind=kind, code=code, headers=passed_on(headers))


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """What a client gets of the reply's headers."""
    return {ours: headers[theirs] for theirs, ours in PASSED_ON.items() if theirs in headers}


def _json(body: bytes) -> Any:
    try:
        return loads(body)
    except (ValueError, LimitExceeded):
        return None


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    body = b""
    while len(body) < ERROR_BYTES and (piece := await content.readany()):
        body += piece
    return body
