"""How one exchange ended, as data."""

from enum import StrEnum

from attrs import define, field

from pipeline.errors import ErrorKind
from pipeline.events import StopReason, StreamError, Usage
from pipeline.ledger import Ledger

REPAIRS = frozenset({"mended", "renamed", "supplied", "unwrapped"})
"""What the ledger calls a repair: the answer says the same, in a form that is legal."""


LOSSES = ("dropped", "ignored")
"""What the ledger calls what is lost."""


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
    estimated: bool = field(default=False, kw_only=True)
    """`usage` is not the upstream's but our estimate of the request."""
    begun: bool = field(default=False, kw_only=True)
    """Something of an answer, and not its beginning alone, came before the error, if there was one."""
    announced: bool = field(default=False, kw_only=True)
    """The beginning of an answer came, or a frame that goes to the client as it came, before the error, if there was
    one."""
    recovered: int = field(default=0, kw_only=True)
    """Calls that the model wrote as text."""
    hold: float = field(default=0.0, kw_only=True)
    """The longest time, in seconds, that the client was sent nothing; told by the host, which has the clock."""
    ledger: Ledger = field(factory=Ledger, kw_only=True, repr=False)
    kept: Ledger = field(factory=Ledger, kw_only=True, repr=False)
    """What no event carries of an answer that goes back as it came, to a client of the upstream's dialect: no loss."""

    @property
    def repairs(self) -> int:
        """Kinds of repair that the answer needed."""
        return sum(entry.action in REPAIRS for entry in self.ledger)

    def note(self, error: StreamError) -> None:
        """The exchange did not end well; the first error says how."""
        if self.verdict is None:
            self.verdict = Verdict.CUT if error.kind is ErrorKind.CUT else Verdict.FAILED
            self.error = error

    def give_up(self) -> None:
        """Such an answer does not go back: what was kept of it is lost."""
        for entry in self.kept:
            if entry.action in LOSSES:
                self.ledger.record(entry.stage, entry.path, entry.action, entry.reason)

    def cancel(self) -> None:
        """The client left; after the end that changes nothing."""
        if self.verdict is None:
            self.verdict = Verdict.CANCELLED
