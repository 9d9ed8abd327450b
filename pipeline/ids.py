"""The ids of tool calls, as clients are told them."""

import secrets
from collections.abc import Iterable

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.ledger import Ledger
from pipeline.limits import Limits


@define
class CallIds:
    """No two calls of a message have the same id, nor that of an earlier call; a call without one is given one."""

    stage: str
    """Who records a change."""
    path: str
    """What the ledger calls the member that they stand in."""
    ledger: Ledger
    limits: Limits
    earlier: Iterable[str] = ()
    """The ids of the calls that the conversation holds already."""
    _taken: dict[str, int] = field(init=False)
    """The ids that were given, and how often each was wanted."""

    @_taken.default
    def _of_earlier(self) -> dict[str, int]:
        return dict.fromkeys(iter(self.earlier), 1)  # of a set, it would be made large at once

    def unique(self, wanted: str) -> str:
        """The id, or one with a suffix if it is taken, or a minted one if there is none."""
        if not wanted:
            wanted = f"call_{secrets.token_hex(12)}"
        unique = wanted
        while unique in self._taken:
            self._taken[wanted] += 1
            unique = f"{wanted}_{self._taken[wanted]}"
        if unique != wanted:
            self.ledger.record(self.stage, self.path, "renamed", "two calls have the same id")
        self._taken[unique] = 1
        return unique

    def check(self, *words: str) -> None:
        """Raise `LimitExceeded` if an id or a name is longer than its bound."""
        if any(len(word) > self.limits.id_chars for word in words):
            raise LimitExceeded(
                f"a call's id or name is longer than {self.limits.id_chars} characters", code="id_chars"
            )
