"""A whole response and a `Message`, both ways: by the same rules as a stream."""

from typing import Any

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import UpstreamError
from pipeline.failure import note_untold
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message, assemble, disassemble
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.errors import error_in
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.dialects.responses.within import NAMING


def read(
    body: Any, *, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None, limits: Limits = DEFAULT_LIMITS
) -> Message:
    """The message that a whole answer is; an error body is one whose `error` is set.

    Raises `UpstreamError` if it is neither a response nor an error.
    """
    ledger = Ledger() if ledger is None else ledger
    if isinstance(body, dict) and "output" in body:
        normalizer = ResponsesNormalizer(facts=facts, ledger=ledger, limits=limits)
        return assemble(normalizer.whole(body))
    if (error := error_in(body)) is not None:
        note_untold(body, error, "responses.body", ledger, answered=True, apart=NAMING)
        return Message("", facts.model, error=error)
    raise UpstreamError("the answer is neither a response nor an error", code="no_response")


def write(message: Message, *, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None) -> dict[str, Any]:
    """The whole answer that a message is: the response that the stream of it would end with."""
    return written(message, ResponsesEncoder(facts=facts, ledger=Ledger() if ledger is None else ledger))


def written(message: Message, encoder: ResponsesEncoder) -> dict[str, Any]:
    """The same, as a fresh encoder writes it."""
    encoder.receive([*disassemble(message)])
    return encoder.response
