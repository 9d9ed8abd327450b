"""stages.interleave: the finish, errors, sudden ends and bounds."""

import pytest

from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import BlockStop, Event, MessageDelta, MessageStop, Ping, StopReason
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.stage import cause_of
from pipeline.testing import EOF, UnknownEvent, play
from stages.interleave import InterleaveBuffer
from tests.canonical import (
    BOOM,
    CALL_A,
    CALL_B,
    CUT,
    END,
    FREEFORM,
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

LIMITS = [StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL]
BROKEN = ['{"x":', '{"x":1,}', "[1]", "12", "nul", '"hello"', '{"x":1', "[]"]


def bounded(**limits: int) -> InterleaveBuffer:
    return InterleaveBuffer(limits=Limits(**limits))


# The finish


def test_the_finish_ends_every_block_and_lets_go_what_waited() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, TEXT), text(1, "a"), start(2, FREEFORM), args(2, "ls"))
    assert play(stage, TOOLS, MessageStop(), EOF) == [
        [
            *[args(0, "{}"), stop(0)],
            *[start(1, TEXT), text(1, "a"), stop(1)],
            *[start(2, FREEFORM), args(2, "ls"), stop(2)],
            TOOLS,
        ],
        [MessageStop()],
        [],
    ]
    assert stage.held == 0


@pytest.mark.parametrize("reason", LIMITS)
def test_a_call_cut_by_a_limit_is_closed_as_it_stands(reason: StopReason) -> None:
    finish = MessageDelta(reason)
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, TEXT), args(0, '{"x":'), text(1, "a"))
    assert last(stage, finish) == [
        *[stop(0, complete=False)],
        *[start(1, TEXT), text(1, "a"), stop(1, complete=False)],
        finish,
    ]


def test_a_call_that_the_upstream_says_is_not_whole_is_closed_as_it_stands() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":'), start(1, FREEFORM), args(1, "l"), stop(1, complete=False))
    assert last(stage, stop(0, complete=False)) == [
        stop(0, complete=False),
        *[start(1, FREEFORM), args(1, "l"), stop(1, complete=False)],
    ]


def test_a_whole_call_is_whole_whatever_the_finish_says() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":1}'))
    assert last(stage, LIMIT) == [stop(0), LIMIT]


@pytest.mark.parametrize(
    ("fragment", "rest"), [("", ""), ("nul", "nul"), ("null", "null"), ("{}", "}"), ('"{\\"x\\":1}"', '"{\\"x\\":1}"')]
)
def test_nothing_is_invented_for_a_call_cut_by_a_limit(fragment: str, rest: str) -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, fragment))
    assert last(stage, LIMIT) == [*([args(0, rest)] if rest else []), stop(0, complete=False), LIMIT]
    assert (stage.held, losses(stage.ledger)) == (0, [])


@pytest.mark.parametrize(
    "reason", sorted({*StopReason} - {StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL})
)
@pytest.mark.parametrize("fragment", BROKEN)
def test_a_call_whose_arguments_are_no_object_fails_at_a_normal_finish(fragment: str, reason: StopReason) -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, fragment), start(1, CALL_B) if fragment != "[1]" else Ping())
    with pytest.raises(UpstreamError) as raised:
        play(stage, MessageDelta(reason))
    error = raised.value
    assert str(error) == "the arguments of the call of 'get_a' are no JSON object"
    assert (error.kind, error.code) == (ErrorKind.INVALID_TOOL_ARGUMENTS, "invalid_tool_arguments")
    assert (error.retryable, list(error.made)) == (True, [])


def test_a_call_whose_arguments_are_no_object_is_left_open() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '"hello"'), start(1, TEXT), text(1, "a"))
    with pytest.raises(UpstreamError) as raised:
        play(stage, stop(0))
    cause = cause_of(raised.value)
    assert last(stage, EOF(cause)) == [args(0, '"hello"'), cause]
    assert losses(stage.ledger) == [("text", "dropped", "it waited behind a call that was cut")]
    assert (stage.held, stage.ended) == (0, True)


def test_a_whole_array_fails_when_something_must_be_written_after_it() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, "[1]"), start(1, TEXT))
    with pytest.raises(UpstreamError, match="no JSON object"):
        play(stage, text(1, "a"))
    assert last(stage, EOF(BOOM)) == [BOOM]


# Errors and sudden ends


def test_an_error_closes_open_text_and_ends_the_stream() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), text(0, "a"))
    assert not stage.ended
    assert play(stage, [BOOM, text(0, "b"), UnknownEvent()], UnknownEvent(), EOF, EOF(CUT)) == [
        [BlockStop(0, complete=False), BOOM],
        [],
        [],
        [],
    ]
    assert stage.ended


@pytest.mark.parametrize("end", [BOOM, EOF(BOOM)])
def test_an_error_leaves_a_cut_call_open_and_records_what_waited(end: object) -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), start(2, FREEFORM), start(3, TEXT), start(4, ITEM))
    play(stage, args(0, '{"x":'), think(1, "A"), args(2, "ls"), text(3, " "))
    assert last(stage, end) == [BOOM]
    assert losses(stage.ledger) == [
        ("reasoning", "dropped", "it waited behind a call that was cut"),
        ("text", "dropped", "it waited behind a call that was cut"),
        ("tool use", "dropped", "it waited behind a call that was cut"),
    ]
    assert (stage.held, stage.ended) == (0, True)


def test_what_is_whole_goes_out_before_an_error() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"a":1}'), start(1, FREEFORM), args(1, "ls"), stop(1), start(2, CALL_B))
    assert last(stage, args(2, '{"b":1}'), BOOM) == [stop(2), BOOM]
    assert losses(stage.ledger) == []


def test_everything_that_waits_goes_out_before_an_error_up_to_a_call_that_was_cut() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, ITEM), start(1, CALL_B), args(1, '{"b":1}'), start(2, TEXT), text(2, "a"))
    play(stage, start(3, CALL_A), args(3, "nul"), start(4, REASONING), think(4, "A"))
    assert last(stage, BOOM) == [
        stop(0),
        *[start(1, CALL_B), args(1, '{"b":1}'), stop(1)],
        *[start(2, TEXT), text(2, "a"), stop(2)],
        *[start(3, CALL_A), args(3, "nul")],
        BOOM,
    ]
    assert losses(stage.ledger) == [("reasoning", "dropped", "it waited behind a call that was cut")]


def test_blank_text_that_waits_is_dropped_before_an_error() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, TEXT), text(0, " "), BOOM) == [BOOM]
    assert losses(stage.ledger) == [("text", "dropped", "a block of blanks alone")]


@pytest.mark.parametrize("fragments", [(), ("",), ("{}",), ("null",), ('"{}"',), ("[1]",), ('{"x":1',), ("12",)])
def test_a_call_that_is_not_visibly_whole_was_cut(fragments: tuple[str, ...]) -> None:
    stage = InterleaveBuffer()
    out = play(stage, start(0, CALL_A), *[args(0, fragment) for fragment in fragments], BOOM)
    assert not any(isinstance(event, type(stop(0))) for events in out for event in events)
    assert "".join(event.text for events in out for event in events if isinstance(event, type(args(0, "")))) == "".join(
        fragments
    )


def test_freeform_input_without_its_word_was_cut() -> None:
    assert last(InterleaveBuffer(), start(0, FREEFORM), args(0, "ls"), BOOM) == [BOOM]


def test_an_end_without_a_cause_lets_go_what_can_be_written() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, ITEM), start(1, TEXT), text(1, "a"))
    assert last(stage, EOF) == [stop(0), start(1, TEXT), text(1, "a"), BlockStop(1, complete=False)]
    assert (stage.held, stage.ended) == (0, True)


def test_only_the_block_that_would_have_gone_on_is_cut() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, ITEM), start(1, TEXT), text(1, "a"), start(2, REASONING), think(2, "b"))
    assert last(stage, EOF) == [
        stop(0),
        *(start(1, TEXT), text(1, "a"), stop(1)),
        *(start(2, REASONING), think(2, "b"), BlockStop(2, complete=False)),
    ]
    stage = InterleaveBuffer()
    play(stage, start(0, ITEM), start(1, TEXT), text(1, "a"), stop(1))
    assert last(stage, EOF) == [stop(0), start(1, TEXT), text(1, "a"), stop(1)]


# Bounds


def test_what_waits_is_bounded_in_bytes() -> None:
    stage = bounded(held_bytes=4)
    play(stage, start(0, CALL_A), start(1, TEXT), text(1, "éé"))
    with pytest.raises(LimitExceeded) as raised:
        play(stage, text(1, "a"))
    assert str(raised.value) == "more than 4 bytes wait for a block that does not end"
    assert raised.value.code == "held_bytes"
    assert last(stage, EOF(BOOM)) == [BOOM]
    assert stage.held == 0


def test_withheld_arguments_and_blanks_are_bounded_too() -> None:
    for begun, more in (([start(0, CALL_A), args(0, '"abc')], args(0, "d")), ([start(0, TEXT)], text(0, " " * 5))):
        stage = bounded(held_bytes=4)
        play(stage, begun)
        with pytest.raises(LimitExceeded):
            play(stage, more)


def test_what_need_not_wait_is_not_bounded() -> None:
    stage = bounded(held_bytes=1)
    assert last(stage, start(0, TEXT), text(0, "many")) == [start(0, TEXT), text(0, "many")]
    assert last(stage, start(1, REASONING), think(1, "many")) == [stop(0), start(1, REASONING), think(1, "many")]
    assert last(stage, start(2, CALL_A), args(2, '{"x":1}')) == [args(2, '{"x":1}')]


def test_arguments_that_were_withheld_and_then_wait_are_counted_once() -> None:
    stage = bounded(held_bytes=7)
    play(stage, start(0, CALL_A), start(1, CALL_B), args(1, "   "), args(1, '{"x"'))
    assert stage.held == 7
    assert last(stage, stop(0))[-2:] == [start(1, CALL_B), args(1, '   {"x"')]
    assert stage.held == 0


def test_blocks_are_bounded() -> None:
    stage = bounded(blocks=2)
    play(stage, start(0, TEXT), start(1, REASONING), text(0, "a"), think(1, "A"))
    with pytest.raises(LimitExceeded) as raised:
        play(stage, text(0, "b"))
    assert (str(raised.value), raised.value.code) == ("the message has more than 2 blocks", "blocks")
    assert last(stage, EOF(BOOM)) == [BlockStop(1, complete=False), BOOM]


def test_blocks_that_wait_are_bounded_with_those_that_were_written() -> None:
    stage = bounded(blocks=3)
    play(stage, start(0, CALL_A), start(1, TEXT), start(2, REASONING), text(1, "a"), think(2, "A"))
    with pytest.raises(LimitExceeded, match="the message has more than 3 blocks"):
        play(stage, text(1, "b"))


def test_blocks_of_which_nothing_came_are_bounded() -> None:
    stage = bounded(blocks=2)
    play(stage, start(0, TEXT), start(1, TEXT))
    with pytest.raises(LimitExceeded, match="the message has more than 2 blocks"):
        play(stage, start(2, TEXT))


def test_blocks_of_blanks_take_no_room() -> None:
    stage = bounded(blocks=2)
    play(stage, start(0, TEXT), start(1, TEXT), text(0, " "), text(1, " "), text(0, " "), text(1, " "))
    assert last(stage, text(1, "b")) == [start(0, TEXT), *[text(0, " ")] * 2, text(0, "b")]


def test_arguments_are_bounded() -> None:
    with pytest.raises(LimitExceeded, match="the arguments of one call are larger than 4 bytes"):
        play(bounded(arguments_bytes=4), start(0, CALL_A), args(0, '{"x":'))
    with pytest.raises(LimitExceeded, match="JSON is nested deeper than 2 levels"):
        play(bounded(json_depth=2), start(0, CALL_A), args(0, '{"x":[[]]}'))


def test_losses_go_to_the_ledger_that_was_given() -> None:
    ledger = Ledger()
    play(InterleaveBuffer(ledger=ledger), start(0, TEXT), text(0, " "), END)
    assert [(entry.direction, entry.stage) for entry in ledger] == [("response", "InterleaveBuffer")]


def test_two_streams_share_nothing() -> None:
    one, other = InterleaveBuffer(), InterleaveBuffer()
    play(one, start(0, CALL_A))
    event: Event = start(0, CALL_B)
    assert last(other, event) == [start(0, CALL_B)]
