"""The ids of a conversation's calls, and what their tools gave back, as each upstream is told them."""

import json
from typing import Any

import pytest
from attrs import evolve

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.request import Part, Role, TextPart, ToolResultPart, ToolUsePart, Turn
from tests.request_shapes import BUILDS, JSON, read, request, written


def use(call: str) -> ToolUsePart:
    return ToolUsePart(call, "f", "{}")


def result(call: str, text: str) -> ToolResultPart:
    return ToolResultPart(call, (TextPart(text),))


def user(*parts: Part) -> Turn:
    return Turn(Role.USER, parts)


def assistant(*parts: Part) -> Turn:
    return Turn(Role.ASSISTANT, parts)


def twice(call: str = "a") -> list[Turn]:
    """A turn that calls twice by one id, and both results."""
    return [user(TextPart("go")), assistant(use(call), use(call)), user(result(call, "1"), result(call, "2"))]


def ids(upstream: str, body: JSON) -> tuple[list[str], list[str]]:
    """The ids of a body's calls, and those of its results."""
    if upstream == "chat":
        calls = [call["id"] for it in body["messages"] for call in it.get("tool_calls", ())]
        return calls, [it["tool_call_id"] for it in body["messages"] if it["role"] == "tool"]
    if upstream == "responses":
        kinds = [it.get("type", "") for it in body["input"]]
        named = [
            (kind.endswith("_output"), it["call_id"])
            for kind, it in zip(kinds, body["input"], strict=True)
            if "call" in kind
        ]
        return [it for out, it in named if not out], [it for out, it in named if out]
    blocks = [block for it in body["messages"] if isinstance(it["content"], list) for block in it["content"]]
    calls = [it["id"] for it in blocks if it["type"] == "tool_use"]
    return calls, [it["tool_use_id"] for it in blocks if it["type"] == "tool_result"]


@pytest.mark.parametrize("upstream", BUILDS)
def test_no_two_calls_of_a_turn_go_up_with_one_id(upstream: str) -> None:
    assert ids(upstream, written(upstream, request(*twice()))) == (["a", "a_2"], ["a", "a_2"])
    long = "x" * 300
    calls, results = ids(upstream, written(upstream, request(*twice(long))))
    assert (calls == results, len(set(calls))) == (True, 2)


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_a_provider_that_counts_its_calls_by_the_turn_gets_its_ids_back(upstream: str) -> None:
    turns = twice("f:0")
    again = "f:0", "f:0_2"
    assert ids(upstream, written(upstream, request(*turns, *turns))) == ([*again, *again], [*again, *again])


def test_a_freeform_call_that_shares_its_id_keeps_its_kind() -> None:
    free = evolve(use("a"), kind=ToolKind.CUSTOM, arguments="x")
    body = written(
        "responses", request(user(TextPart("go")), assistant(use("a"), free), user(result("a", "1"), result("a", "2")))
    )
    assert [it["type"] for it in body["input"][1:]] == [
        "function_call",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
    ]


# ids that are missing


def asked(client: str, calls: list[JSON], results: list[JSON]) -> JSON:
    """A body in which the assistant calls, by `id` and `name`, and tools give back, by `id` and `said`."""
    if client == "chat":
        made = [_chat_call(call) for call in calls]
        answers = [{"role": "tool", "tool_call_id": it["id"], "content": it["said"]} for it in results]
        return {
            "model": "m",
            "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": made}, *answers],
        }
    if client == "responses":
        items = [{"type": "function_call", "call_id": it["id"], "name": it["name"], "arguments": "{}"} for it in calls]
        outs = [{"type": "function_call_output", "call_id": it["id"], "output": it["said"]} for it in results]
        return {"model": "m", "input": [{"role": "user", "content": "go"}, *items, *outs]}
    uses = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}} for call in calls]
    given = [{"type": "tool_result", "tool_use_id": it["id"], "content": it["said"]} for it in results]
    turns = ("user", "go"), ("assistant", uses), ("user", given)
    return {"model": "m", "max_tokens": 9, "messages": [{"role": role, "content": content} for role, content in turns]}


def _chat_call(call: JSON) -> JSON:
    if call.get("kind") == "custom":
        return {"id": call["id"], "type": "custom", "custom": {"name": call["name"], "input": "x"}}
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": "{}"}}


@pytest.mark.parametrize("blank", ["", " ", None])
@pytest.mark.parametrize("upstream", ["messages", "responses"])
def test_calls_of_a_chat_client_without_ids_get_one_and_their_results_the_same(
    upstream: str, blank: str | None
) -> None:
    calls: list[JSON] = [
        {"id": blank, "name": "f"},
        {"id": "b", "name": "g"},
        {"id": blank, "name": "h", "kind": "custom"},
    ]
    results = [{**call, "said": f"of {call['name']}"} for call in calls]
    body = written(upstream, read("chat", asked("chat", calls, results)))
    assert ids(upstream, body) == (["call_1_f", "b", "call_2_h"], ["call_1_f", "b", "call_2_h"])
    again = read(upstream, {"max_tokens": 9, **body}).turns[-1].parts
    told = [part.parts[0] for part in again if isinstance(part, ToolResultPart)]
    assert [part.text for part in told if isinstance(part, TextPart)] == ["of f", "of g", "of h"]


@pytest.mark.parametrize("client", BUILDS)
def test_a_result_without_an_id_for_which_no_call_waits_is_refused(client: str) -> None:
    with pytest.raises(ClientError, match="is required"):
        read(client, asked(client, [{"id": "a", "name": "f"}], [{"id": "", "said": "r"}]))


# what a tool gave back


@pytest.mark.parametrize("said", [{"x": 1}, [1, "two"], [{"x": 1}], 7, 0.5, True, False])
@pytest.mark.parametrize("client", BUILDS)
@pytest.mark.parametrize("upstream", BUILDS)
def test_json_that_a_tool_gave_back_goes_up_as_its_text(upstream: str, client: str, said: Any) -> None:
    body = asked(client, [{"id": "a", "name": "f"}], [{"id": "a", "said": said}])
    if upstream == client:
        assert (
            written(upstream, read(client, body))["input" if client == "responses" else "messages"][-1]
            == (body["input" if client == "responses" else "messages"][-1])
        )
        return
    again = read(upstream, {"max_tokens": 9, **written(upstream, read(client, body))})
    (told,) = [part for part in again.parts() if isinstance(part, ToolResultPart)]
    assert [json.loads(part.text) for part in told.parts if isinstance(part, TextPart)] == [said]


@pytest.mark.parametrize("client", BUILDS)
def test_a_tool_that_gave_nothing_back_gave_an_empty_result(client: str) -> None:
    nothing: list[Any] = [None, "", []]
    for said in nothing:
        given = read(client, asked(client, [{"id": "a", "name": "f"}], [{"id": "a", "said": said}]))
        (told,) = [part for part in given.parts() if isinstance(part, ToolResultPart)]
        assert "".join(part.text for part in told.parts if isinstance(part, TextPart)) == ""
