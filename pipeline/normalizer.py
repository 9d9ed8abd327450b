"""What every dialect's normalizer does alike: how frames become events, and how that ends."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from attrs import define, field

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import ErrorKind, PipelineError
from pipeline.events import Carry, Event, Frame, Origin, StreamError
from pipeline.jsontext import loads
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.payload import payloads
from pipeline.stage import Stage


@define
class Normalizer(Stage[Frame, Event]):
    """Canonical events: every frame makes at least one, and behind the end or a failure nothing is read.

    A failure that a frame tells remembers it.
    A frame that is plainly more of what the last one said takes the short way. The end before the terminal is a cut.
    """

    dialect: ClassVar[str]
    """Whose frames they are."""
    stage: ClassVar[str]
    """What the ledger calls the stage."""
    sentinel: ClassVar[bytes]
    """The text that stands behind the last frame."""
    openers: ClassVar[tuple[str, ...]] = ()
    """The types of the frames that begin something which has a place among the blocks."""
    terminal: ClassVar[str] = "terminal event"
    """What the message ends with."""

    facts: RequestFacts = field(default=NO_REQUEST, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        out: list[Event] = []
        try:
            for frame in items:
                if self.ended:
                    break
                self._frame(frame, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if not self.ended:
            cut = StreamError(ErrorKind.CUT, f"the upstream ended before its {self.terminal}", "stream_cut", True)
            self._eof(cause or cut, out)
        return out

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        try:
            payload = loads(frame.data, self.limits.json_depth)
        except ValueError:
            payload = None
        if payload is not None and self._goes_on(payload, frame, out):
            return
        made = len(out)
        if payload is None:
            self._no_json(frame, out)
        else:
            self._read(payload, frame, out)
        if self.ended and len(out) > made and isinstance(out[-1], StreamError):
            out[-1].origin = Origin(frame.data, frame.name, frame.raw)  # type: ignore[misc]  # it was made just now
        if len(out) == made:
            opens = isinstance(payload, dict) and payload.get("type") in self.openers
            out.append(Carry(self.dialect, frame, opens=opens))

    def _no_json(self, frame: Frame, out: list[Event]) -> None:
        """The sentinel, a keep-alive, JSON texts that lack a blank line between them, or a broken frame."""
        data = frame.data.strip()
        error = None if data.startswith(self.sentinel) else self._error_in(data.decode("utf-8", "replace"), frame.name)
        if error is not None:
            self._fail(error, out)
            return
        several, end = payloads(data, self.sentinel, self.stage, self.ledger)
        for payload in several:
            if not self.ended:
                self._read(payload, frame, out)
        if end and not self.ended:
            self._done(out)

    @abstractmethod
    def _goes_on(self, payload: Any, frame: Frame, out: list[Event]) -> bool:
        """Take the way of nearly every frame, if this one is plainly more of what the last one said."""

    @abstractmethod
    def _read(self, payload: Any, frame: Frame, out: list[Event]) -> None:
        """What the JSON of a frame says."""

    @abstractmethod
    def _error_in(self, payload: Any, name: bytes) -> StreamError | None:
        """The error that a frame's JSON or text tells."""

    def _done(self, out: list[Event]) -> None:
        """The sentinel came. By default it says nothing: the terminal does."""

    def _eof(self, cause: StreamError, out: list[Event]) -> None:
        """The end before the terminal."""
        self._fail(cause, out)

    @abstractmethod
    def _fail(self, error: StreamError, out: list[Event]) -> None:
        """The message ends with an error, behind what was held."""
