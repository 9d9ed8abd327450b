"""The items of the server's in a Responses stream that goes back: where each is, and what was told of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    Origin,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.logprobs import scores_in
from pipeline.unread import says
from pipeline.word import word
from stages.dialects.responses.kept import (
    DELTA,
    DONE,
    EVENTS,
    OF_PARTS,
    PART,
    PART_DONE,
    PLACES,
    STAGE,
    UNTRUE,
    Kept,
    Text,
    output_of,
    restated_part,
    said_in,
    silent,
    unknown_in,
)
from stages.dialects.responses.lost import ENDED, FORGOTTEN, GONE, KNOWN, LOST, lose_item, parts_in
from stages.dialects.responses.opaque import JOINT
from stages.dialects.responses.stops import CUT
from stages.dialects.responses.written import ARGUMENTS, INPUT, OUTPUT_TEXT, RAW, REFUSAL, SUMMARY, Json, Words

ADDED: Final = "response.output_item.added"
ITEM_DONE: Final = "response.output_item.done"

SPEAKING: Final = ("message", "reasoning")
"""The items that are ended where their own end was left out."""
TEXTS: Final = (TextDelta, RefusalDelta, ReasoningDelta, ArgumentsDelta)
WORDS: Final[dict[type[Event], Words]] = {
    TextDelta: OUTPUT_TEXT,
    RefusalDelta: REFUSAL,
    ReasoningDelta: SUMMARY,
    ArgumentsDelta: ARGUMENTS,
}
"""What a delta is written as where the server wrote none of its kind."""


ITEMS: Final[dict[str, Json]] = {
    **{words.type: {"type": words.type} for words in (ARGUMENTS, INPUT)},
    **{words.type: {"type": "reasoning", "summary": []} for words in (RAW, SUMMARY)},
    **{words.type: {"type": "message", "role": "assistant"} for words in (OUTPUT_TEXT, REFUSAL)},
}
"""What an item is that nobody announced, by the text that is told of it."""


MOST: Final = 100
"""So many parts that ended too late may be told by an item yet; so much may wait for the first text of a message."""


@define
class Keeper:
    """What the client was told of each item, at which place."""

    ledger: Ledger
    missed: bool = field(init=False, default=False)
    """Frames were left out."""
    moved: bool = field(init=False, default=False)
    """Items are placed anew."""
    next: int = field(init=False, default=0)
    """The place of the next item."""
    items: list[Kept] = field(init=False, factory=list)
    blocks: dict[int, Kept] = field(init=False, factory=dict)
    """The items of the events' blocks."""
    _known: dict[Any, Kept] = field(init=False, factory=dict)
    """The items by the server's place, and by their ids."""
    _late: list[Json] = field(init=False, factory=list)
    """Parts that ended too late, which an item may tell yet."""

    @property
    def finals(self) -> dict[int, Json]:
        """The items that have ended, by their places."""
        return {kept.place: kept.final for kept in self.items if kept.final is not None}

    def passes(self, said: Json) -> bool:
        """Take note of more of a text that is known; whether it is that."""
        step, words = EVENTS.get(str(said.get("type")), ("", None))
        kept = self.of(said)
        if step != DELTA or words is None or kept is None:
            return False
        kept.text_of(said, words).pieces.append(_string(said.get("delta")))
        return True

    def told(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        """What is told where the server tells `said`, of whose events `made` these are left; None if nothing is."""
        back = self._told(str(said.get("type")), said, made, events)
        kept = self.of(said) if back is None else None
        if kept is not None and kept.words is None:
            self.unsaid(said, ENDED if kept.ended else GONE)
            if EVENTS.get(str(said.get("type")), ("",))[0] == PART_DONE:
                self._late.append(_object(said.get("part")))
                if not kept.moved or len(self._late) > MOST:
                    self.lose_late(ENDED if kept.ended else GONE, [kept.final or {}])
        return back

    def lose_late(self, why: str, told: Sequence[Json] = ()) -> None:
        """Parts that ended too late are lost, but for what an item has that was `told`."""
        late, self._late = self._late, []
        lose_item({"content": late}, self.ledger, why, told)

    def told_late(self, said: Json) -> None:
        """The server's end of an item is told as the end of one of ours."""
        self.unsaid(said, ENDED)
        self.lose_late(ENDED, [_object(said.get("item"))])

    def cut(self) -> Iterator[tuple[str, Json]]:
        """The ends of what is the server's alone, before an error; a call that clients run has none."""
        self.lose_late(ENDED)
        for kept in self.items:
            status = CUT.get(word(kept.item.get("type")))
            if kept.final is None and not kept.gone and status is not None:
                yield from kept.closing(status)

    def _told(self, kind: str, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        if kind == ADDED:
            return self._added(said, made, events)
        if kind == ITEM_DONE:
            return self._item_done(said, made, events)
        if kind in EVENTS:
            return self._text(said, made, events)
        return _placed(said, self.of(said))

    def unsaid(self, said: Mapping[str, Any], why: str) -> None:
        """What stands beside a text that is told nowhere is lost."""
        for name in sorted(said.keys() - KNOWN):
            self.ledger.record(STAGE, name[:64], "dropped", why)

    def of(self, said: Mapping[str, Any]) -> Kept | None:
        """The item that an event is of."""
        place, item = said.get("output_index"), said.get("item")
        name = item.get("id") if isinstance(item, dict) else said.get("item_id")
        found = self._known.get(place) if isinstance(place, int) else None
        return found or (self._known.get(name) if isinstance(name, str) else None)

    def _keep(self, said: Mapping[str, Any], item: Json, events: Iterable[Event]) -> Kept:
        """A new item of the server's. A call whose beginning was left out is left out."""
        theirs, name = said.get("output_index"), item.get("id")
        kept = Kept(theirs if isinstance(theirs, int) and not self.moved else self.next, item)
        unknown = {event.index for event in events if isinstance(event, ArgumentsDelta | BlockStop)}
        started = {event.index for event in events if isinstance(event, BlockStart)}
        if kept.words is not None and unknown - started - self.blocks.keys():
            self._leave(kept)
        else:
            self.next = max(self.next, kept.place + 1)
        self.items.append(kept)
        self._known |= {key: kept for key in (theirs, name) if isinstance(key, int | str)}
        return kept

    def left_out(self, item: Any) -> bool:
        """Whether a message that the terminal repeats was told by frames of which none is left."""
        said = {"item_id": item.get("id")} if isinstance(item, dict) and item.get("type") == "message" else {}
        return bool(said and item.get("content")) and self.of(said) is None

    def lose(self, frame: Origin | None, new: Sequence[Json]) -> None:
        """What else stood in a frame that was left out is lost, if no item that was told has it. `new`: those of ours.
        None: there were more such frames than are remembered."""
        if frame is None:
            self.ledger.record(STAGE, "*", "not recorded", FORGOTTEN)
            return
        said = said_in(frame)
        kept = self.of(said)
        why = LOST if kept is None else ENDED if kept.ended else GONE if kept.gone else LOST
        self.unsaid({name: value for name, value in said.items() if says(value)}, why)
        noted = any(isinstance(event, AnnotationDelta) and scores_in(event.annotation) for event in frame.made)
        if says(said.get("logprobs")) and not noted:
            self.ledger.record(STAGE, "logprobs", "dropped", why)
        told = [*new] if kept is None or kept.gone else [*new, kept.final or kept.item]
        item = _object(said.get("item")) or {"content": [said.get("part")]}
        lose_item(item, self.ledger, why, told)

    def leave(self, said: Json) -> None:
        """The item that an event announces is told nowhere."""
        self.unsaid(said, GONE)
        self._leave(
            self._keep(said, _object(said.get("item")) or {"id": said.get("item_id"), **ITEMS[OUTPUT_TEXT.type]}, ())
        )

    def _leave(self, kept: Kept) -> None:
        """It is told nowhere: what comes behind it moves up."""
        kept.gone = self.moved = True
        self.next = min(self.next, kept.place)

    def own(self, kept: Kept, events: Iterable[Event]) -> None:
        """The blocks that begin are of an item."""
        self.blocks.update((event.index, kept) for event in events if isinstance(event, BlockStart))

    def _added(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        item = _object(said.get("item"))
        kept = self._keep(said, item, events)
        self.own(kept, events)
        was, now = _call(made), _call(events)
        if was is not None and now is None:
            self._leave(kept)
        if was is not None and now is not None:
            kept.names |= {"name": now.name} if now.name != was.name else {}
            kept.names |= {"call_id": now.id} if now.id != was.id else {}
        back = _placed(said, kept)
        return back if back is None or not kept.names else {**back, "item": {**item, **kept.names}}

    def _text(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        """An event of a text."""
        step, words = EVENTS[said["type"]]
        part = _object(said.get("part"))
        words = words or OF_PARTS.get(str(part.get("type")))
        kept = self.of(said)
        if kept is None and words is not None and step in (DONE, PART_DONE) and self.missed and not spoken(events):
            return None  # its text was left out, and nothing else was told of it
        if kept is None and words is not None:
            kept = self._keep(said, {"id": said.get("item_id"), **ITEMS[words.type]}, events)
        if kept is not None:
            self.own(kept, events)
        if kept is not None and kept.gone and words is not None and step == PART:
            kept.text_of(said, words).announced = part
        back = _placed(said, kept)
        if back is None and spoken(events):
            self.ledger.record(STAGE, "text", "dropped", ENDED)
        if back is None or kept is None or words is None:
            return back
        text = kept.text_of(said, words)
        if step == PART:
            text.announced = part
            return back
        was, now = spoken(made), spoken(events)
        if step == DELTA:
            return {**back, **_more(text, said, was, now, self.ledger)}
        text.changed = text.changed or was != now
        text.closed = text.closed or step == PART_DONE or text.announced is None
        rest = now if text.pieces else now.removeprefix(JOINT)
        if step == PART_DONE:
            return {**back, "part": restated_part(text, part, rest, self.ledger, doubted=self.missed)}
        names = {name: value for name, value in kept.names.items() if name in said}
        return {**restated_part(text, back, rest, self.ledger, doubted=self.missed), **names}

    def _item_done(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        item = _object(said.get("item"))
        kept = self.of(said) or self._keep(said, item, events)
        self.own(kept, events)
        back = _placed(said, kept)
        if back is None:
            return None
        rest = spoken(events)
        if rest != spoken(made):
            for text in [*kept.texts.values()][-1:]:
                text.changed = True
        kept.final = kept.restated(item, rest, self.ledger, doubted=self.missed)
        return {**back, "item": kept.final}

    def _lose(self, item: Json, told: Sequence[Json]) -> None:
        """What the server tells of an item at its end came too late for those that had ended before: it is lost, if
        none of what was `told` of its text has it."""
        late = {name for name in item if not any(name in one for one in told)}
        parts = [part for one in told for part in parts_in(one)]
        late |= {name for one in parts_in(item) for name in one if one[name] and not any(map(_has(name), parts))}
        for name in sorted(late):
            self.ledger.record(STAGE, name[:64], "dropped", ENDED)

    def closing(self, said: Json) -> Iterator[tuple[str, Json]]:
        """The ends of items whose own were left out, with what the terminal says of them."""
        told = _object(said.get("response")).get("output")
        self.lose_late(ENDED)
        for kept in self.items:
            if kept.gone and kept.words is None and not kept.moved:
                self.unsaid(kept.item, GONE)
                for text in kept.texts.values():
                    self.unsaid(unknown_in(text.announced or {}), GONE)
        for kept in self.items if self.missed or self.moved else ():
            if kept.final is None and not kept.gone and word(kept.item.get("type")) in SPEAKING:
                items = map(_object, told if isinstance(told, list) else ())
                item = next((item for item in items if self.of({"item": item}) is kept), {})
                kept.item |= {name: value for name, value in item.items() if name not in PLACES}
                yield from kept.closing("incomplete" if item.get("status") == "incomplete" else "completed")

    def revived(self, said: Json, events: Iterable[Event]) -> Iterator[tuple[str, Json]]:
        """The beginning of a message that was left out and speaks after all."""
        kept = self.of(said)
        if kept is not None and spoken(events):
            yield from self.revive(kept)

    def revive(self, kept: Kept) -> Iterator[tuple[str, Json]]:
        """The same, if that was left out."""
        if not kept.gone or kept.item.get("type") != "message":
            return
        kept.gone, kept.place = False, self.next
        self.moved, self.next = True, self.next + 1
        kept.item |= {"status": "in_progress", "content": []}
        yield ADDED, {"output_index": kept.place, "item": kept.item}
        for (_, at), text in sorted(kept.texts.items()):
            if text.announced is not None:
                where = {"item_id": kept.item.get("id"), "output_index": kept.place, text.words.index: at}
                yield f"{text.words.part}.added", {**where, "part": text.announced}

    def output(self, told: Sequence[Any], new: Mapping[int, Json], *, retold: bool) -> list[Any]:
        """The output of the response, as it was really told, with the items that are `new`.

        `retold`: what only the terminal would tell was told before it.
        """
        out: dict[int, Any] = {}
        for at, item in enumerate(told):
            name = _object(item).get("id")
            kept = (self._known.get(name) if isinstance(name, str) else None) or self._known.get(at)
            if kept is None and not retold:
                out[self.next + at] = item
            elif kept is not None and not kept.gone:
                if kept.ended and kept.final is not None:
                    self._lose(_object(item), [kept.final, *new.values()])
                out[kept.place] = kept.final or kept.restated(item, "", self.ledger, doubted=self.missed)
        if new and not told:
            out |= self.finals
        return output_of([*{**out, **new}.items()])


def _more(text: Text, said: Json, was: str, now: str, ledger: Ledger) -> Json:
    """What is told of a delta, of which note is taken; that two parts are joined is not told."""
    told = _string(said.get("delta"))
    if now == was:
        text.pieces.append(told)
        return {}
    joint = was.removesuffix(told) if told else ""
    new = now.removeprefix(joint)
    text.pieces.append(new)
    text.changed = True
    return {"delta": new, **silent(said, ledger)}


def _placed(said: Json, kept: Kept | None) -> Json | None:
    """An event at the place of its item; None if that was left out, or has ended."""
    if kept is None:
        return said
    if kept.gone or kept.ended:
        return None
    return {**said, "output_index": kept.place} if "output_index" in said else said


def spoken(events: Iterable[Event]) -> str:
    """The texts of events."""
    return "".join(event.text for event in events if isinstance(event, TEXTS))


def honest(made: Sequence[Event], events: Sequence[Event], ledger: Ledger) -> Sequence[Event]:
    """What is left of a frame's events `made`, without what they say of the tokens of its text, if that was changed."""
    if spoken(made) == spoken(events):
        return events
    left = [event for event in events if not (isinstance(event, AnnotationDelta) and scores_in(event.annotation))]
    if len(left) < len(events):
        ledger.record(STAGE, *UNTRUE)
    return left


def _call(events: Iterable[Event]) -> ToolUseBlock | None:
    blocks = (event.block for event in events if isinstance(event, BlockStart))
    return next((block for block in blocks if isinstance(block, ToolUseBlock)), None)


def _has(name: str) -> Callable[[Json], bool]:
    """Whether a part has a member that says something, if an empty one would be of ours."""
    return lambda part: bool(part.get(name)) if name in OUTPUT_TEXT.empty else name in part


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
