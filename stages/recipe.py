"""The default chain of a route: the composition root."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pipeline.dialect import NO_REQUEST, Dialect, RequestFacts
from pipeline.events import Event
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message
from pipeline.outcome import Outcome
from pipeline.route import DEFAULT_ANSWERS, AnswerOptions, Form
from pipeline.stage import Stage
from stages.interleave import InterleaveBuffer
from stages.restore import ToolRestorer
from stages.seal import Sealer
from stages.sse import SSEDecoder, SSEEncoder
from stages.validate import BlockValidator
from stages.verdict import VerdictStage
from stages.whole import BodyReader, BodyWriter


def default_chain(
    upstream: Dialect,
    client: Dialect,
    *,
    arriving: Form = Form.STREAM,
    leaving: Form = Form.STREAM,
    facts: RequestFacts = NO_REQUEST,
    ledger: Ledger | None = None,
    limits: Limits = DEFAULT_LIMITS,
    outcome: Outcome | None = None,
    options: AnswerOptions = DEFAULT_ANSWERS,
) -> Stage[bytes, bytes]:
    """Fresh stages that turn one answer of `upstream`, streamed or whole, into one that a `client` reads.

    What cannot be carried goes to `ledger`, how the answer ended to `outcome`.
    """
    ledger = Ledger() if ledger is None else ledger
    outcome = Outcome() if outcome is None else outcome
    provider = options.upstream or upstream.name
    neutral: Stage[Event, Event] = InterleaveBuffer(ledger=ledger, limits=limits)
    if facts.map.tools:
        neutral = neutral | ToolRestorer(facts.map)
    neutral = (
        neutral
        | Sealer(upstream=provider, envelopes=options.envelope, ledger=ledger)
        | BlockValidator(ledger=ledger, limits=limits)
        | VerdictStage(outcome)
    )
    return (
        reading(upstream, arriving, facts=facts, ledger=ledger, limits=limits)
        | neutral
        | writing(client, leaving, facts=facts, ledger=ledger, limits=limits)
    )


def reading(
    upstream: Dialect, form: Form, *, facts: RequestFacts, ledger: Ledger, limits: Limits
) -> Stage[bytes, Event]:
    """Bytes of an upstream's answer to events."""
    if form is Form.WHOLE:
        return BodyReader(partial(upstream.read_body, facts=facts, ledger=ledger, limits=limits), limits=limits)
    decoder = SSEDecoder(limits=limits, sentinels=tuple(upstream.sentinels), ledger=ledger)
    return decoder | upstream.normalizer(facts=facts, ledger=ledger, limits=limits)


def writing(client: Dialect, form: Form, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, bytes]:
    """Events to bytes of an answer for the client."""
    if form is Form.STREAM:
        return client.encoder(facts=facts, ledger=ledger, limits=limits) | SSEEncoder()

    def write(message: Message) -> Mapping[str, Any]:
        return client.write_body(message, facts=facts, ledger=ledger)

    return BodyWriter(write, limits=limits)
