"""A whole Messages answer and a `Message`, both ways."""

import re
from typing import Any, Final

from pipeline.change import Change, Piece, patched
from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import UpstreamError
from pipeline.events import StopReason, ToolKind
from pipeline.failure import note_untold
from pipeline.hosted import path_of
from pipeline.jsontext import as_written, check_depth, exact, holds_object, loads, verbatim
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Content, Message, Reasoning, RedactedReasoning, Refusal, Text, ToolUse, assemble
from stages.dialects.messages.encode import NAMESPACE, UNCOUNTED, citation_of, message_id, note_served
from stages.dialects.messages.errors import error_of
from stages.dialects.messages.lost import lose_block
from stages.dialects.messages.normalize import MessagesNormalizer
from stages.dialects.messages.opaque import blob_of
from stages.dialects.messages.usage import counts_of
from stages.dialects.messages.words import NAME

STAGE: Final = "messages.body"

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
"""A number that may not fit into 64 bits."""


def read(body: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
    """The message that a whole answer is, by the same rules as a stream; an error's is its `error`, behind what
    content stands beside it.

    Raises `UpstreamError` if it is neither a message nor an error.
    """
    try:
        check_depth(body, limits.json_depth)
        answer = exact(body) if _LONG_NUMBER.search(body) else loads(body, limits.json_depth)
    except ValueError as error:
        raise UpstreamError("the upstream's answer is no JSON", code="invalid_json") from error
    failed = error_of(answer)
    if isinstance(answer, dict) and "content" in answer:
        return assemble(MessagesNormalizer(facts=facts, ledger=ledger, limits=limits).whole(answer, failed))
    if failed is not None:
        note_untold(answer, failed, STAGE, ledger, answered=True)
        return Message("", facts.model, error=failed)
    raise UpstreamError("the upstream's answer is neither a message nor an error", code="no_message")


def patch(change: Change, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> dict[str, Any]:
    """The body as it came, with what was changed in it; a block that is new is written as in any other answer."""
    body = as_written(change.body)
    told = body["content"]
    blocks = [{"type": "text", "text": told}] if isinstance(told, str) else told if isinstance(told, list) else []
    counts = [_count(block, facts, limits) for block in blocks]
    content = []
    pieces = [*change.pieces(counts)]
    kept = {at for piece in pieces for at in (piece.at, piece.of)}
    for at in set(range(len(blocks))) - kept:
        lose_block(blocks[at], ledger)
    for piece in pieces:
        if piece.at is None and piece.of is not None:
            content.append(_patched(blocks[piece.of], piece, ledger, limits))
        elif piece.at is None:
            content += [block for one in piece.now if (block := _block(one, ledger, limits)) is not None]
        elif piece.now == piece.was:
            content.append(blocks[piece.at])
        else:
            content.append(_patched(blocks[piece.at], piece, ledger, limits))
    return {**patched(body, _about(change.was), _about(change.now)), "content": content}


def _patched(block: dict[str, Any], piece: Piece, ledger: Ledger, limits: Limits) -> dict[str, Any]:
    """A block with what was changed in it."""
    return patched(block, *(_block(one, ledger, limits) or {} for (one,) in (piece.was, piece.now)))


def _count(block: Any, facts: RequestFacts, limits: Limits) -> int:
    """How many contents are read of a block."""
    normalizer = MessagesNormalizer(facts=facts, ledger=Ledger(), limits=limits)
    return len(assemble(normalizer.whole({"content": [block]})).content)


def _about(message: Message) -> dict[str, Any]:
    """What a body says beside its content."""
    usage = {} if message.usage is None else {"usage": counts_of(message.usage)}
    end = {"stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence}
    return {"id": message.id, "model": message.model, **end, **usage}


def write(
    message: Message, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, *, facts: RequestFacts = NO_REQUEST
) -> dict[str, Any]:
    """The body of an answer: what a client makes of its stream. What Messages cannot show is recorded.

    The input of a call stands in it as the model wrote it, to be written by `pipeline.jsontext.dumps`.
    """
    blocks = [_block(content, ledger, limits, at) for at, content in enumerate(message.content)]
    if message.usage is None or message.usage is facts.usage:
        ledger.record(STAGE, *UNCOUNTED)
    note_served(message.served, STAGE, ledger)
    return {
        "id": message_id(message.id),
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": [block for block in blocks if block is not None],
        "stop_reason": message.stop_reason or StopReason.END_TURN,
        "stop_sequence": message.stop_sequence,
        "usage": counts_of(message.usage, facts.usage),
    }


def _block(content: Content, ledger: Ledger, limits: Limits, at: int = 0) -> dict[str, Any] | None:
    """A content block, the one that stands `at` a place; None for one that this dialect cannot show."""
    if isinstance(content, Text | Refusal):
        block: dict[str, Any] = {"type": "text", "text": content.text}
        if isinstance(content, Text) and content.annotations:
            citations = [citation_of(note, STAGE, ledger) for note in content.annotations]
            if any(citations):
                block["citations"] = [citation for citation in citations if citation is not None]
        return block
    if isinstance(content, Reasoning):
        return {"type": "thinking", "thinking": content.text, "signature": blob_of(content.signature)}
    if isinstance(content, RedactedReasoning):
        return {"type": "redacted_thinking", "data": blob_of(content.data)}
    if isinstance(content, ToolUse):
        if content.namespace:
            ledger.record(STAGE, *NAMESPACE)
        return {"type": "tool_use", "id": content.id, "name": content.name, "input": _input(content, ledger, limits)}
    if content.dialect == NAME:
        return dict(content.payload)
    _lose(path_of(at, content), "Messages cannot show it", ledger)
    return None


def _input(call: ToolUse, ledger: Ledger, limits: Limits) -> Any:
    """A call's input as a value, every digit of its numbers kept; of one that was cut, or that holds none, nothing."""
    if call.kind is ToolKind.CUSTOM and call.complete:
        return {"input": call.arguments}
    if call.kind is ToolKind.FUNCTION and holds_object(call.arguments, limits.json_depth):
        return verbatim(call.arguments)
    cut = "cut by the limit: a whole answer cannot show a part of them"
    _lose("arguments", "they are no JSON object" if call.complete else cut, ledger)
    return {}


def _lose(path: str, reason: str, ledger: Ledger) -> None:
    ledger.record(STAGE, path, "dropped", reason)
