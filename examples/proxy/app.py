"""The proxy itself: requests in, answers out. It moves bytes; the exchange decides what they say."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from attrs import define, evolve, field

from examples.gateway.access import Access
from examples.gateway.config import Config
from examples.gateway.relay import Upstream, opened, relay
from examples.gateway.replay import PACE, ReplayUpstream
from examples.gateway.table import Asked, Gateway
from examples.proxy.listen import listening
from examples.proxy.upstream import PooledUpstream, connections
from pipeline.dialect import dialect
from pipeline.errors import ClientError
from pipeline.reply import Head
from pipeline.route import AnyChain, Exchange, Recipe
from pipeline.stage import cause_of
from stages.recipe import default_chain


@define
class Proxy:
    """Answers clients from one upstream."""

    gateway: Gateway
    upstream: Upstream

    def application(self) -> web.Application:
        """The server, for one port."""
        application = web.Application()
        application.router.add_route("*", r"/{path:[\s\S]*}", self._serve)
        return application

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """One exchange, and a line in the log."""
        access = Access(request.method, request.raw_path)
        client = Client(request)
        try:
            exchange = await opened(self._open(request), access)
            await relay(exchange, self.upstream, client)
        finally:
            access.status = client.status
            access.write()
        return client.response

    async def _open(self, request: web.Request) -> Exchange:
        """An exchange with the client's body, or enough of it to see that it is too large."""
        asked = Asked(method=request.method, target=request.raw_path, headers=request.headers)
        body = bytearray()
        most = self.gateway.limits.request_bytes
        try:
            while len(body) <= most and (piece := await request.content.readany()):
                body += piece
        except web.RequestPayloadError:
            return self.gateway.refuse(asked, cause_of(ClientError("the body cannot be read")))
        return self.gateway.open(evolve(asked, body=bytes(body)))


@define
class Client:
    """The client of one request."""

    request: web.Request
    response: web.StreamResponse = field(init=False, factory=web.StreamResponse)
    status: int = field(init=False, default=0)

    async def whole(self, head: Head, body: bytes) -> None:
        """The answer is the handler's to return; aiohttp sends it."""
        self.status = head.status
        self.response = web.Response(status=head.status, headers=head.headers, body=body)

    async def begin(self, head: Head) -> None:
        """Send the head."""
        self.response.set_status(head.status)
        self.response.headers.update(head.headers)
        await self.response.prepare(self.request)
        self.status = head.status

    async def write(self, data: bytes) -> None:
        """Send some of the body."""
        await self.response.write(data)

    async def end(self) -> None:
        """Send the end of the body."""
        await self.response.write_eof()


@asynccontextmanager
async def serving(
    config: Config, *, pace: float = PACE, recipe: Recipe[AnyChain] = default_chain
) -> AsyncIterator[str]:
    """Serve until the block is left; gives the proxy's base URL.

    Without an upstream, the embedded one plays a frame every `pace` seconds. Raises `OSError` if the port cannot be
    had.
    """
    async with AsyncExitStack() as stack:
        upstream: Upstream = ReplayUpstream(pace)
        if config.upstream:
            session = await stack.enter_async_context(connections())
            speaks = dialect(config.dialect)
            upstream = PooledUpstream(config.upstream, speaks, session, config.api_key, config.limits)
        proxy = Proxy(Gateway.of(config, recipe), upstream)
        yield await stack.enter_async_context(listening(proxy.application(), config.host, config.port))
