"""A whole response with what was changed in it: every member that nobody changed stays as it came."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from pipeline.change import Change, patched
from pipeline.dialect import RequestFacts
from pipeline.events import MessageDelta, MessageStart, StopReason
from pipeline.jsontext import as_written
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.logprobs import scores_in
from pipeline.message import Content, Message, Reasoning, RedactedReasoning, Refusal, Text, ToolUse, assemble
from stages.dialects.responses.calls import MEMBERS
from stages.dialects.responses.kept import STAGE, UNTRUE, NewItems, respoken
from stages.dialects.responses.lost import GONE, lose_item
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.dialects.responses.opaque import JOINT, item_of, parts_of
from stages.dialects.responses.stops import INCOMPLETE
from stages.dialects.responses.usage import usage_object
from stages.dialects.responses.written import OUTPUT_TEXT, RAW, REFUSAL, SUMMARY, Json

REPEAT: Final = "output_text"
"""Where some servers tell the text of all messages once more."""


def patch(change: Change, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Json:
    """The response as it came, with what was changed in it; an item that is new is written as in any other answer."""
    said = as_written(change.body)
    told = said["output"]
    items = told if isinstance(told, list) else []
    counts = [_count(item, said.get("status"), facts, limits) for item in items]
    new = NewItems(facts=facts, ledger=ledger)
    new.adopt(said)
    output: list[Any] = []
    pieces = [*change.pieces(counts)]
    for at in set(range(len(items))) - {at for piece in pieces for at in (piece.at, piece.of)}:
        lose_item(items[at], ledger, GONE)
    for piece in pieces:
        item = None if piece.at is None else items[piece.at]
        if piece.now != piece.was:
            if item is not None:
                output += _patched_item(item, piece.was, piece.now, new)
            elif piece.of is None:
                output += _written(piece.now, new)
            else:
                output += new.whole([_honest(content, ledger) for content in piece.now], items[piece.of])
        else:
            output.append(item)
    was, now = change.was, change.now
    back = {**said, **renamed(was, now), "output": output}
    back |= ended(said, _end(was), _end(now))
    if isinstance(said.get(REPEAT), str) and _text_of(items) != _text_of(output):
        back[REPEAT] = _text_of(output)
    return back


def renamed(was: Message | MessageStart, now: Message | MessageStart) -> Json:
    """What of a response's names was changed."""
    names = (("id", was.id, now.id), ("model", was.model, now.model))
    return {name: new for name, old, new in names if new != old}


def ended(response: Mapping[str, Any], was: MessageDelta, now: MessageDelta) -> Json:
    """What of a response's end was changed."""
    told: Json = {}
    if now.usage is not None and now.usage != was.usage:
        counts, counted = response.get("usage"), {} if was.usage is None else usage_object(was.usage)
        told["usage"] = patched(counts if isinstance(counts, dict) else {}, counted, usage_object(now.usage))
    if now.stop_reason is not was.stop_reason and status_of(now) != status_of(was):
        told["status"], told["incomplete_details"] = status_of(now)
    return told


def status_of(end: MessageDelta) -> tuple[str, Json | None]:
    """The status of a response that ended so, and why it is incomplete."""
    why = INCOMPLETE.get(end.stop_reason)
    return ("completed", None) if why is None else ("incomplete", {"reason": why})


def _end(message: Message) -> MessageDelta:
    return MessageDelta(message.stop_reason or StopReason.END_TURN, usage=message.usage)


def _count(item: Any, status: Any, facts: RequestFacts, limits: Limits) -> int:
    """How many contents are read of an item."""
    normalizer = ResponsesNormalizer(facts=facts, ledger=Ledger(), limits=limits)
    return len(assemble(normalizer.whole({"status": status, "output": [item]})).content)


def _patched_item(item: Json, was: Sequence[Content], now: Sequence[Content], new: NewItems) -> list[Json]:
    """An item with what was changed in it; one that cannot hold that is written anew."""
    before, after = was[0], now[0]
    if isinstance(before, ToolUse) and isinstance(after, ToolUse):
        return [_recalled(item, before, after)]
    if isinstance(before, Text | Refusal):
        return [_respoken(item, was, now, new.ledger)]
    if isinstance(before, Reasoning) and isinstance(after, Reasoning) and before.signature == after.signature:
        return [_rethought(item, after.text, new.ledger)]
    return _written(now, new)


def _written(contents: Sequence[Content], new: NewItems) -> list[Json]:
    """Items that hold these contents: reasoning that carries its item is that one, since its provider knows its blob
    by its id."""
    first = contents[0]
    signature = first.signature if isinstance(first, Reasoning) else ""
    proof = first.data if isinstance(first, RedactedReasoning) else signature
    if len(contents) > 1 or (item := item_of(proof)) is None:
        return new.whole(contents)
    return [_rethought(item, first.text, new.ledger) if isinstance(first, Reasoning) else item]


def _rethought(item: Json, text: str, ledger: Ledger) -> Json:
    """A reasoning item with another text."""
    told = parts_of(item)
    member, words = ("content", RAW) if any(told["content"]) else ("summary", SUMMARY)
    if text == JOINT.join(filter(None, told[member])):
        return item
    return {**item, member: respoken(item[member], words, text, ledger, JOINT)}


def _recalled(item: Json, was: ToolUse, now: ToolUse) -> Json:
    """A call with what was changed in it."""
    told = (
        ("call_id", was.id, now.id),
        ("name", was.name, now.name),
        ("namespace", was.namespace, now.namespace),
        (MEMBERS[was.kind], was.arguments, now.arguments),
    )
    return {**item, **{name: after for name, before, after in told if after != before}}


def _respoken(item: Json, was: Sequence[Content], now: Sequence[Content], ledger: Ledger) -> Json:
    """A message with what was changed in its texts, and in the notes on them."""
    said = "".join(content.text for content in now if isinstance(content, Text))
    refused = "".join(content.text for content in now if isinstance(content, Refusal))
    if isinstance(item["content"], str):
        return {**item, "content": said + refused}
    parts = respoken(item["content"], OUTPUT_TEXT, said, ledger)
    parts = respoken(parts, REFUSAL, refused, ledger)
    if (notes := _notes(now)) != _notes(was):
        for at, part in enumerate(parts):
            if isinstance(part, dict) and OUTPUT_TEXT.member in part:
                parts[at], notes = {**part, "annotations": notes}, []
    return {**item, "content": parts}


def _honest(content: Content, ledger: Ledger) -> Content:
    """A text that was cut from another, without what is said of the tokens of that."""
    if not isinstance(content, Text) or not any(map(scores_in, content.annotations)):
        return content
    ledger.record(STAGE, *UNTRUE)
    return evolve(content, annotations=tuple(note for note in content.annotations if not scores_in(note)))


def _notes(contents: Sequence[Content]) -> list[Mapping[str, Any]]:
    notes = (note for content in contents if isinstance(content, Text) for note in content.annotations)
    return [note for note in notes if not scores_in(note)]


def _text_of(items: Sequence[Any]) -> str:
    parts = [part for item in items if isinstance(item, dict) for part in _list(item.get("content"))]
    return "".join(part["text"] for part in parts if isinstance(part, dict) and part.get("type") == OUTPUT_TEXT.type)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
