"""One block at a time: what arrives interleaved leaves in order, and no tool call is ever split."""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from attrs import define, field

from pipeline.arguments import Arguments
from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError, UpstreamError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    moved,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import Stage

LIMITING = frozenset({StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL})
"""The stop reasons that may cut a call short: it is closed as it stands."""


class _Phase(Enum):
    WAITING = auto()
    OPEN = auto()
    ENDED = auto()


@define(eq=False)
class _Piece:
    """One block of the output: a whole block of the input, or a part of one that may be split."""

    block: Block
    splits: bool
    """It may be ended and go on in another piece."""
    arguments: Arguments | None = None
    blank: bool = False
    """Text of which nothing but blanks has come."""
    phase: _Phase = _Phase.WAITING
    index: int = -1
    waiting: list[BlockDelta] = field(factory=list)
    """Its deltas, while it has not begun, and their size in bytes."""
    size: int = 0
    sealed: bool = False
    """Signed: nothing may be added."""
    stopped: bool = False
    whole: bool = True
    """With `stopped`: the word that it is whole."""

    def may_end(self) -> bool:
        """Whether what comes next may be written now."""
        return self.splits or self.stopped or (self.arguments is not None and self.arguments.complete)

    def is_cut(self) -> bool:
        """Whether an error now leaves a call that nobody may run."""
        if not isinstance(self.block, ToolUseBlock):
            return False
        if self.arguments is None:
            return not (self.stopped and self.whole)
        ended = self.arguments.complete or (self.stopped and self.whole)
        return not (ended and self.arguments.close()[1])


@define
class InterleaveBuffer(Stage[Event, Event]):
    """At most one block is open, and no tool call is split.

    Text and splittable reasoning are split and reopened around what comes between. A tool call, and a reasoning item
    whose blob comes last, are not: what arrives meanwhile waits, in order of first arrival. A call ends by the
    upstream's word, at the finish, or, once its arguments are visibly whole, at the first thing that must be written
    after it; what waited is let go at once. A call that an error cuts short is left open: clients run one that was
    closed. What can never be written is recorded.
    """

    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _blocks: dict[int, Block] = field(init=False, factory=dict)
    _live: dict[int, _Piece] = field(init=False, factory=dict)
    """The piece that a block's next delta belongs to."""
    _current: _Piece | None = field(init=False, default=None)
    _queue: deque[_Piece] = field(init=False, factory=deque)
    """Pieces that wait, in order. Only the last one may be blank."""
    _next: int = field(init=False, default=0)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        try:
            for event in items:
                step = _STEPS.get(type(event))
                if step is None:
                    out.append(event)
                else:
                    step(self, event, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if not self.ended:
            try:
                self._settle(out)
            except PipelineError as error:
                raise error.after(out) from error.__cause__
            if cause is not None:
                out.append(cause)
        return out

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        block = event.block
        if event.index in self._blocks:
            raise StageError(f"BlockStart for block {event.index}, which was opened before")
        self._blocks[event.index] = block
        if not _splits(block):
            call = isinstance(block, ToolUseBlock) and block.kind is ToolKind.FUNCTION
            self._append(event.index, _Piece(block, False, Arguments(self.limits) if call else None))
            self._advance(out)

    def _text(self, event: TextDelta | RefusalDelta, out: list[Event]) -> None:
        piece = self._current
        if piece is None or self._queue or piece is not self._live.get(event.index):
            piece = self._tail(event)
        if not event.text:
            return
        if piece is None:
            piece = _Piece(self._blocks[event.index], True, blank=True)
            self._append(event.index, piece)
        self._write(piece, event, len(event.text), out)
        if piece.blank and not event.text.isspace():
            piece.blank = False
            self._advance(out)

    def _reasoning(self, event: ReasoningDelta, out: list[Event]) -> None:
        piece = self._current
        if piece is None or self._queue or piece is not self._live.get(event.index) or piece.sealed:
            piece = self._tail(event)
        if not event.text:
            return
        if piece is None:
            piece = _Piece(self._blocks[event.index], True)
            self._append(event.index, piece)
            self._advance(out)
        if piece.phase is _Phase.ENDED:
            self._lose("reasoning", "for a block that has ended")
        else:
            self._write(piece, event, len(event.text), out)

    def _belonging(self, event: SignatureDelta | AnnotationDelta, out: list[Event]) -> None:
        """A signature or a citation: it belongs to what was written of its block, and opens nothing."""
        self._known(event)
        piece = self._live.get(event.index)
        signature = isinstance(event, SignatureDelta)
        if piece is None or piece.phase is _Phase.ENDED or piece.sealed:
            self._lose("signature" if signature else "annotation", "for a block that has ended")
            return
        piece.sealed = signature
        self._write(piece, event, len(event.signature if isinstance(event, SignatureDelta) else str(event)), out)

    def _arguments(self, event: ArgumentsDelta, out: list[Event]) -> None:
        self._known(event)
        piece = self._live[event.index]
        text = event.text
        if piece.phase is _Phase.ENDED or piece.stopped:
            if text.strip():
                self._lose("arguments", "for a call that has ended")
            return
        if (arguments := piece.arguments) is not None:
            withheld, excess = len(arguments.withheld), arguments.excess
            text = arguments.feed(text)
            if arguments.excess and not excess:
                self._lose("arguments", "text behind the end of their JSON value")
            if len(arguments.withheld) != withheld:
                self._hold(len(arguments.withheld) - withheld)
        if text:
            delta = event if text == event.text else ArgumentsDelta(event.index, text)
            self._write(piece, delta, len(text), out)
        if self._queue:
            self._advance(out)

    def _stop(self, event: BlockStop, out: list[Event]) -> None:
        self._known(event)
        piece = self._live.get(event.index)
        if piece is not None and piece.phase is not _Phase.ENDED:
            piece.stopped = True
            piece.whole = event.complete
            self._advance(out)

    def _finish(self, event: MessageDelta, out: list[Event]) -> None:
        """The end of the message: a block that nobody has stopped ends now."""
        for piece in (self._current, *self._queue):
            if piece is not None and not piece.stopped:
                piece.stopped = True
                piece.whole = event.stop_reason not in LIMITING
        self._advance(out)
        out.append(event)

    def _fail(self, event: StreamError, out: list[Event]) -> None:
        self._settle(out)
        out.append(event)

    def _tail(self, event: TextDelta | RefusalDelta | ReasoningDelta) -> _Piece | None:
        """The piece that a block can go on in: its last one, if nothing came between; else it must be split."""
        block = self._known(event)
        live = self._live.get(event.index)
        if not _splits(block):
            return live
        queue = self._queue
        if queue and queue[-1].blank and queue[-1] is not live and event.text:
            self._drop_blank(queue.pop())
        last = queue[-1] if queue else self._current
        return last if last is live and last is not None and not last.sealed else None

    def _append(self, index: int, piece: _Piece) -> None:
        """The piece comes next; text that is blank up to here is all blank."""
        if self._queue and self._queue[-1].blank:
            self._drop_blank(self._queue.pop())
        if len(self._queue) >= self.limits.blocks:
            raise LimitExceeded(f"more than {self.limits.blocks} blocks wait", code="blocks")
        self._live[index] = piece
        self._queue.append(piece)

    def _write(self, piece: _Piece, delta: BlockDelta, size: int, out: list[Event]) -> None:
        """Write a delta, or keep it while its piece waits. `size`: its characters."""
        if piece.phase is _Phase.OPEN:
            out.append(moved(delta, piece.index))
            return
        piece.waiting.append(delta)
        piece.size += size
        self._hold(size)

    def _hold(self, size: int) -> None:
        self.held += size
        if self.held > self.limits.held_bytes:
            raise LimitExceeded(
                f"more than {self.limits.held_bytes} bytes wait for a block that does not end", code="held_bytes"
            )

    def _advance(self, out: list[Event]) -> None:
        """Write as much as the order allows."""
        while True:
            first = self._queue[0] if self._queue else None
            if first is not None and first.blank:
                if first.stopped:
                    self._drop_blank(self._queue.popleft())
                first = None
            current = self._current
            if current is None:
                if first is None:
                    return
                self._begin(self._queue.popleft(), out)
            elif current.stopped or (first is not None and current.may_end()):
                self._end(current, out)
            else:
                return

    def _begin(self, piece: _Piece, out: list[Event]) -> None:
        if self._next >= self.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.limits.blocks} blocks", code="blocks")
        piece.index = self._next
        piece.phase = _Phase.OPEN
        self._next += 1
        self._current = piece
        out.append(BlockStart(piece.index, piece.block))
        out.extend(moved(delta, piece.index) for delta in piece.waiting)
        self.held -= piece.size
        piece.waiting = []

    def _end(self, piece: _Piece, out: list[Event]) -> None:
        """Close the open piece.

        Raises `UpstreamError` if it is a call that is said to be whole and is no JSON object; it stays open then.
        """
        whole = piece.whole
        if (arguments := piece.arguments) is not None:
            rest, is_object = arguments.close()
            if whole and not is_object:
                raise UpstreamError(
                    f"the arguments of {_called(piece.block)} are no JSON object",
                    kind=ErrorKind.INVALID_TOOL_ARGUMENTS,
                    code="invalid_tool_arguments",
                )
            if rest:
                out.append(ArgumentsDelta(piece.index, rest))
            if arguments.unwrapped:
                self.ledger.record("InterleaveBuffer", "arguments", "unwrapped", "an object encoded twice")
            self.held -= len(arguments.withheld)
            whole = is_object
        out.append(BlockStop(piece.index, whole))
        piece.phase = _Phase.ENDED
        self._current = None

    def _settle(self, out: list[Event]) -> None:
        """Before an error or a sudden end: what can be written goes out; a call that was cut is left open."""
        self.ended = True
        while self._current is not None or self._queue:
            if self._current is None:
                piece = self._queue.popleft()
                if piece.blank:
                    self._drop_blank(piece)
                    continue
                self._begin(piece, out)
            elif self._current.is_cut():
                arguments = self._current.arguments
                if arguments is not None and arguments.withheld:
                    out.append(ArgumentsDelta(self._current.index, arguments.withheld))
                break
            else:
                self._end(self._current, out)
        for piece in self._queue:
            self._lose(_NAMES[type(piece.block)], "it waited behind a call that was cut")
        self._queue.clear()
        self.held = 0

    def _drop_blank(self, piece: _Piece) -> None:
        piece.phase = _Phase.ENDED
        self.held -= piece.size
        self._lose("text", "a block of blanks alone")

    def _known(self, event: BlockDelta | BlockStop) -> Block:
        try:
            return self._blocks[event.index]
        except KeyError:
            raise StageError(f"{type(event).__name__} for block {event.index}, which was never opened") from None

    def _lose(self, path: str, reason: str) -> None:
        self.ledger.record("InterleaveBuffer", path, "dropped", reason)


def _splits(block: Block) -> bool:
    return isinstance(block, TextBlock) or (isinstance(block, ReasoningBlock) and block.splittable)


def _called(block: Block) -> str:
    return f"the call of {block.name!r}" if isinstance(block, ToolUseBlock) else "a call"


_NAMES: dict[type[Block], str] = {
    TextBlock: "text",
    ReasoningBlock: "reasoning",
    RedactedReasoningBlock: "reasoning",
    ToolUseBlock: "tool use",
    ServerBlock: "server tool",
}

_STEPS: dict[type[Event], Callable[[InterleaveBuffer, Any, list[Event]], None]] = {  # each takes the class it stands at
    BlockStart: InterleaveBuffer._start,
    TextDelta: InterleaveBuffer._text,
    RefusalDelta: InterleaveBuffer._text,
    ReasoningDelta: InterleaveBuffer._reasoning,
    SignatureDelta: InterleaveBuffer._belonging,
    AnnotationDelta: InterleaveBuffer._belonging,
    ArgumentsDelta: InterleaveBuffer._arguments,
    BlockStop: InterleaveBuffer._stop,
    MessageDelta: InterleaveBuffer._finish,
    StreamError: InterleaveBuffer._fail,
}
