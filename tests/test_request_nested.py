"""What stands within a member that we know, and is unknown or has no place elsewhere: it is recorded, never lost."""

import json

import pytest

from tests.exchange import route, sent
from tests.request_shapes import JSON

GO = [{"role": "user", "content": "go"}]
MINIMAL: dict[str, JSON] = {
    "chat": {"model": "m", "messages": GO},
    "messages": {"model": "m", "max_tokens": 99, "messages": GO},
    "responses": {"model": "m", "input": "go"},
}
SCHEMA = {"type": "object"}
TOOL = {"type": "function", "function": {"name": "f"}}
CASES: list[tuple[str, JSON, str]] = [
    ("chat", {"stream_options": {"include_usage": True, "zz": 1}}, "stream_options.zz"),
    ("chat", {"reasoning": {"effort": "high", "exclude": True}}, "reasoning.exclude"),
    ("chat", {"thinking": {"type": "enabled", "zz": 1}}, "thinking.zz"),
    ("chat", {"tools": [{"type": "function", "function": {"name": "f", "zz": 1}}]}, "tools[0].function.zz"),
    ("chat", {"tools": [{"type": "custom", "custom": {"name": "f", "zz": 1}}]}, "tools[0].custom.zz"),
    ("chat", {"messages": [{"role": "system", "content": "s", "name": "n"}, *GO]}, "messages[0].name"),
    ("chat", {"messages": [{"role": "system", "content": "s", "zz": 1}, *GO]}, "messages[0].zz"),
    (
        "chat",
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f", "zz": 1}}},
        "tool_choice.function.zz",
    ),
    (
        "messages",
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any", "zz": 1}},
        "tool_choice.zz",
    ),
    ("messages", {"metadata": {"user_id": "u", "zz": 1}}, "metadata.zz"),
    ("messages", {"thinking": {"type": "adaptive", "zz": 1}}, "thinking.zz"),
    ("messages", {"output_config": {"effort": "low", "zz": 1}}, "output_config.zz"),
    (
        "messages",
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA, "zz": 1}}},
        "output_config.format.zz",
    ),
    ("responses", {"text": {"verbosity": "low", "zz": 1}}, "text.zz"),
    ("responses", {"reasoning": {"effort": "low", "zz": 1}}, "reasoning.zz"),
]


@pytest.mark.parametrize(("client", "members", "where"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES])
def test_it_is_recorded_toward_each_other_dialect_and_goes_up_to_its_own(
    client: str, members: JSON, where: str
) -> None:
    given = {**MINIMAL[client], **members}
    for upstream in MINIMAL:
        exchange = route(client, upstream).open(json.dumps(given).encode())
        if upstream == client:
            assert sent(exchange) == given
            assert exchange.ledger == []
        else:
            assert where in [entry["path"] for entry in exchange.ledger]


@pytest.mark.parametrize("member", ["tool_choice", "function_call"])
def test_a_choice_of_a_tool_that_is_not_offered_goes_up_to_its_own_dialect_and_nothing_is_recorded(member: str) -> None:
    choice = {"name": "zz"} if member == "function_call" else {"type": "function", "function": {"name": "zz"}}
    given = {**MINIMAL["chat"], member: choice}
    exchange = route("chat", "chat").open(json.dumps(given).encode())
    assert sent(exchange) == given
    assert exchange.ledger == []
