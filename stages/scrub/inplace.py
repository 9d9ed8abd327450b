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
    Carry,
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
from stages.scrub.tape import weight
from stages.scrub.voice import WAS_CLOSED, WAS_MARKUP, Gap, Voice

OWN: Final = 1 << 20
"""The first index of blocks that are ours: no message has so many."""

ENDINGS: Final = (MessageDelta, MessageStop, StreamError)
BOUND: Final = (BlockStart, BlockStop, RefusalDelta, AnnotationDelta, ReasoningDelta, SignatureDelta, ArgumentsDelta)


@define
class PlacedWriter(Voice):
    """Writes events as they came, blocks that overlap too; what is put in has blocks of its own.

    Before it, the text block that speaks is closed, and text that follows has another one. What waits, because it may
    be blanks before markup, waits in order.
    """

    _indexes: Iterator[int] = field(init=False, factory=lambda: count(OWN))
    _texts: dict[int, int] = field(init=False, factory=dict)
    """The index that each open text block leaves with."""
    _known: dict[int, BlockStart] = field(init=False, factory=dict)
    """The text blocks by the indexes that they came with; what begins one of ours in their place remembers theirs."""
    _waiting: list[Event] = field(init=False, factory=list)
    """The start of a text block, blanks, and what came meanwhile."""
    _said: int | None = field(init=False, default=None)
    """The text block that speaks, or has something beside text, by the index that it came with."""

    @property
    def speaking(self) -> bool:
        """The block of text that speaks is open."""
        return self._said in self._texts

    def open(self, block: ToolUseBlock, out: list[Event]) -> int:
        """A call that was written as text begins; its index."""
        self._shut(out)
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text, or says none."""
        if isinstance(event, ENDINGS):
            self.settle(out)
            out.append(event)
        elif isinstance(event, BlockStart) and isinstance(event.block, TextBlock):
            self._known[event.index] = event
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
            self._kept += weight(event)
        else:
            self._pass(event, out)

    def settle(self, out: list[Event]) -> None:
        """Nothing more is written: what waits is, if it is ever to be."""
        self._release(out)
        self._end_thought(out)
        self._take_trail()
        ours = [index for index in self._texts.values() if index >= OWN]
        self._texts = {came: index for came, index in self._texts.items() if index < OWN}
        out.extend(map(BlockStop, ours))

    def _beside(self, event: RefusalDelta | AnnotationDelta, out: list[Event]) -> None:
        """What a text block has beside its text."""
        note, begun = isinstance(event, AnnotationDelta), event.index in self._texts
        if note and not begun and not any(isinstance(one, BlockStart) for one in self._waiting):
            self.ledger.record(
                "TagScrubber", "annotation", "dropped", WAS_CLOSED if event.index == self._said else WAS_MARKUP
            )
            return
        if not (note and begun and self.behind_markup):
            self._fill(out)
        at = self._open(event.index, out)
        self._said = event.index
        out.append(event if at == event.index else evolve(event, index=at))

    def _stop(self, event: BlockStop, out: list[Event]) -> None:
        """The end of a text block; of one of which all was cut out, or that was closed, there is none."""
        if self.behind_markup:
            self._clear(out)
        self._release(out)
        at = self._texts.pop(event.index, None)
        if at is not None:
            out.append(event if at == event.index else evolve(event, index=at))
        self.flowing = self.flowing and at != self.index

    def _release(self, out: list[Event]) -> None:
        """What waits is written, but for blanks behind markup."""
        if self.behind_markup:
            self._drop(TextDelta)
            self._write(out)
        elif self._waiting:
            self._fill(out)

    def _keep(self, delta: TextDelta) -> None:
        self._waiting.append(delta)

    def _fill(self, out: list[Event]) -> None:
        if self._gap is not Gap.NONE and any(isinstance(event, TextDelta) and event.text for event in self._waiting):
            self._spoken = True
        self._write(out)
        self._gap = Gap.NONE

    def _clear(self, out: list[Event]) -> None:
        if self._waiting:
            self._drop(TextDelta, BlockStart)
            self._write(out)

    def _drop(self, *kinds: type[Event]) -> None:
        """Of what waits, this is not written."""
        self._waiting = [event for event in self._waiting if not isinstance(event, kinds)]

    def _write(self, out: list[Event]) -> None:
        waiting, self._waiting, self._kept = self._waiting, [], 0
        for event in waiting:
            if isinstance(event, TextDelta) and event.text:
                self._say(event, out)
            else:
                self._pass(event, out)

    def _pass(self, event: Event, out: list[Event]) -> None:
        """An event that is no text leaves; one that begins something ends the reasoning before it.

        An empty delta leaves only as it came: a block that was closed, or never began, is not opened for it.
        """
        if isinstance(event, TextDelta) and self._texts.get(event.index) != event.index:
            return
        if isinstance(event, BlockStart) or (isinstance(event, Carry) and event.opens):
            self._end_thought(out)
        if isinstance(event, BlockStart):
            self._texts[event.index] = event.index
        out.append(event)

    def _say(self, delta: TextDelta, out: list[Event]) -> None:
        at = self._open(delta.index, out)
        out.append(delta if at == delta.index else evolve(delta, index=at))
        self.index, self._said, self.flowing = at, delta.index, True

    def _begin_thought(self, out: list[Event]) -> int:
        self._shut(out)
        index = next(self._indexes)
        out.append(BlockStart(index, ReasoningBlock()))
        return index

    def _open(self, index: int, out: list[Event]) -> int:
        """Where text of a block goes: to that, or to one of ours, if it was closed or never began."""
        self._end_thought(out)
        if index not in self._texts:
            at = self._texts[index] = next(self._indexes)
            out.append(evolve(self._known.setdefault(index, BlockStart(index, TextBlock())), index=at))
        return self._texts[index]

    def _shut(self, out: list[Event]) -> None:
        """The block that speaks is closed: something is put in behind it."""
        self._end_thought(out)
        if self._said is not None and self._said in self._texts:
            out.append(BlockStop(self._texts.pop(self._said)))
