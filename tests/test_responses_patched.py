"""A whole response over itself: an item that was changed keeps its other members."""

from collections.abc import Iterable

from attrs import evolve

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageStart,
    ReasoningDelta,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ToolUseBlock,
)
from tests.patching import ARGUMENTS, MARKUP, ODD, Json, made, messages, response, scrubbed, spoken, upper


def test_an_item_is_patched_and_those_that_are_new_stand_where_they_were_cut_out() -> None:
    silent = {"id": "rs_1", "type": "reasoning", "summary": [], "odd": 1}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": ODD}
    odd = {"type": "odd", "a": 1}
    text = f"A {MARKUP} C"
    out = scrubbed(
        "responses", response(silent, spoken(text), search, spoken("B", "msg_2"), odd, output_text=text + "B")
    )
    call, behind = out["output"].pop(2), out["output"].pop(2)
    part = {**spoken("A ")["content"][0], "logprobs": []}
    assert out["output"] == [silent, spoken("A ", content=[part]), search, spoken("B", "msg_2"), odd]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "f", ARGUMENTS)
    assert [one["text"] for one in behind["content"]] == [" C"]
    assert (out["output_text"], out["status"]) == ("A  CB", "completed")


def test_an_item_whose_text_was_all_markup_is_not_told() -> None:
    silent = {"id": "rs_1", "type": "reasoning", "summary": []}
    empty = spoken("", "msg_0")
    out = scrubbed("responses", response(silent, spoken(MARKUP), empty))["output"]
    assert [item["type"] for item in out] == ["reasoning", "function_call", "message"]
    assert (out[0], out[2]) == (silent, empty)
    thought, answer = scrubbed("responses", response(spoken("<think>why</think>A")))["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "why"}]
    assert answer == spoken("A", content=[{**spoken("A")["content"][0], "logprobs": []}])


def test_every_item_of_responses_is_patched_member_by_member() -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, ReasoningDelta | ArgumentsDelta | RefusalDelta | TextDelta):
            event = evolve(event, text=event.text.replace("t", "T"))
        if isinstance(event, AnnotationDelta):
            event = evolve(event, annotation={"type": "new"})
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            event = evolve(event, block=evolve(event.block, name="g", id="new", namespace="n"))
        yield event

    notes = [{"type": "odd"}]
    parts: list[Json] = [
        {"type": "output_text", "text": "a", "logprobs": [1]},
        {"type": "odd"},
        {"type": "output_text", "text": "t", "annotations": notes},
        {"type": "refusal", "refusal": "noT t", "odd": 1},
    ]
    summary: list[Json] = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "t", "odd": 1}]
    items: list[Json] = [
        {"id": "r1", "type": "reasoning", "summary": summary, "encrypted_content": None},
        {"id": "r2", "type": "reasoning", "summary": summary, "content": [{"type": "reasoning_text", "text": "t"}]},
        {"id": "m1", "type": "message", "content": parts},
        {"id": "m2", "type": "message", "content": "t"},
        {"id": "f1", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"t":1}', "odd": 1},
    ]
    out = made("responses", response(*items), make)["output"]
    assert out == [
        {**items[0], "summary": [summary[0], {**summary[1], "text": "T"}]},
        {**items[1], "content": [{"type": "reasoning_text", "text": "T"}]},
        {
            **items[2],
            "content": [
                {**parts[0], "annotations": [{"type": "new"}]},
                parts[1],
                {**parts[2], "text": "T", "annotations": []},
                {**parts[3], "refusal": "noT T"},
            ],
        },
        {**items[3], "content": "T"},
        {**items[4], "name": "g", "call_id": "new", "namespace": "n", "arguments": '{"T":1}'},
    ]


def test_a_text_that_is_told_once_more_is_changed_only_with_it() -> None:
    def make(event: Event) -> Iterable[Event]:
        yield evolve(event, model="other") if isinstance(event, MessageStart) else event

    body = response(spoken("a"), output_text="odd")
    assert made("responses", body, upper)["output_text"] == "A"
    assert made("responses", body, make) == {**body, "model": "other"}


def test_an_item_that_cannot_hold_what_was_changed_is_written_anew() -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, SignatureDelta):
            event = evolve(event, signature="new")
        if isinstance(event, BlockStart) and isinstance(event.block, ServerBlock):
            event = evolve(event, block=ServerBlock("responses", {**event.block.payload, "x": 2}))
        yield event

    thought = {
        "id": "r1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "a"}],
        "encrypted_content": "B",
    }
    out = made("responses", response(thought, {"id": "h", "type": "hosted", "x": 1}), make)["output"]
    assert (out[0]["summary"], out[0]["encrypted_content"]) == (thought["summary"], "new")
    assert out[1] == {"id": "h", "type": "hosted", "x": 2}


def test_a_call_without_a_name_in_an_answer_that_a_limit_cut_stays() -> None:
    cut = {"type": "function_call", "call_id": "c", "arguments": "{", "status": "incomplete"}
    why = {"reason": "max_output_tokens"}
    out = made("responses", response(spoken("a"), cut, status="incomplete", incomplete_details=why), upper)
    assert out["output"][1] == cut
    assert (out["status"], out["incomplete_details"]) == ("incomplete", why)


def test_what_is_no_list_of_items_is_no_output() -> None:
    def make(event: Event) -> Iterable[Event]:
        yield event
        if isinstance(event, MessageStart):
            yield from (BlockStart(0, TextBlock()), TextDelta(0, "Hi"), BlockStop(0))

    assert made("responses", response(), make)["output"][0]["content"][0]["text"] == "Hi"
    assert made("responses", {**response(), "output": None}, make)["output"][0]["content"][0]["text"] == "Hi"
    assert made("messages", messages(content=None), make)["content"] == [{"type": "text", "text": "Hi"}]
