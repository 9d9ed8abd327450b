"""The law of a message: which event may follow which. What breaks it is raised, mended or reported."""

from collections.abc import Sequence
from enum import Enum, StrEnum, auto
from typing import Final

from attrs import define, evolve, field, setters

from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
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
    ToolUseBlock,
    moved,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import Stage


class Mode(StrEnum):
    """What is done about a breach: raise it, mend and record it, or record it and pass the event on."""

    STRICT = "strict"
    REPAIR = "repair"
    REPORT = "report"


class Phase(Enum):
    """Where a message stands."""

    BEFORE = auto()
    READY = auto()
    BLOCK = auto()
    CLOSING = auto()
    ENDED = auto()


DELTAS: Final = (TextDelta, RefusalDelta, ReasoningDelta, SignatureDelta, AnnotationDelta, ArgumentsDelta)

TRANSITIONS: dict[tuple[Phase, type[Event]], Phase] = {
    (Phase.BEFORE, MessageStart): Phase.READY,
    (Phase.BEFORE, StreamError): Phase.ENDED,
    (Phase.READY, BlockStart): Phase.BLOCK,
    (Phase.READY, MessageDelta): Phase.CLOSING,
    (Phase.READY, StreamError): Phase.ENDED,
    **{(Phase.BLOCK, delta): Phase.BLOCK for delta in DELTAS},  # if it is this block's, and fits
    (Phase.BLOCK, BlockStop): Phase.READY,  # if it is this block's
    (Phase.BLOCK, StreamError): Phase.ENDED,  # if the block is a call: one that was cut stays open
    (Phase.CLOSING, MessageStop): Phase.ENDED,
    (Phase.CLOSING, StreamError): Phase.ENDED,
}
"""What may come, and where it leads. Everything else is a breach, but for events that belong to no block: they pass."""

FITS: dict[type[Block], frozenset[type[Event]]] = {
    TextBlock: frozenset({TextDelta, RefusalDelta, AnnotationDelta}),
    ReasoningBlock: frozenset({ReasoningDelta, SignatureDelta}),
    RedactedReasoningBlock: frozenset(),
    ToolUseBlock: frozenset({ArgumentsDelta}),
    ServerBlock: frozenset({ArgumentsDelta}),
}
"""The deltas that fit a block."""

OPENED_BY: dict[type[Event], Block] = {
    TextDelta: TextBlock(),
    RefusalDelta: TextBlock(),
    ReasoningDelta: ReasoningBlock(),
}
"""The block that a delta is given when it has none to go to. The others mean nothing in another block: they go."""

BOUND: Final = (MessageStart, BlockStart, *DELTAS, BlockStop, MessageDelta, MessageStop, StreamError)
NO_FIT: frozenset[type[Event]] = frozenset()


@define(on_setattr=setters.NO_OP)
class BlockValidator(Stage[Event, Event]):
    """A message is one start, blocks one at a time with dense indexes, one end: `TRANSITIONS` says it.

    The stop reason fits what was written: tool use is claimed exactly if a whole call was, unless a limit, a refusal
    or a stop sequence stands. Exactly one terminal comes. In `Mode.REPAIR` what breaks the law is closed, reopened,
    renumbered or dropped, and recorded; but a call is not closed for what comes: it stays open, and `StageError` is
    raised. `Mode.STRICT` raises it at any breach; `Mode.REPORT` records and changes nothing.
    """

    mode: Mode = field(default=Mode.REPAIR, kw_only=True, converter=Mode)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    ended: bool = field(init=False, default=False)
    _phase: Phase = field(init=False, default=Phase.BEFORE)
    _block: Block | None = field(init=False, default=None)
    """The open block, the index it came with and the one it leaves with."""
    _source: int = field(init=False, default=-1)
    _index: int = field(init=False, default=-1)
    _fits: frozenset[type[Event]] = field(init=False, default=NO_FIT)
    """The deltas that fit the open block."""
    _same: int | None = field(init=False, default=None)
    """Its index, if it leaves with the one it came with."""
    _seen: range | set[int] = field(init=False, default=range(0))
    """The indexes that blocks came with: all up to one, as a rule."""
    _next: int = field(init=False, default=0)
    _called: bool = field(init=False, default=False)
    """A whole call was written."""

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        fits, same = self._fits, self._same
        for event in items:
            if type(event) not in fits or event.index != same:  # type: ignore[attr-defined]  # it has one
                return self._judged(items)
        return items

    def _judged(self, items: Sequence[Event]) -> Sequence[Event]:
        """What a read brought that is not all of the open block."""
        out: list[Event] = []
        try:
            for event in items:
                if type(event) in self._fits and event.index == self._same:  # type: ignore[attr-defined]  # it has one
                    out.append(event)
                elif isinstance(event, BOUND):
                    self._judge(event, out)
                elif not self.ended:
                    out.append(event)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if self._phase is Phase.ENDED:
            return out
        if cause is not None:
            self._judge(cause, out)
            return out
        missing = "the stream ended before its terminal"
        if self.mode is Mode.STRICT:
            raise StageError(missing)
        self._note("EOF", missing, "mended")
        if self.mode is Mode.REPAIR:
            if not isinstance(self._block, ToolUseBlock):
                self._close(out, complete=False)
            self._accept(StreamError(ErrorKind.CUT, missing, "stream_cut", True), out)
        return out

    def _judge(self, event: Event, out: list[Event]) -> None:
        """An event as it came: in `Mode.REPORT` it stays so, and its mending is only played."""
        if self.mode is Mode.REPORT:
            self._step(event, [])
            out.append(event)
        else:
            self._step(event, out)

    def _step(self, event: Event, out: list[Event]) -> None:
        breach = self._breach(event)
        if breach is None:
            self._accept(event, out)
        else:
            if self.mode is Mode.STRICT:
                raise StageError(breach)
            made = len(out)
            self._mend(event, out)
            passed = any(type(one) is type(event) for one in out[made:])
            self._note(type(event).__name__, breach, "mended" if passed else "dropped")

    def _breach(self, event: Event) -> str | None:
        """What is wrong with this event here, or None."""
        if (self._phase, type(event)) not in TRANSITIONS or self._is_out_of_place(event):
            return _named(event) + self._where(event)
        if isinstance(event, MessageDelta) and event.stop_reason is not self._fitting(event.stop_reason):
            wrote = "a whole call" if self._called else "no whole call"
            return f"stop reason {event.stop_reason} though {wrote} was written"
        if isinstance(event, BlockStart) and event.index != self._next:
            return f"{_named(event)}, due is {self._next}"
        if isinstance(event, DELTAS) and type(event) not in self._fits:
            return f"{_named(event)}, a {type(self._block).__name__}"
        return None

    def _is_out_of_place(self, event: Event) -> bool:
        """Whether an event that may come in a block is another block's, or an error that would leave this one open."""
        if isinstance(event, StreamError):
            return self._phase is Phase.BLOCK and not isinstance(self._block, ToolUseBlock)
        return isinstance(event, (*DELTAS, BlockStop)) and event.index != self._source

    def _note(self, path: str, breach: str, action: str) -> None:
        """Record a breach."""
        self.ledger.record("BlockValidator", path, "reported" if self.mode is Mode.REPORT else action, breach)

    def _accept(self, event: Event, out: list[Event]) -> None:
        """Take note of an event and pass it on, under its new index."""
        if isinstance(event, BlockStart):
            self._open(event)
            event = event if event.index == self._index else BlockStart(self._index, event.block)
        elif isinstance(event, DELTAS):
            event = moved(event, self._index)
        elif isinstance(event, BlockStop):
            self._called = self._called or (event.complete and isinstance(self._block, ToolUseBlock))
            self._fits = NO_FIT
            event = event if event.index == self._index else BlockStop(self._index, event.complete)
        elif isinstance(event, MessageStop | StreamError):
            self._fits = NO_FIT
            self.ended = self.mode is not Mode.REPORT
        self._phase = TRANSITIONS[self._phase, type(event)]
        out.append(event)

    def _open(self, event: BlockStart) -> None:
        if self._next >= self.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.limits.blocks} blocks", code="blocks")
        self._block = event.block
        self._source = event.index
        self._index = self._next
        self._same = event.index if event.index == self._next else None
        self._fits = FITS[type(event.block)]
        if isinstance(self._seen, set):
            self._seen.add(event.index)
        else:
            self._seen = range(event.index + 1) if event.index == len(self._seen) else {*self._seen, event.index}
        self._next += 1

    def _mend(self, event: Event, out: list[Event]) -> None:
        """Pass on what mends a breach, or nothing."""
        if self._phase in (Phase.CLOSING, Phase.ENDED) or isinstance(event, MessageStart):
            return
        if self._phase is Phase.BEFORE:
            self._accept(MessageStart("", ""), out)
            self._step(event, out)
        elif isinstance(event, DELTAS):
            if (block := OPENED_BY.get(type(event))) is not None:
                self._make_way(event, out)
                self._accept(BlockStart(event.index, block), out)
                self._accept(event, out)
        elif self._phase is Phase.BLOCK:
            if not isinstance(event, BlockStop):
                self._make_way(event, out)
                self._step(event, out)
        elif isinstance(event, BlockStart):
            self._accept(event, out)
        elif isinstance(event, MessageDelta):
            self._accept(evolve(event, stop_reason=self._fitting(event.stop_reason)), out)
        elif isinstance(event, MessageStop):
            self._accept(MessageDelta(self._fitting(StopReason.END_TURN)), out)
            self._accept(event, out)

    def _make_way(self, event: Event, out: list[Event]) -> None:
        """Close the open block, if there is one, for an event.

        Raises `StageError` if it is a call, in any mode but `Mode.REPORT`: clients run one that was closed.
        """
        if self._phase is Phase.BLOCK and isinstance(self._block, ToolUseBlock) and self.mode is not Mode.REPORT:
            raise StageError(f"{_named(event)} would cut the call in block {self._source}")
        self._close(out, complete=not isinstance(event, StreamError))

    def _close(self, out: list[Event], *, complete: bool) -> None:
        """Close the open block, if there is one; a call is not whole then."""
        if self._phase is Phase.BLOCK:
            self._accept(BlockStop(self._source, complete and not isinstance(self._block, ToolUseBlock)), out)

    def _fitting(self, reason: StopReason) -> StopReason:
        if reason is StopReason.TOOL_USE and not self._called:
            return StopReason.END_TURN
        if reason is StopReason.END_TURN and self._called:
            return StopReason.TOOL_USE
        return reason

    def _where(self, event: Event) -> str:
        if self._phase is Phase.BLOCK:
            return f" while block {self._source} is open"
        if self._phase is Phase.READY and isinstance(event, (*DELTAS, BlockStop)):
            return ", which is closed" if event.index in self._seen else ", which was never opened"
        return _WHERE[self._phase]


_WHERE = {
    Phase.BEFORE: " before the start",
    Phase.READY: " where a block or the end is due",
    Phase.CLOSING: " after the end was told",
    Phase.ENDED: " after the terminal",
}


def _named(event: Event) -> str:
    of = f" for block {event.index}" if isinstance(event, (*DELTAS, BlockStart, BlockStop)) else ""
    return type(event).__name__ + of
