"""`python -m pipeline`, which is also the console script `streamweir`."""

import os
import sys
from collections.abc import Sequence
from pkgutil import resolve_name

from pipeline.cli import main as command_line

RECIPE = "stages.recipe:default_chain"
"""What makes the chains: the one thread from the framework to the stages."""

CLOSED = 141
"""What a shell says of a program whose reader left: 128 and SIGPIPE."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line as a process: with stages of the current folder, and quiet when the reader has left."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return command_line(sys.argv[1:] if argv is None else argv, recipe=resolve_name(RECIPE))
    except BrokenPipeError:
        # What is still in stdout's buffer has no reader; without this the interpreter complains of it as it exits.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return CLOSED


if __name__ == "__main__":
    sys.exit(main())
