"""`python -m examples.raw_socket`: serve until interrupted."""

import sys
from collections.abc import Sequence

import anyio

from examples.gateway.config import parser, read
from examples.gateway.run import log, serve
from examples.raw_socket.server import serving


def main(argv: Sequence[str] | None = None) -> int:
    """Read the flags and serve."""
    argv = sys.argv[1:] if argv is None else argv
    flags = parser("python -m examples.raw_socket")
    flags.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="default asyncio")
    config = read(flags, argv)
    log()
    return anyio.run(serve, config, serving, backend=flags.parse_args(argv).backend)


if __name__ == "__main__":
    sys.exit(main())
