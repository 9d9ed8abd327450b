"""`python -m examples.proxy`: serve until interrupted."""

import sys
from collections.abc import Sequence

import anyio

from examples.gateway.config import parser, read
from examples.gateway.run import log, serve
from examples.proxy.app import serving


def main(argv: Sequence[str] | None = None) -> int:
    """Read the flags and serve."""
    config = read(parser("python -m examples.proxy"), sys.argv[1:] if argv is None else argv)
    log()
    return anyio.run(serve, config, serving)


if __name__ == "__main__":
    sys.exit(main())
