"""Chat clients of the deprecated words: they offer `functions`, and read one `function_call`."""

import json
from typing import Any

import pytest
from attrs import evolve

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.request import DEFAULT_OPTIONS, Role, TextPart, Turn
from tests.exchange import Got, answered, route, sent
from tests.lawful import check_law
from tests.support import sse

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "go"}], "functions": [FUNCTION]}
USAGE = {"input_tokens": 1, "output_tokens": 1}
ARGUMENTS = '{"x":"é"}'


def use(at: int, name: str = "f", said: str = ARGUMENTS) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": {}}
    delta = {"type": "input_json_delta"}
    return [
        {"type": "content_block_start", "index": at, "content_block": block},
        {"type": "content_block_delta", "index": at, "delta": {**delta, "partial_json": said[:3]}},
        {"type": "content_block_delta", "index": at, "delta": {**delta, "partial_json": said[3:]}},
        {"type": "content_block_stop", "index": at},
    ]


def answer(*blocks: list[dict[str, Any]], reason: str = "tool_use") -> bytes:
    start = {"type": "message_start", "message": {"id": "msg_1", "content": [], "model": "m", "usage": USAGE}}
    said = [event for block in blocks for event in block]
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": USAGE}
    return sse(start, *said, end, {"type": "message_stop"})


def got(body: bytes, stream: bool, **members: Any) -> Got:
    asked = json.dumps({**ASKED, "stream": stream, **members}).encode()
    return answered(route("chat", "messages").open(asked), body)


def deltas(answer: Got) -> tuple[list[dict[str, Any]], str]:
    """The deltas of a stream, and how it finished."""
    check_law("chat", answer.body)
    lines = [line.removeprefix("data: ") for line in answer.body.decode().splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    return [choice["delta"] for choice in choices], choices[-1]["finish_reason"]


def test_a_call_is_told_in_a_stream_as_such_a_client_reads_it() -> None:
    told, finish = deltas(got(answer(use(0)), True))
    assert told == [
        {"role": "assistant", "content": None},
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": ARGUMENTS[:3]}},
        {"function_call": {"arguments": ARGUMENTS[3:]}},
        {},
    ]
    assert finish == "function_call"


def test_a_call_is_told_in_a_whole_answer_as_such_a_client_reads_it() -> None:
    (choice,) = json.loads(got(answer(use(0)), False).body)["choices"]
    assert choice["message"]["function_call"] == {"name": "f", "arguments": ARGUMENTS}
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"


@pytest.mark.parametrize("stream", [True, False])
def test_only_the_first_call_can_be_told_and_the_others_are_recorded(stream: bool) -> None:
    answer_ = got(answer(use(0), use(1, "g"), use(2, "h", "{}")), stream)
    assert b'"f"' in answer_.body
    assert b'"g"' not in answer_.body
    assert b'"h"' not in answer_.body
    assert answer_.body.count(b"toolu_") == 0
    lost = [entry for entry in answer_.exchange.ledger if entry["path"] == "tool use"]
    assert [entry["action"] for entry in lost] == ["dropped"]


def test_a_call_without_arguments_and_one_that_the_limit_cut() -> None:
    told, finish = deltas(got(answer(use(0, said="")), True))
    assert "".join(delta["function_call"]["arguments"] for delta in told[1:-1]) == "{}"
    assert finish == "function_call"
    told, finish = deltas(got(answer(use(0, said='{"x":')[:-1], reason="max_tokens"), True))
    assert finish == "length"


@pytest.mark.parametrize(
    "members", [{"tools": [{"type": "function", "function": FUNCTION}]}, {"functions": []}, {"functions": None}]
)
def test_a_client_that_knows_tools_is_told_of_tools(members: dict[str, Any]) -> None:
    told, finish = deltas(got(answer(use(0), use(1)), True, **members))
    assert [call["index"] for delta in told for call in delta.get("tool_calls", ())] == [0, 0, 0, 1, 1, 1]
    assert finish == "tool_calls"


@pytest.mark.parametrize(
    ("upstream", "member", "due"),
    [
        ("messages", "tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
        ("responses", "parallel_tool_calls", False),
    ],
)
def test_no_calls_beside_each_other_are_asked_for(upstream: str, member: str, due: Any) -> None:
    exchange = route("chat", upstream).open(json.dumps(ASKED).encode())
    assert sent(exchange)[member] == due
    assert exchange.ledger == []


# The way up


HISTORY = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"x":1}'}},
    {"role": "function", "name": "f", "content": "one"},
    {"role": "assistant", "content": "so", "function_call": {"name": "g", "arguments": "{}"}},
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "two"},
    {"role": "function", "name": "g", "content": "three"},
]


def test_each_result_goes_up_with_the_call_of_its_name() -> None:
    body = sent(route("chat", "responses").open(json.dumps({**ASKED, "messages": HISTORY}).encode()))
    calls = {item["call_id"]: item["name"] for item in body["input"] if item.get("type") == "function_call"}
    results = [
        (item["call_id"], item["output"]) for item in body["input"] if item.get("type") == "function_call_output"
    ]
    assert sorted((calls[call], output) for call, output in results) == [("f", "one"), ("f", "two"), ("g", "three")]
    assert len(calls) == 3


def test_a_result_without_its_call_is_text() -> None:
    said = [{"role": "user", "content": "go"}, {"role": "function", "name": "f", "content": "alone"}]
    body = sent(route("chat", "messages").open(json.dumps({**ASKED, "messages": said}).encode()))
    assert "alone" in json.dumps(body["messages"])
    assert "tool_result" not in json.dumps(body["messages"])


def test_what_was_changed_on_the_way_to_its_own_dialect_stays_in_its_words() -> None:
    chat = dialect("chat")
    given = {**ASKED, "messages": HISTORY, "function_call": {"name": "f"}}
    request = chat.parse(given, ledger=Ledger(), limits=DEFAULT_LIMITS)
    more = Turn(Role.USER, (TextPart("more"),))
    changed = evolve(request, turns=(*request.turns, more), tools=request.tools * 2)
    body = chat.build(changed, ledger=Ledger(), limits=DEFAULT_LIMITS, options=DEFAULT_OPTIONS).body
    assert body == {
        **given,
        "messages": [*HISTORY, {"role": "user", "content": "more"}],
        "functions": [FUNCTION, FUNCTION],
    }


WRITTEN = (
    '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>'
)


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_was_written_as_text_is_told_so_too_over_one_dialect(stream: bool) -> None:
    asked = json.dumps({**ASKED, "stream": stream}).encode()
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {
        **chunk,
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": WRITTEN}, "finish_reason": None}],
    }
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    choice = {"index": 0, "message": {"role": "assistant", "content": WRITTEN}, "finish_reason": "stop"}
    body = sse(said, end, "[DONE]") if stream else json.dumps({"id": "c", "choices": [choice]}).encode()
    answer_ = answered(route("chat", "chat").open(asked), body)
    assert b"tool_call" not in answer_.body
    if stream:
        lines = [line.removeprefix("data: ") for line in answer_.body.decode().splitlines() if "choices" in line]
        told = [choice for line in lines for choice in json.loads(line)["choices"]]
        calls = [one["delta"]["function_call"] for one in told if "function_call" in one["delta"]]
        assert "".join(call["arguments"] for call in calls) == '{"x": 1}'
    else:
        told = json.loads(answer_.body)["choices"]
        assert told[0]["message"]["function_call"] == {"name": "f", "arguments": '{"x": 1}'}
    assert told[-1]["finish_reason"] == "function_call"
    assert "tool use" in [entry["path"] for entry in answer_.exchange.ledger]
