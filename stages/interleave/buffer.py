"""One block at a time: what arrives interleaved leaves in order, and no tool call is ever split."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from attrs import define, field

from pipeline.arguments import Arguments, FreeformArguments
from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError, UpstreamError
from pipeline.events import (
    CUTTING,
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
    RefusalDelta,
    SignatureDelta,
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
from stages.interleave.pieces import BLANK, ENDED, NAMES, OPEN, SAID, WAITING, Piece, Voices, size_of_delta, splits


@define
class InterleaveBuffer(Stage[Event, Event]):
    """At most one block is open, and no tool call is split.

    Text and splittable reasoning are split and reopened around what comes between, unless that is text or reasoning as
    well: two that are told at once would be shuffled, so the later one waits for the stop of the earlier. A tool call,
    and a reasoning item whose blob comes last, are not split: what arrives meanwhile waits, in order of first arrival.
    A call ends by the upstream's word, at the finish, or, once its arguments are visibly whole, at the first thing that
    must be written after it; what waited is let go at once. A call that an error cuts short is left open: clients run
    one that was closed. Blanks that something comes behind lead what their block says next. What can never be written
    is recorded.
    """

    freeform: Collection[str] = field(default=(), kw_only=True)
    """The tools whose input is free text for the client: a function's call of one may bring that text itself."""
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _live: dict[int, Block | Piece] = field(init=False, factory=dict)
    """The piece that a block's next delta belongs to; the block itself before it has one."""
    _current: Piece | None = field(init=False, default=None)
    _queue: list[Piece] = field(init=False, factory=list)
    """Pieces that wait, in order: few, and an empty deque takes half a kilobyte. Only the last one may be blank."""
    _voices: Voices = field(init=False, factory=Voices)
    _leads: dict[int, list[BlockDelta]] | None = field(init=False, default=None)
    """Blanks that something came behind, by the block whose next text they lead."""
    _next: int = field(init=False, default=0)
    _same: int = field(init=False, default=-1)
    """Of the block whose text or reasoning passes as it comes; -1: there is none."""

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        same = self._same
        for event in items:
            if type(event) not in SAID or event.index != same or not event.text:  # type: ignore[attr-defined]  # it has one
                return self._take(items)
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if not self.ended:
            self._settle(out)
            if cause is not None:
                out.append(cause)
        return out

    def _take(self, items: Sequence[Event]) -> Sequence[Event]:
        """What a read brought that does not all pass as it came."""
        out: list[Event] = []
        self._same = -1
        try:
            for event in items:
                if self.ended:
                    break
                if (step := _STEPS.get(type(event))) is None:
                    out.append(event)
                else:
                    step(self, event, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        piece = self._current
        if piece is not None and not piece.shut and not self._queue and piece is self._live.get(piece.index):
            self._same = piece.index
        return out

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        block = event.block
        if event.index in self._live:
            raise StageError(f"BlockStart for block {event.index}, which was opened before")
        self._bound(len(self._live))
        self._live[event.index] = block
        if not splits(block):
            piece = Piece(block, event.index, shut=not isinstance(block, ReasoningBlock))
            if isinstance(block, ToolUseBlock) and block.kind is ToolKind.FUNCTION:
                piece.arguments = (FreeformArguments if block.name in self.freeform else Arguments)(self.limits)
            self._append(piece)
            self._advance(out)

    def _content(self, event: TextDelta | RefusalDelta | ReasoningDelta, out: list[Event]) -> None:
        """Text or reasoning: it goes on in the piece that its block has, if nothing came between, else in another."""
        piece = self._current
        if piece is not None and not self._queue and piece is self._live.get(event.index) and not piece.shut:
            if event.text:
                out.append(event if event.index == piece.index else moved(event, piece.index))
            return
        piece = self._tail(event)
        if not event.text:
            return
        blank = event.text.isspace()
        if piece is None and blank and self._voices.is_followed(event.index, type(event)):
            self._lead(event)
            return
        if piece is None:
            piece = self._part(event)
        if piece.phase is BLANK and not blank:
            piece.phase = WAITING
        if piece.phase is WAITING:
            if piece.says is None and piece.splits:
                self._voices.speak(piece, type(event))
            self._advance(out)
        self._write(piece, event, out)

    def _belonging(self, event: SignatureDelta | AnnotationDelta, out: list[Event]) -> None:
        """A signature or a citation: it belongs to what was written of its block. A citation may come before that."""
        block = self._known(event)
        piece = self._piece(event)
        if piece is None and isinstance(event, AnnotationDelta) and isinstance(block, TextBlock):
            piece = self._part(event)
        if piece is None or piece.shut:
            self._lose(NAMES[type(event)], "nothing was written that it could belong to")
            return
        piece.shut = isinstance(event, SignatureDelta)
        self._write(piece, event, out)

    def _arguments(self, event: ArgumentsDelta, out: list[Event]) -> None:
        piece = self._live.get(event.index)
        if not isinstance(piece, Piece) or piece.splits:
            raise StageError(f"ArgumentsDelta for block {event.index}, a {type(self._known(event)).__name__}")
        text = event.text
        if piece.phase is ENDED or piece.whole is not None:
            if text.strip():
                self._lose("arguments", "for a call that has ended")
            return
        if (arguments := piece.arguments) is not None:
            held, excess = arguments.held, arguments.excess
            text = arguments.feed(text)
            if arguments.excess and not excess:
                self._lose("arguments", "text behind the end of their JSON value")
            if arguments.held != held:
                self._hold(arguments.held - held)
        if text and piece.phase is OPEN:
            same = text == event.text and event.index == piece.index
            out.append(event if same else ArgumentsDelta(piece.index, text))
        elif text:
            self._keep(piece, ArgumentsDelta(event.index, text))
        if self._queue:
            self._advance(out)

    def _stop(self, event: BlockStop, out: list[Event]) -> None:
        self._known(event)
        if self._leads:
            self._drop(self._leads.pop(event.index, ()))
        piece = self._piece(event)
        if piece is not None and piece.whole is None:
            piece.whole = event.complete
            if piece.phase is ENDED:
                self._voices.end(piece)
            self._advance(out)

    def _finish(self, event: MessageDelta, out: list[Event]) -> None:
        """The end of the message: a block that nobody has stopped ends now."""
        for piece in (self._current, *self._queue):
            if piece is not None and piece.whole is None:
                piece.whole = event.stop_reason not in CUTTING
        self._voices.clear()
        self._advance(out)
        self._drop_leads()
        out.append(event)

    def _fail(self, event: StreamError, out: list[Event]) -> None:
        self._settle(out)
        out.append(event)

    def _tail(self, event: TextDelta | RefusalDelta | ReasoningDelta) -> Piece | None:
        """The piece that a block can go on in: its last one, if nothing came between; else it must be split."""
        block = self._known(event)
        live = self._piece(event)
        if not splits(block):
            if not isinstance(block, ReasoningBlock):
                raise StageError(f"{type(event).__name__} for block {event.index}, a {type(block).__name__}")
            return live
        queue = self._queue
        if queue and queue[-1].phase is BLANK and queue[-1] is not live and event.text:
            self._set_aside(queue.pop(), block)
        if live is None or live.shut:
            return None
        if live.phase is not ENDED and self._voices.is_followed(event.index, type(event)):
            return live
        return live if live is (queue[-1] if queue else self._current) else None

    def _part(self, event: TextDelta | RefusalDelta | ReasoningDelta | AnnotationDelta) -> Piece:
        """A piece for more of a block that may be split; the blanks that lead it are its first."""
        block = self._known(event)
        piece = Piece(block, event.index, BLANK if isinstance(block, TextBlock) else WAITING, splits=True)
        if self._leads:
            piece.waiting = self._leads.pop(event.index, piece.waiting)
        self._append(piece, self._voices.place(event.index, type(event), self._queue))
        return piece

    def _append(self, piece: Piece, at: int = -1) -> None:
        """The piece comes last, or at that place; text that is blank up to here is set aside."""
        if self._queue and self._queue[-1].phase is BLANK:
            self._set_aside(self._queue.pop(), piece.block)
        self._bound(self._next + len(self._queue))
        self._live[piece.source] = piece
        self._queue.insert(len(self._queue) if at < 0 else at, piece)

    def _write(self, piece: Piece, delta: BlockDelta, out: list[Event]) -> None:
        """Write a delta, or keep it while its piece waits."""
        if piece.phase is OPEN:
            out.append(moved(delta, piece.index))
        elif piece.phase is ENDED:
            self._lose(NAMES[type(delta)], "for a block that has ended")
        else:
            self._keep(piece, delta)

    def _keep(self, piece: Piece, delta: BlockDelta) -> None:
        piece.waiting.append(delta)
        self._hold(size_of_delta(delta))

    def _lead(self, delta: BlockDelta) -> None:
        """Keep blanks for what their block says next."""
        self._keep_leads(delta.index, [delta])
        self._hold(size_of_delta(delta))

    def _keep_leads(self, index: int, blanks: list[BlockDelta]) -> None:
        """These blanks lead what a block says next, behind those that already do. Alone, they are not copied."""
        leads = self._leads = {} if self._leads is None else self._leads
        if (kept := leads.setdefault(index, blanks)) is not blanks:
            kept += blanks

    def _hold(self, size: int) -> None:
        self.held += size
        if self.held > (most := self.limits.held_bytes):
            raise LimitExceeded(f"more than {most} bytes wait for a block that does not end", code="held_bytes")

    def _bound(self, blocks: int) -> None:
        if blocks >= self.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.limits.blocks} blocks", code="blocks")

    def _advance(self, out: list[Event]) -> None:
        """Write as much as the order allows."""
        while True:
            due, current = self._due(), self._current
            if current is None:
                if not due:
                    return
                self._begin(self._queue.pop(0), out)
            elif current.whole is not None or (due and current.may_end()):
                self._end(current, out)
            else:
                return

    def _due(self) -> bool:
        """Whether a piece waits that is to be written. Blank text is not, and goes when it is stopped."""
        if not self._queue:
            return False
        first = self._queue[0]
        if first.phase is not BLANK:
            return not self._voices.waits(first)
        if first.whole is not None:
            self._set_aside(self._queue.pop())
        return False

    def _begin(self, piece: Piece, out: list[Event]) -> None:
        piece.index = self._next
        piece.phase = OPEN
        self._next += 1
        self._current = piece
        out.append(BlockStart(piece.index, piece.block))
        out.extend(moved(delta, piece.index) for delta in piece.waiting)
        self.held -= sum(map(size_of_delta, piece.waiting))
        piece.waiting.clear()

    def _end(self, piece: Piece, out: list[Event]) -> None:
        """Close the open piece.

        Raises `UpstreamError` if it is a call that is said to be whole and is no JSON object; it stays open then.
        """
        block, whole = piece.block, piece.whole is not False
        if isinstance(block, ToolUseBlock) and (arguments := piece.arguments) is not None:
            rest, is_object = arguments.close(cut=not whole)
            if whole and not is_object:
                raise UpstreamError(
                    f"the arguments of the call of {block.name!r} are no JSON object",
                    kind=ErrorKind.INVALID_TOOL_ARGUMENTS,
                    code="invalid_tool_arguments",
                )
            if rest:
                out.append(ArgumentsDelta(piece.index, rest))
            if arguments.unwrapped:
                self.ledger.record("InterleaveBuffer", "arguments", "unwrapped", "an object encoded twice")
            self.held -= arguments.held
            whole = is_object
        out.append(BlockStop(piece.index, whole))
        piece.phase = ENDED
        if piece.whole is not None:
            self._voices.end(piece)
        self._current = None

    def _settle(self, out: list[Event]) -> None:
        """Before an error or a sudden end: what can be written goes out; a call that was cut is left open."""
        self.ended, self._same = True, -1
        while self._current is not None or self._queue:
            if self._current is None:
                piece = self._queue.pop(0)
                if piece.phase is BLANK:
                    self._set_aside(piece)
                else:
                    self._begin(piece, out)
            elif self._current.is_cut():
                arguments = self._current.arguments
                if arguments is not None and arguments.withheld:
                    out.append(ArgumentsDelta(self._current.index, arguments.withheld))
                break
            else:
                if self._current.splits and self._current.whole is None and not self._queue:
                    self._current.whole = False  # it would have gone on
                self._end(self._current, out)
        for piece in self._queue:
            self._lose(NAMES[type(piece.block)], "it waited behind a call that was cut")
        self._queue.clear()
        self._drop_leads()
        self.held = 0

    def _set_aside(self, piece: Piece, behind: Block | None = None) -> None:
        """Something comes behind text of blanks alone: they lead what its block says next, unless that has ended, or
        has said nothing before reasoning that may stand anywhere."""
        piece.phase = ENDED
        thought = isinstance(behind, ReasoningBlock) and behind.splittable
        if piece.whole is None and (not thought or self._voices.spoke(piece.source)):
            self._keep_leads(piece.source, piece.waiting)
        else:
            self._drop(piece.waiting)

    def _drop_leads(self) -> None:
        """No block says more."""
        for blanks in (self._leads or {}).values():
            self._drop(blanks)
        self._leads = None

    def _drop(self, blanks: Sequence[BlockDelta]) -> None:
        for delta in blanks:
            self.held -= size_of_delta(delta)
            self._lose(NAMES[type(delta)], "a block of blanks alone")

    def _piece(self, event: BlockDelta | BlockStop) -> Piece | None:
        """The piece that an event belongs to, if its block has one."""
        live = self._live.get(event.index)
        return live if isinstance(live, Piece) else None

    def _known(self, event: BlockDelta | BlockStop) -> Block:
        """The block that an event belongs to."""
        live = self._live.get(event.index)
        if live is None:
            raise StageError(f"{type(event).__name__} for block {event.index}, which was never opened")
        return live.block if isinstance(live, Piece) else live

    def _lose(self, path: str, reason: str) -> None:
        self.ledger.record("InterleaveBuffer", path, "dropped", reason)


_STEPS: dict[type[Event], Callable[[InterleaveBuffer, Any, list[Event]], None]] = {  # each takes the class it stands at
    BlockStart: InterleaveBuffer._start,
    TextDelta: InterleaveBuffer._content,
    RefusalDelta: InterleaveBuffer._content,
    ReasoningDelta: InterleaveBuffer._content,
    SignatureDelta: InterleaveBuffer._belonging,
    AnnotationDelta: InterleaveBuffer._belonging,
    ArgumentsDelta: InterleaveBuffer._arguments,
    BlockStop: InterleaveBuffer._stop,
    MessageDelta: InterleaveBuffer._finish,
    StreamError: InterleaveBuffer._fail,
}
