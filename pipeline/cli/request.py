"""`request`: a client's request becomes the one that an upstream of another dialect is asked."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from pipeline.cli.convert import known
from pipeline.cli.jobs import run_jobs
from pipeline.cli.options import Command, Recipe, contents, conversion_of, job_files, opened
from pipeline.errors import ClientError
from pipeline.jsontext import dumps
from pipeline.reply import Refusal
from pipeline.route import Exchange, Route

STATUS = 200
"""Of a request that can be sent up."""
REFUSED = 4


def opening(members: Mapping[str, Any], body: bytes, recipe: Recipe) -> Exchange:
    """The exchange that a request begins, between the dialects that these members name."""
    way = conversion_of(members)
    return Route(client=known(way.from_), upstream=known(way.to), recipe=recipe).open(body)


def status_of(exchange: Exchange) -> int:
    """The status of the error that the client is answered with, if it is."""
    return exchange.request.head.status if isinstance(exchange.request, Refusal) else STATUS


def request_job(members: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """One job of many: the upstream's request or the client's error is written, the status and the ledger come back."""
    job = job_files(members)
    exchange = opening(members, contents(job.input), recipe)
    with opened(job.output, "wb") as out:
        out.write(exchange.request.body)
    return {"status": status_of(exchange), "ledger": exchange.ledger}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("--from", metavar="D", help="the client's dialect")
    parser.add_argument("--to", metavar="D", help="the upstream's dialect")
    parser.add_argument("--ledger", metavar="FILE", help="write the losses (a JSON list)")
    parser.add_argument("--jobs", metavar="FILE", help="many at once: a JSON line a job; goes alone")


def request(args: argparse.Namespace, recipe: Recipe) -> int:
    """Run the command; 4 if the request was refused, 1 if a job broke."""
    given = {name: value for name, value in vars(args).items() if name in ("from", "to", "ledger")}
    if "jobs" in args:
        if given:
            raise ClientError(f"--jobs goes alone; each job says its own {', '.join(given)}")
        return run_jobs(args.jobs, lambda members: request_job(members, recipe))
    exchange = opening(given, sys.stdin.buffer.read(), recipe)
    sys.stdout.buffer.write(exchange.request.body)
    sys.stdout.buffer.flush()
    if "ledger" in given:
        with opened(given["ledger"], "wb") as out:
            out.write(dumps(exchange.ledger) + b"\n")
    return REFUSED if isinstance(exchange.request, Refusal) else 0


COMMAND = Command("turn a client's request into another dialect's", arguments, request)
