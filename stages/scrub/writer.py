"""What is left of the text, as events: one block at a time, whatever was cut out of it."""

from collections.abc import Callable
from enum import Enum, auto
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
from pipeline.ledger import Ledger

TEXT = -2
"""What stands for the index of a block of text, which may become several, or none."""


class _Own(Enum):
    """The open block, if it is one that this stage writes."""

    NONE = auto()
    TEXT = auto()
    THOUGHT = auto()


class Gap(Enum):
    """What stands before the text that comes next; blanks are kept until that is certain."""

    START = auto()  # the beginning of the message
    MARKUP = auto()
    NONE = auto()  # text, or a block


@define
class Writer:
    """Writes events under indexes of its own, dense, in the order in which it is given them.

    Text and recovered reasoning have blocks that are opened when there is something to write and closed when another
    begins. Blanks between markup and markup, or the message's ends, are not written; nor are those between markup and
    the first text at all, nor those at both ends of reasoning.
    """

    ledger: Ledger
    index: int = field(init=False, default=-1)
    """Of the block that is open."""
    flowing: bool = field(init=False, default=False)
    """It is one of text, which is written as it comes."""
    _next: int = field(init=False, default=0)
    _own: _Own = field(init=False, default=_Own.NONE)
    same: int = field(init=False, default=-1)
    """Of the last block that is no text, if it leaves with the index that it came with."""
    _indexes: dict[int, int] = field(init=False, factory=dict)
    """The index that each block leaves with, by the one it came with; `TEXT` for those of text."""
    _start: BlockStart | None = field(init=False, default=None)
    """The start of a text block of which nothing was written yet, nor cut out."""
    _later: list[Event] = field(init=False, factory=list)
    """Events of no block that came meanwhile."""
    _gap: Gap = field(init=False, default=Gap.START)
    _spoken: bool = field(init=False, default=False)
    """Some text was written."""
    _blanks: list[TextDelta] = field(init=False, factory=list)
    _trail: str = field(init=False, default="")
    """Blanks at the end of the reasoning so far."""

    @property
    def behind_markup(self) -> bool:
        """Nothing but blanks stands between markup and what comes next."""
        return self._gap is Gap.MARKUP

    @property
    def held(self) -> int:
        """Bytes of blanks that wait, at least."""
        return sum(len(delta.text) for delta in self._blanks) + len(self._trail)

    def text(self, delta: TextDelta, out: list[Event]) -> None:
        """Text for the reader."""
        if self._gap is not Gap.NONE:
            if delta.text.isspace():
                self._blanks.append(delta)
                return
            if self._gap is Gap.MARKUP and not self._spoken:
                self._blanks.clear()
                delta = TextDelta(delta.index, delta.text.lstrip())
            self._fill(out)
        self._spoken = True
        self._say(delta, out)

    def thought(self, text: str, out: list[Event]) -> None:
        """Reasoning that was written as text."""
        begun = self._own is _Own.THOUGHT and not self.behind_markup
        text = text if begun else text.lstrip()
        said = text.rstrip()
        if not said:
            self._trail += text
            return
        if self._own is not _Own.THOUGHT:
            self._open(_Own.THOUGHT, BlockStart(self._next, ReasoningBlock()), out)
            self._start = None
            self._catch_up(out)
        self._gap = Gap.NONE
        out.append(ReasoningDelta(self.index, self._trail + said))
        self._trail = text[len(said) :]

    def call(self, block: ToolUseBlock, arguments: str, out: list[Event]) -> None:
        """A call that was written as text, whole."""
        index = self.open(block, out)
        out.extend((ArgumentsDelta(index, arguments), BlockStop(index)))

    def open(self, block: ToolUseBlock, out: list[Event]) -> int:
        """A call that was written as text begins; its index, under which all is written up to its stop."""
        self._close(out)
        self.same = -1
        index = self._begin()
        out.append(BlockStart(index, block))
        return index

    def cut(self, out: list[Event]) -> None:
        """Markup was cut out here."""
        self._blanks.clear()
        self._trail = ""
        self._start = None
        self._gap = Gap.MARKUP
        self._catch_up(out)

    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text."""
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event, out)
        elif self._start is not None or self._blanks:
            self._later.append(event)
        else:
            out.append(event)

    def settle(self, out: list[Event]) -> None:
        """Nothing more is written: what waits is, if it is ever to be."""
        if self._gap is Gap.START:
            self._fill(out)
        self._blanks.clear()
        self._close(out)
        self._start = None
        self._catch_up(out)

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
        if self._own is _Own.TEXT and self.index == event.index:
            self._own, self.flowing = _Own.NONE, False
            out.append(event)
        self.settle(out)

    def _delta(self, event: BlockDelta, out: list[Event]) -> None:
        if (index := self._indexes.get(event.index, event.index)) == TEXT:
            if isinstance(event, AnnotationDelta) and self._own is not _Own.TEXT and self._start is None:
                self.ledger.record("TagScrubber", "annotation", "dropped", "the text that it belongs to was markup")
                return
            self._fill(out)
            self._open_text(out)
            out.append(moved(event, self.index))
        else:
            out.append(moved(event, index))

    def _end(self, event: Event, out: list[Event]) -> None:
        self.settle(out)
        out.append(event)

    def _fill(self, out: list[Event]) -> None:
        """Write the blanks that waited: text follows them, and stands before them."""
        blanks, self._blanks, self._gap = self._blanks, [], Gap.NONE
        for delta in blanks:
            self._say(delta, out)

    def _say(self, delta: TextDelta, out: list[Event]) -> None:
        self._open_text(out)
        out.append(delta if delta.index == self.index else TextDelta(self.index, delta.text))
        self.flowing = True

    def _open_text(self, out: list[Event]) -> None:
        if self._own is not _Own.TEXT:
            start = self._start if self._start is not None and self._start.index == self._next else None
            self._open(_Own.TEXT, start or BlockStart(self._next, TextBlock()), out)
        self._start = None
        self._catch_up(out)

    def _open(self, own: _Own, start: BlockStart, out: list[Event]) -> None:
        self._close(out)
        self._own, self.index = own, self._begin()
        out.append(start)

    def _begin(self) -> int:
        self._next += 1
        return self._next - 1

    def _close(self, out: list[Event]) -> None:
        if self._own is not _Own.NONE:
            out.append(BlockStop(self.index))
        self._own, self.flowing, self._trail = _Own.NONE, False, ""

    def _catch_up(self, out: list[Event]) -> None:
        out.extend(self._later)
        self._later.clear()


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
