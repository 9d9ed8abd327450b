"""`replay`: a recording through one stage, as a transcript of what went in and what came out."""

import argparse
import ast
import difflib
import inspect
import sys
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

import anyio

from pipeline.cli.options import Command, Recipe, add_chunk, chunk_of, contents, opened
from pipeline.errors import ClientError
from pipeline.stage import AsyncStage, Stage
from pipeline.testing import areplay
from pipeline.testing import replay as transcript

AnyStage = Stage[Any, Any] | AsyncStage[Any, Any]


def stage_of(spec: str) -> AnyStage:
    """The stage that `module:Name(args)` names; `module:Name` is called without arguments.

    What is called may be a class, a function or an attribute of either; a stage that is there already is taken as it
    is. Arguments are literals. Raises `ClientError` naming a spec that names no stage.
    """
    module, colon, expression = spec.partition(":")
    if not colon:
        raise ClientError(f"the stage {spec!r} is not to be had as module:Name(args): there is no colon")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
        args = [ast.literal_eval(arg) for arg in call.args]
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        found = resolve_name(f"{module}:{ast.unparse(call.func)}")
        if call is not tree and isinstance(found, Stage | AsyncStage):
            return found
        inspect.signature(found).bind(*args, **kwargs)
        stage = found(*args, **kwargs)
    except (Exception, SystemExit) as error:  # whatever a module, or what it names, may raise
        raise ClientError(f"the stage {spec!r} is not to be had as module:Name(args): {error!r}") from error
    if not isinstance(stage, Stage | AsyncStage):
        raise ClientError(f"{spec!r} makes a {type(stage).__name__}, which is no stage")
    return stage


def replayed(data: bytes, stage: AnyStage, after: Sequence[AnyStage], chunk: object) -> str:
    """The transcript of a recording, through sync stages or through some that await."""
    size = chunk_of(chunk)
    if isinstance(stage, Stage):
        sync = [one for one in after if isinstance(one, Stage)]
        if len(sync) == len(after):
            return transcript(data, stage, sync, size)
    return anyio.run(areplay, data, stage, after, size)


def difference(path: str, now: str) -> str:
    """How a transcript differs from the golden in a file, as a unified diff; empty if it does not."""
    golden = contents(path).decode("utf-8", "replace")
    lines = difflib.unified_diff(golden.splitlines(keepends=True), now.splitlines(keepends=True), path, "replay")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument("stage", metavar="STAGE", help="module:Name(args), its arguments literals")
    parser.add_argument("--after", metavar="STAGE", action="append", help="a stage to pass before, in this order")
    add_chunk(parser)
    golden = parser.add_mutually_exclusive_group()
    golden.add_argument("--check", metavar="FILE", help="compare with this golden; exit 1 and a diff if they differ")
    golden.add_argument("--update", metavar="FILE", help="write the golden")


def replay(args: argparse.Namespace, recipe: Recipe) -> int:
    """Run the command: print the transcript, or compare it with a golden, or write one."""
    given = vars(args)
    after = [stage_of(spec) for spec in given.get("after", ())]
    now = replayed(contents(args.file), stage_of(args.stage), after, given.get("chunk"))
    if "update" in given:
        with opened(args.update, "wb") as golden:
            golden.write(now.encode())
        return 0
    shown = difference(args.check, now) if "check" in given else now
    sys.stdout.buffer.write(shown.encode())
    sys.stdout.buffer.flush()
    return int("check" in given and bool(shown))


COMMAND = Command("show what one stage makes of a recording", arguments, replay)
