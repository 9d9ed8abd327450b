"""An aiohttp application on a port of this machine."""

import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

SHUTDOWN_SECONDS = 1.0
"""How long open answers may go on when the server closes."""

LOG = logging.getLogger("streamweir.proxy.http")


@asynccontextmanager
async def listening(application: web.Application, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve until the block is left; gives the base URL. Port 0: a free one.

    A handler whose client has left is cancelled at once. Raises `OSError` if the port cannot be had.
    """
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,
        logger=LOG,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield base_url(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


def base_url(host: str, port: int) -> str:
    """The address as a client writes it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def without_values(record: logging.LogRecord) -> bool:
    """Leave where an exception was raised and its class, but not its message, which may hold a header or a body."""
    if record.exc_info and record.exc_info[0] is not None:
        kind, _, trace = record.exc_info
        record.exc_text = "".join((*traceback.format_tb(trace), kind.__name__))
        record.exc_info = None
    return True


LOG.addFilter(without_values)
