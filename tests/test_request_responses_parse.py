"""Reading a Responses request: every row of its table, and the items that clients send."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pipeline import envelope
from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import Rule
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
    OutputFormat,
    OutputKind,
    ReasoningPart,
    RefusalPart,
    Remote,
    Request,
    RequestOptions,
    Role,
    ServerPart,
    ServerTool,
    Stored,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
    WebSearch,
)
from pipeline.toolnames import BuiltRequest, OfferedTool
from stages.dialects.chat.request import build as build_chat
from stages.dialects.messages.request import build as build_messages
from stages.dialects.responses.request import build, parse
from stages.dialects.responses.request_tables import HOSTED_ITEMS, READ

JSON = dict[str, Any]
BUILDS: Mapping[str, Callable[..., BuiltRequest]] = {"messages": build_messages, "chat": build_chat}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
GO = Turn(Role.USER, (TextPart("go"),))


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

# member of the table: (members of the body, canonical member, its value)
CARRIED: list[tuple[str, JSON, str, Any]] = [
    ("model", {"model": "gpt"}, "model", "gpt"),
    ("input", {"input": "go"}, "turns", (GO,)),
    ("instructions", {"instructions": "a"}, "system", (Turn(Role.SYSTEM, (TextPart("a"),)),)),
    ("tools", function(), "tools", (FunctionTool("f", "", SCHEMA, False),)),
    ("tool_choice", {"tool_choice": "required"}, "tool_choice", ToolChoice(Choosing.ANY)),
    ("parallel_tool_calls", {"parallel_tool_calls": False}, "parallel", False),
    ("max_output_tokens", {"max_output_tokens": 5}, "max_tokens", 5),
    ("temperature", {"temperature": 1.5}, "temperature", 1.5),
    ("top_p", {"top_p": 0.5}, "top_p", 0.5),
    ("top_logprobs", {"top_logprobs": 3}, "logprobs", 3),
    ("include", {"include": ["message.output_text.logprobs"]}, "logprobs", 0),
    (
        "text.format",
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
        "output",
        OutputFormat(OutputKind.SCHEMA, "n", SCHEMA, True),
    ),
    ("text", {"text": {"format": {"type": "text"}}}, "output", OutputFormat(OutputKind.TEXT)),
    ("text.verbosity", {"text": {"verbosity": "low"}}, "verbosity", "low"),
    ("metadata", {"metadata": {"a": "b"}}, "metadata", {"a": "b"}),
    ("safety_identifier", {"safety_identifier": "s", "user": "u"}, "user", "s"),
    ("user", {"user": "u"}, "user", "u"),
    ("prompt_cache_key", {"prompt_cache_key": "k"}, "cache_key", "k"),
    ("service_tier", {"service_tier": "flex"}, "service_tier", "flex"),
    ("store", {"store": True}, "store", True),
    ("stream", {"stream": True}, "stream", True),
    (
        "input[] additional_tools",
        items({"type": "additional_tools", "role": "developer", **function()}, GO_ITEM),
        "tools",
        (FunctionTool("f", "", SCHEMA, False, private={"late": True}),),
    ),
]

# member of the table: (members of the body, where it is named)
LOST: list[tuple[str, JSON, str]] = [
    *[
        (name, {name: value}, name)
        for name, value in {
            "stream_options": {"include_obfuscation": False},
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "client_metadata": {"a": "b"},
            "access_programs": {},
            "background_options": {},
            "image": {},
            "truncation": "auto",
            "context_management": [{"type": "compaction"}],
            "max_tool_calls": 5,
            "moderation": {"model": "m"},
            "background": True,
            "previous_response_id": "resp_1",
            "conversation": "conv_1",
            "prompt": {"id": "p"},
        }.items()
    ],
    ("reasoning.context", {"reasoning": {"effort": "low", "context": "all_turns"}}, "reasoning.context"),
    ("reasoning.mode", {"reasoning": {"effort": "low", "mode": "pro"}}, "reasoning.mode"),
    ("input[] item_reference", items({"type": "item_reference", "id": "msg_1"}, GO_ITEM), "input[0]"),
    ("input[] tool_search_call", items(GO_ITEM, {"type": "tool_search_call", "arguments": {}}, GO_ITEM), "input[1]"),
    ("input[] tool_search_output", items(GO_ITEM, {"type": "tool_search_output", "tools": []}), "input[1]"),
    ("input[] configuration_update", items({"type": "configuration_update"}, GO_ITEM), "input[0]"),
    ("input[] compaction", items(GO_ITEM, {"type": "compaction", "encrypted_content": "e"}, GO_ITEM), "input[1]"),
    ("input[] compaction_trigger", items(GO_ITEM, {"type": "compaction_trigger"}), "input[1]"),
    ("input[] of a hosted tool", items(GO_ITEM, {"type": "web_search_call", "id": "ws_1"}, GO_ITEM), "input[1]"),
    ("input[] of unknown type", items(GO_ITEM, {"type": "hologram"}), "input[1].type"),
    ("input[].content[] of unknown type", part(type="hologram"), "input[0].content[0].type"),
    (
        "input[].phase",
        items({"type": "message", "role": "assistant", "content": "a", "phase": "commentary"}, GO_ITEM),
        "input[0].phase",
    ),
    ("input[].caller", items(call(caller={"type": "direct"}), RESULT), "input[0].caller"),
    ("input[].async", items({**call(), "async": True}, RESULT), "input[0].async"),
    (
        "content[].annotations",
        items(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]}],
            },
            GO_ITEM,
        ),
        "input[0].content[0].annotations",
    ),
    *[
        (f"tools[].{name}", function(**{name: value}), f"tools[0].{name}")
        for name, value in {
            "defer_loading": True,
            "async": True,
            "allowed_callers": ["direct"],
            "output_schema": {},
        }.items()
    ],
    (
        "tools[] default namespace",
        {"tools": [{"type": "namespace", "name": "functions", "description": "All.", "tools": []}]},
        "tools[0].description",
    ),
    ("tools[] tool_search", {"tools": [{"type": "tool_search", "execution": "client"}]}, "tools[0]"),
    ("tools[] web_search", {"tools": [{"type": "web_search"}]}, "tools[0]"),
    ("tools[] of a hosted kind", {"tools": [{"type": "code_interpreter", "container": "c"}]}, "tools[0]"),
]


@pytest.mark.parametrize(("row", "members", "canonical", "value"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_with_a_meaning_is_read(row: str, members: JSON, canonical: str, value: Any) -> None:
    assert READ[row].rule in (Rule.ACCEPT, Rule.TRANSLATE)
    assert canonical in READ[row].to
    assert getattr(read(**members), canonical) == value


@pytest.mark.parametrize(
    ("given", "effort", "summary"),
    [
        ({"effort": "high", "summary": "detailed"}, "high", "detailed"),
        ({"effort": None, "generate_summary": "concise"}, "", "concise"),
        ({"effort": "odd"}, "", ""),
    ],
)
def test_reasoning_is_read(given: JSON, effort: str, summary: str) -> None:
    assert READ["reasoning"].to == "reasoning"
    found = read(reasoning=given).reasoning
    assert found is not None
    assert (found.enabled, found.effort, found.summary) == (None, effort, summary)


@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "members", "where"), LOST, ids=[case[0] for case in LOST])
def test_a_member_only_this_dialect_has_is_lost_as_its_row_says(
    row: str, members: JSON, where: str, strict: bool, upstream: str
) -> None:
    ledger = Ledger(direction="request")
    request = read(**members)
    if READ[row].under(strict) is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            BUILDS[upstream](request, ledger=ledger, options=RequestOptions(strict=strict))
        assert str(caught.value).startswith(f"{where}: ")
        return
    BUILDS[upstream](request, ledger=ledger, options=RequestOptions())
    found = [entry for entry in ledger if entry.path == where and entry.reason == READ[row].reason]
    assert [entry.action for entry in found] == ["dropped"]


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in (*CARRIED, *LOST)} | {"reasoning"} == set(READ)


def test_an_answer_in_the_foreground_is_what_every_dialect_gives() -> None:
    ledger = Ledger()
    build_chat(read(background=False), ledger=ledger, options=RequestOptions(strict=True))
    assert list(ledger) == []


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
        (items({"role": "tool", "content": "x"}), "input[0].role: unknown value"),
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
        ({"tool_choice": "maybe"}, "tool_choice: unknown value"),
        ({"tool_choice": {}}, "tool_choice.type: is required"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name: is required"),
        ({"text": {"format": {}}}, "text.format.type: is required"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary: unknown value"),
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

NAMESPACES = [
    {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [
            {"type": "custom", "name": "exec", "format": {"type": "grammar", "syntax": "lark", "definition": "g"}}
        ],
    },
    {
        "type": "namespace",
        "name": "clock",
        "description": "Time.",
        "tools": [
            {"type": "function", "name": "sleep", "parameters": SCHEMA, "strict": False},
            {"type": "function", "name": "now", "parameters": SCHEMA, "strict": False},
        ],
    },
]


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


# toward its own dialect


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"instructions": "a", "store": True, "user": "u", "include": ["x"], "top_logprobs": 2, "extra": 1},
        {"reasoning": {"effort": "odd", "context": "all_turns"}, "text": {"verbosity": "low", "z": 1}},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}, "previous_response_id": "r"},
        {"tool_choice": "none", "parallel_tool_calls": True},
        {"tool_choice": {"type": "function", "name": "f", "x": 1}, **function(defer_loading=True, y=1)},
        {"tools": [*NAMESPACES, {"type": "custom", "name": "p"}, {"type": "web_search", "z": 1}]},
        {"max_output_tokens": 1, "safety_identifier": "s", "background": True},
        part(type="input_image", file_id="f", detail="high"),
        part(type="input_file", file_id="f", filename="n"),
        part(type="hologram", x=[1]),
        part(type="input_audio", input_audio={"data": "QQ==", "format": "wav"}),
        {"max_output_tokens": 0},
        items(
            {"type": "message", "role": "developer", "id": "msg_0", "content": [{"type": "input_text", "text": "d"}]},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "phase": "commentary",
                "content": [
                    {"type": "output_text", "text": "a", "annotations": [{"x": 1}], "logprobs": [{}]},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_2",
                "content": [{"type": "output_text", "text": "b", "annotations": []}],
            },
            {"type": "message", "role": "assistant", "content": "easy"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "e"},
            {"type": "web_search_call", "id": "ws_1"},
            call(id="fc_1", status="completed", namespace="clock"),
            {"type": "custom_tool_call", "call_id": "2", "name": "g", "namespace": "functions", "input": "x"},
            {**RESULT, "id": "fco_1", "status": "completed"},
            {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_image", "file_id": "f"}]},
            {"type": "local_shell_call_output", "id": "l", "output": "x"},
            {"type": "item_reference", "id": "x"},
        ),
        items(
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "hologram"}, {"type": "output_text", "text": "b", "annotations": []}],
            }
        ),
    ],
)
def test_toward_its_own_dialect_a_request_is_what_it_was(members: JSON) -> None:
    ledger = Ledger(direction="request")
    written = build(read(**members), ledger=ledger).body
    assert list(ledger) == []
    if "input" in members:
        for item in members["input"]:
            for piece in item.get("output") or item.get("content") or []:
                if isinstance(piece, dict) and piece.get("type") == "input_image":
                    piece.setdefault("detail", "auto")
    assert written == body(**members)


def test_a_policys_effort_keeps_the_clients_summary() -> None:
    request = read(reasoning={"effort": "low", "summary": "detailed", "context": "all_turns"})
    written = build(request, ledger=Ledger(), options=RequestOptions(effort="high")).body
    assert written["reasoning"] == {"effort": "high", "summary": "detailed", "context": "all_turns"}
    assert "reasoning" not in build(request, ledger=Ledger(), options=RequestOptions(effort="")).body


def test_an_envelope_of_ours_never_goes_up_but_what_it_holds_does() -> None:
    sealed = envelope.seal("up", "m", "t", '{"id":"rs_9","summary":[],"encrypted_content":"e"}')
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}]}
    request = read(**items({**item, "encrypted_content": sealed}, call(), RESULT))
    home = build(request, ledger=Ledger(), options=RequestOptions(upstream="up")).body
    assert home["input"][0] == {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "e"}  # type: ignore[index]
    ledger = Ledger(direction="request")
    away = build(request, ledger=ledger, options=RequestOptions(upstream="other")).body
    assert [given["type"] for given in away["input"]] == ["function_call", "function_call_output"]  # type: ignore[attr-defined]
    assert [entry.path for entry in ledger] == ["input[0]"]
