"""The responses encoder: canonical events as the strictest form of a Responses stream."""

import json

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
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
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.testing import EOF, check_stage, play
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.responses import DIALECT
from stages.dialects.responses.encode import ResponsesEncoder, ShowReasoning
from tests.responses_stream import END, START, Json, between, encoder, ended, kinds, told

HI: list[Event] = [BlockStart(0, TextBlock()), TextDelta(0, "H"), TextDelta(0, "i"), BlockStop(0)]
RAW = ShowReasoning.CONTENT
CALL = BlockStart(0, ToolUseBlock("call_a", "f"))
BOOM = StreamError(ErrorKind.API, "boom", retryable=True)


def losses(*events: Event) -> list[tuple[str, str]]:
    ledger = Ledger()
    told(START, *events, stage=encoder(ledger=ledger))
    return [(entry.path, entry.action) for entry in ledger]


def test_the_stream_begins_with_a_response_that_lacks_nothing() -> None:
    created, going_on = told(START, *END)[:2]
    assert (created["type"], going_on["type"]) == ("response.created", "response.in_progress")
    assert created["response"] == going_on["response"]
    assert created["response"] == {
        "id": "resp_c1",
        "object": "response",
        "created_at": 7,
        "model": "m",
        "status": "in_progress",
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }


def test_the_response_repeats_the_request() -> None:
    facts = RequestFacts(model="asked", echo={"tools": [{"type": "function", "name": "f"}], "store": False})
    for event in told(MessageStart("", ""), *END, stage=encoder(facts=facts)):
        assert event["response"]["tools"] == [{"type": "function", "name": "f"}]
        assert event["response"]["store"] is False
        assert event["response"]["model"] == "asked"


def test_an_id_of_this_dialect_stays_and_a_missing_one_is_made() -> None:
    assert told(MessageStart("resp_x", "m"), *END)[0]["response"]["id"] == "resp_x"
    made = told(MessageStart("", "m"), *END)
    assert len(made[0]["response"]["id"]) == len("resp_") + 32
    assert made[0]["response"]["id"] == made[-1]["response"]["id"]


def test_a_second_start_is_nothing() -> None:
    assert kinds(told(START, START, *END)) == ["created", "in_progress", "completed"]


def test_a_block_that_says_nothing_is_no_item() -> None:
    nothing = [BlockStart(0, TextBlock()), TextDelta(0, ""), BlockStop(0), BlockStart(1, ReasoningBlock())]
    assert between(*nothing, ReasoningDelta(1, ""), BlockStop(1)) == []


def test_another_dialects_item_is_recorded() -> None:
    other = [BlockStart(0, ServerBlock("messages", {"type": "x"})), BlockStop(0)]
    assert between(*other) == []
    assert losses(*other, *END) == [("ServerBlock[0] x", "dropped")]


def test_each_item_that_is_lost_is_an_entry_of_its_own() -> None:
    items = [one for at in (0, 1) for one in (BlockStart(at, ServerBlock("messages", {"type": "x"})), BlockStop(at))]
    assert losses(*items, *END) == [("ServerBlock[0] x", "dropped"), ("ServerBlock[1] x", "dropped")]


def test_a_search_of_another_api_is_told_in_all_of_its_steps() -> None:
    item = {"id": "ws_c1_0", "type": "web_search_call", "action": {"type": "search", "query": "q"}}
    search = [BlockStart(0, ServerBlock("messages", {"type": "x"}, "q")), BlockStop(0)]
    where = {"item_id": "ws_c1_0", "output_index": 0}
    assert [{name: value for name, value in one.items() if name != "sequence_number"} for one in between(*search)] == [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {"type": "response.web_search_call.in_progress", **where},
        {"type": "response.web_search_call.searching", **where},
        {"type": "response.web_search_call.completed", **where},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}},
    ]
    assert told(START, *search, *END)[-1]["response"]["output"] == [{**item, "status": "completed"}]
    assert losses(*search, *END) == []
    cut = told(START, search[0], BOOM)
    assert [one["item"]["status"] for one in cut if "item" in one] == ["in_progress", "incomplete"]


def test_a_note_of_another_dialect_is_recorded() -> None:
    foreign = AnnotationDelta(0, {"type": "char_location"})
    assert losses(BlockStart(0, TextBlock()), foreign, BlockStop(0), *END) == [("annotation", "dropped")]
    lost = AnnotationDelta(0, {"type": "file_path"})
    assert losses(BlockStart(0, ServerBlock("x", {})), lost, BlockStop(0), *END)[1] == ("annotation", "dropped")


def test_blocks_may_overlap() -> None:
    other = BlockStart(1, ToolUseBlock("b", "g"))
    overlapping = [CALL, other, ArgumentsDelta(1, "1"), ArgumentsDelta(0, "2"), ArgumentsDelta(1, "3"), BlockStop(1)]
    made = between(*overlapping, BlockStop(0))
    assert [(event["output_index"], event["delta"]) for event in made if "delta" in event] == [
        (1, "1"),
        (0, "2"),
        (1, "3"),
    ]
    output = ended(*overlapping, BlockStop(0), *END)["output"]
    assert [(item["call_id"], item["arguments"]) for item in output] == [("call_a", "2"), ("b", "13")]


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        (StopReason.END_TURN, "completed", None),
        (StopReason.TOOL_USE, "completed", None),
        (StopReason.STOP_SEQUENCE, "completed", None),
        (StopReason.PAUSE_TURN, "completed", None),
        (StopReason.MAX_TOKENS, "incomplete", {"reason": "max_output_tokens"}),
        (StopReason.CONTEXT_WINDOW, "incomplete", {"reason": "max_output_tokens"}),
        (StopReason.REFUSAL, "incomplete", {"reason": "content_filter"}),
    ],
)
def test_the_stop_reason_is_a_status(reason: StopReason, status: str, why: Json | None) -> None:
    usage = Usage(input=1, cache_read=2, output=3, reasoning=1)
    whole = ended(*HI, MessageDelta(reason, usage=usage), MessageStop())
    assert (whole["status"], whole["incomplete_details"], whole["error"]) == (status, why, None)
    assert whole["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 6,
    }


def test_a_refusal_that_was_said_is_complete() -> None:
    said = [BlockStart(0, TextBlock()), RefusalDelta(0, "no"), BlockStop(0), MessageDelta(StopReason.REFUSAL)]
    assert ended(*said, MessageStop())["status"] == "completed"
    cut = [BlockStart(1, ToolUseBlock("a", "f")), BlockStop(1, complete=False)]
    assert ended(*said[:3], *cut, said[3], MessageStop())["status"] == "incomplete"


@pytest.mark.parametrize("reason", [StopReason.STOP_SEQUENCE, StopReason.PAUSE_TURN, StopReason.CONTEXT_WINDOW])
def test_a_stop_reason_that_is_lost_in_part_is_recorded(reason: StopReason) -> None:
    assert losses(MessageDelta(reason), MessageStop()) == [("stop reason", "translated")]


def test_a_message_whose_end_is_not_told_is_complete() -> None:
    assert ended(MessageStop())["status"] == "completed"
    assert ended(MessageStop())["usage"] is None


def test_a_failure_ends_what_is_open_but_for_a_call() -> None:
    text = told(START, *HI[:2], BOOM)
    assert kinds(text)[-4:] == ["output_text.done", "content_part.done", "output_item.done", "failed"]
    assert text[-2]["item"]["status"] == "incomplete"
    assert text[-1]["response"]["error"] == {"code": "server_error", "message": "boom"}
    assert text[-1]["response"]["output"] == [text[-2]["item"]]
    call = told(START, CALL, ArgumentsDelta(0, '{"x"'), BOOM)
    assert kinds(call)[-2:] == ["function_call_arguments.delta", "failed"]
    assert call[-1]["response"]["output"] == []
    other = [BlockStart(0, ServerBlock("x", {})), BlockStart(1, TextBlock())]
    assert kinds(told(START, *other, BOOM)) == ["created", "in_progress", "failed"]


def test_a_failure_before_anything_begins_the_response_first() -> None:
    made = told(BOOM, stage=encoder(facts=RequestFacts(model="asked")))
    assert kinds(made) == ["created", "in_progress", "failed"]
    assert made[-1]["response"]["model"] == "asked"


@pytest.mark.parametrize("cause", [None, StreamError(ErrorKind.TIMEOUT, "idle", retryable=True)])
def test_an_end_without_a_terminal_is_a_failure(cause: StreamError | None) -> None:
    made = play(encoder(), START, EOF if cause is None else EOF(cause))[-1]
    error = json.loads(made[-1].data)["response"]["error"]
    assert error["message"] == ("idle" if cause else "the stream ended before its terminal")


def test_nothing_comes_behind_the_terminal() -> None:
    stage = encoder()
    played = play(stage, [START, *END], [TextDelta(0, "x"), MessageStop(), BOOM], EOF)
    assert stage.ended
    assert played[1:] == [[], []]
    assert stage.idle() == []


def test_a_keep_alive_comes_behind_the_first_event_only() -> None:
    stage = encoder()
    assert play(stage, Ping())[0] == []
    assert stage.idle() == []
    stage.receive([START])
    assert stage.idle() == [Frame(b'{"type":"keepalive","sequence_number":2}', b"keepalive")]
    assert stage.receive([Ping()]) == [Frame(b'{"type":"keepalive","sequence_number":3}', b"keepalive")]


@pytest.mark.parametrize(
    "event",
    [TextDelta(0, "x"), ReasoningDelta(0, "x"), ArgumentsDelta(0, "x"), SignatureDelta(0, "x"), BlockStop(0)],
)
def test_an_event_for_a_block_that_is_not_open_is_our_fault(event: Event) -> None:
    stage = encoder()
    with pytest.raises(StageError, match="block 0, which is not open") as raised:
        stage.receive([START, *HI, event])
    assert len(raised.value.made) == 9
    with pytest.raises(StageError, match="block 0, which is open"):
        encoder().receive([START, CALL, CALL])


@pytest.mark.parametrize(
    "delta", [TextDelta(0, "x"), ReasoningDelta(0, "x"), ArgumentsDelta(0, "x"), SignatureDelta(0, "x")]
)
def test_a_delta_for_a_block_that_is_not_written_is_nothing(delta: Event) -> None:
    assert between(BlockStart(0, ServerBlock("x", {})), delta, BlockStop(0)) == []


EVERYTHING = [
    START,
    BlockStart(0, ReasoningBlock()),
    ReasoningDelta(0, "A"),
    ReasoningDelta(0, "b"),
    SignatureDelta(0, "SIG"),
    BlockStop(0),
    BlockStart(1, RedactedReasoningBlock("DATA")),
    BlockStop(1),
    BlockStart(2, TextBlock()),
    TextDelta(2, "H"),
    AnnotationDelta(2, {"type": "file_path"}),
    TextDelta(2, "i"),
    TextDelta(2, ""),
    BlockStop(2),
    Ping(),
    BlockStart(3, ServerBlock("responses", {"type": "web_search_call", "id": "ws1"})),
    BlockStop(3),
    BlockStart(4, ToolUseBlock("b", "g", ToolKind.CUSTOM)),
    ArgumentsDelta(4, "x"),
    ArgumentsDelta(4, "y"),
    BlockStop(4),
    BlockStart(5, ToolUseBlock("a", "patch")),
    ArgumentsDelta(5, '{"input":"x"}'),
    BlockStop(5),
]


def test_the_output_holds_every_item_in_order() -> None:
    facts = RequestFacts(map=RequestMap(tools={"patch": OfferedTool("patch", kind=ToolKind.CUSTOM)}))
    output = told(*EVERYTHING, *END, stage=encoder(facts=facts))[-1]["response"]["output"]
    assert [(item["type"], item["id"]) for item in output] == [
        ("reasoning", "rs_c1_0"),
        ("reasoning", "rs_c1_1"),
        ("message", "msg_c1_2"),
        ("web_search_call", "ws1"),
        ("custom_tool_call", "ctc_b"),
        ("custom_tool_call", "ctc_a"),
    ]


def test_raw_reasoning_is_written_if_asked() -> None:
    made = between(BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A"), BlockStop(0), stage=encoder(reasoning=RAW))
    assert made[-1]["item"]["content"][0]["text"] == "A"


def test_a_nested_note_is_written_flat() -> None:
    note = AnnotationDelta(0, {"type": "file_path", "file_path": {"file_id": "x"}})
    made = between(HI[0], HI[1], note, HI[3])
    assert made[-1]["item"]["content"][0]["annotations"] == [{"type": "file_path", "file_id": "x"}]


def test_the_rules_of_every_stage_are_kept() -> None:
    check_stage(encoder, [*EVERYTHING, *END])
    check_stage(encoder, [*EVERYTHING, BOOM])
    check_stage(encoder, EVERYTHING[:3])


def test_the_dialect_hands_out_an_encoder_that_knows_the_request() -> None:
    facts = DIALECT.facts({"model": "m", "tools": [{"type": "custom", "name": "patch"}], "temperature": 1})
    stage = DIALECT.encoder(facts=facts, ledger=Ledger(), limits=DEFAULT_LIMITS)
    assert isinstance(stage, ResponsesEncoder)
    assert facts.map.tools["patch"].kind is ToolKind.CUSTOM
    assert facts.echo == {"tools": [{"type": "custom", "name": "patch"}], "temperature": 1}
