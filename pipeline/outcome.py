"""How one exchange ended, as data."""

from enum import StrEnum

from attrs import define

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
