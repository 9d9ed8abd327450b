"""Reading a Messages request: what stands in no table."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.request import (
    CacheHint,
    DocumentPart,
    FunctionTool,
    ImagePart,
    Inline,
    Reasoning,
    ReasoningPart,
    Remote,
    Request,
    Role,
    ServerPart,
    ServerTool,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
    WebSearch,
)
from stages.dialects.chat.request import build as build_chat
from stages.dialects.messages.request import parse
from tests.request_shapes import JSON


def body(**members: Any) -> JSON:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def block(**members: Any) -> JSON:
    return {"messages": [{"role": "user", "content": [members]}]}


def said(**members: Any) -> JSON:
    result = {"type": "tool_result", "tool_use_id": members.get("id"), "content": "r"}
    return {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [members]},
            {"role": "user", "content": [result] if members["type"] == "tool_use" else "on"},
        ]
    }


def tool(**members: Any) -> JSON:
    return {"tools": [{"name": "f", "input_schema": {"type": "object"}, **members}]}


def user(*parts: Any) -> tuple[Turn, ...]:
    return (Turn(Role.USER, parts),)


# what no table says


def test_unknown_members_are_kept_to_be_forwarded() -> None:
    request = read(trace_id="t", messages=[{"role": "user", "content": [{"type": "text", "text": "x", "mark": 1}]}])
    assert request.extras == {"trace_id": "t"}
    assert request.turns[0].parts[0].extras == {"mark": 1}


def test_a_continued_thread_is_answered_so_that_the_client_sends_everything() -> None:
    request = read(thread={"type": "continue", "previous_message_id": "msg_1"}, **block(type="text", text="x"))
    with pytest.raises(ClientError) as caught:
        build_chat(request, ledger=Ledger())
    assert (caught.value.status, caught.value.code) == (404, "thread_not_found")


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"model": None}, "model: is required"),
        ({"model": " "}, "model: is required"),
        ({"max_tokens": None}, "max_tokens: is required"),
        ({"max_tokens": -1}, "max_tokens: must not be negative"),
        ({"max_tokens": "9"}, "max_tokens: must be a number"),
        ({"messages": []}, "messages: is required, and not empty"),
        ({"messages": None}, "messages: is required, and not empty"),
        ({"messages": "hi"}, "messages: must be a list"),
        ({"messages": ["hi"]}, "messages[0]: must be an object"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role: is required"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content: must be a list"),
        (block(text="x"), "messages[0].content[0].type: is required"),
        (block(type="text"), "messages[0].content[0].text: must be a string"),
        (block(type="image"), "messages[0].content[0].source: is required"),
        (block(type="image", source={"type": "url"}), "messages[0].content[0].source.url: is required"),
        (block(type="document"), "messages[0].content[0].source: is required"),
        (said(type="tool_use", name="f"), "messages[1].content[0].id: is required"),
        (said(type="tool_use", id="x" * 2000, name="f"), "messages[1].content[0].id: is longer than 1000"),
        (said(type="tool_use", id="1"), "messages[1].content[0].name: is required"),
        (said(type="tool_use", id="1", name="f", input="{}"), "messages[1].content[0].input: must be an object"),
        (block(type="tool_result", content="x"), "messages[0].content[0].tool_use_id: is required"),
        (
            block(type="tool_result", tool_use_id="1", content=[{"type": "thinking"}]),
            "messages[0].content[0].content[0].type: cannot stand in a tool's result",
        ),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name: is required"),
        ({"tools": [{"name": "f", "input_schema": "x"}]}, "tools[0].input_schema: must be an object"),
        ({"tool_choice": {}}, "tool_choice.type: is required"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name: is required"),
        ({"tool_choice": "auto"}, "tool_choice: must be an object"),
        ({"thinking": {}}, "thinking.type: is required"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: is required"),
        ({"stop_sequences": [1]}, "stop_sequences[0]: must be a string"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_by_its_path(members: JSON, fault: str) -> None:
    with pytest.raises(ClientError) as caught:
        read(**members)
    assert caught.value.status == 400
    assert str(caught.value).startswith(fault)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}, TextPart("t", cache=CacheHint())),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            ImagePart(Inline("image/png", "QUJD")),
        ),
        ({"type": "image", "source": {"type": "url", "url": "http://x"}}, ImagePart(Remote("http://x"))),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, ImagePart(Stored("f"))),
        (
            {
                "type": "document",
                "title": "T",
                "context": "C",
                "citations": {"enabled": True},
                "source": {"type": "text", "media_type": "text/plain", "data": "words"},
            },
            DocumentPart("words", "T", "C", True),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": "words"}},
            DocumentPart((TextPart("words"),)),
        ),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}},
            DocumentPart(Inline("application/pdf", "QQ==")),
        ),
        ({"type": "thinking", "thinking": "t", "signature": "s"}, ReasoningPart("t", "s")),
        ({"type": "redacted_thinking", "data": "d"}, ReasoningPart("", "d", True)),
        ({"type": "tool_use", "id": "1", "name": "f"}, ToolUsePart("1", "f", {})),
        ({"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}, ToolUsePart("1", "f", {"a": 1})),
        ({"type": "tool_result", "tool_use_id": " 1 "}, ToolResultPart("1", ())),
        (
            {"type": "tool_result", "tool_use_id": "1", "content": "r", "is_error": True},
            ToolResultPart("1", (TextPart("r"),), True),
        ),
    ],
)
def test_each_block_becomes_its_part(given: JSON, part: object) -> None:
    assert read(**block(**given)).turns == user(part)


def test_a_piece_knows_where_it_stood() -> None:
    request = read(
        system=[{"type": "text", "text": "s"}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "system", "content": "b"}],
    )
    assert [part.where for part in request.parts()] == ["system[0]", "messages[0].content[0]", "messages[1].content"]


def test_a_search_tool_says_what_other_dialects_understand() -> None:
    given = {
        "type": "web_search_20250305",
        "name": "web_search",
        "allowed_domains": ["a.org"],
        "user_location": {"type": "approximate", "city": "Oslo", "region": None},
    }
    (found,) = read(tools=[given]).tools
    assert isinstance(found, ServerTool)
    assert found.search == WebSearch(("a.org",), {"city": "Oslo"})
    (bare,) = read(tools=[{"type": "web_search_20250305", "name": "web_search"}]).tools
    assert isinstance(bare, ServerTool)
    assert bare.search == WebSearch()


def test_a_tool_defined_in_the_conversation_is_offered() -> None:
    definition = {"name": "late", "input_schema": {"type": "object"}}
    request = read(**block(type="tool_addition", tool={"type": "tool_definition", "definition": definition}))
    assert [tool.name for tool in request.tools] == ["late"]
    assert isinstance(request.turns[0].parts[0], ServerPart)
    assert read(**block(type="tool_addition", tool="odd")).tools == ()


def test_a_tool_may_say_that_it_is_custom_and_have_no_schema() -> None:
    (found,) = read(tools=[{"type": "custom", "name": "f"}]).tools
    assert found == FunctionTool("f", private={"type": "custom"})


@pytest.mark.parametrize(
    ("members", "reasoning"),
    [
        ({}, None),
        ({"output_config": {}}, None),
        ({"thinking": {"type": "disabled"}}, Reasoning(False)),
        ({"thinking": {"type": "adaptive", "display": "summarized"}}, Reasoning(True, summary="auto")),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, Reasoning(True, summary="omitted")),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, Reasoning(True, "low")),
        ({"thinking": {"type": "between_tools"}}, Reasoning(True)),
    ],
)
def test_thinking_and_effort_are_read_together(members: JSON, reasoning: Reasoning | None) -> None:
    found = read(**members).reasoning
    assert (None if found is None else (found.enabled, found.effort, found.budget, found.summary)) == (
        None if reasoning is None else (reasoning.enabled, reasoning.effort, reasoning.budget, reasoning.summary)
    )


def test_a_metadata_without_user_names_nobody() -> None:
    assert read(metadata={}).user is None
    assert read(metadata={"user_id": ""}).user is None


def test_limits_are_the_callers() -> None:
    with pytest.raises(ClientError, match="longer than 3"):
        parse(body(**said(type="tool_use", id="1234", name="f")), ledger=Ledger(), limits=Limits(id_chars=3))
