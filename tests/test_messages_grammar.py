"""The grammar of a Messages stream: what our encoder writes keeps it, and each rule of the table is broken once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ErrorKind
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from stages.dialects.messages.encode import MessagesEncoder
from stages.dialects.messages.grammar import GRAMMAR, RULES
from stages.sse import SSEEncoder
from tests.breaches import Json, again, change, check_table, later, spoilt, sse, without

BLOCKS: list[Event] = [
    BlockStart(0, ReasoningBlock()),
    ReasoningDelta(0, "Why"),
    SignatureDelta(0, "SIG"),
    BlockStop(0),
    BlockStart(1, RedactedReasoningBlock("DATA")),
    BlockStop(1),
    BlockStart(2, TextBlock()),
    TextDelta(2, "hi"),
    BlockStop(2),
    BlockStart(3, ToolUseBlock("a", "f")),
    ArgumentsDelta(3, "{}"),
    BlockStop(3),
    BlockStart(4, ToolUseBlock("b", "patch", ToolKind.CUSTOM)),
    ArgumentsDelta(4, "***"),
    BlockStop(4),
]
CUT: list[Event] = [BlockStart(5, ToolUseBlock("c", "f")), ArgumentsDelta(5, '{"x')]
END = MessageDelta(StopReason.TOOL_USE, usage=Usage(1, 2, 3, 4, 1))
BOOM = StreamError(ErrorKind.API, "boom")


def written(*events: Event) -> list[Json]:
    """The events that our encoder writes."""
    return [json.loads(frame.data) for frame in MessagesEncoder().receive([MessageStart("c1", "m"), *events])]


def broken(stream: bytes) -> list[tuple[str, str]]:
    return [(breach.rule.part, breach.rule.says) for breach in GRAMMAR.breaches(stream)]


WHOLE = written(*BLOCKS, END, MessageStop())
LIMIT = written(*CUT, BlockStop(5, complete=False), MessageDelta(StopReason.MAX_TOKENS), MessageStop())
SEQUENCE = written(MessageDelta(StopReason.STOP_SEQUENCE, "x"), MessageStop())
FAILED = written(*BLOCKS[6:8], BOOM)
TURN = written(*BLOCKS[6:9], MessageDelta(StopReason.END_TURN), MessageStop())


@pytest.mark.parametrize(
    "events",
    [WHOLE, LIMIT, SEQUENCE, FAILED, TURN, written(*BLOCKS, *CUT, BOOM), written(Ping(), BOOM)],
    ids=range(7),
)
def test_what_we_write_breaks_no_rule(events: list[Json]) -> None:
    assert broken(sse(events)) == []


def test_what_we_frame_breaks_no_rule() -> None:
    chain = MessagesEncoder() | SSEEncoder()
    out = [*chain.idle(), *chain.receive([MessageStart("c1", "m"), *BLOCKS, END, MessageStop()]), *chain.receive_eof()]
    assert broken(b"".join(out)) == []


def test_blocks_of_tools_that_the_provider_runs_are_known() -> None:
    blocks = [{"type": kind} for kind in ("web_search_tool_result", "server_tool_use")]
    events: list[Json] = []
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if index:
            delta = {"type": "input_json_delta", "partial_json": "{}"}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    assert broken(sse([TURN[0], *events, *TURN[-2:]])) == []


START, STOP, DELTA = "content_block_start", "content_block_stop", "content_block_delta"

BREACHES: list[tuple[str, str, list[Json]]] = [
    ("frame", "is not behind the terminal", again(WHOLE, "message_stop")),
    ("frame", "is a known event", change(WHOLE, STOP, "x", "type")),
    ("event", "is the start, or an error, if it is the first", without(WHOLE, "message_start")),
    ("start", "comes once", again(WHOLE, "message_start")),
    ("start", "is an empty message", change(WHOLE, "message_start", None, "message", "content")),
    ("start", "is an empty message", change(WHOLE, "message_start", "", "message", "id")),
    ("start", "is an empty message", change(WHOLE, "message_start", None, "message")),
    ("start", "has its counts", change(WHOLE, "message_start", None, "message", "usage")),
    ("start", "has its counts", change(WHOLE, "message_start", "1", "message", "usage", "cache_read_input_tokens")),
    ("block start", "has the next index", change(WHOLE, START, 1, "index")),
    ("block start", "is behind the stop of the block before", without(WHOLE, STOP)),
    ("block start", "is before the end is told", later(WHOLE, f"{START}:tool_use", "message_delta")),
    ("block start", "is of a known type", change(WHOLE, START, "x", "content_block", "type")),
    ("block start", "is of a known type", change(WHOLE, START, None, "content_block")),
    ("block start", "begins without its text", change(WHOLE, f"{START}:text", "x", "content_block", "text")),
    ("block start", "begins without its text", change(WHOLE, f"{START}:thinking", None, "content_block", "thinking")),
    (
        "block start",
        "has a name, and an id of its own, if it is a call",
        change(WHOLE, f"{START}:tool_use", "", "content_block", "name"),
    ),
    (
        "block start",
        "has a name, and an id of its own, if it is a call",
        change(WHOLE, f"{START}:tool_use", "b", "content_block", "id"),
    ),
    (
        "block start",
        "has no input yet, and no signature",
        change(WHOLE, f"{START}:tool_use", {"x": 1}, "content_block", "input"),
    ),
    (
        "block start",
        "has no input yet, and no signature",
        change(WHOLE, f"{START}:thinking", "S", "content_block", "signature"),
    ),
    (
        "block start",
        "has its data if it is redacted",
        change(WHOLE, f"{START}:redacted_thinking", "", "content_block", "data"),
    ),
    ("delta", "is of the open block", change(WHOLE, DELTA, 7, "index")),
    ("delta", "is of the open block", later(WHOLE, DELTA, STOP)),
    ("delta", "fits its block", change(WHOLE, DELTA, "text_delta", "delta", "type")),
    ("delta", "fits its block", change(WHOLE, DELTA, ["x"], "delta", "type")),
    ("delta", "says something of its kind", change(WHOLE, f"{DELTA}:text_delta", None, "delta", "text")),
    ("delta", "is not behind the signature", again(WHOLE, f"{DELTA}:signature_delta")),
    ("block stop", "is of the open block", again(WHOLE, STOP)),
    ("block stop", "is of a text that says something", without(WHOLE, f"{DELTA}:text_delta")),
    ("end told", "is behind the stop of every block", without(TURN, STOP)),
    ("end told", "comes once", again(WHOLE, "message_delta")),
    (
        "end told",
        "has a known reason, and the sequence if it is one",
        change(WHOLE, "message_delta", "tool_calls", "delta", "stop_reason"),
    ),
    (
        "end told",
        "has a known reason, and the sequence if it is one",
        change(SEQUENCE, "message_delta", None, "delta", "stop_sequence"),
    ),
    (
        "end told",
        "has a known reason, and the sequence if it is one",
        change(WHOLE, "message_delta", "x", "delta", "stop_sequence"),
    ),
    ("end told", "has a known reason, and the sequence if it is one", change(WHOLE, "message_delta", {}, "delta")),
    ("end told", "has its counts", change(WHOLE, "message_delta", {}, "usage")),
    (
        "end told",
        "is for calls only if there is one",
        change(TURN, "message_delta", "tool_use", "delta", "stop_reason"),
    ),
    ("end told", "is for calls if there is one", change(WHOLE, "message_delta", "end_turn", "delta", "stop_reason")),
    (
        "end told",
        "is behind calls whose input is whole, unless it was cut",
        change(LIMIT, "message_delta", "tool_use", "delta", "stop_reason"),
    ),
    ("message stop", "is behind how it ended", without(WHOLE, "message_delta")),
    ("error", "has a known type and a message", change(FAILED, "error", "x", "error", "type")),
    ("error", "has a known type and a message", change(FAILED, "error", "", "error", "message")),
    ("error", "leaves a call open, and nothing else", without(FAILED, STOP)),
    ("error", "leaves a call open, and nothing else", [*LIMIT[:-2], FAILED[-1]]),
    ("end", "is behind a terminal", WHOLE[:-1]),
]


@pytest.mark.parametrize(("part", "says", "events"), BREACHES)
def test_a_breach_is_found(part: str, says: str, events: list[Json]) -> None:
    assert (part, says) in broken(sse(events))


@pytest.mark.parametrize(
    "stream",
    [
        sse(WHOLE).replace(b"event: message_start", b"event: message"),
        b"data: x\n\n",
        b"event: ping\ndata: {}\n\n",
        b"event: x\ndata: 5\n\n",
    ],
)
def test_an_event_is_called_by_its_type(stream: bytes) -> None:
    assert ("frame", "is an event that is called by its type") in broken(stream)


def test_every_rule_of_the_table_is_broken_by_a_test() -> None:
    tested = {(part, says) for part, says, _ in BREACHES} | {("frame", "is an event that is called by its type")}
    check_table(RULES, tested)


@given(st.data())
def test_whatever_a_stream_holds_can_be_judged(data: st.DataObject) -> None:
    assert isinstance(broken(sse(spoilt(WHOLE, data))), list)
