"""Reading a Chat Completions request: every row of its table."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.ladder import Rule
from pipeline.ledger import Ledger
from pipeline.request import (
    Choosing,
    FunctionTool,
    OutputFormat,
    OutputKind,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    Turn,
)
from stages.dialects.chat.request import parse
from stages.dialects.chat.request_tables import READ
from stages.dialects.messages.request import build as build_messages
from tests.request_shapes import JSON, others

BUILDS = others("chat")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def body(**members: Any) -> JSON:
    return {"model": "m", "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def messages(*given: JSON) -> JSON:
    return {"messages": list(given)}


def part(**members: Any) -> JSON:
    return messages({"role": "user", "content": [members]})


GO = Turn(Role.USER, (TextPart("go"),))

# member of the table: (members of the body, canonical member, its value)
CARRIED: list[tuple[str, JSON, str, Any]] = [
    ("model", {"model": "gpt"}, "model", "gpt"),
    ("messages", {}, "turns", (GO,)),
    (
        "tools",
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}]},
        "tools",
        (FunctionTool("f", "", SCHEMA, True),),
    ),
    ("functions", {"functions": [{"name": "f", "parameters": SCHEMA}]}, "tools", (FunctionTool("f", "", SCHEMA),)),
    ("tool_choice", {"tool_choice": "required"}, "tool_choice", ToolChoice(Choosing.ANY)),
    ("function_call", {"function_call": {"name": "f"}}, "tool_choice", ToolChoice(Choosing.ONE, "f")),
    ("parallel_tool_calls", {"parallel_tool_calls": False}, "parallel", False),
    ("max_completion_tokens", {"max_completion_tokens": 5, "max_tokens": 9}, "max_tokens", 5),
    ("max_tokens", {"max_tokens": 9}, "max_tokens", 9),
    ("stop", {"stop": "a"}, "stop", ("a",)),
    ("temperature", {"temperature": 1.5}, "temperature", 1.5),
    ("top_p", {"top_p": 0.5}, "top_p", 0.5),
    ("top_k", {"top_k": 5}, "top_k", 5),
    ("seed", {"seed": 5}, "seed", 5),
    ("frequency_penalty", {"frequency_penalty": 0.5}, "frequency_penalty", 0.5),
    ("presence_penalty", {"presence_penalty": 0.5}, "presence_penalty", 0.5),
    ("logit_bias", {"logit_bias": {"1": 2}}, "logit_bias", {"1": 2}),
    ("n", {"n": 2}, "choices", 2),
    ("logprobs", {"logprobs": True}, "logprobs", 0),
    ("top_logprobs", {"logprobs": True, "top_logprobs": 3}, "logprobs", 3),
    (
        "response_format",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": False}}},
        "output",
        OutputFormat(OutputKind.SCHEMA, "n", SCHEMA, False),
    ),
    ("verbosity", {"verbosity": "low"}, "verbosity", "low"),
    ("metadata", {"metadata": {"a": "b"}}, "metadata", {"a": "b"}),
    ("safety_identifier", {"safety_identifier": "s", "user": "u"}, "user", "s"),
    ("user", {"user": "u"}, "user", "u"),
    ("prompt_cache_key", {"prompt_cache_key": "k"}, "cache_key", "k"),
    ("service_tier", {"service_tier": "flex"}, "service_tier", "flex"),
    ("store", {"store": True}, "store", True),
    ("stream", {"stream": True}, "stream", True),
    ("stream_options", {"stream_options": {"include_usage": True}}, "include_usage", True),
]

# members that ask for reasoning: (members of the body, enabled, effort, budget)
REASONING: list[tuple[str, JSON, bool | None, str, int | None]] = [
    ("reasoning_effort", {"reasoning_effort": "high"}, None, "high", None),
    ("reasoning_effort", {"reasoning_effort": "default"}, None, "", None),
    ("reasoning", {"reasoning": {"effort": "low", "max_tokens": 2000}}, True, "low", 2000),
    ("reasoning", {"reasoning": {"enabled": False}}, False, "", None),
    ("reasoning", {"reasoning": {"effort": "none"}}, False, "none", None),
    ("reasoning", {"reasoning": {"effort": "odd"}}, True, "", None),
    ("thinking", {"thinking": {"type": "enabled"}}, True, "", None),
    ("thinking", {"thinking": {"type": "disabled"}}, False, "", None),
    ("enable_thinking", {"enable_thinking": False}, False, "", None),
    ("thinking_budget", {"thinking_budget": 9_000}, None, "", 9_000),
]

# member of the table: (members of the body, where it is named)
LOST: list[tuple[str, JSON, str]] = [
    *[
        (name, {name: value}, name)
        for name, value in {
            "audio": {"voice": "alloy", "format": "wav"},
            "modalities": ["text", "audio"],
            "prediction": {"type": "content", "content": "x"},
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "moderation": {"model": "m"},
            "web_search_options": {},
        }.items()
    ],
    (
        "messages[].name of a tool",
        messages(
            {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r", "name": "f"},
        ),
        "messages[1].name",
    ),
    (
        "messages[].audio",
        messages({"role": "assistant", "content": "a", "audio": {"id": "a"}}, {"role": "user", "content": "b"}),
        "messages[0].audio",
    ),
    (
        "messages[].extra_content",
        messages(
            {
                "role": "assistant",
                "tool_calls": [{"id": "1", "function": {"name": "f"}, "extra_content": {"google": {}}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ),
        "messages[0].tool_calls[0].extra_content",
    ),
    (
        "messages[].annotations",
        messages({"role": "assistant", "content": "a", "annotations": [{}]}, {"role": "user", "content": "b"}),
        "messages[0].annotations",
    ),
    ("messages[].content[] of unknown type", part(type="hologram"), "messages[0].content[0].type"),
    ("tools[] of another type", {"tools": [{"type": "openrouter:web_search"}]}, "tools[0]"),
    (
        "allowed_tools.tools[] of another type",
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "odd"}]}}},
        "tool_choice.allowed_tools.tools[0]",
    ),
    ("top_logprobs without logprobs", {"top_logprobs": 3}, "top_logprobs"),
    (
        "stream_options.include_obfuscation",
        {"stream_options": {"include_obfuscation": True}},
        "stream_options.include_obfuscation",
    ),
    ("a member within another, unknown", {"stream_options": {"zz": 1}}, "stream_options.zz"),
    ("a member beside one that says the same", {"max_completion_tokens": 99, "max_tokens": 98}, "max_tokens"),
    ("an effort of a word unknown", {"reasoning_effort": "odd"}, "reasoning_effort"),
]


@pytest.mark.parametrize(("row", "members", "canonical", "value"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_with_a_meaning_is_read(row: str, members: JSON, canonical: str, value: Any) -> None:
    assert READ[row].rule in (Rule.ACCEPT, Rule.TRANSLATE)
    assert canonical in READ[row].to.split(", ")
    assert getattr(read(**members), canonical) == value


@pytest.mark.parametrize(("row", "members", "enabled", "effort", "budget"), REASONING)
def test_reasoning_is_asked_for_in_every_spelling(
    row: str, members: JSON, enabled: bool | None, effort: str, budget: int | None
) -> None:
    assert READ[row].to == "reasoning"
    found = read(**members).reasoning
    assert found is not None
    assert (found.enabled, found.effort, found.budget) == (enabled, effort, budget)


@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "members", "where"), LOST, ids=[case[0] for case in LOST])
def test_a_member_only_this_dialect_has_is_lost_as_its_row_says(
    row: str, members: JSON, where: str, strict: bool, upstream: str
) -> None:
    ledger = Ledger(direction="request")
    rule = READ[row].under(strict)
    request = read(**members)
    if rule is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            BUILDS[upstream](request, ledger=ledger, options=RequestOptions(strict=strict))
        assert str(caught.value).startswith(f"{where}: ")
        return
    BUILDS[upstream](request, ledger=ledger, options=RequestOptions())
    found = [entry for entry in ledger if entry.path == where and entry.reason == READ[row].reason]
    assert [entry.action for entry in found] == [rule.value]


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in (*CARRIED, *REASONING, *LOST)} == set(READ)


def test_text_alone_as_modality_is_what_every_dialect_answers_with() -> None:
    ledger = Ledger()
    build_messages(read(modalities=["text"]), ledger=ledger, options=RequestOptions(strict=True))
    assert list(ledger) == []


def test_every_canonical_member_is_known_by_the_clients_name() -> None:
    request = read(
        max_tokens=5,
        n=1,
        parallel_tool_calls=True,
        reasoning={"effort": "low"},
        response_format={"type": "json_object"},
        tool_choice="auto",
        user="u",
        prompt_cache_key="k",
        stream_options={"include_usage": True},
    )
    paths = {
        "turns": "messages",
        "max_tokens": "max_tokens",
        "choices": "n",
        "parallel": "parallel_tool_calls",
        "reasoning": "reasoning",
        "output": "response_format",
        "tool_choice": "tool_choice",
        "user": "user",
        "cache_key": "prompt_cache_key",
        "include_usage": "stream_options.include_usage",
        "temperature": "temperature",
    }
    assert {member: request.path(member) for member in paths} == paths
