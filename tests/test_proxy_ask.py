"""A Messages request as a Chat request: what is carried, what is left out, what is refused."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples.proxy.ask import chat_request, parse
from pipeline.errors import ClientError
from pipeline.jsontext import dumps

LEAST: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}], "stream": True}


def asked(**members: Any) -> dict[str, Any]:
    return chat_request(parse(json.dumps(LEAST | members).encode()))


def said(role: str, *blocks: Any) -> list[dict[str, Any]]:
    turns = asked(messages=[{"role": role, "content": [*blocks]}])["messages"]
    return [*turns]


def test_a_request_asks_for_a_stream_with_its_usage() -> None:
    assert asked(temperature=0.5, top_p=0.9, stop_sequences=["END"], metadata={"user_id": "u"}) == {
        "model": "m",
        "max_tokens": 1,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("system", ["a\nb", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]])
def test_the_system_prompt_is_the_first_message(system: Any) -> None:
    assert asked(system=system)["messages"][0] == {"role": "system", "content": "a\nb"}


def test_a_system_message_in_the_middle_stays_there() -> None:
    assert said("system", {"type": "text", "text": "a"}) == [{"role": "system", "content": "a"}]


def test_an_assistants_calls_stand_beside_its_text_and_its_thinking_stays_here() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "ü", "n": 2**70}}
    blocks = ({"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}, call, {"type": "text", "text": "b"})
    (turn,) = said("assistant", *blocks)
    (made,) = turn["tool_calls"]
    assert json.loads(made["function"].pop("arguments")) == {"at": "ü", "n": 2**70}
    function = {"id": "c1", "type": "function", "function": {"name": "look"}}
    assert turn == {"role": "assistant", "content": "ab", "tool_calls": [function]}
    assert said("assistant", blocks[0]) == [{"role": "assistant", "content": ""}]


def test_a_tool_result_is_a_message_of_its_own_before_the_text() -> None:
    first = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "18"}]}
    second = {"type": "tool_result", "tool_use_id": "c2"}
    assert said("user", first, second, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}) == [
        {"role": "tool", "tool_call_id": "c1", "content": "18"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "user", "content": "a\nb"},
    ]


def test_tools_are_functions() -> None:
    schema = {"type": "object", "properties": {}}
    tools = [{"name": "look", "description": "Looks", "input_schema": schema}, {"name": "see", "input_schema": schema}]
    assert asked(tools=tools)["tools"] == [
        {"type": "function", "function": {"name": "look", "parameters": schema, "description": "Looks"}},
        {"type": "function", "function": {"name": "see", "parameters": schema}},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_a_tool_choice_is_translated(choice: Any, expected: Any) -> None:
    assert asked(tool_choice=choice)["tool_choice"] == expected


IMAGE = {"type": "image", "source": {}}
USED = {"type": "tool_use", "id": "c", "name": "n", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "x"}


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"model": ""}, "model"),
        ({"model": 1}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": [], "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [RESULT | {"content": [IMAGE]}]}]},
            "messages[0].content[0].content[0]",
        ),
        (
            {"messages": [{"role": "user", "content": [RESULT | {"tool_use_id": ""}]}]},
            "messages[0].content[0].tool_use_id",
        ),
        ({"messages": [{"role": "assistant", "content": [IMAGE]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "content": [USED | {"id": ""}]}]}, "messages[0].content[0].id"),
        ({"messages": [{"role": "assistant", "content": [USED | {"name": 1}]}]}, "messages[0].content[0].name"),
        ({"messages": [{"role": "assistant", "content": [USED | {"input": []}]}]}, "messages[0].content[0].input"),
        ({"system": 1}, "system"),
        ({"tools": 1}, "tools"),
        ({"tools": [1]}, "tools[0]"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "n"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "n", "input_schema": {}, "description": 1}]}, "tools[0].description"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "most"}}, "tool_choice.type"),
        ({"tool_choice": {"type": {}}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"stream": 1}, "stream"),
    ],
)
def test_what_is_wrong_or_cannot_be_carried_is_refused_by_its_path(members: dict[str, Any], path: str) -> None:
    with pytest.raises(ClientError) as caught:
        asked(**members)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.status == 400


JSON = st.recursive(
    st.sampled_from(
        [None, True, 0, 1, -1, 0.5, "", "x", "user", "assistant", "text", "tool_use", "tool_result", "any"]
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "text", "role", "content", "x"]), inner),
    max_leaves=12,
)
NAMES = st.sampled_from(["model", "max_tokens", "messages", "system", "tools", "tool_choice", "stop_sequences", "x"])


@given(st.dictionaries(NAMES, JSON))
@example({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": {"type": "text"}}]}]})
def test_any_json_is_carried_or_refused(members: dict[str, Any]) -> None:
    try:
        request = asked(**members)
    except ClientError:
        return
    assert json.loads(dumps(request))["stream"] is True
