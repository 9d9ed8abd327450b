"""Fragments of several calls, and what must never be guessed."""

from typing import Any

import pytest

from pipeline.errors import UpstreamError
from tests.chat_calls import Spoken, called
from tests.support import fragment

# Several calls


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        # told apart by place
        (
            [
                fragment(1, "a", "f", "{"),
                fragment(3, "b", "g", "{"),
                fragment(1, None, None, "}"),
                fragment(3, None, None, "}"),
            ],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        # one place for all, whole calls
        (
            [fragment(0, "a", "f", '{"x":1}'), fragment(0, "b", "f", '{"x":2}')],
            [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')],
        ),
        ([fragment(0, "a", "f", ""), fragment(0, "b", "g", "")], [("a", "f", ""), ("b", "g", "")]),
        ([fragment(0, "a", "f", ""), fragment(0, "b", "f", "{}")], [("a", "f", ""), ("b", "f", "{}")]),
        # one place for all, one by one in pieces, and back to the first by its id
        (
            [fragment(0, "a", "f", "{"), fragment(0, "b", "g", "{}"), fragment(0, "a", "f", "}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        # one place, no id
        ([fragment(0, None, "f", "{}"), fragment(0, None, "g", "{}")], [("*", "f", "{}"), ("*", "g", "{}")]),
        # the first one has no id, the second has
        ([fragment(0, None, "f", "{}"), fragment(0, "b", "f", "{}")], [("*", "f", "{}"), ("b", "f", "{}")]),
        # an id that comes late, with the name again; another name with an id
        ([fragment(0, None, "f", ""), fragment(0, "b", "f", "{}")], [("*", "f", "{}")]),
        ([fragment(0, None, "f", "{"), fragment(0, "b", "f", "}")], [("*", "f", "{}")]),
        ([fragment(0, None, "f", ""), fragment(0, "b", "g", "{}")], [("*", "f", ""), ("b", "g", "{}")]),
        # no place
        ([fragment(None, "a", "f", "{}"), fragment(None, "b", "f", "{}")], [("a", "f", "{}"), ("b", "f", "{}")]),
        (
            [fragment(None, "a", "f", "{"), fragment(None, "b", "g", "{}"), fragment(None, "a", None, "}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        # no place, one id for two names
        ([fragment(None, "a", "f", "{}"), fragment(None, "a", "g", "{}")], [("a", "f", "{}"), ("a_2", "g", "{}")]),
        # no place and no id
        ([fragment(None, None, "f", "{}"), fragment(None, None, "f", "{}")], [("*", "f", "{}"), ("*", "f", "{}")]),
        ([fragment(None, None, "f", '{"x"'), fragment(None, None, "f", ":1}")], [("*", "f", '{"x":1}')]),
        ([fragment(None, None, "f"), fragment(None, None, "f")], [("*", "f", ""), ("*", "f", "")]),
        # no place, and an id that changes
        ([fragment(None, "a", "f", "{"), fragment(None, "b", None, "}")], [("a", "f", "{}")]),
        # a place only at first
        ([fragment(0, "a", "f", "{"), fragment(None, None, None, "}")], [("a", "f", "{}")]),
    ],
)
def test_calls_are_told_apart(entries: list[dict[str, Any]], wanted: list[tuple[str, str, str]]) -> None:
    minted = [("*" if id_.startswith("call_") else id_, name, text) for id_, name, text in called(*entries)]
    assert minted == wanted


def test_text_without_any_name_belongs_to_the_only_call_that_is_not_whole() -> None:
    entries = [fragment(None, "a", "f", '{"x":1}'), fragment(None, "b", "g", '{"y":')]
    assert called(*entries, fragment(arguments="2}")) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
    assert called(*entries, fragment(arguments="2}"), fragment(arguments=" "))[1] == ("b", "g", '{"y":2} ')


def test_text_without_any_name_goes_back_to_a_call_that_is_not_whole() -> None:
    entries = [fragment(None, "a", "f", '{"x":'), fragment(None, "b", "g", '{"y":2}')]
    assert called(*entries, fragment(arguments="1}")) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_a_call_that_came_in_pieces_is_whole_too() -> None:
    entries = [fragment(None, "a", "f", '{"x"'), fragment(None, "a", None, ":1}"), fragment(None, "b", "g", '{"y":')]
    assert called(*entries, fragment(arguments="2}")) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_a_call_that_goes_on_the_quick_way_is_whole_too() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "a", "f", '{"x"'))
    call = spoken.calls.going_on([fragment(0, arguments=":1}")])
    assert call is not None
    spoken.out.append(call.more(":1}"))
    spoken.say(fragment(1, "b", "g", '{"y"'), fragment(arguments=":2}"))
    assert spoken.whole() == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_the_input_of_a_freeform_call_is_not_kept() -> None:
    spoken = Spoken()
    spoken.say({"index": 0, "id": "a", "custom": {"name": "f", "input": "x" * 100}})
    (call,) = spoken.calls._order
    spoken.out.append(call.more("y"))
    assert call.said == []
    assert spoken.whole() == [("a", "f", "x" * 100 + "y")]


@pytest.mark.parametrize(
    "rest",
    [
        [fragment(arguments="aaaa}")],
        [fragment(0, name="f", arguments='{"a":"}')],
        [fragment(None, "a", "f", '{"a":"}')],
    ],
)
def test_fragments_are_told_apart_in_linear_time(rest: list[Any]) -> None:
    place = rest[0].get("index")
    spoken = Spoken()
    spoken.say(fragment(place, "a", "f", '{"x":"'))
    for _ in range(20_000):
        spoken.say(*rest)
    assert len(spoken.whole()) == 1


def test_many_calls_of_one_id_are_told_apart_in_linear_time() -> None:
    spoken = Spoken()
    for at in range(5_000):
        spoken.say(fragment(None, "a", "f", f'{{"x":{at}}}'))
    assert len(spoken.whole()) == 5_000


def test_an_id_alone_begins_a_call() -> None:
    assert called(fragment(None, "a"), fragment(None, "a", "f", "{}")) == [("a", "f", "{}")]


def test_text_that_could_belong_to_several_calls_fails() -> None:
    spoken = Spoken()
    spoken.say(fragment(None, "a", "f", "{"), fragment(None, "b", "g", "{"))
    with pytest.raises(UpstreamError, match="several calls") as raised:
        spoken.say(fragment(arguments="}"))
    assert raised.value.code == "ambiguous_tool_call"


def test_text_before_any_call_waits_for_a_name() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(arguments="{")) == []
    assert spoken.say(fragment(arguments="}")) == []
    assert spoken.calls.held == 2


# What real servers leave out, and what must never be guessed


@pytest.mark.parametrize("place", [{}, {"index": None}])
def test_an_id_finds_its_call_where_the_place_is_missing(place: dict[str, Any]) -> None:
    a = {**place, "id": "A", "function": {"arguments": '{"a":1}'}}
    b = {**place, "id": "B", "function": {"arguments": '{"b":2}'}}
    openings = (fragment(0, "A", "f", ""), fragment(1, "B", "g", ""))
    assert called(*openings, a, b) == [("A", "f", '{"a":1}'), ("B", "g", '{"b":2}')]
    assert called(*openings, b, a) == [("A", "f", '{"a":1}'), ("B", "g", '{"b":2}')]


def test_a_call_takes_the_place_that_it_lacked() -> None:
    assert called(fragment(None, "A", "f", '{"a":'), fragment(0, "A", None, "1"), fragment(0, None, None, "}")) == [
        ("A", "f", '{"a":1}')
    ]


def test_an_unknown_id_alone_never_picks_one_of_several_calls() -> None:
    with pytest.raises(UpstreamError, match="while several calls were unfinished"):
        called(fragment(0, "A", "f", ""), fragment(1, "B", "g", ""), {"id": "C", "function": {"arguments": "{}"}})


def test_text_without_any_name_belongs_to_the_call_with_a_place_that_is_not_whole() -> None:
    bare = {"index": None, "id": ""}
    assert called(
        fragment(0, "A", "f", ""),
        {**bare, "function": {"arguments": '{"a":1}'}},
        fragment(1, "B", "g", ""),
        {**bare, "function": {"arguments": '{"b":2}'}},
    ) == [("A", "f", '{"a":1}'), ("B", "g", '{"b":2}')]


def test_a_new_id_on_a_used_place_behind_whole_arguments_is_another_call() -> None:
    assert called(
        fragment(0, "A", "f", ""),
        fragment(0, None, None, '{"a":1}'),
        fragment(0, "B", "f", ""),
        fragment(0, None, None, '{"a":2}'),
    ) == [("A", "f", '{"a":1}'), ("B", "f", '{"a":2}')]


def test_two_whole_calls_on_one_place_without_ids_are_two() -> None:
    calls = called(fragment(0, None, "f", '{"a":1}'), fragment(0, None, "f", '{"a":2}'))
    assert [(name, text) for _, name, text in calls] == [("f", '{"a":1}'), ("f", '{"a":2}')]


def test_a_call_that_began_without_a_place_goes_on_under_the_first_one() -> None:
    assert called(fragment(None, "a", "f", '{"x":'), fragment(0, arguments="1}")) == [("a", "f", '{"x":1}')]
    parts = [fragment(None, "a", "f", ""), fragment(0, arguments="{"), fragment(0, arguments="}")]
    assert called(*parts, fragment(1, "b", "g", "{}")) == [("a", "f", "{}"), ("b", "g", "{}")]


@pytest.mark.parametrize("first", ["{}", "", '{"y":2}'])
def test_text_under_another_place_is_another_calls_whose_name_is_to_come(first: str) -> None:
    entries = [fragment(None, "a", "f", first), fragment(1, arguments='{"x":1}'), fragment(1, "b", "g")]
    assert called(*entries) == [("a", "f", first), ("b", "g", '{"x":1}')]


def test_text_under_the_first_place_behind_a_whole_call_is_another_calls() -> None:
    entries = [fragment(None, "a", "f", '{"y":2}'), fragment(0, arguments='{"x":1}'), fragment(0, "b", "g")]
    assert called(*entries) == [("a", "f", '{"y":2}'), ("b", "g", '{"x":1}')]


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_kept_of_a_call_that_has_ended_is_bounded(ended: bool) -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "a", "f", '{"x":1}'))
    (call,) = spoken.calls._order
    if ended:
        spoken.calls.end(spoken.out, complete=True)
    for _ in range(300):
        spoken.out.append(call.more("z" * 1000))
    assert sum(map(len, call.said)) < 100_000


def test_an_id_that_changes_within_a_call_is_recorded() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "ca", "f", "{"), fragment(0, "ll", None, "}"))
    assert spoken.whole() == [("ca", "f", "{}")]
    assert [(entry.path, entry.action) for entry in spoken.ledger] == [("tool_calls[].id", "ignored")]
