"""Whole answers go through the same stages as streams: a body becomes events, events become a body."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field

from pipeline.arguments import Arguments
from pipeline.change import Change
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    Carry,
    Event,
    Frame,
    MessageStop,
    Origin,
    Ping,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StreamError,
    TextDelta,
    ToolKind,
    Usage,
)
from pipeline.jsontext import JSONScanner, dumps, size_of
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Content, Message, ToolUse, assemble, disassemble
from pipeline.stage import Stage

SILENT = (Carry, Ping)
"""What a message does not hold."""
DELTAS = (TextDelta, RefusalDelta, ReasoningDelta, ArgumentsDelta)

OVERHEAD = 100
"""What an event takes besides its text, in bytes, or more."""


def plainly(body: bytes, message: Message, *, estimate: Usage | None = None) -> Sequence[Event]:
    """The events of a message. `estimate`: see `disassemble`."""
    return [*disassemble(message, estimate)]


def remembering(body: bytes, message: Message, *, estimate: Usage | None = None) -> Sequence[Event]:
    """The same, which remember the body, so that it may go back as it came."""
    events = plainly(body, message, estimate=estimate)
    origin = Origin(body, raw=body, made=tuple(events))
    for event in events:
        event.origin = origin  # type: ignore[misc]  # it was made just now, and nobody has seen it
    return events


@define
class BodyReader(Stage[bytes, Event]):
    """At the end, the events of the whole answer that the bytes are.

    A JSON text shows its own end: one that lacks it was cut, and one that has it is whole, whatever broke then. `tell`
    makes the events. Arguments that are no JSON object are mended, if `mend` can; that is recorded.

    Raises `UpstreamError` if the bytes are no answer, `LimitExceeded` at `limits.answer_bytes`.
    """

    read: Callable[[bytes], Message]
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    tell: Callable[[bytes, Message], Sequence[Event]] = field(default=plainly, kw_only=True)
    mend: Callable[[str], str | None] | None = field(default=None, kw_only=True)
    """The JSON object that a text means; None if it means none."""
    freeform: Collection[str] = field(default=(), kw_only=True)
    """The tools whose input is free text for the client, which is not mended."""
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    ended: bool = field(init=False, default=False)
    _body: bytearray = field(init=False, factory=bytearray)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._body)

    def receive(self, items: Sequence[bytes]) -> Sequence[Event]:
        for item in items:
            self._body += item
        if len(self._body) > self.limits.answer_bytes:
            self._body.clear()
            raise LimitExceeded(f"the answer is larger than {self.limits.answer_bytes} bytes", code="answer_bytes")
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        body = bytes(self._body)
        self._body.clear()
        try:
            message = self.read(body)
        except UpstreamError:
            if (why := cause or _cut(body, self.limits)) is None:
                raise
            return (why,)
        if message.error is not None and not message.content:
            return (evolve(message.error, origin=Frame(body)),)
        if self.mend is not None:
            bound = partial(mended, mend=self.mend, freeform=self.freeform, ledger=self.ledger, limits=self.limits)
            message = evolve(message, content=tuple(map(bound, message.content)))
        return self.tell(body, message)


def mended(
    content: Content,
    *,
    mend: Callable[[str], str | None],
    freeform: Collection[str],
    ledger: Ledger,
    limits: Limits,
) -> Content:
    """A content of a whole answer, with its arguments mended if they are no JSON object; as in `BodyReader`."""
    if not (isinstance(content, ToolUse) and content.complete and content.kind is ToolKind.FUNCTION):
        return content
    if content.name in freeform:
        return content
    arguments = Arguments(limits)
    arguments.feed(content.arguments)
    if arguments.close()[1] or (meant := mend(content.arguments)) is None:
        return content
    ledger.record("BodyReader", "arguments", "mended", "they were no JSON object")
    return evolve(content, arguments=meant)


@define
class AnswerBound(Stage[Event, Event]):
    """An answer that is kept to its end is no larger than `limits.answer_bytes`, however small its pieces are.

    Raises `LimitExceeded` at that bound.
    """

    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    ended: bool = field(init=False, default=False)
    _size: int = field(init=False, default=0)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for at, event in enumerate(items):
            self._size += weight_of(event)
            if self._size > self.limits.answer_bytes:
                bound = f"the answer is larger than {self.limits.answer_bytes} bytes"
                raise LimitExceeded(bound, code="answer_bytes").after(items[:at])
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        return () if cause is None else (cause,)


@define
class BodyWriter(Stage[Event, bytes]):
    """At the message's end, its whole body; of one that failed, nothing.

    A body that the events remember is as it came, if nobody changed them; else it is patched, if `patch` can.
    """

    write: Callable[[Message], Any]
    patch: Callable[[Change], Any] | None = field(default=None, kw_only=True)
    estimate: Usage | None = field(default=None, kw_only=True)
    """Our own count of the request's tokens, to be told from the upstream's."""
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _events: list[Event] = field(init=False, factory=list)

    def receive(self, items: Sequence[Event]) -> Sequence[bytes]:
        for event in items:
            if self.ended:
                break
            if isinstance(event, MessageStop):
                return (self._body([*self._end(), event]),)
            if isinstance(event, StreamError):
                self._end()
            elif not isinstance(event, SILENT):
                self._events.append(event)
                self.held += weight_of(event)
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self._end()
        return ()

    def _body(self, events: Sequence[Event]) -> bytes:
        origin = next((event.origin for event in events if isinstance(event.origin, Origin)), None)
        if origin is None or self.patch is None:
            return dumps(self.write(assemble(events, self.estimate)))
        change = Change(origin.raw, origin.made, events)
        return dumps(self.patch(change)) if change else origin.raw

    def _end(self) -> list[Event]:
        events, self._events = self._events, []
        self.held = 0
        self.ended = True
        return events


def weight_of(event: Event) -> int:
    """About how many bytes an event takes while it is kept."""
    if isinstance(event, SILENT):
        return 0
    if isinstance(event, DELTAS):
        return OVERHEAD + size_of(event.text)
    if isinstance(event, SignatureDelta):
        return OVERHEAD + len(event.signature)
    if isinstance(event, AnnotationDelta):
        return OVERHEAD + len(dumps(event.annotation))
    if isinstance(event, BlockStart) and isinstance(event.block, ServerBlock):
        return OVERHEAD + len(dumps(event.block.payload))
    if isinstance(event, BlockStart) and isinstance(event.block, RedactedReasoningBlock):
        return OVERHEAD + len(event.block.data)
    return OVERHEAD


def _cut(body: bytes, limits: Limits) -> StreamError | None:
    """What is said of an answer without an end, or none at all."""
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return StreamError(ErrorKind.CUT, "the upstream's answer is empty", "empty_answer", True)
    if text[0] in "{[" and JSONScanner(limits.json_depth).feed(text) < 0:
        return StreamError(ErrorKind.CUT, "the upstream's answer lacks its end", "answer_cut", True)
    return None
