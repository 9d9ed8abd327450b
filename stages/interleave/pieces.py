"""The blocks of the output while they wait and while they are written, and whose turn it is to speak."""

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
    """Its deltas, while it has not begun, and their size in bytes."""
    size: int = 0
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


_VOICE: dict[type[Event], str] = {TextDelta: "_text", RefusalDelta: "_text", ReasoningDelta: "_reasoning"}


@define
class Voices:
    """Blocks that may be split, have said something, and are not written to their end: in order, by what they say.

    Of two that say text, which a refusal is for some clients, or reasoning at the same time, the first speaks and the
    other waits for its end.
    """

    _text: tuple[int, ...] = field(init=False, default=())
    _reasoning: tuple[int, ...] = field(init=False, default=())

    def speak(self, piece: Piece, says: type[Event]) -> None:
        """A piece says something."""
        piece.says = says
        voices = self._of(says)
        if piece.source not in voices:
            setattr(self, _VOICE[says], (*voices, piece.source))

    def end(self, piece: Piece) -> None:
        """The block of a piece has ended, and all of it is written."""
        if piece.says is not None:
            setattr(self, _VOICE[piece.says], tuple(one for one in self._of(piece.says) if one != piece.source))

    def clear(self) -> None:
        """All blocks have ended."""
        self._text = self._reasoning = ()

    def waits(self, piece: Piece) -> bool:
        """Whether another block must be written to its end before a piece may begin."""
        voices = self._of(piece.says) if piece.says is not None else ()
        return bool(voices) and voices[0] != piece.source

    def spoke(self, source: int) -> bool:
        """Whether a block that has not ended has said some text."""
        return source in self._text

    def is_followed(self, index: int, says: type[Event]) -> bool:
        """Whether a block speaks, and others wait for its end."""
        voices = self._of(says)
        return len(voices) > 1 and voices[-1] != index and index in voices

    def place(self, index: int, says: type[Event], queue: Sequence[Piece]) -> int:
        """Where in the queue more of a block belongs: before the first that waits for its end."""
        voices = self._of(says)
        later = {*voices[voices.index(index) + 1 :]} if index in voices else ()
        return next((at for at, piece in enumerate(queue) if piece.source in later), len(queue))

    def _of(self, says: type[Event]) -> tuple[int, ...]:
        voices: tuple[int, ...] = getattr(self, _VOICE[says]) if says in _VOICE else ()
        return voices


def splits(block: Block) -> bool:
    """Whether a block may be ended and go on in another."""
    return isinstance(block, TextBlock) or (isinstance(block, ReasoningBlock) and block.splittable)


def size_of_delta(delta: BlockDelta) -> int:
    """How many bytes a delta takes while it waits."""
    if isinstance(delta, SignatureDelta):
        return size_of(delta.signature)
    return size_of(str(delta.annotation) if isinstance(delta, AnnotationDelta) else delta.text)
