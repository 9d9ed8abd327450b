"""Every recorded request: toward its own dialect it is what it was, toward each other legal, and back without loss."""

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.request import FunctionTool, Request, RequestOptions
from pipeline.toolnames import BuiltRequest
from stages.dialects.messages.request_schema import Fitting
from tests.request_facts import SAYS, facts
from tests.request_shapes import BUILDS, JSON, PARSES
from tests.request_types import grammar_faults, needs_corpus, needs_grammar, recorded, type_faults

NO_REQUESTS = (
    "anthropic_test_anthropic_stop_sequences_sent_to_api",
    "test_completions_async_api-7",
    "invalid_output_format_is_rejected",
    "openai_openai_fine_tuning_jobs_post",
    "rejects_edits_with_a_url_having_invalid_content_type",
    "should-set-attributes-in-span-for-streaming-completion_14840",
)
"""Recorded under these dialects, but bodies of other APIs: telemetry, older completions, images, fine-tuning."""

REFUSED = {
    "n": "only one choice can be answered",
    "previous_response_id": "no conversation is kept here: send the whole of it",
    "conversation": "no conversation is kept here: send the whole of it",
    "prompt": "no other provider has the prompt",
    "background": "an answer is given while the client waits",
    "messages[0].content[1]": "sound cannot be sent",
    "messages[0].content[1].type": "unknown part 'file_url'",
}
"""What other dialects cannot honour, by the member that is named."""

BODIES = [
    pytest.param(dialect, body, id=f"{dialect}:{name.removesuffix('.request.json')}")
    for dialect in PARSES
    for name, body in recorded(dialect)
    if not any(part in name for part in NO_REQUESTS)
]
PAIRS = [
    pytest.param(*case.values, upstream, id=f"{case.id}-{upstream}")
    for case in BODIES
    for upstream in PARSES
    if upstream != case.values[0]
]


def parse(dialect: str, body: Mapping[str, Any]) -> Request:
    return PARSES[dialect](body, ledger=Ledger(direction="request"))


def build(dialect: str, request: Request, ledger: Ledger | None = None, **options: Any) -> BuiltRequest:
    kept = Ledger() if ledger is None else ledger
    return BUILDS[dialect](request, ledger=kept, options=RequestOptions(**options))


@needs_corpus
@pytest.mark.parametrize(("dialect", "body"), BODIES)
def test_a_request_in_its_own_dialect_is_the_same_but_for_the_counts_that_are_asked_for(
    dialect: str, body: JSON
) -> None:
    ledger = Ledger(direction="request")
    counts = {}
    if dialect == "chat" and body.get("stream"):
        counts = {"stream_options": {**(body.get("stream_options") or {}), "include_usage": True}}
    assert build(dialect, parse(dialect, body), ledger).body == body | counts
    assert list(ledger) == []


def fitted(request: Request) -> Request:
    """The request with those of its schemas that are enforced as Anthropic enforces them."""
    output = request.output
    return evolve(
        request,
        output=output and evolve(output, schema=Fitting().fit(output.schema)),
        tools=tuple(
            evolve(tool, schema=Fitting().fit(tool.schema)) if isinstance(tool, FunctionTool) and tool.strict else tool
            for tool in request.tools
        ),
    )


@needs_corpus
@needs_grammar
@pytest.mark.parametrize(("dialect", "body", "upstream"), PAIRS)
def test_a_request_is_legal_in_each_other_dialect_and_comes_back_without_loss(
    dialect: str, body: JSON, upstream: str
) -> None:
    ledger = Ledger(direction="request")
    request = parse(dialect, body)
    try:
        built = build(upstream, request, ledger)
    except ClientError as error:
        member, reason = str(error).split(": ", 1)
        assert REFUSED[member] == reason
        return
    assert type_faults(upstream, built.body) == []
    assert grammar_faults(upstream, built.body) == []

    there = parse(upstream, built.body)
    back = build(dialect, there).body
    assert type_faults(dialect, back) == []
    assert grammar_faults(dialect, back) == []

    lost = {entry.path for entry in ledger}
    both = SAYS[dialect] & SAYS[upstream]
    before, after = facts(fitted(request) if upstream == "messages" else request), facts(there, built.map)
    named = {name for name in both if request.path(name) in lost}
    if any(entry.action.startswith("degraded") for entry in ledger if entry.path.startswith(("messages", "input"))):
        named |= {"said"}
    if any(path.startswith("tool_choice") for path in lost):
        named |= {"choice"}
    if request.parallel is True:
        named |= {"parallel"}  # what every dialect does anyway
    if not before["tools"]:
        named |= {"choice", "parallel"}
    if request.max_tokens is None:
        named |= {"max_tokens"}
    if "system" not in named and request.output is not None and "response_format" in lost | {"text.format"} & lost:
        named |= {"system"}
    assert {name: after[name] for name in both - named} == {name: before[name] for name in both - named}
