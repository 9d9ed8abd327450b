"""The default chain of a route: the composition root."""

from pipeline.dialect import NO_REQUEST, Dialect, RequestFacts
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.stage import Stage
from stages.interleave import InterleaveBuffer
from stages.sse import SSEDecoder, SSEEncoder
from stages.validate import BlockValidator
from stages.verdict import VerdictStage


def default_chain(
    upstream: Dialect,
    client: Dialect,
    *,
    facts: RequestFacts = NO_REQUEST,
    ledger: Ledger | None = None,
    limits: Limits = DEFAULT_LIMITS,
    outcome: Outcome | None = None,
) -> Stage[bytes, bytes]:
    """Fresh stages that turn one streamed answer of `upstream` into one that a `client` reads.

    What cannot be carried goes to `ledger`, how the stream ended to `outcome`.
    """
    ledger = Ledger() if ledger is None else ledger
    outcome = Outcome() if outcome is None else outcome
    return (
        SSEDecoder(limits=limits, sentinels=tuple(upstream.sentinels), ledger=ledger)
        | upstream.normalizer(facts=facts, ledger=ledger, limits=limits)
        | InterleaveBuffer(ledger=ledger, limits=limits)
        | BlockValidator(ledger=ledger, limits=limits)
        | VerdictStage(outcome)
        | client.encoder(facts=facts, ledger=ledger, limits=limits)
        | SSEEncoder()
    )
