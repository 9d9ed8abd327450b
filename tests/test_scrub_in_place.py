"""Markup in an answer that goes back to its own dialect: it becomes calls; where there is none no byte is changed."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.outcome import Verdict
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.testing import EOF, Chunk, cut, play
from stages.scrub import TagScrubber
from stages.scrub.inplace import OWN
from tests import messages_stream as messages
from tests import responses_stream as responses
from tests.messages_client import folded
from tests.returning import payloads, returned
from tests.scrubbing import CALL, MARKUP, NATIVE, PROMPT, TOOLS
from tests.support import DONE, chunk, finish, sse, text
from tests.support import call as fragment_of
from tests.test_responses_returned import numbered, part_added, text_done
from tests.test_responses_returned import sse as events

CHUNKS: list[Chunk] = [1, 7, "frame", None]
OFFERED = RequestFacts(tools=TOOLS)
PARTS = ["Hi ", MARKUP[:5], MARKUP[5:30], MARKUP[30:], "\n"]
COUNTS = {"input_tokens": 1, "output_tokens": 1}
GUIDED = {"options": PROMPT}
START, END = MessageStart("m", "m"), [MessageDelta(StopReason.END_TURN), MessageStop()]


def deltas(raw: bytes) -> list[Any]:
    """The deltas of a Chat stream, and its finish."""
    choices = [one["choices"][0] for one in payloads(raw) if one != DONE and one["choices"]]
    return [choice["finish_reason"] or choice["delta"] for choice in choices]


# Chat


@pytest.mark.parametrize("cut_", CHUNKS, ids=str)
@pytest.mark.parametrize("members", [{}, GUIDED], ids=["native", "prompt"])
def test_a_call_in_the_text_of_chat_is_one_of_its_calls(members: Any, cut_: Chunk) -> None:
    raw = sse(chunk({"role": "assistant", "content": ""}), *map(text, PARTS), finish(), DONE)
    out, outcome = returned("chat", cut(raw, cut_), facts=OFFERED, **members)
    said = deltas(out)
    names = said[2].pop("tool_calls")[0]
    assert names.pop("id").startswith("call_")
    assert names == {"index": 0, "type": "function", "function": {"name": "f", "arguments": ""}}
    assert said == [
        {"role": "assistant", "content": ""},
        {"content": "Hi "},
        {},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x": 1}'}}]},
        "tool_calls",
    ]
    assert out.endswith(b"data: [DONE]\n\n")
    assert (outcome.recovered, outcome.stop_reason) == (1, StopReason.TOOL_USE)


def test_a_call_beside_those_that_chat_streams_takes_the_next_number() -> None:
    items = [chunk({"role": "assistant"}), *map(text, PARTS), fragment_of(0, "a", "g", "{}"), text("more")]
    out, _ = returned("chat", [sse(*items, finish("tool_calls"), DONE)], facts=OFFERED, **GUIDED)
    entries = [one["tool_calls"][0] for one in deltas(out) if "tool_calls" in one and isinstance(one, dict)]
    assert [(entry["index"], entry["function"].get("name")) for entry in entries] == [(0, "f"), (0, None), (1, "g")]
    assert deltas(out)[-2:] == [{"content": "more"}, "tool_calls"]


def test_of_a_chunk_that_holds_more_than_markup_the_rest_stays() -> None:
    last = chunk({"content": MARKUP}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 2})
    raw = sse(chunk({"role": "assistant", "content": "Hi"}), last, DONE)
    out, _ = returned("chat", [raw], facts=OFFERED)
    assert deltas(out)[-1] == "tool_calls"
    assert [one["usage"]["prompt_tokens"] for one in payloads(out) if one != DONE and one.get("usage")] == [1]
    both = sse(chunk({"role": "assistant", "content": f"Hi{MARKUP}there"}), finish(), DONE)
    said = deltas(returned("chat", [both], facts=OFFERED)[0])
    assert said[0] == {"role": "assistant", "content": "Hi"}
    assert said[3:] == [{"content": "there"}, "tool_calls"]


def test_reasoning_in_the_text_of_chat_is_reasoning() -> None:
    raw = sse(chunk({"role": "assistant"}), text("<think>hm"), text("</think>Hi"), finish(), DONE)
    said = deltas(returned("chat", [raw], facts=OFFERED)[0])
    assert said == [{"role": "assistant"}, {"reasoning_content": "hm"}, {"content": "Hi"}, "stop"]


@pytest.mark.parametrize("cut_", CHUNKS, ids=str)
def test_without_tools_reasoning_in_the_text_is_reasoning_and_calls_are_text(cut_: Chunk) -> None:
    raw = sse(chunk({"role": "assistant"}), text("<think>h"), text("m</think>Hi "), *map(text, PARTS), finish(), DONE)
    said = deltas(returned("chat", cut(raw, cut_))[0])
    assert said[-1] == "stop"
    assert "".join(one.get("reasoning_content", "") for one in said[:-1]) == "hm"
    assert "".join(one.get("content", "") for one in said[:-1]) == f"Hi {''.join(PARTS)}"
    body = messages.message({"type": "text", "text": f"<think>hm</think>{MARKUP}"}, stop_reason="end_turn")
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE}
    content = json.loads(returned("messages", [json.dumps(body).encode()], **forms)[0])["content"]
    assert [block.get("thinking", block.get("text")) for block in content] == ["hm", MARKUP]


# Messages


@pytest.mark.parametrize("cut_", CHUNKS, ids=str)
@pytest.mark.parametrize("members", [{}, GUIDED], ids=["native", "prompt"])
def test_a_call_in_the_text_of_messages_is_a_block_of_its_own(members: Any, cut_: Chunk) -> None:
    items = [messages.begin(usage=COUNTS), messages.start(messages.TEXT), *map(messages.text, PARTS), messages.stop()]
    raw = messages.sse([*items, messages.told(), messages.END])
    out, outcome = returned("messages", cut(raw, cut_), facts=OFFERED, **members)
    body = folded(out)
    assert [block["type"] for block in body["content"]] == ["text", "tool_use"]
    assert body["content"][0]["text"] == "Hi "
    assert (body["content"][1]["name"], body["content"][1]["input"]) == ("f", {"x": 1})
    assert body["stop_reason"] == "tool_use"
    assert outcome.verdict is Verdict.COMPLETE
    assert out.startswith(messages.sse(items[:3]))


def test_blocks_behind_a_call_in_the_text_of_messages_move() -> None:
    one, two = messages.TEXT, messages.call("b", "g")
    items = [messages.begin(usage=COUNTS), messages.start(one), messages.text(f"{MARKUP}\n\nthen"), messages.stop()]
    items += [
        messages.start(two, 1),
        messages.given("{}", 1),
        messages.stop(1),
        messages.told("tool_use", usage={"output_tokens": 1}),
        messages.END,
    ]
    body = folded(returned("messages", [messages.sse(items)], facts=OFFERED, **GUIDED)[0])
    assert [block["type"] for block in body["content"]] == ["tool_use", "text", "tool_use"]
    assert body["content"][1]["text"] == "then"


# Responses


@pytest.mark.parametrize("cut_", CHUNKS, ids=str)
@pytest.mark.parametrize("members", [{}, GUIDED], ids=["native", "prompt"])
def test_a_call_in_the_text_of_responses_is_an_item_of_its_own(members: Any, cut_: Chunk) -> None:
    whole = "".join(PARTS)
    items = numbered(
        responses.created(),
        responses.added({**responses.message(), "status": "in_progress"}),
        part_added(),
        *map(responses.text, PARTS),
        *text_done(whole),
        responses.done(responses.message(whole)),
        responses.terminal(output=[responses.message(whole)]),
    )
    raw = events(*items)
    out, outcome = returned("responses", cut(raw, cut_), facts=OFFERED, **members)
    said = payloads(out)
    assert out.startswith(events(*items[:4]))
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    assert [one["type"].removeprefix("response.") for one in said[4:]] == [
        *["output_text.done", "content_part.done", "output_item.done", "output_item.added"],
        *["function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed"],
    ]
    spoken, call = said[-1]["response"]["output"]
    assert spoken == responses.message("Hi ")
    assert (call["name"], call["arguments"], call["status"]) == ("f", '{"x": 1}', "completed")
    assert [said[6]["item"], said[10]["item"]] == [spoken, call]
    assert outcome.stop_reason is StopReason.TOOL_USE


def test_what_responses_says_behind_a_call_in_its_text_is_an_item_of_its_own_too() -> None:
    whole = f"Hi{MARKUP}there"
    items = numbered(
        responses.created(),
        responses.added({**responses.message(), "status": "in_progress"}),
        part_added(),
        responses.text(whole),
        responses.text("!"),
        *text_done(f"{whole}!"),
        responses.done(responses.message(f"{whole}!")),
        responses.terminal(output=[responses.message(f"{whole}!")]),
    )
    said = payloads(returned("responses", [events(*items)], facts=OFFERED, **GUIDED)[0])
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    first, call, second = said[-1]["response"]["output"]
    assert (first["content"][0]["text"], call["name"]) == ("Hi", "f")
    assert second["content"][0]["text"] == "there!"
    assert [one["item"] for one in said if one["type"] == "response.output_item.done"] == [first, call, second]


# whole answers


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_a_call_in_the_text_of_a_whole_answer_is_one(name: str) -> None:
    body: Any = {
        "chat": {
            "id": "chatcmpl-1",
            "choices": [{"index": 0, "message": {"content": f"Hi{MARKUP}"}, "finish_reason": "stop"}],
        },
        "messages": messages.message({"type": "text", "text": f"Hi{MARKUP}"}, stop_reason="end_turn"),
        "responses": responses.response(output=[responses.message(f"Hi{MARKUP}")]),
    }[name]
    raw = json.dumps(body).encode()
    out, outcome = returned(name, [raw], facts=OFFERED, arriving=Form.WHOLE, leaving=Form.WHOLE)
    answer = json.loads(out)
    assert (outcome.recovered, outcome.verdict) == (1, Verdict.COMPLETE)
    if name == "chat":
        message = answer["choices"][0]["message"]
        assert (message["content"], answer["choices"][0]["finish_reason"]) == ("Hi", "tool_calls")
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["f"]
    elif name == "messages":
        assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
        assert answer["stop_reason"] == "tool_use"
    else:
        assert [item["type"] for item in answer["output"]] == ["message", "function_call"]
    plain = raw.replace(b"tool_call>", b"b>")
    for facts in (OFFERED, RequestFacts()):
        kept = raw if not facts.tools else plain
        assert returned(name, [kept], facts=facts, arriving=Form.WHOLE, leaving=Form.WHOLE)[0] == kept


# byte for byte


def test_markup_of_calls_is_text_where_no_tool_is_offered_or_nothing_is_recovered() -> None:
    raw = sse(chunk({"role": "assistant"}), *map(text, PARTS), finish(), DONE)
    assert returned("chat", [raw])[0] == raw
    assert returned("chat", [raw], facts=OFFERED, options=AnswerOptions(recover="off"))[0] == raw


@pytest.mark.parametrize("cut_", CHUNKS, ids=str)
def test_markup_that_makes_no_call_goes_back_as_it_came(cut_: Chunk) -> None:
    raw = sse(
        chunk({"role": "assistant"}), *map(text, PARTS), fragment_of(0, "a", "g", "{}"), finish("tool_calls"), DONE
    )
    assert returned("chat", cut(raw, cut_), facts=OFFERED)[0] == raw
    unfinished = sse(chunk({"role": "assistant"}), *map(text, PARTS[:3]), finish(), DONE)
    assert returned("chat", cut(unfinished, cut_), facts=OFFERED)[0] == unfinished
    stray = sse(text("a</tool_"), text("call>b"), text(" `<tool_call>`"), finish(), DONE)
    assert returned("chat", cut(stray, cut_), facts=OFFERED)[0] == stray


def stage(options: AnswerOptions = NATIVE) -> TagScrubber:
    return TagScrubber(options=options, tools=TOOLS, ledger=Ledger(), in_place=True)


def scrubbed(made: Sequence[Event], options: AnswerOptions = PROMPT) -> list[Event]:
    """What is left of events, one a read."""
    return [event for step in play(stage(options), *made, EOF) for event in step]


WORDS = ["<", "a <b", "</", "tool_call", "`", "``` \n", "\n", " ", "", "{", '"name"', "é", "<tool", "|>"]
TOLD = st.sampled_from(
    [
        *(TextDelta(0, word) for word in WORDS),
        *(TextDelta(3, word) for word in WORDS),
        ReasoningDelta(1, "hm"),
        ArgumentsDelta(2, "{"),
        RefusalDelta(0, "no"),
        AnnotationDelta(0, {}),
        Carry("x", Frame(b"1")),
        BlockStart(3, TextBlock()),
        BlockStart(2, ToolUseBlock("a", "g")),
        BlockStart(1, ReasoningBlock()),
        BlockStop(1),
        BlockStop(2),
    ]
)


@given(st.lists(TOLD, max_size=20), st.integers(1, 5), st.sampled_from([NATIVE, PROMPT]))
@example([BlockStart(3, TextBlock()), AnnotationDelta(0, {})], 1, NATIVE)
def test_where_no_markup_is_every_event_passes_as_it_came(told: list[Event], size: int, options: AnswerOptions) -> None:
    started = {event.index for event in told if isinstance(event, BlockStart)}
    seen: set[int] = {0}
    made: list[Event] = [START, BlockStart(0, TextBlock())]
    for event in told:
        index = getattr(event, "index", 0)
        if isinstance(event, BlockStart):
            if index in seen:
                continue
            seen.add(index)
        if index in seen or index not in started | {3}:
            made.append(event)
    made += [BlockStop(0), *([BlockStop(3)] if 3 in seen else []), *END]
    out = scrubbed([], options)
    one = stage(options)
    for at in range(0, len(made), size):
        out += one.receive(made[at : at + size])
    out += one.receive_eof()
    spoken = "".join(event.text for event in made if isinstance(event, TextDelta))
    if "<tool_call" in spoken or "<|" in spoken:
        return
    assert len(out) == len(made)
    assert all(left is came for left, came in zip(out, made, strict=True))
    assert one.held == 0


# the writer


def test_blanks_between_markup_and_the_end_are_not_written_and_neither_is_their_block() -> None:
    made = [START, BlockStart(0, TextBlock()), TextDelta(0, "\n"), TextDelta(0, MARKUP), TextDelta(0, "\n")]
    carried = Carry("x", Frame(b"1"))
    out = scrubbed([*made, carried, BlockStop(0), *END])
    assert [type(event) for event in out] == [
        *[MessageStart, BlockStart, ArgumentsDelta, BlockStop, Carry, MessageDelta, MessageStop]
    ]
    assert out[1].index == OWN if isinstance(out[1], BlockStart) else False


def test_a_block_of_blanks_behind_markup_is_not_written() -> None:
    made = [START, BlockStart(0, TextBlock()), TextDelta(0, f"a{MARKUP}"), BlockStop(0)]
    out = scrubbed([*made, BlockStart(1, TextBlock()), TextDelta(1, "\n"), BlockStop(1), *END])
    assert not any(getattr(event, "index", -1) == 1 for event in out)


def test_text_behind_a_call_is_in_a_block_of_ours_and_so_is_what_belongs_to_it() -> None:
    made = [START, BlockStart(0, TextBlock()), TextDelta(0, f"a{MARKUP}"), TextDelta(0, "b"), TextDelta(0, "c")]
    made += [AnnotationDelta(0, {"x": 1}), RefusalDelta(0, "no"), BlockStop(0)]
    out = scrubbed([*made, *END])
    assert out[3] == BlockStop(0)
    assert out[7:13] == [
        BlockStart(OWN + 1, TextBlock()),
        TextDelta(OWN + 1, "b"),
        TextDelta(OWN + 1, "c"),
        AnnotationDelta(OWN + 1, {"x": 1}),
        RefusalDelta(OWN + 1, "no"),
        BlockStop(OWN + 1),
    ]


def test_a_note_on_text_that_was_markup_is_dropped_and_a_refusal_has_a_block() -> None:
    one = stage(PROMPT)
    one.receive([START, BlockStart(0, TextBlock()), TextDelta(0, MARKUP)])
    assert list(one.receive([AnnotationDelta(0, {})])) == []
    assert list(one.receive([RefusalDelta(0, "no")])) == [BlockStart(OWN + 1, TextBlock()), RefusalDelta(OWN + 1, "no")]
    assert [entry.path for entry in one.ledger] == ["annotation"]


def test_a_call_of_the_upstreams_stays_open_beside_what_is_put_in() -> None:
    made: list[Event] = [START, BlockStart(0, TextBlock()), TextDelta(0, "a"), BlockStart(1, ToolUseBlock("a", "g"))]
    made += [TextDelta(0, MARKUP), ArgumentsDelta(1, "{}"), TextDelta(0, "b"), BlockStop(1), BlockStop(0)]
    out = scrubbed([*made, *END])
    assert out[:4] == made[:4]
    assert out[4] == BlockStop(0)
    assert out[8] is made[5]
    assert out[9:13] == [BlockStart(OWN + 1, TextBlock()), TextDelta(OWN + 1, "b"), BlockStop(1), BlockStop(OWN + 1)]


def test_reasoning_that_was_written_as_text_is_a_block_of_ours() -> None:
    made = [START, BlockStart(0, TextBlock()), *(TextDelta(0, one) for one in ("<think>", "a ", " ", "b", "</think>"))]
    out = scrubbed([*made, TextDelta(0, "c"), BlockStop(0), *END])
    assert [event.text for event in out if isinstance(event, ReasoningDelta)] == ["a", "  b"]
    assert out[1] == BlockStart(OWN, ReasoningBlock())
    assert [event for event in out if isinstance(event, BlockStop)] == [BlockStop(OWN), BlockStop(OWN + 1)]
    begun = scrubbed([*made[:4], BlockStart(1, ToolUseBlock("a", "g")), BlockStop(1), *END])
    assert begun[3] == BlockStop(OWN)


def test_what_is_behind_a_failure_passes() -> None:
    error = StreamError(ErrorKind.API, "no")
    late = Carry("x", Frame(b"1"))
    for options in (NATIVE, PROMPT):
        made = [START, BlockStart(0, TextBlock()), TextDelta(0, MARKUP[:20]), error, late]
        assert scrubbed(made, options) == made


def test_of_a_delta_of_which_a_part_is_held_back_nothing_is_passed_on() -> None:
    one = stage()
    assert list(one.receive([START, BlockStart(0, TextBlock()), TextDelta(0, "a <to")])) == [START]
    assert one.held == 5
    assert list(one.receive([TextDelta(0, "p>")])) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a <to"),
        TextDelta(0, "p>"),
    ]
    assert one.held == 0


def test_the_first_part_of_a_delta_that_is_shown_is_the_one_its_frame_tells() -> None:
    frame = Frame(b"1")
    out = scrubbed([START, BlockStart(0, TextBlock()), TextDelta(0, f"a{MARKUP}b{MARKUP}c", origin=frame), *END])
    texts = [event for event in out if isinstance(event, TextDelta)]
    assert [(event.text, event.origin) for event in texts] == [("a", frame), ("b", None), ("c", None)]
    behind = scrubbed([START, BlockStart(0, TextBlock()), TextDelta(0, f"{MARKUP}b{CALL}", origin=frame), *END])
    assert [event.origin for event in behind if isinstance(event, TextDelta)] == [frame]
