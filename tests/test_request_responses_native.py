"""A Responses request toward its own dialect."""

from typing import Any

import pytest
from attrs import evolve

from pipeline import envelope
from pipeline.ledger import Ledger
from pipeline.request import (
    Request,
    RequestOptions,
)
from pipeline.testing import cut
from stages.dialects.responses.request import build, parse
from tests.markup_streams import responded, sse
from tests.request_shapes import GO, JSON, NAMESPACES
from tests.returning import payloads, returned

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}


def body(**members: Any) -> JSON:
    return {"model": "m", "input": [GO_ITEM], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def items(*given: JSON) -> JSON:
    return {"input": list(given)}


def part(**members: Any) -> JSON:
    return items({"type": "message", "role": "user", "content": [members]})


def function(**members: Any) -> JSON:
    return {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **members}]}


def call(**members: Any) -> JSON:
    return {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", **members}


RESULT = {"type": "function_call_output", "call_id": "1", "output": "r"}

# toward its own dialect


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"instructions": "a", "store": True, "user": "u", "include": ["x"], "top_logprobs": 2, "extra": 1},
        {"reasoning": {"effort": "odd", "context": "all_turns"}, "text": {"verbosity": "low", "z": 1}},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}, "previous_response_id": "r"},
        {"tool_choice": "none", "parallel_tool_calls": True},
        {"tool_choice": {"type": "function", "name": "f", "x": 1}, **function(defer_loading=True, y=1)},
        {"tools": [*NAMESPACES, {"type": "custom", "name": "p"}, {"type": "web_search", "z": 1}]},
        {"max_output_tokens": 1, "safety_identifier": "s", "background": True},
        part(type="input_image", file_id="f", detail="high"),
        part(type="input_file", file_id="f", filename="n"),
        part(type="hologram", x=[1]),
        part(type="input_audio", input_audio={"data": "QQ==", "format": "wav"}),
        {"max_output_tokens": 0},
        items(
            {"type": "message", "role": "developer", "id": "msg_0", "content": [{"type": "input_text", "text": "d"}]},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "phase": "commentary",
                "content": [
                    {"type": "output_text", "text": "a", "annotations": [{"x": 1}], "logprobs": [{}]},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_2",
                "content": [{"type": "output_text", "text": "b", "annotations": []}],
            },
            {"type": "message", "role": "assistant", "content": "easy"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "e"},
            {"type": "web_search_call", "id": "ws_1"},
            call(id="fc_1", status="completed", namespace="clock"),
            {"type": "custom_tool_call", "call_id": "2", "name": "g", "namespace": "functions", "input": "x"},
            {**RESULT, "id": "fco_1", "status": "completed"},
            {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_image", "file_id": "f"}]},
            {"type": "local_shell_call_output", "id": "l", "output": "x"},
            {"type": "item_reference", "id": "x"},
        ),
        items(
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "hologram"}, {"type": "output_text", "text": "b", "annotations": []}],
            }
        ),
    ],
)
def test_toward_its_own_dialect_a_request_is_what_it_was(members: JSON) -> None:
    ledger = Ledger(direction="request")
    written = build(read(**members), ledger=ledger).body
    assert list(ledger) == []
    if "input" in members:
        for item in members["input"]:
            for piece in item.get("output") or item.get("content") or []:
                if isinstance(piece, dict) and piece.get("type") == "input_image":
                    piece.setdefault("detail", "auto")
    assert written == body(**members)


def test_a_policys_effort_keeps_the_clients_summary() -> None:
    request = read(reasoning={"effort": "low", "summary": "detailed", "context": "all_turns"})
    written = build(request, ledger=Ledger(), options=RequestOptions(effort="high")).body
    assert written["reasoning"] == {"effort": "high", "summary": "detailed", "context": "all_turns"}
    assert "reasoning" not in build(request, ledger=Ledger(), options=RequestOptions(effort="")).body


def test_an_envelope_of_ours_never_goes_up_but_what_it_holds_does() -> None:
    sealed = envelope.seal("up", "m", "t", '{"id":"rs_9","summary":[],"encrypted_content":"e"}')
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}]}
    request = read(**items({**item, "encrypted_content": sealed}, call(), RESULT))
    home = build(request, ledger=Ledger(), options=RequestOptions(upstream="up")).body
    assert home["input"][0] == {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "e"}  # type: ignore[index]
    ledger = Ledger(direction="request")
    away = build(request, ledger=ledger, options=RequestOptions(upstream="other")).body
    assert [given["type"] for given in away["input"]] == ["function_call", "function_call_output"]  # type: ignore[attr-defined]
    assert [entry.path for entry in ledger] == ["input[0]"]


def test_a_call_has_a_namespace_in_this_dialect_alone_and_only_if_it_came_with_one() -> None:
    told = [call(namespace="clock"), {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "x"}]
    given = parse({"model": "m", "input": told}, ledger=Ledger(direction="request"))
    edited = evolve(given, turns=(*given.turns, GO))
    written = build(edited, ledger=Ledger(direction="request")).body["input"]
    assert isinstance(written, list)
    assert [item.get("namespace") for item in written[:2]] == ["clock", None]
    assert "namespace" not in written[1]
    foreign = build(evolve(edited, dialect="elsewhere"), ledger=Ledger(direction="request")).body["input"]
    assert isinstance(foreign, list)
    calls = [item for item in foreign if item["type"] in ("function_call", "custom_tool_call")]
    assert [("namespace" in item, item["name"]) for item in calls] == [(False, "clock__f"), (False, "g")]


def minted() -> JSON:
    """A reasoning item that the client was told of, which the upstream wrote as text."""
    raw = sse(*responded([("text", ["<think>x</think>Hi"])]))
    told = payloads(returned("responses", cut(raw, "frame"))[0])[-1]["response"]["output"]
    (item,) = (item for item in told if item["type"] == "reasoning")
    found: JSON = item
    return found


@pytest.mark.parametrize("beside", [{}, {"encrypted_content": None}, {"status": "completed", "content": None}])
@pytest.mark.parametrize("edited", [False, True])
def test_reasoning_that_the_upstream_wrote_as_text_does_not_go_up_as_an_item_of_its(beside: JSON, edited: bool) -> None:
    item = {**minted(), **beside}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    request = read(**items(GO_ITEM, item, said, GO_ITEM))
    ledger = Ledger(direction="request")
    written = build(evolve(request, turns=(*request.turns, GO)) if edited else request, ledger=ledger).body["input"]
    assert isinstance(written, list)
    assert [one["type"] for one in written[:3]] == ["message"] * 3
    assert edited or written == [GO_ITEM, said, GO_ITEM]
    assert [(entry.path, entry.action) for entry in ledger] == [("input[1]", "dropped")]


@pytest.mark.parametrize(
    "beside", [{"id": "rs_68af"}, {"id": "rs_sw1"}, {"id": None}, {"encrypted_content": "blob"}, {"id": ["rs_sw1_"]}]
)
def test_other_reasoning_goes_up_as_it_came(beside: JSON) -> None:
    item = {**minted(), **beside}
    ledger = Ledger(direction="request")
    assert build(read(**items(item, GO_ITEM)), ledger=ledger).body["input"] == [item, GO_ITEM]
    assert list(ledger) == []
