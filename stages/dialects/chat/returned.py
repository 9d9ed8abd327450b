"""A Chat stream for a Chat client: frames go back as they came; what was changed is patched."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.change import patched
from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
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
    StopReason,
    StreamError,
    TextDelta,
    ToolUseBlock,
)
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.logprobs import scores_in
from stages.dialects.chat.encode import PING
from stages.dialects.chat.errors import error_body
from stages.dialects.chat.lost import FORGOTTEN, LostChunks
from stages.dialects.chat.normalize import DONE
from stages.dialects.chat.patch import (
    Json,
    NewCall,
    Spot,
    declared,
    entries_with,
    finish_word,
    means,
    named,
    patched_texts,
    said_in,
    spot_of,
    text_of,
)
from stages.dialects.chat.stops import ONE_CALL
from stages.dialects.chat.usage import usage_object, usage_of

MOST: Final = 100
"""So many frames wait for the terminal behind the finish."""

OLDER, NEWER = finish_word(StopReason.TOOL_USE, older=True), finish_word(StopReason.TOOL_USE)
"""The finish of a call in the deprecated words, and in the others."""

FINISHES: Final = re.compile(rb'"finish_reason"\s*:\s*"')
"""A frame that may tell the finish."""

NEW: Final[dict[type[Event], str]] = {
    TextDelta: "content",
    RefusalDelta: "refusal",
    ReasoningDelta: "reasoning_content",
}
"""Where a text is written that no frame brought."""

WHOSE: Final[tuple[str, ...]] = ("id", "object", "created", "model", "provider", "service_tier", "system_fingerprint")
"""What every chunk says of its message."""

CALLED: Final = (BlockStart, ArgumentsDelta)


@define
class ChatReturner:
    """While nothing was changed, every frame goes back as it came, whatever law it breaks.

    One frame does not: the upstream is always asked for its counts, and a client that did not ask for them is not sent
    the chunk that holds nothing else. Its loop would look for a choice in it.

    A frame that was changed keeps every member that nobody changed. Once a call was put in or left out, calls are
    numbered anew, in the order in which they begin; once the message has another name, every chunk has. The finish
    waits for the terminal, which tells whether it was changed.
    """

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    _moved: bool = field(init=False, default=False)
    """Calls are numbered anew."""
    _changed: bool = field(init=False, default=False)
    """Something was."""
    _first: Frame | None = field(init=False, default=None)
    """The chunk that began the message."""
    _named: Json = field(init=False, factory=dict)
    """What every chunk names, where it was changed."""
    _places: dict[int, int] = field(init=False, factory=dict)
    """The numbers of calls, by their blocks."""
    _next: int = field(init=False, default=0)
    _new: dict[int, NewCall] = field(init=False, factory=dict)
    """The open calls that no frame brought."""
    _told: list[Frame] = field(init=False, factory=list)
    """What told the finish, and what came behind it."""
    _finished: bool = field(init=False, default=False)
    """The finish was told."""
    _parted: int = field(init=False, default=-1)
    """The last frame of which a part was written, and with it what stands beside its first choice."""
    _over: bool = field(init=False, default=False)
    """The terminal has come."""
    _older: bool = field(init=False, default=False)
    """A call of the server's was told in the deprecated words."""
    _mixed: bool = field(init=False, default=False)
    """A call of ours was told in the others: so are the server's."""
    _lost: LostChunks = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lost = LostChunks(self.ledger)

    def passes(self, frame: Origin, event: Event) -> bool:
        """More of a block goes back unseen, unless it is renamed, renumbered, or tells the finish as well."""
        return not (self._moved or self._named or self._told) and FINISHES.search(frame.data) is None

    def missing(self) -> None:
        """Frames were left out."""
        self._moved = self._changed = True

    def lost(self, frame: Origin | None) -> None:
        """What else stood in a chunk that was left out is recorded."""
        if frame is None:
            self.ledger.record("ChatReturner", "*", "not recorded", FORGOTTEN)
        else:
            self._lost.lose(frame, frame.made, {} if self._first is None else said_in(self._first))
            if self._over:
                self._lost.end()

    def unchanged(self, frame: Origin, events: Sequence[Event]) -> Sequence[Frame]:
        """A frame goes back as it came, but for the numbers of its calls and its name."""
        if self._over:
            return (frame,)
        if isinstance(events[-1], MessageStop | StreamError):
            self._end_all()
            for event in events if self._moved and not self._finished else ():
                if isinstance(event, MessageDelta):
                    self._tell(event, event)  # the frame that told it was left out
            return [*self._end(), frame]
        if isinstance(events[0], MessageStart):
            self._first = frame
        said = said_in(frame)
        self._lost.said(said)
        if _counts_alone(said) and not self.facts.include_usage:
            return ()
        spot = spot_of(said)
        return self._held(self._back(frame, said, spot, events), spot, counts=_counts_alone(said))

    def _back(self, frame: Origin, said: Json, spot: Spot | None, events: Sequence[Event]) -> Frame:
        """The frame as it goes back."""
        calling = any(isinstance(event, CALLED) for event in events)
        if spot is not None and calling:
            self._begin(spot, events)
        patch = {name: value for name, value in self._named.items() if name in said}
        if spot is not None and calling and self._moved:
            delta = dict(spot.delta)
            entries_with(delta, events, events, self._places, self._kind, mixed=self._mixed)
            patch |= spot.holding(delta)
        return frame if {**said, **patch} == said else _frame({**said, **patch})

    def _held(self, back: Frame, spot: Spot | None, *, counts: bool = False) -> Sequence[Frame]:
        """A frame that tells the finish, or comes behind it, waits; so do counts, if the finish was left out."""
        if spot is not None and spot.finish:
            said = said_in(back)
            if self._mixed and spot.finish == OLDER and (now := spot_of(said)) is not None:
                back = _frame({**said, **now.holding(now.delta, finish_reason=NEWER)})
            self._told.insert(len(self._told) if self._finished else 0, back)
            self._finished = True
        elif self._changed and spot is not None and any(value for name, value in spot.delta.items() if name != "role"):
            return [*self._room(), back]
        elif self._finished or (counts and self._changed):
            self._told.append(back)
        else:
            return (back,)
        return () if len(self._told) < MOST else self._end()

    def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
        """What is left of a frame is written with its other members, what no frame made is written anew."""
        if frame is not None and frame.number > self._parted:
            said = said_in(frame)
            if (spot := spot_of(said)) is not None and not isinstance(events[-1], MessageStop | StreamError):
                self._parted = frame.number
                return self._patched(frame, said, spot, events)
            if not any(isinstance(event, Carry) for event in events):
                self.lost(frame)
        return [written for event in events for written in self._anew(event, frame)]

    def another(self, frame: Origin, start: BlockStart) -> Sequence[Frame]:
        """Chat does not tell where a text begins."""
        return ()

    def failed(self, error: StreamError) -> Sequence[Frame]:
        """An error object, which nothing follows: what is open stays open, and no client runs it."""
        self._end_all()
        return [*self._end(), Frame(dumps(error_body(error)))]

    def idle(self) -> Sequence[Frame]:
        """A comment."""
        return (PING,)

    def _end_all(self) -> None:
        """The terminal has come."""
        self._over = True
        self._lost.end()

    def _end(self) -> list[Frame]:
        told, self._told = self._told, []
        return told

    def _room(self) -> list[Frame]:
        """More content comes: what was told of it behind the finish, or with it, goes out; the finish waits on."""
        out: list[Frame] = []
        for frame in self._end():
            said = said_in(frame)
            spot = spot_of(said)
            if spot is None or not any(value for name, value in spot.delta.items() if name != "role"):
                self._told.append(frame)
            elif not spot.finish:
                out.append(frame)
            else:
                began, ended = _split(said, spot)
                out.append(began)
                self._told.append(ended)
        return out

    def _begin(self, spot: Spot, events: Sequence[Event]) -> None:
        """Calls of the server's begin; their numbers are its own while none was changed."""
        begun = [event.index for event in events if isinstance(event, BlockStart) and _is_call(event)]
        blocks = list(dict.fromkeys(event.index for event in events if isinstance(event, CALLED) and _is_call(event)))
        places = dict(zip(blocks, spot.places, strict=False)) if len(blocks) == len(spot.places) else {}
        for index in begun:
            place = places.get(index)
            self._places[index] = self._next if self._moved or place is None else place
            self._next = max(self._next, self._places[index] + 1)
            self._older = self._older or ("function_call" in spot.delta and not self._mixed)

    def _patched(self, frame: Origin, said: Json, spot: Spot, events: Sequence[Event]) -> Sequence[Frame]:
        """The frame with what was changed in it; if that is nothing, the frame."""
        delta = dict(spot.delta)
        if isinstance(first := events[0], MessageStart):
            self._first = frame
            was = frame.made[0]
            if isinstance(was, MessageStart):
                self._named = {n: v for n, v in named(first).items() if v != named(was)[n]}
        self._lost.said(said)
        respoken = patched_texts(delta, frame.made, events, self.ledger)
        if any(isinstance(event, CALLED) for event in frame.made):
            self._begin(spot, events)
            if self._moved or not _same(frame.made, events):
                entries_with(delta, frame.made, events, self._places, self._kind, mixed=self._mixed)
        renamed = {name: value for name, value in self._named.items() if name in said}
        if delta == spot.delta and not renamed:
            return self._held(frame, spot)
        self._changed = True
        back = {**said, **renamed, **spot.holding(delta, **spot.silence(respoken, self.ledger))}
        new = spot_of(back)
        if not (spot.finish and new is not None and isinstance(first, MessageStart)):
            return self._held(_frame(back), spot)
        began, ended = _split(back, new)  # what comes behind it is put in between
        return [began, *self._held(ended, spot)]

    def _anew(self, event: Event, frame: Origin | None) -> Sequence[Frame]:
        """An event that no frame made, or that is not to be told by its frame."""
        if isinstance(event, MessageStart):
            self._named = named(event)
            self._changed = True
            return (self._chunk({"role": "assistant", "content": None}),)
        if isinstance(event, MessageDelta):
            made = () if frame is None else frame.made
            self._tell(event, next((one for one in made if isinstance(one, MessageDelta)), None))
            return ()
        if isinstance(event, MessageStop):
            return self._stop(frame)
        if isinstance(event, StreamError):
            return self.failed(event)
        if isinstance(event, Ping):
            return (PING,)
        if isinstance(event, Carry):
            if frame is not None and frame.number <= self._parted:
                return ()
            return [*self._room(), event.frame if frame is None else frame]
        delta = self._delta(event)
        if delta is None:
            return ()
        self._changed = True
        return [*self._room(), self._chunk(delta)]

    def _stop(self, frame: Origin | None) -> Sequence[Frame]:
        """The terminal. One that the server left out is left out, unless something was changed."""
        self._end_all()
        if frame is not None:
            return [*self._end(), frame if frame.data.strip() == DONE else Frame(DONE)]
        return [*self._end(), Frame(DONE)] if self._changed else self._end()

    def _tell(self, event: MessageDelta, was: MessageDelta | None) -> None:
        """How the message ended, as it is now, in the frame that told the finish; the counts in the last that has some.

        Where the end of the stream told it, and no frame, the finish shows whether it was changed.
        """
        finish = finish_word(event.stop_reason, older=self.facts.one_call)
        for at, frame in enumerate(self._told):
            said = said_in(frame)
            if (spot := spot_of(said)) is not None and spot.finish:
                changed = means(spot.finish, event.stop_reason) if was is None else was.stop_reason is event.stop_reason
                if not changed:
                    self._changed = True
                    self._told[at] = _frame({**said, **spot.holding(spot.delta, finish_reason=finish)})
        if not self._finished:
            self._finished = self._changed = True
            self._told.insert(0, self._chunk({}, finish))
            was = None
        if event.usage is not None and (was is None or was.usage != event.usage):
            self._count(event)

    def _count(self, event: MessageDelta) -> None:
        if event.usage is None or event.usage == self.facts.usage:
            return
        for at in reversed(range(len(self._told))):
            said = said_in(self._told[at])
            if isinstance(usage := said.get("usage"), dict):
                if (counted := usage_of(usage)) != event.usage:
                    self._changed = True
                    usage = patched(usage, usage_object(counted), usage_object(event.usage))
                    self._told[at] = _frame({**said, "usage": usage})
                return
        if self._changed and self.facts.include_usage:
            usage = self._lost.counts(event.usage) or usage_object(event.usage)
            self._told.append(_frame({**self._whose(), "choices": [], "usage": usage}))

    def _delta(self, event: Event) -> Json | None:
        """What is written for it; None if that is nothing."""
        if (member := NEW.get(type(event))) is not None:
            return {member: text_of(event)} if text_of(event) else None
        if isinstance(event, AnnotationDelta):
            return None if scores_in(event.annotation) else {"annotations": [event.annotation]}
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            self._moved = True
            if self._next and (self.facts.one_call or self._older):
                self.ledger.record("ChatReturner", "tool use", "dropped", ONE_CALL)
                return None
            place, self._next = self._next, self._next + 1
            kind = self._kind(event.block)
            call = self._new[event.index] = NewCall(place, event.block.kind, kind, self.facts.one_call)
            self._places[event.index] = place
            self._mixed = not self.facts.one_call
            return call.begin(event.block)
        if isinstance(event, ArgumentsDelta) and (place_ := self._places.get(event.index)) is not None:
            return self._new.get(event.index, NewCall(place_)).say(event.text)
        if isinstance(event, BlockStop) and event.index in self._new:
            return self._new.pop(event.index).close(complete=event.complete)
        if not isinstance(event, BlockStart | BlockStop):
            self.ledger.record("ChatReturner", type(event).__name__, "dropped", "Chat cannot show it here")
        return None

    def _kind(self, block: ToolUseBlock) -> Any:
        """What the client declared the tool as."""
        return declared(block, self.facts)

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> Frame:
        """A chunk of this message."""
        return _frame({**self._whose(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _whose(self) -> Json:
        """What every chunk begins with: as in the one that began the message."""
        said = {} if self._first is None else said_in(self._first)
        whose = {name: said[name] for name in WHOSE if name in said}
        return {"object": "chat.completion.chunk", **whose, **self._named}


def _is_call(event: Event) -> bool:
    return not isinstance(event, BlockStart) or isinstance(event.block, ToolUseBlock)


def _same(made: Sequence[Event], events: Sequence[Event]) -> bool:
    """Whether what is told of calls is the same."""
    one, other = ([event for event in some if isinstance(event, CALLED)] for some in (made, events))
    return one == other


def _split(said: Json, spot: Spot) -> tuple[Frame, Frame]:
    """A chunk that tells the finish, and content before it, as two."""
    beside = {name: value for name, value in said.items() if name != "usage"}
    return _frame({**beside, **spot.holding(spot.delta, finish_reason=None)}), _frame({**said, **spot.holding({})})


def _counts_alone(said: Json) -> bool:
    """Whether a chunk tells the counts and has no choice."""
    return isinstance(said.get("usage"), dict) and not said.get("choices")


def _frame(said: Json) -> Frame:
    return Frame(dumps(said))
