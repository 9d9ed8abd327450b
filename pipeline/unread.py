"""What an upstream's objects say that no event carries: an entry in the ledger for each member, once a message."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

from attrs import define, field

from pipeline.ledger import Ledger

MOST: Final = 100
"""So many members of one kind of object are known, and no more: an upstream may make up a new one for each frame."""
UNCARRIED: Final = "no event carries it"
LONGEST: Final = 64
"""So many characters of a name are recorded, and names that are longer are not known."""
Known = tuple[tuple[tuple[str, frozenset[str]], frozenset[str]], ...]
"""Names of members, by where they stand and which are read there: what stands in one place may be of several kinds."""


@define
class Unread:
    """Records the members that say something and are not read.

    What was recorded once is known, so that frames that have no other members cost a comparison of names. Streams that
    know the same share one set of names.
    """

    stage: str
    ledger: Ledger
    reason: str = UNCARRIED
    _known: Known = field(init=False, default=())
    """Where more than what is read is known."""

    def known(self, read: frozenset[str], prefix: str = "") -> frozenset[str]:
        """The members of a kind of object that are read, or were recorded."""
        return next((names for kind, names in self._known if kind == (prefix, read)), read)

    def learn(self, names: Iterable[str], read: frozenset[str], prefix: str = "") -> None:
        """From here on these members bring no news."""
        for name in names:
            known = self.known(read, prefix)
            if name not in known and len(known) < MOST and len(name) <= LONGEST:
                self._known = _with(self._known, (prefix, read), known, name)

    def note(self, members: Any, read: frozenset[str], prefix: str = "", apart: AbstractSet[str] = frozenset()) -> None:
        """Record those of one object's members; what is no object has none. `prefix`: where it stands.

        `apart`: members that somebody else takes note of.
        """
        if not isinstance(members, Mapping):
            return
        for name in members.keys() - self.known(read, prefix) - apart:
            if says(members[name]):
                self.ledger.record(self.stage, f"{prefix}{name[:LONGEST]}", "dropped", self.reason)
                self.learn([name], read, prefix)


def brings(members: Mapping[str, Any], known: AbstractSet[str]) -> bool:
    """Whether an object has a member, other than those, that says something."""
    return not members.keys() <= known and any(members[name] for name in members.keys() - known)


def says(value: Any) -> bool:
    """Whether a value says anything: no null, no zero, nothing empty or made of such."""
    if isinstance(value, dict):
        return any(map(says, value.values()))
    return any(map(says, value)) if isinstance(value, list) else bool(value)


@lru_cache(maxsize=512)
def _with(known: Known, kind: tuple[str, frozenset[str]], names: frozenset[str], name: str) -> Known:
    return (*(pair for pair in known if pair[0] != kind), (kind, names | {name}))
