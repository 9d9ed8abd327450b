"""Freeform tools that an upstream knows as functions of one string: their input is free again."""

from collections.abc import Sequence

from attrs import define, evolve, field

from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, Event, StreamError, ToolKind, ToolUseBlock
from pipeline.freeform import Unwrapped
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import Stage
from pipeline.toolnames import RequestMap


@define
class InputUnwrapper(Stage[Event, Event]):
    """A function's call of a freeform tool is a freeform call again, its input unescaped as it comes.

    A model may call it with the bare text: that is the input, which is recorded, as is what stands beside the string
    `input`, wherever. An object without such a string is given as it was written: the tool says better than we what is
    wrong with it. Stands where one block is
    open at a time.
    """

    map: RequestMap
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    ended: bool = field(init=False, default=False)
    _index: int = field(init=False, default=-1)
    _input: Unwrapped | None = field(init=False, default=None)
    """Of the open call, if it is one of a freeform tool that came as a function's."""

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return 0 if self._input is None else self._input.held

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        if self._input is None and BlockStart not in map(type, items):
            return items
        out: list[Event] = []
        for event in items:
            if isinstance(event, BlockStart):
                event = self._begun(event)
            elif self._input is not None and isinstance(event, ArgumentsDelta):
                self._write(self._input.feed(event.text), out)
                continue
            elif isinstance(event, BlockStop | StreamError):
                self._end(out)
            out.append(event)
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        out: list[Event] = []
        self._end(out)
        return out if cause is None else [*out, cause]

    def _begun(self, event: BlockStart) -> BlockStart:
        block = event.block
        if not isinstance(block, ToolUseBlock) or block.kind is not ToolKind.FUNCTION:
            return event
        if self.map.tool(block.name).kind is not ToolKind.CUSTOM:
            return event
        self._index, self._input = event.index, Unwrapped(self.limits)
        return BlockStart(event.index, evolve(block, kind=ToolKind.CUSTOM))

    def _end(self, out: list[Event]) -> None:
        if self._input is None:
            return
        self._write(self._input.close(), out)
        if self._input.bare:
            self.ledger.record("InputUnwrapper", "arguments", "taken as the input", "they are no object that holds it")
        if self._input.odd:
            self.ledger.record("InputUnwrapper", "arguments", "dropped", "they stand beside the input")
        self._input = None

    def _write(self, text: str, out: list[Event]) -> None:
        if text:
            out.append(ArgumentsDelta(self._index, text))
