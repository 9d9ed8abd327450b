"""Canonical events as a Responses stream."""

import secrets
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from attrs import define, field

from pipeline.citations import SHOWN
from pipeline.dialect import NO_REQUEST, RequestFacts, ToldLimit
from pipeline.encoder import Encoder
from pipeline.errors import PipelineError, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    Served,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from pipeline.failure import LOST_COUNTS
from pipeline.freeform import Unwrapped, Wrapped
from pipeline.hosted import path_of
from pipeline.logprobs import scores_in
from pipeline.message import final_usage
from pipeline.served import NOBODY, told_of
from pipeline.toolnames import OfferedTool
from stages.dialects.responses.errors import failed_error
from stages.dialects.responses.items import NAME
from stages.dialects.responses.notes import flat_note, page_note
from stages.dialects.responses.opaque import BLOB, item_of
from stages.dialects.responses.stops import INCOMPLETE, UNSAID, WITHHELD
from stages.dialects.responses.usage import usage_object
from stages.dialects.responses.written import (
    ARGUMENTS,
    BY_DELTA,
    INPUT,
    RAW,
    SUMMARY,
    Json,
    Wire,
    Written,
    WrittenCall,
    WrittenParts,
    WrittenSearch,
    WrittenWhole,
)

STAGE: Final = "ResponsesEncoder"

UNASKED: Final[Json] = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
"""What a response says of its request where that says nothing."""


class ShowReasoning(StrEnum):
    """What another API's reasoning is shown as: a summary, which every client shows, or raw text."""

    SUMMARY = "summary"
    CONTENT = "content"


@define
class ResponsesEncoder(Encoder):
    """The strictest form of a Responses stream, which every known client reads.

    Every event of the full sequence, numbered without a gap; ids that stay the same; an item's whole at its end, and
    all of them in the terminal. An item is announced when there is something to say of it. A message ends with what
    comes behind it: the last one is incomplete if the response is, and only the end of the answer tells that. A failure
    ends what is open, but for a call: that one was cut, and a client would run it.
    """

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    reasoning: ShowReasoning = field(default=ShowReasoning.SUMMARY, kw_only=True)
    limit: ToldLimit = field(default="incomplete", kw_only=True)
    """What an answer is called that a limit or a filter ended, if no call was cut."""
    clock: Callable[[], float] = field(default=time.time, kw_only=True)
    response: Json = field(init=False, factory=dict)
    """The response as the terminal tells it; empty before."""
    _wire: Wire = field(init=False, factory=Wire)
    _base: Json | None = field(init=False, default=None)
    """What every event with a response tells of it; None before the first."""
    _blocks: dict[int, Written | None] = field(init=False, factory=dict)
    """The open blocks; None is one that is not written."""
    _items: list[Written] = field(init=False, factory=list)
    _next: int = field(init=False, default=0)
    _refused: bool = field(init=False, default=False)
    _cut: bool = field(init=False, default=False)
    """A call is not whole."""
    _first: Usage | None = field(init=False, default=None)
    """The counts that the message began with."""
    _last: tuple[Written, bool] | None = field(init=False, default=None)
    """A message whose end is still to be told, and whether its block was whole."""
    _end: MessageDelta | None = field(init=False, default=None)
    _plain_item: Written | None = field(init=False, default=None)
    """What takes the text of deltas like the last one."""

    def receive(self, items: Sequence[Event]) -> Sequence[Frame]:
        out: list[Frame] = []
        try:
            for event in items:
                kind = type(event)
                if kind is self._plain and event.index == self._source:  # type: ignore[attr-defined]  # a delta
                    if text := event.text:  # type: ignore[attr-defined]  # it has both
                        self._plain_item.more(text, out)  # type: ignore[union-attr]  # it is set with the class
                elif not self.ended and (step := _STEPS.get(kind)) is not None:
                    self._plain = None
                    if self._last is not None and kind is not Ping:
                        self._end_last(event, out)
                    step(self, event, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _message_start(self, event: MessageStart, out: list[Frame]) -> None:
        if self._base is None:
            self._begin(event.id, event.model, event.usage, out, event.served or NOBODY)

    def _begin(self, name: str, model: str, usage: Usage | None, out: list[Frame], served: Served = NOBODY) -> None:
        self._base = {
            "id": name if name.startswith("resp_") else f"resp_{name or secrets.token_hex(16)}",
            "object": "response",
            "created_at": served.created or int(self.clock()),
            "model": model or self.facts.model,
            **UNASKED,
            **self.facts.echo,
            **told_of(served),
        }
        self._first = usage
        begun = self._told("in_progress", [])
        self._wire.write("response.created", {"response": begun}, out)
        self._wire.write("response.in_progress", {"response": begun}, out)

    def _told(self, status: str, output: list[Json], **members: Any) -> Json:
        ended = {"output": output, "error": None, "incomplete_details": None, "usage": None}
        return {**(self._base or {}), "status": status, **ended, **members}

    def _block_start(self, event: BlockStart, out: list[Frame]) -> None:
        if event.index in self._blocks:
            raise StageError(f"BlockStart for block {event.index}, which is open")
        block = event.block
        item: Written | None = None
        if isinstance(block, TextBlock):
            item = self._message_item()
        elif isinstance(block, ReasoningBlock):
            item = self._reasoning_item()
        elif isinstance(block, RedactedReasoningBlock):
            item = self._reasoning_item()
            item.prove(_proof(block.data))
            self._place(item)
        elif isinstance(block, ToolUseBlock):
            item = self._call(block)
            self._place(item)
            item.begin(out)
        elif block.dialect == NAME:
            payload = dict(block.payload)
            item = WrittenWhole(self._wire, -1, "", {**payload, "id": payload.get("id") or self._id("item")})
            self._place(item)
        elif block.search is not None:
            action = {"type": "search", "query": block.search}
            name = self._id("ws")
            item = WrittenSearch(self._wire, -1, name, {"id": name, "type": "web_search_call", "action": action})
            self._place(item)
        else:
            self.ledger.record(STAGE, path_of(event.index, block), "dropped", "Responses cannot show it")
        self._blocks[event.index] = item

    def _message_item(self) -> WrittenParts:
        name = self._id("msg")
        return WrittenParts(self._wire, -1, name, {"id": name, "type": "message", "role": "assistant"}, "content")

    def _reasoning_item(self) -> WrittenParts:
        name = self._id("rs")
        item: Json = {"id": name, "type": "reasoning", "summary": []}
        return WrittenParts(self._wire, -1, name, item, self.reasoning)

    def _call(self, block: ToolUseBlock) -> WrittenCall:
        tool = self.facts.map.offered_as(block.name, block.namespace) or OfferedTool(
            block.name, block.namespace, block.kind
        )
        freeform = tool.kind is ToolKind.CUSTOM
        form = None if tool.kind is block.kind else Unwrapped() if freeform else Wrapped()
        name = f"{'ctc' if freeform else 'fc'}_{block.id.removeprefix('call_')}"
        return WrittenCall(self._wire, -1, name, block.id, tool, INPUT if freeform else ARGUMENTS, form)

    def _id(self, prefix: str) -> str:
        """The id of the next item, the same whenever this response is written."""
        whose = str((self._base or {}).get("id")).removeprefix("resp_")
        self._next += 1
        return f"{prefix}_{whose}_{self._next - 1}"

    def _place(self, item: Written) -> None:
        """The item comes next in the output."""
        if item.place < 0:
            item.place = len(self._items)
            self._items.append(item)

    def _say(self, event: TextDelta | RefusalDelta, out: list[Frame]) -> None:
        item = self._open(event)
        if isinstance(item, WrittenParts) and event.text:
            self._place(item)
            item.say(BY_DELTA[type(event)], event.text, out)
            self._refused = self._refused or isinstance(event, RefusalDelta)
            self._remember(event, item)

    def _think(self, event: ReasoningDelta, out: list[Frame]) -> None:
        item = self._open(event)
        if isinstance(item, WrittenParts) and event.text:
            self._place(item)
            item.say(SUMMARY if self.reasoning is ShowReasoning.SUMMARY else RAW, event.text, out)
            self._remember(event, item)

    def _arguments(self, event: ArgumentsDelta, out: list[Frame]) -> None:
        item = self._open(event)
        if isinstance(item, WrittenCall):
            item.say(event.text, out)
            if item.form is None:
                self._remember(event, item)

    def _remember(self, event: BlockDelta, item: Written) -> None:
        self._plain, self._source, self._plain_item = type(event), event.index, item

    def _signature(self, event: SignatureDelta, out: list[Frame]) -> None:
        item = self._open(event)
        if isinstance(item, WrittenParts):
            self._place(item)
            item.prove(_proof(event.signature))

    def _annotation(self, event: AnnotationDelta, out: list[Frame]) -> None:
        item = self._open(event)
        if scores := scores_in(event.annotation):
            if isinstance(item, WrittenParts):
                self._place(item)
                item.score(scores, out)
            return
        note = flat_note(event.annotation)
        if note is None and (note := page_note(event.annotation)) is not None:
            self.ledger.record(STAGE, *SHOWN)
        if isinstance(item, WrittenParts) and note is not None:
            self._place(item)
            item.note(note, out)
        else:
            self.ledger.record(STAGE, "annotation", "dropped", "Responses cannot show it")

    def _open(self, event: BlockDelta) -> Written | None:
        try:
            return self._blocks[event.index]
        except KeyError:
            raise StageError(f"{type(event).__name__} for block {event.index}, which is not open") from None

    def _block_stop(self, event: BlockStop, out: list[Frame]) -> None:
        if event.index not in self._blocks:
            raise StageError(f"BlockStop for block {event.index}, which is not open")
        item = self._blocks.pop(event.index)
        if item is not None and item.place >= 0:
            self._stop(item, out, complete=event.complete)
            self._cut = self._cut or (isinstance(item, WrittenCall) and not event.complete)

    def _stop(self, item: Written, out: list[Frame], *, complete: bool) -> None:
        """The block of an item has ended."""
        if isinstance(item, WrittenParts) and item.has_status:
            self._last = item, complete
        else:
            item.close(out, complete=complete)

    def _end_last(self, event: Event, out: list[Frame]) -> None:
        """The end of the message before an event."""
        if self._last is not None:
            (item, complete), self._last = self._last, None
            cut = isinstance(event, MessageDelta) and self._why(event) is not None
            item.close(out, complete=complete and not cut)

    def _why(self, end: MessageDelta) -> str | None:
        """Why a response that ends so is incomplete; None if it is not, or is not called so."""
        return None if self.limit == "completed" and not self._cut else self._limit_of(end)

    def _limit_of(self, end: MessageDelta) -> str | None:
        """What ended it short of its end, if anything did."""
        said = end.stop_reason is StopReason.REFUSAL and self._refused and not self._cut
        return None if said else INCOMPLETE.get(end.stop_reason)

    def _message_delta(self, event: MessageDelta, out: list[Frame]) -> None:
        self._end = event

    def _refuse(self, out: list[Frame]) -> None:
        """Of an answer that a filter withheld: a refusal, since clients ask again for one that is incomplete."""
        item = self._message_item()
        self._place(item)
        item.say(BY_DELTA[RefusalDelta], WITHHELD, out)
        item.close(out, complete=True)
        self._refused = True
        self.ledger.record(STAGE, "refusal", "made", "a filter withheld the answer, and nobody said a word of it")

    @property
    def _answered(self) -> bool:
        """Something was said to the client, or called."""
        messages = (item for item in self._items if isinstance(item, WrittenParts) and item.has_status)
        return any(messages) or any(isinstance(item, WrittenCall | WrittenWhole) for item in self._items)

    def _message_stop(self, event: MessageStop, out: list[Frame]) -> None:
        end = self._end or MessageDelta(StopReason.END_TURN)
        if self._base is not None and end.served is not None:
            self._base |= told_of(end.served)
        if end.stop_reason is StopReason.REFUSAL and not self._answered:
            self._refuse(out)
        reason = self._why(end)
        if reason is None and self._limit_of(end) is not None:
            self.ledger.record(STAGE, "stop reason", "translated", "the route calls what a limit ended completed")
        if (lost := UNSAID.get(end.stop_reason)) is not None:
            self.ledger.record(STAGE, "stop reason", "translated", lost)
        counts = final_usage(self._first, end.usage, self.facts.usage)
        usage = None if counts is None else usage_object(counts)
        if reason is None:
            self._terminal("completed", out, usage=usage)
        else:
            self._terminal("incomplete", out, usage=usage, incomplete_details={"reason": reason})

    def _error(self, event: StreamError, out: list[Frame]) -> None:
        self._end_last(event, out)
        if self._base is None:
            self._begin("", "", None, out)
        told = self._first is not None and self._first is not self.facts.usage
        if told and not self.ledger.knows(*LOST_COUNTS):  # later ones, which count, were lost before
            self.ledger.record(STAGE, *LOST_COUNTS)
        for item in self._blocks.values():
            if item is not None and item.place >= 0 and not isinstance(item, WrittenCall):
                item.close(out, complete=False)
        self._terminal("failed", out, error=failed_error(event))

    def _terminal(self, status: str, out: list[Frame], **members: Any) -> None:
        self.ended = True
        output = [item.final for item in self._items if item.final is not None]
        self.response = self._told(status, output, **members)
        self._wire.write(f"response.{status}", {"response": self.response}, out)

    def _ping(self, event: Ping, out: list[Frame]) -> None:
        """A keep-alive, which clients accept behind the first event only."""
        if self._base is not None:
            self._wire.write("keepalive", {}, out)


def _proof(signature: str) -> Json:
    """The members by which a reasoning item is known again: its own, or an opaque text of another provider."""
    item = item_of(signature)
    return {BLOB: signature} if item is None else {BLOB: item[BLOB]}


_STEPS: dict[type[Event], Callable[[ResponsesEncoder, Any, list[Frame]], None]] = {  # each takes the class it stands at
    MessageStart: ResponsesEncoder._message_start,
    BlockStart: ResponsesEncoder._block_start,
    TextDelta: ResponsesEncoder._say,
    RefusalDelta: ResponsesEncoder._say,
    ReasoningDelta: ResponsesEncoder._think,
    ArgumentsDelta: ResponsesEncoder._arguments,
    SignatureDelta: ResponsesEncoder._signature,
    AnnotationDelta: ResponsesEncoder._annotation,
    BlockStop: ResponsesEncoder._block_stop,
    MessageDelta: ResponsesEncoder._message_delta,
    MessageStop: ResponsesEncoder._message_stop,
    StreamError: ResponsesEncoder._error,
    Ping: ResponsesEncoder._ping,
}
