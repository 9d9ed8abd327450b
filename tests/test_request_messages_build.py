"""Building a Messages request: what its API demands."""

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
from pipeline.toolnames import WRAPPED_SCHEMA, OfferedTool
from stages.dialects.messages.request import build
from tests.request_shapes import CALL, GO, JSON, SCHEMA, assistant, user
from tests.request_shapes import request as shape

TOOL = FunctionTool("f", "does f", SCHEMA)
CUSTOM = CustomTool("apply_patch", "Edits.", Grammar("lark", "start: X"), where="tools[0]")
GO_MESSAGE = {"role": "user", "content": "go"}


def request(*turns: Turn, **members: Any) -> Request:
    return shape(*turns, **{"max_tokens": 100, **members})


def written(given: Request, **options: Any) -> JSON:
    return build(given, ledger=Ledger(direction="request"), options=RequestOptions(**options)).body


def messages(*turns: Turn, **options: Any) -> list[JSON]:
    found = written(request(*turns), **options)["messages"]
    assert isinstance(found, list)
    return found


THINKS = Reasoning(True, "high")
# messages


def test_turns_of_one_role_are_one_message_with_results_first() -> None:
    found = messages(
        GO,
        assistant(TextPart("a")),
        assistant(CALL),
        user(ToolResultPart("1", (TextPart("r"), ImagePart(Remote("http://x"))), True)),
        user(TextPart("on")),
    )
    assert found == [
        GO_MESSAGE,
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [
                        {"type": "text", "text": "r"},
                        {"type": "image", "source": {"type": "url", "url": "http://x"}},
                    ],
                    "is_error": True,
                },
                {"type": "text", "text": "on"},
            ],
        },
    ]


def test_the_first_message_is_a_users() -> None:
    assert messages(assistant(TextPart("a")), GO)[0] == {"role": "user", "content": "."}


def test_instructions_before_everything_are_the_system() -> None:
    leading = Turn(Role.DEVELOPER, (TextPart("b"), ImagePart(Remote("x"))))
    body = written(request(leading, GO, system=(Turn(Role.SYSTEM, (TextPart("a"),)),)))
    assert body["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert body["messages"] == [GO_MESSAGE]


def test_later_instructions_are_a_users_text_unless_the_upstream_reads_them() -> None:
    later = Turn(Role.DEVELOPER, (TextPart("now"),))
    shown = {"type": "text", "text": "<system>\nnow\n</system>"}
    assert messages(GO, later) == [{"role": "user", "content": [{"type": "text", "text": "go"}, shown]}]
    assert messages(GO, later, later_instructions=True) == [GO_MESSAGE, {"role": "system", "content": "now"}]
    assert messages(GO, evolve(later, parts=())) == [GO_MESSAGE]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (RefusalPart("no"), {"type": "text", "text": "no", "x": 1}),
        (
            ImagePart(Inline("image/png", "QUJD"), "auto"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
        ),
        (
            DocumentPart(Inline("application/pdf", "QQ=="), "n", "about", True),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
                "title": "n",
                "context": "about",
                "citations": {"enabled": True},
            },
        ),
        (DocumentPart(Remote("http://x")), {"type": "document", "source": {"type": "url", "url": "http://x"}}),
        (
            DocumentPart("words"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        ),
        (
            DocumentPart(Inline("text/markdown", "d29yZHM=")),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        ),
        (
            DocumentPart((TextPart("words"),)),
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}},
        ),
    ],
)
def test_each_part_of_a_user_has_its_shape(part: Part, block: JSON) -> None:
    extras = {"x": 1} if "x" in block else {}
    assert messages(user(evolve(part, extras=extras), TextPart("t")))[0]["content"][0] == block


def test_a_turn_that_loses_everything_is_not_sent() -> None:
    assert messages(GO, assistant(ReasoningPart("x"))) == [GO_MESSAGE]
    assert messages(user(ReasoningPart("x")), GO) == [GO_MESSAGE]


def test_a_piece_of_a_hosted_tool_becomes_what_it_reads_as() -> None:
    shown = Loss("x", Row("shown", Rule.DEGRADE, "text", "none here"))
    gone = Loss("y", Row("gone", Rule.DROP, reason="none here"))
    parts = (ServerPart({}, shown, "found"), ServerPart({}, gone, "lost"))
    assert messages(GO, assistant(*parts))[1] == {"role": "assistant", "content": "found"}
    assert messages(user(*parts)) == [{"role": "user", "content": "found"}]


@pytest.mark.parametrize(
    ("arguments", "kind", "given"),
    [
        ("", ToolKind.FUNCTION, {}),
        (" ", ToolKind.FUNCTION, {}),
        ('{"b":1,"a":12345678901234567890123}', ToolKind.FUNCTION, {"b": 1, "a": 12345678901234567890123}),
        ({"a": 1}, ToolKind.FUNCTION, {"a": 1}),
        ("[1]", ToolKind.FUNCTION, {"_raw": "[1]"}),
        ("{oops", ToolKind.FUNCTION, {"_raw": "{oops"}),
        ('text "x"', ToolKind.CUSTOM, {"input": 'text "x"'}),
    ],
)
def test_arguments_are_an_object(arguments: Any, kind: ToolKind, given: JSON) -> None:
    call = ToolUsePart("1", "f", arguments, kind)
    assert messages(GO, assistant(call), user(ToolResultPart("1", ())))[1]["content"][0]["input"] == given


# reasoning


@pytest.mark.parametrize(
    "piece",
    [
        {"type": "thinking", "thinking": "hm", "signature": "s=="},
        {"type": "redacted_thinking", "data": "d"},
    ],
)
def test_reasoning_goes_back_to_the_provider_that_sealed_it(piece: JSON) -> None:
    blob = str(piece).replace("'", '"')
    turn = assistant(ReasoningPart("hm", envelope.seal("anthropic", "m", "hm", blob)), TextPart("a"))
    assert messages(GO, turn, upstream="anthropic")[1]["content"][0] == piece
    assert messages(GO, turn, upstream="other")[1]["content"] == "a"
    broken = assistant(ReasoningPart("hm", envelope.seal("anthropic", "m", "hm", "no json")), TextPart("a"))
    assert messages(GO, broken, upstream="anthropic")[1]["content"] == "a"


@pytest.mark.parametrize(
    ("reasoning", "options", "thinking", "effort"),
    [
        (None, {}, None, None),
        (Reasoning(), {}, None, None),
        (Reasoning(True), {}, {"type": "adaptive"}, None),
        (Reasoning(False), {}, {"type": "disabled"}, None),
        (Reasoning(None, "none"), {}, {"type": "disabled"}, None),
        (Reasoning(False), {"off_effort": "low"}, {"type": "adaptive"}, "low"),
        (Reasoning(False), {"off_effort": ""}, None, None),
        (Reasoning(None, "minimal"), {}, {"type": "adaptive"}, "low"),
        (Reasoning(None, "xhigh"), {}, {"type": "adaptive"}, "xhigh"),
        (Reasoning(True, budget=2000), {}, {"type": "adaptive"}, "low"),
        (Reasoning(None, "low", summary="concise"), {}, {"type": "adaptive", "display": "summarized"}, "low"),
        (Reasoning(None, "low", summary="omitted"), {}, {"type": "adaptive", "display": "omitted"}, "low"),
        (Reasoning(None, "low"), {"effort": "max"}, {"type": "adaptive"}, "max"),
        (Reasoning(None, "low"), {"effort": ""}, None, None),
        (None, {"effort": "high"}, {"type": "adaptive"}, "high"),
        (Reasoning(None, "low"), {"thinking_budget": True}, {"type": "enabled", "budget_tokens": 4096}, None),
        (
            Reasoning(True, budget=2000, summary="auto"),
            {"thinking_budget": True},
            {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
            None,
        ),
        (
            Reasoning(True, budget=2000),
            {"thinking_budget": True, "effort": "high"},
            {"type": "enabled", "budget_tokens": 24_576},
            None,
        ),
        (Reasoning(True), {"thinking_budget": True}, {"type": "enabled", "budget_tokens": 8192}, None),
        (Reasoning(True, budget=5), {"thinking_budget": True}, {"type": "enabled", "budget_tokens": 1024}, None),
        (None, {"thinking_budget": True, "effort": "low"}, {"type": "enabled", "budget_tokens": 4096}, None),
    ],
)
def test_thinking_is_asked_for(reasoning: Reasoning | None, options: JSON, thinking: object, effort: object) -> None:
    body = written(request(reasoning=reasoning), **options)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort


def test_the_bound_is_raised_above_the_budget() -> None:
    body = written(request(reasoning=Reasoning(True, budget=2000), max_tokens=1000), thinking_budget=True)
    assert body["max_tokens"] == 3000
    body = written(request(reasoning=Reasoning(True, budget=2000), max_tokens=2000), thinking_budget=True)
    assert body["max_tokens"] == 4000  # the budget must be less
    body = written(request(reasoning=Reasoning(True, budget=2000), max_tokens=2001), thinking_budget=True)
    assert body["max_tokens"] == 2001
    body = written(request(reasoning=Reasoning(True, budget=2000), max_tokens=5000), thinking_budget=True)
    assert body["max_tokens"] == 5000


def test_a_tool_loop_that_begins_with_thinking_goes_on_with_it() -> None:
    sealed = envelope.seal("up", "m", "hm", '{"type":"thinking","thinking":"hm","signature":"s"}')
    given = request(
        GO, assistant(ReasoningPart("hm", sealed), CALL), user(ToolResultPart("1", ())), reasoning=Reasoning(True)
    )
    assert written(given, thinking_budget=True, upstream="up")["thinking"]["type"] == "enabled"
    assert "thinking" not in written(given, thinking_budget=True, upstream="other")
    done = request(GO, assistant(TextPart("a")), user(TextPart("b"), TextPart("c")), reasoning=Reasoning(True))
    assert written(done, thinking_budget=True)["thinking"]["type"] == "enabled"


def test_sampling_that_changes_nothing_goes_with_thinking() -> None:
    assert written(request(reasoning=THINKS, temperature=1))["temperature"] == 1
    assert "temperature" not in written(request(reasoning=THINKS, temperature=0.5))
    assert written(request(temperature=1.5))["temperature"] == 1


# tools


def test_a_freeform_tool_becomes_a_function_of_one_string_and_is_remembered() -> None:
    built = build(request(tools=(CUSTOM,)), ledger=Ledger())
    assert built.body["tools"] == [
        {
            "name": "apply_patch",
            "description": "Edits.\n\n`input` must match this lark grammar:\nstart: X",
            "input_schema": WRAPPED_SCHEMA,
        }
    ]
    assert built.map.tool("apply_patch") == OfferedTool("apply_patch", "", ToolKind.CUSTOM, wrapped=True)


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (None, {"type": "object", "properties": {}}),
        ({"properties": {}}, {"properties": {}, "type": "object"}),
        (SCHEMA, SCHEMA),
    ],
)
def test_a_schema_is_an_objects(schema: Any, found: JSON) -> None:
    assert written(request(tools=(FunctionTool("f", schema=schema, strict=False),)))["tools"] == [
        {"name": "f", "input_schema": found}
    ]


def test_names_and_ids_keep_the_bounds_and_come_back() -> None:
    given = request(
        GO,
        assistant(ToolUsePart("call_1|fc_2", "a.b", "{}", namespace="n")),
        user(ToolResultPart("call_1|fc_2", ())),
        tools=(FunctionTool("a.b", namespace="n"),),
        namespaces={"n": "All."},
    )
    built = build(given, ledger=Ledger())
    body: JSON = built.body
    call = body["messages"][1]["content"][0]
    assert call["name"] == body["tools"][0]["name"]
    assert body["tools"][0]["description"] == "All."
    assert built.map.tool(call["name"]) == OfferedTool("a.b", "n")
    assert body["messages"][2]["content"][0]["tool_use_id"] == call["id"]
    assert built.map.ids == {call["id"]: "call_1|fc_2"}


@pytest.mark.parametrize(
    ("choice", "parallel", "found"),
    [
        (ToolChoice(Choosing.AUTO), True, {"type": "auto"}),
        (ToolChoice(Choosing.ANY), False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolChoice(Choosing.NONE), False, {"type": "none"}),
        (ToolChoice(Choosing.ONE, payload={"type": "x"}), None, {"type": "auto"}),
        (None, True, None),
        (None, None, None),
    ],
)
def test_each_choice_has_its_shape(choice: ToolChoice | None, parallel: bool | None, found: object) -> None:
    given = request(tools=(TOOL,), tool_choice=choice, parallel=parallel)
    assert written(given).get("tool_choice") == found


def test_a_choice_without_tools_is_not_sent() -> None:
    assert "tool_choice" not in written(request(tool_choice=ToolChoice(Choosing.AUTO), parallel=False))


def test_no_tool_is_forced_while_the_model_thinks() -> None:
    given = request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ONE, "f"), reasoning=THINKS)
    assert written(given)["tool_choice"] == {"type": "auto"}
    assert written(given, effort="none")["tool_choice"] == {"type": "tool", "name": "f"}


def test_web_search_is_asked_for_where_the_route_allows_it() -> None:
    loss = Loss("tools[0]", Row("hosted", Rule.DROP, reason="hosted"))
    tool = ServerTool({}, loss, search=WebSearch(("a.org",), {"city": "Oslo"}))
    bare = ServerTool({}, loss, search=WebSearch())
    assert "tools" not in written(request(tools=(tool,)))
    assert written(request(tools=(tool, ServerTool({}, loss))), web_search=True)["tools"] == [
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "allowed_domains": ["a.org"],
            "user_location": {"type": "approximate", "city": "Oslo"},
        }
    ]
    assert written(request(tools=(bare, tool)), web_search=True)["tools"] == [  # the first of one name
        {"type": "web_search_20250305", "name": "web_search"}
    ]


# the rest


def test_a_bound_is_always_given() -> None:
    assert written(request(max_tokens=None))["max_tokens"] == 32_000
    assert written(request(max_tokens=None), max_tokens=9)["max_tokens"] == 9
    assert written(request(max_tokens=100), most_tokens=50)["max_tokens"] == 50


def test_one_json_object_is_asked_for_in_words() -> None:
    body = written(request(system=(Turn(Role.SYSTEM, (TextPart("a"),)),), output=OutputFormat(OutputKind.JSON)))
    assert [block["text"] for block in body["system"]] == ["a", "Answer with one JSON object and nothing else."]
    assert "output_config" not in written(request(output=OutputFormat(OutputKind.TEXT)))


def test_a_schema_stands_beside_the_effort() -> None:
    given = request(reasoning=THINKS, output=OutputFormat(OutputKind.SCHEMA), extras={"output_config": 5})
    assert written(given)["output_config"] == {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}},
    }


def test_only_four_pieces_are_marked_for_the_cache() -> None:
    parts = [TextPart("t", cache=CacheHint("5m")) for _ in range(5)]
    blocks = messages(user(*parts))[0]["content"]
    assert [block.get("cache_control") for block in blocks] == [{"type": "ephemeral", "ttl": "5m"}] * 4 + [None]
    fifth = written(request(user(*parts[:4]), cache=CacheHint()))
    assert "cache_control" not in fifth


@pytest.mark.parametrize(
    ("tier", "found"),
    [("auto", "auto"), ("default", "standard_only"), ("priority", "auto"), ("flex", None), ("other", None)],
)
def test_each_tier_has_its_word(tier: str, found: str | None) -> None:
    assert written(request(service_tier=tier)).get("service_tier") == found


def test_unknown_members_go_up_untouched_and_never_over_ours() -> None:
    body = written(request(extras={"trace": 1, "messages": []}))
    assert body["trace"] == 1
    assert body["messages"] == [GO_MESSAGE]
