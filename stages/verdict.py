"""How the stream ended, for the record."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.errors import ErrorKind
from pipeline.events import Event, MessageDelta, MessageStop, StreamError
from pipeline.outcome import Outcome, Verdict
from pipeline.stage import Stage

NOTED = frozenset({MessageDelta, MessageStop, StreamError})


@define
class VerdictStage(Stage[Event, Event]):
    """Passes everything on; by the end of the stream, `outcome` says how it ended and what it cost."""

    outcome: Outcome
    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in items:
            if type(event) in NOTED:
                self._note(event)
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
        if isinstance(event, MessageDelta):
            outcome.stop_reason = event.stop_reason
            outcome.usage = event.usage
        elif outcome.verdict is None:
            if isinstance(event, StreamError):
                outcome.verdict = Verdict.CUT if event.kind is ErrorKind.CUT else Verdict.FAILED
                outcome.error = event
            else:
                outcome.verdict = Verdict.COMPLETE
