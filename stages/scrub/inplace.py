"""What is left of the text where it goes back to the dialect that it came in: every event as it came, in its place."""

from collections.abc import Iterator
from itertools import count
from typing import Final

from attrs import define, evolve, field

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
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
)
from pipeline.ledger import Ledger
from stages.scrub.writer import Gap

OWN: Final = 1 << 20
"""The first index of blocks that are ours: no message has so many."""

ENDINGS: Final = (MessageDelta, MessageStop, StreamError)
BOUND: Final = (BlockStart, BlockStop, RefusalDelta, AnnotationDelta, ReasoningDelta, SignatureDelta, ArgumentsDelta)


@define
class PlacedWriter:
    """Writes events as they came, blocks that overlap too; what is put in has blocks of its own.

    Before it, the text block that speaks is closed, and text that follows has another one. What waits, because it may
    be blanks before markup, waits in order.
    """

    ledger: Ledger
    index: int = field(init=False, default=-1)
    """Of the block that speaks."""
    flowing: bool = field(init=False, default=False)
    """It is one of text, which is written as it comes."""
    same: int = field(init=False, default=-1)
    """As of `Writer`, whose short way it does not take."""
    _indexes: Iterator[int] = field(init=False, factory=lambda: count(OWN))
    _texts: dict[int, int] = field(init=False, factory=dict)
    """The index that each open text block leaves with."""
    _known: set[int] = field(init=False, factory=set)
    """The indexes that text blocks came with."""
    _waiting: list[Event] = field(init=False, factory=list)
    """The start of a text block, blanks, and what came meanwhile."""
    _gap: Gap = field(init=False, default=Gap.START)
    _spoken: bool = field(init=False, default=False)
    """Some text was written."""
    _said: int = field(init=False, default=-1)
    """The text block that speaks, by the index that it came with."""
    _thought: int = field(init=False, default=-1)
    """The block of recovered reasoning, while it is open."""
    _trail: str = field(init=False, default="")
    """Blanks at the end of the reasoning so far."""

    @property
    def behind_markup(self) -> bool:
        """Nothing but blanks stands between markup and what comes next."""
        return self._gap is Gap.MARKUP

    @property
    def held(self) -> int:
        """Bytes of blanks that wait, at least."""
        return sum(len(event.text) for event in self._waiting if isinstance(event, TextDelta)) + len(self._trail)

    def text(self, delta: TextDelta, out: list[Event]) -> None:
        """Text for the reader."""
        if self._gap is not Gap.NONE:
            if delta.text.isspace():
                self._waiting.append(delta)
                return
            if self._gap is Gap.MARKUP and not self._spoken:
                self._drop(TextDelta)
                stripped = delta.text.lstrip()
                delta = delta if stripped == delta.text else evolve(delta, text=stripped)
        self._fill(out)
        self._spoken = True
        self._say(delta, out)

    def thought(self, text: str, out: list[Event]) -> None:
        """Reasoning that was written as text."""
        begun = self._thought >= 0 and not self.behind_markup
        text = text if begun else text.lstrip()
        said = text.rstrip()
        if not said:
            self._trail += text
            return
        if self._thought < 0:
            self._drop(TextDelta, BlockStart)
            self._shut(out)
            self._fill(out)
            self._thought = next(self._indexes)
            out.append(BlockStart(self._thought, ReasoningBlock()))
        self._gap = Gap.NONE
        out.append(ReasoningDelta(self._thought, self._trail + said))
        self._trail = text[len(said) :]

    def call(self, block: ToolUseBlock, arguments: str, out: list[Event]) -> None:
        """A call that was written as text, whole."""
        index = self.open(block, out)
        out.extend((ArgumentsDelta(index, arguments), BlockStop(index)))

    def open(self, block: ToolUseBlock, out: list[Event]) -> int:
        """A call that was written as text begins; its index."""
        self._shut(out)
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

    def cut(self, out: list[Event]) -> None:
        """Markup was cut out here."""
        self._drop(TextDelta, BlockStart)
        self._fill(out)
        self._trail = ""
        self._gap = Gap.MARKUP
        self.flowing = False

    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text."""
        if isinstance(event, ENDINGS):
            self.settle(out)
            out.append(event)
        elif isinstance(event, BlockStart) and isinstance(event.block, TextBlock):
            self._known.add(event.index)
            self._release(out)
            self._waiting.append(event)
            self.flowing = False
        elif isinstance(event, BlockStop) and event.index in self._known:
            self._stop(event, out)
        elif isinstance(event, RefusalDelta | AnnotationDelta) and event.index in self._known:
            self._beside(event, out)
        elif isinstance(event, BOUND):
            self._release(out)
            if isinstance(event, BlockStart):
                self._end_thought(out)
                self._gap = Gap.NONE
            out.append(event)
        elif self._waiting:
            self._waiting.append(event)
        else:
            out.append(event)

    def settle(self, out: list[Event]) -> None:
        """Nothing more is written: what waits is, if it is ever to be."""
        self._release(out)
        self._end_thought(out)
        ours = [index for index in self._texts.values() if index >= OWN]
        self._texts = {came: index for came, index in self._texts.items() if index < OWN}
        out.extend(map(BlockStop, ours))

    def _beside(self, event: RefusalDelta | AnnotationDelta, out: list[Event]) -> None:
        """What a text block has beside its text."""
        begun = event.index in self._texts or any(isinstance(one, BlockStart) for one in self._waiting)
        if isinstance(event, AnnotationDelta) and not begun:
            self.ledger.record("TagScrubber", "annotation", "dropped", "the text that it belongs to was markup")
            return
        self._fill(out)
        at = self._open(event.index, out)
        out.append(event if at == event.index else evolve(event, index=at))

    def _stop(self, event: BlockStop, out: list[Event]) -> None:
        """The end of a text block; of one of which all was cut out, or that was closed, there is none."""
        if self.behind_markup:
            self._drop(TextDelta, BlockStart)
        self._release(out)
        at = self._texts.pop(event.index, None)
        if at is not None:
            out.append(event if at == event.index else evolve(event, index=at))
        self.flowing = self.flowing and at != self.index

    def _drop(self, *kinds: type[Event]) -> None:
        """Of what waits, this is not written."""
        self._waiting = [event for event in self._waiting if not isinstance(event, kinds)]

    def _release(self, out: list[Event]) -> None:
        """What waits is written, but for blanks behind markup."""
        if self.behind_markup:
            self._drop(TextDelta)
            self._write(out)
        elif self._waiting:
            self._fill(out)

    def _fill(self, out: list[Event]) -> None:
        """What waits is written: text follows it, or stands before it."""
        if self._gap is not Gap.NONE and any(isinstance(event, TextDelta) for event in self._waiting):
            self._spoken = True
        self._write(out)
        self._gap = Gap.NONE

    def _write(self, out: list[Event]) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            if isinstance(event, TextDelta):
                self._say(event, out)
            else:
                if isinstance(event, BlockStart):
                    self._end_thought(out)
                    self._texts[event.index] = event.index
                out.append(event)

    def _say(self, delta: TextDelta, out: list[Event]) -> None:
        at = self._open(delta.index, out)
        out.append(delta if at == delta.index else evolve(delta, index=at))
        self.index, self._said, self.flowing = at, delta.index, True

    def _open(self, index: int, out: list[Event]) -> int:
        """Where text of a block goes: to that, or to one of ours, if it was closed or never began."""
        self._end_thought(out)
        if index not in self._texts:
            self._known.add(index)
            self._texts[index] = next(self._indexes)
            out.append(BlockStart(self._texts[index], TextBlock()))
        return self._texts[index]

    def _shut(self, out: list[Event]) -> None:
        """The block that speaks is closed: something is put in behind it."""
        self._end_thought(out)
        if (at := self._texts.pop(self._said, None)) is not None:
            out.append(BlockStop(at))
        self.flowing = False

    def _end_thought(self, out: list[Event]) -> None:
        if self._thought >= 0:
            out.append(BlockStop(self._thought))
        self._thought, self._trail = -1, ""
