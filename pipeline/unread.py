"""What an upstream's objects say that no event carries: an entry in the ledger for each member, once a message."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from attrs import define, field

from pipeline.ledger import Ledger

MOST: Final = 1_000
"""So many members of one kind of object are known, and no more: an upstream may make up a new one for each frame."""
LONGEST: Final = 64
"""So many characters of a name are recorded."""


@define
class Unread:
    """Records the members that say something and are not read.

    What was recorded once is known, so that frames that have no other members cost a comparison of names.
    """

    stage: str
    ledger: Ledger
    _known: dict[str, set[str]] = field(init=False, factory=dict)

    def known(self, prefix: str, read: Collection[str]) -> set[str]:
        """The members of a kind of object that are read, or were recorded: a set that grows."""
        if (known := self._known.get(prefix)) is None:
            known = self._known[prefix] = {*read}
        return known

    def note(
        self, members: Any, read: Collection[str], prefix: str = "", apart: AbstractSet[str] = frozenset()
    ) -> None:
        """Record those of one object's members; what is no object has none. `prefix`: where it stands.

        `apart`: members that somebody else takes note of.
        """
        if not isinstance(members, Mapping):
            return
        known = self.known(prefix, read)
        for name in members.keys() - known - apart:
            if says(members[name]):
                self.ledger.record(self.stage, f"{prefix}{name[:LONGEST]}", "dropped", "no event carries it")
                if len(known) < MOST:
                    known.add(name)


def brings(members: Mapping[str, Any], known: AbstractSet[str]) -> bool:
    """Whether an object has a member, other than those, that says something."""
    return not members.keys() <= known and any(members[name] for name in members.keys() - known)


def says(value: Any) -> bool:
    """Whether a value says anything: no null, no zero, nothing empty or made of such."""
    if isinstance(value, dict):
        return any(map(says, value.values()))
    return any(map(says, value)) if isinstance(value, list) else bool(value)
