"""What a delta says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ledger import Ledger
from stages.dialects.chat.content import (
    Repeats,
    detailed_reasoning,
    details_of,
    pieces_of,
    reasoning_of,
    said_alone,
    unread_members,
)
from tests.support import call, chunk, finish, fragment, text, usage

# The quick way


@pytest.mark.parametrize("member", ["content", "reasoning_content", "reasoning", "tool_calls"])
def test_what_a_chunk_says_alone_is_found(member: str) -> None:
    said = [fragment(0, arguments="x")] if member == "tool_calls" else "x"
    for beside in ({}, {"role": "assistant"}, {"role": "assistant", "refusal": None, "function_call": None}):
        one = chunk({**beside, member: said})
        assert said_alone(one) == (member, said)
        one["choices"][0]["logprobs"] = None
        assert said_alone({**one, "usage": None}) == (member, said)


@pytest.mark.parametrize(
    "other",
    [
        None,
        7,
        "text",
        [],
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [7]},
        {"choices": [{"index": 0, "delta": {"content": "x"}}]},
        {"choices": [text("x")["choices"][0], text("y")["choices"][0]]},
        {"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": "x", "finish_reason": None}]},
        {"choices": [{**text("x")["choices"][0], "usage": {}}]},
        {"choices": [{**text("x")["choices"][0], "logprobs": {}}]},
        {"choices": [{**text("x")["choices"][0], "logprobs": None, "usage": {}}]},
        chunk({"content": "x"}, "stop"),
        {**text("x"), "usage": {}},
        {**text("x"), "error": None},
        {**text("x"), "x_groq": {}},
        {**text("x"), "base_resp": {}},
        chunk({"content": "x", "reasoning": "y"}),
        chunk({"content": "x", "extra_content": {"google": {"thought": True}}}),
        finish(),
        usage(),
        call(0, "i"),
    ],
)
def test_whatever_says_more_is_not_taken_for_less(other: Any) -> None:
    name, value = said_alone(other)
    assert (name, value) == ("", None) or other["choices"][0]["delta"] == {name: value}


# Reasoning


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "A"},
        {"reasoning": "A"},
        {"reasoning_text": "A"},
        {"thinking": "A"},
        {"reasoning_content": "A", "reasoning": "A"},
        {"reasoning_content": "", "reasoning": None, "thinking": "A"},
        {"reasoning": {"text": "A"}},
        {"reasoning": {"content": "A"}},
        {"reasoning": "A", "reasoning_details": [{"type": "reasoning.text", "text": "A"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "A"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "A"}]},
        {"reasoning_details": [{"text": "A"}, 7, {"data": "x"}, {"text": None}]},
        {"reasoning_details": [{"text": [{"text": "A"}, 7]}]},
        {"tensorzero_extra_content": [{"type": "thought", "text": "A"}]},
    ],
)
def test_reasoning_is_read_once_whatever_it_is_called(delta: dict[str, Any]) -> None:
    assert (reasoning_of(delta) or detailed_reasoning(delta)) == "A"


def test_a_proof_is_the_detail_as_it_goes_back_but_for_its_text() -> None:
    said = {"type": "reasoning.text", "text": "A", "signature": "S", "index": 0}
    proof = '{"reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}'
    assert details_of({"reasoning_details": [said]}) == [("reasoning", "A"), ("signature", proof)]


def test_a_blob_is_the_detail_as_it_goes_back() -> None:
    blob = {"type": "reasoning.encrypted", "data": "E==", "id": "r"}
    (found,) = details_of({"reasoning_details": [blob]})
    assert found[0] == "redacted"
    assert json.loads(found[1]) == {"reasoning_details": [blob]}


def test_each_of_several_details_keeps_its_place() -> None:
    said = [{"text": "A", "signature": "S"}, {"summary": "B"}, {"data": "E"}]
    assert [kind for kind, _ in details_of({"reasoning_details": said})] == [
        "reasoning",
        "signature",
        "reasoning",
        "redacted",
    ]


@pytest.mark.parametrize(
    "details",
    [None, "A", [], [7], [{"text": "A"}], [{"text": "A", "signature": ""}], [{"data": 7}], [{"signature": None}]],
)
def test_details_without_anything_opaque_are_read_as_text_alone(details: Any) -> None:
    assert list(details_of({"reasoning_details": details})) == []


@pytest.mark.parametrize(
    "delta", [{}, {"content": "a"}, {"reasoning": 7}, {"reasoning": {}}, {"reasoning_details": "A"}, {"thinking": []}]
)
def test_what_is_no_reasoning_is_none(delta: dict[str, Any]) -> None:
    assert reasoning_of(delta) == detailed_reasoning(delta) == ""


def test_deltas_that_repeat_all_that_came_give_what_is_new() -> None:
    repeats = Repeats()
    steps = ["The u", "The user", "The user", "The user asks"]
    assert [repeats.new(step) for step in steps] == ["The u", "ser", "", " asks"]
    assert repeats.new("The user asks" + "!" * 100) == "!" * 100
    assert repeats.new("The user asks" + "!" * 101) == "!"
    assert repeats.new("something else") == "something else"
    assert repeats.new("something else!") == "!"


def test_the_first_delta_that_tells_settles_whether_deltas_repeat() -> None:
    repeats = Repeats()
    steps = ["Hm, we", "ll.", "Hm, well.", "Hm, well. So"]
    assert [repeats.new(step) for step in steps] == steps


def test_a_model_may_stammer() -> None:
    repeats = Repeats()
    assert [repeats.new(step) for step in ("a", "and", "", "aand", "no")] == ["a", "and", "", "aand", "no"]


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=30))
def test_short_deltas_of_a_grown_text_pass_as_they_are(steps: list[str]) -> None:
    repeats = Repeats()
    repeats.new("0123456789")
    assert [repeats.new(step) for step in steps] == steps


# Content


@pytest.mark.parametrize(
    ("delta", "path"),
    [
        ({"annotations": {"u": 1}}, "annotations"),
        ({"function_call": "g"}, "function_call"),
        ({"stop_sequence": 5}, "stop_sequence"),
        ({"reasoning_content": ["x"]}, "reasoning_content"),
        ({"reasoning": 5}, "reasoning"),
        ({"reasoning_content": "A", "reasoning": "B"}, "reasoning"),
        ({"reasoning_details": [{"type": "reasoning.other", "bar": "x"}]}, "reasoning_details[]"),
        ({"reasoning_details": ["x"]}, "reasoning_details[]"),
    ],
)
def test_a_member_in_a_form_that_is_not_known_is_named(delta: dict[str, Any], path: str) -> None:
    assert [name for name, _ in unread_members(delta)] == [f"choices[].delta.{path}"]


@pytest.mark.parametrize(
    ("content", "pieces"),
    [
        (None, []),
        ("", []),
        ("a", [("text", "a")]),
        ([], []),
        (["a", {"type": "text", "text": "b"}], [("text", "a"), ("text", "b")]),
        ([{"text": "a"}], [("text", "a")]),
        ([{"type": "output_text", "text": "a"}], [("text", "a")]),
        ([{"type": "text", "text": 7}], [("text", "")]),
        ([{"type": "refusal", "refusal": "no"}], [("refusal", "no")]),
        ([{"type": "thinking", "thinking": "A"}], [("reasoning", "A")]),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "A"}, "B"], "closed": True}, "c"],
            [("reasoning", "AB"), ("text", "c")],
        ),
        (
            [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "A"}]}, {"type": "text", "text": "b"}],
            [("reasoning", "A"), ("text", "b")],
        ),
        ([{"type": "reasoning", "text": "A"}, {"type": "thinking"}], [("reasoning", "A"), ("reasoning", "")]),
    ],
)
def test_the_pieces_of_a_content(content: Any, pieces: list[tuple[str, str]]) -> None:
    ledger = Ledger()
    assert list(pieces_of({"content": content}, ledger)) == pieces
    assert {entry.path for entry in ledger} == ({"content[].text"} if ("text", "") in pieces and content else set())


@pytest.mark.parametrize(
    ("content", "pieces", "path"),
    [
        (7, [], "content"),
        ({}, [], "content"),
        ([{"type": "image_url"}, "a"], [("text", "a")], "content[]"),
        ([{"type": "reference", "reference_ids": [1]}], [], "content[]"),
        ([7, {"type": ["text"]}], [], "content[]"),
        ([{"type": "thinking", "thinking": "A", "signature": "s"}], [("reasoning", "A")], "content[].signature"),
        ([{"type": "reasoning", "summary": [7, {"signature": "s"}]}], [("reasoning", "")], "content[].signature"),
    ],
)
def test_a_part_that_is_no_text_is_recorded(content: Any, pieces: list[tuple[str, str]], path: str) -> None:
    ledger = Ledger()
    assert list(pieces_of({"content": content}, ledger)) == pieces
    assert [entry.path for entry in ledger] == [path]


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ({"google": {"thought": True}}, "reasoning"),
        ({"google": {"thought": False}}, "text"),
        ({"google": {"thought_signature": "s"}}, "text"),
        ({"google": 7}, "text"),
        (7, "text"),
    ],
)
def test_content_that_is_marked_as_a_thought_is_reasoning(extra: Any, kind: str) -> None:
    assert list(pieces_of({"content": "a", "extra_content": extra}, Ledger())) == [(kind, "a")]


# What is not read


@pytest.mark.parametrize(
    ("delta", "path"),
    [
        ({"audio": {"data": "x"}}, "choices[].delta.audio"),
        ({"x" * 100: 1}, f"choices[].delta.{'x' * 64}"),
        ({"reasoning_opaque": "x"}, "choices[].delta.reasoning_opaque"),
        ({"reasoning_content": {"text": "A", "signature": "x"}}, "choices[].delta.reasoning_content.signature"),
    ],
)
def test_a_member_that_no_event_carries_is_named(delta: dict[str, Any], path: str) -> None:
    assert [name for name, _ in unread_members(delta)] == [path]


@pytest.mark.parametrize(
    "delta",
    [
        {"role": "assistant", "content": "a", "audio": None, "images": []},
        {
            "reasoning_details": [{"text": "A", "signature": "x"}, {"data": "x"}, {"type": "reasoning.text", "id": 1}],
            "tool_calls": [{"extra_content": None}, 7],
        },
        {"reasoning_details": 7, "tool_calls": 7, "reasoning": {"text": "A", "signature": ""}},
    ],
)
def test_a_member_that_says_nothing_is_not_named(delta: dict[str, Any]) -> None:
    assert list(unread_members(delta)) == []
