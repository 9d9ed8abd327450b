"""How one exchange ended, as data."""

from enum import StrEnum

from attrs import define

from pipeline.errors import ErrorKind
from pipeline.events import StopReason, StreamError, Usage


class Verdict(StrEnum):
    """How a stream ended: whole; before its terminal; the upstream (or a bound of ours) said so; the client left."""

    COMPLETE = "complete"
    CUT = "cut"
    FAILED = "failed"
    CANCELLED = "cancelled"


@define
class Outcome:
    """One record at the end of an exchange. Until then `verdict` is None."""

    verdict: Verdict | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    error: StreamError | None = None

    def note(self, error: StreamError) -> None:
        """The exchange did not end well; the first error says how."""
        if self.verdict is None:
            self.verdict = Verdict.CUT if error.kind is ErrorKind.CUT else Verdict.FAILED
            self.error = error
