"""The law of a message: which event may follow which. What breaks it is raised, mended or reported."""

from collections.abc import Sequence
from enum import Enum, StrEnum, auto
from typing import Final

from attrs import define, field

from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
    BlockDelta,
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
"""The block that a delta is given when it has none to go to."""

BOUND: Final = (MessageStart, BlockStart, *DELTAS, BlockStop, MessageDelta, MessageStop, StreamError)
NO_FIT: frozenset[type[Event]] = frozenset()


@define
class BlockValidator(Stage[Event, Event]):
    """A message is one start, blocks one at a time with dense indexes, one end: `TRANSITIONS` says it.

    The stop reason fits what was written: tool use is claimed exactly if a whole call was, unless a limit, a refusal
    or a stop sequence stands. Exactly one terminal comes. In `Mode.REPAIR` what breaks the law is closed, reopened,
    renumbered or dropped, and recorded; `Mode.STRICT` raises `StageError`; `Mode.REPORT` records and changes nothing.
    """

    mode: Mode = field(default=Mode.REPAIR, kw_only=True)
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
    _same: int = field(init=False, default=-1)
    """Its index, if it leaves with the one it came with."""
    _seen: dict[int, Block] = field(init=False, factory=dict)
    """The blocks by the index they came with."""
    _next: int = field(init=False, default=0)
    _called: bool = field(init=False, default=False)
    """A whole call was written."""

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        try:
            for event in items:
                if type(event) in self._fits and event.index == self._same:  # type: ignore[attr-defined]  # it has one
                    out.append(event)
                elif isinstance(event, BOUND):
                    self._step(event, out)
                elif self._phase is not Phase.ENDED:
                    out.append(event)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if self._phase is not Phase.ENDED and cause is None:
            cause = StreamError(ErrorKind.CUT, "the stream ended before its terminal", "stream_cut", True)
        if cause is not None:
            self._step(cause, out)
        return out

    def _step(self, event: Event, out: list[Event]) -> None:
        breach = self._breach(event)
        if breach is None:
            self._accept(event, out)
            return
        if self.mode is Mode.STRICT:
            raise StageError(breach)
        mended = self.mode is Mode.REPAIR
        self.ledger.record("BlockValidator", type(event).__name__, "mended" if mended else "reported", breach)
        if not mended:
            self._follow(event)
            out.append(event)
        elif isinstance(event, BlockStart) and self._phase is Phase.READY:
            self._accept(event, out)  # renumbered
        else:
            for instead in self._mend(event):
                self._step(instead, out)

    def _breach(self, event: Event) -> str | None:
        """What is wrong with this event here, or None."""
        name = type(event).__name__
        if (self._phase, type(event)) not in TRANSITIONS:
            return f"{name}{_of(event)} {self._where(event)}"
        if isinstance(event, MessageDelta):
            fitting = self._fitting(event.stop_reason)
            wrote = "a whole call" if self._called else "no whole call"
            return (
                None if fitting is event.stop_reason else f"stop reason {event.stop_reason} though {wrote} was written"
            )
        if isinstance(event, BlockStart):
            return None if event.index == self._next else f"BlockStart for block {event.index}, due is {self._next}"
        if self._phase is not Phase.BLOCK:
            return None
        if isinstance(event, StreamError):
            return None if isinstance(self._block, ToolUseBlock) else f"StreamError while block {self._source} is open"
        if isinstance(event, (*DELTAS, BlockStop)) and event.index != self._source:
            return f"{name}{_of(event)} {self._where(event)}"
        if isinstance(event, BlockStop) or type(event) in self._fits:
            return None
        return f"{name} in block {self._source}, a {type(self._block).__name__}"

    def _accept(self, event: Event, out: list[Event]) -> None:
        if isinstance(event, BlockStart):
            if self._next >= self.limits.blocks:
                raise LimitExceeded(f"the message has more than {self.limits.blocks} blocks", code="blocks")
            index = self._next
            self._follow(event)
            out.append(event if index == event.index else BlockStart(index, event.block))
        elif isinstance(event, DELTAS):
            out.append(moved(event, self._index))
        elif isinstance(event, BlockStop):
            out.append(event if event.index == self._index else BlockStop(self._index, event.complete))
            self._follow(event)
        else:
            self._follow(event)
            out.append(event)

    def _follow(self, event: Event) -> None:
        """Take note of an event that is passed on."""
        self._phase = TRANSITIONS.get((self._phase, type(event)), self._phase)
        if isinstance(event, BlockStart):
            self._block = event.block
            self._source = event.index
            self._index = self._next
            self._same = event.index if event.index == self._next else -1
            self._fits = FITS[type(event.block)]
            self._seen[event.index] = event.block
            self._next += 1
        elif isinstance(event, BlockStop):
            self._called = self._called or (event.complete and isinstance(self._block, ToolUseBlock))
            self._block = None
            self._fits = NO_FIT
        elif isinstance(event, MessageStop | StreamError):
            self._phase = Phase.ENDED
            self._fits = NO_FIT
            self.ended = True

    def _mend(self, event: Event) -> tuple[Event, ...]:
        """What comes instead of an event that breaks the law: nothing, or events that do not."""
        if self._phase is Phase.ENDED or isinstance(event, MessageStart):
            return ()
        if self._phase is Phase.BEFORE:
            return (MessageStart("", ""), event)
        if self._phase is Phase.CLOSING:
            return ()
        if self._phase is Phase.BLOCK:
            if isinstance(event, BlockStop):
                return ()
            stop = BlockStop(self._source, not isinstance(self._block, ToolUseBlock))
            if not isinstance(event, DELTAS):
                return (stop, event)
            reopened = self._reopened(event)
            return (stop, *reopened) if reopened else ()
        if isinstance(event, DELTAS):
            return self._reopened(event)
        if isinstance(event, MessageDelta):
            return (MessageDelta(self._fitting(event.stop_reason), event.stop_sequence, event.usage),)
        if isinstance(event, MessageStop):
            return (MessageDelta(self._fitting(StopReason.END_TURN)), event)
        return ()

    def _reopened(self, delta: BlockDelta) -> tuple[Event, ...]:
        """The delta in a block of its own, like the one it was meant for; a call cannot go on in another block."""
        block = self._seen.get(delta.index)
        if block is None or type(delta) not in FITS[type(block)]:
            block = OPENED_BY.get(type(delta))
        if block is None or isinstance(block, ToolUseBlock | ServerBlock):
            return ()
        return (BlockStart(delta.index, block), delta)

    def _fitting(self, reason: StopReason) -> StopReason:
        if reason is StopReason.TOOL_USE and not self._called:
            return StopReason.END_TURN
        if reason is StopReason.END_TURN and self._called:
            return StopReason.TOOL_USE
        return reason

    def _where(self, event: Event) -> str:
        if self._phase is Phase.BLOCK:
            return f"while block {self._source} is open"
        if isinstance(event, (*DELTAS, BlockStop)):
            return ", which is closed" if event.index in self._seen else ", which was never opened"
        return _WHERE[self._phase]


_WHERE = {
    Phase.BEFORE: "before the start",
    Phase.READY: "before the end is told",
    Phase.CLOSING: "after the end was told",
    Phase.ENDED: "after the terminal",
}


def _of(event: Event) -> str:
    return f" for block {event.index}" if isinstance(event, (*DELTAS, BlockStart, BlockStop)) else ""
