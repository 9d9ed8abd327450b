"""stages.scrub.gate: a call in reasoning is one only if the model says nothing more."""

from typing import Any

import pytest

from pipeline.route import AnswerOptions
from stages.scrub.gate import Fate, Gate, Progress
from stages.scrub.grammar import Call
from stages.scrub.scanner import Kind, Piece
from tests.scrubbing import TOOLS

CALL = Piece(Kind.CALLS, "<call>", Call("f", "{}"), inside=True)
THOUGHT, TAG = Piece(Kind.THOUGHT, "Well."), Piece(Kind.TAG, "<think>")
TEXT, BLANK = Piece(Kind.TEXT, "Hi"), Piece(Kind.TEXT, " \n")


def gate(*before: Piece, **asked: Any) -> Gate:
    """A gate behind pieces that have left."""
    made = Gate(AnswerOptions(**{"recover": "prompt", **asked}), TOOLS)
    for piece in before:
        made.told(piece)
        made.passed(len(piece.raw))
    return made


def fates(made: Gate, piece: Piece = CALL) -> list[Fate]:
    """What becomes of a piece, at each stage of the turn."""
    found = []
    for progress in Progress:
        made.progress = progress
        found.append(made.fate(piece, behind_markup=False))
    made.progress = Progress.OPEN
    return found


WEIGHED, MADE, SHOWN = [Fate.UNDECIDED, Fate.CALL, Fate.TEXT], [Fate.CALL] * 3, [Fate.TEXT] * 3


@pytest.mark.parametrize(
    "before",
    [(), (TAG,), (THOUGHT,), (TEXT, TAG), (BLANK, TAG), (TEXT, TEXT, TAG, THOUGHT), (TAG, THOUGHT, THOUGHT, TAG)],
)
def test_a_call_that_is_weighed_is_one_unless_an_answer_comes_behind_it(before: tuple[Piece, ...]) -> None:
    for behind in ((), (CALL,), (THOUGHT,), (TAG, BLANK), (THOUGHT, CALL, TAG)):
        made = gate(*before)
        for piece in (CALL, *behind):
            made.told(piece)
        assert fates(made) == WEIGHED
        made.told(TEXT)
        made.told(TAG)
        assert fates(made) == SHOWN


def test_so_it_is_unless_a_call_in_the_upstreams_form_does() -> None:
    for before in ((), (TEXT, TAG), (TAG, THOUGHT)):
        made = gate(*before)
        made.told(CALL)
        assert not made.called()
        assert fates(made) == SHOWN


def test_an_answer_counts_for_what_stands_before_it() -> None:
    made = gate(TAG)
    for piece in (CALL, TAG, TEXT, TAG, CALL):
        made.told(piece)
    for piece in (CALL, TAG):
        assert fates(made) == SHOWN
        made.passed(len(piece.raw))
    assert fates(made) == SHOWN
    for piece in (TEXT, TAG):
        made.passed(len(piece.raw))
    assert fates(made) == WEIGHED
    made.passed(-len(TEXT.raw + TAG.raw))
    assert fates(made) == SHOWN


def test_only_a_call_in_reasoning_is_weighed() -> None:
    made = gate(TEXT)
    made.told(CALL)
    made.told(TEXT)
    assert fates(made, Piece(Kind.CALLS, "<call>", Call("f", "{}"))) == MADE
    assert fates(made, THOUGHT) == fates(made, TEXT) == SHOWN
    assert fates(made, TAG) == [Fate.HIDDEN] * 3


def test_of_a_native_caller_the_first_call_of_its_own_makes_markup_text() -> None:
    made = gate(recover="native")
    assert fates(made) == WEIGHED
    assert made.called()
    assert not made.called()
    assert fates(made) == SHOWN
    hiding = gate(recover="native", residue="hide")
    assert not hiding.called()
    assert fates(hiding) == [Fate.HIDDEN] * 3
