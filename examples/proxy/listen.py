"""An aiohttp application on a port of this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from examples.gateway.access import LOG_FAULTS
from examples.gateway.config import base_url

SHUTDOWN_SECONDS = 1.0
"""How long open answers may go on when the server closes."""


@asynccontextmanager
async def listening(application: web.Application, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve until the block is left; gives the base URL. Port 0: a free one.

    A handler whose client has left is cancelled at once. Raises `OSError` if the port cannot be had.
    """
    runner = web.AppRunner(
        application,
        access_log=None,
        auto_decompress=False,
        handler_cancellation=True,
        logger=LOG_FAULTS,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield base_url(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()
