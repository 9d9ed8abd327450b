"""stages.scrub.json_body: where a body ends that is not as it should be, and what stands behind one."""

import re
from functools import partial
from typing import Any

import pytest

from stages.scrub.early import Beginning
from stages.scrub.fence import FAR, Fence
from stages.scrub.grammar import Openings, Part, Place, Source
from stages.scrub.json_body import Behind, Body, body, end
from tests.scrubbing import at_every_size

CLOSERS = ("</x>",)
OPENINGS = Openings(("<o",), re.compile("<o!"))


def read(text: str, closers: tuple[str, ...] = CLOSERS) -> Any:
    """The body that a text begins with, and what stands behind it."""
    return at_every_size(partial(body, closers=closers, depth=9, openings=OPENINGS), text)


def behind(text: str, **asked: Any) -> Any:
    """What stands behind a body, and what stands behind that."""
    return at_every_size(partial(end, closers=CLOSERS, openings=OPENINGS, several=True, **asked), text)


def test_a_bracket_that_closes_what_is_open_begins_no_closer() -> None:
    assert read('{"a": [[1]]} b', ("]]",)) == (Body('{"a": [[1]]}', True), " b")


@pytest.mark.parametrize("inside", ["{}", "[]", '"}"'])
def test_what_a_closer_begins_with_hides_nothing_behind_it(inside: str) -> None:
    whole = f'{{"a": #{inside}}}'
    assert read(f"{whole} b", ("#x",)) == (Body(whole, True), " b")


def test_behind_a_string_that_is_none_other_markup_ends_the_body() -> None:
    assert read('{"a" x <o! b</x>') == (Body('{"a" x ', False, True), "<o! b</x>")
    assert read('{"a": "<o!" x</x> b') == (Body('{"a": "<o!" x', False), "</x> b")


def test_of_a_body_that_was_told_nothing_is_left_where_it_cannot_be_mended() -> None:
    early = Beginning(Place(opener="<x>", line=True, glued=False, shown=False, behind=True, early=True))
    source = Source('{"name": "f", "arguments": {"x": 1] }</x> b')
    reading = body(source, CLOSERS, 9, early)
    assert next(reading) == Part("f", "{")
    with pytest.raises(StopIteration) as ended:
        next(reading)
    assert ended.value.value == Body("", False)


@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        (" /* */ </x>b", Behind("</x>"), "b"),
        (" /* a */ </x>b", Behind("</x>", said=True), "b"),
        (" /* a */ /* */ </x>b", Behind("</x>", said=True), "b"),
        ('{"a": 1}', Behind("{"), '{"a": 1}'),
        ("{a: 1}", Behind("{"), "{a: 1}"),
        ("{_a: 1}", Behind("{"), "{_a: 1}"),
        ("{_a b}</x>c", Behind("</x>", said=True), "c"),
        ("{1}</x>b", Behind("</x>", said=True), "b"),
        (f"{{{'a' * 64}: 1}}", Behind("{"), f"{{{'a' * 64}: 1}}"),
        (f"{{{'a' * 65}: 1}}", Behind(), f"{{{'a' * 65}: 1}}"),
        ("{a:", Behind(), "{a:"),
        ("{a: t", Behind(), "{a: t"),
    ],
)
def test_another_body_is_behind_one_only_if_it_begins_as_one(text: str, found: Behind, left: str) -> None:
    assert behind(text) == (found, left)


@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        ('{"a": 1}</x>', Behind("{", said=True, apart=True), '{"a": 1}</x>'),
        ("</x>b", Behind("</x>", said=True), "b"),
        ("b", Behind(said=True), "\nb"),
    ],
)
def test_words_stand_apart_from_the_body_that_follows_the_fence_round_them(text: str, found: Behind, left: str) -> None:
    words = "a " * (FAR // 4)
    assert behind(f"{words}\n```\n{text}", around=Fence("```")) == (found, left)
