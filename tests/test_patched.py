"""One dialect over itself, whole answers: what was changed is written into the body that came, and nothing else."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve

from pipeline.dialect import RequestFacts
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    StopReason,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.patching import ARGUMENTS, LONG, MARKUP, ODD, Json, made, saying, scrubbed
from tests.returning import returned

every_dialect = pytest.mark.parametrize("name", ["chat", "messages", "responses"])


def beside(name: str, body: Json) -> list[tuple[str, Any]]:
    """All that a body says beside what the model said and why it ended, in its order."""
    if name != "chat":
        return [(member, value) for member, value in body.items() if member not in ("content", "output", "stop_reason")]
    first, *others = body["choices"]
    said = [(member, value) for member, value in first["message"].items() if member not in SAID]
    choice = [
        (member, value) for member, value in first.items() if member not in ("message", "finish_reason", "logprobs")
    ]
    return [*said, *choice, *[(member, others if member == "choices" else value) for member, value in body.items()]]


SAID = ("content", "tool_calls", "reasoning_content")


@every_dialect
@pytest.mark.parametrize("text", [f"A {MARKUP} B", MARKUP, f"{MARKUP}A", "<think>why</think>A", f"A{MARKUP}"])
def test_what_was_not_changed_is_as_it_came(name: str, text: str) -> None:
    body = saying(name, text)
    out = scrubbed(name, body)
    assert out != body
    assert beside(name, out) == beside(name, body)
    assert "token" not in json.dumps(out).replace("_tokens", "")


@every_dialect
def test_a_body_in_which_nothing_is_recovered_is_the_same_bytes(name: str) -> None:
    raw = json.dumps(saying(name, "A <b> `<tool_call>` 1 < 2"), indent=3) + "\n"
    facts = RequestFacts(stream=False, tools={"f": {}})
    for arriving in (Form.WHOLE, None):
        out, _ = returned(name, [raw.encode()], arriving=arriving, leaving=Form.WHOLE, facts=facts)
        assert out == raw.encode()


@every_dialect
def test_numbers_are_as_they_were_written(name: str) -> None:
    raw = json.dumps(saying(name, MARKUP)).replace('"deep": [1,', f'"deep": [1.50, 1e400, {LONG}, -0.0,')
    facts = RequestFacts(stream=False, tools={"f": {}})
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE}
    out, _ = returned(name, [raw.encode()], **forms, facts=facts, options=AnswerOptions(recover="prompt"))
    assert f"[1.50,1e400,{LONG},-0.0,".encode() in out
    assert b"tool_call>" not in out.split(b'"index":1')[0]


@every_dialect
def test_what_is_known_of_the_answer_is_changed_where_it_stands(name: str) -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, MessageStart):
            event = evolve(event, id="new", model="other")
        if isinstance(event, MessageDelta):
            event = evolve(event, stop_reason=StopReason.MAX_TOKENS, usage=Usage(input=30, output=4))
        yield event

    body = saying(name, "Hi")
    out = made(name, body, make)
    assert (out["id"], out["model"]) == ("new", "other")
    told = {
        "chat": (out["choices"][0]["finish_reason"] if name == "chat" else "", "length"),
        "messages": (out.get("stop_reason"), "max_tokens"),
        "responses": (
            (out.get("status"), out.get("incomplete_details")),
            ("incomplete", {"reason": "max_output_tokens"}),
        ),
    }[name]
    assert told[0] == told[1]
    assert 30 in out["usage"].values()
    kept = {"odd", "service_tier", "prompt_tokens_details", "server_tool_use"}
    assert {n: v for n, v in out["usage"].items() if n in kept} == {n: v for n, v in body["usage"].items() if n in kept}


@every_dialect
def test_an_answer_of_which_nothing_is_left_but_what_is_new_is_patched_too(name: str) -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, BlockStart):
            yield from (BlockStart(7, ToolUseBlock("i", "f")), ArgumentsDelta(7, ARGUMENTS), BlockStop(7))
        elif not isinstance(event, TextDelta | BlockStop):
            yield event

    out = made(name, saying(name, "Hi"), make)
    assert out["odd"] == ODD
    assert b"Hi" not in json.dumps(out).encode()
    assert "Paris" in json.dumps(out)


@every_dialect
def test_what_was_patched_is_patched_no_more(name: str) -> None:
    out = scrubbed(name, saying(name, f"A {MARKUP} B <think>why</think>C"))
    assert scrubbed(name, out) == out
