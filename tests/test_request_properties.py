"""What holds for every request, however odd: refused by name or translated, never anything else."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ClientError
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.request import (
    Choosing,
    FunctionTool,
    ImagePart,
    Inline,
    Part,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from tests.request_facts import facts
from tests.request_shapes import BUILDS, JSON, PARSES
from tests.request_types import type_faults

RICH: Mapping[str, JSON] = {
    "messages": {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
        "metadata": {"user_id": "u"},
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "stop_sequences": ["a"],
        "tools": [
            {"name": "f", "input_schema": {"type": "object"}},
            {"type": "web_search_20250305", "name": "web_search", "user_location": {"type": "approximate"}},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]},
                    {
                        "type": "document",
                        "source": {"type": "text", "data": "d"},
                        "citations": {"enabled": True},
                    },
                    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "g"}}},
                    {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "x"}]},
                ],
            },
        ],
    },
    "chat": {
        "model": "m",
        "max_tokens": 5,
        "stop": ["a"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "f"}}]},
        },
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {}}},
            {"type": "custom", "custom": {"name": "g", "format": {"grammar": {"syntax": "lark", "definition": "d"}}}},
        ],
        "stream_options": {"include_usage": True},
        "reasoning": {"effort": "low"},
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
            {
                "role": "assistant",
                "content": "a",
                "reasoning_details": [{"text": "t", "signature": "s"}],
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "r"},
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ=="}}]},
        ],
    },
    "responses": {
        "model": "m",
        "instructions": "s",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
        "include": ["message.output_text.logprobs"],
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [
            {"type": "function", "name": "f", "parameters": {}, "strict": False},
            {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "g", "format": {"type": "text"}}]},
            {"type": "web_search", "filters": {"allowed_domains": ["a"]}},
        ],
        "input": [
            {"type": "additional_tools", "tools": [{"type": "function", "name": "h"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "u"}]},
            {"type": "reasoning", "summary": [{"text": "t"}], "encrypted_content": "e"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "r"}]},
        ],
    },
}

ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path]
    if isinstance(value, dict):
        found.extend(place for name, inner in value.items() for place in places(inner, (*path, name)))
    elif isinstance(value, list):
        found.extend(place for at, inner in enumerate(value) for place in places(inner, (*path, at)))
    return found


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """A JSON value with another at a place."""
    if not path:
        return by
    head, *rest = path
    if isinstance(value, dict):
        return {**value, head: replaced(value[head], tuple(rest), by)}
    return [replaced(inner, tuple(rest), by) if at == head else inner for at, inner in enumerate(value)]


@pytest.mark.parametrize("dialect", RICH)
def test_the_bodies_that_are_made_odd_are_legal_before(dialect: str) -> None:
    request = PARSES[dialect](RICH[dialect], ledger=Ledger())
    for build in BUILDS.values():
        build(request, ledger=Ledger())


@pytest.mark.parametrize("dialect", RICH)
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_an_odd_member_is_refused_by_its_name_or_translated(dialect: str, data: st.DataObject) -> None:
    rich = RICH[dialect]
    place = data.draw(st.sampled_from([place for place in places(rich) if place]))
    body = replaced(rich, place, data.draw(ODD))
    refused = [str(error) for error in errors(dialect, body)]
    assert all(fault.startswith(tuple(rich)) for fault in refused)


def errors(dialect: str, body: JSON) -> list[ClientError]:
    """The refusals of a body, by any route; what is not refused is JSON."""
    try:
        request = PARSES[dialect](body, ledger=Ledger())
    except ClientError as error:
        return [error]
    found = []
    for build in BUILDS.values():
        for strict in (False, True):
            try:
                dumps(build(request, ledger=Ledger(), options=RequestOptions(strict=strict)).body)
            except ClientError as error:
                found.append(error)
    return found


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Zs", "Cc"]), min_size=1, max_size=8)
NAMES = st.text("abcXYZ019_-.|é", min_size=1, max_size=90)
ARGUMENTS = st.dictionaries(WORDS, st.integers() | WORDS | st.booleans(), max_size=3)
TEXTS = st.builds(TextPart, WORDS)
IMAGES = st.builds(lambda data: ImagePart(Inline("image/png", data)), st.just("QUJD"))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Turns as a client sends them: a user's, and an assistant's with calls that are all answered."""
    turns = [Turn(Role.USER, tuple(draw(st.lists(TEXTS | IMAGES, min_size=1, max_size=3))))]
    for at in range(draw(st.integers(0, 3))):
        said: list[Part] = list(draw(st.lists(TEXTS, max_size=1)))
        ids = draw(st.lists(NAMES, max_size=3, unique=True))
        calls = [ToolUsePart(f"{one}{at}", draw(NAMES), draw(ARGUMENTS)) for one in ids]
        if not said and not calls:
            continue
        turns.append(Turn(Role.ASSISTANT, (*said, *calls)))
        results = [ToolResultPart(call.id, (draw(TEXTS),), draw(st.booleans())) for call in calls]
        turns.append(Turn(Role.USER, (*results, *draw(st.lists(TEXTS, min_size=0 if results else 1, max_size=2)))))
    return tuple(turns)


REQUESTS = st.builds(
    Request,
    dialect=st.just("elsewhere"),
    model=st.just("m"),
    turns=conversations(),
    system=st.lists(st.builds(lambda part: Turn(Role.SYSTEM, (part,)), TEXTS), max_size=2).map(tuple),
    tools=st.lists(
        st.builds(FunctionTool, NAMES, WORDS, st.just({"type": "object", "properties": {}})),
        max_size=3,
        unique_by=lambda tool: tool.name,
    ).map(tuple),
    tool_choice=st.sampled_from([None, ToolChoice(Choosing.ANY), ToolChoice(Choosing.NONE)]),
    max_tokens=st.integers(16, 1000),
    temperature=st.none() | st.floats(0, 1),
    stream=st.booleans(),
)


@pytest.mark.parametrize("dialect", BUILDS)
@given(request_=REQUESTS)
@settings(max_examples=60, deadline=None)
def test_a_request_is_legal_and_says_the_same_when_it_is_read_again(dialect: str, request_: Request) -> None:
    ledger = Ledger(direction="request")
    built = BUILDS[dialect](request_, ledger=ledger)
    assert type_faults(dialect, built.body) == []
    toolless = {"the tool is not there"} if request_.tool_choice and not request_.tools else set()
    assert {entry.reason for entry in ledger} <= {"a tool's result cannot say that it failed", *toolless}
    before, after = facts(request_), facts(PARSES[dialect](built.body, ledger=Ledger()), built.map)
    unsaid = {"choice", "parallel"} if not request_.tools else {"parallel"}
    assert {name: after[name] for name in before if name not in unsaid} == {
        name: before[name] for name in before if name not in unsaid
    }
