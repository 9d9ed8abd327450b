"""What is left of the text, as events: one block at a time, whatever was cut out of it."""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    moved,
)
from stages.scrub.tape import weight
from stages.scrub.voice import WAS_CLOSED, WAS_MARKUP, Gap, Voice

TEXT = -2
"""What stands for the index of a block of text, which may become several, or none."""


@define
class Writer(Voice):
    """Writes events under indexes of its own, dense, in the order in which it is given them.

    Text and recovered reasoning have blocks that are opened when there is something to write and closed when another
    begins.
    """

    _next: int = field(init=False, default=0)
    _speaks: bool = field(init=False, default=False)
    """The open block is one of text that this stage writes."""
    _indexes: dict[int, int] = field(init=False, factory=dict)
    """The index that each block leaves with, by the one it came with; `TEXT` for those of text."""
    _start: BlockStart | None = field(init=False, default=None)
    """The start of a text block of which nothing was written yet, nor cut out."""
    _later: list[Event] = field(init=False, factory=list)
    """Events of no block that came meanwhile."""
    _blanks: list[TextDelta] = field(init=False, factory=list)
    _said: int = field(init=False, default=-1)
    """The last block of text of which some was written, by the index that it came with."""

    @property
    def speaking(self) -> bool:
        """A block of text is open."""
        return self._speaks

    def open(self, block: ToolUseBlock, out: list[Event]) -> int:
        """A call that was written as text begins; its index."""
        self._close(out)
        self.same = -1
        index = self._begin()
        out.append(BlockStart(index, block))
        return index

    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text."""
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event, out)
        elif self._start is not None or self._blanks:
            self._later.append(event)
            self._kept += weight(event)
        else:
            out.append(event)

    def give_way(self, out: list[Event]) -> None:
        """No more may wait: what came meanwhile leaves too."""
        super().give_way(out)
        self._catch_up(out)

    def settle(self, out: list[Event]) -> None:
        """Nothing more is written: what waits is, if it is ever to be."""
        if self._gap is Gap.START:
            self._fill(out)
        self._close(out)
        self._clear(out)

    def _block(self, event: BlockStart, out: list[Event]) -> None:
        if isinstance(event.block, TextBlock):
            self._indexes[event.index] = TEXT
            self._start = event
            self.flowing = False
            return
        self.settle(out)
        self._gap = Gap.NONE
        index = self._indexes[event.index] = self._begin()
        self.same = index if event.index == index else -1
        out.append(event if event.index == index else BlockStart(index, event.block))

    def _stop(self, event: BlockStop, out: list[Event]) -> None:
        if (index := self._indexes.get(event.index, event.index)) != TEXT:
            out.append(event if event.index == index else BlockStop(index, event.complete))
            return
        if self._start is not None and self._gap is not Gap.MARKUP:  # nothing else was in it
            self._fill(out)
            self._open_text(out)
        if self._speaks and self.index == event.index:
            self._speaks = self.flowing = False
            out.append(event)
        self.settle(out)

    def _delta(self, event: BlockDelta, out: list[Event]) -> None:
        if (index := self._indexes.get(event.index, event.index)) != TEXT:
            out.append(moved(event, index))
            return
        if isinstance(event, AnnotationDelta) and not self._speaks and self._start is None:
            self.ledger.record(
                "TagScrubber", "annotation", "dropped", WAS_CLOSED if event.index == self._said else WAS_MARKUP
            )
            return
        if not isinstance(event, AnnotationDelta) or not self._speaks:
            self._fill(out)
            self._open_text(out)
        out.append(moved(event, self.index))

    def _end(self, event: Event, out: list[Event]) -> None:
        self.settle(out)
        self._take_trail()
        out.append(event)

    def _keep(self, delta: TextDelta) -> None:
        self._blanks.append(delta)

    def _fill(self, out: list[Event]) -> None:
        blanks, self._blanks, self._gap = self._blanks, [], Gap.NONE
        for delta in blanks:
            self._spoken = True
            self._say(delta, out)

    def _clear(self, out: list[Event]) -> None:
        self._blanks.clear()
        self._start = None
        self._catch_up(out)

    def _say(self, delta: TextDelta, out: list[Event]) -> None:
        self._open_text(out)
        out.append(delta if delta.index == self.index else TextDelta(self.index, delta.text))
        self.flowing, self._said = True, delta.index

    def _begin_thought(self, out: list[Event]) -> int:
        self._close(out)
        index = self._begin()
        out.append(BlockStart(index, ReasoningBlock()))
        return index

    def _open_text(self, out: list[Event]) -> None:
        if not self._speaks:
            start = self._start if self._start is not None and self._start.index == self._next else None
            self._close(out)
            self._speaks, self.index = True, self._begin()
            out.append(start or BlockStart(self.index, TextBlock()))
        self._start = None
        self._catch_up(out)

    def _begin(self) -> int:
        self._next += 1
        return self._next - 1

    def _close(self, out: list[Event]) -> None:
        if self._speaks:
            out.append(BlockStop(self.index))
        self._speaks = self.flowing = False
        self._end_thought(out)

    def _catch_up(self, out: list[Event]) -> None:
        out.extend(self._later)
        self._later.clear()
        self._kept = 0


_STEPS: dict[type[Event], Callable[[Writer, Any, list[Event]], None]] = {  # each takes the class it stands at
    BlockStart: Writer._block,
    BlockStop: Writer._stop,
    RefusalDelta: Writer._delta,
    AnnotationDelta: Writer._delta,
    ReasoningDelta: Writer._delta,
    SignatureDelta: Writer._delta,
    ArgumentsDelta: Writer._delta,
    MessageDelta: Writer._end,
    MessageStop: Writer._end,
    StreamError: Writer._end,
}
