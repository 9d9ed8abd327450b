"""A whole Chat answer and a `Message`, both ways: by the same rules as a stream."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from pipeline.change import Change, patched
from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import UpstreamError
from pipeline.events import Frame, ToolUseBlock
from pipeline.jsontext import as_written, loads
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
)
from stages.dialects.chat.content import REASONING
from stages.dialects.chat.encode import ChatEncoder
from stages.dialects.chat.fragments import is_call
from stages.dialects.chat.normalize import DONE, ChatNormalizer
from stages.dialects.chat.patch import (
    Json,
    NewCall,
    Told,
    declared,
    entries_in,
    finish_word,
    patched_entry,
    patched_texts,
    spot_of,
)
from stages.dialects.chat.stops import ONE_CALL
from stages.dialects.chat.usage import usage_object


def read(body: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
    """The message of a whole answer, in the order reasoning, text, refusal, calls; an error's is its `error`.

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

    It holds reasoning, text, refusal and calls beside each other; that they stood in another order is recorded.
    """
    ledger = Ledger() if ledger is None else ledger
    encoder = ChatEncoder(facts=evolve(facts, include_usage=True), ledger=ledger)
    whole: dict[str, Any] = {}
    said: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    scores: list[Any] = []
    finish = None
    for chunk in [loads(frame.data) for frame in encoder.receive([*disassemble(message)]) if frame.data != DONE]:
        if "error" in chunk:
            return {"error": chunk["error"]}
        for choice in chunk.pop("choices"):
            _join(said, choice["delta"])
            scores += choice.get("logprobs", NO_SCORES)["content"]
            finish = choice["finish_reason"]
        whole.update(chunk)
    for call in said.get("tool_calls", ()):
        del call["index"]
    _note_order(message, ledger)
    told = {"content": scores, "refusal": None} if scores else None
    choice = {"index": 0, "message": said, "logprobs": told, "finish_reason": finish}
    usage = {"usage": whole.pop("usage")} if "usage" in whole else {}
    return {**whole, "object": "chat.completion", "choices": [choice], **usage}


def patch(change: Change, *, facts: RequestFacts, ledger: Ledger) -> Json:
    """The body as it came, with what was changed in it: every other member, and every other choice, is as it was."""
    said = as_written(change.body)
    if (spot := spot_of(said, whole=True)) is None:
        return write(change.now, facts=facts, ledger=ledger)
    was, now, message = change.was, change.now, dict(spot.delta)
    respoken = patched_texts(message, change.made, change.events, ledger)
    message |= {name: None for name in SPOKEN if message.get(name) in ("", []) and spot.delta.get(name)}
    _patch_calls(message, change, facts, ledger)
    _note_order(now, ledger)
    for content, place in zip(now.content, change.places, strict=True):
        if place is None and isinstance(content, RedactedReasoning | ServerItem):
            ledger.record("chat.body", type(content).__name__, "dropped", "Chat cannot show it here")
    beside = spot.silence(respoken, ledger)
    if now.stop_reason is not None and now.stop_reason is not was.stop_reason:
        beside["finish_reason"] = finish_word(now.stop_reason, older=facts.one_call)
    told = {**said, **spot.holding(message, **beside)}
    told |= {name: new for name, old, new in (("id", was.id, now.id), ("model", was.model, now.model)) if new != old}
    if now.usage is not None and now.usage != was.usage:
        counted = {} if was.usage is None else usage_object(was.usage)
        told["usage"] = patched(said.get("usage") or {}, counted, usage_object(now.usage))
    return told


def _patch_calls(message: Json, change: Change, facts: RequestFacts, ledger: Ledger) -> None:
    """Write into a message what is left of its calls, and those that are new; a call in the old form keeps it.

    What the provider runs itself stands before them.
    """
    came = {at: call for at, call in enumerate(change.was.content) if isinstance(call, ToolUse)}
    entries = [entry for entry in entries_in(message) if is_call(entry)]
    others = [entry for entry in entries_in(message) if not is_call(entry)]
    theirs = dict(zip(came, entries, strict=True)) if len(came) == len(entries) else {}
    told: list[Json] = []
    for call, place in zip(change.now.content, change.places, strict=True):
        if isinstance(call, ToolUse):
            if place is None or place not in theirs:
                told.append(_entry(call, facts))
            else:
                told.append(patched_entry(theirs[place], _told(came[place]), _told(call)))
    if told == entries:
        return
    if facts.one_call and not message.get("tool_calls"):
        message.pop("function_call", None)
        message.update(*({"function_call": one["function"]} for one in told[:1]))
        if told[1:]:
            ledger.record("chat.body", "tool use", "dropped", ONE_CALL)
        return
    if not message.get("tool_calls") and message.get("function_call"):
        del message["function_call"]
        message.update(*({"function_call": one["function"]} for one in told if "type" not in one))
        told = [one for one in told if "type" in one]
    message["tool_calls"] = [*others, *told]
    if not message["tool_calls"]:
        del message["tool_calls"]


def _told(call: ToolUse) -> Told:
    return Told(ToolUseBlock(call.id, call.name, call.kind, call.namespace), call.arguments)


def _entry(call: ToolUse, facts: RequestFacts) -> Json:
    """A call that is new, as the client declared its tool."""
    block = ToolUseBlock(call.id, call.name, call.kind, call.namespace)
    new = NewCall(0, call.kind, declared(block, facts))
    entry: Json = {}
    for told in (new.begin(block), new.say(call.arguments), new.close(complete=call.complete)):
        for part in () if told is None else told["tool_calls"]:
            _join(entry, part)
    del entry["index"]
    return entry


def _note_order(message: Message, ledger: Ledger) -> None:
    places = [_PLACES[type(content)] for content in message.content if type(content) in _PLACES]
    if places != sorted(places):
        ledger.record(
            "chat.body", "content", "reordered", "a whole answer holds reasoning, text, refusal and calls apart"
        )


NO_SCORES: Final[Json] = {"content": []}

SPOKEN: Final = ("content", "refusal", *REASONING)
"""The texts of a message: of one that is gone it has none."""

_PLACES: Final[dict[type[Content], int]] = {
    Reasoning: 0,
    RedactedReasoning: 0,
    Text: 1,
    Refusal: 2,
    ToolUse: 3,
}
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
