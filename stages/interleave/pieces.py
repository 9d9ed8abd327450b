"""The blocks of the output while they wait and while they are written, and whose turn it is to speak."""

from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum, auto

from attrs import define, field

from pipeline.arguments import Arguments, FreeformArguments
from pipeline.events import (
    AnnotationDelta,
    Block,
    BlockDelta,
    Event,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ToolUseBlock,
)
from pipeline.jsontext import size_of

NAMES: dict[type[Block] | type[Event], str] = {
    TextBlock: "text",
    ReasoningBlock: "reasoning",
    RedactedReasoningBlock: "reasoning",
    ToolUseBlock: "tool use",
    ServerBlock: "server tool",
    TextDelta: "text",
    RefusalDelta: "text",
    ReasoningDelta: "reasoning",
    SignatureDelta: "signature",
    AnnotationDelta: "annotation",
}
"""What the ledger calls what could not be written."""

SAID = frozenset({TextDelta, RefusalDelta, ReasoningDelta})
"""What a block that may be split is made of, and nearly all of a stream."""


class Phase(Enum):
    """How far a piece has come."""

    BLANK = auto()  # it waits, and is text of which nothing but blanks has come
    WAITING = auto()
    OPEN = auto()
    ENDED = auto()


BLANK, WAITING, OPEN, ENDED = Phase  # looked up once: finding a member on its class costs as much as a call


@define(eq=False)
class Piece:
    """One block of the output: a whole block of the input, or a part of one that may be split."""

    block: Block
    source: int
    """The index of the block of the input that it is of."""
    phase: Phase = WAITING
    arguments: Arguments | FreeformArguments | None = None
    splits: bool = False
    """It may be ended and go on in another piece."""
    index: int = -1
    waiting: list[BlockDelta] = field(factory=list)
    """Its deltas, while it has not begun."""
    shut: bool = False
    """No text may be added: it is signed, or of another kind."""
    whole: bool | None = None
    """The word that it has ended, whole or not; None before it comes."""
    says: type[Event] | None = None
    """Of what may be split: what its deltas are, once it says something that is not blank."""

    def may_end(self) -> bool:
        """Whether what comes next may be written now."""
        return self.splits or self.whole is not None or (self.arguments is not None and self.arguments.complete)

    def is_cut(self) -> bool:
        """Whether an error now leaves a call that nobody may run."""
        if self.arguments is not None:
            return not self.arguments.close(cut=not self.whole)[1]
        return isinstance(self.block, ToolUseBlock) and not self.whole


@define
class Voices:
    """Blocks that may be split, have said something, and are not written to their end: in order, by what they say.

    Of two that say text, which a refusal is for some clients, or reasoning at the same time, the first speaks and the
    other waits for its end. Each has a number, which grows in that order.
    """

    _text: OrderedDict[int, int] | None = field(init=False, default=None)
    _reasoning: OrderedDict[int, int] | None = field(init=False, default=None)

    def speak(self, piece: Piece, says: type[Event]) -> None:
        """A piece says something."""
        piece.says = says
        voices = self._of(says)
        if voices is None:
            voices = self._begun(says)
        if piece.source not in voices:
            voices[piece.source] = voices[next(reversed(voices))] + 1 if voices else 0

    def end(self, piece: Piece) -> None:
        """The block of a piece has ended, and all of it is written."""
        if voices := self._of(piece.says):
            voices.pop(piece.source, None)

    def clear(self) -> None:
        """All blocks have ended."""
        self._text = self._reasoning = None

    def waits(self, piece: Piece) -> bool:
        """Whether another block must be written to its end before a piece may begin."""
        voices = self._of(piece.says)
        return next(iter(voices)) != piece.source if voices else False

    def spoke(self, source: int) -> bool:
        """Whether a block that has not ended has said some text."""
        return self._text is not None and source in self._text

    def is_followed(self, index: int, says: type[Event]) -> bool:
        """Whether a block speaks, and others wait for its end."""
        voices = self._of(says)
        return index in voices and next(reversed(voices)) != index if voices else False

    def place(self, index: int, says: type[Event], queue: Sequence[Piece]) -> int:
        """Where in the queue more of a block belongs: before the first that waits for its end."""
        voices = self._of(says)
        if not voices or not self.is_followed(index, says):
            return len(queue)
        own = voices[index]
        return next((at for at, piece in enumerate(queue) if voices.get(piece.source, own) > own), len(queue))

    def _begun(self, says: type[Event]) -> OrderedDict[int, int]:
        """The first of those that say this."""
        voices = OrderedDict[int, int]()
        if says is ReasoningDelta:
            self._reasoning = voices
        else:
            self._text = voices
        return voices

    def _of(self, says: type[Event] | None) -> OrderedDict[int, int] | None:
        if says is TextDelta or says is RefusalDelta:
            return self._text
        return self._reasoning if says is ReasoningDelta else None


def splits(block: Block) -> bool:
    """Whether a block may be ended and go on in another."""
    return isinstance(block, TextBlock) or (isinstance(block, ReasoningBlock) and block.splittable)


def size_of_delta(delta: BlockDelta) -> int:
    """How many bytes a delta takes while it waits."""
    if isinstance(delta, SignatureDelta):
        return size_of(delta.signature)
    return size_of(str(delta.annotation) if isinstance(delta, AnnotationDelta) else delta.text)
