"""Canonical events as a Messages stream."""

import secrets
from collections.abc import Callable, Mapping, Sequence
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
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from pipeline.hosted import path_of
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.logprobs import LOGPROBS, scores_in
from pipeline.served import NOBODY
from pipeline.served import told_of as service_of
from pipeline.word import word
from stages.dialects.messages.errors import error_body
from stages.dialects.messages.opaque import blob_of
from stages.dialects.messages.usage import counts_of
from stages.dialects.messages.words import CITATIONS, NAME, PAGE

STAGE: Final = "MessagesEncoder"
NAMESPACE: Final = ("namespace", "dropped", "Messages has no namespaces")
"""What the ledger says of what a call's tool is in."""
UNCOUNTED: Final = ("usage", "made", "the upstream counted no tokens, and this dialect must have numbers")
"""How the ledger tells that the counts are nobody's."""

DELTA: Final = b"content_block_delta"
PING: Final = Frame(b'{"type":"ping"}', b"ping")

DELTAS: dict[type[Event], bytes] = {
    TextDelta: b'{"type":"text_delta","text":',
    RefusalDelta: b'{"type":"text_delta","text":',
    ReasoningDelta: b'{"type":"thinking_delta","thinking":',
    ArgumentsDelta: b'{"type":"input_json_delta","partial_json":',
}
"""How the delta of each class begins; its text and `}` follow."""

PROMPT = frozenset({"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"})
"""The counts of what went in. They are all 0 only if the upstream did not tell."""


PLAIN: dict[type[Block], type[Event]] = {
    TextBlock: TextDelta,
    ReasoningBlock: ReasoningDelta,
    ToolUseBlock: ArgumentsDelta,
}
"""What nearly all deltas of a block are."""


@define
class MessagesEncoder(Encoder):
    """The strictest form of a Messages stream, which every known client reads.

    One block at a time, indexes from 0 without gaps, a tool's input in deltas only, one `message_delta`, one terminal.
    A block that Messages cannot show is left out, and recorded. An error closes the open block, but for a call: that
    one was cut, and a client would run it.
    """

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    _next: int = field(init=False, default=0)
    _counted: bool = field(init=False, default=False)
    """The upstream told counts when the message began."""
    _open: BlockStart | None = field(init=False, default=None)
    _begins: bytes = field(init=False, default=b"")
    """What its plain deltas begin with."""
    _shown: bool = field(init=False, default=True)
    """The open block is written."""

    def receive(self, items: Sequence[Event]) -> Sequence[Frame]:
        out: list[Frame] = []
        try:
            for event in items:
                if type(event) is self._plain and event.index == self._source:  # type: ignore[attr-defined]  # it has one
                    if text := event.text:  # type: ignore[attr-defined]  # what is plain has one
                        out.append(Frame(self._begins + dumps(text) + b"}}", DELTA))
                elif not self.ended and (step := _STEPS.get(type(event))) is not None:
                    step(self, event, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _message_start(self, event: MessageStart, out: list[Frame]) -> None:
        self._counted = event.usage is not None and event.usage is not self.facts.usage
        note_served(event.served, STAGE, self.ledger)
        _write("message_start", {"message": message_of(event)}, out)

    def _block_start(self, event: BlockStart, out: list[Frame]) -> None:
        if self._open is not None:
            raise StageError(f"BlockStart for block {event.index} while block {self._open.index} is open")
        self._open = event
        content = content_of(event.block)
        self._shown = content is not None
        if content is None:
            self.ledger.record(STAGE, path_of(event.index, event.block), "dropped", "Messages cannot show it")
            return
        if isinstance(event.block, ToolUseBlock) and event.block.namespace:
            self.ledger.record(STAGE, *NAMESPACE)
        _write("content_block_start", {"index": self._next, "content_block": content}, out)
        self._source = event.index
        if _is_custom(event):
            self._arguments('{"input":"', out)
        elif (plain := PLAIN.get(type(event.block))) is not None:
            self._plain = plain
            self._begins = self._beginning(plain)

    def _block_stop(self, event: BlockStop, out: list[Frame]) -> None:
        if self._open is None or event.index != self._open.index:
            raise StageError(f"BlockStop for block {event.index}, which is not open")
        if self._shown:
            if _is_custom(self._open) and event.complete:
                self._arguments('"}', out)
            _write("content_block_stop", {"index": self._next}, out)
            self._next += 1
        self._open = None
        self._plain = None

    def _arguments(self, text: str, out: list[Frame]) -> None:
        out.append(Frame(self._beginning(ArgumentsDelta) + dumps(text) + b"}}", DELTA))

    def _beginning(self, delta: type[Event]) -> bytes:
        """How a delta of the open block begins."""
        return b'{"type":"content_block_delta","index":%d,"delta":%b' % (self._next, DELTAS[delta])

    def _delta(self, event: Any, out: list[Frame]) -> None:
        """A delta that is not plain; freeform input becomes the inside of a JSON string."""
        if self._open is None or event.index != self._open.index:
            raise StageError(f"{type(event).__name__} for block {event.index}, which is not open")
        if not self._shown or not event.text:
            return
        if _is_custom(self._open):
            self._arguments(dumps(event.text)[1:-1].decode(), out)
        else:
            out.append(Frame(self._beginning(type(event)) + dumps(event.text) + b"}}", DELTA))

    def _signature(self, event: SignatureDelta, out: list[Frame]) -> None:
        if self._open is None or event.index != self._open.index:
            raise StageError(f"SignatureDelta for block {event.index}, which is not open")
        delta = {"type": "signature_delta", "signature": blob_of(event.signature)}
        _write("content_block_delta", {"index": self._next, "delta": delta}, out)

    def _annotation(self, event: AnnotationDelta, out: list[Frame]) -> None:
        if self._open is None or event.index != self._open.index:
            raise StageError(f"AnnotationDelta for block {event.index}, which is not open")
        if (citation := citation_of(event.annotation, STAGE, self.ledger)) is not None:
            delta = {"type": "citations_delta", "citation": citation}
            _write("content_block_delta", {"index": self._next, "delta": delta}, out)

    def _message_delta(self, event: MessageDelta, out: list[Frame]) -> None:
        if not self._counted and (event.usage is None or event.usage is self.facts.usage):
            self.ledger.record(STAGE, *UNCOUNTED)
        note_served(event.served, STAGE, self.ledger)
        _write("message_delta", told_of(event), out)

    def _message_stop(self, event: MessageStop, out: list[Frame]) -> None:
        self.ended = True
        _write("message_stop", {}, out)

    def _error(self, event: StreamError, out: list[Frame]) -> None:
        self.ended = True
        self._plain = None
        if self._open is not None and self._shown and not isinstance(self._open.block, ToolUseBlock):
            _write("content_block_stop", {"index": self._next}, out)
        out.append(Frame(dumps(error_body(event)), b"error"))

    def _ping(self, event: Ping, out: list[Frame]) -> None:
        out.append(PING)


def message_of(event: MessageStart) -> dict[str, Any]:
    """A message as it begins."""
    return {
        "id": message_id(event.id),
        "type": "message",
        "role": "assistant",
        "model": event.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts_of(event.usage or Usage()),
    }


def content_of(block: Block) -> dict[str, Any] | None:
    """A block as it begins, or None for one that this dialect does not have."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": ""}
    if isinstance(block, ReasoningBlock):
        return {"type": "thinking", "thinking": "", "signature": ""}
    if isinstance(block, RedactedReasoningBlock):
        return {"type": "redacted_thinking", "data": blob_of(block.data)}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
    return dict(block.payload) if block.dialect == NAME else None


def told_of(event: MessageDelta) -> dict[str, Any]:
    """What is told of the end of a message."""
    usage = {"output_tokens": 0} if event.usage is None else counts_of(event.usage)
    if not any(count for name, count in usage.items() if name in PROMPT):
        usage = {name: count for name, count in usage.items() if name not in PROMPT}  # 0 would erase the estimate
    return {"delta": {"stop_reason": event.stop_reason, "stop_sequence": event.stop_sequence}, "usage": usage}


def message_id(name: str) -> str:
    """An upstream's id in this dialect's form; a minted one if there is none."""
    if name.startswith("msg_"):
        return name
    return f"msg_{name or secrets.token_hex(12)}"


def citation_of(annotation: Mapping[str, Any], stage: str, ledger: Ledger) -> Mapping[str, Any] | None:
    """A note as a citation of Messages: its own, or the page of another API's; None for one that it cannot show.

    What is quoted of the page nobody told, nor the index by which the provider would know it again.
    """
    if word(annotation.get("type")) in CITATIONS:
        return annotation
    if scores_in(annotation):
        ledger.record(stage, LOGPROBS, "dropped", "Messages does not tell how likely a token was")
    elif (page := page_of(annotation)) is not None:
        ledger.record(stage, *SHOWN)
        return {"type": PAGE, "url": page.url, "title": page.title, "cited_text": "", "encrypted_index": ""}
    else:
        ledger.record(stage, "annotation", "dropped", "Messages cannot show another API's citation of no page")
    return None


def note_served(served: Served | None, stage: str, ledger: Ledger) -> None:
    """Record what is told of how the answer was made: Messages has other tiers, and tells no provider.

    When it was made is no loss: every answer tells that, as it has an id, and Messages has no place for it.
    """
    for name in service_of(served or NOBODY):
        ledger.record(stage, name, "dropped", "Messages does not tell it")


def _is_custom(start: BlockStart) -> bool:
    return isinstance(start.block, ToolUseBlock) and start.block.kind is ToolKind.CUSTOM


def _write(name: str, members: dict[str, Any], out: list[Frame]) -> None:
    out.append(Frame(dumps({"type": name, **members}), name.encode()))


_STEPS: dict[type[Event], Callable[[MessagesEncoder, Any, list[Frame]], None]] = {  # each takes the class it stands at
    MessageStart: MessagesEncoder._message_start,
    BlockStart: MessagesEncoder._block_start,
    BlockStop: MessagesEncoder._block_stop,
    SignatureDelta: MessagesEncoder._signature,
    AnnotationDelta: MessagesEncoder._annotation,
    MessageDelta: MessagesEncoder._message_delta,
    MessageStop: MessagesEncoder._message_stop,
    StreamError: MessagesEncoder._error,
    Ping: MessagesEncoder._ping,
    **dict.fromkeys(DELTAS, MessagesEncoder._delta),
}
