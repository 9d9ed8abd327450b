"""Members of a request that exclude each other: one counts, and the ledger has the other."""

from typing import Any

import pytest

from tests.test_request_silent import of

F = {"name": "f", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": F}]
CALL = {"type": "function", "function": {"name": "f"}}
OTHER = {"name": "g", "description": "other", "parameters": {"type": "object"}}
GRAMMAR = {"type": "text", "syntax": "lark", "definition": "d"}
LATE = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", **F}], "id": "i"}
PAGE = {"type": "url", "url": "http://x"}


def asking(content: Any) -> Any:
    return {"messages": [{"role": "user", "content": content}]}


def saying(*items: Any) -> Any:
    return {"input": [{"role": "user", "content": "go"}, *items]}


CHAT: list[tuple[Any, list[str]]] = [
    ({"tools": TOOLS, "tool_choice": "auto", "function_call": "none"}, ["function_call"]),
    ({"tools": TOOLS, "tool_choice": CALL, "function_call": {"name": "g"}}, ["function_call"]),
    ({"tools": TOOLS, "tool_choice": CALL, "function_call": {"name": "f"}}, []),
    ({"tools": TOOLS, "tool_choice": "none", "function_call": "none"}, []),
    (
        {"tools": TOOLS, "tool_choice": {**CALL, "type": "custom", "custom": {"name": "f"}}},
        ["tool_choice.function"],
    ),
    ({"functions": [F], "parallel_tool_calls": True}, ["parallel_tool_calls"]),
    ({"functions": [F], "parallel_tool_calls": False}, []),
    ({"thinking": {"type": "disabled", "budget_tokens": 9_000}}, ["thinking.budget_tokens"]),
    ({"enable_thinking": False, "thinking_budget": 9_000}, ["thinking_budget"]),
]
RESPONSES: list[tuple[Any, list[str]]] = [
    (saying({**LATE, "content": "lost", "zz": 1}), ["input[1].content", "input[1].zz"]),
    (saying(LATE), []),
    ({"tools": [{"type": "function", "name": "a", "function": F}]}, ["tools[0].name"]),
    ({"tools": [{"type": "function", **F, "function": F}]}, []),
    ({"tools": [{"type": "function", "description": "d", "function": F}]}, ["tools[0].description"]),
    ({"tools": [{"type": "function", **F, "format": GRAMMAR}]}, ["tools[0].format"]),
    ({"text": {"format": {"type": "text", "name": "n", "strict": True}}}, ["text.format.name", "text.format.strict"]),
]
MESSAGES: list[tuple[Any, list[str]]] = [
    (
        {"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "auto", "name": "f"}},
        ["tool_choice.name"],
    ),
    ({"thinking": {"type": "disabled", "budget_tokens": 9_000}}, ["thinking.budget_tokens"]),
    (asking([{"type": "image", "source": {**PAGE, "file_id": "f"}}]), ["messages[0].content[0].source.file_id"]),
    (
        asking([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa", "url": "u"}}]),
        ["messages[0].content[0].source.url"],
    ),
]
ROWS = [
    (client, upstream, members, lost)
    for client, rows in (("chat", CHAT), ("responses", RESPONSES), ("messages", MESSAGES))
    for upstream in ("chat", "responses", "messages")
    for members, lost in rows
    if client != upstream
]


@pytest.mark.parametrize(("client", "upstream", "members", "lost"), ROWS)
def test_what_is_excluded_by_what_stands_beside_it_is_recorded(
    client: str, upstream: str, members: Any, lost: list[str]
) -> None:
    assert of(client, upstream, **members)[1] == lost


@pytest.mark.parametrize("upstream", ["messages", "responses"])
def test_tools_in_the_older_words_are_offered_beside_the_others(upstream: str) -> None:
    built, lost = of("chat", upstream, tools=TOOLS, functions=[OTHER])
    assert ([tool["name"] for tool in built["tools"]], lost) == (["f", "g"], [])


@pytest.mark.parametrize("upstream", ["messages", "responses"])
def test_a_call_of_two_kinds_is_one_and_the_other_is_recorded(upstream: str) -> None:
    call = {"id": "a", "type": "custom", "custom": {"name": "c", "input": "i"}, "function": {"name": "f"}}
    turns = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "a", "content": "r"}
    built, lost = of("chat", upstream, messages=[*turns, result])
    assert "'c'" in str(built)
    assert lost == ["messages[1].tool_calls[0].function"]


def test_a_second_wish_to_cache_is_recorded_and_a_text_beside_an_image_is_not_swallowed() -> None:
    hints = {"prompt_cache_breakpoint": {"mode": "explicit"}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    part = {"type": "text", "text": "a", **hints}
    assert of("chat", "messages", **asking([part]))[1] == ["messages[0].content[0].cache_control"]
    image = {"type": "image_url", "image_url": {"url": "http://x"}, "text": "beside"}
    for upstream in ("messages", "responses"):
        built, lost = of("chat", upstream, **asking([image]))
        assert "beside" in str(built) or lost == ["messages[0].content[0].text"]


def test_bytes_beside_the_url_of_a_file_are_recorded() -> None:
    part = {"type": "input_file", "file_url": "http://x", "file_data": "data:application/pdf;base64,JVBERi0="}
    built, lost = of("responses", "messages", input=[{"role": "user", "content": [part]}])
    assert "http://x" in str(built)
    assert lost == ["input[0].content[0].file_data"]
