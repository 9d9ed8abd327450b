"""Canonical events as a Messages stream."""

import json
import re
from typing import Any

import pytest
from hypothesis import given

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, StageError
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
from pipeline.stage import Chain, parts
from pipeline.testing import EOF, check_stage, play
from stages.dialects.messages import DIALECT
from stages.dialects.messages.encode import PING, MessagesEncoder
from stages.dialects.messages.errors import TYPES, error_body
from stages.sse import SSEEncoder
from tests.support import Chance, Run, chat_streams, read, same_ids

START = MessageStart("msg_1", "m")
STOP = (MessageDelta(StopReason.END_TURN, None, Usage(10, output=5)), MessageStop())
CUT = {"type": "error", "error": {"type": "api_error", "message": "the stream ended before its terminal"}}


def encoded(*events: Event, stage: MessagesEncoder | None = None) -> list[dict[str, Any]]:
    """What these events, in one read, are on the wire."""
    (frames,) = play(stage or MessagesEncoder(), list(events))
    return [shown(frame) for frame in frames]


def shown(frame: Frame) -> dict[str, Any]:
    """A frame's payload, which says its name too."""
    body: dict[str, Any] = json.loads(frame.data)
    assert body["type"].encode() == frame.name
    return body


def delta(index: int, **members: Any) -> dict[str, Any]:
    """A `content_block_delta`."""
    return {"type": "content_block_delta", "index": index, "delta": members}


# Messages


def test_a_message_step_by_step() -> None:
    assert play(
        MessagesEncoder(),
        START,
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        BlockStop(0),
        [BlockStart(1, TextBlock()), TextDelta(1, "é\n"), RefusalDelta(1, "no"), BlockStop(1)],
        [BlockStart(2, ToolUseBlock("i", "f")), ArgumentsDelta(2, '{"x"'), ArgumentsDelta(2, ":1}"), BlockStop(2)],
        MessageDelta(StopReason.TOOL_USE, None, Usage(1, 2, 3, 4, 5)),
        MessageStop(),
        EOF,
    ) == [
        [
            Frame(
                b'{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m",'
                b'"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,'
                b'"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}',
                b"message_start",
            )
        ],
        [
            Frame(
                b'{"type":"content_block_start","index":0,"content_block":'
                b'{"type":"thinking","thinking":"","signature":""}}',
                b"content_block_start",
            )
        ],
        [
            Frame(
                b'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"A"}}',
                b"content_block_delta",
            )
        ],
        [Frame(b'{"type":"content_block_stop","index":0}', b"content_block_stop")],
        [
            Frame(
                b'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
                b"content_block_start",
            ),
            Frame(
                '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"é\\n"}}'.encode(),
                b"content_block_delta",
            ),
            Frame(
                b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"no"}}',
                b"content_block_delta",
            ),
            Frame(b'{"type":"content_block_stop","index":1}', b"content_block_stop"),
        ],
        [
            Frame(
                b'{"type":"content_block_start","index":2,"content_block":'
                b'{"type":"tool_use","id":"i","name":"f","input":{}}}',
                b"content_block_start",
            ),
            Frame(
                b'{"type":"content_block_delta","index":2,"delta":'
                b'{"type":"input_json_delta","partial_json":"{\\"x\\""}}',
                b"content_block_delta",
            ),
            Frame(
                b'{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}',
                b"content_block_delta",
            ),
            Frame(b'{"type":"content_block_stop","index":2}', b"content_block_stop"),
        ],
        [
            Frame(
                b'{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":'
                b'{"input_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":2,"output_tokens":4,'
                b'"output_tokens_details":{"thinking_tokens":5}}}',
                b"message_delta",
            )
        ],
        [Frame(b'{"type":"message_stop"}', b"message_stop")],
        [],
    ]


@given(chat_streams())
def test_the_rules_of_every_stage(stream: Chance) -> None:
    stages = parts(Run().chain)
    events = Chain(stages[:-2]).receive([stream.raw])
    check_stage(MessagesEncoder, events)
    raw = b"".join(SSEEncoder().receive(MessagesEncoder().receive(events)))
    assert read(raw).said("text") == stream.text


@pytest.mark.parametrize(("id_", "written"), [("msg_1", "msg_1"), ("chatcmpl-1", "msg_chatcmpl-1")])
def test_an_id_is_written_in_this_dialects_form(id_: str, written: str) -> None:
    assert encoded(MessageStart(id_, "m"))[0]["message"]["id"] == written


def test_a_missing_id_is_minted() -> None:
    ids = {encoded(MessageStart("", "m"))[0]["message"]["id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch("msg_[0-9a-f]{24}", one) for one in ids)
    assert same_ids(json.dumps([*ids]).encode()).count(b"id") == 20


def test_a_text_that_says_nothing_is_not_written() -> None:
    made = encoded(BlockStart(0, TextBlock()), TextDelta(0, ""), TextDelta(0, "a"))
    assert made[1:] == [delta(0, type="text_delta", text="a")]


def test_indexes_are_this_stages_own() -> None:
    made = encoded(
        BlockStart(7, TextBlock()), TextDelta(7, "a"), BlockStop(7), BlockStart(3, TextBlock()), BlockStop(3)
    )
    assert [one["index"] for one in made] == [0, 0, 0, 1, 1]


def test_an_event_without_a_form_here_is_nothing() -> None:
    assert encoded(Carry("chat", Frame(b"{}"))) == []


# Freeform calls


def test_freeform_input_is_the_inside_of_a_json_string() -> None:
    stage = MessagesEncoder()
    made = encoded(
        BlockStart(0, ToolUseBlock("i", "f", ToolKind.CUSTOM)),
        ArgumentsDelta(0, 'a"\n'),
        ArgumentsDelta(0, ""),
        ArgumentsDelta(0, "é\\"),
        BlockStop(0),
        stage=stage,
    )
    written = [one["delta"]["partial_json"] for one in made[1:-1]]
    assert written == ['{"input":"', 'a\\"\\n', "é\\\\", '"}']
    assert json.loads("".join(written)) == {"input": 'a"\né\\'}


def test_freeform_input_that_was_cut_is_not_made_whole() -> None:
    custom = BlockStart(0, ToolUseBlock("i", "f", ToolKind.CUSTOM))
    made = encoded(custom, ArgumentsDelta(0, "a"), BlockStop(0, complete=False))
    assert [one["delta"]["partial_json"] for one in made[1:-1]] == ['{"input":"', "a"]
    assert made[-1] == {"type": "content_block_stop", "index": 0}


# What cannot be shown


def test_a_block_that_messages_cannot_show_leaves_no_gap_and_is_recorded() -> None:
    stage = MessagesEncoder()
    made = encoded(
        BlockStart(0, ServerBlock("responses", {"type": "x"})),
        ArgumentsDelta(0, "x"),
        BlockStop(0),
        BlockStart(1, TextBlock()),
        TextDelta(1, "a"),
        BlockStop(1),
        stage=stage,
    )
    assert [one["index"] for one in made] == [0, 0, 0]
    assert [(entry.path, entry.action) for entry in stage.ledger] == [("ServerBlock[0] x", "dropped")]


def test_an_error_closes_no_block_that_was_not_shown() -> None:
    made = encoded(BlockStart(0, ServerBlock("responses", {"type": "x"})), StreamError(ErrorKind.API, "boom"))
    assert [one["type"] for one in made] == ["error"]


def test_a_server_block_of_this_dialect_is_shown_as_it_is() -> None:
    payload = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    made = encoded(BlockStart(0, ServerBlock("messages", payload)), ArgumentsDelta(0, "{}"), BlockStop(0))
    assert made[0]["content_block"] == payload
    assert made[1] == delta(0, type="input_json_delta", partial_json="{}")


def test_a_citation_is_a_delta_of_its_text() -> None:
    note = {"type": "char_location", "cited_text": "x"}
    stage = MessagesEncoder()
    made = encoded(BlockStart(0, TextBlock()), AnnotationDelta(0, note), TextDelta(0, "a"), stage=stage)
    assert made[1:] == [delta(0, type="citations_delta", citation=note), delta(0, type="text_delta", text="a")]
    assert len(stage.ledger) == 0


@pytest.mark.parametrize("nested", [False, True])
def test_a_page_that_another_api_cites_is_a_citation_of_which_nothing_is_quoted(nested: bool) -> None:
    page = {"url": "u", "title": "t", "start_index": 0, "end_index": 1}
    note = {"type": "url_citation", **({"url_citation": page} if nested else page)}
    stage = MessagesEncoder()
    made = encoded(BlockStart(0, TextBlock()), TextDelta(0, "a"), AnnotationDelta(0, note), stage=stage)
    cited = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "", "encrypted_index": ""}
    assert made[2] == delta(0, type="citations_delta", citation=cited)
    assert [(entry.path, entry.action) for entry in stage.ledger] == [("annotation", "translated")]


def test_citations_of_others_are_recorded() -> None:
    stage = MessagesEncoder()
    made = encoded(BlockStart(0, TextBlock()), AnnotationDelta(0, {}), stage=stage)
    assert [one["type"] for one in made] == ["content_block_start"]
    assert [entry.path for entry in stage.ledger] == ["annotation"]


# What only a provider can read


def test_a_signature_is_a_delta_of_its_own() -> None:
    made = encoded(BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "a"), SignatureDelta(0, "s"), BlockStop(0))
    assert [one["type"] for one in made] == ["content_block_start", *["content_block_delta"] * 2, "content_block_stop"]
    assert made[2] == delta(0, type="signature_delta", signature="s")


def test_redacted_reasoning_comes_whole_in_its_start() -> None:
    made = encoded(BlockStart(0, RedactedReasoningBlock("E")), BlockStop(0))
    assert made[0]["content_block"] == {"type": "redacted_thinking", "data": "E"}
    assert [one["type"] for one in made] == ["content_block_start", "content_block_stop"]


# Counts


def test_the_start_has_all_four_counts() -> None:
    assert encoded(MessageStart("msg_1", "m", Usage(1, 2, 3, 4)))[0]["message"]["usage"] == {
        "input_tokens": 1,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 3,
        "output_tokens": 4,
    }


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (None, {"output_tokens": 0}),
        (Usage(output=5), {"output_tokens": 5}),
        (Usage(output=5, reasoning=2), {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}),
        (
            Usage(0, 9, output=5),
            {
                "input_tokens": 0,
                "cache_read_input_tokens": 9,
                "cache_creation_input_tokens": 0,
                "output_tokens": 5,
            },
        ),
    ],
)
def test_counts_of_the_prompt_that_nobody_told_do_not_erase_the_estimate(
    usage: Usage | None, written: dict[str, Any]
) -> None:
    assert encoded(MessageDelta(StopReason.END_TURN, None, usage))[0]["usage"] == written


def test_a_stop_sequence_is_told() -> None:
    assert encoded(MessageDelta(StopReason.STOP_SEQUENCE, "END"))[0]["delta"] == {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
    }


# Endings


def test_an_error_closes_an_open_block() -> None:
    made = encoded(START, BlockStart(0, TextBlock()), StreamError(ErrorKind.OVERLOADED, "busy"))
    assert made[2:] == [
        {"type": "content_block_stop", "index": 0},
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    ]


@pytest.mark.parametrize("kind", ToolKind)
def test_an_error_leaves_a_call_open(kind: ToolKind) -> None:
    made = encoded(BlockStart(0, ToolUseBlock("i", "f", kind)), ArgumentsDelta(0, "{"), StreamError(ErrorKind.CUT, ""))
    assert made[-1] == {"type": "error", "error": {"type": "api_error", "message": "the upstream failed"}}
    assert "content_block_stop" not in [one["type"] for one in made]


def test_the_end_without_a_terminal_is_a_cut() -> None:
    (made,) = play(MessagesEncoder(), EOF)
    assert [shown(frame) for frame in made] == [CUT]


def test_the_cause_of_the_end_is_told() -> None:
    stage = MessagesEncoder()
    (made,) = play(stage, EOF(StreamError(ErrorKind.RATE_LIMIT, "slow down")))
    assert [shown(frame)["error"]["type"] for frame in made] == ["rate_limit_error"]
    assert stage.ended
    assert stage.receive_eof() == []


def test_a_ping_goes_out_while_nothing_comes_and_until_the_end() -> None:
    stage = MessagesEncoder()
    assert list(stage.idle()) == [PING]
    assert encoded(Ping(), stage=stage) == [{"type": "ping"}]
    encoded(START, *STOP, stage=stage)
    assert not stage.idle()


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_class_of_error_has_a_type_here(kind: ErrorKind) -> None:
    message = "prompt is too long: boom" if kind is ErrorKind.CONTEXT_LENGTH else "boom"
    assert error_body(StreamError(kind, "boom")) == {
        "type": "error",
        "error": {"type": TYPES[kind], "message": message},
    }


# Faults of ours


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([BlockStart(0, TextBlock()), BlockStart(1, TextBlock())], "BlockStart for block 1 while block 0 is open"),
        ([BlockStop(0)], "BlockStop for block 0, which is not open"),
        ([BlockStart(0, TextBlock()), BlockStop(1)], "BlockStop for block 1, which is not open"),
        ([TextDelta(0, "a")], "TextDelta for block 0, which is not open"),
        ([BlockStart(0, TextBlock()), TextDelta(1, "a")], "TextDelta for block 1, which is not open"),
        ([BlockStart(0, TextBlock()), BlockStop(0), TextDelta(0, "a")], "TextDelta for block 0, which is not open"),
        ([AnnotationDelta(0, {})], "AnnotationDelta for block 0, which is not open"),
        ([BlockStart(0, TextBlock()), AnnotationDelta(1, {})], "AnnotationDelta for block 1, which is not open"),
        ([SignatureDelta(0, "s")], "SignatureDelta for block 0, which is not open"),
        ([BlockStart(0, ReasoningBlock()), SignatureDelta(1, "s")], "SignatureDelta for block 1, which is not open"),
    ],
)
def test_events_out_of_order_are_a_fault_named_with_what_was_made_before(events: list[Event], fault: str) -> None:
    with pytest.raises(StageError, match=re.escape(fault)) as raised:
        MessagesEncoder().receive([START, *events])
    assert raised.value.made[0].name == b"message_start"


# The dialect's object


def test_the_dialect_hands_out_an_encoder() -> None:
    facts = DIALECT.facts({"model": "m"})
    assert facts == RequestFacts(model="m", stream=False)
    assert DIALECT.facts({"model": 7, "stream": True}) == RequestFacts()
    ledger = Ledger()
    stage = DIALECT.encoder(facts=facts, ledger=ledger, limits=DEFAULT_LIMITS)
    play(stage, BlockStart(0, TextBlock()), AnnotationDelta(0, {}))
    assert len(ledger) == 1
    assert (DIALECT.name, list(DIALECT.sentinels)) == ("messages", [b"[DONE]"])
