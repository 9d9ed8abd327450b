"""The gate: whether what is written as a call becomes one, for streams, whole answers and answers of either kind."""

from enum import Enum, auto

from pipeline.errors import ClientError
from pipeline.route import Leftover, Recover
from stages.scrub.grammar import Family


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
    return {Progress.OPEN: Fate.UNDECIDED, Progress.OVER: Fate.CALL, Progress.CUT: Fate.TEXT}[progress]


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
