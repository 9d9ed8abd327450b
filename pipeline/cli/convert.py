"""`convert`: one recorded answer stream becomes what a client of another dialect would have received."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any

from attrs import define, evolve, field

from pipeline.cli.jobs import run_jobs
from pipeline.cli.options import (
    OPTIONS,
    Command,
    Conversion,
    Recipe,
    add_conversion,
    contents,
    conversion_of,
    job_files,
    json_object,
    opened,
)
from pipeline.dialect import NO_REQUEST, Dialect, RequestFacts, dialect
from pipeline.errors import ClientError, PipelineError, StageError
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form, Heading, Refusal
from pipeline.route import Route
from pipeline.stage import Stage
from pipeline.testing import cut

EXIT = {Verdict.COMPLETE: 0, Verdict.CUT: 3, Verdict.FAILED: 4}
"""What the single command exits with; 2 is argparse's word for a wrong usage."""

known = cache(dialect)
"""The installed dialects, each looked up once a process."""


@define
class Run:
    """One conversion under way, of a stream or of a whole answer: fresh stages, and what they say of it."""

    recipe: Recipe
    form: Form
    ledger: Ledger = field(init=False, factory=Ledger)
    outcomes: list[Outcome] = field(init=False, factory=list)

    @property
    def ending(self) -> Verdict:
        """How the stream ended. Of several hops the first that saw it go wrong knows best what it was.

        Raises `StageError` if no stage said so: our fault.
        """
        verdicts = [outcome.verdict for outcome in self.outcomes]
        whole = None if None in verdicts else Verdict.COMPLETE
        ending = next((verdict for verdict in verdicts if verdict not in (None, Verdict.COMPLETE)), whole)
        if ending not in EXIT:
            raise StageError(f"the chain ended with the verdict {ending}, which no recorded stream can have")
        return ending

    def chain(self, conversion: Conversion) -> Stage[bytes, bytes]:
        """Fresh stages for a conversion. Between two hops every answer is a stream, which nobody's request bounds.

        Raises `ClientError` if a dialect is unknown or cannot stand where it is asked to, or the request is none.
        """
        passed = [known(name) for name in conversion.hops]
        forms = [self.form, *(Form.STREAM for _ in passed[2:]), self.form]
        known_of = [NO_REQUEST for _ in forms[1:]]
        if conversion.request is not None:
            known_of = self._facts(passed, conversion.request)
        hops = [
            self._hop(up, down, arriving=arriving, leaving=leaving, facts=of_hop, options=conversion.options.of_hop(at))
            for at, ((up, down), (arriving, leaving), of_hop) in enumerate(
                zip(pairwise(passed), pairwise(forms), known_of, strict=True)
            )
        ]
        if self.form is Form.WHOLE:
            hops.append(Heading(passed[-1], self.form, self.outcomes[-1]))
        return reduce(or_, hops)

    def _facts(self, passed: Sequence[Dialect], path: str) -> list[RequestFacts]:
        """What the stages of each hop are told of the request: what they are told when it goes up over these dialects.

        Of one that cannot go up, or not as far, the client's dialect alone says it; it need not be one that can.
        Raises `ClientError` if it is no JSON object.
        """
        body = contents(path)
        asked = json_object(f"the request {path!r}", body)
        facts: list[RequestFacts] = []
        for upstream, client in reversed([*pairwise(passed)]):
            exchange = Route(client=client, upstream=upstream, recipe=self.recipe).open(body)
            if isinstance(exchange.request, Refusal):
                facts.append(client.facts(asked))
                break
            facts.append(exchange.facts)
            body = exchange.request.body
            asked = json_object("the request", body)
        told = facts[-1]
        between = [evolve(one, stream=True, include_usage=True) for one in facts[1:]]
        unasked = [RequestFacts(model=told.model, tools=told.tools) for _ in passed[1 + len(facts) :]]
        return [*reversed([facts[0], *between, *unasked])]

    def _hop(self, upstream: Dialect, client: Dialect, **asked: Any) -> Stage[bytes, bytes]:
        """The chain between two dialects: the one place that calls the recipe.

        Raises `ClientError` if a dialect cannot stand where it is asked to.
        """
        self.outcomes.append(outcome := Outcome(ledger=self.ledger))
        try:
            return self.recipe(upstream, client, ledger=self.ledger, limits=DEFAULT_LIMITS, outcome=outcome, **asked)
        except PipelineError as error:
            raise ClientError(f"cannot convert {upstream.name} to {client.name}: {error}") from error


def play_through(
    reads: Sequence[bytes],
    chain: Stage[bytes, bytes],
    send: Callable[[bytes], object],
    note: Callable[[bytes], object] | None = None,
) -> None:
    """Send what a chain makes of the reads, and note how far it has come after each read and at the end."""
    came = went = 0

    def passed(items: Sequence[bytes]) -> None:
        nonlocal went
        if items:
            out = b"".join(items)
            went += len(out)
            send(out)
        if note is not None:
            note(dumps({"in": came, "out": went, "held": chain.held}) + b"\n")

    for read in reads:
        came += len(read)
        passed(chain.receive((read,)))
        if chain.ended:
            break
    passed(chain.receive_eof())


def convert_job(members: Mapping[str, Any], recipe: Recipe, form: Form) -> dict[str, Any]:
    """One job of many: the output file is written, the ending and the ledger come back."""
    job = job_files(members)
    conversion = conversion_of(members)
    run = Run(recipe, form)
    chain = run.chain(conversion)
    reads = cut(contents(job.input), conversion.chunk)
    with ExitStack() as files:
        out = files.enter_context(opened(job.output, "wb"))
        note = None if conversion.trace is None else files.enter_context(opened(conversion.trace, "wb")).write
        play_through(reads, chain, out.write, note)
    return {"ending": run.ending, "ledger": run.ledger.as_dicts()}


def convert_stdin(given: Mapping[str, Any], recipe: Recipe, form: Form) -> int:
    """`convert < in > out`. Each piece of output is flushed as it is made."""
    options = {name: given[name] for name in OPTIONS if name in given}
    conversion = conversion_of({**given, "options": options})
    if conversion.trace is not None and conversion.trace == given.get("ledger"):
        raise ClientError("'trace' and 'ledger' are one file")
    run = Run(recipe, form)
    chain = run.chain(conversion)
    client = sys.stdout.buffer

    def send(out: bytes) -> None:
        client.write(out)
        client.flush()

    with ExitStack() as files:
        ledger = files.enter_context(opened(given["ledger"], "wb")) if "ledger" in given else None
        note = None if conversion.trace is None else files.enter_context(opened(conversion.trace, "wb")).write
        play_through(cut(sys.stdin.buffer.read(), conversion.chunk), chain, send, note)
        if ledger is not None:
            ledger.write(dumps(run.ledger.as_dicts()) + b"\n")
    return EXIT[run.ending]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    add_conversion(parser)
    parser.add_argument("--ledger", metavar="FILE", help="write the losses (a JSON list)")
    parser.add_argument("--jobs", metavar="FILE", help="many at once: a JSON line a job; goes alone")


def convert(args: argparse.Namespace, recipe: Recipe, form: Form = Form.STREAM) -> int:
    """Run the command; its exit code is how the answer ended, or 1 if a job broke."""
    flags = ("from", "to", "via", "request", "chunk", "trace", "ledger", *OPTIONS)
    given = {name: value for name, value in vars(args).items() if name in flags}
    if "jobs" not in args:
        return convert_stdin(given, recipe, form)
    if given:
        raise ClientError(f"--jobs goes alone; each job says its own {', '.join(given)}")
    return run_jobs(args.jobs, lambda members: convert_job(members, recipe, form))


COMMAND = Command("turn a recorded answer stream into another dialect's", arguments, convert)
