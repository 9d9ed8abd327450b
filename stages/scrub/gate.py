"""The gate: whether what is written as a call becomes one, for streams, whole answers and answers of either kind."""

from collections.abc import Collection
from enum import Enum, auto

from attrs import define, field

from pipeline.errors import ClientError
from pipeline.route import AnswerOptions, Leftover, Recover
from stages.scrub.grammar import Call, Family
from stages.scrub.scanner import Kind, Piece


class Fate(Enum):
    """What becomes of markup of calls."""

    CALL = auto()  # what it says is recovered, the markup is not shown
    TEXT = auto()  # it is passed on as it was written
    HIDDEN = auto()  # it is not shown, and says nothing
    UNDECIDED = auto()  # it waits


class Progress(Enum):
    """How far the model's turn has come."""

    OPEN = auto()
    OVER = auto()  # or no more can wait
    CUT = auto()


_MEANT = {Progress.OPEN: Fate.UNDECIDED, Progress.OVER: Fate.CALL, Progress.CUT: Fate.TEXT}
"""What becomes of a call that is meant only if the model says nothing more."""


def fate(recover: Recover, residue: Leftover, *, tools: bool, structured: bool, progress: Progress) -> Fate:
    """What becomes of whole markup of calls.

    `tools`: the model may call some. `structured`: it made a call that is no text. A model that is told in its prompt
    to write calls as text always means them; a native caller means them only if it made no call in its own form, and
    that is certain when its turn is over. An answer that was cut is not judged.
    """
    if recover == "off" or not tools:
        return Fate.TEXT
    if recover == "prompt":
        return Fate.CALL
    if structured:
        return Fate.TEXT if residue == "verbatim" else Fate.HIDDEN
    return _MEANT[progress]


def read(families: tuple[Family, ...], *, calls: bool, weak: tuple[str, ...] = ()) -> tuple[Family, ...]:
    """The families that are looked for: those of reasoning, and where `calls` may be hidden or recovered, theirs.

    Raises `ClientError` if one in `weak` is no family of weak markup.
    """
    known = {family.name for family in families if family.weak}
    for name in weak:
        if name not in known:
            raise ClientError(f"there is no weak markup {name!r}; there is: {', '.join(sorted(known)) or 'none'}")
    return tuple(
        family for family in families if (calls or family.reasoning) and (not family.weak or family.name in weak)
    )


@define
class Gate:
    """Tells what becomes of each piece, by what is known of the answer so far."""

    options: AnswerOptions
    tools: Collection[str]
    progress: Progress = field(init=False, default=Progress.OPEN)
    stopped: bool = field(init=False, default=False)
    """Something else ended the answer than the model: nobody knows whether it would have said more."""
    _structured: bool = field(init=False, default=False)
    _from: int = field(init=False, default=0)
    _to: int = field(init=False, default=0)
    """Where in the visible text the pieces that wait begin and end."""
    _answered: int = field(init=False, default=0)
    """Up to where the model is known to have gone on from reasoning: by text, or by a call outside of it."""

    def told(self, piece: Piece) -> None:
        """One more piece is certain."""
        self._to += len(piece.raw)
        if _answers(piece):
            self._answered = self._to

    def passed(self, count: int) -> None:
        """So many characters wait no longer; if it is negative, they wait again."""
        self._from += count

    def called(self) -> bool:
        """The model made a call that is no text; whether markup of calls is text since then."""
        first, self._structured = not self._structured, True
        self._answered = self._to
        return first and self._calls() is Fate.TEXT

    def fate(self, piece: Piece, *, behind_markup: bool) -> Fate:
        """What becomes of the first piece that waits, or of one that goes with it."""
        if piece.kind in (Kind.TEXT, Kind.THOUGHT):
            return Fate.TEXT
        if piece.kind is Kind.TAG:
            return Fate.HIDDEN
        if piece.kind is Kind.STRAY:
            return Fate.HIDDEN if behind_markup or self.options.residue == "hide" else Fate.TEXT
        if piece.kind is Kind.UNFINISHED:
            return Fate.HIDDEN if self.options.unfinished == "hide" else Fate.TEXT
        if piece.weak and isinstance(piece.found, Call) and piece.found.name not in self.tools:
            return Fate.TEXT
        made = self._calls()
        if not piece.inside or made in (Fate.TEXT, Fate.HIDDEN):
            return made
        weighed = self._answered > self._from or self.stopped  # it went on to answer, or would have
        if weighed and (made is Fate.CALL or self.options.residue == "verbatim"):
            return Fate.TEXT
        return _MEANT[self.progress]

    def _calls(self) -> Fate:
        """What becomes of markup of calls, as things stand."""
        return fate(
            self.options.recover,
            self.options.residue,
            tools=bool(self.tools),
            structured=self._structured,
            progress=self.progress,
        )


def _answers(piece: Piece) -> bool:
    """Whether the model goes on from reasoning with it, if only by a call that cannot be read, or that the end cut."""
    if piece.kind is Kind.TEXT:
        return not piece.raw.isspace()
    return not piece.inside and (piece.found is not None or piece.kind is Kind.UNFINISHED)
