"""The chat encoder: canonical events as the strictest form of a Chat stream."""

from typing import Any

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
from stages.dialects.chat import DIALECT
from stages.dialects.chat.encode import PING, ChatEncoder
from stages.sse import SSEEncoder
from tests.chat_stream import END, ROLE, START, Json, deltas, encoder, finish, payloads, told

HI: list[Event] = [BlockStart(0, TextBlock()), TextDelta(0, "H"), TextDelta(0, "i"), BlockStop(0)]
CALL = BlockStart(0, ToolUseBlock("call_a", "f"))
WHOLE: list[Event] = [CALL, ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}"), BlockStop(0)]
CUT: list[Event] = [CALL, ArgumentsDelta(0, '{"x"'), BlockStop(0, complete=False)]
ITEM = ReasoningBlock(splittable=False)
BOOM = StreamError(ErrorKind.API, "boom", retryable=True)


def call(place: int, text: str, member: str = "arguments", kind: str = "function") -> Json:
    return {"tool_calls": [{"index": place, kind: {member: text}}]}


def opening(place: int, name: str, tool: str, member: str = "arguments", kind: str = "function") -> Json:
    return {"tool_calls": [{"index": place, "id": name, "type": kind, kind: {"name": tool, member: ""}}]}


def losses(*events: Event) -> list[tuple[str, str]]:
    ledger = Ledger()
    told(START, *events, stage=encoder(ledger=ledger))
    return [(entry.path, entry.action) for entry in ledger]


def test_a_stream_is_the_role_the_deltas_one_finish_the_counts_and_done() -> None:
    head: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    played = play(
        encoder(),
        START,
        *HI,
        MessageDelta(StopReason.END_TURN, usage=Usage(1, 2, 4, 8, 3)),
        MessageStop(),
        EOF,
    )
    assert [payloads(step) for step in played] == [
        [{**head, "choices": [{"index": 0, "delta": ROLE, "finish_reason": None}]}],
        [],
        [{**head, "choices": [{"index": 0, "delta": {"content": "H"}, "finish_reason": None}]}],
        [{**head, "choices": [{"index": 0, "delta": {"content": "i"}, "finish_reason": None}]}],
        [],
        [],
        [
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {
                **head,
                "choices": [],
                "usage": {
                    "prompt_tokens": 7,
                    "completion_tokens": 8,
                    "total_tokens": 15,
                    "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            },
            "[DONE]",
        ],
        [],
    ]


def test_the_counts_are_told_only_if_they_are_wanted_and_known() -> None:
    end: list[Event] = [MessageDelta(StopReason.END_TURN, usage=Usage(1)), MessageStop()]
    unasked = told(START, *end, stage=encoder(facts=RequestFacts(include_usage=False)))
    assert [chunk for chunk in unasked if "usage" in chunk] == []
    estimate = Usage(10)
    unknown = encoder(facts=RequestFacts(usage=estimate))
    assert told(MessageStart("", "m", estimate), *END, stage=unknown)[-2]["choices"]


def test_what_went_in_is_known_from_the_start_if_the_end_does_not_tell() -> None:
    end: list[Event] = [MessageDelta(StopReason.END_TURN, usage=Usage(output=5)), MessageStop()]
    chunks = told(MessageStart("", "m", Usage(10, 20, 30)), *end)
    assert chunks[-2]["usage"]["prompt_tokens"] == 60
    assert told(MessageStart("", "m", Usage(10)), *END)[-2]["usage"]["prompt_tokens"] == 10


def test_more_reasoning_than_output_is_never_told() -> None:
    end = MessageDelta(StopReason.END_TURN, usage=Usage(output=5, reasoning=9))
    assert told(START, end, MessageStop())[-2]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}


def test_every_chunk_is_of_one_answer() -> None:
    chunks = told(MessageStart("resp_1", "m"), *HI, *WHOLE, *END)[:-1]
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith("chatcmpl-")
    assert "resp_" not in chunks[0]["id"]


def test_an_id_is_the_same_whenever_the_answer_is_written_and_a_missing_one_is_made() -> None:
    names = [told(MessageStart(name, "m"), *END)[0]["id"] for name in ("resp_1", "resp_1", "resp_2", "", "")]
    assert names[0] == names[1]
    assert len(set(names)) == 4
    assert told(MessageStart("chatcmpl-x", "m"), *END)[0]["id"] == "chatcmpl-x"


def test_an_answer_that_names_no_model_is_of_the_one_that_was_asked() -> None:
    assert told(MessageStart("", ""), *END, stage=encoder(facts=RequestFacts(model="asked")))[0]["model"] == "asked"


def test_the_role_comes_once_also_where_no_start_came_or_two_did() -> None:
    for events in ([*HI, *END], [MessageStop()], [START, START, *END]):
        roles = [chunk for chunk in told(*events) if chunk != "[DONE]" and chunk["choices"][0]["delta"].get("role")]
        assert len(roles) == 1


def test_several_texts_are_one_content() -> None:
    more: list[Event] = [BlockStart(1, TextBlock()), TextDelta(1, "!"), BlockStop(1)]
    assert deltas(*HI, *more) == [{"content": "H"}, {"content": "i"}, {"content": "!"}]


def test_a_refusal_is_told_as_one() -> None:
    assert deltas(HI[0], TextDelta(0, "a"), RefusalDelta(0, "n"), RefusalDelta(0, "o"), BlockStop(0)) == [
        {"content": "a"},
        {"refusal": "n"},
        {"refusal": "o"},
    ]


def test_a_call_has_its_names_once_and_its_arguments_in_pieces() -> None:
    assert deltas(*WHOLE) == [opening(0, "call_a", "f"), call(0, '{"x"'), call(0, ":1}")]


def test_the_index_of_calls_is_dense_whatever_stands_between() -> None:
    other: list[Event] = [BlockStart(7, ToolUseBlock("b", "g")), ArgumentsDelta(7, "{}"), BlockStop(7)]
    made = deltas(BlockStart(3, ReasoningBlock()), ReasoningDelta(3, "r"), BlockStop(3), *WHOLE, *HI, *other)
    assert [one["tool_calls"][0]["index"] for one in made if "tool_calls" in one] == [0, 0, 0, 1, 1]


def test_blocks_may_overlap() -> None:
    other = BlockStart(1, ToolUseBlock("b", "g"))
    pieces = [ArgumentsDelta(1, "1"), ArgumentsDelta(0, "2"), ArgumentsDelta(1, "3"), ArgumentsDelta(1, "4")]
    assert deltas(CALL, other, *pieces, BlockStop(1), BlockStop(0))[2:] == [
        call(1, "1"),
        call(0, "2"),
        call(1, "3"),
        call(1, "4"),
    ]


def test_a_whole_call_without_arguments_has_an_empty_object() -> None:
    assert deltas(CALL, ArgumentsDelta(0, ""), BlockStop(0))[1:] == [call(0, "{}")]
    assert deltas(CALL, BlockStop(0, complete=False))[1:] == []


def test_what_says_nothing_is_not_written() -> None:
    empty: list[Event] = [
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, ""),
        BlockStop(1),
        BlockStart(2, ITEM),
        ReasoningDelta(2, ""),
        BlockStop(2),
    ]
    assert deltas(HI[0], TextDelta(0, ""), RefusalDelta(0, ""), TextDelta(0, "a"), TextDelta(0, ""), *empty) == [
        {"content": "a"}
    ]


FREEFORM = ToolUseBlock("c", "patch", ToolKind.CUSTOM)


def test_a_freeform_call_is_one_if_the_client_declared_it_or_nothing_is_known() -> None:
    declared = RequestMap({"other": OfferedTool("patch", kind=ToolKind.CUSTOM, wrapped=True)})
    for facts in (RequestFacts(), RequestFacts(map=declared)):
        events = [BlockStart(0, FREEFORM), ArgumentsDelta(0, "**"), ArgumentsDelta(0, "*"), BlockStop(0)]
        assert deltas(*events, stage=encoder(facts=facts)) == [
            opening(0, "c", "patch", "input", "custom"),
            call(0, "**", "input", "custom"),
            call(0, "*", "input", "custom"),
        ]
        nothing = deltas(BlockStart(0, FREEFORM), BlockStop(0), stage=encoder(facts=facts))
        assert nothing == [opening(0, "c", "patch", "input", "custom")]


def test_a_freeform_call_that_the_client_did_not_declare_is_a_function_of_one_string() -> None:
    facts = RequestFacts(map=RequestMap())
    events = [BlockStart(0, FREEFORM), ArgumentsDelta(0, 'a"'), ArgumentsDelta(0, "b\n"), BlockStop(0)]
    assert deltas(*events, stage=encoder(facts=facts)) == [
        opening(0, "c", "patch"),
        call(0, '{"input":"a\\"'),
        call(0, "b\\n"),
        call(0, '"}'),
    ]
    assert deltas(BlockStart(0, FREEFORM), BlockStop(0), stage=encoder(facts=facts))[1:] == [call(0, '{"input":""}')]


def test_a_function_that_the_client_declared_as_freeform_is_freeform() -> None:
    facts = RequestFacts(map=RequestMap({"f": OfferedTool("f", kind=ToolKind.CUSTOM)}))
    events = [CALL, ArgumentsDelta(0, '{"input":"a\\'), ArgumentsDelta(0, 'n"}'), BlockStop(0)]
    assert deltas(*events, stage=encoder(facts=facts)) == [
        opening(0, "call_a", "f", "input", "custom"),
        call(0, "a", "input", "custom"),
        call(0, "\n", "input", "custom"),
    ]


def test_reasoning_of_chat_goes_on_where_it_was_cut_in_two() -> None:
    thoughts: list[Event] = []
    for index, text in enumerate(("a", "b")):
        thoughts += [BlockStart(index, ReasoningBlock()), ReasoningDelta(index, text), BlockStop(index)]
    assert deltas(*thoughts) == [{"reasoning_content": "a"}, {"reasoning_content": "b"}]


def test_reasoning_that_may_be_signed_is_told_twice_so_that_it_comes_back_with_its_proof() -> None:
    thought = [BlockStart(0, ITEM), ReasoningDelta(0, "a"), ReasoningDelta(0, "b"), SignatureDelta(0, "S")]
    assert deltas(*thought, BlockStop(0)) == [
        {"reasoning_content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]},
        {"reasoning_content": "b", "reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "S", "index": 0}]},
    ]


def test_two_items_of_reasoning_are_parted_by_a_blank_line() -> None:
    """behaviours.md C11, C19: an empty item parts nothing."""
    events: list[Event] = []
    for index, text in enumerate(("a", "", "b")):
        events += [BlockStart(index, ITEM), ReasoningDelta(index, text), BlockStop(index)]
    assert [one["reasoning_content"] for one in deltas(*events)] == ["a", "\n\nb"]


def test_redacted_reasoning_is_a_detail_of_its_own() -> None:
    events: list[Event] = []
    for index, blob in enumerate(("D", "E")):
        events += [BlockStart(index, RedactedReasoningBlock(blob)), BlockStop(index)]
    assert deltas(*events) == [
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "D", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "index": 1}]},
    ]


CITED: Json = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}


def test_citations_are_written_all_at_once_behind_the_text_in_places_of_the_whole_text() -> None:
    more = [BlockStart(1, TextBlock()), TextDelta(1, "ab"), AnnotationDelta(1, CITED)]
    nested = {"type": "url_citation", "url_citation": {"url": "v", "start_index": 0, "end_index": 3, "x": 1}}
    made = deltas(*HI, *more, AnnotationDelta(1, nested), AnnotationDelta(1, {"type": "url_citation", "url": "w"}))
    assert made[-1] == {
        "annotations": [
            {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 2, "end_index": 3}},
            {
                "type": "url_citation",
                "url_citation": {"url": "v", "title": "", "start_index": 0, "end_index": 3, "x": 1},
            },
            {"type": "url_citation", "url_citation": {"url": "w", "title": "", "start_index": 2, "end_index": 4}},
        ]
    }


PAGE: Json = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "c"}


def test_a_page_that_another_api_cites_is_on_all_of_its_text() -> None:
    cited = [BlockStart(1, TextBlock()), TextDelta(1, "a"), AnnotationDelta(1, PAGE), TextDelta(1, "b"), BlockStop(1)]
    more = [BlockStart(2, TextBlock()), TextDelta(2, "cd"), AnnotationDelta(2, {**PAGE, "title": None}), BlockStop(2)]
    note = {"url": "u", "title": "t", "start_index": 2, "end_index": 4}
    assert deltas(*HI, *cited, *more)[-1] == {
        "annotations": [
            {"type": "url_citation", "url_citation": note},
            {"type": "url_citation", "url_citation": {"url": "u", "title": "u", "start_index": 4, "end_index": 6}},
        ]
    }
    assert losses(*HI, *cited, *END) == [("annotation", "translated")]
    big = {**PAGE, "url": "x" * DEFAULT_LIMITS.held_bytes}
    assert losses(*HI[:2], AnnotationDelta(0, big), HI[-1], *END) == [("annotation", "dropped")]


@pytest.mark.parametrize("note", [{"type": "file_path"}, {"type": "url_citation"}, {"type": "url_citation", "url": 5}])
def test_a_note_that_chat_does_not_have_is_recorded(note: Json) -> None:
    assert losses(*HI[:2], AnnotationDelta(0, note), BlockStop(0), *END) == [("annotation", "dropped")]


def test_citations_are_held_in_a_bound_and_what_is_beyond_is_recorded() -> None:
    ledger = Ledger()
    stage = DIALECT.encoder(facts=RequestFacts(), ledger=ledger, limits=DEFAULT_LIMITS)
    played = play(stage, START, HI[0], TextDelta(0, "x"), AnnotationDelta(0, CITED))
    assert played[-1] == []
    assert 0 < stage.held < 200
    stage.receive([AnnotationDelta(0, {**CITED, "title": "x" * DEFAULT_LIMITS.held_bytes})])
    assert [(entry.path, entry.action) for entry in ledger] == [("annotation", "dropped")]
    stage.receive([BlockStop(0), *END])
    assert stage.held == 0


def test_citations_of_a_message_that_failed_are_recorded() -> None:
    assert losses(*HI[:2], AnnotationDelta(0, CITED), BOOM) == [("annotation", "dropped")]


def test_an_item_of_a_tool_that_a_provider_runs_is_recorded() -> None:
    item: list[Event] = [BlockStart(0, ServerBlock("responses", {"type": "x"})), ArgumentsDelta(0, "x"), BlockStop(0)]
    assert deltas(*item) == []
    assert losses(*item, *END) == [("ServerBlock[0] x", "dropped")]


@pytest.mark.parametrize(
    ("reason", "text", "called", "cut"),
    [
        (StopReason.END_TURN, "stop", "tool_calls", "stop"),
        (StopReason.TOOL_USE, "stop", "tool_calls", "stop"),
        (StopReason.STOP_SEQUENCE, "stop", "tool_calls", "stop"),
        (StopReason.PAUSE_TURN, "stop", "tool_calls", "stop"),
        (StopReason.MAX_TOKENS, "length", "length", "length"),
        (StopReason.CONTEXT_WINDOW, "length", "length", "length"),
        (StopReason.REFUSAL, "content_filter", "content_filter", "content_filter"),
    ],
)
def test_the_finish_says_tool_calls_exactly_if_a_whole_one_was_written(
    reason: StopReason, text: str, called: str, cut: str
) -> None:
    end = MessageDelta(reason)
    assert [finish(*events, end) for events in (HI, [*HI, *WHOLE], CUT)] == [text, called, cut]


def test_a_refusal_that_was_said_ends_the_turn_unless_a_call_was_written() -> None:
    """dialects.md A2.4."""
    said: list[Event] = [BlockStart(1, TextBlock()), RefusalDelta(1, "no"), BlockStop(1)]
    end = MessageDelta(StopReason.REFUSAL)
    assert finish(*said, end) == "stop"
    assert finish(*said, *CUT, end) == finish(*said, *WHOLE, end) == "content_filter"


@pytest.mark.parametrize("reason", [StopReason.STOP_SEQUENCE, StopReason.PAUSE_TURN, StopReason.CONTEXT_WINDOW])
def test_a_stop_reason_that_is_lost_in_part_is_recorded(reason: StopReason) -> None:
    assert losses(MessageDelta(reason), MessageStop()) == [("stop reason", "translated")]


def test_a_failure_is_an_error_and_nothing_comes_behind_it() -> None:
    error = {"message": "boom", "type": "server_error", "param": None, "code": None}
    stage = encoder()
    assert told(START, *WHOLE[:2], BOOM, TextDelta(9, "x"), MessageStop(), BOOM, stage=stage)[3:] == [{"error": error}]
    assert stage.ended
    assert told(BOOM) == [{"error": error}]


@pytest.mark.parametrize("cause", [None, StreamError(ErrorKind.TIMEOUT, "idle", retryable=True)])
def test_an_end_without_a_terminal_is_an_error(cause: StreamError | None) -> None:
    made = payloads(play(encoder(), START, EOF if cause is None else EOF(cause))[-1])
    assert [chunk["error"]["message"] for chunk in made] == [
        "idle" if cause else "the stream ended before its terminal"
    ]


def test_a_keep_alive_is_a_comment() -> None:
    stage = encoder()
    assert play(stage, [Ping()]) == [[PING]]
    assert stage.idle() == [PING]
    assert SSEEncoder().receive([PING, Frame(b""), Frame(b"[DONE]")]) == [b": keep-alive\n\ndata: [DONE]\n\n"]
    stage.receive([START, *END])
    assert stage.idle() == []


@pytest.mark.parametrize(
    "event", [TextDelta(0, "x"), RefusalDelta(0, "x"), ReasoningDelta(0, "x"), ArgumentsDelta(0, "x"), BlockStop(0)]
)
def test_what_belongs_to_no_open_block_is_our_fault(event: Event) -> None:
    with pytest.raises(StageError, match=f"{type(event).__name__} for block 0, which is not open") as raised:
        encoder().receive([START, event])
    assert payloads(raised.value.made)[0]["choices"][0]["delta"] == ROLE


def test_a_block_that_opens_twice_is_our_fault() -> None:
    with pytest.raises(StageError, match="BlockStart for block 0, which is open"):
        encoder().receive([START, CALL, CALL])


@pytest.mark.parametrize("event", [TextDelta(0, "x"), RefusalDelta(0, "x"), ReasoningDelta(0, "x")])
def test_a_delta_that_does_not_fit_its_block_is_nothing(event: Any) -> None:
    assert deltas(CALL, event, BlockStop(0)) == [opening(0, "call_a", "f"), call(0, "{}")]


def test_the_encoder_keeps_the_law_of_a_stage() -> None:
    check_stage(lambda: encoder(), [START, *HI, *WHOLE, BlockStart(1, ITEM), ReasoningDelta(1, "r"), *END])


def test_the_dialect_hands_out_a_fresh_encoder() -> None:
    ledger = Ledger()
    facts = RequestFacts(model="asked")
    one, other = (DIALECT.encoder(facts=facts, ledger=ledger, limits=DEFAULT_LIMITS) for _ in range(2))
    assert isinstance(one, ChatEncoder)
    assert one is not other
    assert one.facts is facts
    assert one.ledger is ledger
