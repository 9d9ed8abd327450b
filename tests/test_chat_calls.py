"""Which fragment belongs to which call."""

from typing import Any

import pytest

from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    RedactedReasoningBlock,
    ToolUseBlock,
)
from pipeline.limits import Limits
from stages.dialects.chat.fragments import Fragment
from tests.chat_calls import Spoken, called
from tests.support import fragment

# One call


def test_a_call_begins_with_its_name_and_goes_on_fragment_by_fragment() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, "i", "f", "")) == [BlockStart(0, ToolUseBlock("i", "f"))]
    assert spoken.say(fragment(0, arguments='{"x"')) == [ArgumentsDelta(0, '{"x"')]
    assert spoken.say(fragment(0, arguments=":1}")) == [ArgumentsDelta(0, ":1}")]
    assert len(spoken.calls) == 1
    spoken.calls.end(spoken.out, complete=True)
    assert spoken.out[-1] == BlockStop(0)
    spoken.calls.end(spoken.out, complete=True)
    assert spoken.out.count(BlockStop(0)) == 1


def test_arguments_before_the_name_wait_for_it() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, arguments='{"x":'), fragment(0, "i", arguments="1")) == []
    assert spoken.calls.held == 6
    assert spoken.say(fragment(0, name="f", arguments="}")) == [
        BlockStart(0, ToolUseBlock("i", "f")),
        ArgumentsDelta(0, '{"x":'),
        ArgumentsDelta(0, "1"),
        ArgumentsDelta(0, "}"),
    ]
    assert spoken.calls.held == 0


def test_calls_begin_in_the_order_in_which_their_names_come() -> None:
    assert called(fragment(0, "a", arguments="{}"), fragment(1, "b", "g", "{}"), fragment(0, name="f")) == [
        ("b", "g", "{}"),
        ("a", "f", "{}"),
    ]


def test_a_name_that_never_comes_fails_a_finished_stream() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", arguments="{}"))
    with pytest.raises(UpstreamError, match="without a name") as raised:
        spoken.calls.end(spoken.out, complete=True)
    assert raised.value.code == "nameless_tool_call"


def test_no_call_ends_as_whole_while_arguments_wait_for_a_name_that_never_came() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", "f", ""), fragment(3, arguments='{"x":1}'))
    with pytest.raises(UpstreamError, match="without a name"):
        spoken.calls.end(spoken.out, complete=True)
    assert spoken.out == [BlockStart(0, ToolUseBlock("i", "f"))]


def test_a_name_that_never_comes_is_recorded_where_the_call_was_cut() -> None:
    for by_an_error in (True, False):
        spoken = Spoken()
        spoken.say(fragment(0, "i", arguments="{}"), fragment(1, "j", "g", ""))
        if by_an_error:
            spoken.calls.cut()
        else:
            spoken.calls.end(spoken.out, complete=False)
        assert spoken.calls.held == 0
        assert [(entry.path, entry.action) for entry in spoken.ledger] == [("tool_calls[]", "dropped")]


@pytest.mark.parametrize(
    "rest",
    [
        fragment(0, "i", "f", "{}"),
        fragment(0, "", "", "{}"),
        fragment(0, "null", arguments="{}"),
        fragment(0, "another", arguments="{}"),
        fragment(arguments="{}"),
        fragment("0", arguments="{}"),
        fragment(0.0, arguments="{}"),
        {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}},
        {"index": 0, "function": {"name": " ", "arguments": "{}"}},
    ],
)
def test_it_is_the_same_call(rest: dict[str, Any]) -> None:
    assert called(fragment(0, "i", "f", ""), rest) == [("i", "f", "{}")]


@pytest.mark.parametrize(
    "rest",
    [
        fragment(0, "j", "f", ":1}"),
        fragment(0, None, "f", ":1}"),
        fragment(0, None, "g", ":1}"),
        fragment(0, "i", "g", ":1}"),
    ],
)
def test_text_that_goes_on_with_the_arguments_is_the_same_calls(rest: dict[str, Any]) -> None:
    assert called(fragment(0, "i", "f", '{"x"'), rest) == [("i", "f", '{"x":1}')]


def test_another_name_before_any_arguments_is_no_other_call_and_is_recorded() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", "get_", ""), fragment(0, None, "weather", ""), fragment(0, None, "get_", "{}"))
    assert spoken.whole() == [("i", "get_", "{}")]
    assert [(entry.path, entry.action) for entry in spoken.ledger] == [("tool_calls[].function.name", "ignored")]


def test_one_id_for_two_calls_without_a_place_is_two_calls() -> None:
    spoken = Spoken()
    spoken.say(fragment(None, "f", "f", '{"x":1}'), fragment(None, "f", "f", '{"x":2}'))
    spoken.say(fragment(None, "f", "f", '{"x":2}'))
    assert spoken.whole() == [("f", "f", '{"x":1}'), ("f_2", "f", '{"x":2}{"x":2}')]


@pytest.mark.parametrize("pieces", [["re", "ad_file"], ["r", "ead", "_file"], ["read_", "file"]])
def test_a_name_in_pieces_is_the_tools_that_was_offered(pieces: list[str]) -> None:
    spoken = Spoken(offered={"read_file", "read_link", "write"})
    first, *rest = pieces
    assert spoken.say(fragment(0, "i", first, "")) == []
    *between, last = rest
    assert spoken.say(*(fragment(0, None, piece, "") for piece in between)) == []
    assert spoken.say(fragment(0, None, last, "{"), fragment(0, arguments="}")) == [
        BlockStart(0, ToolUseBlock("i", "read_file")),
        ArgumentsDelta(0, "{"),
        ArgumentsDelta(0, "}"),
    ]


def test_a_name_that_was_offered_is_whole_though_another_begins_with_it() -> None:
    spoken = Spoken(offered={"read", "read_file"})
    assert spoken.say(fragment(0, "i", "read", "")) == [BlockStart(0, ToolUseBlock("i", "read"))]


def test_a_name_that_no_tool_has_waits_for_no_other_piece_once_its_arguments_come() -> None:
    spoken = Spoken(offered={"read_file"})
    assert spoken.say(fragment(0, "i", "read", "{}"))[0] == BlockStart(0, ToolUseBlock("i", "read"))
    assert spoken.say(fragment(1, "j", "other", "")) == [BlockStart(1, ToolUseBlock("j", "other"))]


@pytest.mark.parametrize("complete", [True, False])
def test_a_name_whose_rest_never_comes_is_the_calls_at_the_end(complete: bool) -> None:
    spoken = Spoken(offered={"read_file"})
    assert spoken.say(fragment(0, "i", "read", "")) == []
    spoken.calls.end(spoken.out, complete=complete)
    assert spoken.out == [BlockStart(0, ToolUseBlock("i", "read")), BlockStop(0, complete)]


def test_a_fragment_that_says_nothing_is_nothing() -> None:
    spoken = Spoken()
    assert spoken.say({}, {"index": 0}, {"index": 0, "function": None}, {"function": {}}, {"id": ""}) == []
    assert len(spoken.calls) == 0
    spoken.say(fragment(None, "a", "f", "{"), fragment(None, "b", "g", "{"))
    assert spoken.say({}, {"function": {"arguments": ""}}) == []


def test_an_id_that_is_a_number_is_a_word() -> None:
    assert called(fragment(0, 7, "f", "{}")) == [("7", "f", "{}")]


# Ids


def test_one_id_for_several_calls_is_given_suffixes_and_recorded() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "a", "f"), fragment(1, "a", "g"), fragment(2, "a_2", "h"), fragment(3, "a", "k"))
    assert [id_ for id_, _, _ in spoken.whole()] == ["a", "a_2", "a_2_2", "a_3"]
    assert [(entry.path, entry.action) for entry in spoken.ledger] == [("tool_calls[].id", "renamed")]


def test_a_missing_id_is_minted_and_stays() -> None:
    ids = [call[0] for call in called(*(fragment(n, None, "f", "{}") for n in range(50)))]
    assert len({*ids}) == 50
    assert all(id_.startswith("call_") for id_ in ids)
    spoken = Spoken()
    spoken.say(fragment(0, None, "f", "{"), fragment(0, "late", None, "}"))
    assert [text for _, _, text in spoken.whole()] == ["{}"]


def test_ten_thousand_calls_under_one_id_and_one_place_are_told_apart() -> None:
    spoken = Spoken()
    for n in range(10_000):
        spoken.say(fragment(0, "a", f"f{n}", "{}"))
        spoken.calls.add(Fragment.of(fragment(None, f"i{n}")), spoken.out)  # an id alone is nothing
    assert len(spoken.calls) == 10_000
    assert len({id_ for id_, _, _ in spoken.whole()}) == 10_000
    with pytest.raises(LimitExceeded, match="more than 10000 calls"):
        spoken.say(fragment(0, "b", "f", "{}"))


@pytest.mark.parametrize("entry", [fragment(0, "x" * 1001, "f"), fragment(0, "i", "x" * 1001)])
def test_an_id_or_name_beyond_its_bound_fails(entry: dict[str, Any]) -> None:
    with pytest.raises(LimitExceeded, match="longer than 1000"):
        Spoken().say(entry)
    Spoken().say(fragment(0, "x" * 1000, "x" * 1000))


def test_arguments_without_a_name_are_held_within_a_bound() -> None:
    spoken = Spoken(Limits(held_bytes=3))
    with pytest.raises(LimitExceeded, match="more than 3 bytes"):
        spoken.say(fragment(0, arguments="12"), fragment(1, arguments="34"))
    spoken = Spoken(Limits(held_bytes=4))
    spoken.say(fragment(0, arguments="12"), fragment(1, arguments="34"))
    assert spoken.calls.held == 4


# What must come back with a call

SIGNED = {"google": {"thought_signature": "S"}}
BEFORE = RedactedReasoningBlock('{"tool_calls":[{"extra_content":{"google":{"thought_signature":"S"}}}]}')


def test_what_must_come_back_with_a_call_is_in_a_block_before_it() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, "i", "f", "{}", extra_content=SIGNED)) == [
        BlockStart(0, BEFORE),
        BlockStop(0),
        BlockStart(1, ToolUseBlock("i", "f")),
        ArgumentsDelta(1, "{}"),
    ]
    assert spoken.say(fragment(0, arguments="", extra_content=SIGNED)) == []
    assert list(spoken.ledger) == []


def test_what_must_come_back_with_a_call_waits_for_its_name_within_the_bound() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, arguments="{}", extra_content=SIGNED)) == []
    assert spoken.calls.held == 2 + len(BEFORE.data)
    assert spoken.say(fragment(0, "i", "f"))[0] == BlockStart(0, BEFORE)
    assert spoken.calls.held == 0
    with pytest.raises(LimitExceeded, match="more than 3 bytes"):
        Spoken(Limits(held_bytes=3)).say(fragment(0, arguments="1", extra_content=SIGNED))


def test_what_must_come_back_with_a_call_and_comes_behind_its_beginning_is_recorded() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, "i", "f", ""), fragment(0, arguments="{}", extra_content=SIGNED))[1:] == [
        ArgumentsDelta(0, "{}")
    ]
    assert [entry.path for entry in spoken.ledger] == ["tool_calls[].extra_content"]


@pytest.mark.parametrize("extra", [{}, {"google": {}}, {"google": {"thought_signature": ""}}, {"n": 7}, "", 7, None])
def test_an_extra_that_holds_nothing_makes_no_block(extra: Any) -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, "i", "f", extra_content=extra)) == [BlockStart(0, ToolUseBlock("i", "f"))]
    assert list(spoken.ledger) == []


# Halves of characters


def test_the_halves_of_a_character_are_joined_within_a_call() -> None:
    assert called(fragment(0, "i", "f", "\ud83d"), fragment(1, "j", "g", "x"), fragment(0, arguments="\ude00")) == [
        ("i", "f", "😀"),
        ("j", "g", "x"),
    ]


def test_half_a_character_alone_is_replaced_when_the_call_ends() -> None:
    spoken = Spoken()
    assert spoken.say(fragment(0, "i", "f", "\ud83d")) == [BlockStart(0, ToolUseBlock("i", "f"))]
    assert spoken.calls.held == 1
    assert spoken.calls.going_on([fragment(0, arguments="x")]) is None
    spoken.calls.end(spoken.out, complete=False)
    assert spoken.out[1:] == [ArgumentsDelta(0, "\ufffd"), BlockStop(0, complete=False)]
    assert spoken.calls.held == 0


def test_a_name_behind_the_end_brings_back_nothing_that_was_lost() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", arguments="{}"))
    spoken.calls.end(spoken.out, complete=False)
    assert spoken.say(fragment(0, name="f")) == [BlockStart(0, ToolUseBlock("i", "f"))]
    assert spoken.calls.held == 0


def test_an_error_loses_nothing_of_a_call_that_has_begun() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", "f", "{"))
    spoken.calls.cut()
    assert len(spoken.ledger) == 0


def test_half_a_character_is_dropped_with_a_call_that_was_cut() -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", "f", "\ud83d"))
    spoken.calls.cut()
    assert spoken.calls.held == 0
