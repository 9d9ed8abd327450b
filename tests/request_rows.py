"""What the tests of every dialect's table for building a request check of each row."""

from collections.abc import Callable

import pytest
from attrs import evolve

from pipeline.errors import ClientError
from pipeline.ladder import Row, Rule
from pipeline.ledger import Ledger
from pipeline.request import (
    CacheHint,
    Choosing,
    DocumentPart,
    FunctionTool,
    ImagePart,
    Inline,
    OutputFormat,
    OutputKind,
    Reasoning,
    ReasoningPart,
    Remote,
    Request,
    RequestOptions,
    Stored,
    TextPart,
    ToolChoice,
    ToolResultPart,
)
from pipeline.toolnames import BuiltRequest
from pipeline.turns import ORPHAN, UNANSWERED
from tests.request_shapes import AT, CALL, GO, JSON, SCHEMA, assistant, request, user

Build = Callable[..., BuiltRequest]


def check_written(build: Build, row: Row, given: Request, shows: JSON) -> None:
    """A member is carried, as its row says: the body shows it, and nothing is recorded on the strictest of routes."""
    ledger = Ledger(direction="request")
    assert row.rule in (Rule.ACCEPT, Rule.TRANSLATE)
    body = build(given, ledger=ledger, options=RequestOptions(strict=True)).body
    assert {name: body.get(name) for name in shows} == shows
    assert list(ledger) == []


def check_lost(build: Build, row: Row, given: Request, where: str, options: RequestOptions) -> None:
    """A member is lost, as its row says: it is refused by the client's word for it, or recorded once."""
    ledger = Ledger(direction="request")
    rule = row.under(options.strict)
    if rule is Rule.REFUSE:
        with pytest.raises(ClientError) as caught:
            build(given, ledger=ledger, options=options)
        assert str(caught.value) == f"{where}: {row.reason}"
        assert caught.value.status == 400
        return
    build(given, ledger=ledger, options=options)
    found = [entry for entry in ledger if entry.reason == row.reason]
    assert [entry.path for entry in found] == [where]
    assert found[0].action.startswith(rule.value)


TOOL = FunctionTool("f", "does f", SCHEMA)
CACHED = CacheHint(where="messages[0].content[0].cache_control")

# row of the table: (the request, where the loss is named)
OPENAI_LOST: list[tuple[str, Request, str]] = [
    ("turns.none", request(user(ReasoningPart("r")), paths={"turns": "messages"}), "messages"),
    ("max_tokens below zero", request(max_tokens=-1), "max_tokens"),
    ("top_k below one", request(top_k=-1), "top_k"),
    ("max_tokens above the most", request(max_tokens=100), "max_tokens"),
    ("reasoning off", request(reasoning=Reasoning(False)), "reasoning"),
    (
        "reasoning.budget",
        request(reasoning=Reasoning(True, "high", 9_000), paths={"reasoning.budget": "thinking.budget_tokens"}),
        "thinking.budget_tokens",
    ),
    ("sampling", request(top_p=0.5), "top_p"),
    ("max_tokens of zero", request(max_tokens=0), "max_tokens"),
    ("top_k", request(top_k=5), "top_k"),
    ("choices", request(choices=2, paths={"choices": "n"}), "n"),
    ("cache", request(cache=CacheHint()), "cache"),
    ("part cache", request(user(TextPart("t", cache=CACHED))), CACHED.where),
    ("part reasoning", request(assistant(TextPart("t"), ReasoningPart("r", "sig", where=AT)), GO), AT),
    ("part image stored", request(user(ImagePart(Stored("file-1"), where=AT))), AT),
    ("part document stored", request(user(DocumentPart(Stored("file-1"), where=AT))), AT),
    ("part document text", request(user(DocumentPart("words", where=AT))), AT),
    (
        "part document citations",
        request(user(DocumentPart(Inline("application/pdf", "QQ=="), citations=True, where=AT))),
        f"{AT}.citations",
    ),
    ("part out of place", request(assistant(ImagePart(Remote("http://x"), where=AT)), GO), AT),
    (
        "part is_error",
        request(assistant(CALL), user(ToolResultPart("1", (TextPart("no"),), True, where="r"))),
        "r.is_error",
    ),
    ("turns.prefill", request(GO, assistant(TextPart("It is"))), "messages[0]"),
    (UNANSWERED, request(assistant(CALL), GO), AT),
    (ORPHAN, request(user(ToolResultPart("9", (), where=AT))), AT),
    (
        "output.strict",
        request(output=OutputFormat(OutputKind.SCHEMA, schema=SCHEMA, where="output_config.format")),
        "output_config.format.schema",
    ),
    ("tool strict", request(tools=(evolve(TOOL, strict=True, where="tools[0]"),)), "tools[0]"),
    (
        "tool_choice hosted",
        request(tools=(TOOL,), tool_choice=ToolChoice(Choosing.ONE, "web_search")),
        "tool_choice",
    ),
]
"""What neither of OpenAI's dialects can say."""
