"""The ladder: what becomes of each member of a request, one row a member, first match wins.

Unknown to us: forwarded untouched. Understood and accepted: as it is. Another spelling: translated. It cannot be
honoured and the answer is the same without it: dropped and recorded. It cannot be honoured and the answer would be
another: refused, naming the member. Where that is doubtful a row has two rules, and the route decides.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypedDict, TypeVar

from attrs import define, field, frozen

from pipeline.errors import ClientError, ErrorKind
from pipeline.ledger import Ledger
from pipeline.members import Members, join

Word = TypeVar("Word")


class Rule(StrEnum):
    """A step of the ladder."""

    ACCEPT = "as it is"
    TRANSLATE = "translated"
    DEGRADE = "degraded"
    DROP = "dropped"
    REFUSE = "refused"


@frozen
class Row:
    """What becomes of one member.

    `to` is what it becomes, `reason` why it is not kept as it is, `strict` the rule of a strict route where it differs.
    """

    member: str
    rule: Rule
    to: str = ""
    reason: str = ""
    strict: Rule | None = None
    kind: ErrorKind = ErrorKind.INVALID_REQUEST
    code: str = ""

    def under(self, strict: bool) -> Rule:
        """The rule of a route."""
        return self.strict if strict and self.strict is not None else self.rule


@frozen
class Loss:
    """A member of the client's own dialect that another cannot say: where it stands, and its row."""

    where: str
    row: Row


WITHIN = Row(
    "a member within another, unknown", Rule.DROP, reason="its object is written anew, and nobody here knows it"
)
TWICE = Row("a member beside one that says the same", Rule.DROP, reason="the other one counts")
EFFORT = Row("an effort of a word unknown", Rule.DROP, reason="only this dialect's provider knows what it asks for")
"""The rows that dialects have alike for reading."""


def table(*rows: Row) -> Mapping[str, Row]:
    """Rows by member.

    Raises `ValueError` if a member has two.
    """
    by_member = {row.member: row for row in rows}
    if len(by_member) != len(rows):
        raise ValueError("a member has two rows")
    return by_member


def top_level(rows: Mapping[str, Row], *rules: Rule) -> tuple[str, ...]:
    """The members of the body itself that have a row with one of these rules."""
    return tuple(name for name, row in rows.items() if row.rule in rules and not set(name) & set(".[ "))


@define
class Ladder:
    """Follows a table for one request: records what is lost, refuses what must not be."""

    stage: str
    rows: Mapping[str, Row]
    ledger: Ledger
    strict: bool = False
    _carried: set[str] = field(init=False, factory=set)
    """The pieces of the request whose unknown members were written, by where they stand."""

    def carry(self, where: str) -> None:
        """Take note that what nobody here knows of a piece went up with it."""
        self._carried.add(where)

    def one_text(self, wheres: Iterable[str]) -> None:
        """Take note that of pieces that were written no more went up than their text."""
        self._carried.difference_update(wheres)

    def leave(self, where: str, unknown: Iterable[str]) -> None:
        """Record what nobody here knows of a piece, if it did not go up and the whole piece is not lost."""
        if where not in self._carried and not any(
            entry.path == where and entry.action == "dropped" for entry in self.ledger
        ):
            for name in unknown:
                self.follow(WITHIN, join(where, name))

    def follow(self, row: Row, where: str) -> Rule:
        """The rule for a member at `where`; what is lost by it is recorded.

        Raises `ClientError` naming the member if it is refused.
        """
        rule = row.under(self.strict)
        if rule is Rule.REFUSE:
            raise ClientError.about(where, row.reason, kind=row.kind, code=row.code)
        if rule in (Rule.DROP, Rule.DEGRADE):
            action = f"{rule} to {row.to}" if rule is Rule.DEGRADE and row.to else rule.value
            self.ledger.record(self.stage, where, action, row.reason)
        return rule

    def lose(self, member: str, where: str) -> Rule:
        """The rule of this table for `member`, as `follow`."""
        return self.follow(self.rows[member], where)

    def settle(self, losses: Iterable[Loss]) -> None:
        """Follow the rows of the client's own dialect."""
        for loss in losses:
            self.follow(loss.row, loss.where)


class Rest(TypedDict):
    """What every piece of a request keeps besides its meaning."""

    where: str
    private: dict[str, Any]
    extras: dict[str, Any]


@define
class Reading:
    """Reads one request by its dialect's table, and collects what other dialects cannot say."""

    rows: Mapping[str, Row]
    losses: list[Loss] = field(init=False, factory=list)

    def loss(self, member: str, where: str) -> Loss:
        """The loss of a member, not collected: for pieces that carry their own."""
        return Loss(where, self.rows[member])

    def lose(self, member: str, where: str) -> None:
        """Collect the loss of a member."""
        self.losses.append(self.loss(member, where))

    def refuse(self, where: str, reason: str) -> None:
        """Collect what only the client's dialect may know: there it goes up as it is, each other refuses it."""
        self.losses.append(Loss(where, Row(where, Rule.REFUSE, reason=reason)))

    def within(self, members: Members | None, *known: str) -> None:
        """Collect what nobody here knows of an object within a piece: another dialect has no such object."""
        if members is not None:
            self.losses.extend(Loss(members.path(name), WITHIN) for name in members.but(*known))

    def excluded(self, members: Members, *names: str) -> None:
        """Collect members beside which another one counts, which excludes them."""
        self.losses.extend(Loss(members.path(name), TWICE) for name in names if members.has(name))

    def first(self, *said: tuple[str, Any]) -> Any:
        """The first value that is there, of members that say the same, by their paths; the others are lost, unless
        they are equal."""
        there = [(where, value) for where, value in said if value not in (None, "")]
        for where, value in there[1:]:
            if value != there[0][1]:
                self.losses.append(Loss(where, TWICE))
        return there[0][1] if there else None

    def effort(self, words: Collection[str], *said: tuple[str, str]) -> str:
        """The first of some efforts that is there; one that is none of the words is lost."""
        found = str(self.first(*said) or "")
        if found and found not in words:
            self.losses.extend(Loss(where, EFFORT) for where, word in said if word == found)
            return ""
        return found

    def word(self, members: Members, name: str, words: Mapping[str, Word]) -> Word | None:
        """What one of some words stands for; None where there is none, or one that nobody here knows."""
        found = members.text(name)
        if found and found not in words:
            self.refuse(members.path(name), f"unknown value, must be one of {', '.join(words)}")
        return words.get(found)

    def rest(self, members: Members, known: Collection[str], own: Mapping[str, str]) -> Rest:
        """The members besides those `known`: those of `own`, by the table's name for each, and those unknown to us."""
        private: dict[str, Any] = {}
        extras: dict[str, Any] = {}
        for name, value in members.value.items():
            if name in known or value is None:
                continue
            if name in own:
                private[name] = value
                self.lose(own[name], members.path(name))
            else:
                extras[name] = value
        return Rest(where=members.where, private=private, extras=extras)
