"""A request toward its own dialect: the client's own body, but for what the route decides; and what others refuse."""

from typing import Any

import pytest
from attrs import evolve

from pipeline import envelope
from pipeline.errors import ClientError
from pipeline.ledger import Ledger
from pipeline.request import Request, RequestOptions, Role, TextPart, Turn
from tests.request_shapes import BUILDS, JSON, PARSES, others

MINIMAL: dict[str, JSON] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "go"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]},
    "responses": {"model": "m", "input": "go"},
}


def read(name: str, **members: Any) -> Request:
    return PARSES[name]({**MINIMAL[name], **members}, ledger=Ledger())


def own(name: str, request: Request, **options: Any) -> JSON:
    """What goes up to the request's own dialect, with nothing in the ledger."""
    ledger = Ledger(direction="request")
    written = BUILDS[name](request, ledger=ledger, options=RequestOptions(**options)).body
    assert list(ledger) == []
    return written


def said(*given: JSON) -> JSON:
    return {"messages": list(given)}


USER = {"role": "user", "content": "u"}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CHAT_TOOL = {"type": "function", "function": FUNCTION}
TOOL = {"type": "function", **FUNCTION}
UNKNOWN = "unknown value"


@pytest.mark.parametrize(
    ("name", "members", "fault"),
    [
        ("chat", {"response_format": {"type": "regex", "pattern": "x"}}, f"response_format.type: {UNKNOWN}"),
        ("chat", said({"role": "ipython", "content": "x"}), f"messages[0].role: {UNKNOWN}"),
        ("chat", {"tools": [CHAT_TOOL], "tool_choice": "validated"}, f"tool_choice: {UNKNOWN}"),
        (
            "chat",
            {"tools": [CHAT_TOOL], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "most"}}},
            f"tool_choice.allowed_tools.mode: {UNKNOWN}",
        ),
        ("messages", {"service_tier": "batch"}, f"service_tier: {UNKNOWN}"),
        ("messages", {"output_config": {"effort": "ultra"}}, f"output_config.effort: {UNKNOWN}"),
        ("messages", {"output_config": {"format": {"type": "regex"}}}, "output_config.format.type: must be json"),
        ("messages", {"tool_choice": {"type": "maybe", "x": 1}}, f"tool_choice.type: {UNKNOWN}"),
        ("messages", said({"role": "developer", "content": "x"}), f"messages[0].role: {UNKNOWN}"),
        ("messages", {"system": [{"type": "hologram", "x": 1}]}, "system[0].type: must be text"),
        (
            "messages",
            said({"role": "user", "content": [{"type": "image", "source": {"type": "ftp", "x": 1}}]}),
            "messages[0].content[0].source.type: unknown source, must be one of base64, url, file",
        ),
        (
            "messages",
            said({"role": "user", "content": [{"type": "document", "source": {"type": "ftp"}, "title": "t"}]}),
            "messages[0].content[0].source.type: unknown source, must be one of base64, url, file, text, content",
        ),
        ("responses", {"reasoning": {"effort": "ultra", "summary": "long"}}, f"reasoning.summary: {UNKNOWN}"),
        ("responses", {"text": {"format": {"type": "xml"}, "n": 1}}, f"text.format.type: {UNKNOWN}"),
        ("responses", {"tools": [TOOL], "tool_choice": "validated"}, f"tool_choice: {UNKNOWN}"),
        ("responses", {"tool_choice": {"type": "allowed_tools", "mode": "most"}}, f"tool_choice.mode: {UNKNOWN}"),
        ("responses", {"input": [{"role": "critic", "content": "x"}]}, f"input[0].role: {UNKNOWN}"),
        ("responses", {"input": [{"id": "i"}]}, "input[0]: no conversation is kept here"),
        ("responses", {"input": [{"type": None, "id": "i"}]}, "input[0]: no conversation is kept here"),
    ],
)
def test_a_value_that_nobody_knows_goes_up_in_its_own_dialect_and_is_refused_by_each_other(
    name: str, members: JSON, fault: str
) -> None:
    assert own(name, read(name, **members)) == {**MINIMAL[name], **members}
    for build in others(name).values():
        with pytest.raises(ClientError) as caught:
            build(read(name, **members), ledger=Ledger())
        assert str(caught.value).startswith(fault)


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("chat", {"functions": [FUNCTION], "function_call": {"name": "f"}}),
        ("chat", {"functions": [FUNCTION], "function_call": "auto"}),
        (
            "chat",
            said(
                USER,
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "r"},
            ),
        ),
        ("chat", {"tools": [{"googleSearch": {}}, {"type": "mcp"}], "tool_choice": "any", "stop": "x", "seed": None}),
        ("chat", {"stream": False, "logprobs": False, "top_logprobs": 0, "reasoning_effort": "none"}),
        ("chat", said({"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "user", "content": None})),
        ("messages", said({"role": "user", "content": [{"type": "text", "text": "a"}]})),
        ("messages", {"stop_sequences": [], "tools": [], "stream": False, "system": [{"type": "text", "text": "s"}]}),
        ("messages", said(USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]})),
        ("responses", {"input": [{"role": "user", "content": ""}, {"role": "assistant", "content": []}]}),
        ("responses", {"tools": [TOOL], "stream": False, "background": False, "instructions": ""}),
        ("responses", {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": {"type": "mystery"}}),
    ],
)
def test_a_body_goes_up_in_its_own_words(name: str, members: JSON) -> None:
    assert own(name, read(name, **members)) == {**MINIMAL[name], **members}


def test_nothing_is_invented_for_a_prompt_that_the_provider_keeps() -> None:
    prompt = {"prompt": {"id": "p", "variables": {"a": "b"}}}
    assert own("responses", PARSES["responses"](prompt, ledger=Ledger())) == prompt


@pytest.mark.parametrize("name", PARSES)
def test_a_route_changes_the_model_and_the_form_and_no_other_member(name: str) -> None:
    given = {**MINIMAL[name], "stream": False, "zz": [1]}
    asked = evolve(PARSES[name](given, ledger=Ledger()), stream=True)
    counts = {"stream_options": {"include_usage": True}} if name == "chat" else {}
    assert own(name, asked, model="other") == {**given, "model": "other", "stream": True, **counts}


@pytest.mark.parametrize(
    ("name", "members", "options", "becomes"),
    [
        ("chat", {"max_tokens": 9}, {"most_tokens": 5}, {"max_tokens": 5}),
        ("chat", {"max_completion_tokens": 9}, {"old_max_tokens": True}, {"max_tokens": 9}),
        ("chat", {"temperature": 1, "top_k": 2}, {"sampling": False}, {"top_k": 2}),
        ("chat", {"reasoning": {"effort": "low"}}, {"effort": "high"}, {"reasoning_effort": "high"}),
        ("messages", {"max_tokens": 9}, {"most_tokens": 5}, {"max_tokens": 5}),
        ("messages", {"temperature": 1, "top_k": 2}, {"sampling": False}, {}),
        ("messages", {}, {"effort": "none"}, {"thinking": {"type": "disabled"}}),
        (
            "messages",
            {"max_tokens": 1024},
            {"effort": "minimal", "thinking_budget": True},
            {"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ),
        ("responses", {"max_output_tokens": 99}, {"most_tokens": 50}, {"max_output_tokens": 50}),
        ("responses", {"top_p": 1}, {"sampling": False}, {}),
        ("responses", {"reasoning": {"effort": "low"}}, {"effort": ""}, {}),
    ],
)
def test_what_an_option_of_the_route_is_about_is_written_anew(
    name: str, members: JSON, options: JSON, becomes: JSON
) -> None:
    written = BUILDS[name](read(name, **members), ledger=Ledger(), options=RequestOptions(**options)).body
    assert written == {**MINIMAL[name], **becomes}


@pytest.mark.parametrize("name", PARSES)
def test_a_request_that_was_changed_in_between_is_what_it_was_changed_to(name: str) -> None:
    request = read(name, metadata={"user_id": "u"}, zz=1)
    said = Turn(Role.USER, (TextPart("more"),))
    changed = evolve(request, turns=(*request.turns, said), temperature=0.5, extras={"yy": 2})
    written = own(name, changed)
    again = PARSES[name](written, ledger=Ledger())
    assert [turn.parts for turn in again.turns] == [turn.parts for turn in changed.turns]
    assert (again.temperature, again.extras, written["metadata"]) == (0.5, {"yy": 2}, {"user_id": "u"})


SEALED = envelope.seal("up", "m", "t", '{"type":"reasoning","id":"r"}')
ODD = {"type": "hologram", "x": 1}


@pytest.mark.parametrize(
    ("name", "members", "becomes"),
    [
        (
            "messages",
            said(
                {"role": "user", "content": [{"type": "text", "text": "u"}, ODD]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": SEALED}, ODD]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""}]},
                {"role": "user", "content": [{"type": "text", "text": "v"}]},
            ),
            said(
                {"role": "user", "content": [{"type": "text", "text": "u"}, ODD]},
                {"role": "assistant", "content": [ODD]},
                {"role": "user", "content": [{"type": "text", "text": "v"}]},
            ),
        ),
        (
            "responses",
            {
                "input": [
                    {"role": "user", "content": "u"},
                    {"type": "reasoning", "summary": [], "encrypted_content": SEALED},
                    {"role": "assistant", "content": "a"},
                ]
            },
            {"input": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]},
        ),
        (
            "chat",
            said(
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": "a", "reasoning_details": [{"text": "t", "signature": SEALED}]},
                {"role": "critic", "content": [{"type": "text", "text": "v"}]},
            ),
            said(
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": "a"},
                {"role": "critic", "content": [{"type": "text", "text": "v"}]},
            ),
        ),
    ],
)
def test_only_the_turns_with_reasoning_of_others_are_written_anew(name: str, members: JSON, becomes: JSON) -> None:
    ledger = Ledger()
    written = BUILDS[name](read(name, **members), ledger=ledger, options=RequestOptions(upstream="other")).body
    assert written == {**MINIMAL[name], **becomes}
    assert {entry.reason for entry in ledger} == {"it belongs to the provider that made it"}
