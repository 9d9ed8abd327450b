"""A whole Chat answer and a `Message`, both ways: by the same rules as a stream."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import UpstreamError
from pipeline.events import Frame
from pipeline.jsontext import loads
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    ToolUse,
    assemble,
    disassemble,
)
from stages.dialects.chat.encode import ChatEncoder
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


def write(message: Message, *, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None) -> dict[str, Any]:
    """The whole answer that a message is: what a client makes of the stream of it.

    It holds reasoning, text and calls beside each other; that they stood in another order is recorded.
    """
    ledger = Ledger() if ledger is None else ledger
    encoder = ChatEncoder(facts=evolve(facts, include_usage=True), ledger=ledger)
    whole: dict[str, Any] = {}
    said: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    finish = None
    for chunk in [loads(frame.data) for frame in encoder.receive([*disassemble(message)]) if frame.data != DONE]:
        if "error" in chunk:
            return {"error": chunk["error"]}
        for choice in chunk.pop("choices"):
            _join(said, choice["delta"])
            finish = choice["finish_reason"]
        whole.update(chunk)
    for call in said.get("tool_calls", ()):
        del call["index"]
    places = [_PLACES[type(content)] for content in message.content if type(content) in _PLACES]
    if places != sorted(places):
        ledger.record("chat.body", "content", "reordered", "a whole answer holds reasoning, text and calls apart")
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish}
    usage = {"usage": whole.pop("usage")} if "usage" in whole else {}
    return {**whole, "object": "chat.completion", "choices": [choice], **usage}


_PLACES: Final[dict[type[Content], int]] = {Reasoning: 0, RedactedReasoning: 0, Text: 1, Refusal: 1, ToolUse: 2}
"""The order in which a whole answer is read."""


def _join(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to a message, or to a part of one: texts go on, what has an index goes to what has the same."""
    for name, value in delta.items():
        before = whole.get(name)
        if isinstance(value, dict):
            _join(whole.setdefault(name, {}), value)
        elif isinstance(value, list):
            for part in value:
                _place(whole.setdefault(name, []), part)
        elif isinstance(value, str) and isinstance(before, str) and name not in _ONCE:
            whole[name] = before + value
        elif value is not None:
            whole[name] = value


_ONCE: Final = ("role", "type")


def _place(parts: list[Any], part: dict[str, Any]) -> None:
    if (at := part.get("index", len(parts))) == len(parts):
        parts.append({})
    _join(parts[at], part)


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("choices"), list) and bool(answer["choices"])
