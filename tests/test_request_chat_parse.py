"""Reading a Chat Completions request: what vendors and clients make of it."""

from typing import Any

import pytest

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.request import (
    AudioPart,
    CacheHint,
    Choosing,
    CustomTool,
    DocumentPart,
    Grammar,
    ImagePart,
    Inline,
    ReasoningPart,
    RefusalPart,
    Remote,
    Request,
    Role,
    Stored,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from stages.dialects.chat.request import parse
from tests.request_shapes import JSON


def body(**members: Any) -> JSON:
    return {"model": "m", "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def messages(*given: JSON) -> JSON:
    return {"messages": list(given)}


def part(**members: Any) -> JSON:
    return messages({"role": "user", "content": [members]})


# messages


def test_instructions_before_everything_are_the_system_and_later_ones_stay_in_place() -> None:
    request = read(
        messages=[
            {"role": "system", "content": "a"},
            {"role": "developer", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": "c", "name": "me"},
            {"role": "system", "content": "d"},
        ]
    )
    assert request.system == (Turn(Role.SYSTEM, (TextPart("a"),)), Turn(Role.DEVELOPER, (TextPart("b"),)))
    assert request.turns == (Turn(Role.USER, (TextPart("c"),), "me"), Turn(Role.SYSTEM, (TextPart("d"),)))


def test_a_run_of_results_is_one_turn() -> None:
    request = read(
        messages=[
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{ "a":1}'}},
                    {"id": "2", "type": "custom", "custom": {"name": "g", "input": "text"}},
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "r"}]},
            {"role": "tool", "tool_call_id": "2", "content": "[tool error] no"},
            {"role": "user", "content": "on"},
        ]
    )
    assert request.turns == (
        Turn(
            Role.ASSISTANT,
            (ToolUsePart("1", "f", '{ "a":1}'), ToolUsePart("2", "g", "text", ToolKind.CUSTOM)),
        ),
        Turn(Role.USER, (ToolResultPart("1", (TextPart("r"),)), ToolResultPart("2", (TextPart("no"),), True))),
        Turn(Role.USER, (TextPart("on"),)),
    )


def test_calls_without_ids_get_some_that_their_results_take_in_order() -> None:
    request = read(
        messages=[
            {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": {"a": 1}}},
            {"role": "function", "name": "f", "content": "r"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "g", "arguments": "{}"}}]},
            {"role": "tool", "content": "s"},
        ]
    )
    assert [turn.parts for turn in request.turns] == [
        (ToolUsePart("call_1_f", "f", {"a": 1}),),
        (ToolResultPart("call_1_f", (TextPart("r"),), private={"role": "function", "name": "f"}),),
        (ToolUsePart("call_2_g", "g", "{}"),),
        (ToolResultPart("call_2_g", (TextPart("s"),)),),
    ]


def test_an_assistants_turn_is_reasoning_then_text_then_refusal_then_calls() -> None:
    request = read(
        messages=[
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
                "refusal": "c",
                "reasoning_content": "r",
                "reasoning": "twin",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            }
        ]
    )
    assert request.turns[0].parts == (
        ReasoningPart("r"),
        TextPart("a"),
        RefusalPart("b"),
        RefusalPart("c"),
        ToolUsePart("1", "f", "{}"),
    )


def test_details_of_reasoning_come_before_its_text() -> None:
    details = [
        {"type": "reasoning.text", "text": "t", "signature": "s"},
        {"type": "reasoning.summary", "summary": "u"},
        {"type": "reasoning.encrypted", "data": "d"},
        {"type": "reasoning.text", "text": ""},
    ]
    request = read(messages=[{"role": "assistant", "content": "a", "reasoning": "x", "reasoning_details": details}])
    assert request.turns[0].parts[:-1] == (
        ReasoningPart("t", "s"),
        ReasoningPart("u"),
        ReasoningPart("", "d", True),
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            {"type": "text", "text": "t", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}},
            TextPart(
                "t", private={"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}, cache=CacheHint("30m")
            ),
        ),
        (
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
            TextPart("t", private={"cache_control": {"type": "ephemeral"}}, cache=CacheHint()),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low", "x": 1}},
            ImagePart(Inline("image/png", "QUJD"), "low", private={"image_url": {"x": 1}}),
        ),
        ({"type": "image_url", "image_url": "http://x"}, ImagePart(Remote("http://x"))),
        (
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            AudioPart("QQ==", "wav", private={"input_audio": {}}),
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
            DocumentPart(Inline("application/pdf", "QQ=="), "a.pdf", private={"file": {}}),
        ),
        ({"type": "file", "file": {"file_id": "f"}}, DocumentPart(Stored("f"), private={"file": {}})),
        (
            {"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            ReasoningPart(
                "ab",
                private={
                    "part": {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    }
                },
            ),
        ),
        (
            {"type": "thinking", "thinking": "a"},
            ReasoningPart("a", private={"part": {"type": "thinking", "thinking": "a"}}),
        ),
    ],
)
def test_each_part_is_read(given: JSON, found: object) -> None:
    assert read(**part(**given)).turns[0].parts == (found,)


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"model": ""}, "model: is required"),
        ({"messages": []}, "messages: is required, and not empty"),
        (messages({"content": "x"}), "messages[0].role: is required"),
        (messages({"role": "tool", "content": "x"}), "messages[0].tool_call_id: is required"),
        (messages({"role": "function", "content": "x"}), "messages[0].name: is required"),
        (
            messages({"role": "tool", "tool_call_id": "x" * 2000, "content": "x"}),
            "messages[0].tool_call_id: is longer than 1000",
        ),
        (
            messages({"role": "tool", "tool_call_id": "1", "content": [{"type": "refusal"}]}),
            "messages[0].content[0].type: cannot stand in a tool's result",
        ),
        (
            messages({"role": "assistant", "tool_calls": [{"id": "1"}]}),
            "messages[0].tool_calls[0].function: is required",
        ),
        (
            messages({"role": "assistant", "tool_calls": [{"id": "1", "function": {"arguments": "{}"}}]}),
            "messages[0].tool_calls[0].function.name: is required",
        ),
        (part(type="text"), "messages[0].content[0].text: must be a string"),
        (part(type="image_url"), "messages[0].content[0].image_url: is required"),
        (part(type="input_audio"), "messages[0].content[0].input_audio: is required"),
        (part(type="file"), "messages[0].content[0].file: is required"),
        (part(type="file", file={}), "messages[0].content[0].file.file_data: is required"),
        ({"tools": [{"type": "function"}]}, "tools[0].function: is required"),
        ({"tools": [{"type": "custom"}]}, "tools[0].custom: is required"),
        ({"tool_choice": 5}, "tool_choice: must be an object"),
        ({"response_format": {}}, "response_format.type: is required"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema: is required"),
        ({"stop": [1]}, "stop[0]: must be a string"),
        ({"n": "2"}, "n: must be a number"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_by_its_path(members: JSON, fault: str) -> None:
    with pytest.raises(ClientError) as caught:
        read(**members)
    assert caught.value.status == 400
    assert str(caught.value).startswith(fault)


def test_limits_are_the_callers() -> None:
    with pytest.raises(ClientError, match="longer than 3"):
        parse(
            body(**messages({"role": "tool", "tool_call_id": "1234", "content": ""})),
            ledger=Ledger(),
            limits=Limits(id_chars=3),
        )


# tools


def test_a_freeform_tool_is_read_with_its_grammar() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
    request = read(
        tools=[
            {"type": "custom", "custom": {"name": "patch", "description": "Edits.", "format": grammar}},
            {"type": "custom", "custom": {"name": "plain", "format": {"type": "text"}}},
        ]
    )
    assert request.tools == (CustomTool("patch", "Edits.", Grammar("lark", "start: X")), CustomTool("plain"))


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("auto", ToolChoice(Choosing.AUTO)),
        ("any", ToolChoice(Choosing.ANY)),
        ("none", ToolChoice(Choosing.NONE)),
        ("", None),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice(Choosing.ONE, "f")),
        ({"type": "custom", "custom": {"name": "f"}}, ToolChoice(Choosing.ONE, "f", kind=ToolKind.CUSTOM)),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            ToolChoice(Choosing.ANY, allowed=(("", "f"),)),
        ),
        ({"type": "web_search"}, ToolChoice(Choosing.ONE, payload={"type": "web_search"})),
    ],
)
def test_each_choice_is_read(given: object, choice: ToolChoice | None) -> None:
    assert read(tool_choice=given).tool_choice == choice
