"""Reading a Responses request: the items that clients send."""

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
    FunctionTool,
    Grammar,
    ImagePart,
    Inline,
    ReasoningPart,
    RefusalPart,
    Remote,
    Request,
    Role,
    ServerPart,
    ServerTool,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    WebSearch,
)
from pipeline.toolnames import OfferedTool
from stages.dialects.chat.request import build as build_chat
from stages.dialects.messages.request import build as build_messages
from stages.dialects.responses.request import build, parse
from stages.dialects.responses.request_tables import HOSTED_ITEMS
from tests.request_shapes import JSON, NAMESPACES, SCHEMA

GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}


def body(**members: Any) -> JSON:
    return {"model": "m", "input": [GO_ITEM], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def items(*given: JSON) -> JSON:
    return {"input": list(given)}


def part(**members: Any) -> JSON:
    return items({"type": "message", "role": "user", "content": [members]})


def function(**members: Any) -> JSON:
    return {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False, **members}]}


def call(**members: Any) -> JSON:
    return {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", **members}


RESULT = {"type": "function_call_output", "call_id": "1", "output": "r"}

# items


def test_what_the_assistant_does_in_one_go_is_one_turn_and_results_in_a_run_are_one() -> None:
    request = read(
        input=[
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "u"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                "content": None,
                "encrypted_content": "e",
            },
            {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "t"}]},
            call(),
            {"type": "custom_tool_call", "call_id": "2", "name": "g", "namespace": "functions", "input": "x"},
            RESULT,
            {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "s"}]},
            {"type": "message", "role": "user", "content": "on"},
        ]
    )
    assert [turn.role for turn in request.turns] == [
        Role.DEVELOPER,
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.USER,
    ]
    reasoning, text, first, second = request.turns[2].parts
    assert isinstance(reasoning, ReasoningPart)
    assert (reasoning.text, reasoning.opaque, reasoning.redacted) == ("a\n\nb", "e", False)
    assert text == TextPart("t", private={"item": {"id": "msg_1"}})
    assert first == ToolUsePart("1", "f", "{}")
    assert second == ToolUsePart("2", "g", "x", ToolKind.CUSTOM, private={"namespace": "functions"})
    assert request.turns[3].parts == (
        ToolResultPart("1", (TextPart("r"),)),
        ToolResultPart("2", (TextPart("s"),), kind=ToolKind.CUSTOM),
    )


@pytest.mark.parametrize(
    ("item", "text", "redacted"),
    [
        ({"summary": [], "encrypted_content": "e"}, "", True),
        ({"summary": [{"text": ""}], "content": [{"text": "c"}, {"text": ""}, {"text": "d"}]}, "c\n\nd", False),
        ({"summary": [{"text": "s"}], "content": [{"text": "c"}]}, "s", False),
    ],
)
def test_reasoning_reads_as_its_summary_or_else_its_content(item: JSON, text: str, redacted: bool) -> None:
    (found,) = read(**items({"type": "reasoning", "id": "rs_1", **item})).turns[0].parts
    assert isinstance(found, ReasoningPart)
    assert (found.text, found.redacted) == (text, redacted)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"type": "input_text", "text": "t"}, TextPart("t")),
        ({"type": "text", "text": "t", "x": 1}, TextPart("t", extras={"x": 1})),
        (
            {"type": "input_text", "text": "t", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
            TextPart(
                "t", private={"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}, cache=CacheHint("12h")
            ),
        ),
        ({"type": "refusal", "refusal": "no"}, RefusalPart("no")),
        (
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "high"},
            ImagePart(Inline("image/png", "QUJD"), "high"),
        ),
        ({"type": "input_image", "file_id": "f"}, ImagePart(Stored("f"))),
        ({"type": "input_file", "file_id": "f", "filename": "n"}, DocumentPart(Stored("f"), "n")),
        ({"type": "input_file", "file_url": "http://x"}, DocumentPart(Remote("http://x"))),
        (
            {"type": "input_file", "file_data": "data:application/pdf;base64,QQ==", "filename": "n"},
            DocumentPart(Inline("application/pdf", "QQ=="), "n"),
        ),
        ({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}, AudioPart("QQ==", "wav")),
    ],
)
def test_each_part_is_read(given: JSON, found: object) -> None:
    assert read(**part(**given)).turns[0].parts == (found,)


@pytest.mark.parametrize("kind", sorted(HOSTED_ITEMS))
def test_every_item_of_a_hosted_tool_is_kept_for_its_own_dialect(kind: str) -> None:
    item = {"type": kind, "id": "x"}
    request = read(**items(GO_ITEM, item, GO_ITEM))
    assert any(isinstance(found, ServerPart) and found.payload == item for found in request.parts())
    assert build(request, ledger=Ledger()).body["input"] == [GO_ITEM, item, GO_ITEM]


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"model": None}, "model: is required"),
        ({"input": None}, "input: is required, and not empty"),
        ({"input": []}, "input: is required, and not empty"),
        ({"input": 5}, "input: must be a list"),
        (items({"content": "x"}), "input[0].role: is required"),
        (items({"type": "function_call", "name": "f"}), "input[0].call_id: is required"),
        (items(call(call_id="x" * 2000)), "input[0].call_id: is longer than 1000"),
        (items(call(name="")), "input[0].name: is required"),
        (items(call(arguments=5)), "input[0].arguments: must be a string"),
        (
            items({"type": "function_call_output", "call_id": "1", "output": [{"type": "refusal"}]}),
            "input[0].output[0].type: cannot stand in a tool's result",
        ),
        (part(text="x"), "input[0].content[0].type: is required"),
        (part(type="input_text"), "input[0].content[0].text: must be a string"),
        (part(type="input_image"), "input[0].content[0].image_url: is required"),
        (part(type="input_file"), "input[0].content[0].file_data: is required"),
        (part(type="input_audio"), "input[0].content[0].input_audio: is required"),
        ({"tools": [{"name": "f"}]}, "tools[0].type: is required"),
        ({"tools": [{"type": "function"}]}, "tools[0].name: is required"),
        ({"tools": [{"type": "namespace", "tools": []}]}, "tools[0].name: is required"),
        ({"tool_choice": {}}, "tool_choice.type: is required"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name: is required"),
        ({"text": {"format": {}}}, "text.format.type: is required"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_by_its_path(members: JSON, fault: str) -> None:
    with pytest.raises(ClientError) as caught:
        read(**members)
    assert caught.value.status == 400
    assert str(caught.value).startswith(fault)


def test_limits_are_the_callers() -> None:
    with pytest.raises(ClientError, match="longer than 3"):
        parse(body(**items(call(call_id="1234"))), ledger=Ledger(), limits=Limits(id_chars=3))


def test_a_stored_prompt_needs_neither_model_nor_input() -> None:
    request = parse({"prompt": {"id": "p"}}, ledger=Ledger())
    assert (request.model, request.turns) == ("", ())


# tools


def test_a_tool_in_a_namespace_has_its_namespace_but_in_the_default_one() -> None:
    request = read(tools=NAMESPACES)
    assert request.tools == (
        CustomTool("exec", "", Grammar("lark", "g"), private={"namespace": "functions"}),
        FunctionTool("sleep", "", SCHEMA, False, "clock"),
        FunctionTool("now", "", SCHEMA, False, "clock"),
    )
    assert request.namespaces == {"functions": "", "clock": "Time."}
    built = build_messages(request, ledger=Ledger())
    assert dict(built.map.tools) == {
        "exec": OfferedTool("exec", "", ToolKind.CUSTOM, wrapped=True),
        "clock__sleep": OfferedTool("sleep", "clock"),
        "clock__now": OfferedTool("now", "clock"),
    }


def test_tools_that_come_with_the_conversation_are_offered_elsewhere_and_stay_in_it_here() -> None:
    given = items({"type": "additional_tools", "role": "developer", "tools": NAMESPACES}, GO_ITEM)
    request = read(**given)
    assert [tool["function"]["name"] for tool in build_chat(request, ledger=Ledger()).body["tools"]] == [  # type: ignore[attr-defined]
        "exec",
        "clock__sleep",
        "clock__now",
    ]
    assert build(request, ledger=Ledger()).body == body(**given)


def test_tools_that_a_search_found_are_offered_elsewhere() -> None:
    request = read(**items(GO_ITEM, {"type": "tool_search_output", **function()}))
    assert [tool["name"] for tool in build_messages(request, ledger=Ledger()).body["tools"]] == ["f"]  # type: ignore[attr-defined]


def test_a_function_nested_as_another_dialect_does_is_read() -> None:
    nested = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    assert read(tools=[nested]).tools == (FunctionTool("f", "d", SCHEMA),)


def test_a_freeform_tool_without_grammar_is_read() -> None:
    tools = [{"type": "custom", "name": "a"}, {"type": "custom", "name": "b", "format": {"type": "text"}}]
    assert read(tools=tools).tools == (CustomTool("a"), CustomTool("b"))


def test_a_search_tool_says_what_other_dialects_understand() -> None:
    given = {
        "type": "web_search",
        "filters": {"allowed_domains": ["a.org"]},
        "user_location": {"type": "approximate", "city": "Oslo", "region": None},
    }
    found, bare = read(tools=[given, {"type": "web_search_preview"}]).tools
    assert isinstance(found, ServerTool)
    assert isinstance(bare, ServerTool)
    assert found.search == WebSearch(("a.org",), {"city": "Oslo"})
    assert bare.search == WebSearch()


@pytest.mark.parametrize(
    ("given", "mode", "name", "namespace", "allowed"),
    [
        ("auto", Choosing.AUTO, "", "", None),
        ({"type": "function", "name": "f"}, Choosing.ONE, "f", "", None),
        ({"type": "custom", "name": "f", "namespace": "clock"}, Choosing.ONE, "f", "clock", None),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "s"}],
            },
            Choosing.ANY,
            "",
            "",
            (("", "f"),),
        ),
    ],
)
def test_each_choice_is_read(given: object, mode: Choosing, name: str, namespace: str, allowed: object) -> None:
    choice = read(tool_choice=given).tool_choice
    assert choice is not None
    assert (choice.mode, choice.name, choice.namespace, choice.allowed) == (mode, name, namespace, allowed)
    assert choice.payload is None


def test_a_hosted_choice_is_kept_as_it_came_and_an_empty_one_is_none() -> None:
    choice = read(tool_choice={"type": "web_search"}).tool_choice
    assert choice is not None
    assert choice.payload == {"type": "web_search"}
    assert read(tool_choice="").tool_choice is None
