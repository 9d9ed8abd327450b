"""Building a Messages request: every row of its table."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.errors import ClientError
from pipeline.ladder import Rule
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
    Reasoning,
    ReasoningPart,
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
from pipeline.turns import ORPHAN, UNANSWERED
from stages.dialects.messages.request import build
from stages.dialects.messages.request_tables import WRITE
from tests.request_rows import check_written
from tests.request_shapes import AT, CALL, CLOSED, GO, JSON, SCHEMA, assistant, read, user
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
CACHED = TextPart("t", cache=CacheHint("30m", "c"))

REFERRED = {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a", "title": "t"}


def demanding(schema: JSON) -> Request:
    """A request for an answer of that form."""
    return request(output=OutputFormat(OutputKind.SCHEMA, "", schema, where="text.format"))


# row of the table: (the request, what of the body shows it)
CARRIED: list[tuple[str, Request, JSON]] = [
    ("model", request(), {"model": "m"}),
    ("system", request(system=(Turn(Role.SYSTEM, (TextPart("a"),)),)), {"system": "a", "messages": [GO_MESSAGE]}),
    ("turns", request(), {"messages": [GO_MESSAGE]}),
    (
        "tools",
        request(tools=(evolve(TOOL, schema=CLOSED, strict=True),)),
        {"tools": [{"name": "f", "description": "does f", "input_schema": CLOSED, "strict": True}]},
    ),
    (
        "tool_choice",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ONE, "f")),
        {"tool_choice": {"type": "tool", "name": "f"}},
    ),
    (
        "tool_choice allowed",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ANY, allowed=(("", "f"),))),
        {
            "tools": [{"name": "f", "description": "does f", "input_schema": SCHEMA}],
            "tool_choice": {"type": "any"},
        },
    ),
    (
        "parallel",
        request(tools=(TOOL,), parallel=False),
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    ),
    ("max_tokens", request(max_tokens=5), {"max_tokens": 5}),
    ("stop", request(stop=("a",)), {"stop_sequences": ["a"]}),
    ("temperature", request(temperature=0.5), {"temperature": 0.5}),
    ("top_p", request(top_p=0.5), {"top_p": 0.5}),
    ("top_k", request(top_k=5), {"top_k": 5}),
    (
        "reasoning",
        request(reasoning=THINKS),
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    ),
    (
        "output",
        request(output=OutputFormat(OutputKind.SCHEMA, schema=CLOSED)),
        {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
    ),
    ("user", request(user="u"), {"metadata": {"user_id": "u"}}),
    ("cache", request(cache=CacheHint("1h")), {"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    (
        "part cache",
        request(user(CACHED)),
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
                }
            ]
        },
    ),
    ("service_tier", request(service_tier="default"), {"service_tier": "standard_only"}),
    ("stream", request(stream=True), {"stream": True}),
]


# row of the table: (the request, where the loss is named, options)
LOST: list[tuple[str, Request, str, JSON]] = [
    ("turns.name", request(evolve(GO, name="me", where="messages[0]")), "messages[0].name", {}),
    ("turns.first", request(assistant(TextPart("a")), GO), "messages[0]", {}),
    (
        "turns.later instructions",
        request(GO, Turn(Role.SYSTEM, (TextPart("now"),), where="messages[1]")),
        "messages[1]",
        {},
    ),
    ("service_tier of another kind", request(service_tier="flex"), "service_tier", {}),
    ("turns.none", request(Turn(Role.SYSTEM, (TextPart("s"),)), paths={"turns": "messages"}), "messages", {}),
    ("max_tokens below zero", request(max_tokens=-1), "max_tokens", {}),
    ("top_k below one", request(top_k=-1), "top_k", {}),
    ("max_tokens above the most", request(max_tokens=100), "max_tokens", {"most_tokens": 50}),
    (
        "max_tokens beside a budget",
        request(max_tokens=100, reasoning=Reasoning(True, budget=2000)),
        "max_tokens",
        {"thinking_budget": True},
    ),
    (
        "reasoning within the most",
        request(max_tokens=4000, reasoning=Reasoning(True, "high")),
        "reasoning",
        {"thinking_budget": True, "most_tokens": 8192},
    ),
    (
        "reasoning beyond the bound",
        request(max_tokens=100, reasoning=Reasoning(True, "high")),
        "reasoning",
        {"thinking_budget": True, "most_tokens": 1024},
    ),
    ("tool of one name", request(tools=(TOOL, evolve(TOOL, where="tools[1]"))), "tools[1]", {}),
    ("reasoning off", request(reasoning=Reasoning(False)), "reasoning", {"off_effort": "low"}),
    ("stop of blanks", request(stop=("a", "\n"), paths={"stop": "stop"}), "stop", {}),
    ("temperature above one", request(temperature=1.5), "temperature", {}),
    ("sampling with thinking", request(temperature=0.5, reasoning=THINKS), "temperature", {}),
    ("sampling", request(top_p=0.5), "top_p", {"sampling": False}),
    ("seed", request(seed=5), "seed", {}),
    ("frequency_penalty", request(frequency_penalty=1), "frequency_penalty", {}),
    ("presence_penalty", request(presence_penalty=1), "presence_penalty", {}),
    ("logit_bias", request(logit_bias={}), "logit_bias", {}),
    ("logprobs", request(logprobs=0), "logprobs", {}),
    ("choices", request(choices=2, paths={"choices": "n"}), "n", {}),
    (
        "reasoning in a tool loop",
        request(assistant(CALL), user(ToolResultPart("1", ())), reasoning=THINKS),
        "reasoning",
        {"thinking_budget": True},
    ),
    ("output json", request(output=OutputFormat(OutputKind.JSON)), "output", {}),
    ("output recursive", demanding({"$ref": "#"}), "text.format", {}),
    ("schema keyword", demanding({"type": "integer", "minimum": 1}), "text.format.schema.minimum", {}),
    ("schema oneOf", demanding({"oneOf": [{"type": "string"}]}), "text.format.schema.oneOf", {}),
    ("schema open", demanding({"type": "object"}), "text.format.schema.additionalProperties", {}),
    ("schema mark", demanding({"$schema": "s", "type": "null"}), "text.format.schema.$schema", {}),
    ("schema beside a reference", demanding(REFERRED), "text.format.schema.title", {}),
    (
        "tool strict",
        request(tools=(FunctionTool("f", schema={"type": "object", "items": {"$ref": "#"}}, strict=True, where="t"),)),
        "t",
        {},
    ),
    ("output.name", request(output=OutputFormat(OutputKind.SCHEMA, "n", SCHEMA)), "output.name", {}),
    (
        "output.description",
        request(output=OutputFormat(OutputKind.SCHEMA, "", SCHEMA, None, "d", where="text.format")),
        "text.format.description",
        {},
    ),
    ("output.strict", request(output=OutputFormat(OutputKind.SCHEMA, "", SCHEMA, False)), "output.strict", {}),
    (
        "reasoning.budget",
        request(reasoning=evolve(THINKS, budget=9_000), paths={"reasoning.budget": "reasoning.max_tokens"}),
        "reasoning.max_tokens",
        {},
    ),
    ("reasoning.summary", request(reasoning=Reasoning(summary="auto")), "reasoning.summary", {}),
    (
        "reasoning.effort",
        request(reasoning=evolve(THINKS, budget=9_000)),
        "reasoning.effort",
        {"thinking_budget": True},
    ),
    ("older_user", request(user="u", older_user="v", paths={"older_user": "user"}), "user", {}),
    (
        "part cache within an instruction",
        request(GO, Turn(Role.SYSTEM, (evolve(CACHED, where=AT), CACHED))),
        AT,
        {},
    ),
    (
        "tool not allowed",
        request(
            tools=(TOOL, FunctionTool("g", where="tools[1]")),
            tool_choice=ToolChoice(Choosing.ANY, allowed=(("", "f"),)),
        ),
        "tools[1]",
        {},
    ),
    ("verbosity", request(verbosity="low"), "verbosity", {}),
    ("metadata", request(metadata={"a": "b"}), "metadata", {}),
    ("cache_key", request(cache_key="k"), "cache_key", {}),
    ("store", request(store=True), "store", {}),
    (
        "part cache beyond four",
        request(user(*[TextPart("t", cache=CacheHint("", f"c{at}")) for at in range(5)])),
        "c4",
        {},
    ),
    ("part reasoning", request(GO, assistant(TextPart("t"), ReasoningPart("r", "sig", where=AT)), GO), AT, {}),
    (
        "part citation",
        request(
            GO, assistant(TextPart("t", private={"citations": [{"encrypted_index": ""}]}, where=AT)), dialect="messages"
        ),
        AT,
        {},
    ),
    ("part empty text", request(user(TextPart("", where=AT), TextPart("a"))), AT, {}),
    ("part image stored", request(user(ImagePart(Stored("f"), where=AT))), AT, {}),
    ("part image of another type", request(user(ImagePart(Inline("image/bmp", "QQ=="), where=AT))), AT, {}),
    ("part image detail", request(user(ImagePart(Remote("http://x"), "high", where=AT))), AT, {}),
    ("part document stored", request(user(DocumentPart(Stored("f"), where=AT))), AT, {}),
    ("part document of another type", request(user(DocumentPart(Inline("x/y", "QQ=="), where=AT))), AT, {}),
    ("part audio", request(user(AudioPart("QQ==", "wav", where=AT))), AT, {}),
    ("part out of place", request(GO, assistant(ImagePart(Remote("http://x"), where=AT)), GO), AT, {}),
    (
        "part arguments",
        request(GO, assistant(ToolUsePart("1", "f", "{oops", where=AT)), user(ToolResultPart("1", ()))),
        AT,
        {},
    ),
    (UNANSWERED, request(GO, assistant(CALL), GO), AT, {}),
    (ORPHAN, request(user(ToolResultPart("9", (), where=AT))), AT, {}),
    ("tool grammar", request(tools=(CUSTOM,)), "tools[0]", {}),
    (
        "web search besides",
        read(
            "responses", {"model": "m", "input": "go", "tools": [{"type": "web_search", "search_context_size": "low"}]}
        ),
        "tools[0].search_context_size",
        {"web_search": True},
    ),
    (
        "tool_choice hosted",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ONE, "web_search")),
        "tool_choice",
        {},
    ),
    (
        "tool_choice with thinking",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ANY), reasoning=THINKS),
        "tool_choice",
        {},
    ),
]


@pytest.mark.parametrize(("row", "given", "shows"), CARRIED, ids=[case[0] for case in CARRIED])
def test_a_member_is_written_as_its_row_says(row: str, given: Request, shows: JSON) -> None:
    check_written(build, WRITE[row], given, shows)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("row", "given", "where", "more"), LOST, ids=[case[0] for case in LOST])
def test_what_cannot_be_said_is_lost_as_its_row_says(
    row: str, given: Request, where: str, more: JSON, strict: bool
) -> None:
    ledger = Ledger(direction="request")
    options = RequestOptions(strict=strict, **more)
    if WRITE[row].under(strict) is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            build(given, ledger=ledger, options=options)
        assert str(caught.value) == f"{where}: {WRITE[row].reason}"
        assert caught.value.status == 400
        return
    build(given, ledger=ledger, options=RequestOptions(**more))
    found = [entry for entry in ledger if entry.reason == WRITE[row].reason and entry.path == where]
    assert len(found) == 1
    assert found[0].action.startswith(WRITE[row].under(strict).value)


def test_every_row_has_its_case() -> None:
    assert {case[0] for case in CARRIED} | {case[0] for case in LOST} == set(WRITE)
