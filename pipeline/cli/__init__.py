"""The command line. Its commands are a table; each is a module of this package."""

import argparse
import sys
from collections.abc import Sequence

from pipeline.cli import answer, convert, replay, request
from pipeline.cli.options import Command, Recipe
from pipeline.errors import ClientError, PipelineError

COMMANDS: dict[str, Command] = {
    "convert": convert.COMMAND,
    "answer": answer.COMMAND,
    "request": request.COMMAND,
    "replay": replay.COMMAND,
}
"""The subcommands by name. A new one is a module and a row."""

FAILED = 4


def parser() -> argparse.ArgumentParser:
    """The parser of all commands. A flag that is not given leaves no trace in what it parses to."""
    whole = argparse.ArgumentParser(
        prog="streamweir", description="LLM API streams into one another, while they arrive."
    )
    rows = whole.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        row = rows.add_parser(
            name, help=command.help, description=f"{command.help.capitalize()}.", argument_default=argparse.SUPPRESS
        )
        command.arguments(row)
        row.set_defaults(run=command.run, usage=row)
    return whole


def main(argv: Sequence[str], *, recipe: Recipe) -> int:
    """Run one command and return its exit code.

    What cannot be asked for exits as argparse does: `SystemExit` with 2, after the usage. A fault of ours is 4.
    """
    args = parser().parse_args(argv)
    try:
        status: int = args.run(args, recipe)
    except ClientError as error:
        args.usage.error(str(error))
    except BrokenPipeError:
        raise  # the reader has left
    except (PipelineError, OSError) as error:
        print(f"streamweir: {error}", file=sys.stderr)
        return FAILED
    return status
