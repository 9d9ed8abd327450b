"""stages.dialects.responses.output: which item an event is about."""

from typing import Any

import pytest

from pipeline.errors import LimitExceeded
from pipeline.events import ArgumentsDelta, BlockStart, Event, ReasoningDelta, TextDelta
from pipeline.limits import Limits
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.dialects.responses.output import LOOKED_AT
from tests.responses_stream import (
    Json,
    added,
    arguments,
    call,
    created,
    done,
    events,
    frame,
    message,
    reasoning,
    summary,
    terminal,
    text,
)

ONE, TWO = '{"x":1}', '{"y":2}'


def second(whole: Any = "") -> Json:
    return call(whole, name="g", call_id="b", id="fc2")


def said(*items: Any) -> list[str]:
    """The text of each block, in the order in which they open."""
    blocks: dict[int, str] = {}
    made: list[Event] = events(created(), *items)
    for one in made:
        if isinstance(one, BlockStart):
            blocks[one.index] = ""
        elif isinstance(one, TextDelta | ReasoningDelta | ArgumentsDelta):
            blocks[one.index] += one.text
    return list(blocks.values())


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(
            [
                added(call()),
                added(second(), 1),
                arguments(ONE),
                arguments(TWO, 1, "fc2"),
                done(second(TWO), 1),
                done(call(ONE)),
            ],
            id="place and id",
        ),
        pytest.param(
            [
                added(call(), None),
                added(second(), None),
                arguments(ONE, None),
                arguments(TWO, None, "fc2"),
                done(second(TWO), None),
                done(call(ONE), None),
            ],
            id="id alone",
        ),
        pytest.param(
            [
                added(call(id="")),
                added(second() | {"id": ""}, 1),
                arguments(ONE, id=None),
                arguments(TWO, 1, None),
                done(second(TWO) | {"id": ""}, 1),
                done(call(ONE, id="")),
            ],
            id="place alone",
        ),
        pytest.param(
            [
                added(call()),
                added(second(), 1),
                arguments(ONE, id="z1"),
                arguments(TWO, 1, "z2"),
                done(second(TWO) | {"id": "z3"}, 1),
                done(call(ONE, id="z4")),
            ],
            id="ids that change with every event",
        ),
        pytest.param(
            [
                added(call()),
                added(second(), 0),
                arguments(ONE),
                arguments(TWO, 0, "fc2"),
                done(second(TWO), 0),
                done(call(ONE)),
            ],
            id="one place for all",
        ),
        pytest.param(
            [
                added(call()),
                added(second(), 1),
                arguments(ONE),
                arguments(TWO, 0, "fc2"),
                done(second(TWO), 0),
                done(call(ONE)),
            ],
            id="a wrong place with the right id",
        ),
        pytest.param(
            [
                added(call(), None),
                added(second(), None),
                arguments(ONE, 0),
                arguments(TWO, 1, "fc2"),
                done(second(TWO), 1),
                done(call(ONE), 0),
            ],
            id="announced without a place",
        ),
        pytest.param(
            [
                added(call(id="x")),
                added(second() | {"id": "x"}, 1),
                arguments(ONE, id="x"),
                arguments(TWO, 1, "x"),
                done(second(TWO) | {"id": "x"}, 1),
                done(call(ONE, id="x")),
            ],
            id="one id for all",
        ),
        pytest.param(
            [
                added(call(id=""), None),
                arguments(ONE, None, None),
                done(call(ONE, id=""), None),
                added(second() | {"id": ""}, None),
                arguments(TWO, None, None),
                done(second(TWO) | {"id": ""}, None),
            ],
            id="neither",
        ),
        pytest.param(
            [
                added(call(id="")),
                arguments(ONE, id=None),
                done(call(ONE, id="")),
                added(second() | {"id": ""}),
                arguments(TWO, id=None),
                done(second(TWO) | {"id": ""}),
            ],
            id="one place and no ids",
        ),
        pytest.param([done(call(ONE)), done(second(TWO))], id="whole, at one place"),
    ],
)
@pytest.mark.parametrize("output", [[], [call(ONE), second(TWO)]])
def test_items_are_told_apart(items: list[Json], output: list[Json]) -> None:
    assert said(*items, terminal(output=output)) == [ONE, TWO]


def test_a_place_is_one_among_the_items_of_its_class() -> None:
    assert said(summary("A"), text("b"), added(call()), arguments(ONE), terminal()) == ["A", "b", ONE]


def test_a_second_announcement_of_the_same_item_is_no_other() -> None:
    assert said(added(call()), added(call()), arguments(ONE), terminal()) == [ONE]


def test_an_odd_place_is_none() -> None:
    odd = arguments(ONE, id=None) | {"output_index": True}
    assert said(added(call()), odd, terminal()) == [ONE]


def test_a_delta_that_names_nothing_is_of_the_last_item_of_its_class() -> None:
    assert said(text("a"), summary("R", 1), text("b", None, None, None), terminal()) == ["ab", "R"]
    assert said(text("a", None, None, None), terminal()) == ["a"]


@pytest.mark.parametrize(
    ("streamed", "output", "blocks"),
    [
        pytest.param([text("a")], [message("a", id="z")], ["a"], id="same place, other id"),
        pytest.param(
            [summary("R"), text("a", 1), text("b", 2, id="m2")],
            [message("a", id="y"), message("b", id="z")],
            ["R", "a", "b"],
            id="the output leaves the reasoning out",
        ),
        pytest.param([text("a", 3)], [reasoning("R"), message("a", id="z")], ["a", "R"], id="the output has more"),
        pytest.param([text("a", 1)], [3, None, message("a", id="z")], ["a"], id="odd items"),
        pytest.param(
            [text("a", id="x")], [message("ab", id="z"), message("c")], ["ab", "c"], id="an id for the second"
        ),
        pytest.param([text("x", 0)], [message("y", id="z")], ["x"], id="nothing but the place fits"),
        pytest.param([text("x", 1)], [message("y", id="z")], ["x", "y"], id="nothing fits"),
    ],
)
def test_the_output_is_matched_with_what_was_streamed(
    streamed: list[Json], output: list[Any], blocks: list[str]
) -> None:
    assert said(*streamed, terminal(output=output)) == blocks


def test_an_item_of_the_output_is_no_two_of_those_streamed() -> None:
    twice = [message("a", id="y"), message("a", id="z")]
    assert said(text("a"), terminal(output=twice)) == ["a", "a"]


def test_two_items_of_the_output_with_one_id_are_two() -> None:
    assert said(text("a"), terminal(output=[message("a"), message("b")])) == ["a", "b"]


def test_what_is_whole_once_stays_when_the_stream_fails() -> None:
    assert said(text("a"), summary("R", 1), terminal("failed")) == ["a", "R"]
    assert said(text("a"), arguments(ONE, 1), terminal("failed")) == ["a"]


def test_only_so_many_items_are_looked_at_for_one_that_fits() -> None:
    many = [text("x", place, id=f"m{place}") for place in range(1, LOOKED_AT + 1)]
    near, far = message("y", id="z"), [*many, text("y", LOOKED_AT + 1, id="my")]
    assert len(said(*many[1:], text("y", LOOKED_AT + 1, id="my"), terminal(output=[near]))) == LOOKED_AT
    assert len(said(*far, terminal(output=[near]))) == LOOKED_AT + 2


def test_a_message_of_too_many_items_fails() -> None:
    stage = ResponsesNormalizer(limits=Limits(blocks=2))
    with pytest.raises(LimitExceeded, match="more than 2 items"):
        stage.receive([frame(text("a", place, id=f"m{place}")) for place in range(3)])
