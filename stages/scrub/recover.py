"""Calls that were written as text, as they become calls."""

from collections.abc import Collection

from attrs import define, evolve, field

from pipeline.events import (
    CUTTING,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    StopReason,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ids import CallIds
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.outcome import Outcome
from stages.scrub.calls import LEFT, MENDED, input_of
from stages.scrub.grammar import Call, Lost, Part
from stages.scrub.opened import OpenCall
from stages.scrub.scanner import Kind, Piece
from stages.scrub.tape import weight
from stages.scrub.voice import Voice

NAME = "TagScrubber"
_CUT = TextDelta(-1, "")
"""In what waits, where markup was cut out."""


@define
class Recovery:
    """Writes each call once, with an id that no other has; what comes while one is being written waits behind it."""

    voice: Voice
    ledger: Ledger
    limits: Limits
    outcome: Outcome
    freeform: Collection[str]
    ids: CallIds = field(init=False)
    open: OpenCall | None = field(init=False, default=None)
    """The call that is being written."""
    held: int = field(init=False, default=0)
    """Bytes of what waits behind it."""
    _called: bool = field(init=False, default=False)
    """One was written."""

    def __attrs_post_init__(self) -> None:
        self.ids = CallIds(NAME, "tool use", self.ledger, self.limits)

    def make(self, piece: Piece, out: list[Event], *, over: bool) -> None:
        """Markup of calls becomes one; what cannot be read is recorded. `over`: the turn was not cut."""
        found = piece.found
        if self.open is not None:
            self._go_on(self.open, piece, out, over=over)
        elif isinstance(found, Part):
            block = self._block(found.name, "")
            self.open = OpenCall(block, self.voice.open(block, out))
            self.open.more(found.arguments, out)
        elif isinstance(found, Lost):
            self.ledger.record(NAME, "text", found.action, found.reason)
        elif found is not None and max(len(found.name), len(found.id)) > self.limits.id_chars:
            self.ledger.record(NAME, "text", "dropped", "a call whose name or id is too long")
        elif found is not None:
            block = self._block(found.name, found.id)
            self.voice.call(block, self._said(found, block.kind), out)

    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text leaves, or waits."""
        if self.open is None:
            self.voice.event(event, out)
        else:
            self.open.behind.append(event)
            self.held += weight(event)

    def cut(self, out: list[Event]) -> None:
        """Markup was cut out here: of a block of text that what waits has begun, nothing may be left."""
        if self.open is None:
            self.voice.cut(out)
        elif self.open.behind and self.open.behind[-1] is not _CUT:
            self.open.behind.append(_CUT)

    def end(self, event: MessageDelta, out: list[Event]) -> MessageDelta:
        """The message's end, which says that tools are to be called if that was written as text.

        In the middle of a call that is being written it may end only if it was cut short; raises as `broken` tells.
        """
        if (call := self.open) is not None:
            if event.stop_reason not in CUTTING:
                raise call.broken()
            out.append(BlockStop(call.index, False))
            self._let_go(call, out)
        if self._called and event.stop_reason is StopReason.END_TURN:
            return evolve(event, stop_reason=StopReason.TOOL_USE)
        return event

    def abandon(self, call: OpenCall, waiting: Collection[Event]) -> None:
        """The call is left open: clients run one that was closed. What waited behind it is never written."""
        for event in (*call.behind, *waiting):
            if isinstance(event, BlockStart):
                self.ledger.record(NAME, "block", "dropped", "it waited behind a call that was cut")

    def _go_on(self, call: OpenCall, piece: Piece, out: list[Event], *, over: bool) -> None:
        """More of the call that is being written, or its end."""
        found = piece.found
        if isinstance(found, Part):
            call.more(found.arguments, out)
        elif isinstance(found, Call):
            call.end(found.name, self._said(found, call.block.kind), out)
            self._let_go(call, out)
        elif piece.kind is not Kind.UNFINISHED and over:
            raise call.broken()

    def _let_go(self, call: OpenCall, out: list[Event]) -> None:
        """What waited behind a call leaves."""
        self.open, self.held = None, 0
        for event in call.behind:
            if event is _CUT:
                self.voice.cut(out)
            else:
                self.voice.event(event, out)

    def _block(self, name: str, id: str) -> ToolUseBlock:  # noqa: A002
        kind = ToolKind.CUSTOM if name in self.freeform else ToolKind.FUNCTION
        return ToolUseBlock(self.ids.unique(id), name, kind)

    def _said(self, found: Call, kind: ToolKind) -> str:
        """The arguments of a whole call, which is counted."""
        if found.left:
            self.ledger.record(NAME, "text", "dropped", LEFT.reason)
        if found.mended:
            self.ledger.record(NAME, "text", MENDED.action, MENDED.reason)
        self._called = True
        self.outcome.recovered += 1
        return input_of(found.arguments) if kind is ToolKind.CUSTOM else found.arguments
