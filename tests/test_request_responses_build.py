"""Building a Responses request: the shapes that its items have."""

from typing import Any

import pytest
from attrs import evolve

from pipeline import envelope
from pipeline.events import ToolKind
from pipeline.ladder import Loss, Row, Rule
from pipeline.ledger import Ledger
from pipeline.request import (
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
    Part,
    Reasoning,
    ReasoningPart,
    RefusalPart,
    Remote,
    Request,
    RequestOptions,
    Role,
    ServerPart,
    ServerTool,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
    WebSearch,
)
from stages.dialects.responses.request import build
from tests.request_shapes import AT, CALL, GO, JSON, SCHEMA, assistant, request, user

TOOL = FunctionTool("f", "does f", SCHEMA)
GO_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}


def written(given: Request, **options: Any) -> JSON:
    return build(given, ledger=Ledger(direction="request"), options=RequestOptions(**options)).body


def items(*turns: Turn, **options: Any) -> list[JSON]:
    found = written(request(*turns), **options)["input"]
    assert isinstance(found, list)
    return found


# items


def test_a_turn_of_the_assistant_becomes_items_in_its_order() -> None:
    found = items(
        assistant(TextPart("a"), TextPart("b"), ToolUsePart("1", "f", {"b": 1, "a": 2}), TextPart("c")),
        user(TextPart("on"), ToolResultPart("1", (TextPart("r"),))),
    )
    assert [item["type"] for item in found] == [
        "message",
        "function_call",
        "message",
        "function_call_output",
        "message",
    ]
    assert found[0]["content"] == [
        {"type": "output_text", "text": "a", "annotations": []},
        {"type": "output_text", "text": "b", "annotations": []},
    ]
    assert found[1] == {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"b":1,"a":2}'}
    assert found[3] == {"type": "function_call_output", "call_id": "1", "output": "r"}


def test_a_message_gets_the_same_id_every_time_and_no_other_has_it() -> None:
    turns = (assistant(TextPart("a"), CALL, TextPart("a")), GO)
    first, second = items(*turns), items(*turns)
    assert first == second
    ids = [item["id"] for item in first if item["type"] == "message" and item["role"] == "assistant"]
    assert len(set(ids)) == 2
    assert all(one.startswith("msg_") and len(one) <= 64 for one in ids)


def test_a_refusal_stays_one() -> None:
    (item, _) = items(assistant(TextPart("a"), RefusalPart("no")), GO)
    assert item["content"][1] == {"type": "refusal", "refusal": "no"}


def test_a_result_with_an_image_is_a_list() -> None:
    image = ImagePart(Inline("image/png", "QUJD"))
    found = items(assistant(CALL), user(ToolResultPart("1", (TextPart("seen"), image), True)))
    assert found[1]["output"] == [
        {"type": "input_text", "text": "[tool error] seen"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
    ]


def test_a_failed_result_without_text_says_so_all_the_same() -> None:
    assert items(assistant(CALL), user(ToolResultPart("1", (), True)))[1]["output"] == "[tool error]"
    assert items(assistant(CALL), user(ToolResultPart("1", ())))[1]["output"] == ""


def test_the_result_of_a_freeform_call_is_one() -> None:
    call = ToolUsePart("1", "apply_patch", "text", ToolKind.CUSTOM)
    found = items(assistant(call), user(ToolResultPart("1", (TextPart("ok"),))))
    assert found == [
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "text"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "ok"},
    ]


def test_leading_instructions_are_the_instructions_and_later_ones_stay_in_their_place() -> None:
    leading = Turn(Role.DEVELOPER, (TextPart("b"),))
    later = Turn(Role.SYSTEM, (TextPart("c"), ImagePart(Remote("x"))))
    body = written(request(leading, GO, later, system=(Turn(Role.SYSTEM, (TextPart("a"),)),)))
    assert body["instructions"] == "a\n\nb"
    system = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "c"}]}
    assert body["input"] == [GO_ITEM, system]


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (TextPart("t"), [{"type": "input_text", "text": "t"}]),
        (RefusalPart("t"), [{"type": "input_text", "text": "t"}]),
        (ImagePart(Remote("http://x"), "low"), [{"type": "input_image", "detail": "low", "image_url": "http://x"}]),
        (DocumentPart(Remote("http://x"), "n"), [{"type": "input_file", "file_url": "http://x", "filename": "n"}]),
        (DocumentPart(Remote("http://x")), [{"type": "input_file", "file_url": "http://x"}]),
        (
            DocumentPart(Inline("application/pdf", "QQ=="), "", "about"),
            [
                {"type": "input_text", "text": "about"},
                {
                    "type": "input_file",
                    "file_data": "data:application/pdf;base64,QQ==",
                    "filename": "document.pdf",
                },
            ],
        ),
        (DocumentPart("words", "name"), [{"type": "input_text", "text": "name\n\nwords"}]),
        (DocumentPart((TextPart("words"),)), [{"type": "input_text", "text": "words"}]),
    ],
)
def test_each_part_of_a_user_has_its_shape(part: Part, content: object) -> None:
    assert items(user(part)) == [{"type": "message", "role": "user", "content": content}]


def test_a_users_turn_that_loses_everything_is_not_sent() -> None:
    assert items(user(ReasoningPart("x")), GO) == [GO_ITEM]


def test_a_piece_of_a_hosted_tool_becomes_what_it_reads_as() -> None:
    shown = Loss("x", Row("shown", Rule.DEGRADE, "text", "none here"))
    gone = Loss("y", Row("gone", Rule.DROP, reason="none here"))
    parts = (TextPart("a"), ServerPart({}, shown, "found"), ServerPart({}, gone, "lost"))
    said: list[JSON] = [{"type": "output_text", "text": text, "annotations": []} for text in ("a", "found")]
    assert items(assistant(*parts), GO)[0]["content"] == said
    assert [part["text"] for part in items(user(*parts))[0]["content"]] == ["a", "found"]


# reasoning


def sealed(text: str = "hm", upstream: str = "openai") -> str:
    return envelope.seal(upstream, "m", text, '{"id":"rs_1","summary":[],"encrypted_content":"e=="}')


def test_reasoning_goes_back_to_the_provider_that_sealed_it_before_what_it_led_to() -> None:
    found = items(assistant(ReasoningPart("hm", sealed()), CALL), GO, upstream="openai")
    assert found[0] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e=="}
    assert found[1]["type"] == "function_call"


@pytest.mark.parametrize(
    "part",
    [
        ReasoningPart("hm", sealed(upstream="another")),
        ReasoningPart("hm, edited", sealed()),
        ReasoningPart("hm", "a signature of somebody's"),
        ReasoningPart("hm"),
        ReasoningPart("", "redacted", True),
        ReasoningPart("hm", envelope.seal("openai", "m", "hm", "no json")),
        ReasoningPart("hm", envelope.seal("openai", "m", "hm", "5")),
    ],
)
def test_no_other_reasoning_is_ever_sent(part: ReasoningPart) -> None:
    ledger = Ledger(direction="request")
    given = request(assistant(evolve(part, where=AT), TextPart("a")), GO)
    body: JSON = build(given, ledger=ledger, options=RequestOptions(upstream="openai", replay_reasoning=True)).body
    assert [item["type"] for item in body["input"]] == ["message", "message"]
    assert [entry.path for entry in ledger] == [AT]


def test_reasoning_that_led_to_nothing_is_not_sent() -> None:
    assert items(assistant(ReasoningPart("hm", sealed())), GO, upstream="openai") == [GO_ITEM]


@pytest.mark.parametrize(
    ("reasoning", "options", "found"),
    [
        (None, {}, None),
        (Reasoning(), {}, {"summary": "auto"}),
        (Reasoning(True), {}, {"summary": "auto"}),
        (Reasoning(True, budget=2000), {}, {"effort": "low", "summary": "auto"}),
        (Reasoning(False), {}, {"effort": "none"}),
        (Reasoning(False), {"off_effort": "low"}, {"effort": "low"}),
        (Reasoning(False), {"off_effort": ""}, None),
        (Reasoning(None, "none"), {}, {"effort": "none"}),
        (Reasoning(True, "low", summary="omitted"), {}, {"effort": "low"}),
        (Reasoning(True, summary="omitted"), {}, None),
        (Reasoning(True, "low", summary="detailed"), {}, {"effort": "low", "summary": "detailed"}),
        (Reasoning(True, "low", summary="detailed"), {"effort": "high"}, {"effort": "high", "summary": "detailed"}),
        (Reasoning(True, "low"), {"effort": "none"}, {"effort": "none"}),
        (Reasoning(True, "low"), {"effort": ""}, None),
        (None, {"effort": "high"}, {"effort": "high", "summary": "auto"}),
    ],
)
def test_a_summary_is_asked_for_with_every_effort_that_is_not_off(
    reasoning: Reasoning | None, options: JSON, found: object
) -> None:
    body = written(request(reasoning=reasoning), **options)
    assert body.get("reasoning") == found
    asked = options.get("effort") != "" and (reasoning is not None or "effort" in options)
    off = "off_effort" in options or (isinstance(found, dict) and found.get("effort") == "none")
    assert body.get("include") == (["reasoning.encrypted_content"] if asked and not off else None)


# tools


def test_a_freeform_tool_stays_one_with_its_grammar() -> None:
    tools = (CustomTool("apply_patch", "Edits.", Grammar("lark", "start: X")), CustomTool("plain"))
    built = build(request(tools=tools), ledger=Ledger())
    assert built.body["tools"] == [
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edits.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
        },
        {"type": "custom", "name": "plain"},
    ]
    assert not built.map.tool("apply_patch").wrapped


def test_a_tool_without_schema_takes_an_empty_object_and_strict_is_always_said() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tools = (
        FunctionTool("f"),
        FunctionTool("g", schema=SCHEMA, strict=True),
        FunctionTool("h", schema=closed, strict=True),
    )
    assert written(request(tools=tools))["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "g", "parameters": SCHEMA, "strict": False},
        {"type": "function", "name": "h", "parameters": closed, "strict": True},
    ]


def test_a_long_name_is_the_same_in_tools_history_and_choice() -> None:
    long = "mcp__server__" + "x" * 80
    given = request(
        assistant(ToolUsePart("1", long, "{}")),
        user(ToolResultPart("1", (TextPart("r"),))),
        tools=(FunctionTool(long),),
        tool_choice=ToolChoice(Choosing.ONE, long),
    )
    built = build(given, ledger=Ledger())
    body: JSON = built.body
    name = body["tools"][0]["name"]
    assert len(name) == 64
    assert body["input"][0]["name"] == name
    assert body["tool_choice"] == {"type": "function", "name": name}
    assert built.map.tool(name).name == long


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (ToolChoice(Choosing.AUTO), "auto"),
        (ToolChoice(Choosing.ANY), "required"),
        (ToolChoice(Choosing.NONE), "none"),
        (
            ToolChoice(Choosing.ANY, allowed=(("", "f"), ("", "gone"))),
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
        ),
        (ToolChoice(Choosing.AUTO, allowed=(("", "gone"),)), "none"),
        (ToolChoice(Choosing.ONE, "patch"), {"type": "custom", "name": "patch"}),
        (ToolChoice(Choosing.ONE, payload={"type": "web_search"}), None),
    ],
)
def test_each_choice_has_its_shape(choice: ToolChoice, found: object) -> None:
    tools = (TOOL, CustomTool("patch"))
    assert written(request(tools=tools, tool_choice=choice)).get("tool_choice") == found


def test_a_choice_without_tools_is_not_sent() -> None:
    body = written(request(tool_choice=ToolChoice(Choosing.AUTO), parallel=False))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


def test_web_search_is_asked_for_where_the_route_allows_it() -> None:
    loss = Loss("tools[0]", Row("hosted", Rule.DROP, reason="hosted"))
    tool = ServerTool({}, loss, search=WebSearch(("a.org",), {"city": "Oslo"}))
    bare = ServerTool({}, loss, search=WebSearch())
    assert "tools" not in written(request(tools=(tool,)))
    assert written(request(tools=(tool, bare, ServerTool({}, loss))), web_search=True)["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["a.org"]},
            "user_location": {"type": "approximate", "city": "Oslo"},
        },
        {"type": "web_search"},
    ]


def test_a_cache_hint_on_a_tool_is_lost_like_any_other() -> None:
    ledger = Ledger(direction="request")
    build(request(tools=(evolve(TOOL, cache=CacheHint(where="tools[0].cache_control")),)), ledger=ledger)
    assert [entry.path for entry in ledger] == ["tools[0].cache_control"]


def test_a_call_in_a_users_turn_is_out_of_place() -> None:
    ledger = Ledger(direction="request")
    built: JSON = build(request(user(CALL, TextPart("t"))), ledger=ledger).body
    assert [(entry.path, entry.reason) for entry in ledger][-1] == (AT, "it cannot stand in a turn of this role")
    assert "f" not in str(built)


# the rest


@pytest.mark.parametrize(
    ("output", "form"),
    [
        (OutputFormat(OutputKind.TEXT), {"type": "text"}),
        (OutputFormat(OutputKind.JSON), {"type": "json_object"}),
        (
            OutputFormat(OutputKind.SCHEMA, "n", SCHEMA, False, "d"),
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "description": "d", "strict": False},
        ),
    ],
)
def test_each_form_of_output_is_written(output: OutputFormat, form: JSON) -> None:
    assert written(request(output=output))["text"] == {"format": form}


def test_nothing_is_stored_unless_the_client_asks() -> None:
    assert written(request())["store"] is False
    assert written(request(store=True))["store"] is True


def test_logprobs_without_alternatives_ask_for_none() -> None:
    body = written(request(logprobs=0))
    assert body["include"] == ["message.output_text.logprobs"]
    assert "top_logprobs" not in body


def test_a_bound_below_the_least_is_raised() -> None:
    assert written(request(max_tokens=1))["max_output_tokens"] == 16


def test_unknown_members_go_up_untouched_and_never_over_ours() -> None:
    extras = {"trace": {"a": 1}, "input": [], "include": ["x"], "text": {"y": 1}}
    body = written(request(extras=extras, logprobs=0, verbosity="low"))
    assert body["trace"] == {"a": 1}
    assert body["input"] == [GO_ITEM]
    assert body["include"] == ["x", "message.output_text.logprobs"]
    assert body["text"] == {"y": 1, "verbosity": "low"}


def test_private_members_of_another_dialect_stay_behind() -> None:
    part = TextPart("t", private={"citations": []}, extras={"mark": 1})
    body = written(request(Turn(Role.USER, (part,), private={"x": 1}), private={"container": "c"}))
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "t", "mark": 1}]
    assert set(body) == {"model", "input", "store"}


def test_a_bound_keeps_within_the_upstreams() -> None:
    assert written(request(max_tokens=100), most_tokens=50)["max_output_tokens"] == 50
    assert written(request(max_tokens=100), most_tokens=200)["max_output_tokens"] == 100


def test_sampling_is_left_out_for_models_that_do_not_take_it() -> None:
    body = written(request(temperature=0.5, top_p=0.5), sampling=False)
    assert not {"temperature", "top_p"} & set(body)
