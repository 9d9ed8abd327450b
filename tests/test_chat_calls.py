"""Which fragment belongs to which call."""

from collections.abc import Collection
from itertools import count
from typing import Any

import pytest

from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    RedactedReasoningBlock,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.chat.calls import Calls
from stages.dialects.chat.fragments import LEGACY, Fragment, exact_entries, fragments_of
from tests.support import call, chunk, fragment, payload


class Spoken:
    """Calls, given entries of `tool_calls`, with what came of them."""

    def __init__(self, limits: Limits | None = None, offered: Collection[str] = ()) -> None:
        self.ledger = Ledger()
        tools = {name: OfferedTool(name) for name in offered}
        self.calls = Calls(self.ledger, limits or Limits(), count(), RequestMap(tools))
        self.out: list[Event] = []

    def say(self, *entries: dict[str, Any]) -> list[Event]:
        """What these entries make."""
        before = len(self.out)
        for one in fragments_of(entries, self.ledger):
            self.calls.add(one, self.out)
        return self.out[before:]

    def whole(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of the calls, in order."""
        said: dict[int, list[str]] = {}
        for event in self.out:
            if isinstance(event, BlockStart):
                assert isinstance(event.block, ToolUseBlock)
                said[event.index] = [event.block.id, event.block.name, ""]
            elif isinstance(event, ArgumentsDelta):
                said[event.index][2] += event.text
        return [(id_, name, text) for id_, name, text in said.values()]


def called(*entries: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The calls that these entries make."""
    spoken = Spoken()
    spoken.say(*entries)
    return spoken.whole()


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
    assert call.said == []


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


# The quick way


def test_the_way_of_nearly_every_fragment_gives_what_the_long_way_gives() -> None:
    spoken, quick = Spoken(), Spoken()
    for one in (spoken, quick):
        one.say(fragment(0, "i", "f", ""))
    going_on = quick.calls.going_on([fragment(0, arguments='{"x":1}')])
    assert going_on is not None
    quick.out.append(going_on.more('{"x":1}'))
    spoken.say(fragment(0, arguments='{"x":1}'))
    assert quick.out == spoken.out
    for one in (spoken, quick):
        one.say(fragment(0, None, "g", '{"y":2}'))
    assert (
        [call[1:] for call in quick.whole()]
        == [call[1:] for call in spoken.whole()]
        == [
            ("f", '{"x":1}'),
            ("g", '{"y":2}'),
        ]
    )


@pytest.mark.parametrize(
    "entries",
    [
        None,
        7,
        [],
        ["odd"],
        [{}],
        [{"index": 0}],
        [{"index": 0, "function": None}],
        [{"index": 0, "function": {}}],
        [{"index": [], "function": {"arguments": "x"}}],
        [fragment(0, arguments="x"), fragment(0, arguments="y")],
        [fragment(0, "i", arguments="x")],
        [fragment(0, name="f")],
        [fragment(0, name="f", arguments="x")],
        [fragment(0, arguments="")],
        [fragment(0, arguments={})],
        [fragment(0, arguments=7)],
        [fragment(0, arguments="\ud83d")],
        [fragment(1, arguments="x")],
        [fragment(2, arguments="x")],
        [fragment(arguments="x")],
    ],
)
def test_every_other_fragment_takes_the_long_way(entries: Any) -> None:
    spoken = Spoken()
    spoken.say(fragment(0, "i", "f"), fragment(1, "j"))
    assert spoken.calls.going_on(entries) is None


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


# Fragments


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (fragment(3, "i", "f", "{}"), Fragment(3, "i", "f", "{}", ToolKind.FUNCTION)),
        (fragment("3"), Fragment(3, "", "", "", ToolKind.FUNCTION)),
        (fragment("x"), Fragment(None, "", "", "", ToolKind.FUNCTION)),
        (fragment("9" * 5000), Fragment(None, "", "", "", ToolKind.FUNCTION)),
        (fragment(2.0), Fragment(2, "", "", "", ToolKind.FUNCTION)),
        (fragment(2.5), Fragment(None, "", "", "", ToolKind.FUNCTION)),
        (fragment(True), Fragment(None, "", "", "", ToolKind.FUNCTION)),
        (fragment([]), Fragment(None, "", "", "", ToolKind.FUNCTION)),
        (fragment(0, " ", "\n"), Fragment(0, "", "", "", ToolKind.FUNCTION)),
        (fragment(0, True, ["f"]), Fragment(0, "", "", "", ToolKind.FUNCTION)),
        (fragment(0, arguments={"x": [1]}), Fragment(0, "", "", '{"x":[1]}', ToolKind.FUNCTION, value=True)),
        (fragment(0, arguments=7), Fragment(0, "", "", "7", ToolKind.FUNCTION, value=True)),
        ({"custom": {"name": "f", "input": "x"}}, Fragment(None, "", "f", "x", ToolKind.CUSTOM)),
        ({"type": "custom", "id": "i"}, Fragment(None, "i", "", "", ToolKind.CUSTOM)),
        ({"custom": 7}, Fragment(None, "", "", "", ToolKind.FUNCTION)),
    ],
)
def test_an_entry_is_read_member_by_member(entry: dict[str, Any], wanted: Fragment) -> None:
    assert Fragment.of(entry) == wanted


def test_a_place_may_be_given() -> None:
    assert Fragment.of({"function": {"name": "f"}}, LEGACY) == Fragment(LEGACY, "", "f", "", ToolKind.FUNCTION)


def test_a_freeform_call_of_a_function_is_a_functions() -> None:
    entry = {"index": 0, "id": "i", "type": "custom", "custom": {"name": "f", "input": '{"x":1}'}}
    assert Spoken(offered={"f"}).say(entry)[0] == BlockStart(0, ToolUseBlock("i", "f"))
    assert Spoken(offered={"g"}).say(entry)[0] == BlockStart(0, ToolUseBlock("i", "f", ToolKind.CUSTOM))


def test_a_custom_call_is_one_by_its_first_fragment() -> None:
    spoken = Spoken()
    assert spoken.say(
        {"index": 0, "id": "i", "type": "custom"}, {"index": 0, "custom": {"name": "f", "input": "x"}}
    ) == [
        BlockStart(0, ToolUseBlock("i", "f", ToolKind.CUSTOM)),
        ArgumentsDelta(0, "x"),
    ]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("{", True),
        (" [1", True),
        ('"{', True),
        ("null", True),
        ("", False),
        (":1}", False),
        ('"', False),
        ("nul", False),
    ],
)
def test_what_begins_the_arguments_of_a_call(text: str, begins: bool) -> None:
    assert Fragment(0, "", "", text, ToolKind.FUNCTION).begins is begins


@pytest.mark.parametrize(
    ("entry", "action"),
    [("odd", "ignored"), (None, "ignored"), ({"id": "w", "type": "web_search", "web_search": {}}, "dropped")],
)
def test_what_is_no_call_is_recorded(entry: Any, action: str) -> None:
    ledger = Ledger()
    assert fragments_of([entry, fragment(0, "i", "f")], ledger) == [Fragment.of(fragment(0, "i", "f"))]
    assert [(found.path, found.action) for found in ledger] == [("tool_calls[]", action)]


@pytest.mark.parametrize("kind", ["builtin_function", "function", "", None, 7])
def test_whatever_names_a_function_is_a_call_of_ours(kind: Any) -> None:
    ledger = Ledger()
    assert (
        len(fragments_of([{"type": kind, "function": {"name": "$web_search"}}, {"type": kind, "custom": {}}], ledger))
        == 2
    )
    assert len(ledger) == 0


def test_entries_are_read_again_with_every_digit() -> None:
    entries = [fragment(0, "i", "f", {"n": 2**70})]
    assert exact_entries(payload(chunk({"tool_calls": entries})), 0) == entries
    assert exact_entries(payload({"choices": [{"message": {"tool_calls": entries}}]}), 0) == entries
    for odd in (b"{", b"[]", b"{}", payload(call(0)), payload({"choices": [7]})):
        assert exact_entries(odd, 1) == ()


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
