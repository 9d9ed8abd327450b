"""A host from its command line to its end."""

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio

from examples.gateway.config import Config


async def serve(config: Config, serving: Callable[[Config], AbstractAsyncContextManager[str]]) -> int:
    """Serve until interrupted; 1 if the port cannot be had."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with serving(config) as url:
                upstream = config.upstream.partition("?")[0]  # a query may hold a key
                print(f"{url} over {upstream or 'the embedded replay'}", flush=True)
                await anext(signals)
        except OSError as error:
            print(f"cannot listen on {config.host}:{config.port}: {error.strerror}", file=sys.stderr)
            return 1
    return 0


def log() -> None:
    """Write the log to the standard error."""
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("streamweir").setLevel(logging.INFO)
