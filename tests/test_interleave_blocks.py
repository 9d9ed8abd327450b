"""stages.interleave: blocks that may not be split, what belongs to a block, and misuse."""

import pytest

from pipeline.errors import LimitExceeded, StageError
from pipeline.events import (
    AnnotationDelta,
    BlockStop,
    Event,
    MessageStart,
    MessageStop,
    Ping,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
)
from pipeline.limits import Limits
from pipeline.testing import check_stage, play
from stages.interleave import InterleaveBuffer
from tests.canonical import (
    BOOM,
    CALL_A,
    CALL_B,
    END,
    ITEM,
    LIMIT,
    REASONING,
    TEXT,
    TOOLS,
    args,
    last,
    losses,
    start,
    stop,
    text,
    think,
)

# What may not be split, and what belongs to a block


def test_a_reasoning_item_is_not_split_and_others_wait_for_its_stop() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, ITEM), start(1, TEXT))
    assert play(stage, think(0, "A"), text(1, "a"), think(0, "B"), SignatureDelta(0, "sig"), stop(0)) == [
        [think(0, "A")],
        [],
        [think(0, "B")],
        [SignatureDelta(0, "sig")],
        [stop(0), start(1, TEXT), text(1, "a")],
    ]


def test_a_waiting_reasoning_item_is_written_whole() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, ITEM), start(2, CALL_B), think(1, "é"), SignatureDelta(1, "sig"))
    assert stage.held == 5
    assert last(stage, stop(0)) == [
        *[args(0, "{}"), stop(0)],
        *[start(1, ITEM), think(1, "é"), SignatureDelta(1, "sig")],
    ]
    assert last(stage, stop(1)) == [stop(1), start(2, CALL_B)]


def test_reasoning_for_an_item_that_has_ended_is_recorded() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, ITEM), stop(0), think(0, "A")) == []
    assert (losses(stage.ledger), stage.held) == ([("reasoning", "dropped", "for a block that has ended")], 0)


def test_signed_reasoning_goes_on_in_another_block() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, REASONING), think(0, "A"))
    assert play(stage, SignatureDelta(0, "sig"), think(0, "B"), think(0, "C")) == [
        [SignatureDelta(0, "sig")],
        [stop(0), start(1, REASONING), think(1, "B")],
        [think(1, "C")],
    ]


def test_signed_reasoning_that_waits_goes_on_in_another_block() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), think(1, "A"), SignatureDelta(1, "sig"), think(1, "B"))
    assert last(stage, stop(0))[2:] == [
        *[start(1, REASONING), think(1, "A"), SignatureDelta(1, "sig"), stop(1)],
        *[start(2, REASONING), think(2, "B")],
    ]


def test_a_signature_without_reasoning_is_recorded_and_so_is_a_second_one() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, REASONING), SignatureDelta(0, "sig"))
    assert losses(stage.ledger) == [("signature", "dropped", "nothing was written that it could belong to")]
    assert play(stage, think(0, "A"), SignatureDelta(0, "sig"), SignatureDelta(0, "other"))[1:] == [
        [SignatureDelta(0, "sig")],
        [],
    ]
    assert len(losses(stage.ledger)) == 1


def test_a_citation_goes_to_its_text() -> None:
    note = {"url": "https://e.org"}
    stage = InterleaveBuffer()
    assert last(stage, start(4, TEXT), text(4, "a"), AnnotationDelta(4, note)) == [AnnotationDelta(0, note)]


def test_a_citation_before_its_text_waits_for_it() -> None:
    note = {"a": 1}
    stage = InterleaveBuffer()
    assert last(stage, start(0, TEXT), text(0, ""), AnnotationDelta(0, note)) == []
    assert stage.held == len("{'a': 1}")
    assert last(stage, text(0, "a")) == [start(0, TEXT), AnnotationDelta(0, note), text(0, "a")]
    assert stage.held == 0
    assert last(stage, start(1, REASONING), think(1, "A")) == [stop(0), start(1, REASONING), think(1, "A")]


def test_a_citation_without_text_is_recorded() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, TEXT), AnnotationDelta(0, {}), stop(0)) == []
    assert losses(stage.ledger) == [("annotation", "dropped", "a block of blanks alone")]


def test_a_citation_for_blanks_that_something_came_behind_is_recorded() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, TEXT), text(0, " "), start(1, CALL_A), AnnotationDelta(0, {})) == []
    assert losses(stage.ledger) == [("annotation", "dropped", "for a block that has ended")]


def test_a_citation_for_text_that_has_ended_is_recorded() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, TEXT), text(0, "a"), start(1, CALL_A), AnnotationDelta(0, {})) == []
    assert losses(stage.ledger) == [("annotation", "dropped", "for a block that has ended")]


def test_a_citation_for_reasoning_is_recorded() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, REASONING), AnnotationDelta(0, {}), stop(0)) == []
    assert losses(stage.ledger) == [("annotation", "dropped", "nothing was written that it could belong to")]


def test_items_of_the_providers_own_tools_and_redacted_reasoning_pass_whole() -> None:
    redacted, server = RedactedReasoningBlock("blob"), ServerBlock("messages", {"type": "search"})
    stage = InterleaveBuffer()
    assert play(stage, [start(3, redacted), stop(3)], start(4, server), args(4, '{"q"'), args(4, ":1}"), stop(4)) == [
        [start(0, redacted), stop(0)],
        [start(1, server)],
        [args(1, '{"q"')],
        [args(1, ":1}")],
        [stop(1)],
    ]


# Texts that are told at once


def test_a_text_waits_for_the_stop_of_the_text_that_it_comes_in_the_middle_of() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT))
    assert play(stage, text(0, "Hel"), text(1, "wor"), text(0, "lo "), text(1, "ld"), stop(0), stop(1)) == [
        [start(0, TEXT), text(0, "Hel")],
        [],
        [text(0, "lo ")],
        [],
        [stop(0), start(1, TEXT), text(1, "wor"), text(1, "ld")],
        [stop(1)],
    ]
    assert losses(stage.ledger) == []


@pytest.mark.parametrize("end", [END, BOOM])
def test_a_text_that_waits_leaves_at_the_end_whatever_that_is(end: Event) -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT), text(0, "a"), text(1, "b"))
    assert stage.held == 1
    ends = [start(1, TEXT), text(1, "b"), BlockStop(1, complete=end is END), end]
    assert last(stage, end) == [stop(0), *ends]
    assert stage.held == 0


def test_a_text_that_waits_is_bounded() -> None:
    stage = InterleaveBuffer(limits=Limits(held_bytes=3))
    play(stage, start(0, TEXT), start(1, TEXT), text(0, "a"), text(1, "bcd"))
    with pytest.raises(LimitExceeded):
        play(stage, text(1, "e"))


def test_what_comes_behind_a_text_that_waits_waits_too_and_more_of_the_first_goes_before_it() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT), start(2, REASONING), text(0, "a"), think(2, "A"), text(1, "x"))
    assert play(stage, think(2, "B"), text(0, " "), text(0, "b"), text(0, "c"), stop(0)) == [
        [],
        [],
        [stop(1), start(2, TEXT), text(2, " "), text(2, "b")],
        [text(2, "c")],
        [stop(2), start(3, TEXT), text(3, "x"), stop(3), start(4, REASONING), think(4, "B")],
    ]


def test_a_stop_lets_the_next_text_speak_also_where_the_first_was_interrupted_last() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT), start(2, REASONING), start(3, TEXT), text(0, "a"), think(2, "A"))
    play(stage, text(1, "x"), text(3, "y"), text(1, "z"), stop(1))
    assert last(stage, stop(0)) == [
        stop(1),
        start(2, TEXT),
        text(2, "x"),
        text(2, "z"),
        stop(2),
        start(3, TEXT),
        text(3, "y"),
    ]


def test_more_of_what_waits_behind_a_call_goes_before_what_waits_for_it() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), start(2, REASONING))
    play(stage, think(1, "A"), SignatureDelta(1, "s"), think(2, "X"), think(1, "B"))
    assert play(stage, stop(0), stop(1), stop(2)) == [
        [
            *[args(0, "{}"), stop(0), start(1, REASONING), think(1, "A"), SignatureDelta(1, "s"), stop(1)],
            *[start(2, REASONING), think(2, "B")],
        ],
        [stop(2), start(3, REASONING), think(3, "X")],
        [stop(3)],
    ]


def test_a_refusal_waits_for_the_text_of_another_block() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT), text(0, "a"))
    assert play(stage, RefusalDelta(1, "No."), text(0, "b"), stop(0)) == [
        [],
        [text(0, "b")],
        [stop(0), start(1, TEXT), RefusalDelta(1, "No.")],
    ]


def test_a_refusal_beside_text_of_its_own_block_does_not() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), text(0, "a"))
    assert last(stage, RefusalDelta(0, "No.")) == [RefusalDelta(0, "No.")]


# Misuse


def test_a_block_opened_twice_is_an_error_of_ours() -> None:
    with pytest.raises(StageError, match=r"^BlockStart for block 3, which was opened before$"):
        play(InterleaveBuffer(), start(3, TEXT), start(3, TEXT))


@pytest.mark.parametrize(
    "event", [text(2, ""), think(2, "A"), args(2, ""), stop(2), SignatureDelta(2, "s"), AnnotationDelta(2, {})]
)
def test_a_block_that_was_never_opened_is_an_error_of_ours(event: Event) -> None:
    with pytest.raises(StageError, match=rf"^{type(event).__name__} for block 2, which was never opened$"):
        play(InterleaveBuffer(), event)


@pytest.mark.parametrize("before", [[], [text(0, "a")]])
def test_arguments_for_text_are_an_error_of_ours(before: list[Event]) -> None:
    with pytest.raises(StageError, match=r"^ArgumentsDelta for block 0, a TextBlock$"):
        play(InterleaveBuffer(), start(0, TEXT), before, args(0, "{"))


@pytest.mark.parametrize("ended", [[], [stop(0)]])
@pytest.mark.parametrize("delta", [text(0, "a"), think(0, "A"), text(0, "")])
def test_text_for_a_call_is_an_error_of_ours(ended: list[Event], delta: Event) -> None:
    with pytest.raises(StageError, match=rf"^{type(delta).__name__} for block 0, a ToolUseBlock$"):
        play(InterleaveBuffer(), start(0, CALL_A), ended, delta)


def test_an_error_says_what_had_been_made_in_the_same_read() -> None:
    with pytest.raises(StageError) as raised:
        InterleaveBuffer().receive([Ping(), start(0, CALL_A), start(0, CALL_A)])
    assert list(raised.value.made) == [Ping(), start(0, CALL_A)]
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("behind", [[TOOLS, MessageStop()], [LIMIT, MessageStop()], [BOOM], []])
def test_the_rules_of_every_stage_are_kept(behind: list[Event]) -> None:
    opened: list[Event] = [start(0, REASONING), think(0, "A"), start(1, TEXT), start(2, CALL_A), args(2, '{"x"')]
    waiting: list[Event] = [think(0, "B"), text(1, "\n"), text(1, "a"), start(3, CALL_B), args(2, ":1}"), args(3, "{}")]
    check_stage(InterleaveBuffer, [MessageStart("id", "m"), *opened, *waiting, *behind])
