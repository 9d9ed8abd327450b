"""One dialect over itself: what no stage changed is written back byte for byte."""

from collections.abc import Sequence
from operator import is_
from typing import Final

from attrs import define, field

from pipeline.dialect import Returner
from pipeline.errors import ErrorKind, PipelineError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    Carry,
    Event,
    Frame,
    MessageStop,
    Origin,
    ReasoningDelta,
    RefusalDelta,
    StreamError,
    TextBlock,
    TextDelta,
)
from pipeline.flight import Flight
from pipeline.stage import Stage

LATE: Final = 100
"""So many frames that were left out may come late, if they are no larger than this."""
LARGEST: Final = 1 << 20

DELTAS = frozenset({TextDelta, RefusalDelta, ReasoningDelta, ArgumentsDelta})
"""What nearly all events are."""


@define
class OriginKeeper(Stage[Frame, Event]):
    """Every event of `normalizer` remembers the frame that it came from, and every frame makes at least one.

    Frames behind the terminal are carried too.
    """

    normalizer: Stage[Frame, Event]
    dialect: str
    ended: bool = field(init=False, default=False)
    _count: int = field(init=False, default=0)
    _flight: Flight = field(init=False, factory=Flight)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return self.normalizer.held

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        out: list[Event] = []
        flight = self._flight
        read = flight.read()
        for frame in items:
            made: Sequence[Event] = ()
            if frame.data and not self.normalizer.ended:
                try:
                    made = self.normalizer.receive((frame,))
                except PipelineError as error:
                    raise error.after([*out, *error.take()]) from error.__cause__
            made = tuple(made) or (Carry(self.dialect, frame),)
            origin = Origin(frame.data, frame.name, frame.raw, self._count, made, flight)
            self._count += 1
            read.append(origin)
            for event in made:
                event.origin = origin  # type: ignore[misc]  # it was made just now, and nobody has seen it
            out += made
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = self._flight.over = True
        return self.normalizer.receive_eof(cause)


@define
class FrameReturner(Stage[Event, bytes]):
    """A frame whose events all arrive as they were made, one behind the other, leaves as it came.

    What was changed, left out or put in between is written by `returner`, in the words of the dialect. After a
    terminal only what came behind it in the stream leaves; after an error of ours, nothing. An origin is given up once
    it is written: it and its events refer to each other, and nobody would collect them in time. Of a frame that never
    arrives `returner` is told; one whose events were not all text may still come late, or its block begin after all.
    """

    returner: Returner
    encoder: Stage[Frame, bytes]
    ended: bool = field(init=False, default=False)
    _origin: Origin | None = field(init=False, default=None)
    """The frame whose events are arriving, and those that have."""
    _run: list[Event] = field(init=False, factory=list)
    _due: int = field(init=False, default=0)
    """The number of the frame that comes next, if none is left out."""
    _terminal: Event | None = field(init=False, default=None)
    _flight: Flight | None = field(init=False, default=None)
    _absent: dict[int, Origin] = field(init=False, factory=dict)
    """Frames that were left out, of which something may come late."""
    _size: int = field(init=False, default=0)
    """Their bytes."""

    def receive(self, items: Sequence[Event]) -> Sequence[bytes]:
        out: list[bytes] = []
        try:
            for event in items:
                origin = event.origin
                if not isinstance(origin, Origin):
                    self._settle(out)
                    self._anew(event, out)
                elif not self._is_plain(event, origin, out):
                    self._take(event, origin, out)
        except PipelineError as error:
            raise error.after([b"".join(out)] if out else ()) from error.__cause__
        if self._terminal is not None and self._flight is not None:
            self._give_up(self._flight)
        return [joined] if (joined := b"".join(out)) else ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        out: list[bytes] = []
        self._settle(out)
        cut = StreamError(ErrorKind.CUT, "the stream ended before its terminal", "stream_cut", True)
        self._anew(cause or cut, out)
        if self._flight is not None:
            self._give_up(self._flight)
        return [joined] if (joined := b"".join(out)) else ()

    def idle(self) -> Sequence[bytes]:
        if self._terminal is not None:
            return ()
        return self.encoder.receive(self.returner.idle())

    def _is_plain(self, event: Event, origin: Origin, out: list[bytes]) -> bool:
        """Take the way of nearly every event: a delta that is all that its frame made."""
        if type(event) not in DELTAS or self._origin is not None or self._terminal is not None:
            return False
        if len(origin.made) != 1 or origin.made[0] is not event or origin.number != self._due:
            return False
        if not self.returner.passes(origin, event):
            return False
        self._due += 1
        origin.made = ()  # type: ignore[misc]  # given up
        out.append(origin.raw)
        return True

    def _anew(self, event: Event, out: list[bytes]) -> None:
        """An event that no frame made: behind a terminal there is none."""
        if self._terminal is not None:
            return
        if isinstance(event, MessageStop | StreamError):
            self._terminal = event
        if isinstance(event, StreamError):
            self._write(self.returner.failed(event), out)
        else:
            self._write(self.returner.changed(None, [event]), out)

    def _take(self, event: Event, origin: Origin, out: list[bytes]) -> None:
        """An event of a frame. What comes behind the terminal of the stream is the stream's; behind ours is nothing."""
        if self._terminal is not None and self._terminal.origin is None:
            return
        if isinstance(event, BlockStart) and _is_another(event, origin):
            self._another(event, origin, out)
            return
        if origin is not self._origin:
            self._settle(out)
            self._arrive(origin, origin.number + 1)
            self._origin = origin
        if isinstance(event, MessageStop | StreamError) and self._terminal is None:
            self._terminal = event
        self._run.append(event)
        if len(self._run) == len(origin.made):
            self._settle(out)

    def _another(self, event: BlockStart, origin: Origin, out: list[bytes]) -> None:
        """A block of ours begins, in place of the one that a frame began, or behind it."""
        self._settle(out)
        self._arrive(origin, origin.number + (len(origin.made) == 1))  # what else it made may be left out
        self._write(self.returner.another(origin, event), out)

    def _arrive(self, origin: Origin, due: int) -> None:
        """A frame arrives, behind which `due` is the next; those between were left out."""
        self._flight = flight = origin.flight
        if origin.number > self._due:
            self.returner.missing()
            if flight is not None:
                self._leave(flight, origin.number)
        elif due > origin.number and (late := self._absent.pop(origin.number, None)) is not None:
            self._size -= len(late.raw)
        self._due = max(self._due, due)
        if flight is not None:
            flight.due = self._due

    def _leave(self, flight: Flight, before: int | None = None) -> None:
        """Frames were left out."""
        left = flight.left_out(before)
        if flight.forgotten > self._due:
            self.returner.lost(None)
        for frame in left:
            if all(type(event) is TextDelta for event in frame.made):
                self.returner.lost(frame)
            else:
                self._absent[frame.number] = frame
                self._size += len(frame.raw)
        while len(self._absent) > LATE or (self._absent and self._size > LARGEST):
            self._lose(min(self._absent))

    def _lose(self, number: int) -> None:
        """Nothing comes of a frame any more."""
        frame = self._absent.pop(number)
        self._size -= len(frame.raw)
        self.returner.lost(frame)

    def _give_up(self, flight: Flight) -> None:
        """The stream is over: nothing comes late. Where it was broken off, what was still to come is not missed."""
        if flight.over:
            self._leave(flight)
        while self._absent:
            self._lose(min(self._absent))

    def _settle(self, out: list[bytes]) -> None:
        """No more events of the frame come."""
        origin, run, self._origin, self._run = self._origin, self._run, None, []
        if origin is None:
            return
        if len(run) == len(origin.made) and all(map(is_, run, origin.made)):
            origin.made = ()  # type: ignore[misc]  # given up
            self._write(self.returner.unchanged(origin, run), out)
        else:
            self._write(self.returner.changed(origin, run), out)

    def _write(self, frames: Sequence[Frame], out: list[bytes]) -> None:
        for frame in frames:
            if isinstance(frame, Origin):
                out.append(frame.raw)
            else:
                out += self.encoder.receive((frame,))


def _is_another(start: BlockStart, origin: Origin) -> bool:
    """Whether it begins a block of text that none of the frame's events is of."""
    return isinstance(start.block, TextBlock) and start.index not in (getattr(one, "index", -1) for one in origin.made)
