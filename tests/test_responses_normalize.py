"""The responses normalizer: what servers send, as canonical events."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    AnnotationDelta,
    BlockStart,
    BlockStop,
    Carry,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.testing import EOF, check_stage, play
from stages.dialects.responses import DIALECT
from stages.dialects.responses.normalize import STOP_REASONS, ResponsesNormalizer
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
    events,
    frame,
    message,
    normalized,
    raw,
    reasoning,
    refusal,
    response,
    summary,
    terminal,
    text,
)

START = MessageStart("resp_1", "m")
HI = [BlockStart(0, TextBlock()), TextDelta(0, "Hi")]
CUT = StreamError(ErrorKind.CUT, "the upstream ended before its terminal event", "stream_cut", retryable=True)
COUNTS = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5}


def losses(*items: Any) -> list[tuple[str, str, str]]:
    ledger = Ledger()
    events(*items, stage=ResponsesNormalizer(ledger=ledger))
    return [(entry.path, entry.action, entry.reason) for entry in ledger]


def test_a_stream_from_its_start_to_its_end() -> None:
    assert normalized(created(), added(message()), text("Hi"), done(message("Hi")), terminal(usage=COUNTS)) == [
        [START],
        [Carry("responses", frame(added(message())), opens=True)],
        HI,
        [BlockStop(0)],
        [MessageDelta(StopReason.END_TURN, usage=Usage(input=6, cache_read=4, output=5)), MessageStop()],
        [],
    ]


def test_the_message_starts_once() -> None:
    made = normalized(
        event("response.queued", response=response("queued")), created(), event("response.in_progress"), terminal()
    )
    assert made[0] == [START]
    assert [type(step[0]) for step in made[1:3]] == [Carry, Carry]


@pytest.mark.parametrize("first", [text("Hi"), done(message("Hi")), terminal(output=[message("Hi")])])
def test_a_stream_without_its_first_event_starts_at_what_comes_first(first: Json) -> None:
    facts = RequestFacts(model="asked", usage=Usage(input=7))
    made = events(first, terminal(), stage=ResponsesNormalizer(facts=facts))
    ended = first["type"] == "response.completed"
    assert made[0] == MessageStart("resp_1" if ended else "", "m" if ended else "asked", Usage(input=7))
    assert made[1:3] == HI


def test_the_start_tells_the_usage_that_its_own_event_brings() -> None:
    facts = RequestFacts(usage=Usage(input=7))
    begun = event("response.created", response=response("in_progress", usage=COUNTS))
    assert events(begun, stage=ResponsesNormalizer(facts=facts))[0] == MessageStart(
        "resp_1", "m", Usage(input=6, cache_read=4, output=5)
    )


def test_odd_ids_and_models_are_none() -> None:
    begun = event("response.created", response={"id": 3, "model": None})
    assert events(begun, stage=ResponsesNormalizer(facts=RequestFacts(model="asked")))[0] == MessageStart("", "asked")
    assert events(event("response.created", response="x"))[0] == MessageStart("", "")


def test_the_type_alone_tells_an_event() -> None:
    named = [Frame(frame(item).data, b"anything") for item in (created(), text("Hi"), terminal())]
    assert [one for step in play(ResponsesNormalizer(), *named) for one in step] == events(
        created(), text("Hi"), terminal()
    )


@pytest.mark.parametrize("kind", ["keepalive", "ping"])
def test_a_keep_alive_is_a_ping(kind: str) -> None:
    assert events(event(kind), created())[0] == Ping()


@pytest.mark.parametrize(
    "odd",
    [
        event("weird.event", x=1),
        event("response.reasoning_part.added"),
        event("response.code_interpreter_call_code.delta", delta="x", output_index=0),
        event("response.output_item.added", item=3),
        event("response.output_item.done"),
        event("response.content_part.done", part=3),
        event("response.output_text.annotation.added", annotation="x"),
        text(""),
        text(None),
        text({"text": "x"}),
    ],
)
def test_every_frame_makes_an_event(odd: Json) -> None:
    opens = odd["type"] == "response.output_item.added"
    assert normalized(created(), odd)[1] == [Carry("responses", frame(odd), opens=opens)]


def test_a_delta_that_is_no_text_is_recorded() -> None:
    assert losses(created(), text(3), terminal()) == [("delta", "dropped", "no text")]


def test_events_of_parts_reach_their_items() -> None:
    part = event(
        "response.content_part.done", output_index=0, content_index=0, part={"type": "reasoning_text", "text": "A"}
    )
    note = event("response.output_text.annotation.added", output_index=1, content_index=0, annotation={"type": "x"})
    whole = event("response.output_text.done", output_index=1, content_index=0, text="Hi!")
    made = events(created(), part, text("Hi", 1) | {"logprobs": [{"token": "Hi"}]}, note, whole, terminal())
    assert made[1:7] == [
        BlockStart(0, ReasoningBlock(splittable=False)),
        ReasoningDelta(0, "A"),
        BlockStart(1, TextBlock()),
        TextDelta(1, "Hi"),
        AnnotationDelta(1, {"type": "x"}),
        TextDelta(1, "!"),
    ]


def test_events_of_reasoning_and_calls_reach_their_items() -> None:
    told = event("response.reasoning_text.done", output_index=0, item_id="rs1", content_index=0, text="Ab")
    delta = event("response.custom_tool_call_input.delta", output_index=1, item_id="ctc1", delta="x")
    input_done = event("response.custom_tool_call_input.done", output_index=1, item_id="ctc1", input="xy")
    one = custom("xy")
    made = events(
        created(),
        raw("A"),
        told,
        delta,
        input_done,
        done(one, 1),
        arguments_done('{"x":1}', 2),
        done(call(), 2),
        terminal(),
    )
    assert [type(item.block) for item in made if isinstance(item, BlockStart)] == [
        ReasoningBlock,
        ToolUseBlock,
        ToolUseBlock,
    ]


def test_a_response_that_came_whole_makes_the_events_of_its_stream() -> None:
    whole = response(output=[message("Hi")])
    assert ResponsesNormalizer().whole(whole) == events(event("response.completed", response=whole))


def test_what_names_the_same_as_the_delta_before_goes_the_short_way_to_the_same_end() -> None:
    odd = rb'{"type":"response.output_text.delta","output_index":0,"item_id":"m1","content_index":0,"delta":%s}'
    stream = [text("a"), text("b"), text(""), odd % rb'"\ud83d"', odd % rb'"\ude00"', odd % b"7", text("c"), text("d")]
    said = "".join(one.text for one in events(created(), *stream, terminal()) if isinstance(one, TextDelta))
    assert said == "ab\U0001f600cd"


def test_logprobs_on_the_short_way_are_read() -> None:
    told = ("logprobs", "dropped", "no text that they could belong to")
    assert losses(created(), text("a"), text("b") | {"logprobs": [{}]}, terminal()) == [told]


@pytest.mark.parametrize(
    ("odd", "action", "reason"),
    [
        (b"hello", "ignored", "data that is no JSON"),
        ([1, 2], "ignored", "JSON that is no event"),
        ({"x": 1}, "ignored", "JSON that is no event"),
        ({"type": ["x"]}, "ignored", "JSON that is no event"),
    ],
)
def test_what_is_no_event_is_recorded(odd: Any, action: str, reason: str) -> None:
    assert losses(created(), odd, terminal()) == [("frame", action, reason)]


def test_a_frame_that_starts_like_json_and_does_not_parse_fails_the_stream() -> None:
    stage = ResponsesNormalizer()
    with pytest.raises(UpstreamError, match="does not parse") as raised:
        stage.receive([frame(created()), frame(b'{"type":"resp')])
    assert raised.value.made == [START]
    assert stage.receive_eof(CUT) == [CUT]


def test_a_sentinel_says_nothing() -> None:
    made = normalized(created(), b"[DONE]", text("Hi"), terminal())
    assert made[1:3] == [[Carry("responses", frame(b"[DONE]"))], HI]


def test_events_that_lack_a_blank_line_between_them_are_read() -> None:
    both = frame(text("Hi")).data + b"\n" + frame(terminal()).data + b"\n" + frame(text("no")).data + b"[DONE]"
    made = normalized(created(), both)
    assert made[1] == [*HI, BlockStop(0), MessageDelta(StopReason.END_TURN), MessageStop()]


@pytest.mark.parametrize("kind", ["response.completed", "response.done"])
def test_nothing_comes_behind_the_terminal(kind: str) -> None:
    stage = ResponsesNormalizer()
    made = stage.receive([frame(created()), frame(event(kind)), frame(text("no"))])
    assert made == [START, MessageDelta(StopReason.END_TURN), MessageStop()]
    assert stage.ended
    assert stage.receive_eof() == []


def test_a_whole_response_where_a_stream_was_asked_for_is_read() -> None:
    assert events(response(output=[message("Hi")]))[:3] == [START, *HI]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (terminal(), StopReason.END_TURN),
        (terminal(output=[call('{"x":1}')]), StopReason.TOOL_USE),
        (terminal(output=[custom("x")]), StopReason.TOOL_USE),
        (terminal(output=[refusal("no")]), StopReason.REFUSAL),
        (terminal(output=[refusal("no"), call('{"x":1}')]), StopReason.TOOL_USE),
        (event("response.completed", response=response("incomplete")), StopReason.MAX_TOKENS),
        (event("response.incomplete", response=response("completed")), StopReason.END_TURN),
        (event("response.incomplete"), StopReason.MAX_TOKENS),
        (event("response.done", response=response("incomplete")), StopReason.MAX_TOKENS),
        (event("response.completed", response=response("weird")), StopReason.END_TURN),
        (event("response.completed", response=response("queued")), StopReason.END_TURN),
        (event("response.completed", response={"status": ["x"]}), StopReason.END_TURN),
        (event("response.incomplete", response=response("in_progress")), StopReason.MAX_TOKENS),
        (terminal("incomplete", incomplete_details={"reason": "steered"}), StopReason.MAX_TOKENS),
        (event("response.completed", response={"output": 3}), StopReason.END_TURN),
        *((terminal("incomplete", incomplete_details={"reason": word}), stop) for word, stop in STOP_REASONS.items()),
    ],
)
def test_the_stop_reason_is_told_by_the_status_and_the_output(end: Json, reason: StopReason) -> None:
    made = events(created(), end)
    assert made[-2:] == [MessageDelta(reason), MessageStop()]


def test_what_the_stop_reason_does_not_say_is_recorded() -> None:
    told = ("incomplete_details.reason", "translated", "an unknown one is a limit")
    assert losses(created(), terminal("incomplete")) == [told]
    assert losses(created(), terminal("incomplete", incomplete_details={"reason": "length"})) == []
    queued = event("response.completed", response=response("queued"))
    assert losses(created(), queued) == [("status", "translated", "an answer that is queued ends the turn")]


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (
            terminal("failed", error={"code": "server_error", "message": "boom"}),
            StreamError(ErrorKind.API, "boom", "server_error", retryable=True),
        ),
        (
            event(
                "response.completed", response=response("failed", error={"code": "rate_limit_exceeded", "message": "x"})
            ),
            StreamError(ErrorKind.RATE_LIMIT, "x", "rate_limit_exceeded", retryable=True),
        ),
        (
            terminal("incomplete", error={"code": "server_error", "message": "boom"}),
            StreamError(ErrorKind.API, "boom", "server_error", retryable=True),
        ),
        (
            terminal("cancelled"),
            StreamError(ErrorKind.API, "the upstream ended the response as cancelled", "cancelled"),
        ),
        (
            event("response.failed", response=response("in_progress")),
            StreamError(ErrorKind.API, "the upstream ended the response as in_progress", "in_progress", True),
        ),
        (
            event("response.failed"),
            StreamError(ErrorKind.API, "the upstream ended the response as failed", "failed", True),
        ),
        (
            event("error", code="server_is_overloaded", message="boom"),
            StreamError(ErrorKind.OVERLOADED, "boom", "server_is_overloaded", retryable=True),
        ),
        ({"error": {"message": "boom", "type": "x"}}, StreamError(ErrorKind.API, "boom", "x", retryable=True)),
    ],
)
def test_a_failure_ends_the_stream_behind_what_came(end: Json, error: StreamError) -> None:
    stage = ResponsesNormalizer()
    made = normalized(created(), text("Hi"), end, stage=stage)
    assert made[1:] == [HI, [error], []]
    assert stage.ended


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_whole_response_that_is_not_finished_is_cut(status: str) -> None:
    error = StreamError(ErrorKind.CUT, f"the upstream's answer is not finished: it is {status}", status, retryable=True)
    going = {**message("Hi"), "status": "in_progress"}
    for output, said in (
        ([], []),
        ([going], HI),
        ([message("Hi"), message(id="m2", status="in_progress")], [*HI, BlockStop(0)]),
    ):
        unfinished = response(status, output)
        assert events(unfinished) == [START, *said, error]
        assert ResponsesNormalizer().whole(unfinished) == [START, *said, error]


def test_a_call_in_a_response_that_is_not_finished_is_left_open() -> None:
    made = events(response("in_progress", [call('{"x":1}') | {"status": "in_progress"}]))
    assert not any(isinstance(one, BlockStop) for one in made)
    assert isinstance(made[-1], StreamError)


@pytest.mark.parametrize("status", [None, "weird", "completed"])
def test_a_whole_response_that_does_not_say_that_it_goes_on_is_complete(status: str | None) -> None:
    assert events({**response(output=[message("Hi")]), "status": status})[-1] == MessageStop()


def test_a_failure_tells_what_no_event_told() -> None:
    end = terminal("failed", [message("Hi")], error={"message": "boom"})
    assert events(created(), text("H"), end)[2:5] == [TextDelta(0, "H"), TextDelta(0, "i"), BlockStop(0)]


@pytest.mark.parametrize("status", ["completed", "incomplete", None])
def test_an_error_in_a_response_fails_it_whatever_it_says_of_itself(status: str | None) -> None:
    error = {"code": "server_error", "message": "EXPLODED"}
    failed = StreamError(ErrorKind.API, "EXPLODED", "server_error", retryable=True)
    said = {**response("completed", [message("Hi")], error=error), "status": status}
    for made in (events(created(), {**terminal(), "response": said}), ResponsesNormalizer().whole(said)):
        assert made[-1] == failed
        assert TextDelta(0, "Hi") in made


@pytest.mark.parametrize("nothing", [None, {}, {"code": None, "message": ""}, []])
def test_an_error_that_says_nothing_is_none(nothing: object) -> None:
    assert events(created(), terminal(error=nothing))[-1] == MessageStop()


def test_an_event_name_tells_an_error_that_is_plain_text() -> None:
    made = play(ResponsesNormalizer(), frame(created()), frame(b"boom", b"error"))
    assert made[1] == [StreamError(ErrorKind.API, "boom", "", retryable=True)]


def test_an_event_name_tells_an_error_without_a_type() -> None:
    made = play(ResponsesNormalizer(), frame(created()), frame({"message": "boom", "object": "x"}, b"error"))
    assert isinstance(made[1][0], StreamError)


@pytest.mark.parametrize("items", [[], [created()], [created(), text("Hi")], [created(), done(message("Hi"))]])
def test_an_end_before_the_terminal_is_a_cut(items: list[Json]) -> None:
    assert events(*items)[-1] == CUT


def test_a_cause_comes_behind_what_was_held() -> None:
    cause = StreamError(ErrorKind.TIMEOUT, "idle")
    half = rb'{"type":"response.output_text.delta","output_index":0,"item_id":"m1","content_index":0,"delta":"a\ud83d"}'
    assert play(ResponsesNormalizer(), frame(created()), frame(half), EOF(cause))[-1] == [TextDelta(0, "\ufffd"), cause]


def test_deep_json_fails_the_stream() -> None:
    stage = ResponsesNormalizer(limits=Limits(json_depth=3))
    with pytest.raises(LimitExceeded):
        stage.receive([frame({"type": "x", "a": [[[[]]]]})])


def test_the_dialect_hands_out_a_normalizer() -> None:
    facts = DIALECT.facts({"model": "m"})
    assert facts.model == "m"
    assert DIALECT.facts({"model": 3}).model == ""
    stage = DIALECT.normalizer(facts=facts, ledger=Ledger(), limits=DEFAULT_LIMITS)
    assert isinstance(stage, ResponsesNormalizer)
    assert b"[DONE]" in DIALECT.sentinels


def test_the_rules_of_every_stage_are_kept() -> None:
    items = [created(), added(call()), summary("A", 1), arguments('{"x"'), done(reasoning("A", blob="E"), 1)]
    check_stage(ResponsesNormalizer, [frame(item) for item in [*items, arguments(":1}"), terminal()]])
    check_stage(ResponsesNormalizer, [frame(item) for item in items])
