"""A Messages stream for a Messages client: frames go back as they came; what was changed is patched."""

from collections.abc import Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Origin,
    Ping,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StreamError,
    TextDelta,
    ToolUseBlock,
    moved,
)
from pipeline.jsontext import dumps, loads
from pipeline.ledger import Ledger
from stages.dialects.messages.encode import PING, content_of, message_of, told_of
from stages.dialects.messages.errors import error_body
from stages.dialects.messages.lost import FORGOTTEN, STAGE, LostFrames
from stages.dialects.messages.opaque import blob_of
from stages.dialects.messages.usage import counts_of
from stages.dialects.messages.words import CITATION, CITATIONS, DELTA, INPUT, MEMBERS, SIGNATURE, TEXT, THINKING

START: Final = "content_block_start"
STOP: Final = "content_block_stop"
TOLD: Final = "message_delta"
PLACED: Final = frozenset({BlockStart, BlockStop, Carry})
"""The events of frames that tell where a block stands, or may."""
MOST: Final = 100
"""So many frames wait for the terminal behind what was told of the end."""
INDEXED: Final = (START, DELTA, STOP)
"""The types of frames that tell where a block stands; what is looked for among them may be anything."""

KINDS: dict[type[Event], str] = {
    TextDelta: TEXT,
    RefusalDelta: TEXT,
    ReasoningDelta: THINKING,
    ArgumentsDelta: INPUT,
}
"""What a delta is written as."""


@define
class MessagesReturner:
    """While nothing was changed, every frame goes back as it came, whatever law it breaks.

    From the first change on, indexes are redone: dense, in the order in which blocks begin. A frame that was changed
    keeps every member that nobody changed. What is told of the end waits for the terminal, which tells whether it was
    changed.
    """

    ledger: Ledger = field(factory=Ledger, kw_only=True)
    _moved: bool = field(init=False, default=False)
    """Indexes are redone."""
    _next: int = field(init=False, default=0)
    """The index of the next block."""
    _places: dict[Any, int] = field(init=False, factory=dict)
    """The indexes of blocks by the server's."""
    _known: dict[int, int] = field(init=False, factory=dict)
    """The indexes of blocks by ours, the events'."""
    _open: dict[int, bool] = field(init=False, factory=dict)
    """The open blocks, and whether each is a call."""
    _told: list[Frame] = field(init=False, factory=list)
    """What was told of the end, and what came behind it."""
    _called: bool = field(init=False, default=False)
    """A call of ours was told whole."""
    _over: bool = field(init=False, default=False)
    """The terminal has come."""
    _parted: int = field(init=False, default=-1)
    """The last frame of which a part was written, and with it what stands beside that."""
    _lost: LostFrames = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lost = LostFrames(self.ledger)

    def passes(self, frame: Origin, event: Event) -> bool:
        """More of a block goes back unseen, unless indexes are redone, or the end was told."""
        return not (self._moved or self._told)

    def missing(self) -> None:
        """Frames were left out."""
        self._moved = True

    def lost(self, frame: Origin | None) -> None:
        """What else stood in a frame that was left out is recorded, unless its block began after all."""
        if frame is None:
            self.ledger.record(STAGE, "*", "not recorded", FORGOTTEN)
            return
        said = said_in(frame)
        if said.get("type") != START or _key(said.get("index")) not in self._places:
            self._lost.lose(said)

    def unchanged(self, frame: Origin, events: Sequence[Event]) -> Sequence[Frame]:
        """A frame goes back as it came, but for its index."""
        if isinstance(events[-1], MessageStop | StreamError):
            self._over = True
            return [*(self._end() if isinstance(events[-1], MessageStop) else self._broken()), frame]
        if self._over or (not (self._moved or self._told) and PLACED.isdisjoint(map(type, events))):
            return (frame,)
        said = said_in(frame)
        if self._moved and isinstance(events[0], Carry) and self._is_late(said):
            self._lost.late(said)
            return ()
        back = self._back(frame, said, events)
        if not self._told and said.get("type") != TOLD:
            return (back,)
        self._told.append(back)
        return () if len(self._told) < MOST else self._end()

    def _back(self, frame: Origin, said: dict[str, Any], events: Sequence[Event]) -> Frame:
        """The frame as it goes back."""
        kind, index = said.get("type"), said.get("index")
        if kind not in INDEXED:
            return frame
        place = self._begin(index, said, events) if kind == START else self._places.get(_key(index))
        if kind == STOP and place is not None:
            self._open.pop(place, None)
            self._know(events, place)
        return frame if place is None or place == index or not self._moved else framed({**said, "index": place})

    def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
        """What is left of a frame is written with its other members, what no frame made is written anew."""
        said = {} if frame is None else said_in(frame)
        patched = self._patched(said, events, () if frame is None else frame.made)
        if frame is not None and patched is not None:
            self._parted = frame.number
        if patched is not None:
            return patched
        self._moved = True
        if frame is not None and frame.number > self._parted and said.get("type") in INDEXED:
            self._lost.lose(said)
        return [written for event in events for written in self._anew(event)]

    def another(self, frame: Origin, start: BlockStart) -> Sequence[Frame]:
        """It begins as the server's did, at the next place, with nothing said yet: what is said is told behind it."""
        self._moved = True
        said = said_in(frame)
        block = object_of(said.get("content_block"))
        if said.get("type") != START or block.get("type") != "text":
            return self._opened(start)
        bare = {name: [] if isinstance(value, list) and name == "citations" else value for name, value in block.items()}
        return self._start({**said, "content_block": bare}, start, [start]) or self._opened(start)

    def failed(self, error: StreamError) -> Sequence[Frame]:
        """What is open is closed, but for a call: that one was cut, and a client would run it."""
        closing = [framed({"type": STOP, "index": place}) for place, is_call in self._open.items() if not is_call]
        return [*self._broken(), *closing, Frame(dumps(error_body(error)), b"error")]

    def idle(self) -> Sequence[Frame]:
        """A ping."""
        return (PING,)

    def _end(self) -> list[Frame]:
        told, self._told = self._told, []
        return [*told]

    def _broken(self) -> list[Frame]:
        """The same before an error: nothing else says then that a call of ours was told."""
        told = self._end()
        return [_ending(frame, "tool_use", of=("end_turn",)) for frame in told] if self._called else told

    def _is_late(self, said: dict[str, Any]) -> bool:
        """Whether it is a delta of a block that is not open."""
        return said.get("type") == DELTA and self._places.get(_key(said.get("index"))) not in self._open

    def _begin(self, index: Any, said: dict[str, Any], events: Sequence[Event]) -> int | None:
        """A block of the server's begins; where."""
        place = self._next if self._moved else index
        if not isinstance(place, int):
            return None
        self._next = place + 1
        self._places[_key(index)] = place
        self._open[place] = object_of(said.get("content_block")).get("type") == "tool_use"
        self._know(events, place)
        return place

    def _know(self, events: Sequence[Event], place: int) -> None:
        for event in events:
            if isinstance(event, BlockStart):
                self._known[event.index] = place

    def _patched(self, said: dict[str, Any], events: Sequence[Event], made: Sequence[Event]) -> Sequence[Frame] | None:
        """The frame with what was changed in it; None if it cannot hold that."""
        kind, first = said.get("type"), events[0]
        if kind == "message_start" and isinstance(first, MessageStart):
            if isinstance(message := said.get("message"), dict):
                usage = {**object_of(message.get("usage")), **(counts_of(first.usage) if first.usage else {})}
                message = {**message, "id": first.id, "model": first.model, **({"usage": usage} if usage else {})}
                return (framed({**said, "message": message}),)
        elif kind == DELTA and len(events) == 1:
            delta, place = said.get("delta"), self._place(first)
            if isinstance(delta, dict) and delta.get("type") == KINDS.get(type(first)) and place is not None:
                delta = {**delta, MEMBERS[delta["type"]]: _text(first)}
                return (framed({**said, "index": place, "delta": delta}),)
            came = made[0] if len(made) == 1 else None
            if place is not None and isinstance(came, BlockDelta) and moved(came, _index(first)) == first:
                return (framed({**said, "index": place}),)
        elif kind == STOP and isinstance(first, BlockStop) and (place := self._place(first)) is not None:
            del self._open[place]
            return (framed({**said, "index": place}),)
        elif kind == START and isinstance(first, BlockStart) and isinstance(said.get("content_block"), dict):
            return self._start(said, first, events)
        elif kind == "message_stop" and isinstance(events[-1], MessageStop):
            return self._stop(said, events, made)
        return None

    def _start(self, said: dict[str, Any], begun: BlockStart, events: Sequence[Event]) -> Sequence[Frame] | None:
        """The start of a block, with what it begins with."""
        block = dict(said["content_block"])
        if isinstance(begun.block, ToolUseBlock):
            block |= {"id": begun.block.id, "name": begun.block.name}
        for member in ("text", "thinking"):
            if member in block:
                block[member] = "".join(map(_text, events[1:]))
        place = self._begin(said.get("index"), said, events)
        return None if place is None else (framed({**said, "index": place, "content_block": block}),)

    def _stop(self, said: dict[str, Any], events: Sequence[Event], made: Sequence[Event]) -> Sequence[Frame]:
        """The end of the message, with what was told of it before."""
        self._over = True
        before = [written for event in events[:-2] for written in self._anew(event)]
        told: list[Frame] = self._end()
        for ended in events[-2:-1]:
            if isinstance(ended, MessageDelta):
                was = next((event for event in made if isinstance(event, MessageDelta)), None)
                told = self._retold(ended, told, counted=was is None or was.usage != ended.usage)
        return [*before, *told, framed(said)]

    def _retold(self, ended: MessageDelta, told: list[Frame], *, counted: bool = True) -> list[Frame]:
        """What is told of the end, as it is now, in the last frame that told it. `counted`: so are the counts."""
        anew = told_of(ended)
        at = max((at for at, frame in enumerate(told) if said_in(frame).get("type") == TOLD), default=len(told))
        said = said_in(told[at]) if at < len(told) else {"type": TOLD}
        delta = {**object_of(said.get("delta")), **anew["delta"]}
        usage = {**object_of(said.get("usage")), **(anew["usage"] if ended.usage and counted else {})}
        last = framed({**said, "delta": delta, "usage": usage or anew["usage"]})
        before = [_ending(frame, anew["delta"]["stop_reason"]) for frame in told[:at]]
        return [*before, last, *told[at + 1 :]]

    def _place(self, event: Event) -> int | None:
        """Where the block of an event stands, if it is open."""
        place = self._known.get(_index(event))
        return place if place in self._open else None

    def _anew(self, event: Event) -> Sequence[Frame]:
        """An event that no frame made."""
        if isinstance(event, MessageStart):
            return (framed({"type": "message_start", "message": message_of(event)}),)
        if isinstance(event, BlockStart):
            return self._opened(event)
        if isinstance(event, MessageDelta):
            return self._retold(event, self._end())
        if isinstance(event, MessageStop):
            return [*self._end(), framed({"type": "message_stop"})]
        if isinstance(event, Ping):
            return (PING,)
        if isinstance(event, Carry):
            return (event.frame,)
        place = self._place(event)
        if place is None:
            self.ledger.record(STAGE, type(event).__name__, "dropped", "its block is not open")
            return ()
        if isinstance(event, BlockStop):
            self._called = self._open.pop(place) or self._called
            return (framed({"type": STOP, "index": place}),)
        delta = _delta(event)
        if delta is None:
            self.ledger.record(STAGE, type(event).__name__, "dropped", "Messages cannot show it")
            return ()
        return (framed({"type": DELTA, "index": place, "delta": delta}),)

    def _opened(self, event: BlockStart) -> Sequence[Frame]:
        content = content_of(event.block)
        if content is None:
            self.ledger.record(STAGE, type(event.block).__name__, "dropped", "Messages cannot show it")
            return ()
        place, self._next = self._next, self._next + 1
        self._known[event.index] = place
        self._open[place] = isinstance(event.block, ToolUseBlock)
        return (framed({"type": START, "index": place, "content_block": content}),)


def _ending(frame: Frame, reason: str, of: Sequence[str] = ()) -> Frame:
    """What was told of the end, with another reason for it, if it had one; `of`: one of these."""
    said = said_in(frame)
    delta = object_of(said.get("delta"))
    told = delta.get("stop_reason")
    if said.get("type") != TOLD or not isinstance(told, str) or told == reason or (of and told not in of):
        return frame
    return framed({**said, "delta": {**delta, "stop_reason": reason}})


def _delta(event: Event) -> dict[str, Any] | None:
    if (kind := KINDS.get(type(event))) is not None:
        return {"type": kind, MEMBERS[kind]: _text(event)}
    if isinstance(event, SignatureDelta):
        return {"type": SIGNATURE, "signature": blob_of(event.signature)}
    if isinstance(event, AnnotationDelta) and event.annotation.get("type") in CITATIONS:
        return {"type": CITATION, "citation": event.annotation}
    return None


def _index(event: Event) -> int:
    return int(getattr(event, "index", -1))


def _text(event: Event) -> str:
    return str(getattr(event, "text", ""))


def said_in(frame: Frame) -> dict[str, Any]:
    """The event that a frame is; empty if it is none."""
    try:
        said = loads(frame.data)
    except ValueError:
        return {}
    return object_of(said)


def object_of(value: Any) -> dict[str, Any]:
    """A value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def _key(index: Any) -> Any:
    return index if isinstance(index, int | str | float) else None


def framed(said: dict[str, Any]) -> Frame:
    """The frame of an event."""
    return Frame(dumps(said), str(said["type"]).encode())
