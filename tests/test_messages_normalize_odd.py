"""The messages normalizer: errors, odd frames, and the laws of a stage."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    StopReason,
    StreamError,
    TextDelta,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.testing import check_stage, play
from stages.dialects.messages import DIALECT
from stages.dialects.messages.normalize import MessagesNormalizer
from tests.messages_stream import (
    END,
    TEXT,
    THINKING,
    Json,
    begin,
    call,
    delta,
    event,
    events,
    frame,
    given,
    message,
    normalized,
    search,
    signature,
    start,
    stop,
    text,
    thinking,
    told,
)
from tests.test_messages_normalize import COUNTS, DONE, SAID, START, losses

# errors and odd frames


def test_an_error_event_ends_the_stream() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "boom"})
    failed = StreamError(ErrorKind.OVERLOADED, "boom", "overloaded_error", retryable=True)
    assert events(error) == [failed]
    assert events(begin(), start(TEXT), text("Hi"), error, text("!"))[1:] == [*SAID[:2], failed]


@pytest.mark.parametrize(
    "error",
    [
        frame({"error": {"type": "overloaded_error", "message": "boom"}}),
        Frame(b"boom", b"error"),
        frame(["boom"], b"error"),
        frame({"message": "boom"}, b"error"),
        frame([{"type": "error", "error": {"message": "boom"}}]),
    ],
)
def test_an_error_is_one_in_other_forms(error: Frame) -> None:
    assert isinstance(failed := events(begin(), error)[-1], StreamError)
    assert failed.message == "boom"


def test_the_name_tells_an_event_that_lacks_its_type() -> None:
    named = [
        Frame(frame({name: value for name, value in item.items() if name != "type"}).data, item["type"].encode())
        for item in (begin(), start(TEXT), text("Hi"), stop(), told(), END, event("ping"))
    ]
    assert events(*named) == [START, *SAID[:1], TextDelta(0, "Hi"), BlockStop(0), *DONE]


def test_the_type_outweighs_the_name() -> None:
    assert events(Frame(frame(begin()).data, b"ping"))[0] == START


@pytest.mark.parametrize(
    ("block", "said"),
    [({"text": "Hi"}, text("!")), ({}, text("Hi!")), (None, text("Hi!")), ("x", text("Hi!"))],
)
def test_a_block_without_its_type_is_told_by_what_it_has_or_by_its_deltas(block: Any, said: Json) -> None:
    made = events(begin(), start(block), said, stop(), told(), END)
    assert [type(one) for one in (made[1], made[-3])] == [BlockStart, BlockStop]
    assert "".join(one.text for one in made if isinstance(one, TextDelta)) == "Hi!"


def test_a_delta_without_its_type_is_told_by_what_it_has() -> None:
    bare = {**text("Hi"), "delta": {"text": "Hi"}}
    assert events(begin(), start(TEXT), bare, stop())[1:-1] == SAID


@pytest.mark.parametrize(
    "odd",
    [
        event("weird", x=1),
        {"x": 1},
        [1],
        "x",
        7,
        stop(5),
        text(""),
        text(None),
        text({"text": "x"}),
        thinking(3),
        given(" "),
        given(3),
        delta("weird_delta", x=1),
        event("content_block_delta", index=0),
        event("content_block_delta", index=0, delta="x"),
        event("message", content=[]),
        event("message"),
        b"keep-alive",
        b"",
    ],
)
def test_every_frame_makes_an_event_and_an_odd_one_harms_none(odd: Any) -> None:
    before, after = [begin(), start(TEXT)], [text("Hi"), stop(), told(), END]
    made = normalized(*before, odd, *after)
    assert made[2] == [Carry("messages", frame(odd))]
    assert events(*before, odd, *after)[-4:] == [TextDelta(0, "Hi"), BlockStop(0), *DONE]


def test_a_message_named_event_that_is_none_is_ignored() -> None:
    assert events(Frame(b'{"x":1}', b"message"), begin())[0] == START


def test_odd_frames_are_recorded() -> None:
    assert losses([1], {"x": 1}, b"keep-alive", text(3), delta("weird_delta"), told(), END) == [
        ("delta", "dropped", "no text"),
        ("delta", "dropped", "of a kind that no block has"),
        ("frame", "ignored", "JSON that is no event"),
        ("frame", "ignored", "JSON that is no object"),
        ("frame", "ignored", "data that is no JSON"),
    ]


@pytest.mark.parametrize("broken", [b'{"type":"content_block_de', b"[1,", b"{]"])
def test_a_frame_that_starts_like_json_and_is_none_fails_the_stream(broken: bytes) -> None:
    with pytest.raises(UpstreamError, match="does not parse") as raised:
        MessagesNormalizer().receive([frame(begin()), Frame(broken)])
    assert raised.value.made == [START]
    assert raised.value.code == "invalid_json"


def test_several_events_in_one_frame_are_parted() -> None:
    both = b"\n".join(frame(item).data for item in (start(TEXT), text("Hi"), stop(), told(), END, begin()))
    assert events(begin(), both)[1:] == [*SAID, *DONE]


def test_a_frame_that_is_a_whole_message_is_read_as_one() -> None:
    whole = message({"type": "text", "text": "Hi"}, stop_reason="end_turn", usage=COUNTS)
    usage = Usage(10, 4, output=1)
    assert events(whole) == [
        MessageStart("msg_1", "m", usage),
        *SAID,
        MessageDelta(StopReason.END_TURN, usage=usage),
        MessageStop(),
    ]


def test_a_frame_nested_too_deeply_fails_the_stream() -> None:
    with pytest.raises(LimitExceeded):
        play(MessagesNormalizer(), Frame(b"[" * 500 + b"]" * 500))


# as a stage


STREAM = [
    begin(usage=COUNTS),
    event("ping"),
    start(THINKING),
    thinking("Why"),
    signature("SIG"),
    stop(),
    start(TEXT, 1),
    text("Hé👍", 1),
    text("!", 1),
    stop(1),
    start(search(), 2),
    given('{"query":"q"}', 2),
    stop(2),
    start(call(), 3),
    given('{"x"', 3),
    given(":1}", 3),
    stop(3),
    told("tool_use", usage={"output_tokens": 5}),
    END,
]


@pytest.mark.parametrize("items", [STREAM, STREAM[:-1], STREAM[:5], [*STREAM[:8], event("error", error={})]])
def test_it_keeps_the_rules_of_every_stage(items: list[Json]) -> None:
    check_stage(MessagesNormalizer, [frame(item) for item in items])


def test_the_dialect_hands_out_a_fresh_normalizer() -> None:
    facts, ledger = RequestFacts(model="asked"), Ledger()
    one, other = (DIALECT.normalizer(facts=facts, ledger=ledger, limits=DEFAULT_LIMITS) for _ in range(2))
    assert one is not other
    assert play(one, frame(text("Hi")))[0][0] == MessageStart("", "asked")
    assert play(other, frame(begin()))[0] == [START]
    assert len(ledger) == 1
