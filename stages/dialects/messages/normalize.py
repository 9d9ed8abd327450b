"""A Messages stream, of any server, as canonical events."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.events import (
    BlockStop,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    RefusalDelta,
    StopReason,
    StreamError,
    TextBlock,
    Usage,
)
from pipeline.failure import note_untold
from pipeline.ids import CallIds
from pipeline.jsontext import exact, is_whole
from pipeline.normalizer import Normalizer
from pipeline.unread import Unread, says
from pipeline.word import word
from stages.dialects.messages.blocks import STAGE, SpokenPart, Writer
from stages.dialects.messages.content import Content
from stages.dialects.messages.errors import error_in, error_of
from stages.dialects.messages.usage import COUNTS, usage_of
from stages.dialects.messages.words import CITATION, DELTA, MEMBERS, NAME, SIGNATURE

DONE: Final = b"[DONE]"
"""No part of the dialect, but some servers send it behind the terminal."""

STOP_REASONS: dict[str, StopReason] = {reason.value: reason for reason in StopReason}
"""The canonical words are this dialect's. A reason that is not here ends the turn, and is recorded."""

CUTTING: Final = frozenset({StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL})
"""The stop reasons at which a call may be unfinished."""

READ: Final = frozenset(
    {"content", "id", "model", "role", "stop_details", "stop_reason", "stop_sequence", "type", "usage"}
)
"""The members of a message, or of what is told at its end, that are read or say nothing."""

DELTAS: Final = frozenset({"delta"})
"""The member of the event that tells the end which holds what of it is read."""

ODD_INDEX: Final = re.compile(r"([0-9]{1,9})(\.0)?")
"""An index that some server writes as text, or as a float."""

DELTA_KINDS: Final = frozenset({*MEMBERS, SIGNATURE, CITATION})
OF_DELTA: Final = frozenset({"type", "signature", "citation", *MEMBERS.values()})
OF_EVENT: Final = {
    "message_start": frozenset({"type", "message"}),
    "content_block_start": frozenset({"type", "index", "content_block"}),
    DELTA: frozenset({"type", "index", "delta"}),
    "content_block_stop": frozenset({"type", "index"}),
    "message_stop": frozenset({"type"}),
}
"""The kinds of delta that are read, and the members of those, and of events; those of the others tell the end, or are a
message."""

OF_ERROR: Final = frozenset({"error", "message", "detail", "details", "code", "msg", "param", "status", "status_code"})
"""The members of a whole answer that tell its error."""

OF_END: Final = ("stop_reason", "stop_sequence", "stop_details")
"""Those that tell why it ended."""

NO_FRAME: Final = Frame(b"")


@define
class MessagesNormalizer(Normalizer):
    """A Messages stream in canonical events: a block for each of the upstream's, under an index of ours.

    Events are told by the `type` in their JSON, or by their name if that lacks. A block that begins with content has
    it; a delta whose block never began, has ended or is of another kind begins one of its own. The stream ends with a
    terminal event; EOF before one is a cut, whatever was told of the end.
    """

    dialect: ClassVar[str] = NAME
    stage: ClassVar[str] = STAGE
    sentinel: ClassVar[bytes] = DONE
    openers: ClassVar[tuple[str, ...]] = ("content_block_start",)

    _started: bool = field(init=False, default=False)
    _writer: Writer = field(init=False)
    _content: Content = field(init=False)
    _key: Any = field(init=False, default=None)
    """The index and the type of the last delta; the next one mostly has the same. And what it was of."""
    _kind: str = field(init=False, default="")
    _size: int = field(init=False, default=0)
    """How many members it had: one that has another is looked at."""
    _plain: SpokenPart | None = field(init=False, default=None)
    _stop: StopReason | None = field(init=False, default=None)
    _stop_sequence: str | None = field(init=False, default=None)
    _details: Mapping[str, Any] = field(init=False, factory=dict)
    """Why the model refused."""
    _usage: Usage | None = field(init=False, default=None)
    _begun: Usage | None = field(init=False, default=None)
    """The counts that were known when the message began."""
    _unread: Unread = field(init=False)

    def __attrs_post_init__(self) -> None:
        ids = CallIds(STAGE, "tool_use.id", self.ledger, self.limits, self.facts.calls)
        self._writer = Writer(self.ledger, self.limits, ids)
        self._content = Content(self._writer)
        self._unread = self._writer.unread

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return self._writer.held

    def whole(self, message: Mapping[str, Any], failed: StreamError | None = None) -> Sequence[Event]:
        """The events of a message that came as a whole, by the same rules. `failed`: the error that it is, which
        counts instead of why it ended."""
        out: list[Event] = []
        if failed is None:
            self._message(message, NO_FRAME, out)
        else:
            self._failed(message, failed, out)
        return out

    def _failed(self, message: Mapping[str, Any], failed: StreamError, out: list[Event]) -> None:
        """A whole message that is an error."""
        self._begin({name: value for name, value in message.items() if name not in OF_ERROR}, out)
        self._blocks(message.get("content"), out)
        note_untold(message, failed, STAGE, self.ledger, answered=False)
        for name in filter(message.get, OF_END):
            self._writer.lose(name, "the answer failed")
        self._fail(failed, out)

    def _goes_on(self, event: Any, frame: Frame, out: list[Event]) -> bool:
        """More of the text that the last delta was of."""
        part = self._plain
        if part is None:
            return False
        try:
            delta = event["delta"]
            if event["index"] != self._key or delta["type"] != self._kind or event["type"] != DELTA:
                return False
            text = delta[MEMBERS[self._kind]]
            if len(event) + len(delta) != self._size:
                return False
            if not text or not (text.isascii() or is_whole(text)) or part.halves.odd:
                return False
        except (LookupError, TypeError, AttributeError):
            return False
        part.go_on(text, out)
        return True

    def _error_in(self, payload: Any, name: bytes) -> StreamError | None:
        return error_in(payload, name)

    def _done(self, out: list[Event]) -> None:
        if self._stop is not None:
            self.ledger.record(STAGE, "message_stop", "mended", "the stream ended with a sentinel instead")
            self._end(out)

    def _read(self, event: Any, frame: Frame, out: list[Event]) -> None:
        self._plain = None
        if not isinstance(event, dict):
            if (error := error_in(event, frame.name)) is not None:
                self._told_error(event, error, out)
            else:
                self.ledger.record(STAGE, "frame", "ignored", "JSON that is no object")
            return
        kind = event.get("type")
        if not isinstance(kind, str):
            kind = frame.name.decode("utf-8", "replace")
        if kind == "ping":
            out.append(Ping())
        elif (step := _STEPS.get(kind)) is not None:
            if kind in OF_EVENT:
                self._unread.note(event, OF_EVENT[kind], "event.")
            step(self, event, frame, out)
        elif (error := error_in(event, frame.name)) is not None:
            self._told_error(event, error, out)
        elif not kind:
            self.ledger.record(STAGE, "frame", "ignored", "JSON that is no event")

    def _told_error(self, event: Any, error: StreamError, out: list[Event]) -> None:
        note_untold(event, error, STAGE, self.ledger, answered=True)
        self._fail(error, out)

    def _begin(self, message: Mapping[str, Any], out: list[Event]) -> None:
        if self._started:
            return
        self._started = True
        self._count(message.get("usage"))
        self._begun = self._usage
        self._unread.note(message, READ)
        model = self._word(message.get("model"))
        out.append(
            MessageStart(self._word(message.get("id")), model or self.facts.model, self._usage or self.facts.usage)
        )

    def _word(self, value: Any) -> str:
        """An id or a model's name; an odd one is none."""
        if isinstance(value, str) and len(value) <= self.limits.id_chars:
            return value
        if value is not None:
            self.ledger.record(STAGE, "id, model", "ignored", "no text, or a long one")
        return ""

    def _message_start(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        if self._started:
            self.ledger.record(STAGE, "message_start", "ignored", "the message has begun")
        self._begin(_object(event.get("message")), out)

    def _block_start(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        self._begin({}, out)
        block = _object(event.get("content_block"))
        if block.get("input"):
            block = _exactly(frame.data, block)
        self._content.begin(_index(event), block, out)

    def _block_delta(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        self._begin({}, out)
        delta = _object(event.get("delta"))
        kind = delta.get("type")
        if not isinstance(kind, str):
            kind = next((name for name, member in MEMBERS.items() if member in delta), "")
        key = _index(event)
        if (hosted := self._content.hosted(key)) is not None:
            hosted.add(kind, delta)
            return
        if kind not in DELTA_KINDS:
            self._writer.lose("delta", "of a kind that no block has")
            return
        self._unread.note(delta, OF_DELTA, "delta.")
        if kind in MEMBERS:
            self._size = len(event) + len(delta)
            if isinstance(text := delta.get(MEMBERS[kind]), str):
                self._key, self._kind, self._plain = key, kind, self._content.say(key, kind, text, out)
            else:
                self._writer.lose("delta", "no text")
        elif kind == SIGNATURE:
            self._content.sign(key, delta.get("signature"), out)
        else:
            self._content.text(key, out).cite(delta.get("citation"), out)

    def _block_stop(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        self._begin({}, out)
        self._content.stop(_index(event), out)

    def _message_delta(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        """How the message ends; what is null was said before, or is not said."""
        self._begin({}, out)
        self._tell(_object(event.get("delta")), event.get("usage"))
        self._unread.note(event, READ, apart=DELTAS)

    def _tell(self, delta: Mapping[str, Any], usage: Any) -> None:
        self._count(usage)
        reason, sequence = delta.get("stop_reason"), delta.get("stop_sequence")
        if isinstance(reason, str) and reason:
            self._stop = STOP_REASONS.get(reason)
            if self._stop is None:
                self.ledger.record(STAGE, "stop_reason", "translated", "an unknown one ends the turn")
                self._stop = StopReason.END_TURN
        if isinstance(sequence, str):
            self._stop_sequence = sequence
        elif sequence:
            self._writer.lose("stop_sequence", "of another kind")
        self._details = _object(delta.get("stop_details")) or self._details
        self._unread.note(delta, READ)

    def _count(self, usage: Any) -> None:
        """The last counts stand."""
        before = self._usage
        self._usage = usage_of(usage, before, self.ledger)
        if self._usage is before and says(usage):
            self.ledger.record(STAGE, "usage", "ignored", "it holds no count of tokens")
        elif isinstance(usage, dict):
            for prefix, (member, read) in COUNTS.items():
                self._unread.note(usage if member is None else usage.get(member), read, prefix)

    def _message_stop(self, event: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        self._begin({}, out)
        self._end(out)

    def _message(self, message: Mapping[str, Any], frame: Frame, out: list[Event]) -> None:
        """A whole message, where no part of it was told."""
        if self._started or "content" not in message:
            self.ledger.record(STAGE, "frame", "ignored", "a message that is none, or one too many")
            return
        if (failed := error_of(message)) is not None:
            self._failed(message, failed, out)
            return
        self._begin(message, out)
        self._blocks(message.get("content"), out)
        self._tell(message, message.get("usage"))
        self._end(out)

    def _blocks(self, content: Any, out: list[Event]) -> None:
        """The content of a whole message."""
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if content and not isinstance(content, list):
            self._writer.lose("content", "of another kind")
        for key, block in enumerate(content if isinstance(content, list) else ()):
            if block and not isinstance(block, dict):
                self._writer.lose("content[]", "of another kind")
            self._content.begin(key, _object(block), out)
            self._content.stop(key, out)

    def _end(self, out: list[Event]) -> None:
        if self._stop is None:
            self.ledger.record(STAGE, "stop_reason", "mended", "none was told")
        reason = self._stop or StopReason.END_TURN
        self._content.settle(out, complete=reason not in CUTTING)
        why = word(self._details.get("explanation")) if reason is StopReason.REFUSAL and not self._writer.spoken else ""
        if why:
            index = self._writer.open(TextBlock(), out)
            out += [RefusalDelta(index, why), BlockStop(index)]
        for name, value in self._details.items():
            if value and name != "type" and not (why and name == "explanation"):
                self._writer.lose(f"stop_details.{name[:64]}", "no event carries it")
        out += [MessageDelta(reason, self._stop_sequence, self._usage), MessageStop()]
        self.ended = True

    def _fail(self, error: StreamError, out: list[Event]) -> None:
        self._content.cut(out)
        if self._usage != self._begun:
            self._writer.lose("usage", "the answer failed")
        out.append(error)
        self.ended = True


def _index(event: Mapping[str, Any]) -> int | None:
    """The index of a block, or None if it names none."""
    index = event.get("index")
    if isinstance(index, str | float) and (odd := ODD_INDEX.fullmatch(str(index))):
        return int(odd[1])
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _exactly(data: bytes, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A block that begins with its input, every digit of its numbers kept."""
    try:
        return {**block, "input": exact(data)["content_block"]["input"]}
    except (ValueError, LookupError, TypeError):
        return block


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_STEPS: dict[str, Callable[[MessagesNormalizer, Mapping[str, Any], Frame, list[Event]], None]] = {
    "message_start": MessagesNormalizer._message_start,
    "content_block_start": MessagesNormalizer._block_start,
    DELTA: MessagesNormalizer._block_delta,
    "content_block_stop": MessagesNormalizer._block_stop,
    "message_delta": MessagesNormalizer._message_delta,
    "message_stop": MessagesNormalizer._message_stop,
    "message": MessagesNormalizer._message,
}
