"""Reading a Responses request: every row of its table."""

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
from stages.dialects.chat.request import build as build_chat
from stages.dialects.responses.request import parse
from stages.dialects.responses.request_tables import READ
from tests.request_shapes import JSON, others

BUILDS = others("responses")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
GO = Turn(Role.USER, (TextPart("go"),))


def body(**members: Any) -> JSON:
    return {"model": "m", "input": [GO_ITEM], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def items(*given: JSON) -> JSON:
    return {"input": list(given)}


def part(**members: Any) -> JSON:
    return items({"type": "message", "role": "user", "content": [members]})


def function(**members: Any) -> JSON:
    return {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **members}]}


def call(**members: Any) -> JSON:
    return {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", **members}


RESULT = {"type": "function_call_output", "call_id": "1", "output": "r"}

# member of the table: (members of the body, canonical member, its value)
CARRIED: list[tuple[str, JSON, str, Any]] = [
    ("model", {"model": "gpt"}, "model", "gpt"),
    ("input", {"input": "go"}, "turns", (GO,)),
    ("instructions", {"instructions": "a"}, "system", (Turn(Role.SYSTEM, (TextPart("a"),)),)),
    ("tools", function(), "tools", (FunctionTool("f", "", SCHEMA, False),)),
    ("tool_choice", {"tool_choice": "required"}, "tool_choice", ToolChoice(Choosing.ANY)),
    ("parallel_tool_calls", {"parallel_tool_calls": False}, "parallel", False),
    ("max_output_tokens", {"max_output_tokens": 5}, "max_tokens", 5),
    ("temperature", {"temperature": 1.5}, "temperature", 1.5),
    ("top_p", {"top_p": 0.5}, "top_p", 0.5),
    ("top_logprobs", {"top_logprobs": 3}, "logprobs", 3),
    ("include", {"include": ["message.output_text.logprobs"]}, "logprobs", 0),
    (
        "text.format",
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
        "output",
        OutputFormat(OutputKind.SCHEMA, "n", SCHEMA, True),
    ),
    ("text", {"text": {"format": {"type": "text"}}}, "output", OutputFormat(OutputKind.TEXT)),
    ("text.verbosity", {"text": {"verbosity": "low"}}, "verbosity", "low"),
    ("metadata", {"metadata": {"a": "b"}}, "metadata", {"a": "b"}),
    ("safety_identifier", {"safety_identifier": "s", "user": "u"}, "user", "s"),
    ("user", {"user": "u"}, "user", "u"),
    ("prompt_cache_key", {"prompt_cache_key": "k"}, "cache_key", "k"),
    ("service_tier", {"service_tier": "flex"}, "service_tier", "flex"),
    ("store", {"store": True}, "store", True),
    ("stream", {"stream": True}, "stream", True),
    (
        "input[] additional_tools",
        items({"type": "additional_tools", "role": "developer", **function()}, GO_ITEM),
        "tools",
        (FunctionTool("f", "", SCHEMA, False, private={"late": True}),),
    ),
]

# member of the table: (members of the body, where it is named)
LOST: list[tuple[str, JSON, str]] = [
    *[
        (name, {name: value}, name)
        for name, value in {
            "stream_options": {"include_obfuscation": False},
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "client_metadata": {"a": "b"},
            "access_programs": {},
            "background_options": {},
            "image": {},
            "truncation": "auto",
            "context_management": [{"type": "compaction"}],
            "max_tool_calls": 5,
            "moderation": {"model": "m"},
            "background": True,
            "previous_response_id": "resp_1",
            "conversation": "conv_1",
            "prompt": {"id": "p"},
        }.items()
    ],
    ("a member within another, unknown", {"text": {"zz": 1}}, "text.zz"),
    (
        "a member beside one that says the same",
        {"reasoning": {"summary": "detailed", "generate_summary": "concise"}},
        "reasoning.generate_summary",
    ),
    ("an effort of a word unknown", {"reasoning": {"effort": "odd"}}, "reasoning.effort"),
    ("input[].id", items({**GO_ITEM, "type": "message", "id": "msg_1"}), "input[].id"),
    ("input[].status", items({**call(), "status": "incomplete"}, RESULT), "input[0].status"),
    ("input[].name of a result", items(call(), {**RESULT, "name": "f"}), "input[1].name"),
    (
        "content[].detail of a file",
        part(type="input_file", file_data="data:application/pdf;base64,QQ==", detail="high"),
        "input[0].content[0].detail",
    ),
    (
        "content[].logprobs",
        items(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "logprobs": [{"token": "a"}]}],
            },
            GO_ITEM,
        ),
        "input[0].content[0].logprobs",
    ),
    (
        "tool_choice.tools[] of a hosted kind",
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}},
        "tool_choice.tools[0]",
    ),
    ("include[] besides", {"include": ["file_search_call.results"]}, "include[0]"),
    ("reasoning.context", {"reasoning": {"effort": "low", "context": "all_turns"}}, "reasoning.context"),
    ("reasoning.mode", {"reasoning": {"effort": "low", "mode": "pro"}}, "reasoning.mode"),
    ("input[] item_reference", items({"type": "item_reference", "id": "msg_1"}, GO_ITEM), "input[0]"),
    ("input[] tool_search_call", items(GO_ITEM, {"type": "tool_search_call", "arguments": {}}, GO_ITEM), "input[1]"),
    ("input[] tool_search_output", items(GO_ITEM, {"type": "tool_search_output", "tools": []}), "input[1]"),
    ("input[] configuration_update", items({"type": "configuration_update"}, GO_ITEM), "input[0]"),
    ("input[] compaction", items(GO_ITEM, {"type": "compaction", "encrypted_content": "e"}, GO_ITEM), "input[1]"),
    ("input[] compaction_trigger", items(GO_ITEM, {"type": "compaction_trigger"}), "input[1]"),
    ("input[] of a hosted tool", items(GO_ITEM, {"type": "web_search_call", "id": "ws_1"}, GO_ITEM), "input[1]"),
    ("input[] of unknown type", items(GO_ITEM, {"type": "hologram"}), "input[1].type"),
    ("input[].content[] of unknown type", part(type="hologram"), "input[0].content[0].type"),
    (
        "input[].phase",
        items({"type": "message", "role": "assistant", "content": "a", "phase": "commentary"}, GO_ITEM),
        "input[0].phase",
    ),
    ("input[].caller", items(call(caller={"type": "direct"}), RESULT), "input[0].caller"),
    ("input[].async", items({**call(), "async": True}, RESULT), "input[0].async"),
    (
        "content[].annotations",
        items(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]}],
            },
            GO_ITEM,
        ),
        "input[0].content[0].annotations",
    ),
    *[
        (f"tools[].{name}", function(**{name: value}), f"tools[0].{name}")
        for name, value in {
            "defer_loading": True,
            "async": True,
            "allowed_callers": ["direct"],
            "output_schema": {},
        }.items()
    ],
    (
        "tools[] default namespace",
        {"tools": [{"type": "namespace", "name": "functions", "description": "All.", "tools": []}]},
        "tools[0].description",
    ),
    ("tools[] tool_search", {"tools": [{"type": "tool_search", "execution": "client"}]}, "tools[0]"),
    ("tools[] web_search", {"tools": [{"type": "web_search"}]}, "tools[0]"),
    ("tools[] of a hosted kind", {"tools": [{"type": "code_interpreter", "container": "c"}]}, "tools[0]"),
]


@pytest.mark.parametrize(("row", "members", "canonical", "value"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_with_a_meaning_is_read(row: str, members: JSON, canonical: str, value: Any) -> None:
    assert READ[row].rule in (Rule.ACCEPT, Rule.TRANSLATE)
    assert canonical in READ[row].to
    assert getattr(read(**members), canonical) == value


@pytest.mark.parametrize(
    ("given", "effort", "summary"),
    [
        ({"effort": "high", "summary": "detailed"}, "high", "detailed"),
        ({"effort": None, "generate_summary": "concise"}, "", "concise"),
        ({"effort": "odd"}, "", ""),
    ],
)
def test_reasoning_is_read(given: JSON, effort: str, summary: str) -> None:
    assert READ["reasoning"].to == "reasoning"
    found = read(reasoning=given).reasoning
    assert found is not None
    assert (found.enabled, found.effort, found.summary) == (None, effort, summary)


@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "members", "where"), LOST, ids=[case[0] for case in LOST])
def test_a_member_only_this_dialect_has_is_lost_as_its_row_says(
    row: str, members: JSON, where: str, strict: bool, upstream: str
) -> None:
    ledger = Ledger(direction="request")
    request = read(**members)
    if READ[row].under(strict) is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            BUILDS[upstream](request, ledger=ledger, options=RequestOptions(strict=strict))
        assert str(caught.value).startswith(f"{where}: ")
        return
    BUILDS[upstream](request, ledger=ledger, options=RequestOptions())
    found = [entry for entry in ledger if entry.path == where and entry.reason == READ[row].reason]
    assert [entry.action for entry in found] == ["dropped"]


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in (*CARRIED, *LOST)} | {"reasoning"} == set(READ)


def test_an_answer_in_the_foreground_is_what_every_dialect_gives() -> None:
    ledger = Ledger()
    build_chat(read(background=False), ledger=ledger, options=RequestOptions(strict=True))
    assert list(ledger) == []


def test_every_canonical_member_is_known_by_the_clients_name() -> None:
    request = read(
        instructions="i",
        parallel_tool_calls=True,
        max_output_tokens=5,
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        include=["message.output_text.logprobs"],
        reasoning={"effort": "low"},
        safety_identifier="u",
        prompt_cache_key="k",
    )
    paths = {
        "turns": "input",
        "system": "instructions",
        "parallel": "parallel_tool_calls",
        "max_tokens": "max_output_tokens",
        "output": "text.format",
        "verbosity": "text.verbosity",
        "logprobs": "include",
        "reasoning": "reasoning",
        "user": "safety_identifier",
        "cache_key": "prompt_cache_key",
        "temperature": "temperature",
    }
    assert {member: request.path(member) for member in paths} == paths
