"""Members of an answer that exclude each other, or are of another kind: one entry for what is not told."""

import json
from typing import Any

import pytest

from pipeline.reply import Form
from tests.answer_full import answered

F = {"name": "f", "arguments": "{}"}
CALL = {"id": "a", "type": "function", "function": F}
CHAT: list[tuple[Any, Any, list[str]]] = [
    ({"tool_calls": [CALL], "function_call": {"name": "g"}}, {}, ["choices[].delta.function_call"]),
    ({"tool_calls": [{**CALL, "custom": {"name": "g", "zz": 1}}]}, {}, ["choices[].delta.tool_calls[].custom"]),
    ({"tool_calls": [CALL], "function_call": None}, {}, []),
    ({"content": "hi"}, {"delta": {"content": "other"}}, ["choices[].delta"]),
    ({"content": "hi"}, {"delta": {}}, []),
    ({"content": "hi"}, {"delta": {"role": "assistant", "content": ""}}, []),
    ({"content": "hi"}, {"delta": {"content": "hi"}}, []),
    ({"content": "hi"}, {"delta": {"content": "hi", "refusal": "no"}}, ["choices[].delta"]),
    ({"content": "hi"}, {"delta": ["x"]}, ["choices[].delta"]),
]
MESSAGES: list[tuple[Any, Any, list[str]]] = [
    ([{"type": "text", "text": {"a": "b"}}], {}, ["content[].text"]),
    ([{"type": "text", "text": "hi", "citations": "b"}], {}, ["content[].citations"]),
    ([{"type": "thinking", "thinking": ["b"]}], {}, ["content[].thinking"]),
    ([{"type": "thinking", "thinking": "t", "signature": {"a": "b"}}], {}, ["content[].signature"]),
    (["b"], {}, ["content[]"]),
    ({"a": "b"}, {}, ["content"]),
    ("hi", {"stop_sequence": {"a": "b"}}, ["stop_sequence"]),
    ([{"type": "text", "text": "hi", "citations": None}], {}, []),
]


def lost(upstream: str, client: str, body: Any) -> list[str]:
    ledger = answered(upstream, client, json.dumps(body).encode(), Form.WHOLE, Form.WHOLE)[1]
    return [entry.path for entry in ledger if entry.action == "dropped" and entry.path != "usage"]


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize(("message", "beside", "due"), CHAT)
def test_what_a_chat_answer_says_beside_what_counts_is_one_entry(
    client: str, message: Any, beside: Any, due: list[str]
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **beside}
    assert lost("chat", client, {"id": "c", "model": "m", "choices": [choice]}) == due


@pytest.mark.parametrize("client", ["chat", "responses"])
@pytest.mark.parametrize(("content", "beside", "due"), MESSAGES)
def test_what_is_of_another_kind_in_a_messages_answer_is_one_entry(
    client: str, content: Any, beside: Any, due: list[str]
) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {"id": "m", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage, **beside}
    assert lost("messages", client, body) == due
