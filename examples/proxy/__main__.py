"""`python -m examples.proxy`: serve until interrupted."""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence

import anyio

from examples.proxy.app import serving
from examples.proxy.config import Config, read


async def serve(config: Config) -> int:
    """Serve; 1 if the port cannot be had."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with serving(config) as url:
                print(f"{url} over {config.upstream or 'the embedded replay'}", flush=True)
                await anext(signals)
        except OSError as error:
            print(f"cannot listen on {config.host}:{config.port}: {error.strerror}", file=sys.stderr)
            return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Read the flags and serve."""
    config = read(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("streamweir").setLevel(logging.INFO)
    return asyncio.run(serve(config))


if __name__ == "__main__":
    sys.exit(main())
