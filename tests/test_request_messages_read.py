"""Reading a Messages request: every row of its table."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.ladder import Rule
from pipeline.ledger import Ledger
from pipeline.request import (
    CacheHint,
    Choosing,
    FunctionTool,
    OutputFormat,
    OutputKind,
    Reasoning,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    Turn,
)
from stages.dialects.messages.request import parse
from stages.dialects.messages.request_tables import READ
from tests.request_shapes import JSON, others

BUILDS = others("messages")


def body(**members: Any) -> JSON:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def block(**members: Any) -> JSON:
    return {"messages": [{"role": "user", "content": [members]}]}


def beside_text(**members: Any) -> JSON:
    return {"messages": [{"role": "user", "content": [members, {"type": "text", "text": "a"}]}]}


def said(**members: Any) -> JSON:
    result = {"type": "tool_result", "tool_use_id": members.get("id"), "content": "r"}
    return {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [members]},
            {"role": "user", "content": [result] if members["type"] == "tool_use" else "on"},
        ]
    }


def tool(**members: Any) -> JSON:
    return {"tools": [{"name": "f", "input_schema": {"type": "object"}, **members}]}


def user(*parts: Any) -> tuple[Turn, ...]:
    return (Turn(Role.USER, parts),)


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "$schema": "x"}

# member of the table: (members of the body, canonical member, its value)
CARRIED: list[tuple[str, JSON, str, Any]] = [
    ("model", {"model": "claude"}, "model", "claude"),
    ("messages", {"messages": [{"role": "user", "content": "hi"}]}, "turns", user(TextPart("hi"))),
    ("system", {"system": "be brief"}, "system", (Turn(Role.SYSTEM, (TextPart("be brief"),)),)),
    ("max_tokens", {"max_tokens": 7}, "max_tokens", 7),
    ("stop_sequences", {"stop_sequences": ["a", "b"]}, "stop", ("a", "b")),
    ("temperature", {"temperature": 0.5}, "temperature", 0.5),
    ("top_p", {"top_p": 0.5}, "top_p", 0.5),
    ("top_k", {"top_k": 5}, "top_k", 5),
    ("stream", {"stream": True}, "stream", True),
    ("service_tier", {"service_tier": "standard_only"}, "service_tier", "default"),
    ("tools", tool(strict=True), "tools", (FunctionTool("f", schema={"type": "object"}, strict=True),)),
    ("tool_choice", {"tool_choice": {"type": "any"}}, "tool_choice", ToolChoice(Choosing.ANY)),
    (
        "tool_choice.disable_parallel_tool_use",
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        "parallel",
        False,
    ),
    (
        "thinking",
        {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "updates"}},
        "reasoning",
        Reasoning(
            True,
            "",
            2000,
            "auto",
            private={"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "updates"}},
        ),
    ),
    ("output_config", {"output_config": {"effort": "high"}}, "reasoning", Reasoning(effort="high")),
    ("output_config.effort", {"output_config": {"effort": "max"}}, "reasoning", Reasoning(effort="max")),
    (
        "output_config.format",
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "output",
        OutputFormat(OutputKind.SCHEMA, schema=SCHEMA),
    ),
    (
        "output_format",
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        "output",
        OutputFormat(OutputKind.SCHEMA, schema=SCHEMA),
    ),
    ("metadata", {"metadata": {"user_id": "u"}}, "user", "u"),
    ("cache_control", {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, "cache", CacheHint("1h")),
]

# member of the table: (members of the body, where it is named, what of it must not reach the upstream)
LOST: list[tuple[str, JSON, str]] = [
    *[
        (name, {name: value}, name)
        for name, value in {
            "anthropic_version": "vertex-2023-10-16",
            "anthropic_beta": ["b"],
            "betas": ["b"],
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "compaction": {"type": "summarize"},
            "diagnostics": {"previous_message_id": None},
            "speed": "fast",
            "billing_policy": {},
            "fallback_credit_token": "t",
            "fallbacks": [],
            "user_profile_id": "p",
            "workspace_id": "w",
            "inference_geo": "eu",
            "container": "c",
            "mcp_servers": [{"type": "url", "name": "s", "url": "http://x"}],
        }.items()
    ],
    ("a member within another, unknown", {"metadata": {"zz": 1}}, "metadata.zz"),
    (
        "a member beside one that says the same",
        {
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
            "output_format": {"type": "json_schema", "schema": SCHEMA},
        },
        "output_format",
    ),
    ("thinking.display of another word", {"thinking": {"type": "adaptive", "display": "odd"}}, "thinking.display"),
    ("thinking between tools", {"thinking": {"type": "between_tools"}}, "thinking.type"),
    ("thread", {"thread": {"type": "create"}}, "thread"),
    ("thread.continue", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}, "thread"),
    (
        "thinking.block_binding",
        {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop"}}},
        "thinking.block_binding",
    ),
    (
        "output_config.task_budget",
        {"output_config": {"task_budget": {"type": "tokens", "total": 1}}},
        "output_config.task_budget",
    ),
    (
        "messages[].output_config",
        {"messages": [{"role": "system", "content": "s", "output_config": {"effort": "low"}}]},
        "messages[0].output_config",
    ),
    (
        "messages[].clear_at",
        {"messages": [{"role": "system", "content": "s", "clear_at": "never"}]},
        "messages[0].clear_at",
    ),
    (
        "content[].citations",
        block(type="text", text="t", citations=[{"type": "char_location"}]),
        "messages[0].content[0].citations",
    ),
    (
        "content[].caller",
        said(type="tool_use", id="1", name="f", input={}, caller={"type": "direct"}),
        "messages[1].content[0].caller",
    ),
    (
        "content[].toolset_name",
        said(type="tool_use", id="1", name="f", input={}, toolset_name="browser"),
        "messages[1].content[0].toolset_name",
    ),
    (
        "content[].transformations",
        block(
            type="image",
            source={"type": "url", "url": "http://x/y.png"},
            transformations={"oversized_image": "downsize"},
        ),
        "messages[0].content[0].transformations",
    ),
    (
        "block search_result",
        block(type="search_result", title="T", source="S", content=[{"type": "text", "text": "found"}]),
        "messages[0].content[0]",
    ),
    ("block tool_reference", block(type="tool_reference", tool_name="grep"), "messages[0].content[0]"),
    ("block browser_state", block(type="browser_state", tabs=[{"tab_id": "1"}]), "messages[0].content[0]"),
    (
        "block tool_addition",
        beside_text(type="tool_addition", tool={"type": "tool_reference", "name": "x"}),
        "messages[0].content[0]",
    ),
    (
        "block tool_removal",
        beside_text(type="tool_removal", tool={"type": "tool_reference", "name": "x"}),
        "messages[0].content[0]",
    ),
    ("block container_upload", block(type="container_upload", file_id="file_1"), "messages[0].content[0]"),
    ("block compaction", said(type="compaction", content="so far"), "messages[1].content[0]"),
    ("block fallback", said(type="fallback", to={}), "messages[1].content[0]"),
    ("block mcp_tool_listing", said(type="mcp_tool_listing", tools=[]), "messages[1].content[0]"),
    (
        "block server_tool_use",
        said(type="server_tool_use", id="s", name="web_search", input={}),
        "messages[1].content[0]",
    ),
    (
        "block server_tool_result",
        said(type="web_search_tool_result", tool_use_id="s", content=[]),
        "messages[1].content[0]",
    ),
    ("block of unknown type", block(type="hologram", x=1), "messages[0].content[0].type"),
    *[
        (f"tools[].{name}", tool(**{name: value}), f"tools[0].{name}")
        for name, value in {
            "defer_loading": True,
            "eager_input_streaming": True,
            "allowed_callers": ["direct"],
            "input_examples": [{}],
        }.items()
    ],
    (
        "tool that searches the web",
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        "tools[0]",
    ),
    ("tool run by the provider", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, "tools[0]"),
    ("tool with the provider's schema", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]"),
    ("tool that searches tools", {"tools": [{"type": "tool_search_tool_bm25", "name": "t"}]}, "tools[0]"),
]


@pytest.mark.parametrize(("row", "members", "canonical", "value"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_with_a_meaning_is_read(row: str, members: JSON, canonical: str, value: Any) -> None:
    assert READ[row].rule in (Rule.ACCEPT, Rule.TRANSLATE)
    assert canonical in READ[row].to
    assert getattr(read(**members), canonical) == value


@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize(("row", "members", "where"), LOST, ids=[case[0] for case in LOST])
def test_a_member_only_this_dialect_has_is_lost_as_its_row_says(
    row: str, members: JSON, where: str, upstream: str
) -> None:
    for strict in (False, True):
        ledger = Ledger(direction="request")
        rule = READ[row].under(strict)
        options = RequestOptions(strict=strict)
        request = read(**members)
        if rule is Rule.REFUSE:
            with pytest.raises(ClientError) as caught:
                BUILDS[upstream](request, ledger=ledger, options=options)
            assert str(caught.value).startswith(f"{where}: ")
            assert caught.value.kind is READ[row].kind
            continue
        BUILDS[upstream](request, ledger=ledger, options=options)
        found = [entry for entry in ledger if entry.path == where and entry.reason == READ[row].reason]
        assert [entry.direction for entry in found] == ["request"]
        assert found[0].action.startswith(rule.value)


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in CARRIED} | {case[0] for case in LOST} == set(READ)


def test_every_canonical_member_is_known_by_the_clients_name() -> None:
    request = read(
        stop_sequences=["a"],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": {}}},
        metadata={"user_id": "u"},
        cache_control={"type": "ephemeral"},
    )
    paths = {
        "turns": "messages",
        "stop": "stop_sequences",
        "tool_choice": "tool_choice",
        "parallel": "tool_choice.disable_parallel_tool_use",
        "reasoning": "output_config.effort",
        "output": "output_config.format",
        "user": "metadata.user_id",
        "cache": "cache_control",
        "temperature": "temperature",
    }
    assert {member: request.path(member) for member in paths} == paths
