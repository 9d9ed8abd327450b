"""stages.interleave: one block at a time, and no tool call is ever split."""

import pytest

from pipeline.events import Event, MessageStart, MessageStop, Ping, RefusalDelta, TextDelta
from pipeline.testing import UnknownEvent, play
from stages.interleave import InterleaveBuffer
from tests.canonical import (
    BOOM,
    CALL_A,
    CALL_B,
    CALL_C,
    END,
    FREEFORM,
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

# Text and reasoning


def test_every_delta_of_a_plain_stream_leaves_in_the_read_it_came_in() -> None:
    stage = InterleaveBuffer()
    assert play(
        stage, MessageStart("id", "m"), [start(0, TEXT), text(0, "a")], text(0, " "), text(0, "b"), stop(0)
    ) == [
        [MessageStart("id", "m")],
        [start(0, TEXT), text(0, "a")],
        [text(0, " ")],
        [text(0, "b")],
        [stop(0)],
    ]
    assert stage.held == 0


def test_text_begins_with_its_first_delta() -> None:
    assert play(InterleaveBuffer(), start(0, TEXT), text(0, ""), text(0, "a"), text(0, "")) == [
        [],
        [],
        [start(0, TEXT), text(0, "a")],
        [],
    ]


def test_a_block_of_which_nothing_came_is_not_written() -> None:
    assert play(InterleaveBuffer(), start(0, TEXT), stop(0), start(1, REASONING), think(1, ""), stop(1), END) == [
        [],
        [],
        [],
        [],
        [],
        [END],
    ]


def test_text_and_reasoning_that_alternate_are_split() -> None:
    stage = InterleaveBuffer()
    opened = [start(5, REASONING), start(3, TEXT)]
    assert play(stage, opened, think(5, "A"), text(3, "a"), think(5, "B"), think(5, "C"), text(3, "b"), END) == [
        [],
        [start(0, REASONING), think(0, "A")],
        [stop(0), start(1, TEXT), text(1, "a")],
        [stop(1), start(2, REASONING), think(2, "B")],
        [think(2, "C")],
        [stop(2), start(3, TEXT), text(3, "b")],
        [stop(3), END],
    ]


def test_two_blocks_of_the_same_kind_stay_two() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), text(0, "a"), stop(0), start(1, TEXT))
    assert last(stage, text(1, "b")) == [start(1, TEXT), text(1, "b")]


def test_text_behind_the_stop_of_its_block_goes_on_in_another() -> None:
    assert last(InterleaveBuffer(), start(0, TEXT), text(0, "a"), stop(0), text(0, "b")) == [
        start(1, TEXT),
        text(1, "b"),
    ]


def test_a_refusal_is_text() -> None:
    stage = InterleaveBuffer()
    assert play(stage, start(0, TEXT), RefusalDelta(0, "\n"), RefusalDelta(0, "no"), END)[2:] == [
        [start(0, TEXT), RefusalDelta(0, "\n"), RefusalDelta(0, "no")],
        [stop(0), END],
    ]


def test_what_belongs_to_no_block_passes_at_once() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), think(1, "waits"))
    assert play(stage, Ping(), UnknownEvent(), MessageStop()) == [[Ping()], [UnknownEvent()], [MessageStop()]]


# Blanks


def test_a_blank_beginning_waits_for_the_first_non_blank() -> None:
    stage = InterleaveBuffer()
    assert play(stage, [start(0, TEXT), text(0, "\n")], text(0, " ")) == [[], []]
    assert stage.held == 2
    assert last(stage, text(0, "a")) == [start(0, TEXT), text(0, "\n"), text(0, " "), text(0, "a")]
    assert stage.held == 0


@pytest.mark.parametrize("behind", [[stop(0)], [END], [start(1, CALL_A), stop(0)], [start(1, CALL_A), BOOM], [BOOM]])
def test_text_of_blanks_alone_is_dropped_and_recorded(behind: list[Event]) -> None:
    stage = InterleaveBuffer()
    out = last(stage, start(0, TEXT), text(0, "\n\n"), behind)
    assert not any(isinstance(event, TextDelta) for event in out)
    assert stage.held == 0
    assert losses(stage.ledger) == [("text", "dropped", "a block of blanks alone")]


def test_blanks_do_not_split_what_they_stand_in() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, REASONING), start(1, TEXT), think(0, "A"))
    assert play(stage, text(1, " "), think(0, ""), think(0, "B"), text(1, "a")) == [
        [],
        [],
        [think(0, "B")],
        [stop(0), start(1, TEXT), text(1, "a")],
    ]


def test_blanks_between_reasoning_lead_the_text_that_follows() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, REASONING), text(0, "one"), think(1, "A"))
    assert play(stage, text(0, "\n"), think(1, "B"), text(0, "\n"), think(1, "C"), text(0, "two"), END)[1:] == [
        [think(1, "B")],
        [],
        [think(1, "C")],
        [stop(1), start(2, TEXT), text(2, "\n"), text(2, "\n"), text(2, "two")],
        [stop(2), END],
    ]
    assert (losses(stage.ledger), stage.held) == ([], 0)


def test_blanks_that_no_text_of_their_block_follows_are_dropped_and_recorded() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, REASONING), text(0, "one"), think(1, "A"), text(0, "\n"), think(1, "B"))
    assert stage.held == 1
    assert last(stage, END) == [stop(1), END]
    assert (losses(stage.ledger), stage.held) == ([("text", "dropped", "a block of blanks alone")], 0)


def test_blanks_that_wait_behind_a_call_do_not_split_what_waits_before_them() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), start(2, TEXT), think(1, "A"), text(2, " "), think(1, "B"))
    assert last(stage, stop(0)) == [
        args(0, "{}"),
        stop(0),
        start(1, REASONING),
        think(1, "A"),
        think(1, "B"),
    ]


def test_blanks_of_another_text_give_way() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, TEXT), start(1, TEXT), text(0, " "), text(1, "\t"))
    assert last(stage, text(1, "b")) == [start(0, TEXT), text(0, "\t"), text(0, "b")]


def test_blanks_end_no_call() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":1}'), start(1, TEXT))
    assert play(stage, text(1, "\n"), text(1, "a")) == [[], [stop(0), start(1, TEXT), text(1, "\n"), text(1, "a")]]


def test_blank_text_that_was_stopped_behind_a_call_is_dropped() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, TEXT), text(1, " "), stop(1))
    assert last(stage, [stop(0), start(2, TEXT), text(2, "a")]) == [
        args(0, "{}"),
        stop(0),
        start(1, TEXT),
        text(1, "a"),
    ]
    assert stage.held == 0


def test_blanks_wait_on_when_the_block_before_them_is_stopped() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, REASONING), start(1, TEXT), think(0, "A"), text(1, " "))
    assert play(stage, stop(0), text(1, "a")) == [[stop(0)], [start(1, TEXT), text(1, " "), text(1, "a")]]


def test_blank_reasoning_does_not_wait() -> None:
    assert last(InterleaveBuffer(), start(0, REASONING), think(0, "\n")) == [start(0, REASONING), think(0, "\n")]


# Calls


def test_a_call_begins_at_once_and_its_arguments_pass_as_they_come() -> None:
    assert play(InterleaveBuffer(), start(7, CALL_A), args(7, '{"x"'), args(7, ""), args(7, ":1}"), TOOLS) == [
        [start(0, CALL_A)],
        [args(0, '{"x"')],
        [],
        [args(0, ":1}")],
        [stop(0), TOOLS],
    ]


def test_a_delta_that_is_where_it_belongs_stays_the_same_object() -> None:
    delta = args(0, '{"x"')
    assert last(InterleaveBuffer(), start(0, CALL_A), delta)[0] is delta


def test_reasoning_waits_until_the_tool_call_is_complete() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":'), start(1, REASONING))
    assert play(stage, think(1, "B"), args(0, "1"), args(0, "}"), think(1, "C")) == [
        [],
        [args(0, "1")],
        [args(0, "}"), stop(0), start(1, REASONING), think(1, "B")],
        [think(1, "C")],
    ]


def test_a_whole_call_stays_open_until_something_must_be_written_after_it() -> None:
    stage = InterleaveBuffer()
    assert last(stage, start(0, CALL_A), args(0, '{"x":1}')) == [args(0, '{"x":1}')]
    assert last(stage, start(1, CALL_B)) == [stop(0), start(1, CALL_B)]


def test_thoughts_and_calls_keep_their_order() -> None:
    stage = InterleaveBuffer()
    opened: list[Event] = [start(0, REASONING), think(0, "A"), start(1, CALL_A), args(1, '{"a":1}')]
    assert last(stage, [*opened, think(0, "B"), start(2, CALL_B), args(2, '{"b":1}'), TOOLS]) == [
        *[start(0, REASONING), think(0, "A"), stop(0)],
        *[start(1, CALL_A), args(1, '{"a":1}'), stop(1)],
        *[start(2, REASONING), think(2, "B"), stop(2)],
        *[start(3, CALL_B), args(3, '{"b":1}'), stop(3)],
        TOOLS,
    ]


def test_a_call_whose_fragments_alternate_with_anothers_waits_and_is_written_whole() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, CALL_B))
    assert play(stage, args(0, '{"a":'), args(1, '{"b":'), args(0, "1}"), args(1, "2}")) == [
        [args(0, '{"a":')],
        [],
        [args(0, "1}"), stop(0), start(1, CALL_B), args(1, '{"b":')],
        [args(1, "2}")],
    ]


def test_three_calls_in_rotation_are_written_in_order_of_opening() -> None:
    stage = InterleaveBuffer()
    play(stage, [start(0, CALL_B), start(1, CALL_C), start(2, CALL_A)], [args(2, '{"a":'), args(1, '{"c":')])
    assert play(stage, args(2, "1}"), args(1, "1}"), args(0, '{"b":1}'), TOOLS) == [
        [],
        [],
        [
            *[args(0, '{"b":1}'), stop(0)],
            *[start(1, CALL_C), args(1, '{"c":'), args(1, "1}"), stop(1)],
            *[start(2, CALL_A), args(2, '{"a":'), args(2, "1}")],
        ],
        [stop(2), TOOLS],
    ]


def test_what_waits_is_parted_as_it_came() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, REASONING), start(2, TEXT), [think(1, "A"), think(1, "B")])
    play(stage, text(2, "a"), start(3, CALL_B), text(2, "b"), args(3, '{"b":1}'), text(2, "c"))
    assert stage.held == 12
    assert last(stage, args(0, '{"a":1}')) == [
        *[args(0, '{"a":1}'), stop(0)],
        *[start(1, REASONING), think(1, "A"), think(1, "B"), stop(1)],
        *[start(2, TEXT), text(2, "a"), stop(2)],
        *[start(3, CALL_B), args(3, '{"b":1}'), stop(3)],
        *[start(4, TEXT), text(4, "b"), text(4, "c")],
    ]
    assert stage.held == 0


def test_the_upstreams_word_ends_a_call_at_once() -> None:
    stage = InterleaveBuffer()
    assert play(stage, start(0, CALL_A), args(0, '{"x":1}'), stop(0))[-1] == [stop(0)]
    assert play(stage, stop(0), stop(0, complete=False)) == [[], []]


def test_the_first_word_on_a_waiting_call_stands() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, FREEFORM), args(1, "ls"), stop(1), stop(1, complete=False))
    assert last(stage, stop(0))[-1] == stop(1, complete=True)


def test_freeform_input_ends_by_the_upstreams_word_alone() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, FREEFORM), args(0, '{"x":1}'), start(1, REASONING))
    assert play(stage, think(1, "A"), args(0, "nul"), stop(0)) == [
        [],
        [args(0, "nul")],
        [stop(0), start(1, REASONING), think(1, "A")],
    ]


@pytest.mark.parametrize("fragments", [("{}",), ("{", "}"), ("",), ("null",), (" ",), ()])
def test_empty_arguments_end_no_call_before_its_word(fragments: tuple[str, ...]) -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), *[args(0, fragment) for fragment in fragments], start(1, TEXT))
    assert last(stage, text(1, "a")) == []
    out = last(stage, stop(0))
    assert out[-3:] == [stop(0), start(1, TEXT), text(1, "a")]
    assert stage.held == 0


@pytest.mark.parametrize("text_of_none", ["", " ", "null"])
def test_arguments_that_are_none_become_an_empty_object(text_of_none: str) -> None:
    assert play(InterleaveBuffer(), start(0, CALL_A), args(0, text_of_none), TOOLS)[1:] == [
        [],
        [args(0, "{}"), stop(0), TOOLS],
    ]


def test_an_empty_object_and_then_the_arguments_is_the_arguments() -> None:
    stage = InterleaveBuffer()
    assert play(stage, start(0, CALL_A), args(0, "{}"), args(0, '{"x":1}'), TOOLS)[1:] == [
        [args(0, "{")],
        [args(0, '"x":1}')],
        [stop(0), TOOLS],
    ]
    assert losses(stage.ledger) == []


def test_arguments_encoded_twice_are_unwrapped_and_recorded() -> None:
    stage = InterleaveBuffer()
    assert play(stage, start(0, CALL_A), args(0, '"{\\"x\\"'), args(0, ':1}"'))[1:] == [[], []]
    assert stage.held == 11
    assert last(stage, TOOLS) == [args(0, '{"x":1}'), stop(0), TOOLS]
    assert stage.held == 0
    assert losses(stage.ledger) == [("arguments", "unwrapped", "an object encoded twice")]
    assert [entry.stage for entry in stage.ledger] == ["InterleaveBuffer"]


def test_text_behind_whole_arguments_is_recorded_once_and_not_written() -> None:
    stage = InterleaveBuffer()
    assert play(stage, start(0, CALL_A), args(0, '{"x":1} a'), args(0, "b"), args(0, "\n"))[1:] == [
        [args(0, '{"x":1}')],
        [],
        [],
    ]
    assert losses(stage.ledger) == [("arguments", "dropped", "text behind the end of their JSON value")]


def test_text_behind_whole_arguments_is_recorded_though_it_comes_once() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":1}'), args(0, "{}"))
    assert losses(stage.ledger) == [("arguments", "dropped", "text behind the end of their JSON value")]


def test_fragments_for_a_call_that_has_ended_are_recorded_and_blank_ones_are_nothing() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), args(0, '{"x":1}'), start(1, TEXT), text(1, "a"))
    assert play(stage, args(0, " \n"), text(1, "b")) == [[], [text(1, "b")]]
    assert losses(stage.ledger) == []
    assert last(stage, args(0, "more")) == []
    assert losses(stage.ledger) == [("arguments", "dropped", "for a call that has ended")]


def test_fragments_behind_the_word_on_a_waiting_call_are_recorded() -> None:
    stage = InterleaveBuffer()
    play(stage, start(0, CALL_A), start(1, FREEFORM), args(1, "ls"), stop(1), args(1, " -l"))
    assert losses(stage.ledger) == [("arguments", "dropped", "for a call that has ended")]
    assert last(stage, stop(0))[-3:] == [start(1, FREEFORM), args(1, "ls"), stop(1)]
