"""A Responses client over a Responses upstream: frames come back as they came; what a stage changed is patched, and
what repeats it is restated."""

import json
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import (
    Event,
    Ping,
    StopReason,
    TextDelta,
)
from pipeline.outcome import Verdict
from pipeline.reply import Form
from pipeline.testing import Chunk, cut
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
    done,
    event,
    message,
    reasoning,
    response,
    summary,
    terminal,
    text,
)
from tests.returning import payloads, returned, through
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


def test_a_call_that_was_cut_is_left_open_and_a_tool_of_the_providers_ends() -> None:
    begun = {**call(), "status": "in_progress"}
    (failed,) = cut_behind(created(), added(begun), arguments('{"x'))
    assert failed["response"]["output"] == []
    item, failed = cut_behind(created(), added({**SEARCH, "status": "in_progress"}))
    assert failed["response"]["output"] == [item["item"]] == [{**SEARCH, "status": "incomplete"}]


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
