"""How the stream ended, for the record."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.events import Carry, Event, MessageDelta, MessageStart, MessageStop, Ping, StreamError, Usage
from pipeline.outcome import Outcome, Verdict
from pipeline.stage import Stage

NOTED = frozenset({MessageStart, MessageDelta, MessageStop, StreamError})
SILENT = (Carry, MessageStart, Ping)
"""What says nothing of an answer: an error behind it has the status of its class."""
MOST = 16
LARGE = 1 << 16
"""So many of them are the beginning of an answer all the same, or fewer that are as large: some servers send them for
as long as the model thinks."""


@define
class VerdictStage(Stage[Event, Event]):
    """Passes everything on; by the end of the stream, `outcome` says how it ended and what it cost.

    `estimate` is our own count of the request's tokens, to be told from the upstream's.
    """

    outcome: Outcome
    estimate: Usage | None = None
    ended: bool = field(init=False, default=False)
    _decided: bool = field(init=False, default=False)
    """Something was said of the answer, or it failed before."""
    _silent: int = field(init=False, default=0)
    """How many said nothing."""

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in items:
            if type(event) in NOTED:
                self._note(event)
        if not self._decided:
            self._decide(items)
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        if cause is None:
            if self.outcome.verdict is None:
                self.outcome.verdict = Verdict.CUT
            return ()
        self._note(cause)
        return (cause,)

    def _decide(self, items: Sequence[Event]) -> None:
        """Look for the first that says something of the answer, or an error."""
        for event in items:
            self._silent += 1 if event.origin is None else 1 + len(event.origin.data) // LARGE
            if self._silent > MOST or not isinstance(event, SILENT):
                self._decided = True
                self.outcome.begun = not isinstance(event, StreamError)
                return
            if isinstance(event, MessageStart) or event.origin is not None:
                self.outcome.announced = True

    def _note(self, event: Event) -> None:
        outcome = self.outcome
        if isinstance(event, MessageStart):
            self._count(event.usage)
        elif isinstance(event, MessageDelta):
            outcome.stop_reason = event.stop_reason
            self._count(event.usage)
        elif isinstance(event, StreamError):
            outcome.note(event)
        elif isinstance(event, MessageStop) and outcome.verdict is None:
            outcome.verdict = Verdict.COMPLETE

    def _count(self, usage: Usage | None) -> None:
        """The last counts stand."""
        if usage is not None:
            self.outcome.usage = usage
            self.outcome.estimated = usage is self.estimate
