"""Requests that hold all that a dialect has: every member, of every piece, in every place."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.request_shapes import JSON

PIXEL = "iVBORw0KGgo="
PDF = "JVBERi0="
FREE = {"type": "object", "properties": {"a": {"type": "string"}}}
MARK = {"type": "ephemeral", "ttl": "1h"}
BREAK = {"mode": "explicit", "ttl": "12h"}

_MESSAGES: JSON = {
    "model": "m",
    "max_tokens": 64_000,
    "system": [{"type": "text", "text": "be brief", "cache_control": MARK}],
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "stream": True,
    "service_tier": "standard_only",
    "metadata": {"user_id": "u", "account": "a"},
    "cache_control": MARK,
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "thinking": {"type": "adaptive", "display": "summarized", "block_binding": "none"},
    "output_config": {
        "effort": "high",
        "format": {"type": "json_schema", "schema": FREE},
        "task_budget": {"type": "tokens", "total": 9},
    },
    "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
    "diagnostics": {"previous_message_id": "msg_1"},
    "speed": "fast",
    "inference_geo": "eu",
    "container": {"id": "c", "skills": [{"type": "custom", "skill_id": "s", "version": "1"}]},
    "mcp_servers": [{"type": "url", "url": "http://x", "name": "x", "tool_configuration": {"enabled": True}}],
    "thread": {"type": "new"},
    "tools": [
        {
            "name": "f",
            "description": "d",
            "input_schema": FREE,
            "strict": True,
            "cache_control": MARK,
            "defer_loading": True,
            "eager_input_streaming": True,
            "allowed_callers": ["direct"],
            "input_examples": [{"a": "b"}],
        },
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 3,
            "allowed_domains": ["x.org"],
            "user_location": {"type": "approximate", "city": "Paris", "country": "FR"},
        },
        {"type": "bash_20250124", "name": "bash", "cache_control": MARK},
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "go", "cache_control": MARK},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                    "cache_control": MARK,
                    "transformations": {"oversized_image": "resize"},
                },
                {"type": "image", "source": {"type": "url", "url": "http://x/i"}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                    "title": "t",
                    "context": "c",
                    "citations": {"enabled": True},
                    "cache_control": MARK,
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
                {
                    "type": "document",
                    "source": {
                        "type": "content",
                        "content": [
                            {"type": "text", "text": "within", "cache_control": MARK},
                            {"type": "image", "source": {"type": "url", "url": "http://x/j"}},
                        ],
                    },
                },
                {
                    "type": "search_result",
                    "source": "s",
                    "title": "t",
                    "content": [{"type": "text", "text": "hit"}],
                    "citations": {"enabled": True},
                    "cache_control": MARK,
                },
                {"type": "container_upload", "file_id": "f"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {
                    "type": "text",
                    "text": "said",
                    "citations": [{"type": "char_location", "cited_text": "c", "document_index": 0}],
                },
                {
                    "type": "server_tool_use",
                    "id": "srv",
                    "name": "web_search",
                    "input": {"query": "q"},
                    "caller": {"type": "direct"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srv",
                    "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}],
                },
                {
                    "type": "tool_use",
                    "id": "a",
                    "name": "f",
                    "input": {"a": "b"},
                    "caller": {"type": "direct"},
                    "toolset_name": "browser",
                    "cache_control": MARK,
                },
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "is_error": True,
                    "toolset_name": "browser",
                    "cache_control": MARK,
                    "content": [
                        {"type": "text", "text": "found", "cache_control": MARK},
                        {"type": "image", "source": {"type": "url", "url": "http://x/k"}},
                        {"type": "tool_reference", "tool_name": "f"},
                        {"type": "browser_state", "tabs": [{"id": 1, "url": "u"}], "state_changes": []},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "b", "content": "plain"},
                {"type": "text", "text": "and"},
            ],
        },
        {"role": "user", "content": "more"},
        {"role": "system", "content": "later", "clear_at": "end", "output_config": {"effort": "low"}},
        {"role": "assistant", "content": "so"},
        {"role": "assistant", "content": "it is"},
        {"role": "user", "content": "on"},
    ],
}


def _file(**members: Any) -> JSON:
    return {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "f", **members}}


_CHAT: JSON = {
    "model": "m",
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "max_completion_tokens": 64_000,
    "max_tokens": 60_000,
    "stop": ["END"],
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "seed": 1,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "logit_bias": {"1": 2},
    "n": 1,
    "logprobs": True,
    "top_logprobs": 3,
    "reasoning_effort": "high",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": FREE, "strict": False, "description": "d"},
    },
    "verbosity": "low",
    "metadata": {"k": "v"},
    "safety_identifier": "s",
    "user": "u",
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "auto"},
    "prompt_cache_retention": "24h",
    "service_tier": "flex",
    "store": True,
    "stream": True,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "audio": {"voice": "alloy", "format": "mp3"},
    "modalities": ["text", "audio"],
    "prediction": {"type": "content", "content": "c"},
    "moderation": {"model": "m", "policy": {"input": {"mode": "m"}}},
    "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Paris"}}},
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": FREE, "strict": True},
            "cache_control": MARK,
        },
        {
            "type": "custom",
            "custom": {
                "name": "c",
                "description": "d",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "g"}},
            },
        },
        {"type": "openrouter:web_search", "parameters": {"max_results": 3}},
    ],
    "functions": [{"name": "g", "description": "d", "parameters": FREE}],
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "be brief", "prompt_cache_breakpoint": BREAK}]},
        {"role": "developer", "content": "and kind", "name": "dev"},
        {
            "role": "user",
            "name": "bob",
            "cache_control": MARK,
            "content": [
                {"type": "text", "text": "go", "cache_control": MARK},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "high"},
                    "prompt_cache_breakpoint": BREAK,
                },
                _file(),
            ],
        },
        {
            "role": "assistant",
            "name": "alice",
            "content": [{"type": "text", "text": "said"}, {"type": "refusal", "refusal": "no"}],
            "refusal": "never",
            "reasoning_content": "hm",
            "reasoning": "hm",
            "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"}],
            "audio": {"id": "a"},
            "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}],
            "extra_content": {"google": {"thought_signature": "s"}},
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "index": 0,
                    "function": {"name": "f", "arguments": '{"a":1}'},
                    "extra_content": {"google": {"thought_signature": "s"}},
                },
                {"id": "b", "type": "custom", "custom": {"name": "c", "input": "i"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "a",
            "name": "f",
            "content": [{"type": "text", "text": "found", "prompt_cache_breakpoint": BREAK}],
            "cache_control": MARK,
        },
        {"role": "tool", "tool_call_id": "b", "content": "[tool error] bad"},
        {"role": "assistant", "content": "so", "function_call": {"name": "g", "arguments": "{}"}},
        {"role": "function", "name": "g", "content": "old"},
        {"role": "assistant", "content": "it is"},
        {"role": "user", "content": "on"},
    ],
}

_RESPONSES: JSON = {
    "model": "m",
    "instructions": "be brief",
    "tool_choice": {"type": "function", "name": "f"},
    "parallel_tool_calls": False,
    "max_output_tokens": 64_000,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_logprobs": 3,
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs", "file_search_call.results"],
    "reasoning": {"effort": "high", "summary": "detailed", "context": "all", "mode": "pro"},
    "text": {
        "format": {"type": "json_schema", "name": "n", "schema": FREE, "strict": False, "description": "d"},
        "verbosity": "low",
    },
    "metadata": {"k": "v"},
    "safety_identifier": "s",
    "user": "u",
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "auto"},
    "service_tier": "flex",
    "store": True,
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "client_metadata": {"k": "v"},
    "truncation": "auto",
    "context_management": [{"type": "compaction", "compact_threshold": 9}],
    "max_tool_calls": 3,
    "moderation": {"model": "m"},
    "tools": [
        {
            "type": "function",
            "name": "f",
            "description": "d",
            "parameters": FREE,
            "strict": True,
            "async": False,
            "allowed_callers": ["direct"],
            "defer_loading": True,
            "output_schema": FREE,
        },
        {
            "type": "custom",
            "name": "c",
            "description": "d",
            "format": {"type": "grammar", "syntax": "lark", "definition": "g"},
            "defer_loading": True,
        },
        {
            "type": "namespace",
            "name": "space",
            "description": "Things.",
            "tools": [{"type": "function", "name": "inner", "description": "d", "parameters": FREE, "strict": True}],
        },
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["x.org"]},
            "search_context_size": "low",
            "user_location": {"type": "approximate", "city": "Paris"},
        },
        {"type": "file_search", "vector_store_ids": ["v"], "ranking_options": {"ranker": "auto"}},
        {"type": "tool_search", "description": "d"},
    ],
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "and kind", "prompt_cache_breakpoint": BREAK}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "go", "prompt_cache_breakpoint": BREAK},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "high"},
                {
                    "type": "input_file",
                    "file_data": f"data:application/pdf;base64,{PDF}",
                    "filename": "f",
                    "detail": "high",
                    "prompt_cache_breakpoint": BREAK,
                },
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "content": [{"type": "reasoning_text", "text": "raw"}],
            "encrypted_content": "e",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {
                    "type": "output_text",
                    "text": "said",
                    "annotations": [{"type": "url_citation", "url": "u", "title": "t"}],
                    "logprobs": [{"token": "t", "logprob": 0.5}],
                },
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "a",
            "name": "f",
            "arguments": '{"a":1}',
            "status": "completed",
            "caller": {"type": "direct"},
            "async": False,
        },
        {"type": "custom_tool_call", "call_id": "b", "name": "c", "input": "i"},
        {"type": "function_call", "call_id": "d", "name": "inner", "namespace": "space", "arguments": "{}"},
        {
            "type": "function_call_output",
            "id": "fco_1",
            "call_id": "a",
            "name": "f",
            "status": "completed",
            "caller": {"type": "direct"},
            "output": [
                {"type": "input_text", "text": "found", "prompt_cache_breakpoint": BREAK},
                {"type": "input_image", "image_url": "http://x/i", "detail": "low"},
            ],
        },
        {"type": "custom_tool_call_output", "call_id": "b", "output": "bad"},
        {"type": "function_call_output", "call_id": "d", "output": "well", "namespace": "space"},
        {"type": "tool_search_call", "id": "ts", "execution": "client", "arguments": {"q": "x"}},
        {"type": "compaction", "id": "cmp", "encrypted_content": "e"},
        {"role": "assistant", "content": "it is"},
        {"role": "user", "content": "on"},
    ],
}


def _without(body: JSON, *names: str, **members: Any) -> JSON:
    return {**{name: value for name, value in body.items() if name not in names}, **members}


_EFFORT = ("reasoning_effort",)
_ALLOWED = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}

FULL: Mapping[str, Sequence[JSON]] = {
    "messages": (
        _MESSAGES,
        _without(
            _MESSAGES,
            "output_config",
            thinking={"type": "enabled", "budget_tokens": 9_000, "display": "omitted"},
            tool_choice={"type": "auto", "disable_parallel_tool_use": False},
            output_format={"type": "json_schema", "schema": FREE},
        ),
        _without(_MESSAGES, thinking={"type": "between_tools"}, tool_choice={"type": "any"}),
    ),
    "chat": (
        _CHAT,
        _without(
            _CHAT,
            *_EFFORT,
            reasoning={"effort": "high", "max_tokens": 9_000, "summary": "detailed", "exclude": True, "enabled": True},
            tool_choice={"type": "allowed_tools", "allowed_tools": _ALLOWED},
            response_format={"type": "json_object"},
        ),
        _without(
            _CHAT,
            *_EFFORT,
            thinking={"type": "enabled", "budget_tokens": 9_000},
            tool_choice={"type": "custom", "custom": {"name": "c"}},
        ),
        _without(_CHAT, *_EFFORT, "tool_choice", enable_thinking=True, thinking_budget=9_000, function_call="auto"),
    ),
    "responses": (
        _RESPONSES,
        _without(
            _RESPONSES,
            reasoning={"effort": "low", "generate_summary": "concise"},
            text={"format": {"type": "json_object"}},
            tool_choice={
                "type": "allowed_tools",
                "mode": "required",
                "tools": [
                    {"type": "function", "name": "f"},
                    {"type": "custom", "name": "c"},
                    {"type": "function", "name": "inner", "namespace": "space"},
                ],
            },
        ),
    ),
}
"""The bodies of a dialect; several, where one member excludes another."""

WORDS = frozenset(
    {"input_schema", "schema", "parameters", "output_schema", "input", "arguments", "logit_bias", "metadata"}
)
"""Members whose value is the client's own, whatever stands in it: it is carried or lost as one."""


def places(value: Any, where: str = "") -> Iterator[str]:
    """The path of each object within a body that is not the client's own, outermost first."""
    if isinstance(value, Mapping):
        yield where
        for name, inner in value.items():
            if name not in WORDS or isinstance(inner, list) or (name == "metadata" and "user_id" in inner):
                yield from places(inner, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, f"{where}[{at}]")


def at(body: Any, where: str) -> Any:
    """What stands at a path."""
    for step in filter(None, where.replace("[", ".[").split(".")):
        body = body[int(step[1:-1])] if step.startswith("[") else body[step]
    return body
