"""What Claude Code, Codex and the SDKs are known to send is never refused, on a strict route neither."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ledger import Ledger
from pipeline.request import RequestOptions
from pipeline.toolnames import BuiltRequest, OfferedTool
from tests.request_shapes import BUILDS, JSON, PARSES
from tests.request_types import type_faults


def translate(dialect: str, body: JSON, upstream: str, **options: Any) -> tuple[JSON, BuiltRequest, list[str]]:
    """The upstream's body, all that was built, and the paths of what was lost; the body is legal."""
    ledger = Ledger(direction="request")
    request = PARSES[dialect](body, ledger=ledger)
    built = BUILDS[upstream](request, ledger=ledger, options=RequestOptions(strict=True, **options))
    assert type_faults(upstream, built.body) == []
    return built.body, built, [entry.path for entry in ledger]


EPHEMERAL = {"type": "ephemeral"}
CLAUDE_CODE: JSON = {
    "model": "claude-opus-5-5",
    "max_tokens": 128_000,
    "stream": True,
    "system": [
        {"type": "text", "text": "billing: none"},
        {"type": "text", "text": "You are a coding agent.", "cache_control": EPHEMERAL},
        {"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL},
    ],
    "thinking": {"type": "adaptive", "display": "updates"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": '{"device_id":"' + "d" * 64 + '","account_uuid":"","session_id":"s"}'},
    "tools": [
        {
            "name": "Read",
            "description": "Reads a file.",
            "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
        },
        {"name": "mcp__" + "server__" * 10, "input_schema": {"type": "object"}, "defer_loading": True},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "system", "content": "# Environment", "output_config": {"effort": "medium"}},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EpwB=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.png"}},
                {"type": "tool_use", "id": "toolu_2", "name": "ToolSearch", "input": {"query": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [
                        {"type": "tool_reference", "tool_name": "mcp__x"},
                        {"type": "text", "text": "Loaded."},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
                        }
                    ],
                    "cache_control": EPHEMERAL,
                },
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "tokens left", "cache_control": EPHEMERAL}]},
    ],
}


def test_claude_code_over_chat() -> None:
    body, built, lost = translate("messages", CLAUDE_CODE, "chat")
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "system",
        "assistant",
        "tool",
        "tool",
        "user",
        "system",
    ]
    assert body["messages"][0]["content"] == "billing: none\n\nYou are a coding agent.\n\nBe brief."
    assert body["messages"][4]["content"] == "The tool mcp__x is loaded.\n\nLoaded."
    assert body["messages"][6]["content"][1]["image_url"] == {"url": "data:image/png;base64,QUJD"}
    assert body["reasoning_effort"] == "high"
    assert body["stream_options"] == {"include_usage": True}
    assert len(body["safety_identifier"]) == 64
    schema = CLAUDE_CODE["tools"][0]["input_schema"]
    assert body["tools"][0]["function"]["parameters"] == schema
    short = body["tools"][1]["function"]["name"]
    assert built.map.tool(short).name == CLAUDE_CODE["tools"][1]["name"]
    assert "messages[2].content[0]" in lost
    assert {"context_management", "tools[1].defer_loading", "messages[1].output_config"} <= set(lost)


def test_claude_code_over_responses() -> None:
    body, _, lost = translate("messages", CLAUDE_CODE, "responses")
    assert body["instructions"].startswith("billing: none\n\nYou are")
    assert [item["type"] for item in body["input"]] == [
        "message",
        "message",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert body["input"][6]["output"][0]["image_url"] == "data:image/png;base64,QUJD"
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["store"] is False
    assert all(tool["strict"] is False for tool in body["tools"])
    assert "messages[2].content[0]" in lost


def test_claude_code_goes_on_after_a_broken_stream() -> None:
    body = {
        **CLAUDE_CODE,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "text", "text": "The numb"}]},
            {"role": "user", "content": "Go on."},
        ],
        "stream": False,
    }
    for upstream in ("chat", "responses"):
        assert translate("messages", body, upstream)[0].get("stream") is None


def test_the_tool_runners_threads_are_begun_and_never_continued() -> None:
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "go"}]}
    translate("messages", {**body, "thread": {"type": "create"}}, "chat")
    with pytest.raises(ClientError) as caught:
        translate("messages", {**body, "thread": {"type": "continue", "previous_message_id": "msg_1"}}, "chat")
    assert (caught.value.status, caught.value.code) == (404, "thread_not_found")


def test_tools_of_the_ai_sdk_stream_eagerly() -> None:
    body = {
        "model": "m",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "eager_input_streaming": True}],
    }
    assert translate("messages", body, "chat")[2] == ["tools[0].eager_input_streaming"]


def codex_message(role: str, text: str) -> JSON:
    return {
        "type": "message",
        "id": f"msg_{text}",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


LARK = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
CODEX: JSON = {
    "model": "gpt-6.2-sol",
    "stream": True,
    "store": False,
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"},
    "text": {"verbosity": "low"},
    "prompt_cache_key": "thread",
    "client_metadata": {"x": "y"},
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "description": "",
                    "tools": [
                        {"type": "custom", "name": "exec", "description": "Runs.", "format": LARK},
                        {"type": "function", "name": "wait", "parameters": {"type": "object"}, "strict": False},
                    ],
                },
                {
                    "type": "namespace",
                    "name": "collaboration",
                    "description": "Agents.",
                    "tools": [
                        {
                            "type": "function",
                            "name": "list_agents",
                            "description": "Lists.",
                            "parameters": {"type": "object"},
                            "strict": False,
                        }
                    ],
                },
            ],
        },
        codex_message("developer", "instructions"),
        codex_message("developer", "skills"),
        codex_message("user", "context"),
        codex_message("user", "go"),
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "content": None,
            "encrypted_content": "gAAAA",
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "status": "completed",
            "call_id": "call_1",
            "name": "exec",
            "namespace": "functions",
            "input": 'await tools.run("x")',
        },
        {
            "type": "function_call",
            "id": "fc_2",
            "status": "completed",
            "call_id": "call_2",
            "name": "list_agents",
            "namespace": "collaboration",
            "arguments": "{}",
        },
        {
            "type": "custom_tool_call_output",
            "id": "ctco_1",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "done"}, {"type": "input_text", "text": "NUMBER=1"}],
        },
        {
            "type": "function_call_output",
            "id": "fco_2",
            "call_id": "call_2",
            "output": [{"type": "input_image", "image_url": "data:image/png;base64,QUJD"}],
        },
    ],
}
OFFERED = {
    "exec": OfferedTool("exec", "", ToolKind.CUSTOM, wrapped=True),
    "wait": OfferedTool("wait"),
    "collaboration__list_agents": OfferedTool("list_agents", "collaboration"),
}


def test_codex_over_messages() -> None:
    body, built, lost = translate("responses", CODEX, "messages")
    assert [block["text"] for block in body["system"]] == ["instructions", "skills"]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use", "tool_use"]
    assert body["messages"][1]["content"][0]["input"] == {"input": 'await tools.run("x")'}
    assert body["messages"][1]["content"][1]["name"] == "collaboration__list_agents"
    first, second = body["messages"][2]["content"]
    assert [part["text"] for part in first["content"]] == ["done", "NUMBER=1"]
    assert second["content"][0]["source"]["data"] == "QUJD"
    assert dict(built.map.tools) == OFFERED
    assert [tool["name"] for tool in body["tools"]] == list(OFFERED)
    assert body["tools"][2]["description"] == "Lists.\n\nAgents."
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert (body["thinking"], body["output_config"]) == (
        {"type": "adaptive", "display": "summarized"},
        {"effort": "high"},
    )
    assert body["max_tokens"] == 32_000
    assert "input[5]" in lost


def test_codex_over_chat() -> None:
    body, built, lost = translate("responses", CODEX, "chat")
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert body["messages"][0]["content"] == "instructions\n\nskills"
    call = body["messages"][3]["tool_calls"][0]
    assert call == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "exec", "arguments": '{"input":"await tools.run(\\"x\\")"}'},
    }
    assert body["messages"][4]["content"] == "done\n\nNUMBER=1"
    assert dict(built.map.tools) == OFFERED
    assert body["prompt_cache_key"] == "thread"
    assert body["parallel_tool_calls"] is False
    assert body["verbosity"] == "low"
    assert "reasoning_content" not in body["messages"][3]
    assert "input[5]" in lost


def test_codex_with_freeform_tools_of_the_upstream() -> None:
    body, built, _ = translate("responses", CODEX, "chat", custom_tools=True)
    assert body["tools"][0]["custom"]["format"] == {
        "type": "grammar",
        "grammar": {"syntax": "lark", "definition": 'start: "x"'},
    }
    assert body["messages"][3]["tool_calls"][0]["type"] == "custom"
    assert built.map.tool("exec") == OfferedTool("exec", "", ToolKind.CUSTOM)


@pytest.mark.parametrize("upstream", ["messages", "chat"])
def test_codex_tools_that_the_provider_runs_are_left_out(upstream: str) -> None:
    hosted = [
        {"type": "tool_search", "execution": "client"},
        {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]},
    ]
    function = {"type": "function", "name": "exec_command", "parameters": {"type": "object"}, "strict": False}
    body, _, lost = translate("responses", {**CODEX, "tools": [function, *hosted]}, upstream)
    assert len(body["tools"]) == 4
    assert {"tools[1]", "tools[2]"} <= set(lost)


def test_a_chat_client_echoes_reasoning() -> None:
    body = {
        "model": "m",
        "store": False,
        "max_completion_tokens": 100,
        "messages": [
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": "a",
                "reasoning_content": "hm",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "r"}]},
        ],
    }
    for upstream in ("messages", "responses"):
        built, _, lost = translate("chat", body, upstream)
        assert lost == ["messages[2].reasoning_content"]
        assert "hm" not in str(built)
