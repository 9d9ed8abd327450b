"""The measures of legality themselves: they accept what is a request and refuse what is none."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.request_types import grammar_faults, needs_grammar, type_faults

GOOD: Mapping[str, dict[str, Any]] = {
    "messages": {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]},
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "responses": {"model": "m", "input": [{"type": "message", "role": "user", "content": "x"}]},
}
BAD = [
    ("messages", {"max_tokens": None}),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    ("messages", {"messages": [{"role": "tool", "content": "x"}]}),
    ("chat", {"messages": [{"role": "tool", "content": "x"}]}),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}),
    ("chat", {"tools": [{"type": "function", "function": {}}]}),
    ("chat", {"reasoning_effort": "huge"}),
    ("responses", {"input": [{"type": "function_call", "call_id": "1", "name": "f"}]}),
    ("responses", {"input": [{"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}]}),
    ("responses", {"tools": [{"type": "function", "name": 5, "parameters": {}, "strict": False}]}),
    ("responses", {"text": {"format": {"type": "json_schema"}}}),
]


@pytest.mark.parametrize("dialect", GOOD)
def test_the_types_accept_a_legal_request(dialect: str) -> None:
    assert type_faults(dialect, GOOD[dialect]) == []


@needs_grammar
@pytest.mark.parametrize("dialect", GOOD)
def test_the_grammar_accepts_a_legal_request(dialect: str) -> None:
    assert grammar_faults(dialect, GOOD[dialect]) == []


@pytest.mark.parametrize(("dialect", "members"), BAD)
def test_the_types_refuse_what_is_no_request(dialect: str, members: dict[str, Any]) -> None:
    assert type_faults(dialect, {**GOOD[dialect], **members})


@needs_grammar
@pytest.mark.parametrize(("dialect", "members"), BAD)
def test_the_grammar_refuses_what_is_no_request(dialect: str, members: dict[str, Any]) -> None:
    assert grammar_faults(dialect, {**GOOD[dialect], **members})
