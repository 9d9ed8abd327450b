"""Every recorded request builds a legal one of each other dialect."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pipeline.ledger import Ledger
from pipeline.toolnames import BuiltRequest
from stages.dialects.chat.request import build as build_chat
from stages.dialects.messages.request import parse as parse_messages
from stages.dialects.responses.request import build as build_responses
from tests.request_types import grammar_faults, needs_corpus, needs_grammar, recorded, type_faults

BUILDS: Mapping[str, Callable[..., BuiltRequest]] = {"chat": build_chat, "responses": build_responses}

NO_REQUESTS = {
    "crewAIInc__crewAI/crewai_llms_anthropic_test_anthropic_stop_sequences_sent_to_api.request.json",
    "langchain-ai__langsmith-sdk/integration_tests_test_anthropic_test_completions_async_api-7.request.json",
}
"""Recorded under this dialect, but telemetry, and a body of the API before this one."""

MESSAGES = [(name, body) for name, body in recorded("messages") if name not in NO_REQUESTS]


@needs_corpus
@needs_grammar
@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize(("name", "body"), MESSAGES, ids=[name for name, _ in MESSAGES])
def test_every_recorded_messages_request_builds_a_legal_request(name: str, body: dict[str, Any], upstream: str) -> None:
    request = parse_messages(body, ledger=Ledger(direction="request"))
    built = BUILDS[upstream](request, ledger=Ledger(direction="request")).body
    assert type_faults(upstream, built) == []
    assert grammar_faults(upstream, built) == []


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
