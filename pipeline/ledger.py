"""What could not be carried: one entry a loss, never a value."""

from collections.abc import Iterator
from typing import Literal

from attrs import asdict, astuple, define, field, frozen

from pipeline.limits import DEFAULT_LIMITS

Direction = Literal["request", "response"]


@frozen
class LedgerEntry:
    """One loss or repair. `path` names the member or event, `action` what was done with it, `reason` why."""

    direction: Direction
    stage: str
    path: str
    action: str
    reason: str


@define
class Ledger:
    """The losses of one exchange; the same loss twice is one entry.

    Those of a request stand in order of first appearance. Those of an answer stand in the order of their words: several
    stages record, each for a whole read, so which of them is first depends on how the bytes were cut. Bounded: beside
    `most` entries, one says that there were more.
    """

    direction: Direction = "response"
    most: int = DEFAULT_LIMITS.ledger_entries
    _entries: dict[LedgerEntry, None] = field(init=False, factory=dict)

    def record(self, stage: str, path: str, action: str, reason: str) -> None:
        """Enter a loss."""
        entry = LedgerEntry(self.direction, stage, path, action, reason)
        if len(self._entries) >= self.most and entry not in self._entries:
            entry = LedgerEntry(self.direction, "Ledger", "*", "not recorded", f"more than {self.most} entries")
        self._entries[entry] = None

    def knows(self, path: str, action: str, reason: str) -> bool:
        """Whether some stage entered it."""
        return any((entry.path, entry.action, entry.reason) == (path, action, reason) for entry in self._entries)

    def __iter__(self) -> Iterator[LedgerEntry]:
        return iter(self._entries if self.direction == "request" else sorted(self._entries, key=astuple))

    def __len__(self) -> int:
        return len(self._entries)

    def as_dicts(self) -> list[dict[str, str]]:
        """The entries as JSON-ready objects."""
        return [asdict(entry) for entry in self]
