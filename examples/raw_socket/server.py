"""The host itself: connections in, answers out. It moves bytes; the exchange decides what they say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream
from attrs import define, evolve

from examples.gateway.access import LOG_FAULTS, Access
from examples.gateway.config import Config, base_url
from examples.gateway.relay import Upstream, opened, relay
from examples.gateway.replay import PACE, ReplayUpstream
from examples.gateway.table import CLIENTS, Asked, Gateway
from examples.raw_socket.connection import Connection
from examples.raw_socket.upstream import SocketUpstream
from pipeline.dialect import dialect
from pipeline.drive import SOURCE_ERRORS
from pipeline.errors import ClientError
from pipeline.reply import refused
from pipeline.route import AnyChain, Exchange, Recipe
from pipeline.stage import cause_of
from stages.recipe import default_chain


@define
class RawServer:
    """Answers clients from one upstream."""

    gateway: Gateway
    upstream: Upstream

    async def serve(self, stream: SocketStream) -> None:
        """One connection. A fault of ours ends it and no other; that the client leaves is nobody's fault."""
        async with stream:
            try:
                await self._requests(Connection(stream))
            except SOURCE_ERRORS:
                return
            except Exception:  # noqa: BLE001  # it is logged; the other connections go on
                LOG_FAULTS.exception("a connection was dropped")

    async def _requests(self, connection: Connection) -> None:
        """One exchange behind the other."""
        try:
            while (request := await connection.request()) is not None:
                await self._exchange(connection, request)
                if not connection.renewed():
                    return await connection.linger()
        except h11.RemoteProtocolError as error:
            cause = cause_of(ClientError("this is no request that can be read"))
            answer = refused(self.gateway.routes[CLIENTS[0]].client, cause, error.error_status_hint)
            await connection.whole(answer.head, answer.body)
            await connection.linger()

    async def _exchange(self, connection: Connection, request: h11.Request) -> None:
        """One exchange, and a line in the log. It is cancelled when the client leaves."""
        access = Access(request.method.decode(), request.target.decode())
        try:
            exchange = await opened(self._open(connection, request), access)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, connection, tasks.cancel_scope)
                await relay(exchange, self.upstream, connection)
                tasks.cancel_scope.cancel()
        except* SOURCE_ERRORS:
            pass  # it has left
        finally:
            access.status = connection.status
            access.write()

    async def _open(self, connection: Connection, request: h11.Request) -> Exchange:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        asked = Asked(method=request.method.decode(), target=request.target.decode(), headers=headers)
        try:
            body = await connection.body(request, self.gateway.limits.request_bytes)
        except ClientError as error:
            return self.gateway.refuse(asked, cause_of(error))
        return self.gateway.open(evolve(asked, body=body))


async def _watch(connection: Connection, answering: anyio.CancelScope) -> None:
    await connection.left()
    answering.cancel()


@asynccontextmanager
async def serving(
    config: Config, *, pace: float = PACE, recipe: Recipe[AnyChain] = default_chain
) -> AsyncIterator[str]:
    """Serve until the block is left; gives the host's base URL.

    Without an upstream, the embedded one plays a frame every `pace` seconds. Raises `OSError` if the port cannot be
    had.
    """
    upstream: Upstream = ReplayUpstream(pace)
    if config.upstream:
        upstream = SocketUpstream(config.upstream, dialect(config.dialect), config.api_key, config.limits)
    listener = await anyio.create_tcp_listener(local_host=config.host, local_port=config.port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, RawServer(Gateway.of(config, recipe), upstream).serve)
        yield base_url(
            str(listener.extra(SocketAttribute.local_address)[0]), listener.extra(SocketAttribute.local_port)
        )
        tasks.cancel_scope.cancel()
