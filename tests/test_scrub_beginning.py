"""stages.scrub.early and stages.scrub.opened alone: what is certain of a body, and what a call still lacks."""

import re
import tracemalloc

import pytest
from attrs import evolve

from pipeline.errors import ErrorKind, UpstreamError
from pipeline.events import ToolKind, ToolUseBlock
from pipeline.jsontext import end_of
from pipeline.limits import Limits
from stages.scrub.early import MOST, Beginning
from stages.scrub.grammar import Part, Place
from stages.scrub.opened import OpenCall, rest_of
from tests.scrubbing import TOOLS

PLACE = Place(opener="<tool_call>", line=True, glued=False, shown=False, behind=True, tools=TOOLS, early=True)
ROOMY = evolve(PLACE, limits=Limits(id_chars=10_000))
NAMED = '{"name": "f", "arguments": '


def told(*parts: str, place: Place = PLACE, name: str = "", whole: bool = False) -> list[tuple[str, str] | None]:
    """What a body tells as each part of it comes."""
    beginning = Beginning(place, name, whole=whole)
    steps: list[tuple[str, str] | None] = []
    for part in parts:
        beginning.feed(part)
        made = beginning.take()
        assert made is None or isinstance(made, Part)
        steps.append((made.name, made.arguments) if made else None)
    return steps


def test_a_body_that_comes_in_one_piece_tells_all_that_is_certain() -> None:
    assert told('{"name": "f", "arguments": {"x": "ab", "y": [1, {"z": null}], "w": "c') == [
        ("f", '{"x": "ab", "y": [1, {"z": null}], "w": "c')
    ]


def test_a_body_that_is_the_arguments_is_told_as_it_comes() -> None:
    assert told(' {"x": ', "[1, 2", "], ", '"name": "g', name="f", whole=True) == [
        ("f", "{"),
        ("f", '"x": [1'),
        ("f", ", 2]"),
        ("f", ', "name": "g'),
    ]


def test_arguments_beside_another_name_are_not_told() -> None:
    inside = '{"function": {"arguments": {"x": 1}, "y": 2}, "name": "f"'
    assert told(inside, ', "z": 1}') == [("f", ""), None]
    assert told('{"name": "f", "function": {"arguments": {"x": 1}') == [("f", "")]
    assert told('{"function": {"name": "f", "arguments": {"x": "1') == [("f", '{"x": "1')]


def test_arguments_within_a_body_whose_call_is_named_outside_may_be_one_of_them() -> None:
    assert told('{"arguments": {"x": 1', ', "y": 2}', name="f") == [("f", ""), None]


def test_text_behind_the_arguments_is_none_of_them() -> None:
    assert told(NAMED + '{"x": 1}', ', "more": "text', '"}') == [("f", '{"x": 1}'), None, None]


def test_an_array_and_an_object_of_nothing_are_told() -> None:
    assert told(NAMED + '{"x": [', "], ", '"y": {', "}") == [
        ("f", '{"x": ['),
        ("f", "]"),
        ("f", ', "y": {'),
        ("f", "}"),
    ]


@pytest.mark.parametrize("loose", ["[1, ]", "[, 1]", "[1 2]", "[1; 2]"])
def test_an_array_that_is_not_strict_ends_the_telling(loose: str) -> None:
    first, last = told(NAMED + f'{{"x": {loose}', ', "y": 1')
    assert first is not None
    assert len(first[1]) <= len('{"x": ' + loose)
    assert last is None


@pytest.mark.parametrize("loose", ['{"a": 1, }', '{, "a": 1}', '{"a": 1 "b": 2}', '{"a" 1}', '{"a": 1; "b": 2}'])
def test_an_object_that_is_not_strict_ends_the_telling(loose: str) -> None:
    first, last = told(NAMED + f'{{"x": {loose}', ', "y": 1')
    assert first is not None
    assert len(first[1]) < len('{"x": ' + loose)
    assert last is None


@pytest.mark.parametrize("split", [1, 400, MOST])
def test_a_name_is_no_longer_than_what_may_wait(split: int) -> None:
    for size, opens in ((MOST, True), (MOST + 1, False), (MOST + 500, False)):
        name = "f" * size
        body = f'{{"name": "{name}"'
        steps = told(body[:split], body[split:], ", ", place=ROOMY)
        assert ((name, "") in steps) == opens
        assert (steps == [None] * 3) != opens


def test_what_waits_is_counted_from_where_the_text_is_certain() -> None:
    long = '{"x": "' + "a" * 2 * MOST + '"'
    assert told(NAMED + long, ', "y": 1}') == [("f", long), ("f", ', "y": 1}')]
    key = "k" * (MOST - 20)
    assert told(f'{NAMED}{long}, "{key}": 1, ') == [("f", f'{long}, "{key}": 1')]


def test_so_much_may_wait_and_no_more() -> None:
    for size, goes_on in ((MOST, True), (MOST + 1, False)):
        digits = "1" * size
        assert told(NAMED + '{"x": [', digits, ", 2]") == [
            ("f", '{"x": ['),
            None,
            ("f", f"{digits}, 2]") if goes_on else None,
        ]


def test_what_is_too_long_is_not_kept() -> None:
    beginning = Beginning(PLACE)
    beginning.feed('{"')
    tracemalloc.start()
    try:
        for _ in range(1000):
            beginning.feed("k" * 1000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 20 * MOST
    assert beginning.take() is None


def test_a_number_that_is_none_ends_the_telling() -> None:
    assert told(NAMED + '{"x": ' + "1" * 400 + ".5, ", '"y": 1') == [("f", '{"x": '.rstrip()[:1]), None]
    assert told(NAMED + '{"x": 1e5, ', '"y": 1.5, ') == [("f", '{"x": 1e5'), ("f", ', "y": 1.5')]


def test_a_call_that_is_broken_says_which_and_why() -> None:
    error = OpenCall(ToolUseBlock("id", "f"), 3).broken()
    assert isinstance(error, UpstreamError)
    assert str(error) == "the arguments of the call of 'f' are no JSON object"
    assert (error.kind, error.code) == (ErrorKind.INVALID_TOOL_ARGUMENTS, "invalid_tool_arguments")
    assert ToolUseBlock("id", "f").kind is ToolKind.FUNCTION


@pytest.mark.parametrize(
    ("written", "whole", "rest"),
    [
        ('{"x":1,"y":"a', '{"y":"ab","x":1}', 'b"}'),
        ('{"x":1,"y":{"z":[3', '{"y":{"w":0,"z":[3,4]},"x":1}', ', 4], "w": 0}}'),
        ('{ "x" : 1 , "y" : "a', '{"y":"ab","x":1}', 'b"}'),
        ('{"x": [1, 2, 3, 4', '{"x":[1,2,3,4,5]}', ", 5]}"),
        ('{"x": [1, 2, 3, 4]', '{"x":[1,2,3,4],"y":2}', ', "y": 2}'),
        ('{"x": {}', '{"x":{},"y":2}', ', "y": 2}'),
        ('{"x": [', '{"x":5}', None),
        ('{"x": {', '{"x":5}', None),
        ('{"x": [', '{"x":"ab"}', None),
        ('{"x": {"z": 1', '{"x":{"y":1}}', None),
        ('{"z": "a', '{"x":{"y":1}}', None),
        ('{"x": [1, 2', '{"x":[1]}', None),
    ],
)
def test_the_rest_of_arguments_that_are_written_otherwise(written: str, whole: str, rest: str | None) -> None:
    assert rest_of(written, whole) == rest


def test_where_nothing_matches_it_ends_where_it_begins() -> None:
    digits = re.compile("[0-9]+")
    assert end_of(digits, "ab12c", 2) == 4
    assert end_of(digits, "ab12c", 1) == 1
