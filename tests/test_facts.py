"""What the stages of an answer know of its request: the same on a route and on the command line, in every dialect."""

import io
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from pipeline.cli import main
from pipeline.dialect import Dialect, RequestFacts, dialect
from pipeline.events import ToolKind
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions, Exchange
from pipeline.stage import Stage
from pipeline.toolnames import WRAPPED_SCHEMA, OfferedTool, RequestMap
from stages.recipe import default_chain
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests import support as cs
from tests.exchange import answered, route, sent, whole

Json = dict[str, Any]

DIALECTS = ("chat", "messages", "responses")
PAIRS = [*product(DIALECTS, DIALECTS)]
SCHEMA: Json = {"type": "object", "properties": {"x": {"type": "integer"}}}
MARKUP = '<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>'


def asked(client: str, *names: str, **members: Any) -> Json:
    """A request that offers tools of those names."""
    if client == "chat":
        functions = [{"name": name, "parameters": SCHEMA} for name in names]
        tools = [{"type": "function", "function": function} for function in functions]
        return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools, **members}
    if client == "messages":
        tools = [{"name": name, "input_schema": SCHEMA} for name in names]
        turns = [{"role": "user", "content": "hi"}]
        return {"model": "m", "max_tokens": 9, "messages": turns, "tools": tools, **members}
    return {"model": "m", "input": "hi", "tools": [function(name) for name in names], **members}


def function(name: str) -> Json:
    return {"type": "function", "name": name, "parameters": SCHEMA}


def opened(client: str, upstream: str, body: Json) -> Exchange:
    exchange = route(client=client, upstream=upstream).open(json.dumps(body).encode())
    sent(exchange)
    return exchange


def says(upstream: str, text: str, streams: bool) -> bytes:
    """An answer that is one text."""
    if upstream == "chat":
        return cs.sse(cs.text(text[:5]), cs.text(text[5:]), cs.finish(), cs.DONE) if streams else whole(content=text)
    if upstream == "messages":
        message = ms.message({"type": "text", "text": text}, stop_reason="end_turn", usage={"input_tokens": 1})
        block = [ms.start({"type": "text", "text": ""}), ms.text(text[:5]), ms.text(text[5:]), ms.stop()]
        return ms.sse([ms.begin(), *block, ms.told(), ms.END]) if streams else json.dumps(message).encode()
    item = rs.message(text)
    empty = {**item, "content": [], "status": "in_progress"}
    part = {"output_index": 0, "content_index": 0, "item_id": "m1"}
    items = [
        rs.created(),
        rs.added(empty),
        rs.event("response.content_part.added", **part, part={**item["content"][0], "text": ""}),
        rs.text(text[:5]),
        rs.text(text[5:]),
        rs.event("response.output_text.done", **part, text=text),
        rs.event("response.content_part.done", **part, part=item["content"][0]),
        rs.done(item),
    ]
    return ms.sse([*items, rs.terminal(output=[item])]) if streams else json.dumps(rs.response(output=[item])).encode()


FORMS = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
COMING = pytest.mark.parametrize("arrives", [True, False], ids=["from a stream", "from a body"])


@FORMS
@COMING
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_call_that_was_written_as_text_is_a_call_on_every_route(
    client: str, upstream: str, streams: bool, arrives: bool
) -> None:
    exchange = opened(client, upstream, asked(client, "f", stream=streams))
    got = answered(exchange, says(upstream, MARKUP, arrives))
    assert exchange.outcome.recovered == 1
    assert b"tool_call>" not in got.body
    untold = opened(client, upstream, asked(client, stream=streams))
    assert b"tool_call>" in answered(untold, says(upstream, MARKUP, arrives)).body
    assert untold.outcome.recovered == 0


NAMESPACED = [{"type": "namespace", "name": "ns", "tools": [function("a"), {"type": "custom", "name": "k"}]}]
INPUT = '{"input":"x"}'


def calls(upstream: str, name: str, streams: bool) -> bytes:
    """An answer that is one call."""
    if upstream == "chat":
        called = cs.fragment(0, "c", name, INPUT)
        return (
            cs.sse(cs.chunk({"tool_calls": [called]}), cs.finish("tool_calls"), cs.DONE)
            if streams
            else whole("tool_calls", tool_calls=[called])
        )
    block = ms.call("c", name, {})
    if streams:
        return ms.sse([ms.begin(), ms.start(block), ms.given(INPUT), ms.stop(), ms.told("tool_use"), ms.END])
    block = ms.call("c", name, json.loads(INPUT))
    return json.dumps(ms.message(block, stop_reason="tool_use", usage={"input_tokens": 1})).encode()


@FORMS
@pytest.mark.parametrize("upstream", ["chat", "messages"])
@pytest.mark.parametrize(("name", "kind"), [("k", "custom_tool_call"), ("a", "function_call")])
def test_a_tool_of_a_namespace_is_known_by_its_own_name_too(upstream: str, streams: bool, name: str, kind: str) -> None:
    for given in (name, f"ns__{name}"):
        exchange = opened("responses", upstream, asked("responses", tools=NAMESPACED, stream=streams))
        assert f"ns__{name}" in [tool.get("function", tool)["name"] for tool in sent(exchange)["tools"]]
        body = answered(exchange, calls(upstream, given, streams)).body
        last = json.loads(body.rpartition(b"data: ")[2]) if streams else json.loads(body)
        (item,) = last.get("response", last)["output"]
        assert (item["type"], item["namespace"], item["name"]) == (kind, "ns", name)
        assert item.get("input", INPUT) == ("x" if name == "k" else INPUT)


def test_a_call_as_text_of_a_tool_in_a_namespace_is_a_call_of_it_over_its_own_dialect_too() -> None:
    exchange = opened("responses", "responses", asked("responses", tools=NAMESPACED, stream=True))
    body = answered(exchange, says("responses", MARKUP.replace('"f"', '"a"'), True)).body
    (item,) = [item for item in json.loads(body.rpartition(b"data: ")[2])["response"]["output"] if "name" in item]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "ns", "a")


@FORMS
def test_a_namespace_that_an_upstream_says_itself_stays(streams: bool) -> None:
    exchange = opened("responses", "responses", asked("responses", tools=NAMESPACED, stream=streams))
    item = rs.call(INPUT, name="a", namespace="other")
    raw = ms.sse([rs.created(), rs.added(item), rs.done(item), rs.terminal(output=[item])])
    body = answered(exchange, raw).body
    assert body == raw if streams else json.loads(body)["output"][0]["namespace"] == "other"


# The command line


class Remembering:
    """The default recipe, which remembers what each hop was told of the request."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, RequestFacts]] = []

    def __call__(
        self,
        upstream: Dialect,
        client: Dialect,
        *,
        arriving: Form | None,
        leaving: Form,
        facts: RequestFacts,
        ledger: Ledger,
        limits: Limits,
        outcome: Outcome,
        options: AnswerOptions,
    ) -> Stage[bytes, bytes]:
        self.told.append((upstream.name, client.name, facts))
        return default_chain(
            upstream,
            client,
            arriving=arriving,
            leaving=leaving,
            facts=facts,
            ledger=ledger,
            limits=limits,
            outcome=outcome,
            options=options,
        )


def commanded(
    patch: pytest.MonkeyPatch, path: Path, command: str, hops: Sequence[str], body: Json, answer: bytes
) -> list[tuple[str, str, RequestFacts]]:
    """What each hop of a command is told, the upstream's first."""
    path.write_text(json.dumps(body))
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answer)))
    recipe = Remembering()
    over = ["--via", hops[1]] if len(hops) > 2 else []
    argv = [command, "--from", hops[0], "--to", hops[-1], *over, "--request", str(path)]
    assert main(argv, recipe=recipe) == 0
    return recipe.told


@FORMS
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_the_command_line_tells_the_stages_what_a_route_does(
    client: str, upstream: str, streams: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = asked(client, "f", "x" * 80, stream=streams)
    command = "convert" if streams else "answer"
    answer = says(upstream, "hi", streams)
    (told,) = commanded(monkeypatch, tmp_path / "r", command, (upstream, client), body, answer)
    assert told == (upstream, client, opened(client, upstream, body).facts)


@FORMS
def test_over_a_third_dialect_each_hop_is_told_of_its_own_request(
    streams: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = asked("responses", tools=NAMESPACED, stream=streams)
    hops = ("messages", "chat", "responses")
    answer = says("messages", "hi", streams)
    up, down = commanded(monkeypatch, tmp_path / "r", "convert" if streams else "answer", hops, body, answer)
    outer = opened("responses", "chat", body)
    inner = opened("chat", "messages", sent(outer))
    assert down == ("chat", "responses", outer.facts)
    assert up == ("messages", "chat", evolve(inner.facts, stream=True, include_usage=True))
    assert {*up[2].tools} == {"ns__a", "ns__k"}


@pytest.mark.parametrize("hops", [("chat", "responses"), ("chat", "messages", "responses")], ids=len)
def test_a_request_that_cannot_go_up_is_told_as_the_clients_dialect_reads_it(
    hops: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body: Json = {"model": "m", "tools": [function("f")]}
    *inner, down = commanded(monkeypatch, tmp_path / "r", "convert", hops, body, says("chat", MARKUP, True))
    assert down[2] == dialect("responses").facts(body)
    assert [told for *_, told in inner] == [RequestFacts(model="m", tools={"f": SCHEMA})] * (len(hops) - 2)


def test_a_request_that_goes_up_a_part_of_the_way_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    body = asked("chat", "f", messages=[{"role": "user", "content": [sound]}], stream=True)
    first = opened("chat", "chat", body)
    assert not hasattr(route(client="chat", upstream="messages").open(json.dumps(sent(first)).encode()).request, "path")
    hops = ("messages", "chat", "chat")
    inner, outer = commanded(monkeypatch, tmp_path / "r", "convert", hops, body, says("messages", "hi", True))
    assert outer[2] == first.facts
    assert inner[2] == dialect("chat").facts(sent(first))


# What a request says


@pytest.mark.parametrize(
    ("client", "members", "names"),
    [
        ("responses", {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]}, {"f"}),
        (
            "responses",
            {
                "tools": [*NAMESPACED, function("a"), function("b")],
                "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "a"}]},
            },
            {"a"},
        ),
        (
            "responses",
            {
                "tools": [*NAMESPACED, function("a"), function("b")],
                "tool_choice": {
                    "type": "allowed_tools",
                    "tools": [{"name": "a", "namespace": "ns"}, {"name": "b", "namespace": "functions"}],
                },
            },
            {"ns__a", "b"},
        ),
        ("responses", {"tools": [function("a")], "tool_choice": {"type": "function", "name": "a"}}, {"a"}),
        (
            "chat",
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "tools": [
                            {"type": "function", "function": {"name": "f"}},
                            {"type": "custom", "custom": {"name": "k"}},
                            {"name": "g"},
                        ]
                    },
                },
                "tools": [
                    *({"type": "function", "function": {"name": name}} for name in ("f", "g", "h")),
                    {"type": "custom", "custom": {"name": "k"}},
                ],
            },
            {"f", "g", "k"},
        ),
        (
            "messages",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_addition",
                                "tool": {
                                    "type": "tool_definition",
                                    "definition": {"name": "late", "input_schema": SCHEMA},
                                },
                            },
                            {"type": "text", "text": "hi"},
                        ],
                    }
                ]
            },
            {"late"},
        ),
        (
            "messages",
            {
                "tools": [
                    {"type": "bash_20250124", "name": "bash"},
                    {"type": "text_editor_20250728", "name": "edit"},
                    {"type": "memory_20250818", "name": "memory"},
                    {"type": "web_search_20250305", "name": "web_search"},
                ]
            },
            {"bash", "edit", "memory"},
        ),
    ],
)
def test_the_tools_that_a_model_may_call_are_told_of_every_upstream(
    client: str, members: Json, names: set[str]
) -> None:
    body = asked(client, **members)
    assert dialect(client).facts(body).tools.keys() == names
    for upstream in DIALECTS:
        assert opened(client, upstream, body).facts.tools.keys() == names


@pytest.mark.parametrize("client", DIALECTS)
def test_a_dialect_knows_the_tools_of_a_request_that_goes_nowhere(client: str) -> None:
    facts = dialect(client).facts(asked(client, "f", "g"))
    assert facts.map.tools == {"f": OfferedTool("f"), "g": OfferedTool("g")}
    assert facts.tools == {"f": SCHEMA, "g": SCHEMA}


@pytest.mark.parametrize("choice", [{"type": "allowed_tools", "allowed_tools": 7}, 7, {"type": "allowed_tools"}])
def test_an_odd_choice_counts_as_none(choice: Any) -> None:
    assert dialect("chat").facts(asked("chat", "f", tool_choice=choice)).tools == {"f": SCHEMA}


def test_a_route_knows_tools_by_the_upstreams_names_and_by_their_own() -> None:
    f, g, k = OfferedTool("f"), OfferedTool("g", "ns"), OfferedTool("k", kind=ToolKind.CUSTOM)
    facts = RequestFacts(
        model="m",
        map=RequestMap(tools={"f": f, "ns__g": g, "g": g, "k": k}),
        tools={"f": SCHEMA, "ns__g": {}, "k": WRAPPED_SCHEMA},
    )
    wrapped = evolve(k, wrapped=True)
    given = RequestMap(tools={"theirs": g, "k": wrapped}, seen={"old": OfferedTool("older")}, ids={"a": "b"})
    told = facts.sent(given)
    assert told.tools == {"f": SCHEMA, "theirs": {}, "k": WRAPPED_SCHEMA}
    assert told.map.tools == {"f": f, "ns__g": g, "g": g, "k": wrapped, "theirs": g}
    assert (told.map.seen, told.map.ids, told.model) == (given.seen, given.ids, "m")


def test_a_name_that_the_upstream_was_given_means_the_tool_that_it_was_given_for() -> None:
    own, other = OfferedTool("a", "ns"), OfferedTool("b")
    facts = RequestFacts(map=RequestMap(tools={"ns__a": own, "a": own, "b": other}))
    assert facts.sent(RequestMap(tools={"ns__a": own, "a": other})).map.tools["a"] == other


def test_what_a_route_tells_besides_is_an_estimate() -> None:
    facts = opened("chat", "messages", asked("chat", "f")).facts
    assert facts.usage is not None
    assert evolve(facts, usage=None, map=RequestMap()) == evolve(
        dialect("chat").facts(asked("chat", "f")), map=RequestMap()
    )
