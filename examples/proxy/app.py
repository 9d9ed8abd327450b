"""The proxy itself: requests in, streams out. It moves bytes; the chain decides what they say."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import aiohttp
from aiohttp import web
from attrs import define, field

from examples.proxy import ask
from examples.proxy.access import Access
from examples.proxy.config import Config
from examples.proxy.listen import listening
from examples.proxy.replay import ReplayUpstream
from examples.proxy.upstream import RefusedError, Upstream, connections, passed_on
from pipeline.dialect import Dialect, RequestFacts, dialect
from pipeline.drive import SOURCE_ERRORS, drive
from pipeline.errors import ClientError, ErrorKind, PipelineError
from pipeline.jsontext import dumps
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome, Verdict
from pipeline.stage import Stage, cause_of
from stages.dialects.messages.errors import error_body
from stages.recipe import default_chain

LOST = (*SOURCE_ERRORS, aiohttp.ClientError)
"""What a reply raises when its connection is lost."""

STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class Recipe(Protocol):
    """Makes the chain of one answer."""

    def __call__(
        self, upstream: Dialect, client: Dialect, /, *, facts: RequestFacts, limits: Limits, outcome: Outcome
    ) -> Stage[bytes, bytes]:
        """Fresh stages."""


@define
class Proxy:
    """Answers Messages clients from a Chat upstream."""

    upstream: Upstream
    limits: Limits = DEFAULT_LIMITS
    recipe: Recipe = default_chain
    _chat: Dialect = field(factory=lambda: dialect("chat"), init=False)
    _messages: Dialect = field(factory=lambda: dialect("messages"), init=False)

    def application(self) -> web.Application:
        """The server, for one port."""
        application = web.Application(client_max_size=self.limits.request_bytes)
        application.router.add_route("*", r"/{path:[\s\S]*}", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """One exchange: an answer, or an error in the client's dialect, and a line in the log."""
        access = Access()
        try:
            return await self._route(request, access)
        except PipelineError as error:
            access.outcome.verdict = Verdict.FAILED
            if access.status:
                raise  # the answer has begun: all that is left is to drop the connection
            access.status = error.status
            return refused(error)
        finally:
            access.write(request)

    async def _route(self, request: web.Request, access: Access) -> web.StreamResponse:
        route = ROUTES.get((request.method, request.path))
        if route is None:
            raise ClientError(f"there is no {request.method} {request.path}", kind=ErrorKind.NOT_FOUND)
        return await route(self, request, access)

    async def _healthz(self, request: web.Request, access: Access) -> web.StreamResponse:
        access.status, access.outcome.verdict = 200, Verdict.COMPLETE
        return web.json_response({"status": "ok"})

    async def _stream(self, request: web.Request, access: Access) -> web.StreamResponse:
        """A streamed answer. The upstream is closed when it ends, and when the client leaves."""
        asked = ask.parse(await _body(request), self.limits)
        facts = self._messages.facts(asked)
        reply = await self.upstream.ask(ask.chat_request(asked))
        try:
            response = web.StreamResponse(headers={**STREAM, **passed_on(reply.headers)})
            await response.prepare(request)
            access.status = response.status
            chain = self.recipe(self._chat, self._messages, facts=facts, limits=self.limits, outcome=access.outcome)
            await drive(reply.content.readany, chain, response.write, limits=self.limits, source_errors=LOST)
            await response.write_eof()
        finally:
            reply.close()
        return response


ROUTES: dict[tuple[str, str], Callable[[Proxy, web.Request, Access], Awaitable[web.StreamResponse]]] = {
    ("GET", "/healthz"): Proxy._healthz,
    ("HEAD", "/healthz"): Proxy._healthz,
    ("POST", "/v1/messages"): Proxy._stream,
}


@asynccontextmanager
async def serving(
    config: Config, *, replay: ReplayUpstream | None = None, recipe: Recipe = default_chain
) -> AsyncIterator[str]:
    """Serve until the block is left; gives the proxy's base URL.

    Without an upstream, `replay` is it. Raises `OSError` if the port cannot be had.
    """
    async with AsyncExitStack() as stack:
        url = config.upstream
        if not url:
            embedded = ReplayUpstream() if replay is None else replay
            url = f"{await stack.enter_async_context(listening(embedded.application()))}/v1"
        session = await stack.enter_async_context(connections())
        upstream = Upstream(url, session, config.api_key, config.limits)
        proxy = Proxy(upstream, config.limits, recipe)
        yield await stack.enter_async_context(listening(proxy.application(), config.host, config.port))


def refused(error: PipelineError) -> web.Response:
    """An error as an HTTP answer in the client's dialect."""
    return web.Response(
        status=error.status,
        body=dumps(error_body(cause_of(error))),
        content_type="application/json",
        headers=error.headers if isinstance(error, RefusedError) else None,
    )


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"the request is larger than {request.client_max_size} bytes"
        raise ClientError(message, kind=ErrorKind.REQUEST_TOO_LARGE) from error
    except web.RequestPayloadError as error:
        raise ClientError("the body cannot be read") from error
