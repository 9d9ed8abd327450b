"""How a Chat stream ends: finish reasons, stop sequences, counts, errors."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    Usage,
)
from pipeline.limits import Limits
from pipeline.testing import EOF, play
from stages.dialects.chat.normalize import ChatNormalizer
from stages.dialects.chat.stops import STOP_REASONS
from tests.chat_read import CUT, END, START, events, lost, normalized
from tests.support import (
    DONE,
    call,
    chunk,
    finish,
    frame,
    text,
    usage,
)

# Endings


@pytest.mark.parametrize(("reason", "stop"), sorted(STOP_REASONS.items()))
def test_every_finish_reason_of_the_table_is_known_in_any_case(reason: str, stop: StopReason) -> None:
    for word in (reason, reason.upper(), f"{reason}: more"):
        stage = ChatNormalizer()
        assert events(text("a"), finish(word), stage=stage)[-2] == MessageDelta(stop)
        assert len(stage.ledger) == 0


@pytest.mark.parametrize("reason", ["load", "unheard of", "function_call_filter: MALFORMED_FUNCTION_CALL"])
def test_an_unknown_finish_reason_ends_the_turn_and_is_recorded(reason: Any) -> None:
    stage = ChatNormalizer()
    assert events(text("a"), finish(reason), stage=stage)[-2] == MessageDelta(StopReason.END_TURN)
    assert [entry.path for entry in stage.ledger] == ["finish_reason"]


@pytest.mark.parametrize("reason", [False, True, 0, 7, [], {}])
def test_a_finish_reason_that_is_no_text_is_none_and_is_recorded(reason: Any) -> None:
    stage = ChatNormalizer()
    stage.receive([frame(text("a")), frame(chunk({"content": "b"}, finish=reason))])
    assert [(entry.path, entry.action) for entry in stage.ledger] == [("finish_reason", "ignored")]
    assert [type(event) for event in stage.receive_eof()] == [StreamError]


@pytest.mark.parametrize("reason", ["", " ", "null", None])
def test_a_blank_finish_reason_is_none(reason: Any) -> None:
    stage = ChatNormalizer()
    stage.receive([frame(chunk({"content": "b"}, finish=reason))])
    assert [type(event) for event in stage.receive_eof()] == [StreamError]


@pytest.mark.parametrize(
    ("reasons", "stop"),
    [
        (["stop", "tool_calls"], StopReason.TOOL_USE),
        (["tool_calls", "stop"], StopReason.TOOL_USE),
        (["stop", "length"], StopReason.MAX_TOKENS),
        (["length", "stop"], StopReason.MAX_TOKENS),
        (["stop", "stop"], StopReason.END_TURN),
    ],
)
def test_of_two_finishes_the_one_that_says_more_wins(reasons: Sequence[str], stop: StopReason) -> None:
    made = events(call(0, "i", "f", "{}"), *map(finish, reasons), DONE)
    assert made.count(BlockStop(0, stop is not StopReason.MAX_TOKENS or reasons[0] == "stop")) == 1
    assert made[-2:] == [MessageDelta(stop), MessageStop()]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_limit_or_a_refusal_stops_a_call_that_may_be_unfinished(reason: str) -> None:
    assert BlockStop(0, complete=False) in events(call(0, "i", "f", '{"x":'), finish(reason), DONE)


def test_a_call_behind_the_finish_is_stopped_at_the_end() -> None:
    assert events(finish(), call(0, "i", "f", "{}"), DONE)[-3:] == [BlockStop(0), *END]


@pytest.mark.parametrize("done", [DONE, " [DONE] ", "[DONE]\0", "[DONE][DONE]"])
def test_done_ends_the_message(done: str) -> None:
    steps = normalized(text("a"), finish(), done, text("b"))
    assert steps[2] == [BlockStop(0), *END]
    assert steps[3:] == [[], []]


def test_done_without_a_finish_ends_the_turn_and_is_recorded() -> None:
    stage = ChatNormalizer()
    assert events(text("a"), DONE, stage=stage)[-3:] == [BlockStop(0), *END]
    assert [(entry.path, entry.action) for entry in stage.ledger] == [("finish_reason", "supplied")]


def test_done_alone_is_an_empty_message() -> None:
    facts = RequestFacts(model="asked", usage=Usage(3))
    assert events(DONE, stage=ChatNormalizer(facts=facts)) == [MessageStart("", "asked", Usage(3)), *END]


def test_the_end_behind_a_finish_completes_the_message() -> None:
    assert events(text("a"), finish())[-3:] == [BlockStop(0), *END]


def test_a_lost_connection_behind_a_finish_completes_the_message() -> None:
    lost_connection = StreamError(ErrorKind.CUT, "the connection was lost")
    assert play(ChatNormalizer(), frame(finish()), EOF(lost_connection))[1] == END


@pytest.mark.parametrize("finished", [True, False])
def test_a_failure_is_told_also_behind_a_finish(finished: bool) -> None:
    cause = StreamError(ErrorKind.LIMIT, "a frame is too long")
    assert play(ChatNormalizer(), frame(finish() if finished else text("a")), EOF(cause))[1] == [cause]


def test_the_end_before_the_finish_is_a_cut() -> None:
    assert normalized(text("a"))[-1] == [CUT]
    assert normalized() == [[CUT]]


# Stop sequences and refusals


@pytest.mark.parametrize("where", ["stop_sequence", "matched_stop", "stop_reason"])
def test_a_stop_sequence_beside_the_delta_is_told(where: str) -> None:
    last = finish()
    last["choices"][0][where] = "END"
    assert events(text("a"), last)[-2] == MessageDelta(StopReason.STOP_SEQUENCE, "END")


def test_a_stop_sequence_by_its_own_name_may_be_any_word() -> None:
    for word in ("stop", "</s>"):
        last = finish()
        last["choices"][0]["stop_sequence"] = word
        assert events(text("a"), last)[-2] == MessageDelta(StopReason.STOP_SEQUENCE, word)


def test_a_stop_sequence_within_the_delta_is_told() -> None:
    assert events(chunk({"stop_sequence": "END"}, "stop"))[-2] == MessageDelta(StopReason.STOP_SEQUENCE, "END")
    assert events(chunk({"stop_sequence": "END"}, "length"))[-2] == MessageDelta(StopReason.MAX_TOKENS)


@pytest.mark.parametrize(
    "beside",
    [
        {"stop_reason": 154827},
        {"stop_reason": "Stop"},
        {"matched_stop": 1},
        {"matched_stop": "<|im_end|>"},
        {"stop_reason": "</s>"},
        {"stop_sequence": ""},
        {"odd": 1},
    ],
)
def test_a_token_and_a_reason_again_are_no_stop_sequence(beside: dict[str, Any]) -> None:
    last = finish()
    last["choices"][0] |= beside
    assert events(text("a"), last)[-2] == MessageDelta(StopReason.END_TURN)


def test_a_refusal_is_the_stop_reason_of_a_turn_that_ended() -> None:
    refused = chunk({"refusal": "no"})
    assert events(refused, finish("stop"))[-2] == MessageDelta(StopReason.REFUSAL)
    assert events(refused, finish("length"))[-2] == MessageDelta(StopReason.MAX_TOKENS)
    assert events(refused, finish("tool_calls"))[-2] == MessageDelta(StopReason.REFUSAL)
    assert events(refused, call(0, "a", "f", "{}"), finish("tool_calls"))[-2] == MessageDelta(StopReason.TOOL_USE)


# Counts


@pytest.mark.parametrize(
    "counted",
    [
        usage(),
        {"usage": usage()["usage"]},
        {**finish(), "usage": usage()["usage"]},
        {**text(""), "choices": [{"delta": {}, "finish_reason": None, "usage": usage()["usage"]}]},
        {**text(""), "x_groq": {"id": "r", "usage": usage()["usage"]}},
    ],
)
def test_counts_are_read_wherever_they_stand(counted: dict[str, Any]) -> None:
    assert events(text("a"), counted, finish(), DONE)[-2] == MessageDelta(
        StopReason.END_TURN, None, Usage(10, output=5)
    )


@pytest.mark.parametrize("later", [None, {}, 7, {"prompt_tokens": 0, "completion_tokens": 0}, {"cost": 1}])
def test_nothing_behind_counts_erases_them(later: Any) -> None:
    assert events(usage(), {**finish(), "usage": later})[-2] == MessageDelta(
        StopReason.END_TURN, None, Usage(10, output=5)
    )


def test_counts_replace_and_are_never_added() -> None:
    counted = [{**text("a"), "usage": {"prompt_tokens": 10, "completion_tokens": n}} for n in (1, 2, 3)]
    assert events(*counted, finish())[-2] == MessageDelta(StopReason.END_TURN, None, Usage(10, output=3))


def test_zeros_are_counts_if_there_are_no_others() -> None:
    assert events(usage(0, 0), finish())[-2] == MessageDelta(StopReason.END_TURN, None, Usage())


@pytest.mark.parametrize("name", ["citations", "search_results", "images", "related_questions"])
def test_what_a_chunk_says_beside_its_choices_for_the_reader_is_recorded(name: str) -> None:
    for told in ({**text("a"), name: ["u"]}, {**finish(), name: ["u"]}, {**usage(), name: ["u"]}):
        stage = ChatNormalizer()
        events(told, stage=stage)
        assert (name, "dropped") in {(entry.path, entry.action) for entry in stage.ledger}
    assert lost({**usage(), name: []}) == set()


# Errors


BOOM = StreamError(ErrorKind.API, "boom", "", retryable=True)


def test_an_error_ends_the_stream_behind_all_that_came() -> None:
    steps = normalized(text("a"), {"error": {"message": "boom"}}, text("b"), DONE)
    assert steps[1:] == [[BOOM], [], [], []]


def test_what_a_chunk_says_beside_its_error_comes_first() -> None:
    failed = {**chunk({"content": "a"}, "error"), "error": {"message": "boom"}}
    assert events(failed) == [START, BlockStart(0, TextBlock()), TextDelta(0, "a"), BOOM]
    groq = {**text("a"), "x_groq": {"error": "boom"}}
    assert events(groq) == [START, BlockStart(0, TextBlock()), TextDelta(0, "a"), BOOM]


@pytest.mark.parametrize(
    ("failed", "name"),
    [
        ("boom", b"error"),
        ('"boom"', b"error"),
        ("{boom", b"error"),
        ({"choices": None, "object": "error", "message": "boom"}, b""),
        ({"choices": None, "base_resp": {"status_code": 1000, "status_msg": "boom"}}, b""),
        ({**text("a"), "base_resp": {"status_code": 1000, "status_msg": "boom"}}, b""),
    ],
)
def test_an_error_in_any_form_is_told(failed: Any, name: bytes) -> None:
    error = play(ChatNormalizer(), frame(failed, name))[0][-1]
    assert isinstance(error, StreamError)
    assert "boom" in error.message


def test_a_chunk_under_another_event_name_is_a_chunk() -> None:
    assert play(ChatNormalizer(), *(frame(text(word), b"message") for word in "ab"), frame(DONE, b"done")) == [
        [START, BlockStart(0, TextBlock()), TextDelta(0, "a")],
        [TextDelta(0, "b")],
        [BlockStop(0), *END],
    ]
    fragments = [call(0, "i", "f", ""), call(0, arguments="{}")]
    steps = play(ChatNormalizer(), *(frame(one, b"message") for one in fragments))
    assert steps[1] == [ArgumentsDelta(0, "{}")]


def test_a_finish_reason_that_is_a_failure_fails_the_stream() -> None:
    choices = [{"delta": {"content": "a"}, "finish_reason": "error"}, {"delta": {"content": "b"}}]
    assert events({"choices": choices}, DONE)[-2:] == [
        TextDelta(0, "a"),
        StreamError(ErrorKind.API, "the upstream ended with finish reason 'error'", "error", retryable=True),
    ]


def test_a_frame_that_starts_like_json_and_is_none_fails_behind_what_came_in_the_same_read() -> None:
    with pytest.raises(UpstreamError, match="starts like JSON") as raised:
        ChatNormalizer().receive([frame(text("a")), frame('{"id":')])
    assert raised.value.made == [START, BlockStart(0, TextBlock()), TextDelta(0, "a")]
    assert (raised.value.code, raised.value.kind) == ("invalid_json", ErrorKind.INVALID_RESPONSE)
    assert raised.value.__cause__ is not None


def test_several_json_texts_in_one_frame_are_parted_and_recorded() -> None:
    one, two = (frame(text(word)).data for word in "ab")
    stage = ChatNormalizer()
    (made, rest) = play(stage, Frame(one + b"\n" + two + b" [DONE]"), EOF)
    assert made[2:] == [TextDelta(0, "a"), TextDelta(0, "b"), BlockStop(0), *END]
    assert rest == []
    assert ("frame", "parted") in {(entry.path, entry.action) for entry in stage.ledger}


def test_nothing_behind_an_error_in_the_same_frame_is_read() -> None:
    (made,) = play(ChatNormalizer(), Frame(b'{"error":"boom"}{"choices":[]}[DONE]'))
    assert made == [BOOM]


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="deeper than 200"):
        ChatNormalizer().receive([Frame(b'{"a":' * 201 + b"1" + b"}" * 201)])


def test_a_call_that_waits_for_its_name_is_recorded_when_the_stream_fails() -> None:
    stage = ChatNormalizer()
    assert events(call(0, "i", arguments='{"x":1}'), stage=stage) == [START, CUT]
    assert stage.held == 0
    assert {(entry.path, entry.action) for entry in stage.ledger} == {("tool_calls[]", "dropped")}


def test_what_waits_for_a_name_is_held_within_a_bound() -> None:
    stage = ChatNormalizer(limits=Limits(held_bytes=4))
    play(stage, frame(call(0, arguments="1234")))
    assert stage.held == 4
    with pytest.raises(LimitExceeded, match="wait for their call's name"):
        stage.receive([frame(call(0, arguments="5"))])
