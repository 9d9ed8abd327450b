"""What a route decides of the requests it sends up: each option, over each dialect itself and across, whatever the
client says of the members that it is about."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.reply import Refusal
from pipeline.request import RequestOptions
from pipeline.route import Exchange
from tests.exchange import route, sent
from tests.request_shapes import JSON

GO = [{"role": "user", "content": "go"}]
MINIMAL: dict[str, JSON] = {
    "chat": {"model": "m", "messages": GO},
    "messages": {"model": "m", "max_tokens": 4000, "messages": GO},
    "responses": {"model": "m", "input": "go"},
}
PAIRS = [(client, upstream) for client in MINIMAL for upstream in MINIMAL]
FORMAT = {"type": "json_schema", "schema": {"type": "object"}}
UPDATES = {"type": "adaptive", "display": "updates"}
NONE: JSON = {"effort": "none"}
BOUNDS = {
    "chat": ("max_tokens", "max_completion_tokens"),
    "messages": ("max_tokens",),
    "responses": ("max_output_tokens",),
}
LEAST_BUDGET = 1024

# what a client may say of reasoning, read or not
REASONING: dict[str, list[JSON]] = {
    "chat": [
        {},
        {"reasoning_effort": "high"},
        {"reasoning_effort": 7},
        {"reasoning_effort": "ultra"},
        {"reasoning": {"effort": "high", "summary": "detailed", "zz": 1}},
        {"reasoning": {"effort": 7, "exclude": True, "zz": 1}},
        {"thinking": {"type": "enabled", "budget_tokens": 20_000, "zz": 1}, "thinking_budget": "x"},
        {"thinking": 5, "enable_thinking": True},
    ],
    "messages": [
        {},
        {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "high", "format": FORMAT, "task_budget": {}, "zz": 1}},
        {
            "output_config": {"effort": 7, "format": FORMAT, "zz": 1},
            "thinking": {"type": "adaptive", "display": "updates"},
        },
        {"output_config": 5, "thinking": 5},
        {"output_config": {"effort": "ultra"}, "thinking": {"type": "zz", "display": "q", "zz": 1}},
        {"thinking": {"type": "enabled", "budget_tokens": 3000}, "output_config": {"effort": "max"}},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": 7, "display": "summarized"}},
    ],
    "responses": [
        {},
        {"reasoning": {"effort": "high", "summary": "detailed"}},
        {"reasoning": {"effort": 7, "summary": "detailed", "context": "c", "zz": 1}},
        {"reasoning": {"effort": "ultra", "generate_summary": "concise", "mode": "m"}},
        {"reasoning": {"summary": 7}, "include": 5},
        {"reasoning": 5},
    ],
}
WORDS = {  # that ask for reasoning
    "chat": ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget"),
    "messages": ("thinking", "output_config.effort"),
    "responses": ("reasoning",),
}
DECIDED = {  # what of them a policy says instead
    "chat": (
        *("reasoning_effort", "enable_thinking", "thinking_budget", "reasoning.effort", "reasoning.enabled"),
        *("reasoning.max_tokens", "thinking.type", "thinking.budget_tokens"),
    ),
    "messages": ("output_config.effort", "thinking.type", "thinking.budget_tokens"),
    "responses": ("reasoning.effort",),
}
OWN = [(name, asked) for name, several in REASONING.items() for asked in several]
CROSS = [(name, upstream, asked) for name, asked in OWN for upstream in MINIMAL]


def opened(client: str, upstream: str, asked: JSON, **options: Any) -> Exchange:
    body = json.dumps({**MINIMAL[client], **asked}).encode()
    return route(client, upstream, requests=RequestOptions(**options)).open(body)


def goes(client: str, upstream: str, asked: JSON, **options: Any) -> tuple[JSON, Exchange] | None:
    """What goes up, and the exchange; None where another dialect refuses what it cannot read."""
    exchange = opened(client, upstream, asked, **options)
    if client != upstream and isinstance(exchange.request, Refusal):
        return None
    return sent(exchange), exchange


def at(body: Any, path: str) -> Any:
    """What stands at a path; None if nothing."""
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body


def leaves(body: JSON, where: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        path = f"{where}.{name}" if where else name
        if isinstance(value, dict) and value:
            yield from leaves(value, path)
        elif value is not None:
            yield path, value


def check_told(given: JSON, found: JSON, exchange: Exchange) -> None:
    """Whatever of a client's body is another toward its own dialect, or gone, is told, and once."""
    told = [entry["path"] for entry in exchange.ledger if entry["action"] != "not read"]
    assert len(told) == len(set(told)), exchange.ledger
    for path, value in leaves(given):
        if at(found, path) != value:
            heads = [path[: end or None] for end in [*(n for n, c in enumerate(path) if c == "."), 0]]
            assert any(head in told for head in heads), (path, exchange.ledger)


def check_lawful(name: str, found: JSON, most: int | None = None) -> None:
    """No bound is above the most, and a budget is what the API takes."""
    for bound in BOUNDS[name]:
        if most is not None and type(found.get(bound)) is int:
            assert found[bound] <= most
    thinking = found.get("thinking") if name == "messages" else None
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        assert LEAST_BUDGET <= thinking["budget_tokens"] < found["max_tokens"]


@pytest.mark.parametrize(("client", "upstream", "asked"), CROSS)
@pytest.mark.parametrize("unsure", [{}, {"thinking_budget": True}, {"off_effort": ""}], ids=str)
def test_a_route_that_says_nothing_of_reasoning_says_nothing(
    client: str, upstream: str, asked: JSON, unsure: JSON
) -> None:
    if (got := goes(client, upstream, asked, effort="", **unsure)) is None:
        return
    found, exchange = got
    assert [word for word in WORDS[upstream] if at(found, word) is not None] == []
    if client == upstream:
        due = {name: value for name, value in {**MINIMAL[client], **asked}.items() if name not in WORDS[client]}
        if isinstance(config := due.get("output_config"), dict):
            due["output_config"] = {name: value for name, value in config.items() if name != "effort"}
        assert found == {name: value for name, value in due.items() if value != {}}
        check_told({**MINIMAL[client], **asked}, found, exchange)
    elif any(word in asked for word in WORDS[client]):
        assert exchange.ledger


@pytest.mark.parametrize(("name", "asked"), OWN)
@pytest.mark.parametrize("options", [{"effort": "low"}, NONE, {**NONE, "off_effort": ""}], ids=str)
def test_a_policys_effort_takes_the_place_of_the_clients_and_of_nothing_beside_it(
    name: str, asked: JSON, options: JSON
) -> None:
    found, exchange = goes(name, name, asked, **options) or ({}, None)
    assert exchange is not None
    word = options["effort"] if "off_effort" not in options else None
    told = {"chat": "reasoning_effort", "messages": "output_config.effort", "responses": "reasoning.effort"}[name]
    if name == "messages":
        due = {"low": "adaptive", "none": "disabled", None: None}[word]
        assert at(found, "thinking.type") == due
        assert at(found, told) == (word if word == "low" else None)
    else:
        assert at(found, told) == word
    gone = "thinking" if name == "messages" and word != "low" else " "
    for path, value in leaves(asked):
        head = path.split(".")[0]
        if path not in DECIDED[name] and not path.startswith(gone) and isinstance(asked[head], dict):
            assert at(found, path) == value, path
    check_told({**MINIMAL[name], **asked}, found, exchange)


@pytest.mark.parametrize("most", [10, 1025])
@pytest.mark.parametrize(
    "options", [{}, {"thinking_budget": True}, {"thinking_budget": True, "effort": "high"}], ids=str
)
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_nothing_that_goes_up_is_above_the_most(client: str, upstream: str, options: JSON, most: int) -> None:
    name = BOUNDS[client][0]
    for own in REASONING[client]:
        for bound in (None, 64_000, "x"):
            asked = {**own, name: bound} if bound is not None else own
            if (got := goes(client, upstream, asked, most_tokens=most, **options)) is not None:
                found, exchange = got
                check_lawful(upstream, found, most)
                if client == upstream:
                    check_told({**MINIMAL[client], **asked}, found, exchange)


def test_each_of_two_names_for_the_bound_is_within_the_most() -> None:
    for asked, due in (
        ({"max_completion_tokens": 5, "max_tokens": 500}, {"max_completion_tokens": 5, "max_tokens": 10}),
        ({"max_completion_tokens": 500, "max_tokens": 5}, {"max_completion_tokens": 10, "max_tokens": 5}),
        ({"max_completion_tokens": 500, "max_tokens": 600}, {"max_completion_tokens": 10, "max_tokens": 10}),
        ({"max_completion_tokens": 5, "max_tokens": 6}, {"max_completion_tokens": 5, "max_tokens": 6}),
    ):
        exchange = opened("chat", "chat", asked, most_tokens=10)
        assert sent(exchange) == {**MINIMAL["chat"], **due}
        assert {entry["path"] for entry in exchange.ledger} == {name for name in asked if asked[name] != due[name]}
    exchange = opened("chat", "chat", {"max_completion_tokens": 5, "max_tokens": 500}, old_max_tokens=True)
    assert sent(exchange) == {**MINIMAL["chat"], "max_tokens": 5}
    assert [entry["path"] for entry in exchange.ledger] == ["max_tokens"]


@pytest.mark.parametrize(
    ("asked", "options", "due", "told"),
    [
        ({"max_tokens": 100}, {}, (24_676, 24_576), {"max_tokens"}),
        ({"max_tokens": 4000}, {"most_tokens": 8192}, (8192, 4096), {"max_tokens"}),
        ({"max_tokens": 64_000}, {"most_tokens": 8192}, (8192, 4096), {"max_tokens"}),
        ({"max_tokens": 64_000}, {}, (64_000, 24_576), set()),
        ({"max_tokens": 1500}, {"most_tokens": 1500}, (1500, 1024), set()),
        ({"max_tokens": 100}, {"most_tokens": 1024}, (100, None), set()),
    ],
)
@pytest.mark.parametrize("client", MINIMAL)
def test_a_budget_fits_into_a_bound_within_the_most(
    client: str, asked: JSON, options: JSON, due: tuple[int, int | None], told: set[str]
) -> None:
    bound = BOUNDS[client][0]
    exchange = opened(client, "messages", {bound: asked["max_tokens"]}, effort="high", thinking_budget=True, **options)
    found = sent(exchange)
    assert (found["max_tokens"], at(found, "thinking.budget_tokens")) == due
    paths = {entry["path"] for entry in exchange.ledger} - {"reasoning", "store"}
    assert paths == ({bound} if told else set())


def test_a_clients_own_budget_stays_below_a_bound_that_the_route_lowers() -> None:
    asked = {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 20_000, "display": "omitted"}}
    exchange = opened("messages", "messages", asked, most_tokens=8192)
    due = {"type": "enabled", "budget_tokens": 4096, "display": "omitted"}
    assert sent(exchange) == {**MINIMAL["messages"], "max_tokens": 8192, "thinking": due}
    assert [entry["path"] for entry in exchange.ledger] == ["max_tokens", "thinking.budget_tokens"]
    assert sent(opened("messages", "messages", asked, most_tokens=32_000)) == {**MINIMAL["messages"], **asked}


@pytest.mark.parametrize("asked", REASONING["messages"], ids=str)
def test_a_model_that_takes_a_budget_is_told_no_effort_by_its_own_dialect_either(asked: JSON) -> None:
    given = {**MINIMAL["messages"], "max_tokens": 64_000, **asked}
    exchange = opened("messages", "messages", {"max_tokens": 64_000, **asked}, thinking_budget=True)
    found = sent(exchange)
    assert at(found, "output_config.effort") is None
    assert at(found, "output_config.format") == at(given, "output_config.format")
    assert at(found, "thinking.type") not in ("adaptive", "zz")
    if at(given, "thinking.type") in ("enabled", "disabled", 7):
        assert found["thinking"] == given["thinking"]
    elif at(given, "thinking.type"):
        effort = {"high": 24_576}.get(at(given, "output_config.effort"), 8192)
        kept = {name: value for name, value in given["thinking"].items() if name != "type"}
        assert found["thinking"] == {**kept, "type": "enabled", "budget_tokens": effort}
    check_told(given, found, exchange)
    check_lawful("messages", found)


@pytest.mark.parametrize("value", [0.5, "hot", None], ids=str)
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_route_without_sampling_sends_none(client: str, upstream: str, value: Any) -> None:
    asked = {"temperature": value, "top_p": value}
    if (got := goes(client, upstream, asked, sampling=False)) is None:
        assert value == "hot"
        return
    found, exchange = got
    assert not {name for name in asked if found.get(name) is not None}
    told = {entry["path"] for entry in exchange.ledger if entry["action"] == "dropped"}
    assert {*asked} <= told or value is None


@pytest.mark.parametrize("options", [{"effort": "low"}, {"effort": "low", "thinking_budget": True}], ids=str)
def test_what_cannot_stand_beside_thinking_gives_way_to_the_routes(options: JSON) -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    asked = {"temperature": 0.5, "top_k": 5, "tools": tools, "tool_choice": {"type": "any"}, "max_tokens": 9000}
    exchange = opened("messages", "messages", asked, **options)
    found = sent(exchange)
    assert (found.get("temperature"), found.get("top_k"), found["tool_choice"]) == (None, None, {"type": "auto"})
    assert {"temperature", "top_k", "tool_choice"} <= {entry["path"] for entry in exchange.ledger}
    assert sent(opened("messages", "messages", asked))["tool_choice"] == {"type": "any"}


OTHERS: list[JSON] = [
    *({name: True} for name in ("strict", "replay_reasoning", "developer_role", "custom_tools", "web_search")),
    *({"later_instructions": value} for value in (True, False)),
    {"max_tokens": 7},
    {"off_effort": ""},
]


@pytest.mark.parametrize("options", OTHERS, ids=str)
@pytest.mark.parametrize(("name", "asked"), OWN)
def test_the_other_options_change_nothing_toward_the_clients_own_dialect(name: str, asked: JSON, options: JSON) -> None:
    exchange = opened(name, name, asked, **options)
    assert sent(exchange) == {**MINIMAL[name], **asked}
    assert {entry["action"] for entry in exchange.ledger} <= {"not read"}
