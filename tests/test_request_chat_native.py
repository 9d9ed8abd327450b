"""A Chat Completions request toward its own dialect."""

from typing import Any

import pytest

from pipeline import envelope
from pipeline.ledger import Ledger
from pipeline.request import (
    Request,
    RequestOptions,
)
from stages.dialects.chat.request import build, parse
from tests.request_shapes import JSON


def body(**members: Any) -> JSON:
    return {"model": "m", "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def messages(*given: JSON) -> JSON:
    return {"messages": list(given)}


def native(**members: Any) -> JSON:
    ledger = Ledger(direction="request")
    written = build(read(**members), ledger=ledger).body
    assert list(ledger) == []
    return written


# toward its own dialect


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"max_tokens": 5, "user": "u", "top_k": 4, "n": 2, "stop": ["a"], "top_logprobs": 2, "logprobs": True},
        {"max_completion_tokens": 5, "safety_identifier": "s", "store": False},
        {"reasoning": {"effort": "high"}},
        {"reasoning_effort": "default", "provider": {"order": ["a"]}, "web_search_options": {}},
        {"tool_choice": "none", "parallel_tool_calls": True},
        {"tool_choice": {"type": "web_search"}, "tools": [{"type": "web_search", "x": 1}]},
        {"tools": [{"type": "function", "function": {"name": "f.g" + "x" * 99, "y": 1}, "cache_control": {"a": 1}}]},
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "z": 1}}},
        messages({"role": "developer", "content": "a"}, {"role": "system", "content": "b", "name": "n"}),
        messages({"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        messages({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
        messages({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x", "w": 1}}]}),
        messages({"role": "user", "content": [{"type": "file", "file": {"file_id": "f", "filename": "n"}}]}),
        messages({"role": "user", "content": [{"type": "hologram", "x": [1]}]}),
        messages({"role": "user", "content": [{"type": "file", "file": {"file_data": "http://x", "filename": "n"}}]}),
        messages({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "Q", "format": "x"}}]}),
        {"max_tokens": 0, "stop": list("abcdef"), "response_format": {"type": "json_object"}},
        messages({"role": "assistant", "content": None, "reasoning_content": "r", "reasoning_details": [{"a": 1}]}),
        messages(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}
        ),
        messages({"role": "assistant", "content": [{"type": "hologram"}, {"type": "text", "text": "a"}]}),
        messages(
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [
                    {"id": "1|x", "type": "function", "function": {"name": "f", "arguments": " { } "}},
                    {"id": "2", "type": "custom", "custom": {"name": "g", "input": "t"}},
                ],
            },
            {"role": "tool", "tool_call_id": "1|x", "content": [{"type": "text", "text": "r", "q": 1}], "name": "f"},
            {"role": "tool", "tool_call_id": "2", "content": "[tool error] no"},
        ),
    ],
)
def test_toward_its_own_dialect_a_request_is_what_it_was(members: JSON) -> None:
    assert native(**members) == body(**members)


def test_a_policys_effort_stands_alone() -> None:
    request = read(reasoning={"effort": "high"}, enable_thinking=True)
    written = build(request, ledger=Ledger(), options=RequestOptions(effort="low")).body
    assert written["reasoning_effort"] == "low"
    assert not {"reasoning", "enable_thinking"} & set(written)
    none = build(request, ledger=Ledger(), options=RequestOptions(effort="")).body
    assert not {"reasoning", "enable_thinking", "reasoning_effort"} & set(none)


def test_an_envelope_of_ours_never_goes_up_but_what_it_holds_does() -> None:
    sealed = envelope.seal("up", "m", "t", '{"reasoning_details":[{"data":"blob"}]}')
    said = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "t",
        "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": sealed}],
    }
    request = read(messages=[said, {"role": "user", "content": "b"}])
    ledger = Ledger(direction="request")
    home = build(request, ledger=ledger, options=RequestOptions(upstream="up")).body
    assert home["messages"][0] == {"role": "assistant", "content": "a", "reasoning_details": [{"data": "blob"}]}  # type: ignore[index]
    assert list(ledger) == []
    away = build(request, ledger=ledger, options=RequestOptions(upstream="other")).body
    assert away["messages"][0] == {"role": "assistant", "content": "a"}  # type: ignore[index]
    assert [entry.path for entry in ledger] == ["messages[0].reasoning_details[0]"]
