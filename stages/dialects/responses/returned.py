"""A Responses stream for a Responses client: frames go back as they came; what was changed is patched and restated."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.events import (
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
    StopReason,
    StreamError,
    TextBlock,
)
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.message import final_usage
from pipeline.word import word
from stages.dialects.responses.errors import failed_error
from stages.dialects.responses.keeper import ADDED, ITEM_DONE, MOST, TEXTS, Keeper, honest, spoken
from stages.dialects.responses.kept import DELTA, EVENTS, PART, NewItems, framed, output_of, said_in
from stages.dialects.responses.late import anew, begins, end_of, ends, restated_end, terminated
from stages.dialects.responses.normalize import LIFE, TERMINALS
from stages.dialects.responses.patch import renamed, status_of
from stages.dialects.responses.usage import usage_object
from stages.dialects.responses.written import OUTPUT_TEXT, Json

COMMENT: Final = Frame(b"", raw=b": keep-alive\n\n")
"""The keep-alive before the first event, which must be the response's."""


@define
class ResponsesReturner:
    """While nothing was changed, every frame goes back as it came, whatever law it breaks.

    From the first change on, frames are numbered anew, and items placed anew once one was put in. A frame that was
    changed keeps every member that nobody changed; what repeats it (the ends of a text, of its part, of its item, the
    terminal) is restated from what was really told. A message is announced with the first that it says: if all of it
    was left out, it is told nowhere.
    """

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    _changed: bool = field(init=False, default=False)
    _last: Frame | None = field(init=False, default=None)
    """The last frame that went back as it came, and how many did."""
    _count: int = field(init=False, default=0)
    _number: int = field(init=False, default=0)
    """The number of the next frame, once something was changed."""
    _response: Json | None = field(init=False, default=None)
    """The response as it was last told."""
    _named: Json = field(init=False, factory=dict)
    """What was changed of it."""
    _keeper: Keeper = field(init=False)
    _new: NewItems = field(init=False)
    _waiting: list[tuple[Origin, Json, Sequence[Event]]] = field(init=False, factory=list)
    """What announces a message, and its first part, which has said nothing yet."""
    _emptied: bool = field(init=False, default=False)
    """Some of what came behind that was left out."""
    _parted: int = field(init=False, default=-1)
    """The frame of which a part was written."""
    _retold: bool = field(init=False, default=False)
    """What the terminal alone would tell was told anew before it."""
    _end: MessageDelta | None = field(init=False, default=None)
    """How the message ended, if that was told apart from its frame."""
    _over: bool = field(init=False, default=False)
    """The terminal has come."""

    @_keeper.default
    def _of_ledger(self) -> Keeper:
        return Keeper(self.ledger)

    @_new.default
    def _of_facts(self) -> NewItems:
        return NewItems(facts=self.facts, ledger=self.ledger)

    def passes(self, frame: Origin, event: Event) -> bool:
        """More of a text goes back while nothing was changed; note is taken of it, since it is repeated later."""
        if self._changed or self._waiting:
            return False
        if not self._keeper.passes(said_in(frame)):
            return False
        self._last, self._count = frame, self._count + 1
        return True

    def missing(self) -> None:
        """Frames were left out."""
        self._change()
        self._keeper.missed = True
        self._emptied = bool(self._waiting)

    def lost(self, frame: Origin | None) -> None:
        """What else stood in a frame that was left out is recorded."""
        self._keeper.lose(frame, [*self._new.finals.values()])

    def unchanged(self, frame: Origin, events: Sequence[Event]) -> Sequence[Frame]:
        """A frame goes back as it came, but for its number and place, and what it repeats."""
        said = {} if self._over or not frame.data else said_in(frame)
        self._over = self._over or isinstance(events[-1], MessageStop | StreamError)
        if not said:
            return (frame,)
        if self._changed and self._behind(said, events):
            return self.changed(frame, events)
        out = self._announced(said, events)
        if self._waits(said):
            self._waiting.append((frame, said, events))
            return out
        out += self._written(self._keeper.closing(said) if word(said.get("type")) in TERMINALS else ())
        out += self._written(self._keeper.revived(said, events))
        out += self._written(ends(self._keeper, said))
        return [*out, *self._back(frame, said, self._told(said, events, events))]

    def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
        """What is left of a frame is written with its other members, what no frame made is written anew."""
        self._change()
        said = {} if frame is None else said_in(frame)
        if frame is None or not said:
            return [written for event in events for written in self._anew(event)]
        out: list[Frame] = []
        self._behind(said, events)
        left = [event for event in honest(frame.made, events, self.ledger) if not self._put(event, said, out)]
        kind, known = said.get("type"), self._keeper.of(said) is not None
        if not left:
            self._retold = self._retold or (kind == ITEM_DONE and not known)
            self._emptied = self._emptied or (bool(self._waiting) and self._awaits(said))
            if not out:
                self.lost(frame)
            return [*out, *self._announced(said, ())] if self._emptied else out
        if self._waiting and kind in TERMINALS and any(isinstance(event, BlockStart) for event in frame.made):
            self._leave()  # until it speaks
        out += self._announced(said, left)
        out += self._written(self._keeper.revived(said, left))
        if kind in TERMINALS:
            return [*out, *self._last_frame(frame, said, left)]
        if begins(self._keeper, said, frame.made, left):
            self._parted = frame.number
            return [*out, *(written for event in left for written in self._anew(event))]
        whole = kind == ITEM_DONE and self._keeper.of(said) is None and spoken(left) != spoken(frame.made)
        again = frame.number == self._parted and EVENTS.get(str(kind), ("",))[0] != DELTA
        self._parted = frame.number
        if whole or again or isinstance(left[-1], StreamError):
            if whole:
                self._retold = True
                self._keeper.lose(frame, ())
            return [*out, *(written for event in left for written in self._anew(event))]
        out += self._written(ends(self._keeper, said))
        return [*out, *self._back(frame, said, self._told(said, frame.made, left))]

    def another(self, frame: Origin, start: BlockStart) -> Sequence[Frame]:
        """A message that was announced and has not spoken yet begins here; else the text has a message of its own,
        which has all that the server's has beside its text."""
        self._change()
        said = said_in(frame)
        out: list[Frame] = []
        part: Mapping[str, Any] | None = None
        if self._waiting and self._awaits(said):
            if self._waiting[0][1].get("type") == ADDED:
                out = self._let_go(bare=True)
            else:
                part = self._waiting[0][1].get("part")
                self._leave()
        late = begins(self._keeper, said, frame.made, ())
        kept, item = self._keeper.of(said), said.get("item")
        if kept is not None and late:
            self._parted, self._keeper.blocks[start.index] = frame.number, kept
            return [*out, *self._written(self._keeper.revive(kept))]
        if kept is None:
            self._new.another(start, item if isinstance(item, dict) else {"id": said.get("item_id")}, {})
        elif kept.ended or kept.gone:
            part = kept.text_of(said, OUTPUT_TEXT).announced or part
            kept.moved = True
            self._new.another(start, kept.item if kept.gone else {**kept.item, "id": None}, part or {})
        else:
            self._keeper.blocks[start.index] = kept
            return out
        self._keeper.moved = True
        return out

    def _behind(self, said: Json, events: Sequence[Event]) -> bool:
        """Whether events are of an item of ours: a message that was ended, and speaks on in a block that begins, does
        so in one of its own."""
        kept = self._keeper.of(said)
        for event in events if kept is not None and kept.ended and kept.words is None else ():
            if kept is not None and isinstance(event, BlockStart) and isinstance(event.block, TextBlock):
                self._new.another(event, {**kept.item, "id": None}, {})
                kept.moved = self._keeper.moved = True
        return any(self._new.holds(getattr(event, "index", -1)) for event in events)

    def failed(self, error: StreamError) -> Sequence[Frame]:
        """What is open ends, but for a call: that one was cut, and a client would run it. Then the response failed."""
        self._change()
        self._over = True
        out = [] if self._response is not None else [*self._anew(MessageStart("", ""))]
        out += self._announced({}, ())
        cut = self._new.cut(self._number, self._keeper.next)
        self._number += len(cut)
        out += cut
        out += self._written(self._keeper.cut())
        return [*out, self._ending("failed", None, error=failed_error(error))]

    def idle(self) -> Sequence[Frame]:
        """The dialect's keep-alive, which is numbered; a comment before the first event."""
        if self._response is None:
            return (COMMENT,)
        self._change()
        return (self._write("keepalive", {}),)

    def _waits(self, said: Json) -> bool:
        """Whether this says no more than that there is a message: it is told with its first text, if it has one."""
        kind, item, part = said.get("type"), said.get("item"), said.get("part")
        if kind == ADDED:
            return isinstance(item, dict) and item.get("type") == "message"
        step = EVENTS.get(str(kind), ("",))[0]
        if step == DELTA and said.get("delta") == "":
            return 0 < len(self._waiting) < MOST and self._awaits(said)
        if step != PART or not isinstance(part, dict):
            return False
        new = part.get("type") == OUTPUT_TEXT.type and self._keeper.of(said) is None
        return self._awaits(said) if self._waiting else new

    def _awaits(self, said: Json) -> bool:
        """Whether an event is of the message that waits."""
        return said.get("output_index") == self._waiting[0][1].get("output_index")

    def _announced(self, said: Json, events: Sequence[Event]) -> list[Frame]:
        """What waits, if it is told before `said`. A message of which all was left out is told nowhere."""
        if not self._waiting:
            return []
        mine = self._awaits(said) and said.get("type") != ADDED
        if mine and self._waits(said):
            return []
        if self._emptied and not (mine and spoken(events)):
            if mine or said.get("type") in (ADDED, *TERMINALS):
                self._leave()
            return []
        if mine and self._changed and self._waiting[0][1].get("type") != ADDED:
            self._leave()  # it is announced before it speaks
            return []
        return self._let_go(bare=mine and self._changed)

    def _leave(self) -> None:
        """What waits is told nowhere."""
        waiting, self._waiting, self._emptied = self._waiting, [], False
        self._keeper.leave(waiting[0][1])
        for _, said, _ in waiting[waiting[0][1].get("type") == ADDED :]:
            self._keeper.told(said, (), ())

    def _let_go(self, *, bare: bool) -> list[Frame]:
        """What waits is told; `bare`: without the text that it may have, which was changed."""
        waiting, self._waiting, self._emptied = self._waiting, [], False
        out: list[Frame] = []
        for frame, told, made in waiting:
            said = told
            if bare and isinstance(item := told.get("item"), dict) and item.get("content"):
                said = {**told, "item": {**item, "content": []}}
            out += self._back(frame, told, self._told(said, made, made))
        return out

    def _change(self) -> None:
        """Something is changed: from here on frames are numbered anew."""
        if not self._changed:
            self._changed = True
            number = None if self._last is None else said_in(self._last).get("sequence_number")
            self._number = number + 1 if isinstance(number, int) else self._count

    def _back(self, frame: Frame, said: Json, back: Json | None) -> Sequence[Frame]:
        """The frame as it goes back, if it does."""
        if back is None:
            return ()
        if not self._changed:
            self._last, self._count = frame, self._count + 1
            return (frame,)
        if "sequence_number" in back:
            back = {**back, "sequence_number": self._number}
        self._number += 1
        if back == said:
            return (frame,)
        return (Frame(dumps(back), str(back.get("type")).encode() if frame.name else b""),)

    def _write(self, kind: str, members: Mapping[str, Any]) -> Frame:
        """An event of ours."""
        said = {"type": kind, "sequence_number": self._number, **members}
        self._number += 1
        return framed(said)

    def _told(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json | None:
        """What is told where the server tells `said`, of whose events `made` these are left; None if nothing is."""
        kind = str(said.get("type"))
        if kind in LIFE:
            return self._life(said, made, events)
        if kind in TERMINALS:
            if not self._changed:
                return said
            return restated_end(self._keeper, self._new.finals, self._named, said, made, events, retold=self._retold)
        return self._keeper.told(said, made, events)

    def _life(self, said: Json, made: Sequence[Event], events: Sequence[Event]) -> Json:
        for was, now in zip(made, events, strict=False):
            if isinstance(was, MessageStart) and isinstance(now, MessageStart):
                self._named |= renamed(was, now)
        if not isinstance(response := said.get("response"), dict):
            return said
        self._response = {**response, **self._named}
        self._new.adopt(self._response)
        return {**said, "response": self._response}

    def _last_frame(self, frame: Origin, said: Json, left: list[Event]) -> Sequence[Frame]:
        """The terminal, or a part of it: what only it would tell is told before it, if that was changed."""
        content = [event for event in left if isinstance(event, (BlockStart, BlockStop, *TEXTS))]
        out: list[Frame] = []
        made = {id(event) for event in frame.made if isinstance(event, (BlockStart, BlockStop, *TEXTS))}
        if made != {id(event) for event in content}:
            self._retold = True
            terminated(self._keeper, said, frame.made)
            out = [written for event in content for written in self._anew(event)]
        self._end = end_of(left) or self._end
        if not isinstance(left[-1], MessageStop | StreamError):
            return out
        self._over = True
        out += self._written(self._keeper.closing(said))
        ended = [*([] if self._end is None else [self._end]), left[-1]]
        return [*out, *self._back(frame, said, self._told(said, frame.made, ended))]

    def _put(self, event: Event, said: Json, out: list[Frame]) -> bool:
        """Write an event of an item of ours; whether it is one. Its frame's other members are kept, but for where."""
        if not self._new.holds(getattr(event, "index", -1)):
            return False
        if isinstance(event, BlockStart):
            return True
        if (
            said.get("type") == ITEM_DONE
            and isinstance(event, BlockStop)
            and isinstance(item := said.get("item"), dict)
        ):
            self._new.tell(event.index, item)
            self._keeper.told_late(said)
        written = self._new.put(event, self._number, self._keeper.next)
        self._number, self._keeper.next = self._number + len(written), self._new.next_place
        if written and isinstance(event, TEXTS) and EVENTS.get(str(said.get("type")), ("",))[0] == DELTA:
            written[-1] = framed({**said, **said_in(written[-1])})
        out += written
        return True

    def _anew(self, event: Event) -> Sequence[Frame]:
        """An event that no frame made."""
        out: list[Frame] = []
        if isinstance(event, BlockStart) and (kept := self._keeper.blocks.get(event.index)) is not None:
            if kept.ended:
                self._new.another(event, {**kept.item, "id": None}, {})
            return self._written(self._keeper.revive(kept))
        if isinstance(event, MessageStart | BlockStart):
            self._keeper.moved = self._keeper.moved or isinstance(event, BlockStart)
            out += self._new.put(event, self._number, self._keeper.next)
            self._number, self._keeper.next = self._number + len(out), self._new.next_place
            if isinstance(event, MessageStart) and out:
                self._response = said_in(out[0])["response"]
        elif isinstance(event, MessageDelta):
            self._end = event
        elif isinstance(event, MessageStop):
            self._over = True
            out += self._written(self._keeper.closing({}))
            end = self._end or MessageDelta(StopReason.END_TURN)
            status, why = status_of(end)
            out.append(self._ending(status, end, incomplete_details=why))
        elif isinstance(event, StreamError):
            out += self.failed(event)
        elif isinstance(event, Ping):
            out += self.idle()
        elif isinstance(event, Carry):
            said = said_in(event.frame)
            out += self._back(event.frame, said, said)
        elif not self._put(event, {}, out):
            kept = self._keeper.blocks.get(getattr(event, "index", -1))
            out += self._written(anew(kept, event, self.ledger))
        return out

    def _written(self, told: Iterable[tuple[str, Json]]) -> list[Frame]:
        return [self._write(kind, members) for kind, members in told]

    def _ending(self, status: str, end: MessageDelta | None, **members: Any) -> Frame:
        """A terminal of ours."""
        output = self._keeper.finals | self._new.finals
        counts = None if end is None else final_usage(None, end.usage, self.facts.usage)
        usage = {} if counts is None else {"usage": usage_object(counts)}
        told = {**(self._response or {}), "status": status, "output": output_of([*output.items()]), **usage, **members}
        return self._write(f"response.{status}", {"response": told})
