"""The items of a Responses stream as the client was told them, so that what repeats them can be restated."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.change import reparted
from pipeline.events import BlockDelta, BlockStart, BlockStop, Event, Frame
from pipeline.jsontext import dumps, loads, whole_text
from pipeline.ledger import Ledger
from pipeline.message import Content, Message, disassemble
from stages.dialects.responses.announced import Announced
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.written import (
    ARGUMENTS,
    INPUT,
    OUTPUT_TEXT,
    RAW,
    REFUSAL,
    SUMMARY,
    Json,
    Words,
    Written,
    WrittenCall,
    WrittenParts,
)

STAGE: Final = "ResponsesReturner"
UNTRUE: Final = ("logprobs", "dropped", "the text that they tell of was changed")

DELTA, DONE, PART, PART_DONE = "delta", "done", "part", "part done"
"""What an event tells of a text."""

CALLS: Final = {words.type: words for words in (ARGUMENTS, INPUT)}
OF_PARTS: Final = {words.type: words for words in (OUTPUT_TEXT, REFUSAL, RAW, SUMMARY)}
EVENTS: Final[dict[str, tuple[str, Words | None]]] = {
    **{
        f"{words.event}.{step}": (step, words)
        for words in (OUTPUT_TEXT, REFUSAL, SUMMARY, RAW, ARGUMENTS, INPUT)
        for step in (DELTA, DONE)
    },
    **{
        f"{part}.{word}": (step, SUMMARY if part == SUMMARY.part else None)
        for part in (OUTPUT_TEXT.part, SUMMARY.part, "response.reasoning_part")
        for word, step in (("added", PART), ("done", PART_DONE))
    },
}
"""What the events of texts tell, and of what kind of text; None: the part says it."""

PLACES: Final = ("content", "summary")
"""Where an item's parts stand."""

ITEM: Final[Json] = {"id": "", "type": "message", "role": "assistant"}
"""What every message has beside its parts."""

Key = tuple[str, int]


@define(eq=False)
class Text:
    """A part of an item, or the text of a call, as it was told to the client."""

    words: Words
    announced: Mapping[str, Any] | None = None
    """The part as it was announced."""
    first: Announced | None = None
    """What its announcement tells, while nothing is known of what comes behind it."""
    pieces: list[str] = field(factory=list)
    changed: bool = False
    """It is not what the server said."""
    closed: bool = False
    anew: bool = False
    """It is told anew, and so must be its end."""

    @property
    def text(self) -> str:
        """What was told of it."""
        return whole_text("".join(self.pieces))

    def whole(self, told: str, rest: str, *, doubted: bool) -> str:
        """The whole of it, where the server tells it as `told`, of which `rest` was not told before.

        `doubted`: something was left out, of this text perhaps.
        """
        text = self.text + rest
        if text == told or not (self.changed or doubted):
            self.pieces = [told]
            return told
        self.changed = True
        self.pieces = [text]
        return text


@define(eq=False)
class Kept:
    """An item of the server's, at its place in what the client was told."""

    place: int
    item: Json
    """As it was announced."""
    names: Json = field(factory=dict)
    """Members of it that were changed."""
    final: Json | None = None
    """As it was told at its end."""
    ended: bool = False
    """It was ended for the client before the server ended it."""
    gone: bool = False
    """It was left out."""
    moved: bool = False
    """An item of ours has what stands beside its text."""
    texts: dict[Key, Text] = field(factory=dict)
    beside: Json = field(factory=dict)
    """What its end says beside its text, which the next part has."""

    @property
    def words(self) -> Words | None:
        """Of a call: what its text is called."""
        return CALLS.get(str(self.item.get("type")))

    @property
    def silent(self) -> bool:
        """It is a message that has said nothing yet."""
        if self.final is not None or self.item.get("type") != "message":
            return False
        return not any(text.pieces for text in self.texts.values())

    def text_of(self, said: Mapping[str, Any], words: Words) -> Text:
        """The text that an event is of."""
        place = said.get("summary_index" if words is SUMMARY else "content_index")
        member = "call" if words in CALLS.values() else "summary" if words is SUMMARY else "content"
        key = (member, place if isinstance(place, int) else 0)
        return self.texts.setdefault(key, Text(words))

    def restated(self, item: Mapping[str, Any], rest: str, ledger: Ledger, *, doubted: bool) -> Json:
        """The item as the server tells it at its end, with what was really told of its texts, and its names."""
        told: Json = {**item, **{name: value for name, value in self.names.items() if name in item}}
        for (member, at), text in self.texts.items():
            if member == "call":
                if isinstance(whole := told.get(text.words.member), str):
                    told[text.words.member] = text.whole(whole, rest, doubted=doubted)
            elif isinstance(parts := told.get(member), list) and at < len(parts):
                told[member] = [*parts]
                more = rest if len(parts) == 1 else ""
                told[member][at] = restated_part(text, parts[at], more, ledger, doubted=doubted)
        return told

    def whole(self, status: str) -> Json:
        """The item as far as it was told, for where the server does not tell its end."""
        item: Json = {**self.item, **self.names}
        if "status" in item:
            item["status"] = status
        for (member, at), text in sorted(self.texts.items()):
            if member == "call":
                item[text.words.member] = text.text
            elif text.pieces or text.announced is not None:
                parts = [*(item.get(member) or [])]
                known = at < len(parts) and isinstance(parts[at], dict) and parts[at].get("type") == text.words.type
                place = at if known else len(parts)
                item[member] = [*parts[:place], text_part(text), *parts[place + 1 :]]
        return item

    def closing(self, status: str) -> Iterator[tuple[str, Json]]:
        """The events that end it: of each of its texts, and its own."""
        self.item = {**self.item, **{member: [] for member in PLACES if self.item.get(member)}}
        for (member, at), text in sorted(self.texts.items()):
            if not text.closed and (member != "call" or status == "completed"):
                yield from self.ending(text, at)
        self.final, self.ended = self.whole(status), True
        yield "response.output_item.done", {"output_index": self.place, "item": self.final}

    def ending(self, text: Text, at: int, *, part: bool = True) -> Iterator[tuple[str, Json]]:
        """The end of a text, and of its `part`."""
        spot: Json = {"item_id": self.item.get("id"), "output_index": self.place}
        if text.words not in CALLS.values():
            spot[text.words.index] = at
        yield f"{text.words.event}.done", {**spot, text.words.member: text.text, **text.words.beside}
        if not part:
            return
        if text.announced is not None:
            yield f"{text.words.part}.done", {**spot, "part": text_part(text)}
        text.closed = True


@define
class NewItems(ResponsesEncoder):
    """Items that no frame brought, at the places and under the numbers that are next."""

    _due: int = field(init=False, default=0)
    _taken: set[str] = field(init=False, factory=set)
    """The ids of the server's that they have."""

    def adopt(self, response: Mapping[str, Any]) -> None:
        """They are of this response."""
        self._base = {"id": str(response.get("id", ""))}

    def put(self, event: Event, number: int, place: int) -> list[Frame]:
        """The frames of an event."""
        self._wire.sequence, self._due = number, place
        return [*self.receive([event])]

    def another(self, start: BlockStart, item: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        """A message begins that holds text of an item of the server's: it has all that this has beside its text, and
        its id, if that is free."""
        beside = {name: value for name, value in item.items() if name not in (*PLACES, "status")}
        name = beside.get("id")
        if not isinstance(name, str) or not name or name in self._taken:
            name = self._id("msg")
        self._taken.add(name)
        said = {**ITEM, **beside, "id": name}
        self._blocks[start.index] = WrittenParts(self._wire, -1, name, said, "content", unknown_in(part))

    def tell(self, index: int, item: Mapping[str, Any]) -> None:
        """What the server tells at its end of the item whose text one of them holds."""
        written, parts = self._blocks.get(index), item.get("content")
        if isinstance(written, WrittenParts) and written.has_status:
            known = {*written.item, *PLACES, "status"}
            written.item |= {name: value for name, value in item.items() if name not in known}
            if isinstance(parts, list) and parts and isinstance(parts[-1], dict):
                written.beside = {**unknown_in(parts[-1]), **written.beside}

    def cut(self, number: int, place: int) -> list[Frame]:
        """The ends of those that are open, but for calls."""
        self._wire.sequence, self._due = number, place
        out: list[Frame] = []
        for item in self._blocks.values():
            if item is not None and item.place >= 0 and not isinstance(item, WrittenCall):
                item.close(out, complete=False)
        self._blocks.clear()
        return out

    def whole(self, contents: Sequence[Content], of: Mapping[str, Any] | None = None) -> list[Json]:
        """Items that hold these contents, told whole. `of`: the item of the server's that they hold text of."""
        known = len(self._items)
        for event in disassemble(Message("", "", tuple(contents))):
            if of is not None and isinstance(event, BlockStart):
                parts = of.get("content")
                part = parts[-1] if isinstance(parts, list) and parts and isinstance(parts[-1], dict) else {}
                self.another(event, {**of, "id": None}, part)
            elif isinstance(event, BlockStart | BlockDelta | BlockStop):
                self.receive([event])
        return [item.final for item in self._items[known:] if item.final is not None]

    @property
    def next_place(self) -> int:
        """The place behind the last of them."""
        return self._due

    @property
    def finals(self) -> dict[int, Json]:
        """Those that have ended, by their places."""
        return {item.place: item.final for item in self._items if item.final is not None}

    def _stop(self, item: Written, out: list[Frame], *, complete: bool) -> None:
        item.close(out, complete=complete)

    def holds(self, index: int) -> bool:
        """Whether a block is of one of them, and open."""
        return index in self._blocks

    def _id(self, prefix: str) -> str:
        """An id that no item of the server's has, even if its ids are made as ours are, by another hop of ours."""
        return f"{prefix}_{secrets.token_hex(16)}"

    def _place(self, item: Written) -> None:
        if item.place < 0:
            item.place, self._due = self._due, self._due + 1
            self._items.append(item)


def text_part(text: Text) -> Json:
    """A part with its text."""
    words = text.words
    return {**(text.announced or {"type": words.type, **words.empty}), words.member: text.text}


def restated_part(text: Text, part: Any, rest: str, ledger: Ledger, *, doubted: bool) -> Any:
    """A part as it was really told; what is said of its tokens goes with a text that was changed."""
    if not isinstance(part, dict) or not isinstance(told := part.get(text.words.member), str):
        return part
    whole = text.whole(told, rest, doubted=doubted)
    return part if whole == told else {**part, text.words.member: whole, **silent(part, ledger)}


def respoken(parts: Sequence[Any], words: Words, text: str, ledger: Ledger, joint: str = "") -> list[Any]:
    """The parts of an item with another text in those of a kind; one that says nothing any more is left out."""
    spoken = [at for at, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get(words.member), str)]
    new = dict(zip(spoken, reparted([parts[at][words.member] for at in spoken], text, joint), strict=True))
    out: list[Any] = []
    for at, part in enumerate(parts):
        if at not in new:
            out.append(part)
        elif (now := new[at]) is not None:
            out.append(restated_part(Text(words, pieces=[now], changed=True), part, "", ledger, doubted=False))
        else:
            for name in filter(part.get, unknown_in(part)):
                ledger.record(STAGE, name[:64], "dropped", "nothing is left of its text")
    return out


def unknown_in(part: Mapping[str, Any]) -> Json:
    """What a part has beside what we write in every part."""
    known = ("type", OUTPUT_TEXT.member, REFUSAL.member, *OUTPUT_TEXT.empty)
    return {name: value for name, value in part.items() if name not in known}


def silent(said: Mapping[str, Any], ledger: Ledger) -> Json:
    """What is said of the tokens of a text that was changed: nothing."""
    if not said.get("logprobs"):
        return {}
    ledger.record(STAGE, *UNTRUE)
    return {"logprobs": []}


def said_in(frame: Frame) -> Json:
    """The event that a frame is; empty if it is none."""
    try:
        said = loads(frame.data)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def output_of(told: Sequence[tuple[int, Json]]) -> list[Json]:
    """Items in the order of their places."""
    return [item for _, item in sorted(told, key=lambda pair: pair[0])]


def framed(said: Json) -> Frame:
    """The frame of an event."""
    return Frame(dumps(said), str(said.get("type", "")).encode())
