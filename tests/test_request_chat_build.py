"""Building a Chat Completions request: the shapes that vendors read."""

from typing import Any

import pytest
from attrs import evolve

from pipeline import envelope
from pipeline.events import ToolKind
from pipeline.ledger import Ledger
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
    Part,
    Reasoning,
    ReasoningPart,
    RefusalPart,
    Remote,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolChoice,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import WRAPPED_SCHEMA, OfferedTool
from stages.dialects.chat.request import build
from tests.request_shapes import AT, CALL, GO, JSON, SCHEMA, assistant, request, user

TOOL = FunctionTool("f", "does f", SCHEMA)
CUSTOM = CustomTool("apply_patch", "Edits.", Grammar("lark", "start: X"), where="tools[0]")


def written(given: Request, **options: Any) -> JSON:
    return build(given, ledger=Ledger(direction="request"), options=RequestOptions(**options)).body


def turn_written(*turns: Turn, **options: Any) -> list[JSON]:
    messages = written(request(*turns), **options)["messages"]
    assert isinstance(messages, list)
    return messages


# messages


def test_results_come_before_what_the_user_says() -> None:
    call = ToolUsePart("1", "f", {"b": 1, "a": 2})
    messages = turn_written(assistant(call), user(TextPart("on"), ToolResultPart("1", (TextPart("r"),))))
    assert messages == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"b":1,"a":2}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "user", "content": "on"},
    ]


def test_a_failed_result_says_so_in_its_text() -> None:
    messages = turn_written(assistant(CALL), user(ToolResultPart("1", (TextPart("no such file"),), True)))
    assert messages[1]["content"] == "[tool error] no such file"


def test_images_of_results_follow_all_results() -> None:
    other = ToolUsePart("2", "f", "{}")
    image = ImagePart(Inline("image/png", "QUJD"))
    messages = turn_written(
        assistant(CALL, other),
        user(ToolResultPart("1", (TextPart("seen"), image, image)), ToolResultPart("2", ()), TextPart("on")),
    )
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "user"]
    assert messages[1]["content"] == "seen\n\n[its files are in the next message]"
    assert messages[2]["content"] == ""
    assert messages[3]["content"] == [
        {"type": "text", "text": "[files of the result of the tool call 1]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]


def test_text_around_a_call_is_one_content() -> None:
    (message, *_) = turn_written(assistant(TextPart("a"), CALL, TextPart("b")), GO)
    assert message["content"] == "a\n\nb"


def test_an_assistants_turn_of_reasoning_alone_is_not_sent() -> None:
    assert turn_written(assistant(ReasoningPart("hm")), GO) == [{"role": "user", "content": "go"}]


def test_a_refusal_stays_one() -> None:
    (message, _) = turn_written(assistant(RefusalPart("no"), RefusalPart("never")), GO)
    assert message == {"role": "assistant", "content": None, "refusal": "no\n\nnever"}


def test_instructions_in_between_stay_in_their_place() -> None:
    later = Turn(Role.DEVELOPER, (TextPart("now"), ImagePart(Remote("x"))), name="boss")
    assert turn_written(GO, later)[1] == {"role": "system", "content": "now", "name": "boss"}
    assert turn_written(GO, later, developer_role=True)[1]["role"] == "developer"
    shown = {"role": "user", "content": "<system>\nnow\n</system>"}
    assert turn_written(GO, later, later_instructions=False)[1] == shown
    assert turn_written(GO, Turn(Role.SYSTEM, (TextPart(""),))) == turn_written(GO)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (TextPart("t"), "t"),
        (RefusalPart("t"), "t"),
        (
            ImagePart(Remote("http://x"), "low"),
            [{"type": "image_url", "image_url": {"url": "http://x", "detail": "low"}}],
        ),
        (AudioPart("QQ==", "wav"), [{"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}]),
        (
            DocumentPart(Inline("application/pdf", "QQ=="), "a.pdf", "about"),
            [
                {"type": "text", "text": "about"},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
            ],
        ),
        (DocumentPart("words", "name"), "name\n\nwords"),
        (DocumentPart((TextPart("words"),)), "words"),
        (DocumentPart("a", extras={"x": 1}), [{"type": "text", "text": "a", "x": 1}]),
    ],
)
def test_each_part_of_a_user_has_its_shape(part: Part, content: object) -> None:
    assert turn_written(user(part)) == [{"role": "user", "content": content}]


def test_a_users_turn_that_loses_everything_is_not_sent() -> None:
    assert turn_written(user(ReasoningPart("x")), GO) == [{"role": "user", "content": "go"}]
    assert turn_written(user()) == [{"role": "user", "content": ""}]


def test_the_first_instructions_are_one_message_unless_the_upstream_tells_roles_apart() -> None:
    first = (Turn(Role.SYSTEM, (TextPart("a"),)), Turn(Role.DEVELOPER, (TextPart("b"),)))
    assert turn_written(*first, GO)[0] == {"role": "system", "content": "a\n\nb"}
    apart = turn_written(*first, GO, developer_role=True)
    assert [(message["role"], message["content"]) for message in apart[:2]] == [("system", "a"), ("developer", "b")]


# reasoning


def test_reasoning_goes_back_to_the_provider_that_sealed_it() -> None:
    sealed = envelope.seal("gemini", "m", "hm", '{"reasoning_details":[{"type":"reasoning.encrypted"}]}')
    turn = assistant(ReasoningPart("hm", sealed), TextPart("a"))
    assert turn_written(turn, GO, upstream="gemini")[0]["reasoning_details"] == [{"type": "reasoning.encrypted"}]
    assert "reasoning_details" not in turn_written(turn, GO, upstream="other")[0]
    broken = assistant(ReasoningPart("hm", envelope.seal("gemini", "m", "hm", "no json")), TextPart("a"))
    assert turn_written(broken, GO, upstream="gemini")[0] == {"role": "assistant", "content": "a"}


def test_each_proof_goes_back_with_its_text_and_in_its_place() -> None:
    blobs = [
        ("hm", '{"reasoning_details":[{"signature":"S"}]}'),
        ("", '{"reasoning_details":[{"data":"E"}]}'),
        ("so", '{"reasoning_details":[{"signature":"T"},7]}'),
    ]
    parts = [ReasoningPart(text, envelope.seal("red", "m", text, blob)) for text, blob in blobs]
    message = turn_written(assistant(*parts, TextPart("a")), GO, upstream="red")[0]
    assert message["reasoning_details"] == [
        {"signature": "S", "text": "hm"},
        {"data": "E"},
        {"signature": "T", "text": "so"},
        7,
    ]
    other = ReasoningPart("hm", envelope.seal("red", "m", "hm", '{"reasoning_content":"hm"}'))
    assert turn_written(assistant(other, TextPart("a")), GO, upstream="red")[0]["reasoning_content"] == "hm"


def test_every_detail_goes_back_and_a_signature_with_the_text_that_it_signs() -> None:
    signed = '{"reasoning_details":[{"type":"reasoning.text","signature":"s"}]}'
    blob = '{"reasoning_details":[{"type":"reasoning.encrypted","data":"d"}],"reasoning_opaque":"o","role":"tool"}'
    turn = assistant(
        ReasoningPart("hm", envelope.seal("up", "m", "hm", signed)),
        ReasoningPart("", envelope.seal("up", "m", "", blob), True),
        TextPart("a"),
    )
    assert turn_written(turn, GO, upstream="up")[0] == {
        "role": "assistant",
        "content": "a",
        "reasoning_details": [
            {"type": "reasoning.text", "signature": "s", "text": "hm"},
            {"type": "reasoning.encrypted", "data": "d"},
        ],
        "reasoning_opaque": "o",
    }


def test_what_must_come_back_with_a_call_stands_on_that_call_again() -> None:
    def proof(mark: str, where: str = "") -> ReasoningPart:
        blob = f'{{"tool_calls":[{{"extra_content":{{"google":{{"thought_signature":"{mark}"}}}}}}]}}'
        return ReasoningPart("", envelope.seal("gemini", "m", "", blob), True, where=where)

    odd = ReasoningPart("", envelope.seal("gemini", "m", "", '{"tool_calls":[7]}'), True)
    second = ToolUsePart("2", "f", {}, where=AT)
    third = ToolUsePart("3", "f", {}, where=AT)
    turn = assistant(proof("S"), CALL, second, odd, proof("T"), TextPart("a"), third, proof("gone", AT))
    ledger = Ledger(direction="request")
    body: JSON = build(request(turn, GO), ledger=ledger, options=RequestOptions(upstream="gemini")).body
    message = body["messages"][0]
    assert [call.get("extra_content") for call in message["tool_calls"]] == [
        {"google": {"thought_signature": "S"}},
        None,
        {"google": {"thought_signature": "T"}},
    ]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert [entry.path for entry in ledger if entry.reason.startswith("it belongs")] == [AT]
    (other, *_) = turn_written(turn, GO, upstream="other")
    assert not any("extra_content" in call for call in other["tool_calls"])


def test_reasoning_text_goes_up_only_to_a_provider_that_demands_it() -> None:
    turn = assistant(ReasoningPart("x"), ReasoningPart("y", "sig"), TextPart("a"))
    assert turn_written(turn, GO)[0] == {"role": "assistant", "content": "a"}
    assert turn_written(turn, GO, replay_reasoning=True)[0]["reasoning_content"] == "x\n\ny"


@pytest.mark.parametrize(
    ("reasoning", "options", "effort"),
    [
        (Reasoning(False), {}, "none"),
        (Reasoning(False), {"off_effort": "minimal"}, "minimal"),
        (Reasoning(False), {"off_effort": ""}, None),
        (Reasoning(True), {}, None),
        (Reasoning(True, budget=2000), {}, "low"),
        (Reasoning(True, "high"), {"effort": "low"}, "low"),
        (Reasoning(True, "high"), {"effort": ""}, None),
        (None, {"effort": "low"}, "low"),
    ],
)
def test_the_effort_is_asked_for(reasoning: Reasoning | None, options: JSON, effort: str | None) -> None:
    assert written(request(reasoning=reasoning), **options).get("reasoning_effort") == effort


# tools


def test_a_freeform_tool_becomes_a_function_of_one_string_and_is_remembered() -> None:
    call = ToolUsePart("1", "apply_patch", 'x "y"', ToolKind.CUSTOM)
    given = request(assistant(call), user(ToolResultPart("1", (TextPart("ok"),))), tools=(CUSTOM,))
    built = build(given, ledger=Ledger())
    assert built.body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "apply_patch",
                "description": "Edits.\n\n`input` must match this lark grammar:\nstart: X",
                "parameters": WRAPPED_SCHEMA,
            },
        }
    ]
    assert built.body["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"input":"x \\"y\\""}'  # type: ignore[index]
    assert built.map.tool("apply_patch") == OfferedTool("apply_patch", "", ToolKind.CUSTOM, wrapped=True)


def test_a_freeform_tool_stays_one_where_the_upstream_has_them() -> None:
    call = ToolUsePart("1", "apply_patch", "text", ToolKind.CUSTOM)
    given = request(
        assistant(call),
        user(ToolResultPart("1", (TextPart("ok"),))),
        tools=(CUSTOM, CustomTool("plain")),
        tool_choice=ToolChoice(Choosing.ONE, "apply_patch", kind=ToolKind.CUSTOM),
    )
    body = written(given, custom_tools=True)
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
    assert body["tools"] == [
        {"type": "custom", "custom": {"name": "apply_patch", "description": "Edits.", "format": grammar}},
        {"type": "custom", "custom": {"name": "plain"}},
    ]
    assert body["messages"][0]["tool_calls"] == [
        {"id": "1", "type": "custom", "custom": {"name": "apply_patch", "input": "text"}}
    ]
    assert body["tool_choice"] == {"type": "custom", "custom": {"name": "apply_patch"}}


def test_a_forced_tool_that_is_wrapped_is_forced_as_a_function() -> None:
    given = request(tools=(CUSTOM,), tool_choice=ToolChoice(Choosing.ONE, "apply_patch", kind=ToolKind.CUSTOM))
    assert written(given)["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}


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
    name = body["tools"][0]["function"]["name"]
    assert len(name) == 64
    assert body["messages"][0]["tool_calls"][0]["function"]["name"] == name
    assert body["tool_choice"] == {"type": "function", "function": {"name": name}}
    assert built.map.tool(name).name == long


def test_a_namespace_is_told_once_in_the_description() -> None:
    tools = (FunctionTool("a", "A.", namespace="team"), FunctionTool("b", "B.", namespace="team"))
    body = written(request(tools=tools, namespaces={"team": "The team's tools."}))
    assert [tool["function"] for tool in body["tools"]] == [
        {"name": "team__a", "description": "A.\n\nThe team's tools."},
        {"name": "team__b", "description": "B."},
    ]


def test_an_overlong_id_is_the_same_in_call_and_result_and_comes_back() -> None:
    given = request(assistant(ToolUsePart("i" * 90, "f", "")), user(ToolResultPart("i" * 90, ())))
    built = build(given, ledger=Ledger())
    body: JSON = built.body
    call = body["messages"][0]["tool_calls"][0]
    assert len(call["id"]) == 64
    assert call["function"]["arguments"] == "{}"
    assert body["messages"][1]["tool_call_id"] == call["id"]
    assert built.map.ids == {call["id"]: "i" * 90}


def test_arguments_are_sent_as_the_client_sent_them() -> None:
    text = '{ "b" : 1.0, "a":12345678901234567890123 }'
    (message, *_) = turn_written(assistant(ToolUsePart("1", "f", text)), GO)
    assert message["tool_calls"][0]["function"]["arguments"] == text


def test_a_choice_without_tools_is_not_sent() -> None:
    body = written(request(tool_choice=ToolChoice(Choosing.AUTO), parallel=False))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


def test_no_word_of_parallel_calls_where_there_shall_be_none() -> None:
    body = written(request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.NONE), parallel=False))
    assert body["tool_choice"] == "none"
    assert "parallel_tool_calls" not in body


def test_a_choice_of_tools_that_are_all_gone_is_none() -> None:
    choice = ToolChoice(Choosing.ANY, allowed=(("", "gone"),))
    assert written(request(tools=(TOOL,), tool_choice=choice))["tool_choice"] == "none"


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
            {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": SCHEMA, "description": "d", "strict": False},
            },
        ),
    ],
)
def test_each_form_of_output_is_written(output: OutputFormat, form: JSON) -> None:
    assert written(request(output=output))["response_format"] == form


def test_the_routes_model_and_older_bound_are_written() -> None:
    body = written(request(max_tokens=9), model="big", old_max_tokens=True)
    assert (body["model"], body["max_tokens"]) == ("big", 9)
    assert "max_completion_tokens" not in body


def test_only_four_stop_sequences_go_up() -> None:
    assert written(request(stop=tuple("abcde")))["stop"] == list("abcd")


def test_logprobs_without_alternatives_ask_for_none() -> None:
    body = written(request(logprobs=0))
    assert body["logprobs"] is True
    assert "top_logprobs" not in body


def test_one_choice_is_no_choice() -> None:
    assert "n" not in written(request(choices=1))


def test_unknown_members_go_up_untouched_and_never_over_ours() -> None:
    extras = {"trace": {"a": 1}, "messages": [], "stream_options": {"x": 1}}
    body = written(request(extras=extras, stream=True))
    assert body["trace"] == {"a": 1}
    assert body["messages"] == [{"role": "user", "content": "go"}]
    assert body["stream_options"] == {"x": 1, "include_usage": True}
    assert written(request(extras={"stream_options": 5}, stream=True))["stream_options"] == {"include_usage": True}


def test_unknown_members_of_pieces_go_up_with_their_piece() -> None:
    part = TextPart("t", extras={"mark": 1})
    tool = evolve(TOOL, extras={"note": 1})
    body = written(request(Turn(Role.USER, (part,), extras={"who": "me"}), tools=(tool,)))
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "t", "mark": 1}], "who": "me"}]
    assert body["tools"][0]["note"] == 1


def test_private_members_of_another_dialect_stay_behind() -> None:
    part = TextPart("t", private={"citations": []})
    body = written(request(Turn(Role.USER, (part,), private={"x": 1}), private={"container": "c"}))
    assert body == {"model": "m", "messages": [{"role": "user", "content": "t"}]}


def test_a_bound_keeps_within_the_upstreams() -> None:
    assert written(request(max_tokens=100), most_tokens=50)["max_completion_tokens"] == 50
    assert written(request(max_tokens=100), most_tokens=200)["max_completion_tokens"] == 100


def test_sampling_is_left_out_for_models_that_do_not_take_it() -> None:
    body = written(request(temperature=0.5, top_p=0.5), sampling=False)
    assert not {"temperature", "top_p"} & set(body)
