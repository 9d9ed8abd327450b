"""The fragments of calls, as a delta brings them."""

from typing import Any

import pytest

from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from stages.dialects.chat.fragments import LEGACY, Fragment, exact_entries, fragments_of
from tests.chat_calls import Spoken
from tests.support import call, chunk, fragment, payload

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
