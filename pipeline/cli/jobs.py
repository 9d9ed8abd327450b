"""Many jobs in one process: a JSON line in, a JSON line out. A job that breaks says so; the rest go on."""

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.cli.options import contents, json_object
from pipeline.errors import PipelineError
from pipeline.jsontext import dumps

log = logging.getLogger(__name__)


def run_jobs(path: str, do: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> int:
    """Do each job of a file, print what `do` says of it behind its `output`; 1 if any broke, else 0.

    A line is printed and flushed as soon as its job is done. A progress bar stands on stderr if that is a terminal.
    Raises `ClientError` if the file cannot be read.
    """
    from tqdm import tqdm  # takes longer to import than all the rest, which one stream need not wait for

    lines = [(at, line) for at, line in enumerate(contents(path).splitlines(), 1) if line.strip()]
    broken = False
    for at, line in tqdm(lines, unit="job", disable=None):
        row = one_job(at, line, do)
        broken = broken or "error" in row
        with tqdm.external_write_mode():
            sys.stdout.buffer.write(dumps(row) + b"\n")
            sys.stdout.buffer.flush()
    return int(broken)


def one_job(at: int, line: bytes, do: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> dict[str, Any]:
    """What is printed for the job in line `at`: `output`, and what `do` says or the `error` that broke it."""
    output: object = None
    try:
        members = json_object(f"line {at}", line)
        output = members.get("output")
        return {"output": output, **do(members)}
    except (PipelineError, OSError) as error:
        return {"output": output, "error": str(error)}
    except Exception:
        # A bug of ours or of somebody's stage, met here by one stream of thousands: this is the process's outer edge,
        # as a server's is its connection, and nothing of the broken job outlives it. It is told, never passed over.
        log.exception("the job in line %d broke a stage", at)
        return {"output": output, "error": f"line {at}: {sys.exception()!r}"}
