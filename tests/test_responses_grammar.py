"""The grammar of a Responses stream: what our encoder writes keeps it, and each rule of the table is broken once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
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
    ToolKind,
    ToolUseBlock,
    Usage,
)
from stages.dialects.responses.encode import ResponsesEncoder, ShowReasoning
from stages.dialects.responses.grammar import GRAMMAR, RULES
from stages.dialects.responses.reading import ResponsesReading
from stages.sse import SSEEncoder
from tests import breaches
from tests.breaches import Json, check_table, spoilt, sse
from tests.responses_stream import START, encoder

BLOCKS: list[Event] = [
    BlockStart(0, ReasoningBlock()),
    ReasoningDelta(0, "Why"),
    SignatureDelta(0, "SIG"),
    BlockStop(0),
    BlockStart(1, TextBlock()),
    TextDelta(1, "Hel"),
    TextDelta(1, "lo"),
    AnnotationDelta(1, {"type": "file_path"}),
    RefusalDelta(1, "no"),
    BlockStop(1),
    BlockStart(2, ToolUseBlock("a", "f")),
    ArgumentsDelta(2, "{}"),
    BlockStop(2),
    BlockStart(3, ToolUseBlock("b", "patch", ToolKind.CUSTOM)),
    ArgumentsDelta(3, "***"),
    BlockStop(3),
    BlockStart(4, ServerBlock("responses", {"type": "web_search_call", "id": "ws"})),
    BlockStop(4),
]
CUT: list[Event] = [BlockStart(5, ToolUseBlock("c", "f")), ArgumentsDelta(5, '{"x')]
END = MessageDelta(StopReason.TOOL_USE, usage=Usage(1, 2, 3, 4, 1))
BOOM = StreamError(ErrorKind.API, "boom")


def written(*events: Event, stage: ResponsesEncoder | None = None) -> list[Json]:
    """The events that our encoder writes."""
    frames = (stage or encoder()).receive([START, *events])
    return [json.loads(frame.data) for frame in frames]


def broken(stream: bytes) -> list[tuple[str, str]]:
    return [(breach.rule.part, breach.rule.says) for breach in GRAMMAR.breaches(stream)]


WHOLE = written(*BLOCKS, END, MessageStop())
LIMIT = written(*CUT, BlockStop(5, complete=False), MessageDelta(StopReason.MAX_TOKENS), MessageStop())
FAILED = written(*BLOCKS[4:6], BOOM)


@pytest.mark.parametrize(
    "events",
    [
        WHOLE,
        LIMIT,
        FAILED,
        written(*BLOCKS, *CUT, BOOM),
        written(BOOM),
        written(Ping(), MessageStop()),
        written(
            BlockStart(0, TextBlock()),
            RefusalDelta(0, "no"),
            BlockStop(0),
            MessageDelta(StopReason.REFUSAL),
            MessageStop(),
        ),
        written(*BLOCKS, END, MessageStop(), stage=encoder(reasoning=ShowReasoning.CONTENT)),
        written(*BLOCKS, END, MessageStop(), stage=encoder(facts=RequestFacts(echo={"tools": [1], "store": False}))),
    ],
    ids=range(9),
)
def test_what_we_write_breaks_no_rule(events: list[Json]) -> None:
    assert broken(sse(events)) == []


def test_what_we_frame_breaks_no_rule() -> None:
    chain = encoder() | SSEEncoder()
    assert broken(b"".join([*chain.receive([START, *BLOCKS, END, MessageStop()]), *chain.receive_eof()])) == []


# Breaches


def numbered(events: list[Json]) -> list[Json]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def change(kind: str, value: Any, *path: str, of: list[Json] = WHOLE) -> list[Json]:
    """The events, one member of the first of a kind set to a value."""
    return breaches.change(of, kind, value, *path)


def without(kind: str, of: list[Json] = WHOLE) -> list[Json]:
    """The events but for the first of a kind."""
    return numbered(breaches.without(of, kind))


def again(kind: str) -> list[Json]:
    """The events, the first of a kind told twice."""
    return numbered(breaches.again(WHOLE, kind))


def later(kind: str, behind: str) -> list[Json]:
    """The events, the first of a kind moved behind the first of another."""
    return numbered(breaches.later(WHOLE, kind, behind))


ADDED, DONE = "output_item.added", "output_item.done"
TEXT, ARGUMENTS = "output_text", "function_call_arguments"
ERROR = {"type": "error", "sequence_number": 2, "message": "boom"}

BREACHES: list[tuple[str, str, list[Json]]] = [
    ("frame", "is not behind the terminal", again("completed")),
    ("event", "has the next number", change(f"{TEXT}.delta", 99, "sequence_number")),
    ("event", "is a known one", change("in_progress", "response.reasoning_part.added", "type")),
    ("event", "is the beginning if it is the first", without("created")),
    ("beginning", "is not behind an item, nor the second", later("in_progress", ADDED)),
    ("beginning", "is not behind an item, nor the second", again("created")),
    ("beginning", "has no output yet, and a status that says so", change("created", [1], "response", "output")),
    ("beginning", "has no output yet, and a status that says so", change("created", "completed", "response", "status")),
    ("response", "has what the SDKs' types demand", change("created", None, "response", "tools")),
    ("response", "has what the SDKs' types demand", change("completed", None, "response")),
    ("response", "has what the SDKs' types demand", change("completed", "x", "response", "object")),
    ("response", "is the one that began", change("completed", "resp_x", "response", "id")),
    ("item", "has the next index", change(ADDED, 7, "output_index")),
    ("item", "has an id", change(ADDED, "", "item", "id")),
    ("item", "has ids that no other has", change(f"{ADDED}:function_call", "b", "item", "call_id")),
    ("item", "has ids that no other has", change(ADDED, None, "item", "x", of=again(ADDED))),
    ("item", "has a name and a call id if it is a call", change(f"{ADDED}:function_call", "", "item", "name")),
    ("item", "has a name and a call id if it is a call", change(f"{ADDED}:custom_tool_call", "", "item", "call_id")),
    ("item", "begins without its text", change(f"{ADDED}:message", [1], "item", "content")),
    ("item", "begins without its text", change(f"{ADDED}:message", "user", "item", "role")),
    ("item", "begins without its text", change(f"{ADDED}:reasoning", [1], "item", "summary")),
    ("item", "begins without its text", change(f"{ADDED}:function_call", "{}", "item", "arguments")),
    ("item done", "is of an open item", again(DONE)),
    ("item done", "is who it was", change(DONE, "x", "item", "id")),
    ("item done", "is who it was", change(f"{DONE}:function_call", "x", "item", "name")),
    ("item done", "says what was told", change(f"{DONE}:message", [], "item", "content")),
    ("item done", "says what was told", change(f"{DONE}:function_call", '{"x":1}', "item", "arguments")),
    ("item done", "says what was told", change(f"{DONE}:reasoning", "x", "item", "summary", "0", "text")),
    ("item done", "is behind the end of its parts", without("content_part.done")),
    ("item done", "is behind the whole of its text, unless it was cut", without(f"{ARGUMENTS}.done")),
    (
        "item done",
        "has an object for arguments if it is complete",
        change(f"{DONE}:function_call", "[]", "item", "arguments"),
    ),
    ("of an item", "is of an open one", change(f"{TEXT}.delta", 99, "output_index")),
    ("of an item", "has its id", change(f"{TEXT}.delta", "x", "item_id")),
    ("part", "comes next, in an item that may have it", change("content_part.added", 1, "content_index")),
    ("part", "comes next, in an item that may have it", change("content_part.added", "summary_text", "part", "type")),
    ("part", "comes next, in an item that may have it", again("reasoning_summary_part.added")),
    ("part done", "is of an open part", again("content_part.done")),
    ("part done", "says what was told", change("content_part.done", "x", "part", "text")),
    ("delta", "is of an open text of its kind", without("content_part.added")),
    ("delta", "is of an open text of its kind", later(f"{TEXT}.delta", "content_part.done")),
    (
        "delta",
        "is of an open text of its kind",
        change(f"{ARGUMENTS}.delta", "response.custom_tool_call_input.delta", "type"),
    ),
    ("delta", "is not behind its whole", later(f"{ARGUMENTS}.delta", f"{ARGUMENTS}.done")),
    ("delta", "is a text", change(f"{TEXT}.delta", 5, "delta")),
    ("done", "is of an open text of its kind", later(f"{TEXT}.done", "content_part.done")),
    ("done", "says what was told", change(f"{TEXT}.done", "x", "text")),
    ("note", "is of an open text", change(f"{TEXT}.annotation.added", 9, "content_index")),
    ("terminal", "has its status", change("completed", "incomplete", "response", "status")),
    ("terminal", "is behind the end of every item, but for what a failure cut that a client may run", without(DONE)),
    (
        "terminal",
        "is behind the end of every item, but for what a failure cut that a client may run",
        change("incomplete", "response.completed", "type", of=without(DONE, of=LIMIT)),
    ),
    (
        "terminal",
        "says of no call that was cut that it is done, unless it is incomplete",
        change("incomplete", "response.failed", "type", of=LIMIT),
    ),
    ("terminal", "has the items as they were done", change("completed", [], "response", "output")),
    ("terminal", "has its reason, and no other's", change("completed", {}, "response", "error")),
    (
        "terminal",
        "has its reason, and no other's",
        change("incomplete", None, "response", "incomplete_details", of=LIMIT),
    ),
    ("terminal", "has its reason, and no other's", change("failed", "", "response", "error", "code", of=FAILED)),
    ("terminal", "has counts that add up, or none", change("completed", 99, "response", "usage", "total_tokens")),
    ("terminal", "has counts that add up, or none", change("completed", {}, "response", "usage")),
    (
        "terminal",
        "has counts that add up, or none",
        change("completed", 99, "response", "usage", "input_tokens_details", "cached_tokens"),
    ),
    (
        "terminal",
        "has all details of its counts",
        change("completed", None, "response", "usage", "output_tokens_details"),
    ),
    ("error", "has a message", [*WHOLE[:2], {**ERROR, "message": ""}]),
    ("end", "is behind a terminal", WHOLE[:-1]),
]


@pytest.mark.parametrize(("part", "says", "events"), BREACHES)
def test_a_breach_is_found(part: str, says: str, events: list[Json]) -> None:
    assert (part, says) in broken(sse(events))


@pytest.mark.parametrize(
    "stream",
    [
        sse(WHOLE).replace(b"event: response.created", b"event: message"),
        b"data: x\n\n",
        b"event: x\ndata: {}\n\n",
        b"event: x\ndata: 5\n\n",
    ],
)
def test_an_event_is_called_by_its_type(stream: bytes) -> None:
    assert ("frame", "is an event that is called by its type") in broken(stream)


def test_an_event_that_nothing_is_known_of_tells_of_no_text() -> None:
    assert ResponsesReading().text_of(WHOLE[0]) is None
    assert ResponsesReading().text_of(5) is None


def test_an_error_ends_a_stream() -> None:
    assert broken(sse([*WHOLE[:2], ERROR])) == []
    assert broken(sse([*WHOLE[:2], {**ERROR, "message": None, "error": {"message": "boom"}}])) == []


def test_events_of_a_hosted_tool_are_of_an_item() -> None:
    searching = {"type": "response.web_search_call.searching", "output_index": 4, "item_id": "ws"}
    at = next(at for at, one in enumerate(WHOLE) if one.get("output_index") == 4) + 1
    assert broken(sse(numbered([*WHOLE[:at], searching, *WHOLE[at:]]))) == []


def test_every_rule_of_the_table_is_broken_by_a_test() -> None:
    tested = {(part, says) for part, says, _ in BREACHES} | {("frame", "is an event that is called by its type")}
    check_table(RULES, tested)


@given(st.data())
def test_whatever_a_stream_holds_can_be_judged(data: st.DataObject) -> None:
    assert isinstance(broken(sse(spoilt(WHOLE, data))), list)
