"""Reading a Chat Completions request: every row of its table, and what vendors and clients make of it."""

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
    Stored,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import BuiltRequest
from stages.dialects.chat.request import build, parse
from stages.dialects.chat.request_tables import READ
from stages.dialects.messages.request import build as build_messages
from stages.dialects.responses.request import build as build_responses

JSON = dict[str, Any]
BUILDS: Mapping[str, Callable[..., BuiltRequest]] = {"messages": build_messages, "responses": build_responses}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def body(**members: Any) -> JSON:
    return {"model": "m", "messages": [{"role": "user", "content": "go"}], **members}


def read(**members: Any) -> Request:
    return parse(body(**members), ledger=Ledger(direction="request"))


def messages(*given: JSON) -> JSON:
    return {"messages": list(given)}


def part(**members: Any) -> JSON:
    return messages({"role": "user", "content": [members]})


def native(**members: Any) -> JSON:
    ledger = Ledger(direction="request")
    written = build(read(**members), ledger=ledger).body
    assert list(ledger) == []
    return written


GO = Turn(Role.USER, (TextPart("go"),))

# member of the table: (members of the body, canonical member, its value)
CARRIED: list[tuple[str, JSON, str, Any]] = [
    ("model", {"model": "gpt"}, "model", "gpt"),
    ("messages", {}, "turns", (GO,)),
    (
        "tools",
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}]},
        "tools",
        (FunctionTool("f", "", SCHEMA, True),),
    ),
    ("functions", {"functions": [{"name": "f", "parameters": SCHEMA}]}, "tools", (FunctionTool("f", "", SCHEMA),)),
    ("tool_choice", {"tool_choice": "required"}, "tool_choice", ToolChoice(Choosing.ANY)),
    ("function_call", {"function_call": {"name": "f"}}, "tool_choice", ToolChoice(Choosing.ONE, "f")),
    ("parallel_tool_calls", {"parallel_tool_calls": False}, "parallel", False),
    ("max_completion_tokens", {"max_completion_tokens": 5, "max_tokens": 9}, "max_tokens", 5),
    ("max_tokens", {"max_tokens": 9}, "max_tokens", 9),
    ("stop", {"stop": "a"}, "stop", ("a",)),
    ("temperature", {"temperature": 1.5}, "temperature", 1.5),
    ("top_p", {"top_p": 0.5}, "top_p", 0.5),
    ("top_k", {"top_k": 5}, "top_k", 5),
    ("seed", {"seed": 5}, "seed", 5),
    ("frequency_penalty", {"frequency_penalty": 0.5}, "frequency_penalty", 0.5),
    ("presence_penalty", {"presence_penalty": 0.5}, "presence_penalty", 0.5),
    ("logit_bias", {"logit_bias": {"1": 2}}, "logit_bias", {"1": 2}),
    ("n", {"n": 2}, "choices", 2),
    ("logprobs", {"logprobs": True}, "logprobs", 0),
    ("top_logprobs", {"logprobs": True, "top_logprobs": 3}, "logprobs", 3),
    (
        "response_format",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": False}}},
        "output",
        OutputFormat(OutputKind.SCHEMA, "n", SCHEMA, False),
    ),
    ("verbosity", {"verbosity": "low"}, "verbosity", "low"),
    ("metadata", {"metadata": {"a": "b"}}, "metadata", {"a": "b"}),
    ("safety_identifier", {"safety_identifier": "s", "user": "u"}, "user", "s"),
    ("user", {"user": "u"}, "user", "u"),
    ("prompt_cache_key", {"prompt_cache_key": "k"}, "cache_key", "k"),
    ("service_tier", {"service_tier": "flex"}, "service_tier", "flex"),
    ("store", {"store": True}, "store", True),
    ("stream", {"stream": True}, "stream", True),
    ("stream_options", {"stream_options": {"include_usage": True}}, "include_usage", True),
]

# members that ask for reasoning: (members of the body, enabled, effort, budget)
REASONING: list[tuple[str, JSON, bool | None, str, int | None]] = [
    ("reasoning_effort", {"reasoning_effort": "high"}, None, "high", None),
    ("reasoning_effort", {"reasoning_effort": "default"}, None, "", None),
    ("reasoning", {"reasoning": {"effort": "low", "max_tokens": 2000}}, True, "low", 2000),
    ("reasoning", {"reasoning": {"enabled": False}}, False, "", None),
    ("reasoning", {"reasoning": {"effort": "none"}}, False, "none", None),
    ("reasoning", {"reasoning": {"effort": "odd"}}, True, "", None),
    ("thinking", {"thinking": {"type": "enabled"}}, True, "", None),
    ("thinking", {"thinking": {"type": "disabled"}}, False, "", None),
    ("enable_thinking", {"enable_thinking": False}, False, "", None),
]

# member of the table: (members of the body, where it is named)
LOST: list[tuple[str, JSON, str]] = [
    *[
        (name, {name: value}, name)
        for name, value in {
            "audio": {"voice": "alloy", "format": "wav"},
            "modalities": ["text", "audio"],
            "prediction": {"type": "content", "content": "x"},
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "moderation": {"model": "m"},
            "web_search_options": {},
        }.items()
    ],
    (
        "messages[].name of a tool",
        messages(
            {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r", "name": "f"},
        ),
        "messages[1].name",
    ),
    (
        "messages[].audio",
        messages({"role": "assistant", "content": "a", "audio": {"id": "a"}}, {"role": "user", "content": "b"}),
        "messages[0].audio",
    ),
    (
        "messages[].annotations",
        messages({"role": "assistant", "content": "a", "annotations": [{}]}, {"role": "user", "content": "b"}),
        "messages[0].annotations",
    ),
    ("messages[].content[] of unknown type", part(type="hologram"), "messages[0].content[0].type"),
    ("tools[] of another type", {"tools": [{"type": "openrouter:web_search"}]}, "tools[0]"),
]


@pytest.mark.parametrize(("row", "members", "canonical", "value"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_with_a_meaning_is_read(row: str, members: JSON, canonical: str, value: Any) -> None:
    assert READ[row].rule in (Rule.ACCEPT, Rule.TRANSLATE)
    assert READ[row].to == canonical
    assert getattr(read(**members), canonical) == value


@pytest.mark.parametrize(("row", "members", "enabled", "effort", "budget"), REASONING)
def test_reasoning_is_asked_for_in_every_spelling(
    row: str, members: JSON, enabled: bool | None, effort: str, budget: int | None
) -> None:
    assert READ[row].to == "reasoning"
    found = read(**members).reasoning
    assert found is not None
    assert (found.enabled, found.effort, found.budget) == (enabled, effort, budget)


@pytest.mark.parametrize("upstream", BUILDS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "members", "where"), LOST, ids=[case[0] for case in LOST])
def test_a_member_only_this_dialect_has_is_lost_as_its_row_says(
    row: str, members: JSON, where: str, strict: bool, upstream: str
) -> None:
    ledger = Ledger(direction="request")
    rule = READ[row].under(strict)
    request = read(**members)
    if rule is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            BUILDS[upstream](request, ledger=ledger, options=RequestOptions(strict=strict))
        assert str(caught.value).startswith(f"{where}: ")
        return
    BUILDS[upstream](request, ledger=ledger, options=RequestOptions())
    found = [entry for entry in ledger if entry.path == where and entry.reason == READ[row].reason]
    assert [entry.action for entry in found] == [rule.value]


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in (*CARRIED, *REASONING, *LOST)} == set(READ)


def test_text_alone_as_modality_is_what_every_dialect_answers_with() -> None:
    ledger = Ledger()
    build_messages(read(modalities=["text"]), ledger=ledger, options=RequestOptions(strict=True))
    assert list(ledger) == []


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
        (ToolResultPart("call_1_f", (TextPart("r"),)),),
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
        (messages({"role": "bot", "content": "x"}), "messages[0].role: unknown value"),
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
        ({"tool_choice": "maybe"}, "tool_choice: unknown value"),
        ({"tool_choice": 5}, "tool_choice: must be an object"),
        ({"response_format": {}}, "response_format.type: is required"),
        ({"response_format": {"type": "xml"}}, "response_format.type: unknown value"),
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


# toward its own dialect


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"max_tokens": 5, "user": "u", "top_k": 4, "n": 2, "stop": ["a"], "top_logprobs": 2, "logprobs": True},
        {"max_completion_tokens": 5, "safety_identifier": "s", "store": False},
        {"reasoning": {"effort": "high"}},
        {"reasoning_effort": "default", "provider": {"order": ["a"]}, "web_search_options": {}},
        {"tool_choice": "none", "parallel_tool_calls": True},
        {"tool_choice": {"type": "web_search"}, "tools": [{"type": "web_search", "x": 1}]},
        {"tools": [{"type": "function", "function": {"name": "f.g" + "x" * 99, "y": 1}, "cache_control": {"a": 1}}]},
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "z": 1}}},
        messages({"role": "developer", "content": "a"}, {"role": "system", "content": "b", "name": "n"}),
        messages({"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        messages({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
        messages({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x", "w": 1}}]}),
        messages({"role": "user", "content": [{"type": "file", "file": {"file_id": "f", "filename": "n"}}]}),
        messages({"role": "user", "content": [{"type": "hologram", "x": [1]}]}),
        messages({"role": "user", "content": [{"type": "file", "file": {"file_data": "http://x", "filename": "n"}}]}),
        messages({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "Q", "format": "x"}}]}),
        {"max_tokens": 0, "stop": list("abcdef"), "response_format": {"type": "json_object"}},
        messages({"role": "assistant", "content": None, "reasoning_content": "r", "reasoning_details": [{"a": 1}]}),
        messages(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}
        ),
        messages({"role": "assistant", "content": [{"type": "hologram"}, {"type": "text", "text": "a"}]}),
        messages(
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [
                    {"id": "1|x", "type": "function", "function": {"name": "f", "arguments": " { } "}},
                    {"id": "2", "type": "custom", "custom": {"name": "g", "input": "t"}},
                ],
            },
            {"role": "tool", "tool_call_id": "1|x", "content": [{"type": "text", "text": "r", "q": 1}], "name": "f"},
            {"role": "tool", "tool_call_id": "2", "content": "[tool error] no"},
        ),
    ],
)
def test_toward_its_own_dialect_a_request_is_what_it_was(members: JSON) -> None:
    assert native(**members) == body(**members)


def test_a_policys_effort_stands_alone() -> None:
    request = read(reasoning={"effort": "high"}, enable_thinking=True)
    written = build(request, ledger=Ledger(), options=RequestOptions(effort="low")).body
    assert written["reasoning_effort"] == "low"
    assert not {"reasoning", "enable_thinking"} & set(written)
    none = build(request, ledger=Ledger(), options=RequestOptions(effort="")).body
    assert not {"reasoning", "enable_thinking", "reasoning_effort"} & set(none)


def test_an_envelope_of_ours_never_goes_up_but_what_it_holds_does() -> None:
    sealed = envelope.seal("up", "m", "t", '{"reasoning_details":[{"data":"blob"}]}')
    said = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "t",
        "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": sealed}],
    }
    request = read(messages=[said, {"role": "user", "content": "b"}])
    ledger = Ledger(direction="request")
    home = build(request, ledger=ledger, options=RequestOptions(upstream="up")).body
    assert home["messages"][0] == {"role": "assistant", "content": "a", "reasoning_details": [{"data": "blob"}]}  # type: ignore[index]
    assert list(ledger) == []
    away = build(request, ledger=ledger, options=RequestOptions(upstream="other")).body
    assert away["messages"][0] == {"role": "assistant", "content": "a"}  # type: ignore[index]
    assert [entry.path for entry in ledger] == ["messages[0].reasoning_details[0]"]
