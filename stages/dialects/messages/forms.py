"""A whole Messages answer as the stream of it, and a stream as the whole answer: all members are in both."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import define, field

from pipeline.counts import count_of
from pipeline.dialect import RequestFacts
from pipeline.events import Frame, StopReason, StreamError, Usage
from pipeline.jsontext import as_written, dumps, holds_object, value_of, verbatim
from pipeline.ledger import Ledger
from pipeline.unread import says
from stages.dialects.messages.encode import UNCOUNTED, message_id
from stages.dialects.messages.errors import error_body, error_of, keeps
from stages.dialects.messages.normalize import CUTTING, OF_END, STOP_REASONS
from stages.dialects.messages.returned import START, STOP, TOLD, framed, object_of, said_in
from stages.dialects.messages.usage import counts_of, usage_of
from stages.dialects.messages.words import CITATION, DELTA, INPUT, MEMBERS, SIGNATURE, TEXT, THINKING

Json = dict[str, Any]

STOPPED: Final = frozenset({"stop_reason", "stop_sequence", "stop_details", "container"})
"""Members of a message that the delta tells which ends it; the others are told when it begins."""
BESIDE: Final = frozenset({"context_management"})
"""Those that stand beside that delta."""
IN: Final = "input_tokens"
OUT: Final[Json] = {"output_tokens": 0}
CALLS: Final = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Blocks whose input comes in deltas."""


def unroll(body: bytes, *, facts: RequestFacts, ledger: Ledger) -> list[Frame]:
    """The stream of a whole answer. What a message must have and lacks is made; a text of nothing is left out.

    Of an answer that failed, its error is told behind the content instead of why it ended.
    """
    said = as_written(body)
    content, counts = said.get("content"), object_of(said.get("usage"))
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    failed = error_of(said)
    about = {name: value for name, value in said.items() if name not in STOPPED | BESIDE}
    if failed is not None:
        about = {name: value for name, value in about.items() if name not in ("type", "error")}
    made = {"id": message_id(""), "type": "message", "role": "assistant", "model": facts.model}
    begun = {**made, **{name: value for name, value in about.items() if value or name not in made}}
    counted = _counted(counts, ledger)
    usage = {**_begun(facts.usage), **counted} if counted else counts_of(None, facts.usage)
    begun |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    told: list[Json] = [{"type": "message_start", "message": begun}]
    blocks = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    stopped = {} if failed is not None else _stopped(said, blocks, ledger)
    cut = failed is not None or STOP_REASONS.get(stopped["stop_reason"]) in CUTTING
    for place, block in enumerate(blocks):
        told += ({**event, "index": place} for event in _told(block, cut=cut))
    if failed is not None:
        if blocks and blocks[-1].get("type") == "tool_use" and not blocks[-1].get("input"):
            told.pop()  # it is not known to be whole, and clients run what has ended
        return [*map(framed, (*told, _failed(said, failed, ledger)))]
    delta = {name: said[name] for name in STOPPED if name in said} | stopped
    beside = {name: said[name] for name in BESIDE if name in said}
    told += [{"type": TOLD, "delta": delta, "usage": {**OUT, **counted}, **beside}, {"type": "message_stop"}]
    return [*map(framed, told)]


def _counted(counts: Json, ledger: Ledger) -> Json:
    """A `usage` object without what clients demand as a number and is none; empty if it counts nothing."""
    if usage_of(counts) is None:
        return {}
    odd = {name for name in (IN, *OUT) if name in counts and count_of(counts[name], ledger) is None}
    return {name: value for name, value in counts.items() if name not in odd}


def _begun(estimate: Usage | None) -> Json:
    """What clients demand of the counts that a message begins with. What went in may be an estimate there."""
    return {IN: 0 if estimate is None else estimate.input, **OUT}


def _failed(said: Mapping[str, Any], failed: StreamError, ledger: Ledger) -> Json:
    """The event that tells an answer's error, in its server's words if they are of this dialect, with what stands
    beside the end of others."""
    beside = {name: said[name] for name in STOPPED | BESIDE if says(said.get(name))}
    for name in OF_END:
        if beside.pop(name, None) is not None:
            ledger.record("messages.forms", name, "dropped", "the answer failed")
    told = error_body(failed)
    return {**beside, **told, **({"error": said["error"]} if keeps(said, 1) else {})}


def _told(block: Json, *, cut: bool) -> Iterator[Json]:
    """The events of a block: what comes in deltas, and the rest when it begins. `cut`: it may lack its input."""
    kind, notes = block.get("type"), block.get("citations")
    deltas: list[Json] = []
    begun = block
    if kind == "text":
        cited = [*notes] if isinstance(notes, list) else []
        begun = {**block, "text": "", **({"citations": []} if cited else {})}
        deltas = [{"type": TEXT, "text": block.get("text")}, *({"type": CITATION, "citation": note} for note in cited)]
    elif kind == "thinking":
        begun = {**block, "thinking": "", "signature": ""}
        deltas = [{"type": THINKING, "thinking": block.get("thinking")}] if block.get("thinking") else []
        deltas += [{"type": SIGNATURE, "signature": block["signature"]}] if block.get("signature") else []
    elif kind in CALLS:
        given = block.get("input") or {}
        text = given if isinstance(given, str) else dumps(given).decode()
        begun = {**block, "id": block.get("id") or f"toolu_{secrets.token_hex(12)}", "input": {}}
        deltas = [{"type": INPUT, "partial_json": text}] if given or not cut else []
    yield {"type": START, "content_block": begun}
    yield from ({"type": DELTA, "delta": delta} for delta in deltas)
    yield {"type": STOP}


def _stopped(said: Mapping[str, Any], blocks: Iterable[Json], ledger: Ledger) -> Json:
    """Why it ended, in its server's words, whether they fit what was said or not; if there are none, in ours."""
    word, sequence = said.get("stop_reason"), said.get("stop_sequence")
    if not isinstance(word, str) or not word:
        ledger.record("messages.forms", "stop_reason", "mended", "none was told")
        called = any(block.get("type") == "tool_use" for block in blocks)
        word = StopReason.TOOL_USE if called else StopReason.END_TURN
    return {"stop_reason": word, "stop_sequence": sequence}


@define
class _Block:
    """A block while it comes."""

    said: Json
    texts: dict[str, list[str]] = field(factory=dict)
    notes: list[Any] = field(factory=list)

    def add(self, delta: Mapping[str, Any]) -> None:
        """More of it."""
        for name, value in delta.items():
            if name in ADDING and isinstance(value, str):
                self.texts.setdefault(name, []).append(value)
            elif name == "citation":
                self.notes.append(value)
            elif name != "type":
                self.said[name] = value

    def whole(self, ledger: Ledger) -> Json:
        """All of it; input that is no object is told as none, and recorded where it is no call of the client's."""
        for name, pieces in self.texts.items():
            text = "".join(pieces)
            if name != MEMBERS[INPUT]:
                before = self.said.get(name)
                self.said[name] = (before if isinstance(before, str) else "") + text
            elif holds_object(text):
                if (given := self.said.get("input")) and given != value_of(text):
                    ledger.record("messages.forms", "content[].input", "dropped", "its deltas tell another")
                self.said["input"] = verbatim(text)
            elif text.strip():
                self.said["input"] = {}
                if self.said.get("type") != "tool_use":
                    ledger.record("messages.forms", "content[].input", "dropped", "it is no JSON object")
        if self.notes:
            known = self.said.get("citations")
            self.said["citations"] = [*(known if isinstance(known, list) else ()), *self.notes]
        return self.said


FRAMED: Final = frozenset({"type", "index", "message", "content_block", "delta", "usage"})
"""What an event of the dialect has; what else it has stands beside that."""
BEGUN: Final = {TEXT: "text", THINKING: "thinking"}
"""The blocks that a delta without one is of."""
ADDING: Final = frozenset(MEMBERS.values())
"""What goes on from delta to delta; of anything else the last counts."""


def roll(frames: Iterable[Frame], *, facts: RequestFacts, ledger: Ledger) -> Json:
    """The whole answer that a stream makes. A block that begins at a place that is taken is another one.

    What a message must have and lacks is made. What stands beside a message, or a block, in an event stands in it. What
    an event of another kind tells is lost.
    """
    message: Json = {}
    blocks: list[_Block] = []
    places: dict[int, _Block] = {}
    for frame in frames:
        said = said_in(frame)
        kind, place = said.get("type") or frame.name.decode("utf-8", "replace"), said.get("index")
        beside = {name: value for name, value in said.items() if name not in FRAMED}
        if not said and frame.data.strip() != b"{}":
            ledger.record("messages.forms", "frame", "ignored", "no JSON object")
        of = BEGUN.get(str(object_of(said.get("delta")).get("type")))
        if kind == DELTA and isinstance(place, int) and place not in places and of is not None:
            blocks.append(_Block({"type": of}))
            places[place] = blocks[-1]
            ledger.record("messages.forms", "content_block_start", "mended", "none came before its delta")
        if kind == "message_start":
            _tell(message, beside)
            _tell(message, object_of(said.get("message")))
        elif kind == START and isinstance(place, int):
            blocks.append(_Block({**beside, **object_of(said.get("content_block"))}))
            places[place] = blocks[-1]
        elif kind in (DELTA, STOP) and isinstance(place, int) and place in places:
            places[place].said |= {name: value for name, value in beside.items() if name not in places[place].said}
            places[place].add(object_of(said.get("delta")))
        elif kind == "message_stop":
            _tell(message, beside)
        elif kind == TOLD:
            _tell(message, beside)
            _tell(message, object_of(said.get("delta")))
            usage = {**object_of(message.get("usage"))}
            _tell(usage, object_of(said.get("usage")))
            message["usage"] = usage
        elif kind != "ping" and said:
            ledger.record("messages.forms", str(kind)[:64], "dropped", "a whole answer has no place for it")
    content = [block.whole(ledger) for block in blocks]
    return {**message, **_due(message, facts, ledger), **_stopped(message, content, ledger), "content": content}


def _due(message: Json, facts: RequestFacts, ledger: Ledger) -> Json:
    """What a message must have and lacks."""
    made: Json = {"id": message_id(""), "type": "message", "role": "assistant", "model": facts.model}
    due = {name: value for name, value in made.items() if not message.get(name)}
    if not message.get("usage"):
        ledger.record("messages.forms", *UNCOUNTED)
        due["usage"] = counts_of(Usage())
    return due


def _tell(whole: Json, more: Mapping[str, Any]) -> None:
    """Members of which the last counts that says something."""
    whole |= {name: value for name, value in more.items() if value is not None or name not in whole}
