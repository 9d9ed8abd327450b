"""What has come and was not passed on."""

from collections import deque
from collections.abc import Iterable, Iterator

from attrs import define, field

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    Carry,
    Event,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    TextBlock,
    TextDelta,
)
from pipeline.jsontext import size_of
from stages.scrub.scanner import Piece

EVENT = 64
"""Bytes that an event takes beside what it says, about."""


def weight(event: Event) -> int:
    """Bytes of an event that is no text, while it waits."""
    if isinstance(event, ReasoningDelta | ArgumentsDelta | RefusalDelta):
        return EVENT + size_of(event.text)
    if isinstance(event, SignatureDelta):
        return EVENT + size_of(event.signature)
    if isinstance(event, AnnotationDelta):
        return EVENT + size_of(str(event.annotation))
    if isinstance(event, BlockStart):
        return EVENT + size_of(str(event.block))
    return EVENT + (len(event.frame.data) if isinstance(event, Carry) else 0)


@define
class Tape:
    """Events in the order in which they came, and the pieces that their text is made of, as far as that is certain.

    Mostly nothing waits: then there is no tape, because an empty one takes a kilobyte.
    """

    events: deque[Event] = field(init=False, factory=deque)
    pieces: deque[Piece] = field(init=False, factory=deque)
    size: int = field(init=False, default=0)
    """Bytes of the pieces, and of the events that are no text."""
    _passed: int = field(init=False, default=0)
    """How much of the first text was passed on."""
    _noted: int = field(init=False, default=0)
    """Among how many of the next characters no citation stands any more."""
    _reach: int = field(init=False, default=0)
    """How many of the next characters are known not to be shown."""
    _told_of: bool = field(init=False, default=False)
    """Some of it was shown, under the frame that it came in."""

    @property
    def speaks(self) -> bool:
        """Some of the visible text comes next."""
        return bool(self.events) and isinstance(event := self.events[0], TextDelta) and event.text != ""

    def wait(self, event: Event) -> None:
        """One more event, which is no text."""
        self.events.append(event)
        self.size += weight(event)

    def tell(self, piece: Piece) -> None:
        """One more piece is certain."""
        self.pieces.append(piece)
        self.size += size_of(piece.raw)

    def next(self) -> Piece:
        """The first piece, which is taken off."""
        piece = self.pieces.popleft()
        self.size -= size_of(piece.raw)
        return piece

    def put_back(self, piece: Piece) -> None:
        """A piece is the first again."""
        self.pieces.appendleft(piece)
        self.size += size_of(piece.raw)

    def whole(self, length: int) -> int:
        """How many of the next characters, at most so many, are whole deltas."""
        end, whole = -self._passed, 0
        for event in self.events:
            if isinstance(event, TextDelta):
                end += len(event.text)
                if end > length:
                    break
                whole = end
        return whole

    def notes(self, length: int, behind: Iterable[Piece]) -> list[AnnotationDelta]:
        """The citations among so many characters, those of the pieces behind, and right behind these, not of another
        block: they are taken off. Where they were looked for nobody looks again."""
        if length < self._noted:
            return []
        if length >= self._reach:
            self._reach = length + sum(len(piece.raw) for piece in behind)
        end, at, found = -self._passed, 0, list[AnnotationDelta]()
        for event in self.events:
            if isinstance(event, TextDelta):
                end += len(event.text)
            if end > self._reach or (isinstance(event, BlockStart) and isinstance(event.block, TextBlock)):
                break
            at += 1
            if isinstance(event, AnnotationDelta):
                found.append(event)
        self._noted = min(end, self._reach)
        if found:
            passed = [self.events.popleft() for _ in range(at)]
            self.events.extendleft(event for event in reversed(passed) if not isinstance(event, AnnotationDelta))
            self.size -= sum(map(weight, found))
        return found

    def beside(self) -> Iterator[Event]:
        """What is no text, up to the next text."""
        while self.events and not self.speaks:
            event = self.events.popleft()
            self.size -= weight(event)
            yield event

    def take(self, count: int, *, shown: bool = False) -> Iterator[Event]:
        """So many characters of text, in the deltas that they came in, and what stands between them.

        Of a delta that is taken in parts, the first that is shown is the one that its frame tells.
        """
        self._noted -= count
        self._reach -= count
        while count > 0:
            event = self.events.popleft()
            if not isinstance(event, TextDelta):
                self.size -= weight(event)
            else:
                begin, end = self._passed, self._passed + count
                self._passed = 0
                if end < len(event.text):
                    self.events.appendleft(event)
                    self._passed = end
                text = event.text[begin:end]
                count -= len(text)
                if len(text) < len(event.text):
                    origin = None if self._told_of else event.origin
                    self._told_of = (self._told_of or shown) and self._passed > 0
                    event = TextDelta(event.index, text, origin=origin)
            yield event
