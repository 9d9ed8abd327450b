"""A whole response as the stream of it, and a stream as the whole response: all members are in both."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from attrs import define, evolve, field

from pipeline.dialect import RequestFacts
from pipeline.events import Frame, StopReason
from pipeline.jsontext import as_written, is_object
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.unread import says
from stages.dialects.responses.announced import INSTEAD, Announced
from stages.dialects.responses.encode import UNASKED
from stages.dialects.responses.errors import failed as failure_of
from stages.dialects.responses.errors import failed_error
from stages.dialects.responses.grammar import REASONS as KNOWN
from stages.dialects.responses.keeper import ADDED, ITEM_DONE
from stages.dialects.responses.kept import CALLS, DELTA, EVENTS, OF_PARTS, PART, PART_DONE, Kept, Text, said_in
from stages.dialects.responses.normalize import DONE, FAILED, LIFE, STOP_REASONS, TERMINALS
from stages.dialects.responses.opaque import BLOB
from stages.dialects.responses.patch import REPEAT
from stages.dialects.responses.stops import INCOMPLETE as REASONS
from stages.dialects.responses.usage import tells, usage_object, usage_of
from stages.dialects.responses.written import ARGUMENTS, OUTPUT_TEXT, Json, Wire, Words

BESIDE: Final = frozenset({"type", "sequence_number", "response"})
"""What an event that tells of a response has."""
AT_THE_END: Final = ("usage", "error", "incomplete_details", "completed_at")
"""What a response that has begun says nothing of yet."""
DUE: Final = ("parallel_tool_calls", "tool_choice", "tools")
"""What a response must say of its request, by the SDKs' types."""
PREFIXES: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
ENDED: Final = ("msg", "fc", "ctc")
"""Those that say whether they have ended."""
PARTED: Final[dict[str, dict[str, str]]] = {
    "message": {"content": "output_text"},
    "reasoning": {"content": "reasoning_text", "summary": "summary_text"},
}
"""Where the parts of an item stand, and the type of those that name none. What comes first is shown, the raw text of
reasoning as it is in a whole answer."""
NAMES: Final = ("id", "call_id")
"""What tells an item from others."""
LOOKED_AT: Final = 64
"""So many items are looked at for one that says the same."""
COMPLETED, INCOMPLETE = "completed", "incomplete"


def unroll(body: bytes, *, facts: RequestFacts, ledger: Ledger, clock: Callable[[], float] = time.time) -> list[Frame]:
    """The stream of a whole response: every item announced, told part by part, and told whole.

    What the response or an item must have and lacks is made.
    """
    said = as_written(body)
    base = _whole(said, facts, clock)
    untold: Json = dict.fromkeys(name for name in AT_THE_END if name in base)
    begun = base | untold | {"status": "in_progress", "output": []}
    begun.pop(REPEAT, None)
    status = base.get("status")
    failed = str(status) in FAILED or says(base.get("error"))
    unrolled = _Unrolled(ledger, failed)
    for kind in ("response.created", "response.in_progress"):
        unrolled.write(kind, {"response": begun})
    items = said.get("output")
    told = items if isinstance(items, list) else []
    output = [whole for item in told if isinstance(item, dict) and (whole := unrolled.item(item)) is not None]
    if failed and not says(base.get("error")):
        base["error"] = failed_error(evolve(failure_of(base), retryable=True))  # a `server_error`
        ledger.record("responses.forms", "error", "mended", "none was told")
    ended = ("failed",) if failed else (COMPLETED, INCOMPLETE)
    if status not in ended:
        status = ended[0]
        ledger.record("responses.forms", "status", "translated", "an answer of any other status ends the turn")
    due = {"status": status, "output": output, **_reason(base, str(status), ledger), **_counted(base, ledger)}
    unrolled.write(f"response.{status}", {"response": {**base, **due}})
    return unrolled.frames


def _reason(base: Json, status: str, ledger: Ledger) -> Json:
    """Why a response is incomplete, in a word that clients know; of any other nothing is told of that."""
    details = base.get("incomplete_details")
    word = details.get("reason") if isinstance(details, dict) else None
    if status != INCOMPLETE:
        if says(details):
            ledger.record("responses.forms", "incomplete_details", "dropped", "the response is not incomplete")
        return {} if details is None else {"incomplete_details": None}
    if word in KNOWN:
        return {}
    how = ("translated", "no client knows it") if says(word) else ("mended", "none was told")
    ledger.record("responses.forms", "incomplete_details", *how)
    due = REASONS[STOP_REASONS.get(word, StopReason.MAX_TOKENS) if isinstance(word, str) else StopReason.MAX_TOKENS]
    return {"incomplete_details": {**(details if isinstance(details, dict) else {}), "reason": due}}


def _whole(said: Json, facts: RequestFacts, clock: Callable[[], float]) -> Json:
    """A response with all that it must have, and no more."""
    made: Json = {"id": f"resp_{secrets.token_hex(16)}", "object": "response", "created_at": int(clock())}
    asked = {name: facts.echo.get(name, UNASKED[name]) for name in DUE}
    due = {**made, "model": facts.model, **asked}
    return {**due, **{name: value for name, value in said.items() if value is not None or due.get(name) is None}}


@define
class _Unrolled:
    """A response while it is told."""

    ledger: Ledger
    failed: bool
    """Whether it failed: a call that has not ended never does, for a client would run it."""
    frames: list[Frame] = field(factory=list)
    _wire: Wire = field(factory=Wire)
    _place: int = 0
    _ids: set[str] = field(factory=set)

    def write(self, kind: str, members: Json) -> None:
        """One event."""
        self._wire.write(kind, members, self.frames)

    def item(self, said: Json) -> Json | None:
        """An item from its announcement to its end, as it is told there; None if it has none."""
        item = self._named(said)
        kind = str(item.get("type"))
        cut = self.failed and kind in CALLS and item.get("status") != COMPLETED
        at = {"output_index": self._place}
        where = {"item_id": item["id"], **at}
        words, parted = CALLS.get(kind), PARTED.get(kind, {})
        parts = {member: [*_parts(item.get(member), name)] for member, name in parted.items() if _has(item, member)}
        item |= parts
        begun = {**item, **{member: [] for member in parts}, **({} if words is None else {words.member: ""})}
        if "status" in item and (parts or words):
            begun["status"] = "in_progress"
        self.write(ADDED, {**at, "item": begun})
        for member, told in parts.items():
            for place, part in enumerate(told):
                self._part(part, {**where, "summary_index" if member == "summary" else "content_index": place})
        if words is not None and isinstance(text := item.get(words.member), str):
            if text:
                self.write(f"{words.event}.delta", {**where, "delta": text})
            if item.get("status") != INCOMPLETE and not cut:
                self.write(f"{words.event}.done", {**where, words.member: text})
        self._place += 1
        if cut:
            self.ledger.record("responses.forms", "output[]", "dropped", "the answer failed, and the call has no end")
            return None
        self.write(ITEM_DONE, {**at, "item": item})
        return item

    def _named(self, said: Json) -> Json:
        """An item with an id of its own; what speaks or is called has ended."""
        prefix, name = PREFIXES.get(str(said.get("type")), "item"), said.get("id")
        if not isinstance(name, str) or not name or name in self._ids:
            if name:
                self.ledger.record("responses.forms", "output[].id", "renamed", "another item has it, or it is none")
            name = f"{prefix}_{secrets.token_hex(16)}"
        self._ids.add(name)
        status = said.get("status", COMPLETED)
        due = INCOMPLETE if status == INCOMPLETE or (self.failed and status != COMPLETED) else COMPLETED
        ended = {"status": due} if prefix in ENDED else {}
        if ended and status != due:
            self.ledger.record(
                "responses.forms", "output[].status", "translated", "the answer has ended, and its items"
            )
        return {**said, "id": name, **ended}

    def _part(self, part: Json, where: Json) -> None:
        """A part, with its text and the notes on it."""
        words = OF_PARTS.get(str(part.get("type")))
        events = OUTPUT_TEXT.part if words is None else words.part
        if words is None or not isinstance(text := part.get(words.member), str):
            self.write(f"{events}.added", {**where, "part": part})
            self.write(f"{events}.done", {**where, "part": part})
            return
        tokens = {name: part.get(name) or value for name, value in words.beside.items()}
        empty = {words.member: "", **{name: value for name, value in words.empty.items() if name in part}}
        self.write(f"{events}.added", {**where, "part": {**part, **empty}})
        if text:
            self.write(f"{words.event}.delta", {**where, "delta": text, **tokens})
        notes = part.get("annotations")
        for at, note in enumerate(notes if isinstance(notes, list) else ()):
            told = {**where, "annotation_index": at, "annotation": note}
            self.write("response.output_text.annotation.added", told)
        self.write(f"{words.event}.done", {**where, words.member: text, **tokens})
        self.write(f"{events}.done", {**where, "part": part})


def _has(item: Json, member: str) -> bool:
    """Whether an item has parts there; every message has some, and reasoning a summary."""
    return item.get(member) is not None or member == ("content" if item.get("type") == "message" else "summary")


def _parts(value: Any, kind: str) -> Iterable[Json]:
    """The parts of an item; a plain text is one."""
    for part in value if isinstance(value, list) else () if value is None else (value,):
        told = part if isinstance(part, dict) else {"type": kind, "text": part}
        noted = told.get("type", kind) == OUTPUT_TEXT.type and not told.get("annotations")
        yield {**told, **({"annotations": []} if noted else {})}


def _counted(response: Json, ledger: Ledger) -> Json:
    """The `usage` of a response, if it has one, with all that clients demand of it; null if it counts nothing."""
    usage: Any = response.get("usage")
    if not tells(usage):
        if says(usage):
            ledger.record("responses.forms", "usage", "dropped", "it holds no count of tokens")
        return {"usage": None} if "usage" in response else {}
    counts = usage_object(usage_of(usage))
    told = {name: value for name, value in usage.items() if value is not None}
    for name, value in counts.items():
        if isinstance(value, dict) and isinstance(inner := told.get(name), dict):
            told[name] = {**value, **{part: count for part, count in inner.items() if count is not None}}
    return {"usage": {**counts, **told}}


def roll(
    frames: Iterable[Frame], *, facts: RequestFacts, ledger: Ledger, clock: Callable[[], float] = time.time
) -> Json:
    """The whole response that a stream makes: as its events told it last. What it leaves out was told item by item.

    What it must have and lacks is made. What stands beside it in its events is lost.
    """
    response: Json = {}
    rolled = _Rolled(ledger)
    for frame in frames:
        said = said_in(frame)
        if not said and frame.data.strip() not in (DONE, b"{}"):
            ledger.record("responses.forms", "frame", "ignored", "no JSON object")
        kind = str(said.get("type"))
        rolled.take(kind, said)
        told = said if said.get("object") == "response" else said.get("response")
        if isinstance(told, dict) and (kind in LIFE or kind in TERMINALS or told is said):
            response |= told
            response["status"] = told.get("status") or TERMINALS.get(kind)
            for name in sorted(said.keys() - BESIDE) if told is not said else ():
                ledger.record("responses.forms", name[:64], "dropped", "it stands beside the response")
        elif kind in TERMINALS:
            response["status"] = TERMINALS[kind]
    usage = _counted(response, ledger)
    output = rolled.whole(response.get("output"), str(response.get("status")))
    return {**_whole(response, facts, clock), "output": output, **usage}


@define
class _Rolled:
    """The items of a response while they come."""

    ledger: Ledger
    items: list[Kept] = field(factory=list)
    _places: dict[int, Kept] = field(factory=dict)

    def take(self, kind: str, said: Json) -> None:
        """What an event tells of an item."""
        item, at = said.get("item"), said.get("output_index")
        place = at if isinstance(at, int) else None
        known = self._known(place, said.get("item_id") or (item.get("id") if isinstance(item, dict) else None))
        if kind in (ADDED, ITEM_DONE) and isinstance(item, dict):
            if known is None or kind == ADDED:
                known = Kept(len(self.items) if place is None else place, item)
                self.items.append(known)
                self._places[known.place] = known
                _foretell(known, item)
            if kind == ITEM_DONE:
                known.final = item
        elif known is not None and kind in EVENTS:
            _tell(known, said, *EVENTS[kind], self.ledger)

    def _known(self, place: int | None, name: Any) -> Kept | None:
        """The item at a place, else that of an id, else the last."""
        if place is not None:
            return self._places.get(place)
        named = (item for item in reversed(self.items) if name and item.item.get("id") == name)
        return next(named, self.items[-1] if self.items and not name else None)

    def whole(self, output: Any, status: str) -> list[Any]:
        """All items, as the response tells them at its end; those that it leaves out as they were told, each behind
        the one that came before it. Of a response that failed they are those that had ended."""
        told = [*output] if isinstance(output, list) else []
        free = {at: item for at, item in enumerate(told) if isinstance(item, dict)}
        named = {(name, item[name]): at for at, item in free.items() for name in NAMES if _is_name(item.get(name))}
        ended = [kept for kept in self.items if kept.final is not None or status not in FAILED]
        due = COMPLETED if status == COMPLETED else INCOMPLETE
        items = [(kept.final or kept.whole(due), kept.place) for kept in sorted(ended, key=lambda one: one.place)]
        places: list[int | None] = []
        for item, _ in items:  # all names first: what is only like another may be a third one's
            found = (named.get((name, item[name]), -1) for name in NAMES if _is_name(item.get(name)))
            places.append(next((at for at in found if free.pop(at, None) is not None), None))
        behind: dict[int, list[Json]] = {}
        last = -1
        for (item, place), at in zip(items, places, strict=True):
            if at is None and (at := _alike(item, place, free)) is not None:
                del free[at]
            if at is None:
                behind.setdefault(last, []).append(item)
            else:
                told[at] = _filled(told[at], item)
                last = at
        return [*behind.get(-1, ()), *(one for at, item in enumerate(told) for one in (item, *behind.get(at, ())))]


def _foretell(kept: Kept, item: Json) -> None:
    """What an announcement tells of the texts of an item."""
    if (words := CALLS.get(str(item.get("type")))) is not None:
        if isinstance(text := item.get(words.member), str) and text:
            whole = words is ARGUMENTS and is_object(text, DEFAULT_LIMITS.json_depth)
            kept.texts["call", 0] = Text(words, None, Announced(text, whole), [text])
        return
    for member in PARTED.get(str(item.get("type")), {}):
        parts = item.get(member)
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            spoken = OF_PARTS.get(str(part.get("type"))) if isinstance(part, dict) else None
            if spoken is not None and isinstance(text := part.get(spoken.member), str) and text:
                kept.texts[member, at] = Text(spoken, part, Announced(text), [text])


def _tell(kept: Kept, said: Json, step: str, words: Words | None, ledger: Ledger) -> None:
    """What an event tells of a text of an item."""
    part = said.get("part")
    if words is None:
        words = OF_PARTS.get(str(part.get("type"))) if isinstance(part, dict) else None
    if words is None:
        return
    text = kept.text_of(said, words)
    if step in (PART, PART_DONE) and isinstance(part, dict):
        text.announced = part
    whole = part.get(words.member) if isinstance(part, dict) else said.get(words.member)
    if step == DELTA and isinstance(more := said.get("delta"), str):
        if (first := text.first) is None:
            text.pieces.append(more)
        elif (joined := first.behind(more)) is not None:
            text.pieces, text.first = [joined], None
            if first.lost:
                ledger.record("responses.forms", INSTEAD[0], "dropped", INSTEAD[1])
    elif step != DELTA and isinstance(whole, str) and whole:
        text.pieces, text.first = [whole], Announced(whole) if step == PART else None


def _kind(item: Json) -> tuple[Any, Any]:
    return item.get("type"), item.get("name")


def _alike(item: Json, place: int, free: Mapping[int, Json]) -> int | None:
    """Where of the items that a response tells at its end an item stands under another name: the one at its place if
    that is of its type, and calls the same tool if it calls one, but rather one that says the same."""
    alike = [at for at in (place, *islice(free, LOOKED_AT)) if at in free and _kind(free[at]) == _kind(item)]
    said = _says(item)
    return next((at for at in alike if _says(free[at]) == said), place if place in alike else None)


def _filled(told: Json, item: Json) -> Json:
    """An item as the response tells it at its end, with what of it was told before if it says nothing there: its text,
    and the blob of reasoning, which goes with the id that it came under."""
    kind = str(told.get("type"))
    words, parted = CALLS.get(kind), PARTED.get(kind, {})
    if words is not None:
        return told if told.get(words.member) else {**told, **_some(item, (words.member,))}
    parts = (part for name, of in parted.items() for part in _parts(told.get(name), of))
    odd = any(str(part.get("type")) not in OF_PARTS for part in parts)
    if parted and not odd and not any(_says(told)) and any(_says(item)):
        told = {**told, **_some(item, parted)}
    if kind == "reasoning" and item.get(BLOB) and not told.get(BLOB):
        told = {**told, **_some(item, ("id", BLOB))}
    return told


def _some(item: Json, members: Iterable[str]) -> Json:
    """Those of these members that say something."""
    return {name: item[name] for name in members if item.get(name)}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _says(item: Json) -> list[Any]:
    """What an item says, whatever it is called."""
    words = CALLS.get(str(item.get("type")))
    if words is not None:
        return [item.get("name"), item.get(words.member)]
    parts = (
        part
        for member, kind in PARTED.get(str(item.get("type")), {}).items()
        for part in _parts(item.get(member), kind)
    )
    return [part.get(words.member) for part in parts if (words := OF_PARTS.get(str(part.get("type")))) is not None]
