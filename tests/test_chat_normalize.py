"""The chat normalizer: what vendors send, as canonical events."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
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
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.testing import EOF, check_stage, play
from stages.dialects.chat import DIALECT
from stages.dialects.chat.normalize import ChatNormalizer
from stages.dialects.chat.stops import STOP_REASONS
from tests.support import (
    DONE,
    Chance,
    call,
    chat_streams,
    chunk,
    finish,
    fragment,
    frame,
    reasoning,
    text,
    usage,
)

START = MessageStart("c1", "m")
CUT = StreamError(ErrorKind.CUT, "the upstream ended before its finish", "stream_cut", retryable=True)
END: list[Event] = [MessageDelta(StopReason.END_TURN), MessageStop()]


def normalized(*items: Any, stage: ChatNormalizer | None = None) -> list[list[Event]]:
    """What each frame, and then the end, makes."""
    return play(stage or ChatNormalizer(), *map(frame, items), EOF)


def events(*items: Any, stage: ChatNormalizer | None = None) -> list[Event]:
    """All that a stream makes, but for frames that bring nothing."""
    steps = normalized(*items, stage=stage)
    return [event for step in steps for event in step if not isinstance(event, Carry)]


def said(*items: Any) -> list[Event]:
    """What stands between the start and the end."""
    made = events(*items, finish(), DONE)
    assert isinstance(made[0], MessageStart)
    assert isinstance(made[-1], MessageStop)
    return made[1:-2]


def lost(*items: Any) -> set[tuple[str, str]]:
    """What is recorded of a stream: path and action."""
    stage = ChatNormalizer()
    events(*items, finish(), DONE, stage=stage)
    return {(entry.path, entry.action) for entry in stage.ledger}


# The plain course


def test_a_stream_step_by_step() -> None:
    assert normalized(
        chunk({"role": "assistant", "content": ""}),
        reasoning("A"),
        reasoning("B"),
        text("c"),
        text("d"),
        call(0, "i", "f", ""),
        call(0, arguments="{}"),
        finish("tool_calls"),
        usage(),
        DONE,
    ) == [
        [START],
        [BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A")],
        [ReasoningDelta(0, "B")],
        [BlockStart(1, TextBlock()), TextDelta(1, "c")],
        [TextDelta(1, "d")],
        [BlockStart(2, ToolUseBlock("i", "f"))],
        [ArgumentsDelta(2, "{}")],
        [BlockStop(2)],
        [Carry("chat", frame(usage()))],
        [BlockStop(0), BlockStop(1), MessageDelta(StopReason.TOOL_USE, None, Usage(10, output=5)), MessageStop()],
        [],
    ]


def test_everything_in_one_chunk_comes_in_the_order_reasoning_text_refusal_calls() -> None:
    delta = {
        "tool_calls": [fragment(0, "i", "f", "{}")],
        "refusal": "no",
        "content": "T",
        "reasoning": "R",
    }
    assert events(chunk(delta, "stop", usage=usage()["usage"])) == [
        MessageStart("c1", "m", Usage(10, output=5)),
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "R"),
        BlockStart(1, TextBlock()),
        TextDelta(1, "T"),
        BlockStart(2, TextBlock()),
        RefusalDelta(2, "no"),
        BlockStart(3, ToolUseBlock("i", "f")),
        ArgumentsDelta(3, "{}"),
        BlockStop(3),
        BlockStop(0),
        BlockStop(1),
        BlockStop(2),
        MessageDelta(StopReason.REFUSAL, None, Usage(10, output=5)),
        MessageStop(),
    ]


@given(chat_streams())
def test_the_rules_of_every_stage(stream: Chance) -> None:
    check_stage(ChatNormalizer, [frame(item) for item in stream.items])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_reasoning_has_many_names(name: str) -> None:
    assert said(chunk({name: "A"}), chunk({name: "B", "content": ""}), chunk({name: "C"})) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        ReasoningDelta(0, "B"),
        ReasoningDelta(0, "C"),
        BlockStop(0),
    ]


def test_reasoning_that_repeats_what_came_is_read_once() -> None:
    steps = ["The user", "The user asks", "The user asks why"]
    deltas = said(*(chunk({"reasoning_details": [{"text": step}]}) for step in steps))[1:-1]
    assert deltas == [ReasoningDelta(0, part) for part in ("The user", " asks", " why")]


def test_reasoning_that_only_begins_alike_is_kept() -> None:
    deltas = said(chunk({"reasoning_content": "Wait"}), chunk({"reasoning_content": "Wait, no."}))[1:-1]
    assert deltas == [ReasoningDelta(0, "Wait"), ReasoningDelta(0, "Wait, no.")]


@pytest.mark.parametrize("odd", [b"NaN", b"-Infinity", b"1" * 5000])
def test_a_number_that_is_no_json_spoils_no_chunk(odd: bytes) -> None:
    stage = ChatNormalizer()
    data = b'{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":%s}]}' % odd
    assert TextDelta(0, "a") in stage.receive([Frame(data)])
    assert ("frame", "mended") in {(entry.path, entry.action) for entry in stage.ledger}


def test_the_list_of_a_content_is_read_part_by_part() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "A"}]}, {"type": "text", "text": "b"}, "c"]
    assert said(chunk({"content": parts, "reasoning": "A"})) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        BlockStart(1, TextBlock()),
        TextDelta(1, "b"),
        TextDelta(1, "c"),
        BlockStop(0),
        BlockStop(1),
    ]


def test_a_refusal_is_a_text_of_its_own() -> None:
    assert said(text("a"), chunk({"refusal": "I"}), chunk({"refusal": " won't"})) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        BlockStart(1, TextBlock()),
        RefusalDelta(1, "I"),
        RefusalDelta(1, " won't"),
        BlockStop(0),
        BlockStop(1),
    ]


def test_annotations_belong_to_the_text() -> None:
    assert said(chunk({"content": "a", "annotations": [{"type": "url_citation"}]}))[2] == AnnotationDelta(
        0, {"type": "url_citation"}
    )
    assert lost(chunk({"annotations": [{"type": "url_citation"}]})) == {("annotations[]", "dropped")}
    assert lost(chunk({"content": "a", "annotations": ["odd"]})) == {("annotations[]", "dropped")}


def test_a_call_goes_on_while_text_and_reasoning_come_between() -> None:
    assert said(call(0, "i", "f", '{"x":'), reasoning("R"), call(0, arguments="1}"), text("t")) == [
        BlockStart(0, ToolUseBlock("i", "f")),
        ArgumentsDelta(0, '{"x":'),
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, "R"),
        ArgumentsDelta(0, "1}"),
        BlockStart(2, TextBlock()),
        TextDelta(2, "t"),
        BlockStop(0),
        BlockStop(1),
        BlockStop(2),
    ]


def test_the_deprecated_function_call_is_one_call() -> None:
    deltas: list[dict[str, Any]] = [{"name": "f", "arguments": ""}, {"arguments": '{"x"'}, {"arguments": ":1}"}]
    made = said(*(chunk({"function_call": delta}) for delta in deltas))
    assert isinstance(made[0], BlockStart)
    assert isinstance(made[0].block, ToolUseBlock)
    assert made[0].block.name == "f"
    assert made[1:] == [ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}"), BlockStop(0)]


def test_the_deprecated_twin_of_a_call_is_not_another_call() -> None:
    delta = {"tool_calls": [fragment(0, "i", "f", "{}")], "function_call": {"name": "f", "arguments": "{}"}}
    assert said(chunk(delta)) == [BlockStart(0, ToolUseBlock("i", "f")), ArgumentsDelta(0, "{}"), BlockStop(0)]


def test_arguments_as_an_object_keep_their_numbers() -> None:
    raw = '{"id":12345678901234567890123,"f":1.0}'
    entry = f'{{"index":0,"id":"i","function":{{"name":"f","arguments":{raw}}}}}'
    data = f'{{"id":"c1","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{entry}]}}}}]}}'
    assert said(data)[1] == ArgumentsDelta(0, raw)


def test_one_entry_in_place_of_a_list_of_calls_is_read() -> None:
    assert said(chunk({"tool_calls": fragment(0, "i", "f", "{}")})) == [
        BlockStart(0, ToolUseBlock("i", "f")),
        ArgumentsDelta(0, "{}"),
        BlockStop(0),
    ]


# The start


def test_the_message_begins_at_the_first_chunk_that_says_something_of_it() -> None:
    filtered = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{}]}
    assert normalized(filtered, text("a"))[:2] == [
        [Carry("chat", frame(filtered))],
        [START, BlockStart(0, TextBlock()), TextDelta(0, "a")],
    ]


@pytest.mark.parametrize(
    ("members", "start"),
    [
        ({"id": None, "model": None}, MessageStart("", "asked")),
        ({"id": 7, "model": ["m"]}, MessageStart("", "asked")),
        ({"id": "x" * 1001, "model": "x" * 1001}, MessageStart("", "asked")),
        ({"id": "x" * 1000, "model": "x" * 1000}, MessageStart("x" * 1000, "x" * 1000)),
    ],
)
def test_an_odd_id_or_model_is_none(members: dict[str, Any], start: MessageStart) -> None:
    stage = ChatNormalizer(facts=RequestFacts(model="asked"))
    assert events({**text("a"), **members}, stage=stage)[0] == start
    assert bool(len(stage.ledger)) == (start.id == "" and members["id"] is not None)


def test_the_first_frames_counts_or_else_the_estimate_stand_in_the_start() -> None:
    facts = RequestFacts(usage=Usage(99))
    assert events(text("a"), stage=ChatNormalizer(facts=facts))[0] == MessageStart("c1", "m", Usage(99))
    counted = {**text("a"), "usage": {"prompt_tokens": 7}}
    assert events(counted, stage=ChatNormalizer(facts=facts))[0] == MessageStart("c1", "m", Usage(7))


def test_counts_of_later_frames_of_the_same_read_do_not_stand_in_the_start() -> None:
    (made,) = play(ChatNormalizer(), [frame(text("a")), frame(usage())])
    assert made[0] == START


# One odd member never drops a chunk


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"object": "ping"},
        chunk(None),
        chunk({"content": None, "role": None, "tool_calls": None, "function_call": None, "refusal": None}),
        chunk({"content": "", "reasoning_content": "", "reasoning": None, "tool_calls": []}),
        chunk({}, "null"),
        chunk({}, ""),
        {**text(""), "usage": None, "x_groq": None, "error": None, "base_resp": {"status_code": 0}},
        {"id": "c1", "choices": [{"index": 0, "content_filter_results": {}, "content_filter_offsets": {}}]},
    ],
)
def test_a_chunk_that_says_nothing_is_nothing(odd: dict[str, Any]) -> None:
    assert said(text("a"), odd, text("b")) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        TextDelta(0, "b"),
        BlockStop(0),
    ]
    assert lost(text("a"), odd, text("b")) == set()


@pytest.mark.parametrize(
    ("odd", "path"),
    [
        ({"choices": ["odd"]}, "choices[]"),
        ({"choices": [{"index": 0, "delta": "odd"}]}, "choices[].delta"),
        (chunk({"content": 7}), "content"),
        (chunk({"content": [{"type": "image_url"}]}), "content[]"),
        (chunk({"tool_calls": "odd"}), "tool_calls[]"),
        (chunk({"audio": {"data": "x"}}), "choices[].delta.audio"),
        ({"choices": [{"index": 1, "delta": {"content": "other"}}]}, "choices[]"),
        ({**text(""), "choices": [{**text("")["choices"][0], "logprobs": {"content": []}}]}, "choices[].logprobs"),
        ("[]", "frame"),
        ("7", "frame"),
        (": keepalive", "frame"),
        ("null", "frame"),
    ],
)
def test_what_cannot_be_read_is_recorded_and_nothing_else_is_lost(odd: Any, path: str) -> None:
    assert said(text("a"), odd, text("b"))[1:3] == [TextDelta(0, "a"), TextDelta(0, "b")]
    assert {name for name, _ in lost(text("a"), odd, text("b"))} == {path}


def test_what_a_chunk_says_beside_an_odd_member_is_read() -> None:
    choice = {"index": "0", "delta": {"content": "a", "tool_calls": [7], "annotations": 7}, "logprobs": 7, "odd": {}}
    assert said({"id": "c1", "model": "m", "choices": [choice], "usage": 7}) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        BlockStop(0),
    ]


@pytest.mark.parametrize("index", [0, None, "0", 0.0])
def test_the_first_choice_is_read(index: Any) -> None:
    assert said({"choices": [{"index": index, "delta": {"content": "a"}}]})[1] == TextDelta(0, "a")


def test_text_and_calls_may_stand_in_several_entries_for_the_one_choice() -> None:
    choices = [
        {"index": 0, "delta": {"content": "t"}, "finish_reason": "stop"},
        {"index": 0, "delta": {"tool_calls": [fragment(0, "i", "f", "{}")]}, "finish_reason": "tool_calls"},
    ]
    assert events({"id": "c1", "model": "m", "choices": choices}, DONE)[1:] == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "t"),
        BlockStart(1, ToolUseBlock("i", "f")),
        ArgumentsDelta(1, "{}"),
        BlockStop(1),
        BlockStop(0),
        MessageDelta(StopReason.TOOL_USE),
        MessageStop(),
    ]


def test_further_choices_are_recorded_and_not_mixed_in() -> None:
    both = {
        "choices": [text("a")["choices"][0], {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]
    }
    assert said(both) == [BlockStart(0, TextBlock()), TextDelta(0, "a"), BlockStop(0)]
    assert lost(both) == {("choices[]", "dropped")}


# A whole message in place of deltas


@pytest.mark.parametrize("delta", [{}, {"delta": None}, {"delta": {}}])
def test_a_whole_message_is_read_if_nothing_came_before(delta: dict[str, Any]) -> None:
    message = {"reasoning": "R", "content": "t", "tool_calls": [fragment(None, "i", "f", "{}")]}
    choice = {**delta, "message": message, "finish_reason": "stop"}
    assert [type(event) for event in events({"choices": [choice]})] == [
        MessageStart,
        BlockStart,
        ReasoningDelta,
        BlockStart,
        TextDelta,
        BlockStart,
        ArgumentsDelta,
        BlockStop,
        BlockStop,
        BlockStop,
        MessageDelta,
        MessageStop,
    ]


@pytest.mark.parametrize(
    "before", [text("t"), reasoning("R"), chunk({"refusal": "no"}), call(0, "i", "f", '{"x":1}'), call(0, "i")]
)
def test_a_message_that_repeats_what_came_is_not_read_again(before: dict[str, Any]) -> None:
    name = "n" if before == call(0, "i") else ""
    last = [call(0, None, name, "{}")] if name else []
    message = {"content": "T", "reasoning": "R", "tool_calls": [fragment(None, "other", "g", "{}")]}
    repeated = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert events(before, *last, repeated, DONE) == events(before, *last, finish(), DONE)


def test_a_message_beside_the_delta_is_not_read() -> None:
    choice = {"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}, "finish_reason": None}
    first = {"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "finish_reason": None}
    assert said({"choices": [first]}, {"choices": [choice]})[1:3] == [TextDelta(0, "a"), TextDelta(0, "b")]


# Characters in halves


def test_the_halves_of_a_character_are_joined_over_two_deltas() -> None:
    halves = [
        r'{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}',
        r'{"choices":[{"delta":{"content":"\ude00b"}}]}',
    ]
    stage = ChatNormalizer()
    steps = normalized(*halves, stage=stage)
    assert steps[0][-1] == TextDelta(0, "a")
    assert steps[1] == [TextDelta(0, "😀b")]


def test_half_a_character_waits_while_other_text_passes() -> None:
    stage = ChatNormalizer()
    half = r'{"id":"c1","choices":[{"index":0,"delta":{"content":"\ud83d"},"finish_reason":null}]}'
    assert play(stage, frame(text("a")), frame(half))[1] == [Carry("chat", frame(half))]
    assert stage.held == 1
    (made,) = play(stage, [frame(reasoning("R")), frame(text("b"))])
    assert made == [BlockStart(1, ReasoningBlock()), ReasoningDelta(1, "R"), TextDelta(0, "\ufffdb")]
    assert stage.held == 0


@pytest.mark.parametrize(
    ("name", "kind"), [("content", TextDelta), ("reasoning", ReasoningDelta), ("refusal", RefusalDelta)]
)
def test_half_a_character_alone_is_replaced_at_the_end(name: str, kind: type[Event]) -> None:
    half = f'{{"choices":[{{"index":0,"delta":{{"{name}":"\\ud83d"}}}}]}}'
    for ending in ([finish()], [DONE], []):
        deltas = [event for event in events(half, *ending) if isinstance(event, kind)]
        assert deltas == [kind(0, "\ufffd")]  # type: ignore[arg-type, call-arg]  # each takes an index and text


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


# The dialect's object


def test_the_dialect_hands_out_a_normalizer() -> None:
    facts = DIALECT.facts({"model": "m"})
    assert facts == RequestFacts(model="m", stream=False, include_usage=False)
    assert DIALECT.facts({"model": 7, "stream": True, "stream_options": {"include_usage": True}}) == RequestFacts()
    ledger = Ledger()
    stage = DIALECT.normalizer(facts=facts, ledger=ledger, limits=DEFAULT_LIMITS)
    assert play(stage, frame(DONE))[0][0] == MessageStart("", "m")
    assert len(ledger) == 1
    assert list(DIALECT.sentinels) == [b"[DONE]"]
    assert DIALECT.name == "chat"


@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "id",
                            "model",
                            "choices",
                            "delta",
                            "message",
                            "content",
                            "tool_calls",
                            "function",
                            "name",
                            "index",
                            "arguments",
                            "finish_reason",
                            "usage",
                            "error",
                            "reasoning_details",
                            "type",
                            "thinking",
                            "x_groq",
                            "base_resp",
                            "annotations",
                            "function_call",
                            "custom",
                            "input",
                            "extra_content",
                            "google",
                        ]
                    ),
                    inner,
                )
            ),
            max_leaves=12,
        ),
        max_size=4,
    )
)
def test_no_json_value_breaks_it(values: list[Any]) -> None:
    stage = ChatNormalizer()
    try:
        made = events(*({"choices": [{"delta": value}]} for value in values), *values, stage=stage)
    except UpstreamError:
        return
    assert isinstance(made[-1], MessageStop | StreamError)
