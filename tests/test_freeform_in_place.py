"""One dialect over itself: a freeform tool that is called as text is called as the client declared it."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.events import ArgumentsDelta, BlockStart, Event, ToolKind, ToolUseBlock
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.patching import Json, saying
from tests.returning import returned, through
from tests.test_bridged import stream_of

MARKUP = '<tool_call>{"name": "run", "arguments": {"input": "ls -l"}}</tool_call>'
TOOLS: dict[str, Any] = {
    "chat": {"type": "custom", "custom": {"name": "run"}},
    "responses": {"type": "custom", "name": "run"},
}


def calls_in(name: str, whole: Json) -> list[Json]:
    if name == "responses":
        return [item for item in whole["output"] if item["type"].endswith("_call")]
    calls: list[Json] = whole["choices"][0]["message"].get("tool_calls", [])
    return calls


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("leaving", Form)
def test_a_freeform_tool_that_is_called_as_text_is_called_as_one(name: str, leaving: Form) -> None:
    facts = dialect(name).facts({"model": "m", "tools": [TOOLS[name]]})
    stream, _ = stream_of(name, saying(name, MARKUP))
    out, _ = returned(name, [stream], leaving=leaving, facts=facts, options=AnswerOptions(recover="prompt"))
    if leaving is Form.STREAM:
        assert b'"function_call"' not in out
        assert b'"type":"function"' not in out
        out, _ = returned(name, [out], leaving=Form.WHOLE)
    (call,) = calls_in(name, json.loads(out))
    if name == "responses":
        assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "run", "ls -l")
    else:
        assert (call["type"], call["custom"]) == ("custom", {"name": "run", "input": "ls -l"})


@pytest.mark.parametrize("name", TOOLS)
def test_a_stage_in_the_middle_sees_a_freeform_call_and_its_text(name: str) -> None:
    facts = dialect(name).facts({"model": "m", "tools": [TOOLS[name]]})
    stream, _ = stream_of(name, saying(name, MARKUP))
    kinds: list[ToolKind] = []
    texts: list[str] = []

    def seen(event: Event) -> list[Event]:
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            kinds.append(event.block.kind)
        texts.extend([event.text] if isinstance(event, ArgumentsDelta) else [])
        return [event]

    through(name, seen, [stream], facts=facts, options=AnswerOptions(recover="prompt"))
    assert (kinds, "".join(texts)) == ([ToolKind.CUSTOM], "ls -l")
