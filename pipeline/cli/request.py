"""`request`: a client's request becomes the one that an upstream of another dialect is asked."""

import argparse
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from attrs import define, field

from pipeline.cli.convert import known
from pipeline.cli.jobs import run_jobs
from pipeline.cli.options import Command, Recipe, contents, conversion_of, job_files, opened
from pipeline.errors import ClientError
from pipeline.jsontext import dumps
from pipeline.reply import Refusal, refused, said
from pipeline.route import Exchange, Route

STATUS = 200
"""Of a request that can be sent up."""
REFUSED = 4


@define
class Asked:
    """What became of a client's request on its way up, over one hop or several."""

    exchanges: list[Exchange] = field(factory=list)
    """One a hop, as far as it came."""
    body: bytes = b""
    """What the upstream is asked, or what the client is answered instead."""
    status: int = STATUS
    """Of the error that the client is answered with, if it is."""

    @property
    def ledger(self) -> list[dict[str, str]]:
        """Every loss, of all hops."""
        return [entry for exchange in self.exchanges for entry in exchange.ledger]


def asked(members: Mapping[str, Any], body: bytes, recipe: Recipe) -> Asked:
    """Send a request up between the dialects that these members name.

    A refusal comes down as an upstream's error does, so the client reads it in its own dialect.
    """
    up = Asked(body=body)
    for client, upstream in pairwise(map(known, conversion_of(members).hops)):
        exchange = Route(client=client, upstream=upstream, recipe=recipe).open(up.body)
        up.exchanges.append(exchange)
        up.body = exchange.request.body
        if isinstance(exchange.request, Refusal):
            return _come_down(up, exchange.request)
    return up


def _come_down(up: Asked, refusal: Refusal) -> Asked:
    for exchange in reversed(up.exchanges[:-1]):
        status = refusal.head.status
        error = exchange.route.upstream.read_error(status, said(refusal.body))
        refusal = refused(exchange.route.client, error, status)
    up.body, up.status = refusal.body, refusal.head.status
    return up


def request_job(members: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """One job of many: the upstream's request or the client's error is written, the status and the ledger come back."""
    job = job_files(members)
    up = asked(members, contents(job.input), recipe)
    with opened(job.output, "wb") as out:
        out.write(up.body)
    return {"status": up.status, "ledger": up.ledger}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("--from", metavar="D", help="the client's dialect")
    parser.add_argument("--to", metavar="D", help="the upstream's dialect")
    parser.add_argument("--via", metavar="D", help="a dialect to pass on the way")
    parser.add_argument("--ledger", metavar="FILE", help="write the losses (a JSON list)")
    parser.add_argument("--jobs", metavar="FILE", help="many at once: a JSON line a job; goes alone")


def request(args: argparse.Namespace, recipe: Recipe) -> int:
    """Run the command; 4 if the request was refused, 1 if a job broke."""
    given = {name: value for name, value in vars(args).items() if name in ("from", "to", "via", "ledger")}
    if "jobs" in args:
        if given:
            raise ClientError(f"--jobs goes alone; each job says its own {', '.join(given)}")
        return run_jobs(args.jobs, lambda members: request_job(members, recipe))
    up = asked(given, sys.stdin.buffer.read(), recipe)
    sys.stdout.buffer.write(up.body)
    sys.stdout.buffer.flush()
    if "ledger" in given:
        with opened(given["ledger"], "wb") as out:
            out.write(dumps(up.ledger) + b"\n")
    return 0 if up.status == STATUS else REFUSED


COMMAND = Command("turn a client's request into another dialect's", arguments, request)
