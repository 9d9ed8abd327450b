"""How the stream ended, for the record."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.events import Carry, Event, MessageDelta, MessageStart, MessageStop, Ping, StreamError, Usage
from pipeline.outcome import Outcome, Verdict
from pipeline.stage import Stage

NOTED = frozenset({MessageStart, MessageDelta, MessageStop, StreamError})
SILENT = (Carry, MessageStart, Ping, StreamError)
"""What says nothing of an answer: an error that is read together with it has the status of its class."""


@define
class VerdictStage(Stage[Event, Event]):
    """Passes everything on; by the end of the stream, `outcome` says how it ended and what it cost.

    `estimate` is our own count of the request's tokens, to be told from the upstream's.
    """

    outcome: Outcome
    estimate: Usage | None = None
    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in items:
            if type(event) in NOTED:
                self._note(event)
        if not self.outcome.begun:
            self.outcome.begun = not all(isinstance(event, SILENT) for event in items)
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        if cause is None:
            if self.outcome.verdict is None:
                self.outcome.verdict = Verdict.CUT
            return ()
        self._note(cause)
        return (cause,)

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
