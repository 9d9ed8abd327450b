"""What a client's own dialect is told though it cannot be read here; and what our refusals say that they are about."""

import json
from typing import Any

import pytest

from pipeline import envelope
from pipeline.reply import Refusal
from pipeline.request import RequestOptions
from pipeline.route import AnswerOptions
from tests.exchange import refusal, route, sent
from tests.request_shapes import JSON

MINIMAL: dict[str, JSON] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "go"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]},
    "responses": {"model": "m", "input": "go"},
}
ODD: dict[str, tuple[str, ...]] = {
    "chat": (
        *("model", "messages", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "logprobs"),
        *("max_completion_tokens", "max_tokens", "stop", "temperature", "top_p", "top_k", "seed", "n", "logit_bias"),
        *("reasoning_effort", "reasoning", "thinking", "response_format", "verbosity", "metadata", "user", "store"),
        *("stream", "stream_options", "service_tier", "prompt_cache_key", "safety_identifier", "modalities"),
    ),
    "messages": (
        *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stop_sequences", "temperature"),
        *("top_p", "top_k", "thinking", "output_config", "output_format", "metadata", "service_tier", "stream"),
        *("cache_control", "thread"),
    ),
    "responses": (
        *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens"),
        *("temperature", "top_p", "top_logprobs", "include", "reasoning", "text", "metadata", "user", "store"),
        *("stream", "service_tier", "prompt_cache_key", "safety_identifier"),
    ),
}
"""Members of each dialect that we read."""
CASES = [(name, member) for name, members in ODD.items() for member in members]


@pytest.mark.parametrize("odd", [5, "hot", [[]], {"type": 7}], ids=repr)
@pytest.mark.parametrize(("name", "member"), CASES)
def test_a_member_of_the_wrong_kind_goes_up_to_its_own_dialect_and_it_is_told_that_nobody_read_it(
    name: str, member: str, odd: Any
) -> None:
    given = {**MINIMAL[name], member: odd, "zz": 1}
    exchange = route(name, name).open(json.dumps(given).encode())
    assert sent(exchange) == given
    assert {entry["action"] for entry in exchange.ledger} <= {"not read"}
    assert {entry["path"].split(".")[0].split("[")[0] for entry in exchange.ledger} <= {member}


@pytest.mark.parametrize("name", MINIMAL)
def test_a_body_without_what_it_must_have_goes_up_to_its_own_dialect(name: str) -> None:
    for left in (*MINIMAL[name], "all"):
        given = {key: value for key, value in MINIMAL[name].items() if left not in (key, "all")}
        exchange = route(name, name).open(json.dumps(given).encode())
        assert sent(exchange) == given
        assert exchange.ledger == []


@pytest.mark.parametrize("client", MINIMAL)
@pytest.mark.parametrize("upstream", MINIMAL)
def test_a_body_that_names_no_model_asks_for_the_one_that_the_route_has_for_it(client: str, upstream: str) -> None:
    given = json.dumps({**MINIMAL[client], "model": None}).encode()
    assert sent(route(client, upstream, models={"": "big", "m": "small"}).open(given))["model"] == "big"
    if client != upstream:
        status, error = refusal(route(client, upstream, models={"m": "small"}).open(given))
        assert (status, error["message"]) == (400, "model: is required")


def test_what_the_route_decides_holds_also_beside_what_cannot_be_read() -> None:
    on = route("chat", "chat", requests=RequestOptions(most_tokens=5), models={"m": "n"}, streams_only=True)
    asked = {**MINIMAL["chat"], "max_tokens": 9, "temperature": "hot", "tools": {}}
    exchange = on.open(json.dumps(asked).encode())
    assert sent(exchange) == {
        **asked,
        "model": "n",
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert [(entry["path"], entry["reason"]) for entry in exchange.ledger if entry["action"] == "not read"] == [
        ("tools", "must be a list"),
        ("temperature", "must be a number"),
    ]


STREAM: dict[str, Any] = {"stream": True}
COUNTED: dict[str, Any] = {**STREAM, "stream_options": {"include_usage": True}}
COLD = RequestOptions(sampling=False)
LOW = RequestOptions(effort="low")
DECIDED: list[tuple[str, dict[str, Any], JSON, JSON, tuple[str, ...]]] = [
    ("chat", {"streams_only": True}, {"stream": "false"}, COUNTED, ()),
    ("messages", {"streams_only": True}, {"stream": 0.5}, STREAM, ()),
    ("responses", {"streams_only": True}, {"stream": "false"}, STREAM, ()),
    ("chat", {"models": {"": "big"}}, {"model": 5}, {"model": "big"}, ()),
    ("messages", {"requests": RequestOptions(most_tokens=100)}, {"max_tokens": "5000"}, {"max_tokens": 100}, ()),
    (
        *("responses", {"requests": RequestOptions(most_tokens=100)}),
        *({"max_output_tokens": "5000"}, {"max_output_tokens": 100}, ()),
    ),
    (
        *("chat", {"requests": RequestOptions(most_tokens=100)}),
        *({"max_completion_tokens": "5000"}, {"max_completion_tokens": 100}, ()),
    ),
    ("chat", {"requests": RequestOptions(most_tokens=100)}, {"max_tokens": "5000"}, {"max_tokens": 100}, ()),
    (
        *("chat", {"requests": RequestOptions(most_tokens=100)}),
        *({"max_completion_tokens": "5000", "max_tokens": "x"}, {"max_completion_tokens": 100}, ("max_tokens",)),
    ),
    ("chat", {"requests": COLD}, {"temperature": "0.5", "top_p": "x"}, {}, ("temperature", "top_p")),
    ("messages", {"requests": COLD}, {"temperature": "0.5", "top_k": "x"}, {}, ("temperature", "top_k")),
    ("responses", {"requests": COLD}, {"temperature": "0.5"}, {}, ("temperature",)),
    ("chat", {"requests": LOW}, {"reasoning_effort": 5}, {"reasoning_effort": "low"}, ()),
    ("chat", {"requests": RequestOptions(effort="")}, {"reasoning_effort": 5}, {}, ("reasoning_effort",)),
    (
        *("messages", {"requests": LOW}, {"thinking": 5, "output_config": 5}),
        *({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, ()),
    ),
    (
        *("responses", {"requests": LOW}, {"reasoning": 5, "include": 5}),
        *({"reasoning": {"effort": "low", "summary": "auto"}, "include": 5}, ()),
    ),
]
"""What of a body cannot be read and the route decides: what goes up instead, and what does not go up at all."""


@pytest.mark.parametrize(("name", "options", "odd", "due", "dropped"), DECIDED)
def test_what_the_route_decides_holds_also_of_what_cannot_be_read_itself(
    name: str, options: dict[str, Any], odd: JSON, due: JSON, dropped: tuple[str, ...]
) -> None:
    given = {**MINIMAL[name], **odd}
    exchange = route(name, name, **options).open(json.dumps(given).encode())
    assert sent(exchange) == {key: value for key, value in {**given, **due}.items() if key not in dropped}
    told = {entry["path"] for entry in exchange.ledger if entry["action"] != "not read"}
    assert odd.keys() - {"include"} <= told
    assert {entry["path"] for entry in exchange.ledger if entry["action"] == "dropped"} == {*dropped}


def test_an_unread_bound_beside_one_within_the_most_does_not_go_up() -> None:
    on = route("chat", "chat", requests=RequestOptions(most_tokens=100))
    exchange = on.open(json.dumps({**MINIMAL["chat"], "max_tokens": 9, "max_completion_tokens": "5000"}).encode())
    assert sent(exchange) == {**MINIMAL["chat"], "max_completion_tokens": 9}
    assert ("max_completion_tokens", "rewritten") in {(entry["path"], entry["action"]) for entry in exchange.ledger}


def test_an_unread_bound_goes_up_by_the_one_name_that_the_upstream_knows() -> None:
    on = route("chat", "chat", requests=RequestOptions(old_max_tokens=True))
    for odd, due, action in (
        ({"max_completion_tokens": "x"}, {"max_tokens": "x"}, "rewritten"),
        ({"max_completion_tokens": "x", "max_tokens": 9}, {"max_tokens": 9}, "dropped"),
        ({"max_completion_tokens": "x", "max_tokens": "y"}, {"max_tokens": "y"}, "dropped"),
    ):
        exchange = on.open(json.dumps({**MINIMAL["chat"], **odd}).encode())
        assert sent(exchange) == {**MINIMAL["chat"], **due}
        assert ("max_completion_tokens", action) in {(entry["path"], entry["action"]) for entry in exchange.ledger}


def test_what_the_route_does_not_decide_goes_up_though_it_cannot_be_read() -> None:
    for name, options, odd in (
        ("messages", RequestOptions(effort=""), {"output_config": 5}),
        ("chat", RequestOptions(), {"stream": True, "stream_options": 5}),
        ("messages", RequestOptions(effort=""), {"max_tokens": "5000"}),
        ("responses", RequestOptions(effort=""), {"include": 5}),
    ):
        given = {**MINIMAL[name], **odd}
        exchange = route(name, name, requests=options).open(json.dumps(given).encode())
        assert sent(exchange) == given
        assert {entry["action"] for entry in exchange.ledger} == {"not read"}


def test_an_envelope_that_cannot_be_opened_stays_here() -> None:
    sealed = envelope.seal("other", "m", "t", "blob")
    messages = [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": sealed}]},
        {"role": 7, "content": "x"},
    ]
    on = route("messages", "messages", answers=AnswerOptions(upstream="mine"))
    status, error = refusal(on.open(json.dumps({**MINIMAL["messages"], "messages": messages}).encode()))
    assert (status, error["message"]) == (400, "messages[1].role: must be a string")


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"a":' * 300])
def test_what_is_no_json_object_is_refused_also_toward_its_own_dialect(body: bytes) -> None:
    for name in MINIMAL:
        assert isinstance(route(name, name).open(body).request, Refusal)


@pytest.mark.parametrize(
    ("client", "members", "param"),
    [
        ("chat", {"temperature": "hot"}, "temperature"),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ("chat", {"messages": []}, "messages"),
        ("chat", {"n": 2}, "n"),
        ("chat", {"tools": [{"type": "function"}]}, "tools[0].function"),
        ("responses", {"input": [{"type": "function_call"}]}, "input[0].call_id"),
        ("responses", {"previous_response_id": "r"}, "previous_response_id"),
        ("responses", {"include": [7]}, "include[0]"),
    ],
)
def test_a_refusal_of_ours_says_in_param_which_member_it_is_about(client: str, members: JSON, param: str) -> None:
    status, error = refusal(route(client, "messages").open(json.dumps({**MINIMAL[client], **members}).encode()))
    assert (status, error["param"]) == (400, param)
    assert error["message"].startswith(f"{param}: ")


def test_a_refusal_that_is_about_no_member_has_no_param() -> None:
    assert refusal(route("chat", "messages").open(b"[]"))[1]["param"] is None
