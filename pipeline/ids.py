"""The ids of tool calls, as clients are told them."""

import secrets

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.ledger import Ledger
from pipeline.limits import Limits


@define
class CallIds:
    """No two calls of a message have the same id; a call without one is given one."""

    stage: str
    """Who records a change."""
    ledger: Ledger
    limits: Limits
    _taken: set[str] = field(init=False, factory=set)

    def unique(self, wanted: str) -> str:
        """The id, or one with a suffix if it is taken, or a minted one if there is none."""
        unique, nth = wanted or f"call_{secrets.token_hex(12)}", 2
        while unique in self._taken:
            unique, nth = f"{wanted}_{nth}", nth + 1
        if wanted and unique != wanted:
            self.ledger.record(self.stage, "tool use id", "renamed", "two calls have the same id")
        self._taken.add(unique)
        return unique

    def check(self, *words: str) -> None:
        """Raise `LimitExceeded` if an id or a name is longer than its bound."""
        if any(len(word) > self.limits.id_chars for word in words):
            raise LimitExceeded(
                f"a call's id or name is longer than {self.limits.id_chars} characters", code="id_chars"
            )
