"""The tools of a Responses client over a whole route: each is called by its own name, in its namespace, as its kind."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.route import Exchange
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests.exchange import answered, route, sent, whole
from tests.exchange import calls as chat_calls

PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}}


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": PARAMETERS}


TOOLS: list[dict[str, Any]] = [
    function("list"),
    {"type": "namespace", "name": "collab", "tools": [function("list"), {"type": "custom", "name": "patch"}]},
    {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}, function("wait")]},
    function("collab__list_"),
    {"type": "custom", "name": "patch"},
]
DECLARED = [
    ("function_call", "list", None),
    ("function_call", "list", "collab"),
    ("custom_tool_call", "patch", "collab"),
    ("custom_tool_call", "exec", None),
    ("function_call", "wait", None),
    ("function_call", "collab__list_", None),
    ("custom_tool_call", "patch", None),
]
"""How a call of each is written. In the namespace of all tools it may stand without one."""
INPUT = '{"input":"x"}'


def opened(upstream: str, streams: bool, tools: Sequence[dict[str, Any]] = TOOLS, **members: Any) -> Exchange:
    asked = {"model": "m", "input": "hi", "stream": streams, "tools": tools, **members}
    return route(client="responses", upstream=upstream).open(json.dumps(asked).encode())


def names_in(exchange: Exchange) -> list[str]:
    """The tools that the upstream was given, by its names."""
    return [tool.get("function", tool)["name"] for tool in sent(exchange)["tools"]]


def chat_answer(names: Sequence[str], streams: bool) -> bytes:
    tool_calls = chat_calls(*((f"c{at}", name, INPUT) for at, name in enumerate(names)))
    if not streams:
        return whole("tool_calls", tool_calls=tool_calls)
    delta = {"role": "assistant", "tool_calls": [{**call, "index": at} for at, call in enumerate(tool_calls)]}
    chunk = {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"


def messages_answer(names: Sequence[str], streams: bool) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    if not streams:
        blocks = [ms.call(f"c{at}", name, {"input": "x"}) for at, name in enumerate(names)]
        return json.dumps(ms.message(*blocks, stop_reason="tool_use", usage=usage)).encode()
    blocks = [
        one
        for at, name in enumerate(names)
        for one in (ms.start(ms.call(f"c{at}", name), at), ms.given(INPUT, at), ms.stop(at))
    ]
    return ms.sse([ms.begin(usage=usage), *blocks, ms.told("tool_use", usage), ms.END])


ANSWERS = {"chat": chat_answer, "messages": messages_answer}


def output_of(exchange: Exchange, *reads: bytes) -> list[dict[str, Any]]:
    """The items that the client acts on: those that are told done, or those of a whole answer."""
    got = answered(exchange, *reads)
    assert got.status == 200, got.body
    if not got.is_stream:
        output: list[dict[str, Any]] = json.loads(got.body)["output"]
        return output
    events = [json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: {")]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    begun = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [declared(item) for item in begun] == [declared(item) for item in done]
    assert events[-1]["response"]["output"] == done
    return done


def declared(item: dict[str, Any]) -> tuple[Any, ...]:
    return item["type"], item["name"], item.get("namespace")


BOTH = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])


@BOTH
@pytest.mark.parametrize("upstream", [*ANSWERS])
def test_each_tool_is_called_as_it_was_declared(upstream: str, streams: bool) -> None:
    exchange = opened(upstream, streams)
    names = names_in(exchange)
    assert len({*names}) == len(DECLARED)
    for arriving in (True, False):
        items = output_of(opened(upstream, streams), ANSWERS[upstream](names, arriving))
        assert [declared(item) for item in items] == DECLARED
        assert [item.get("input", INPUT) for item in items] == [
            "x" if kind == "custom_tool_call" else INPUT for kind, *_ in DECLARED
        ]


@BOTH
@pytest.mark.parametrize("upstream", [*ANSWERS])
def test_tools_that_come_among_the_items_are_called_as_they_were_declared(upstream: str, streams: bool) -> None:
    """Codex's newest models are offered all tools so."""
    items = [
        {"type": "additional_tools", "role": "developer", "tools": TOOLS},
        {"type": "message", "role": "user", "content": "hi"},
    ]
    exchange = opened(upstream, streams, tools=[], input=items)
    made = output_of(exchange, ANSWERS[upstream](names_in(exchange), streams))
    assert [declared(item) for item in made] == DECLARED


@BOTH
def test_a_responses_upstream_is_given_the_namespaces_and_says_them_again(streams: bool) -> None:
    exchange = opened("responses", streams)
    assert [(tool["type"], tool["name"]) for tool in sent(exchange)["tools"]] == [
        (tool["type"], tool["name"]) for tool in TOOLS
    ]
    items = [
        rs.call(INPUT, id="fc1", call_id="c1", name="list", namespace="collab"),
        rs.call(INPUT, id="fc2", call_id="c2", name="list"),
        rs.call(INPUT, id="fc3", call_id="c3", name="wait", namespace="functions"),
    ]
    body = json.dumps(rs.response(output=items)).encode()
    if streams:
        told = [
            rs.created(),
            *(one for at, item in enumerate(items) for one in (rs.added(item, at), rs.done(item, at))),
        ]
        body = ms.sse([*told, rs.terminal(output=items)])
    assert [declared(item) for item in output_of(exchange, body)] == [
        ("function_call", "list", "collab"),
        ("function_call", "list", None),
        ("function_call", "wait", "functions"),
    ]
