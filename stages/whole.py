"""Whole answers go through the same stages as streams: a body becomes events, events become a body."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from pipeline.errors import ErrorKind, LimitExceeded
from pipeline.events import Event, MessageStop, StreamError
from pipeline.jsontext import dumps
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message, assemble, disassemble
from pipeline.stage import Stage


@define
class BodyReader(Stage[bytes, Event]):
    """At the end, the events of the whole answer that the bytes are.

    Raises `UpstreamError` if they are no answer, `LimitExceeded` at `limits.answer_bytes`.
    """

    read: Callable[[bytes], Message]
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
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
        if self.ended:
            return ()
        self.ended = True
        body = bytes(self._body)
        self._body.clear()
        if cause is not None:
            return (cause,)
        if not body.strip():
            return (StreamError(ErrorKind.CUT, "the upstream's answer is empty", "empty_answer", True),)
        return list(disassemble(self.read(body)))


@define
class BodyWriter(Stage[Event, bytes]):
    """At the message's end, its whole body; of one that failed or was cut, nothing.

    Raises `LimitExceeded` at `limits.answer_bytes`.
    """

    write: Callable[[Message], Any]
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _events: list[Event] = field(init=False, factory=list)

    def receive(self, items: Sequence[Event]) -> Sequence[bytes]:
        for event in items:
            if self.ended:
                break
            self._events.append(event)
            self.held += len(getattr(event, "text", ""))
            if isinstance(event, MessageStop | StreamError):
                self.ended = True
                return self._body(failed=isinstance(event, StreamError))
        if self.held > self.limits.answer_bytes:
            self._events.clear()
            raise LimitExceeded(f"the answer is larger than {self.limits.answer_bytes} bytes", code="answer_bytes")
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        self._events.clear()
        self.held = 0
        return ()

    def _body(self, *, failed: bool) -> Sequence[bytes]:
        events, self._events = self._events, []
        self.held = 0
        return () if failed else (dumps(self.write(assemble(events))),)
