"""A Chat stream for a client that wants a whole answer: its calls are those that every other client gets."""

import json
from typing import Any

import pytest

from pipeline.reply import Form
from tests.alike import cuts, heard
from tests.returning import payloads, returned
from tests.support import DONE, call, chunk, finish, fragment, sse

A, B = '{"a"', ":1}"
ONE = [("f", {"a": 1})]
TWO = [("f", {"a": 1}), ("g", {"b": 2})]
WAYS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, Any]]]] = {
    "by index": ([call(0, "a", "f", A), call(0, arguments=B)], ONE),
    "the index in a text": ([call("0", "a", "f", A), call("0", arguments=B)], ONE),
    "by id": ([call(None, "a", "f", A), call(None, "a", None, B)], ONE),
    "by id and name": ([call(None, "a", "f", A), call(None, "a", "f", B)], ONE),
    "by name": ([call(None, None, "f", A), call(None, None, "f", B)], ONE),
    "by neither": ([call(None, "a", "f", A), call(None, None, None, B)], ONE),
    "an index that comes late": ([call(None, "a", "f", A), call(0, None, None, B)], ONE),
    "two by id": ([call(None, "a", "f", A), call(None, "b", "g", '{"b"'), call(None, "a", None, B),
                   call(None, "b", None, ":2}")], TWO),
    "two one behind the other": (
        [call(None, "a", "f", A), call(None, None, None, B), call(None, "b", "g", '{"b":2}')], TWO),
    "two on one index": ([call(0, "a", "f", '{"a":1}'), call(0, "b", "g", '{"b":2}')], TWO),
    "two with one id": ([call(0, "a", "f", '{"a":1}'), call(1, "a", "g", '{"b":2}')], TWO),
    "the same again": ([call(0, "a", "f", '{"a":1}'), call(1, "b", "f", '{"a":1}')], ONE * 2),
    "another id on an index": ([call(0, "a", "f", A), call(0, "b", None, B)], ONE),
    "interleaved": (
        [call(0, "a", "f", A), call(1, "b", "g", '{"b"'), call(0, arguments=B), call(1, arguments=":2}")], TWO),
    "in one chunk": (
        [chunk({"tool_calls": [fragment(None, "a", "f", '{"a":1}'), fragment(None, "b", "g", '{"b":2}')]})],
        TWO),
    "a name in pieces": ([call(0, "a", "f_"), call(0, None, "long", A), call(0, arguments=B)], [("f_long", {"a": 1})]),
    "a value": ([chunk({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]})], ONE),
    "no list": ([chunk({"tool_calls": fragment(None, "a", "f", '{"a":1}')})], ONE),
    "the older words": (
        [chunk({"function_call": {"name": "f", "arguments": A}}), chunk({"function_call": {"arguments": B}})], ONE),
}  # fmt: skip
TOOLS = {
    name: [{"type": "function", **({"function": said} if name == "chat" else said)}]
    for name, said in (
        ("chat", {"name": "f_long", "parameters": {"type": "object"}}),
        ("messages", {"name": "f_long", "input_schema": {"type": "object"}}),
        ("responses", {"name": "f_long", "parameters": {"type": "object"}}),
    )
}
TOOLS["messages"][0].pop("type")


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_told_from_others_as_for_every_other_client(way: str) -> None:
    chunks, due = WAYS[way]
    for reads in cuts(sse(*chunks, finish("tool_calls"), DONE)):
        told = {name: heard(name, "chat", reads, stream=False, tools=TOOLS[name]) for name in TOOLS}
        assert {name: one.calls for name, one in told.items()} == dict.fromkeys(TOOLS, due)
        own = {entry for entry in told["messages"].ledger if entry[0].startswith("tool_calls")}
        assert own <= set(told["chat"].ledger)


def gathered(*items: Any) -> tuple[Any, list[tuple[str, str]]]:
    """The choices of the whole answer that chunks make, and the ledger."""
    body, outcome = returned("chat", [sse(*items, DONE)], arriving=Form.STREAM, leaving=Form.WHOLE)
    return json.loads(body)["choices"], [(entry.path, entry.action) for entry in outcome.ledger]


def test_what_stands_beside_a_call_in_any_of_its_fragments_is_in_it() -> None:
    odd = chunk({"tool_calls": [fragment(None, None, None, B, odd=2)]})
    first = chunk({"tool_calls": [fragment(None, "a", "f", A, extra={"deep": [1]})]})
    choices, lost = gathered(first, odd, finish("tool_calls"))
    due = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": A + B},
        "extra": {"deep": [1]},
        "odd": 2,
    }
    assert choices[0]["message"]["tool_calls"] == [due]
    assert lost == []


def test_what_is_of_no_call_is_in_the_ledger() -> None:
    nothing = chunk({"tool_calls": [{"index": 3}, {"index": 3, "odd": 1}, 7]})
    choices, lost = gathered(nothing, call(0, "a", "f", A + B), finish("tool_calls"))
    assert len(choices[0]["message"]["tool_calls"]) == 1
    assert lost == [("tool_calls[]", "dropped"), ("tool_calls[]", "ignored")]


def test_an_item_of_a_tool_that_the_provider_runs_stays_beside_the_calls() -> None:
    ran = {"index": 0, "id": "w", "type": "web_search", "web_search": {"arguments": "{"}}
    more = {"index": 0, "type": "web_search", "web_search": {"arguments": "}"}}
    ours = fragment(0, "a", "f", "{}" + A)
    choices, lost = gathered(
        chunk({"tool_calls": [ran, ours]}), chunk({"tool_calls": [more]}), call(0, None, None, B), finish("tool_calls")
    )
    due = [
        {"id": "w", "type": "web_search", "web_search": {"arguments": "{}"}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": A + B}},
    ]
    assert choices[0]["message"]["tool_calls"] == due
    body = {"id": "c1", "choices": [{"index": 0, "message": {"tool_calls": due}, "finish_reason": "tool_calls"}]}
    stream, _ = returned("chat", [json.dumps(body).encode()], arriving=Form.WHOLE, leaving=Form.STREAM)
    (told,) = [
        one["delta"]["tool_calls"]
        for said in payloads(stream)[:-1]
        for one in said["choices"]
        if "tool_calls" in one["delta"]
    ]
    assert told == [{**entry, "index": at} for at, entry in enumerate(due)]
    assert lost == []


def test_fragments_of_another_choice_are_joined_too_and_one_that_could_be_of_several_calls_is_another() -> None:
    def other(*entries: Any, ended: str | None = None) -> dict[str, Any]:
        said = chunk({"tool_calls": [*entries]}, ended)
        said["choices"][0]["index"] = 1
        return said

    first = [call(None, "a", "f", A), call(None, None, None, B), finish("tool_calls")]
    choices, lost = gathered(
        *first, other(fragment(None, "a", "f", A)), other(fragment(None, None, None, B), ended="tool_calls")
    )
    assert choices[1]["message"]["tool_calls"] == choices[0]["message"]["tool_calls"]
    assert lost == []
    two = other(fragment(None, "a", "f", A), fragment(None, "b", "g", A))
    choices, lost = gathered(*first, two, other(fragment(None, None, None, B), ended="tool_calls"))
    assert len(choices[1]["message"]["tool_calls"]) == 3
    assert lost == [("tool_calls[]", "mended")]
