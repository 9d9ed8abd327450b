"""A whole Chat answer."""

from typing import Any

from pipeline.dialect import RequestFacts
from pipeline.errors import UpstreamError
from pipeline.events import Frame
from pipeline.jsontext import loads
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import Message, assemble
from stages.dialects.chat.normalize import DONE, ChatNormalizer


def read(body: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
    """The message of a whole answer, in the order reasoning, text, calls; an error's is its `error`.

    A whole answer is read as a stream of one chunk, so that every rule is written once.

    Raises `UpstreamError` if it is no answer.
    """
    try:
        answer = loads(body, limits.json_depth)
    except ValueError as error:
        raise UpstreamError("the upstream's answer is no JSON", code="invalid_json") from error
    normalizer = ChatNormalizer(facts=facts, ledger=ledger, limits=limits, whole=True)
    events = list(normalizer.receive([Frame(body)]))
    if not (normalizer.ended or _is_answer(answer)):
        raise UpstreamError("the upstream's answer holds no choices", code="no_choices")
    return assemble([*events, *normalizer.receive([Frame(DONE)])])


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("choices"), list) and bool(answer["choices"])
