"""stages.scrub.calls: what the objects of a body say, each part of them alone."""

import pytest

from stages.scrub.calls import BROKEN, LEFT, NO_ARGUMENTS, call_of, calls_in, framed
from stages.scrub.fence import Fence
from stages.scrub.grammar import Call, Lost
from stages.scrub.json_body import Body


def called(text: str, *, tool: str = "", whole: bool = True, cut: bool = False) -> list[Call | Lost]:
    """The calls of a body."""
    return [*calls_in(Body(text, whole, cut), 200, tool, freeform=("cu",))]


def test_arguments_of_a_freeform_tool_that_is_named_outside_are_its_input() -> None:
    assert called('{"input": "ls"}', tool="cu") == [Call("cu", '{"input": "ls"}')]
    assert called('{"cmd": "ls"}', tool="cu") == [Call("cu", '{"input":"ls"}', left=True)]
    assert called("{'cmd': 'ls'}", tool="cu") == [Call("cu", '{"input":"ls"}', mended=True, left=True)]


def test_of_the_calls_in_a_fence_only_the_first_says_what_is_left_of_its_line() -> None:
    fence = Fence("```", left=True)
    assert framed([LEFT, Call("f", "{}"), Call("g", "{}")], fence) == [
        LEFT,
        Call("f", "{}", left=True),
        Call("g", "{}"),
    ]


def test_an_array_is_no_arguments_wherever_it_begins() -> None:
    assert call_of("f", Body(' [{"x": 1}]', True), 200) == NO_ARGUMENTS


def test_of_mended_arguments_a_repeated_member_is_a_loss() -> None:
    assert call_of("f", Body("{'x': 1, 'x': 2}", True), 200) == Call("f", '{"x":2}', mended=True, left=True)
    assert call_of("f", Body("{'x': 1, 'y': 2}", True), 200) == Call("f", '{"x":1,"y":2}', mended=True)


def test_arguments_beside_a_function_that_has_its_own_are_a_loss() -> None:
    own = '{"function": {"name": "f", "arguments": {"x": 1}}'
    assert called(f"{own}}}") == [Call("f", '{"x": 1}')]
    assert called(f'{own}, "y": 2}}') == [Call("f", '{"x": 1}', left=True)]


@pytest.mark.parametrize("name", ["", "XXXX", "other"])
def test_a_member_of_another_name_is_no_arguments(name: str) -> None:
    assert called(f'{{"name": "f", "{name}": {{"x": 1}}}}') == [Call("f", "{}", left=True)]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"name": "f", "arguments": {"x": 1}', Call("f", '{"x":1}', mended=True)),
        ('{"name": "f", "arguments": {"x": 1} \n', Call("f", '{"x":1}', mended=True)),
        (' {"name": "f", "arguments": {"x": 1}', Call("f", '{"x":1}', mended=True)),
        ('{"arguments": {"x": 1}, "name": "f"', Call("f", '{"x":1}', mended=True)),
        ('{"name": "f"', BROKEN),
        (' {"name": "f"', BROKEN),
        ('{"name": "f", "arguments": null', BROKEN),
        ('{"arguments": null, "name": "f"', BROKEN),
        ('{"name": "f", "arguments": {"x": 1}, "id": 7', BROKEN),
        ('[{"name": "f"}', Call("f", "{}", mended=True)),
        ('[{"name": "f", "id": 7}', Call("f", "{}", mended=True)),
    ],
)
def test_where_other_markup_begins_a_call_lacks_its_last_bracket_at_most(text: str, call: Call | Lost) -> None:
    assert called(text, whole=False, cut=True) == [call]


def test_an_input_in_a_string_is_read_as_json_has_blanks() -> None:
    said = r'{"name": "cu", "arguments": "%s{\"input\": \"x\"}"}'
    assert called(said % "  ") == [Call("cu", '{"input":"x"}')]
    assert called(said % "\u00a0") == [Call("cu", '{"input":"\u00a0{\\"input\\": \\"x\\"}"}')]
