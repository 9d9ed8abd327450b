"""Canonical events as a Chat stream."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.citations import SHOWN, page_of
from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.encoder import Encoder
from pipeline.errors import PipelineError, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
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
from pipeline.jsontext import dumps
from pipeline.logprobs import Scores, scores_in
from pipeline.message import final_usage
from pipeline.served import NOBODY, told_of
from pipeline.toolnames import NO_MAP
from stages.dialects.chat.content import JOINT
from stages.dialects.chat.errors import error_body
from stages.dialects.chat.normalize import DONE
from stages.dialects.chat.notes import Notes
from stages.dialects.chat.stops import FINISH, ONE_CALL, UNSAID
from stages.dialects.chat.usage import usage_object

STAGE: Final = "ChatEncoder"

Json = dict[str, Any]

PING: Final = Frame(b"", raw=b": keep-alive\n\n")
"""A comment, the one keep-alive that no client takes for an answer."""

TAIL: Final = b',"finish_reason":null}]}'
"""What follows a delta."""

SAID: dict[type[Event], bytes] = {TextDelta: b'{"content":', RefusalDelta: b'{"refusal":'}
"""How the delta of each class of text begins."""


@define
class _Open:
    """An open block, as it is written."""

    block: Block
    place: int = -1
    """Of a call: its index. Of reasoning that may be signed: that of its detail."""
    form: Unwrapped | Wrapped | None = None
    """What makes freeform text of the function's arguments that it came as, or the other way round."""
    kind: ToolKind = ToolKind.FUNCTION
    """What the client is told that a call is."""
    around: tuple[bytes, bytes] = (b"", b"")
    """What stands round a piece of a call's arguments."""
    spoken: bool = False
    base: int = 0
    """Where its text begins in the message's."""
    pages: list[Json] = field(factory=list)
    """What is noted of the pages that are cited for all of its text, whose end is not known yet."""


@define
class ChatEncoder(Encoder):
    """The strictest form of a Chat stream, which every known client reads.

    The role once and first; a call's id, type and name once, its index dense, its arguments in pieces; one finish; the
    counts behind it in a chunk of their own, if they are wanted. A failure is an error object, which nothing follows:
    what is open stays open, and no client runs it.
    """

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    clock: Callable[[], float] = field(default=time.time, kw_only=True)
    _about: Json = field(init=False, factory=dict)
    """What every chunk tells of the message."""
    _whose: bytes = field(init=False, default=b"")
    """The same, as every chunk begins; empty before the first."""
    _head: bytes = field(init=False, default=b"")
    """The same, up to its delta."""
    _open: dict[int, _Open] = field(init=False, factory=dict)
    _calls: int = field(init=False, default=0)
    _called: bool = field(init=False, default=False)
    """A whole call was written."""
    _refused: bool = field(init=False, default=False)
    _thought: bool = field(init=False, default=False)
    """Some reasoning was written."""
    _details: int = field(init=False, default=0)
    _chars: int = field(init=False, default=0)
    """The length of the text so far."""
    _notes: Notes = field(init=False, factory=Notes)
    _first: Usage | None = field(init=False, default=None)
    """The counts that the message began with."""
    _end: MessageDelta | None = field(init=False, default=None)
    _begins: bytes = field(init=False, default=b"")
    """What stands round the text of deltas like the last one."""
    _ends: bytes = field(init=False, default=b"")

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return self._notes.held

    def receive(self, items: Sequence[Event]) -> Sequence[Frame]:
        out: list[Frame] = []
        try:
            for event in items:
                kind = type(event)
                if kind is self._plain and event.index == self._source:  # type: ignore[attr-defined]  # a delta
                    if text := event.text:  # type: ignore[attr-defined]  # it has both
                        out.append(Frame(self._begins + dumps(text) + self._ends))
                        if kind is TextDelta:
                            self._chars += len(text)
                elif not self.ended and (step := _STEPS.get(kind)) is not None:
                    self._plain = None
                    step(self, event, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _message_start(self, event: MessageStart, out: list[Frame]) -> None:
        if not self._head:
            self._first = event.usage
            self._begin(event.id, event.model, out, event.served or NOBODY)

    def _begin(self, name: str, model: str, out: list[Frame], served: Served = NOBODY) -> None:
        self._about = {
            "id": completion_id(name),
            "object": "chat.completion.chunk",
            "created": served.created or int(self.clock()),
            "model": model or self.facts.model,
        }
        self._tell(served)
        self._write({"role": "assistant", "content": None}, out)

    def _tell(self, served: Served) -> None:
        """From now on every chunk says how the answer was made."""
        self._about |= told_of(served)
        self._whose = dumps(self._about)[:-1]
        self._head = self._whose + b',"choices":[{"index":0,"delta":'

    def _write(self, delta: Json, out: list[Frame]) -> None:
        out.append(Frame(self._head + dumps(delta) + TAIL))

    def _write_plain(self, event: BlockDelta, text: str, begins: bytes, ends: bytes, out: list[Frame]) -> None:
        """A text, and how those are written that follow it in the same block."""
        self._plain, self._source = type(event), event.index
        self._begins, self._ends = self._head + begins, ends + TAIL
        out.append(Frame(self._begins + dumps(text) + self._ends))

    def _block_start(self, event: BlockStart, out: list[Frame]) -> None:
        if event.index in self._open:
            raise StageError(f"BlockStart for block {event.index}, which is open")
        if not self._head:
            self._begin("", "", out)
        block = event.block
        opened = self._open[event.index] = _Open(block, base=self._chars)
        if isinstance(block, ToolUseBlock):
            self._call(block, opened, out)
        elif isinstance(block, RedactedReasoningBlock):
            self._detail(opened, {"type": "reasoning.encrypted", "data": block.data}, out)
        elif not isinstance(block, TextBlock | ReasoningBlock):
            self.ledger.record(STAGE, path_of(event.index, block), "dropped", "Chat cannot show it")

    def _call(self, block: ToolUseBlock, opened: _Open, out: list[Frame]) -> None:
        """A call begins: all that tells it from others, once."""
        if self.facts.one_call and self._calls:
            self.ledger.record(STAGE, "tool use", "dropped", ONE_CALL)
            return
        if block.namespace:
            self.ledger.record(STAGE, "namespace", "dropped", "Chat has no namespaces")
        opened.place, opened.kind = self._calls, self._kind_of(block)
        self._calls += 1
        if opened.kind is not block.kind:
            opened.form = Unwrapped() if opened.kind is ToolKind.CUSTOM else Wrapped()
        if self.facts.one_call:
            opened.around = b'{"function_call":{"arguments":', b"}}"
            self._write({"function_call": {"name": block.name, "arguments": ""}}, out)
            return
        custom = opened.kind is ToolKind.CUSTOM
        words = b'"custom":{"input":' if custom else b'"function":{"arguments":'
        opened.around = b'{"tool_calls":[{"index":%d,' % opened.place + words, b"}}]}"
        text = "input" if custom else "arguments"
        names = {"id": block.id, "type": opened.kind.value, opened.kind.value: {"name": block.name, text: ""}}
        self._write({"tool_calls": [{"index": opened.place, **names}]}, out)

    def _kind_of(self, block: ToolUseBlock) -> ToolKind:
        """What the client declared the tool as; one that it did not is a function, which every client can read."""
        if self.facts.map is NO_MAP:
            return block.kind
        kinds = (tool.kind for tool in self.facts.map.tools.values() if tool.name == block.name)
        return next(kinds, ToolKind.FUNCTION)

    def _say(self, event: TextDelta | RefusalDelta, out: list[Frame]) -> None:
        opened = self._block(event)
        if not isinstance(opened.block, TextBlock) or not event.text:
            return
        self._write_plain(event, event.text, SAID[type(event)], b"}", out)
        if isinstance(event, TextDelta):
            self._chars += len(event.text)
        else:
            self._refused = True

    def _think(self, event: ReasoningDelta, out: list[Frame]) -> None:
        """Reasoning; of an item that may be signed also as a detail, so that the text comes back with its proof."""
        opened = self._block(event)
        if not isinstance(opened.block, ReasoningBlock) or not event.text:
            return
        if opened.block.splittable:
            self._write_plain(event, event.text, b'{"reasoning_content":', b"}", out)
        else:
            joint = JOINT if self._thought and not opened.spoken else ""
            detail = self._placed(opened, {"type": "reasoning.text", "text": event.text})
            self._write({"reasoning_content": joint + event.text, "reasoning_details": [detail]}, out)
        opened.spoken = self._thought = True

    def _signature(self, event: SignatureDelta, out: list[Frame]) -> None:
        self._detail(self._block(event), {"type": "reasoning.text", "signature": event.signature}, out)

    def _detail(self, opened: _Open, detail: Json, out: list[Frame]) -> None:
        self._write({"reasoning_details": [self._placed(opened, detail)]}, out)

    def _placed(self, opened: _Open, detail: Json) -> Json:
        """A detail, or a piece of one, under its index: clients join those that have the same."""
        if opened.place < 0:
            opened.place = self._details
            self._details += 1
        return {**detail, "index": opened.place}

    def _arguments(self, event: ArgumentsDelta, out: list[Frame]) -> None:
        opened = self._block(event)
        if not isinstance(opened.block, ToolUseBlock) or opened.place < 0:
            return
        text = event.text if opened.form is None else opened.form.feed(event.text)
        if text:
            opened.spoken = True
            self._write_plain(event, text, *opened.around, out)
        if opened.form is not None:
            self._plain = None

    def _annotation(self, event: AnnotationDelta, out: list[Frame]) -> None:
        opened = self._block(event)
        if scores := scores_in(event.annotation):
            self._score(scores, out)
        elif self._notes.take(event.annotation, opened.base, self._chars):
            return
        elif (page := page_of(event.annotation)) is not None and self._notes.cite(page, opened.base):
            opened.pages.append(self._notes.last)
            self.ledger.record(STAGE, *SHOWN)
        else:
            self.ledger.record(STAGE, "annotation", "dropped", "Chat cannot show it")

    def _score(self, scores: Scores, out: list[Frame]) -> None:
        """How likely the tokens were of a text: in its chunk, if nothing was written since."""
        said = b',"logprobs":' + dumps({"content": scores, "refusal": None}) + TAIL
        if out and out[-1].data.startswith(self._head + SAID[TextDelta]) and out[-1].data.endswith(b'"}' + TAIL):
            out[-1] = Frame(out[-1].data.removesuffix(TAIL) + said)
        else:
            out.append(Frame(self._head + b'{"content":""}' + said))

    def _block(self, event: BlockDelta) -> _Open:
        try:
            return self._open[event.index]
        except KeyError:
            raise StageError(f"{type(event).__name__} for block {event.index}, which is not open") from None

    def _block_stop(self, event: BlockStop, out: list[Frame]) -> None:
        opened = self._open.pop(event.index, None)
        if opened is None:
            raise StageError(f"BlockStop for block {event.index}, which is not open")
        if not isinstance(opened.block, ToolUseBlock):
            for page in opened.pages:
                page["end_index"] = self._chars
            return
        if opened.place < 0:
            return
        rest = "" if opened.form is None else opened.form.close(event.complete)
        if event.complete and opened.kind is ToolKind.FUNCTION and not opened.spoken:
            rest = rest or "{}"
        if rest:
            begins, ends = opened.around
            out.append(Frame(self._head + begins + dumps(rest) + ends + TAIL))
        self._called = self._called or event.complete

    def _message_delta(self, event: MessageDelta, out: list[Frame]) -> None:
        self._end = event

    def _message_stop(self, event: MessageStop, out: list[Frame]) -> None:
        self.ended = True
        if not self._head:
            self._begin("", "", out)
        end = self._end or MessageDelta(StopReason.END_TURN)
        if notes := self._notes.taken():
            self._write({"annotations": notes}, out)
        if (lost := UNSAID.get(end.stop_reason)) is not None:
            self.ledger.record(STAGE, "stop reason", "translated", lost)
        if end.served is not None:
            self._tell(end.served)
        out.append(Frame(self._head + b'{},"finish_reason":"%s"}]}' % self._finish(end.stop_reason)))
        usage = final_usage(self._first, end.usage, self.facts.usage)
        if usage is not None and self.facts.include_usage:
            out.append(Frame(self._whose + b',"choices":[],"usage":' + dumps(usage_object(usage)) + b"}"))
        out.append(Frame(DONE))

    def _finish(self, reason: StopReason) -> bytes:
        """The finish reason: tool calls are claimed exactly if a whole one was written and nothing cut it short."""
        if reason is StopReason.REFUSAL and self._refused and not self._calls:
            return b"stop"
        calls = b"function_call" if self.facts.one_call else b"tool_calls"
        return FINISH.get(reason, calls if self._called else b"stop")

    def _error(self, event: StreamError, out: list[Frame]) -> None:
        self.ended = True
        told = self.facts.include_usage and self._first is not None and self._first is not self.facts.usage
        if told and not self.ledger.knows(*LOST_COUNTS):  # later ones, which count, were lost before
            self.ledger.record(STAGE, *LOST_COUNTS)
        if self._notes.taken():
            self.ledger.record(STAGE, "annotation", "dropped", "they come last, and the message failed")
        out.append(Frame(dumps(error_body(event))))

    def _ping(self, event: Ping, out: list[Frame]) -> None:
        out.append(PING)


def completion_id(name: str) -> str:
    """An id of this dialect: the upstream's if it is one, one made of it that does not show it, or a minted one."""
    if name.startswith("chatcmpl-"):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32] if name else secrets.token_hex(16)
    return f"chatcmpl-{digest}"


_STEPS: dict[type[Event], Callable[[ChatEncoder, Any, list[Frame]], None]] = {  # each takes the class it stands at
    MessageStart: ChatEncoder._message_start,
    BlockStart: ChatEncoder._block_start,
    TextDelta: ChatEncoder._say,
    RefusalDelta: ChatEncoder._say,
    ReasoningDelta: ChatEncoder._think,
    ArgumentsDelta: ChatEncoder._arguments,
    SignatureDelta: ChatEncoder._signature,
    AnnotationDelta: ChatEncoder._annotation,
    BlockStop: ChatEncoder._block_stop,
    MessageDelta: ChatEncoder._message_delta,
    MessageStop: ChatEncoder._message_stop,
    StreamError: ChatEncoder._error,
    Ping: ChatEncoder._ping,
}
