"""A whole Messages answer over itself: a block that was changed keeps its other members."""

import json
from collections.abc import Iterable

from attrs import evolve

from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    Event,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    ToolUseBlock,
)
from tests.patching import ARGUMENTS, MARKUP, Json, made, messages, scrubbed, without_ids


def test_a_block_is_patched_and_those_that_are_new_stand_where_they_were_cut_out() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "s", "odd": 1}
    hosted = {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"q": 1.0}}
    last = {"odd": 2, "type": "text", "text": "B", "citations": None}
    body = messages(thinking, {"odd": 1, "type": "text", "text": f"A {MARKUP} C"}, hosted, "odd", last)
    out = scrubbed("messages", body)
    tool = out["content"].pop(2)
    assert without_ids(tool) == {"type": "tool_use", "name": "f", "input": json.loads(ARGUMENTS)}
    first = {"odd": 1, "type": "text", "text": "A "}
    assert out["content"] == [thinking, first, {**first, "text": " C"}, hosted, "odd", last]
    assert out["stop_reason"] == "tool_use"


def test_a_text_behind_what_was_cut_out_is_the_block_that_it_was_cut_from() -> None:
    body = messages({"type": "text", "text": "<think>why</think>A", "odd": 1}, "odd")
    thinking = {"type": "thinking", "thinking": "why", "signature": ""}
    assert scrubbed("messages", body)["content"] == [thinking, {"type": "text", "text": "A", "odd": 1}, "odd"]
    assert scrubbed("messages", messages(content=MARKUP))["content"][0]["type"] == "tool_use"
    assert scrubbed("messages", messages(content=f"A{MARKUP}"))["content"][0] == {"type": "text", "text": "A"}


def test_citations_go_where_the_text_goes_that_they_follow() -> None:
    cited = {"type": "page_location", "cited_text": "C", "odd": 1.5}
    out = scrubbed("messages", messages({"type": "text", "text": f"A {MARKUP} C", "citations": [cited], "odd": 1}))
    assert out["content"][0] == {"type": "text", "text": "A ", "odd": 1}
    assert out["content"][2] == {"type": "text", "text": " C", "citations": [cited], "odd": 1}


def test_every_block_of_messages_is_patched_member_by_member() -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, ReasoningDelta | ArgumentsDelta | RefusalDelta):
            event = evolve(event, text=event.text.replace("t", "T"))
        if isinstance(event, SignatureDelta):
            event = evolve(event, signature="new")
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            event = evolve(event, block=evolve(event.block, name="g"))
        if isinstance(event, BlockStart) and isinstance(event.block, RedactedReasoningBlock):
            event = evolve(event, block=RedactedReasoningBlock("new"))
        if isinstance(event, BlockStart) and isinstance(event.block, ServerBlock):
            event = evolve(event, block=ServerBlock("messages", {**event.block.payload, "x": 2}))
        yield event

    tool = {"type": "tool_use", "id": "a", "caller": {"type": "direct"}, "name": "f", "input": {"t": 1}}
    blocks: list[Json] = [
        {"odd": 1, "type": "thinking", "thinking": "t", "signature": "s"},
        {"odd": 1, "type": "redacted_thinking", "data": "d"},
        {"odd": 1, "type": "tool_use", "id": "b", "name": "f", "input": {}},
        tool,
        {"type": "hosted", "x": 1, "odd": 1},
    ]
    ended = {"stop_reason": "refusal", "stop_details": {"explanation": "not"}}
    out = made("messages", messages(*blocks, **ended), make)
    assert out["content"] == [
        {**blocks[0], "thinking": "T", "signature": "new"},
        {**blocks[1], "data": "new"},
        {**blocks[2], "name": "g"},
        {**tool, "name": "g", "input": {"T": 1}},
        {**blocks[4], "x": 2},
        {"type": "text", "text": "noT"},
    ]
    assert out["stop_details"] == ended["stop_details"]
    untouched = made("messages", messages(*blocks, **ended), lambda event: [event] if not _is(event, "d") else [])
    assert untouched["content"] == [blocks[0], *blocks[2:]]


def _is(event: Event, data: str) -> bool:
    """Whether it is of the redacted reasoning, which is the second block."""
    return getattr(event, "index", None) == 1
