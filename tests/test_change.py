"""pipeline.change: what became of each part of a whole answer, and what is written into what came."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.change import Change, patched, reparted
from pipeline.events import BlockStart, Event, MessageStop, RefusalDelta, ServerBlock
from pipeline.message import Content, Message, Reasoning, Refusal, Text, ToolUse, disassemble
from tests.canonical import BEGIN, CALL_A, END, REASONING, TEXT, args, start, stop, text, think

NEW = 100
"""The index of a block that nobody sent."""


def block(index: int, *said: Event, of: Any = TEXT) -> list[Event]:
    return [start(index, of), *said, stop(index)]


def change(content: Sequence[Content], *events: list[Event]) -> Change:
    """An answer with that content, of which these blocks are left or new."""
    made = tuple(disassemble(Message("id", "model", tuple(content))))
    return Change(b"", made, [BEGIN, *(event for one in events for event in one), END, MessageStop()])


def call(index: int = NEW) -> list[Event]:
    return block(index, args(index, "{}"), of=CALL_A)


THREE = (Reasoning("why"), Text("a"), Text("b"))
WHOLE = [block(0, think(0, "why"), of=REASONING), block(1, text(1, "a")), block(2, text(2, "b"))]


def test_what_is_as_it_came_is_no_change() -> None:
    same = change(THREE, *WHOLE)
    assert same.places == (0, 1, 2)
    assert not same
    assert change(THREE, *WHOLE[:2])
    assert change(THREE, *WHOLE[:2], block(2, text(2, "c")))
    assert change((Text("a"), Text("a")), block(1, text(1, "a")), block(0, text(0, "a")))


@pytest.mark.parametrize(
    ("events", "places"),
    [
        ([WHOLE[0], block(1, text(1, "A")), call(), WHOLE[2]], (0, 1, None, 2)),  # changed; and one was put in
        ([block(1, think(1, "a"), of=REASONING)], (None,)),  # another kind of block is another block
        ([WHOLE[0], block(NEW, text(NEW, "x")), WHOLE[2]], (0, None, 2)),  # it held no such text
        ([WHOLE[0], block(NEW, text(NEW, " ")), WHOLE[2]], (0, None, 2)),  # blanks are held by all
        ([WHOLE[0], block(NEW, text(NEW, "a ")), WHOLE[2]], (0, 1, 2)),  # the one that was left out
        ([block(NEW, text(NEW, "a")), WHOLE[0], WHOLE[2]], (None, 0, 2)),  # that stood elsewhere
        ([block(NEW, text(NEW, "a")), block(NEW + 1, text(NEW + 1, "a"))], (1, None)),  # once
        ([block(1, text(1, "a"), RefusalDelta(1, "no"))], (1, None)),  # a block may hold two contents
    ],
)
def test_a_content_is_told_by_its_block_or_by_the_text_that_it_was_cut_from(
    events: list[list[Event]], places: tuple[int | None, ...]
) -> None:
    assert change(THREE, *events).places == places


def test_an_answer_of_many_parts_takes_no_longer_than_its_length() -> None:
    many = range(5_000)
    content = [Text(f"{at:05}") for at in many]
    began = time.perf_counter()
    for said in ("none", "00007"):
        one = change(content, *[block(at, text(at, said)) for at in range(len(many), 2 * len(many))])
        assert len([*one.pieces([1 for _ in many])]) == len(many)
        assert len([*one.pieces([0 for _ in many])]) >= len(many)
    assert time.perf_counter() - began < 5


def drawn(change_: Change, counts: Sequence[int]) -> list[Any]:
    """The parts: which of the body's, and how much is left of how much; or what is new."""
    return [
        type(piece.now[0]).__name__ if piece.at is None else (piece.at, len(piece.now), len(piece.was))
        for piece in change_.pieces(counts)
    ]


def test_parts_of_which_nothing_was_read_stay_where_they_were() -> None:
    counts = [0, 1, 0, 2, 0]
    assert drawn(change(THREE, *WHOLE), counts) == [(0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 2, 2), (4, 0, 0)]
    assert drawn(change(THREE, WHOLE[0], call()), counts) == [(0, 0, 0), (1, 1, 1), (2, 0, 0), "ToolUse", (4, 0, 0)]
    assert drawn(change(THREE, call()), counts) == [(0, 0, 0), "ToolUse", (2, 0, 0), (4, 0, 0)]
    assert drawn(change(THREE, WHOLE[0], call(), WHOLE[1]), counts) == [
        (0, 0, 0), (1, 1, 1), "ToolUse", (2, 0, 0), (3, 1, 2), (4, 0, 0),
    ]  # fmt: skip


def test_a_part_stands_where_the_first_that_is_left_of_it_does() -> None:
    assert drawn(change(THREE, WHOLE[0], WHOLE[1], call(), WHOLE[2]), [1, 2]) == [(0, 1, 1), (1, 2, 2), "ToolUse"]
    assert drawn(change(THREE, WHOLE[2], WHOLE[1], WHOLE[0]), [1, 1, 0, 1]) == [
        (2, 0, 0),
        (3, 1, 1),
        (1, 1, 1),
        (0, 1, 1),
    ]


def test_what_was_read_beside_the_parts_is_written_if_it_was_changed() -> None:
    said = (Text("a"), Refusal("no"))
    assert drawn(change(said, block(0, text(0, "b")), block(1, RefusalDelta(1, "no"))), [1]) == [(0, 1, 1)]
    assert drawn(change(said, block(0, text(0, "b")), block(1, RefusalDelta(1, "NO"))), [1]) == [(0, 1, 1), "Refusal"]


def test_a_block_that_came_whole_is_one_content() -> None:
    item = ServerBlock("d", {"x": 1})
    assert change((Text("a"), ToolUse("a", "f", "{}")), [BlockStart(7, item), stop(7)]).places == (None,)


def test_only_what_differs_is_written_into_what_came() -> None:
    came = {"z": 1, "text": "a", "usage": {"in": 1, "odd": 2}, "gone": 3, "other": {"x": 1}}
    was = {"text": "a", "usage": {"in": 1}, "gone": 3, "kept": 4, "other": 1}
    now = {"text": "b", "usage": {"in": 5}, "kept": 4, "new": 6, "other": {"y": 2}}
    assert list(patched(came, was, now).items()) == [
        ("z", 1), ("text", "b"), ("usage", {"in": 5, "odd": 2}), ("other", {"y": 2}), ("new", 6),
    ]  # fmt: skip
    assert patched(came, now, now) == came


@pytest.mark.parametrize(
    ("parts", "said", "joint", "now"),
    [
        (["a", "b", "c"], "abc", "", ["a", "b", "c"]),
        (["a", "b", "c"], "aXc", "", ["a", "X", "c"]),
        (["a", "b", "c"], "ac", "", ["a", None, "c"]),
        (["a", "b", "c"], "X", "", ["X", None, None]),
        (["a", "b", "c"], "", "", [None, None, None]),
        (["a", "b", "c"], "abcX", "", ["a", "b", "cX"]),
        (["", "b", ""], "X", "", ["", "X", ""]),
        (["", ""], "X", "", ["X", ""]),
        ([], "X", "", []),
        (["a", "b"], "a\n\nX", "\n\n", ["a", "X"]),
        (["a", "", "b"], "X\n\nb", "\n\n", ["X", "", "b"]),
        (["a", "a"], "a", "", ["a", None]),
    ],
)
def test_a_text_is_in_its_parts_again(parts: list[str], said: str, joint: str, now: list[str | None]) -> None:
    assert reparted(parts, said, joint) == now


@given(st.lists(st.text("ab", max_size=3), min_size=1), st.text("abX", max_size=6))
def test_parts_say_together_what_the_text_says(parts: list[str], said: str) -> None:
    assert "".join(part or "" for part in reparted(parts, said)) == said
    assert reparted(parts, "".join(parts)) == parts
