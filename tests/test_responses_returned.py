"""A Responses client over a Responses upstream: frames come back as they came; what a stage changed is patched, and
what repeats it is restated."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

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
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.outcome import Verdict
from pipeline.reply import Form
from pipeline.testing import EOF, Chunk, cut, play
from stages.dialects.responses.returned import ResponsesReturner
from stages.sse import SSEEncoder
from stages.verbatim import FrameReturner
from tests.goldens import FROM_RESPONSES
from tests.responses_stream import (
    Json,
    added,
    arguments,
    arguments_done,
    call,
    created,
    custom,
    done,
    event,
    message,
    reasoning,
    refusal,
    response,
    summary,
    terminal,
    text,
)
from tests.returning import payloads, replacing, returned, through
from tests.support import cuts_of

CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]


def numbered(*items: Json) -> list[Json]:
    """Events, numbered."""
    numbers = count()
    return [{**item, "sequence_number": next(numbers)} for item in items]


def sse(*items: Any) -> bytes:
    """The bytes of a stream of these events."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (item["type"].encode(), json.dumps(item).encode()) for item in items)


def part_added(member: str = "content", place: int = 0, at: int = 0, id: str = "m1") -> Json:  # noqa: A002
    """A part is announced."""
    if member == "summary":
        part: Json = {"type": "summary_text", "text": ""}
        kind = "response.reasoning_summary_part.added"
        return event(kind, output_index=place, item_id=id, summary_index=at, part=part)
    part = {"type": "output_text", "text": "", "annotations": []}
    return event("response.content_part.added", output_index=place, item_id=id, content_index=at, part=part)


def text_done(whole: str, place: int = 0, at: int = 0, id: str = "m1") -> list[Json]:  # noqa: A002
    """The text of a part, whole, and the part."""
    where = {"output_index": place, "item_id": id, "content_index": at}
    part = {"type": "output_text", "text": whole, "annotations": []}
    return [
        event("response.output_text.done", **where, text=whole, logprobs=[]),
        event("response.content_part.done", **where, part=part),
    ]


def summary_done(whole: str, place: int = 0, at: int = 0, id: str = "rs1") -> list[Json]:  # noqa: A002
    """The text of a part of a summary, whole, and the part."""
    where = {"output_index": place, "item_id": id, "summary_index": at}
    part = {"type": "summary_text", "text": whole}
    return [
        event("response.reasoning_summary_text.done", **where, text=whole),
        event("response.reasoning_summary_part.done", **where, part=part),
    ]


THOUGHT = reasoning("Why", "How", blob="BLOB")
SPOKEN = message("Hé👍!", phase="final")
CALL = call('{"x":1}')
SEARCH: Json = {"type": "web_search_call", "id": "ws", "status": "completed"}
STREAM = numbered(
    created(),
    event("response.in_progress", response=response("in_progress", weird=1)),
    added(reasoning()),
    part_added("summary", id="rs1"),
    summary("Why"),
    *summary_done("Why"),
    part_added("summary", at=1, id="rs1"),
    summary("How", part=1),
    *summary_done("How", at=1),
    done(THOUGHT),
    added({**message(), "status": "in_progress"}, 1),
    part_added(place=1),
    {**text("Hé👍", 1), "logprobs": [], "obfuscation": "abc"},
    added({**CALL, "arguments": "", "status": "in_progress"}, 2),
    arguments('{"x"', 2),
    text("!", 1),
    arguments(":1}", 2),
    arguments_done('{"x":1}', 2, name="f"),
    done(CALL, 2),
    *text_done("Hé👍!", 1),
    done(SPOKEN, 1),
    added({**SEARCH, "status": "in_progress"}, 3),
    event("response.web_search_call.searching", output_index=3, item_id="ws"),
    done(SEARCH, 3),
    event("response.hologram", x=1),
    terminal(output=[THOUGHT, SPOKEN, CALL, SEARCH], usage={"input_tokens": 1, "output_tokens": 2, "weird": 3}),
)
RAW = b": hello\n\n" + sse(*STREAM[:5]).replace(b"\n", b"\r\n") + b": there\n" + sse(*STREAM[5:]) + b"data: [DONE]\n\n"


# byte for byte


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", FROM_RESPONSES.cases)
def test_a_fixture_comes_back_as_it_came_but_for_our_error_behind_a_cut(case: str, chunk: Chunk) -> None:
    raw = FROM_RESPONSES.recording(case)
    if raw.lstrip().startswith((b"{", b"[", b"<")):
        return  # no stream
    out, outcome = returned("responses", cut(raw, chunk))
    if out == raw:
        return
    assert outcome.error is not None
    *_, last = payloads(out)
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["message"] == outcome.error.message
    whole = [part for part in cut(raw, "frame") if b"\n\n" in part or b"\r\n\r\n" in part]
    assert out.startswith(b"".join(whole[: -2 if case == "broken-frame" else -1]))


@given(st.data())
def test_any_cut_of_a_stream_comes_back_as_it_came(data: st.DataObject) -> None:
    out, outcome = returned("responses", data.draw(cuts_of(RAW)))
    assert out == RAW
    assert (outcome.verdict, outcome.stop_reason) == (Verdict.COMPLETE, StopReason.TOOL_USE)
    assert list(outcome.ledger) == []


@given(st.integers(0, len(RAW) - 1))
def test_what_was_cut_comes_back_as_far_as_it_came_whole_and_then_the_error(size: int) -> None:
    out, outcome = returned("responses", [RAW[:size]])
    if outcome.verdict is Verdict.COMPLETE:
        assert with_lf(RAW).startswith(with_lf(out))
        return
    said = payloads(out)
    assert outcome.verdict is Verdict.CUT
    assert said[-1]["type"] == "response.failed"
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    kept = [one for one, theirs in zip(said, STREAM, strict=False) if one == theirs]
    assert with_lf(RAW).startswith(with_lf(b": hello\n\n" + sse(*kept[:5]))[: len(out)])
    closing = [one["type"].rpartition(".")[2] for one in said[len(kept) : -1]]
    assert set(closing) <= {"done", "created", "in_progress"}
    finals = [one["item"] for one in said if one["type"] == "response.output_item.done"]
    places = [one["output_index"] for one in said if one["type"] == "response.output_item.done"]
    assert said[-1]["response"]["output"] == [item for _, item in sorted(zip(places, finals, strict=True), key=str)]


def with_lf(raw: bytes) -> bytes:
    """A stream without its carriage returns: a last event that lacks its blank line is given one of ours."""
    return raw.replace(b"\r", b"").replace(b": there\n", b"")


def cut_behind(*items: Json) -> list[Json]:
    """What comes behind a stream that breaks off there."""
    raw = sse(*numbered(*items))
    out, _ = returned("responses", [raw])
    assert out.startswith(raw)
    return payloads(out[len(raw) :])


def test_a_cut_closes_what_is_open_with_what_was_told_of_it() -> None:
    begun = {**message(), "status": "in_progress"}
    said = cut_behind(created(), added(begun), part_added(), text("a"), text("b"))
    part = {"type": "output_text", "text": "ab", "annotations": []}
    item = {**begun, "status": "incomplete", "content": [part]}
    where = {"item_id": "m1", "output_index": 0, "content_index": 0}
    failed = said.pop()
    assert said == [
        event("response.output_text.done", sequence_number=5, **where, text="ab", logprobs=[]),
        event("response.content_part.done", sequence_number=6, **where, part=part),
        event("response.output_item.done", sequence_number=7, output_index=0, item=item),
    ]
    assert failed["type"] == "response.failed"
    assert failed["sequence_number"] == 8
    told = failed["response"]
    assert (told["id"], told["status"], told["output"]) == ("resp_1", "failed", [item])
    assert told["error"]["code"] == "server_error"


def test_a_call_that_was_cut_is_left_open_and_a_tool_of_the_providers_too() -> None:
    begun = {**call(), "status": "in_progress"}
    (failed,) = cut_behind(created(), added(begun), arguments('{"x'))
    assert failed["response"]["output"] == []
    (failed,) = cut_behind(created(), added({**SEARCH, "status": "in_progress"}))
    assert failed["response"]["output"] == []


def test_an_item_that_was_cut_before_it_said_anything_ends() -> None:
    begun = {**message(), "status": "in_progress"}
    item, failed = cut_behind(created(), added(begun))
    assert item["item"] == {**begun, "status": "incomplete"}
    assert failed["response"]["output"] == [item["item"]]
    kinds = [one["type"].removeprefix("response.") for one in cut_behind(created(), added(begun), part_added())]
    assert kinds == ["output_text.done", "content_part.done", "output_item.done", "failed"]


def test_a_cut_before_the_first_event_begins_a_response() -> None:
    assert [one["type"] for one in cut_behind()] == ["response.created", "response.in_progress", "response.failed"]


def test_a_keep_alive_is_numbered_and_so_is_what_comes_behind_it() -> None:
    returner = ResponsesReturner()
    stage = FrameReturner(returner, SSEEncoder())
    assert list(stage.idle()) == [b": keep-alive\n\n"]

    def quiet(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, TextDelta) and one.text == "a":
            yield Ping()

    items = numbered(created(), added(message()), part_added(), text("a"), text("b"), terminal(output=[message("ab")]))
    out = payloads(through("responses", quiet, [sse(*items)]))
    assert out[4] == event("keepalive", sequence_number=4)
    assert out[5:] == [{**one, "sequence_number": one["sequence_number"] + 1} for one in items[4:]]


def test_an_error_of_the_streams_goes_back_as_it_came() -> None:
    for last in (event("error", error={"message": "x", "more": 1}), terminal("failed", error={"message": "x"})):
        raw = sse(created(), text("Hi"), last)
        out, outcome = returned("responses", [raw])
        assert out == raw
        assert outcome.error is not None
        assert outcome.error.message == "x"


def test_a_whole_answer_for_a_stream_is_written_as_one() -> None:
    body = json.dumps(response(output=[reasoning("Why", blob="B"), message("Hi"), CALL], usage={"input_tokens": 1}))
    out, outcome = returned("responses", [body.encode()], arriving=None)
    said = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    assert [one["type"] for one in said[:2]] == ["response.created", "response.in_progress"]
    last = said[-1]["response"]
    assert (said[-1]["type"], last["status"]) == ("response.completed", "completed")
    assert [item["type"] for item in last["output"]] == ["reasoning", "message", "function_call"]
    assert last["output"][0]["encrypted_content"] == "B"
    assert last["usage"]["input_tokens"] == 1
    assert outcome.verdict is Verdict.COMPLETE


@pytest.mark.parametrize("arriving", [Form.WHOLE, None])
def test_a_whole_answer_comes_back_as_it_came(arriving: Form | None) -> None:
    output = [THOUGHT, {**SPOKEN, "weird": 1.0}, CALL, SEARCH]
    body = json.dumps(response(output=output, more=[1.50]), indent=1)
    out, outcome = returned("responses", [body.encode()], arriving=arriving, leaving=Form.WHOLE)
    assert out == body.encode()
    assert (outcome.verdict, list(outcome.ledger)) == (Verdict.COMPLETE, [])


# patched


def changed(make: Callable[[Event], Iterable[Event]], items: Sequence[Json] = STREAM) -> list[Json]:
    """What a client gets if a stage stands in the middle; frames that were not changed are as they came."""
    out = through("responses", make, [sse(*items)])
    said = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    for item in items:
        if item in said:
            assert sse(item) in out
    return said


def replaced(old: Sequence[Json], *news: tuple[int, Json]) -> list[Json]:
    out = list(old)
    for at, new in news:
        out[at] = {**new, "sequence_number": at}
    return out


def output(*items: Json) -> Json:
    """The terminal of the stream with another output."""
    return {**STREAM[-1], "response": {**STREAM[-1]["response"], "output": list(items)}}


def test_a_text_that_was_changed_is_patched_and_what_repeats_it_restated() -> None:
    new = message("Hé👍?", phase="final")
    assert changed(replacing("!", "?")) == replaced(
        STREAM,
        (17, text("?", 1)),
        (21, text_done("Hé👍?", 1)[0]),
        (22, text_done("Hé👍?", 1)[1]),
        (23, done(new, 1)),
        (28, output(THOUGHT, new, CALL, SEARCH)),
    )


def test_what_is_said_of_the_tokens_of_a_text_that_was_changed_goes() -> None:
    tokens = [{"token": "secret"}]
    item = message("secret")
    item["content"][0]["logprobs"] = tokens
    whole = [{**one, "logprobs": tokens} for one in text_done("secret")[:1]]
    items = numbered(created(), {**text("secret"), "logprobs": tokens}, *whole, done(item), terminal(output=[item]))
    out = changed(replacing("secret", "***"), items)
    assert b"secret" not in json.dumps(out).encode()
    assert out[1]["logprobs"] == out[2]["logprobs"] == []
    assert out[3]["item"]["content"][0]["text"] == "***"


def test_reasoning_that_was_changed_is_restated_part_by_part() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, ReasoningDelta) else one

    new = reasoning("WHY", "HOW", blob="BLOB")
    first, second = summary_done("WHY"), summary_done("HOW", at=1)
    assert changed(upper) == replaced(
        STREAM,
        (4, summary("WHY")),
        (5, first[0]),
        (6, first[1]),
        (8, summary("HOW", part=1)),
        (9, second[0]),
        (10, second[1]),
        (11, done(new)),
        (28, output(new, SPOKEN, CALL, SEARCH)),
    )


def test_a_call_that_was_renamed_and_its_arguments_are_restated() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock):
            one = evolve(one, block=evolve(one.block, id="z", name="h"))
        elif isinstance(one, ArgumentsDelta):
            one = evolve(one, text=one.text.replace(":", ": "))
        yield one

    new = call('{"x": 1}', "h", "z")
    assert changed(renamed) == replaced(
        STREAM,
        (15, added({**new, "arguments": "", "status": "in_progress"}, 2)),
        (18, arguments(": 1}", 2)),
        (19, arguments_done('{"x": 1}', 2, name="h")),
        (20, done(new, 2)),
        (28, output(THOUGHT, SPOKEN, new, SEARCH)),
    )


def test_a_response_that_was_renamed_is_told_so_wherever_it_is() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        yield evolve(one, id="resp_2", model="other") if isinstance(one, MessageStart) else one

    new = {"id": "resp_2", "model": "other"}
    assert changed(renamed) == [
        {**one, "response": {**one["response"], **new}} if "response" in one else one for one in STREAM
    ]


def test_a_text_that_was_left_out_is_not_repeated_and_numbers_close_up() -> None:
    def without(one: Event) -> Iterable[Event]:
        if not (isinstance(one, TextDelta) and one.text == "!"):
            yield one

    new = message("Hé👍", phase="final")
    items = [*STREAM[:17], *STREAM[18:]]
    rest = replaced(
        items,
        (20, text_done("Hé👍", 1)[0]),
        (21, text_done("Hé👍", 1)[1]),
        (22, done(new, 1)),
        (27, output(THOUGHT, new, CALL, SEARCH)),
    )
    assert changed(without) == [{**one, "sequence_number": at} for at, one in enumerate(rest)]


def test_a_call_that_was_left_out_is_told_nowhere() -> None:
    def without(one: Event) -> Iterable[Event]:
        if not (isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock)):
            yield one

    call_ = {**call("{}"), "arguments": "", "status": "in_progress"}
    items = numbered(created(), added(call_), arguments("{}"), done(call("{}")), terminal(output=[call("{}")]))
    out = changed(without, items)
    assert [one["type"] for one in out] == ["response.created", "response.completed"]
    assert out[1]["response"]["output"] == []


def test_an_end_that_was_changed_is_told_by_the_terminal() -> None:
    def ended(one: Event) -> Iterable[Event]:
        if isinstance(one, MessageDelta):
            one = evolve(one, stop_reason=StopReason.MAX_TOKENS, usage=Usage(input=3))
        yield one

    last = changed(ended)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (last["response"]["usage"]["input_tokens"], last["response"]["usage"]["weird"]) == (3, 3)


def test_an_item_that_was_put_in_has_the_next_place_and_those_behind_it_move() -> None:
    def with_call(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, BlockStop) and one.index == 0:
            yield BlockStart(70, ToolUseBlock("new", "n"))
            yield ArgumentsDelta(70, "{}")
            yield BlockStop(70)

    first, second = message("a", id="m1"), message("b", id="m2")
    items = numbered(
        created(),
        added(message()),
        text("a"),
        done(first),
        added(message(id="m2"), 1),
        text("b", 1, id="m2"),
        done(second, 1),
        terminal(output=[first, second]),
    )
    out = changed(with_call, items)
    new = {**call("{}", "n", "new", id="fc_new")}
    assert [one.get("output_index") for one in out[4:8]] == [1, 1, 1, 1]
    assert out[7]["item"] == new
    assert [one["output_index"] for one in out[8:11]] == [2, 2, 2]
    assert out[-1]["response"]["output"] == [first, new, second]


def test_a_block_that_is_ended_in_the_middle_ends_its_item_and_what_the_server_says_behind_it_goes() -> None:
    def ending(one: Event) -> Iterable[Event]:
        if isinstance(one, TextDelta) and one.text == "b":
            yield BlockStop(0)
            yield BlockStart(70, TextBlock())
            yield TextDelta(70, "c", origin=one.origin)
        elif isinstance(one, BlockStop):
            yield BlockStop(70, origin=one.origin)
        else:
            yield one

    item = message("ab")
    items = numbered(
        created(),
        added({**message(), "status": "in_progress"}),
        part_added(),
        text("a"),
        {**text("b"), "weird": 1},
        *text_done("ab"),
        done(item),
        terminal(output=[item]),
    )
    out = changed(ending, items)
    assert out[:4] == items[:4]
    assert out[4:7] == [
        {**one, "sequence_number": at}
        for at, one in enumerate([*text_done("a"), done({**message("a"), "status": "completed"})], 4)
    ]
    own = {"item_id": "msg_1_0_new", "output_index": 1, "content_index": 0}
    assert out[9] == {**text("c"), "weird": 1, "logprobs": [], **own, "sequence_number": 9}
    assert out[12]["item"]["content"][0]["text"] == "c"
    assert out[13]["response"]["output"] == [out[6]["item"], out[12]["item"]]
    assert len(out) == 14


def test_an_answer_that_only_its_terminal_tells_is_told_anew_if_it_was_changed() -> None:
    items = numbered(created(), terminal(output=[message("a!")]))
    out = changed(replacing("!", "?"), items)
    assert out[-1]["response"]["output"][0]["content"][0]["text"] == "a?"
    assert len(out[-1]["response"]["output"]) == 1
    whole = numbered(created(), done(message("a!")), terminal(output=[message("a!")]))
    out = changed(replacing("!", "?"), whole)
    assert [item["content"][0]["text"] for item in out[-1]["response"]["output"]] == ["a?"]


def test_what_is_made_anew_for_an_item_of_the_servers_goes_to_it() -> None:
    def more(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, TextDelta) and one.text == "a":
            yield TextDelta(one.index, "b")
        if isinstance(one, ArgumentsDelta):
            yield ArgumentsDelta(one.index, " ")

    items = numbered(
        created(),
        added(message()),
        part_added(),
        text("a"),
        done(message("a")),
        added({**custom(), "status": "in_progress"}, 1),
        event("response.custom_tool_call_input.delta", output_index=1, item_id="ctc1", delta="x"),
        done(custom("x", status="completed"), 1),
        terminal(output=[message("a"), custom("x", status="completed")]),
    )
    out = changed(more, items)
    assert out[4]["delta"] == "b"
    assert out[5]["item"]["content"][0]["text"] == "ab"
    assert out[8]["type"] == "response.custom_tool_call_input.delta"
    assert out[-1]["response"]["output"][1]["input"] == "x "


def test_everything_that_is_made_anew_is_written() -> None:
    made: list[Event] = [
        MessageStart("resp_9", "m"),
        Ping(),
        Carry("responses", Frame(b'{"type":"response.weird","sequence_number":0}', b"response.weird")),
        BlockStart(0, ReasoningBlock(splittable=False)),
        ReasoningDelta(0, "hm"),
        SignatureDelta(0, '{"id":"rs","encrypted_content":"B"}'),
        BlockStop(0),
        BlockStart(1, TextBlock()),
        TextDelta(1, "Hi"),
        RefusalDelta(1, "no"),
        AnnotationDelta(1, {"type": "other"}),
        BlockStop(1),
        TextDelta(1, "late"),
        BlockStart(2, ServerBlock("messages", {})),
        BlockStop(2),
        MessageDelta(StopReason.MAX_TOKENS, None, Usage(1)),
        MessageStop(),
    ]
    returner = ResponsesReturner(ledger=Ledger())
    out = b"".join(piece for step in play(FrameReturner(returner, SSEEncoder()), made, EOF) for piece in step)
    said = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    assert [one["type"] for one in said[2:4]] == ["keepalive", "response.weird"]
    last = said[-1]
    assert last["type"] == "response.incomplete"
    assert [item["type"] for item in last["response"]["output"]] == ["reasoning", "message"]
    assert last["response"]["output"][0]["encrypted_content"] == "B"
    assert {entry.path for entry in returner.ledger} == {"annotation", "TextDelta", "ServerBlock[2]"}


def test_an_error_that_was_changed_is_written_anew() -> None:
    def kinder(one: Event) -> Iterable[Event]:
        yield evolve(one, message="sorry") if isinstance(one, StreamError) else one

    for last in (event("error", error={"message": "x"}), terminal("failed", error={"message": "x"}, weird=1)):
        out = changed(kinder, numbered(created(), last))
        assert out[1]["type"] == "response.failed"
        assert out[1]["response"]["error"]["message"] == "sorry"


def test_a_refusal_that_was_changed_is_restated() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, RefusalDelta) else one

    where = {"output_index": 0, "item_id": "m1", "content_index": 0}
    items = numbered(
        created(),
        added(message()),
        event("response.refusal.delta", **where, delta="no"),
        event("response.refusal.done", **where, refusal="no"),
        done(refusal("no")),
        terminal(output=[refusal("no")]),
    )
    out = changed(upper, items)
    assert (out[2]["delta"], out[3]["refusal"]) == ("NO", "NO")
    assert out[5]["response"]["output"] == [refusal("NO")]


def test_a_failure_of_ours_is_told_behind_what_is_open() -> None:
    cause = StreamError(ErrorKind.RATE_LIMIT, "slow down", "", retryable=True)
    stage = FrameReturner(ResponsesReturner(), SSEEncoder())
    made: list[Event] = [MessageStart("resp_1", "m"), BlockStart(0, TextBlock()), TextDelta(0, "Hi")]
    out = payloads(b"".join(piece for step in play(stage, made, EOF(cause)) for piece in step))
    assert out[-1]["response"]["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
    assert out[-1]["response"]["output"][0]["status"] == "incomplete"
