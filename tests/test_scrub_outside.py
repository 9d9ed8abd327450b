"""stages.scrub.outside: what the tag of a call says besides its body."""

import pytest

from stages.scrub.calls import LEFT, NO_OBJECT
from stages.scrub.grammar import Call, Lost
from stages.scrub.outside import Outside

LOOSE = "{x: 1}"


def beside(attributes: dict[str, str], *calls: Call | Lost) -> list[Call | Lost]:
    """What comes of a body's calls."""
    return Outside(attributes).beside([*calls], 9, ("cu",))


def test_where_a_body_makes_no_call_the_tag_may_be_one_with_arguments_that_are_mended() -> None:
    mended = Call("f", '{"x":1}', mended=True, left=True)
    assert beside({"name": "f", "arguments": LOOSE}, NO_OBJECT) == [mended]
    assert beside({"name": "f", "arguments": "x"}, NO_OBJECT) == [NO_OBJECT, LEFT]
    assert beside({"arguments": LOOSE}, NO_OBJECT) == [NO_OBJECT, LEFT]


@pytest.mark.parametrize(
    ("arguments", "call", "whole"),
    [
        (LOOSE, Call("f", "{}"), Call("f", '{"x":1}', mended=True)),
        ('{"x": 1}', Call("f", "{}"), Call("f", '{"x": 1}')),
        ('{"x": 1}', Call("f", "{}", mended=True), Call("f", '{"x": 1}', mended=True)),
        ("ls", Call("cu", "{}"), Call("cu", '{"input":"ls"}')),
        ("ls", Call("f", "{}"), Call("f", "{}", left=True)),
    ],
)
def test_a_body_without_arguments_has_those_of_its_tag(arguments: str, call: Call, whole: Call) -> None:
    assert beside({"arguments": arguments}, call) == [whole]
