"""Nothing of a request vanishes without a word: whatever stands in it goes up, or is in the ledger."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.request import RequestOptions
from tests.request_full import FULL, at, places
from tests.request_shapes import BUILDS, JSON, PARSES

ROUTES = [(client, upstream) for client in BUILDS for upstream in BUILDS if client != upstream]
Lost = set[tuple[str, str]]

OPTIONS: list[JSON] = [
    {},
    {"web_search": True, "custom_tools": True, "developer_role": True, "later_instructions": True},
    {"later_instructions": False, "thinking_budget": True, "replay_reasoning": True},
]
over_every_route = pytest.mark.parametrize(("client", "upstream"), ROUTES)


def sent(client: str, upstream: str, body: JSON, **options: Any) -> tuple[JSON, Lost]:
    """The body that goes up, and what was lost where."""
    ledger = Ledger(direction="request")
    asked = PARSES[client](body, ledger=ledger)
    built = BUILDS[upstream](asked, ledger=ledger, options=RequestOptions(upstream="up", **options)).body
    return built, {(entry.path, entry.action) for entry in ledger}


PARTLY = (
    "metadata",
    "output_config",
    "output_config.format",
    "reasoning",
    "response_format",
    "response_format.json_schema",
    "text.format",
    "thinking",
    "tool_choice",
)
"""Where the ledger tells of a loss that is not the whole object's."""


def is_told(where: str, lost: Lost) -> bool:
    """Whether the ledger has a member, or a whole piece that it stands in, or all that are alike as one."""
    alike = re.sub(r"\[\d+\]", "[]", where)
    return any(
        path in (where, alike) or (where.startswith(path) and where[len(path)] in ".[" and path not in PARTLY)
        for path, _ in lost
    )


def path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@over_every_route
@pytest.mark.parametrize("options", OPTIONS, ids=["usual", "rich", "poor"])
def test_a_member_that_nobody_knows_goes_up_or_is_recorded_wherever_it_stands(
    client: str, upstream: str, options: JSON
) -> None:
    for given in FULL[client]:
        for where in places(given):
            body = copy.deepcopy(given)
            at(body, where)["zz"] = "unheard of"
            built, lost = sent(client, upstream, body, **options)
            whole = {(at, action) for at, action in lost if action == "dropped" or at.endswith(".zz")}
            assert "unheard of" in json.dumps(built) or is_told(path(where, "zz"), whole), where


IMPLIED: dict[str, Any] = {
    "arguments": "{}",
    "content": [],
    "effort": "none",
    "enable_thinking": True,
    "enabled": True,
    "function_call": "auto",
    "include_obfuscation": False,
    "include_usage": True,
    "input": {},
    "n": 1,
    "status": "completed",
    "display": "summarized",
    "stream_options": {"include_usage": True, "include_obfuscation": False},
}
"""Values that hold without being said, and what the answer's own stages honour."""
PLACED = ("type", "mode", "index")
"""Members that say of their object what its place and its other members do."""
ECHOED = ("messages[3].reasoning", "messages[3].reasoning_content", "messages[7].name", "tools[1].name")
"""The same text as in the details beside; the same name as in the call; the one name that such a tool has."""


def members(body: JSON) -> Iterator[tuple[str, str]]:
    """Each member of a body by the path of its object and its name, but for those that say nothing."""
    for where in places(body):
        for name, value in at(body, where).items():
            if name in PLACED or (name in IMPLIED and value == IMPLIED[name]) or path(where, name) in ECHOED:
                continue
            yield where, name


@over_every_route
@pytest.mark.parametrize("options", OPTIONS, ids=["usual", "rich", "poor"])
def test_each_member_makes_a_difference_to_what_goes_up_or_to_the_ledger(
    client: str, upstream: str, options: JSON
) -> None:
    for given in FULL[client]:
        whole = sent(client, upstream, given, **options)
        for where, name in members(given):
            body = copy.deepcopy(given)
            del at(body, where)[name]
            try:
                without = sent(client, upstream, body, **options)
            except ClientError:
                continue  # it must be there
            assert without != whole or is_told(path(where, name), whole[1]), path(where, name)


TERSE: dict[str, JSON] = {
    "messages": {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "go"}]},
    "chat": {"model": "m", "messages": [{"role": "user", "content": "go"}]},
    "responses": {"model": "m", "input": "go"},
}


def of(client: str, upstream: str, **members: Any) -> tuple[JSON, list[str]]:
    """What goes up of a short request with some members, and the paths of what was lost."""
    built, lost = sent(client, upstream, {**TERSE[client], **members})
    return built, sorted(where for where, _ in lost)


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_thinking_between_tools_keeps_its_effort_and_is_recorded(upstream: str) -> None:
    built, lost = of("messages", upstream, thinking={"type": "between_tools"}, output_config={"effort": "high"})
    assert (built.get("reasoning_effort") or built["reasoning"]["effort"]) == "high"
    assert lost == ["thinking.type"]


@pytest.mark.parametrize("summary", ["auto", "concise", "detailed"])
def test_a_summary_that_a_chat_client_asks_for_is_kept(summary: str) -> None:
    built, lost = of("chat", "responses", reasoning={"effort": "high", "summary": summary})
    assert (built["reasoning"], lost) == ({"effort": "high", "summary": summary}, [])
    built, lost = of("chat", "responses", reasoning={"effort": "none", "summary": summary})
    assert (built["reasoning"], lost) == ({"effort": "none", "summary": summary}, [])
    built, lost = of("chat", "messages", reasoning={"effort": "high", "summary": summary})
    assert (built["thinking"], lost) == ({"type": "adaptive", "display": "summarized"}, [])
    built, lost = of("chat", "messages", reasoning={"effort": "none", "summary": summary})
    assert (built["thinking"], lost) == ({"type": "disabled"}, ["reasoning.summary"])


def test_reasoning_that_a_chat_client_does_not_want_to_see_is_not_shown() -> None:
    excluded = {"effort": "high", "exclude": True}
    assert of("chat", "responses", reasoning=excluded)[0]["reasoning"] == {"effort": "high"}
    assert of("chat", "messages", reasoning=excluded)[0]["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert of("chat", "messages", reasoning={**excluded, "summary": "auto"})[1] == ["reasoning.summary"]


@pytest.mark.parametrize(
    ("members", "effort", "lost"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 9_000}}, "medium", []),
        ({"enable_thinking": True, "thinking_budget": 9_000}, "medium", []),
        ({"thinking_budget": 1_000}, "minimal", []),
        ({"reasoning": {"max_tokens": 9_000}}, "medium", []),
        ({"reasoning": {"max_tokens": 9_000, "effort": "high"}}, "high", ["reasoning.max_tokens"]),
        ({"reasoning_effort": "low", "thinking": {"budget_tokens": 9_000}}, "low", ["thinking.budget_tokens"]),
        ({"reasoning_effort": "low", "reasoning": {"effort": "low"}}, "low", []),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, "low", ["reasoning.effort"]),
        ({"thinking": {"budget_tokens": 9_000}, "thinking_budget": 1_000}, "medium", ["thinking_budget"]),
        ({"reasoning": {"enabled": True}, "enable_thinking": False}, None, ["enable_thinking"]),
        ({"reasoning_effort": "odd"}, None, ["reasoning_effort"]),
        ({"reasoning": {"enabled": False, "effort": "high"}}, "none", ["reasoning.effort"]),
        ({"reasoning_effort": "high", "enable_thinking": False}, "none", ["reasoning_effort"]),
        ({"reasoning": {"effort": "odd"}}, None, ["reasoning.effort"]),
    ],
)
def test_how_much_to_think_is_told_once_by_whatever_members(members: JSON, effort: str | None, lost: list[str]) -> None:
    built, told = of("chat", "responses", **members)
    assert (built.get("reasoning", {}).get("effort"), told) == (effort, lost)


@pytest.mark.parametrize(("client", "upstream"), [("chat", "responses"), ("responses", "chat")])
def test_a_user_with_two_names_keeps_both_where_both_can_be_said(client: str, upstream: str) -> None:
    built, lost = of(client, upstream, safety_identifier="s", user="u")
    assert (built["safety_identifier"], built["user"], lost) == ("s", "u", [])
    built, lost = of(client, upstream, safety_identifier="s", user="s")
    assert ("user" in built, lost) == (False, [])
    built, lost = of(client, "messages", safety_identifier="s", user="u")
    assert (built["metadata"], lost) == ({"user_id": "s"}, ["user"])


FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {}}}
TOOLS: dict[str, list[JSON]] = {"chat": [FUNCTION], "responses": [{"type": "function", "name": "f", "parameters": {}}]}


@pytest.mark.parametrize(
    ("client", "upstream"),
    [("chat", "messages"), ("chat", "responses"), ("responses", "messages"), ("responses", "chat")],
)
def test_a_tool_of_the_providers_among_those_allowed_is_recorded(client: str, upstream: str) -> None:
    hosted = {"type": "web_search"}
    named = (
        {"type": "function", "name": "f"} if client == "responses" else {"type": "function", "function": {"name": "f"}}
    )
    choice: JSON = {"mode": "auto", "tools": [named, hosted]}
    where = "tool_choice.tools[1]"
    if client == "chat":
        choice, where = {"allowed_tools": choice}, "tool_choice.allowed_tools.tools[1]"
    built, lost = of(client, upstream, tools=TOOLS[client], tool_choice={"type": "allowed_tools", **choice})
    assert "'f'" in str(built["tools"])
    assert lost == [where]


@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_a_tool_that_is_allowed_and_not_there_is_recorded(upstream: str) -> None:
    allowed = [{"type": "function", "name": "f"}, {"type": "function", "name": "gone"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    assert of("responses", upstream, tools=TOOLS["responses"], tool_choice=choice)[1] == ["tool_choice"]


def test_a_whole_turn_of_a_chat_clients_is_cached_where_its_last_block_is() -> None:
    turn = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    told = {**turn, "cache_control": {"type": "ephemeral"}}
    built, lost = of("chat", "messages", messages=[{**told, "role": "system"}, told, turn])
    marked = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
    assert built["system"][-1] == built["messages"][0]["content"][1] == marked
    assert (built["messages"][0].keys(), lost) == ({"role", "content"}, [])


def test_an_item_that_is_unfinished_is_recorded() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "status": "incomplete"}
    result = {"type": "function_call_output", "call_id": "a", "output": "r", "status": "in_progress"}
    _, lost = of("responses", "chat", input=[{"role": "user", "content": "go"}, call, result])
    assert lost == ["input[1].status", "input[2].status"]


def test_the_ids_of_all_items_are_one_entry() -> None:
    said = [{"type": "message", "id": f"msg_{at}", "role": "user", "content": "go"} for at in range(9)]
    assert of("responses", "chat", input=said)[1] == ["input[].id"]
