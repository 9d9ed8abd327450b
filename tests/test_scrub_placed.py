"""stages.scrub.inplace: every event as it came, in its place, and what is put in between; step by step."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageStop,
    ReasoningDelta,
    RefusalDelta,
    ServerBlock,
    TextDelta,
    ToolUseBlock,
)
from pipeline.limits import Limits
from pipeline.route import AnswerOptions
from pipeline.testing import play
from stages.scrub import TagScrubber
from stages.scrub.inplace import OWN
from stages.scrub.tape import EVENT
from tests.canonical import BEGIN, CALL_A, END, REASONING, TEXT, args, losses, start, stop, text, think
from tests.canonical import TOOLS as CALLED
from tests.scrubbing import CALL, MARKUP, NATIVE, PROMPT, TOOLS, F, Scrubbed, cuts, obeys

FIRST = [BEGIN, start(0, TEXT)]
NOTHING = "<tool_call></tool_call>"
"""Markup of no call."""
BESIDE, OPENING = Carry("x", Frame(b"1")), Carry("x", Frame(b"2"), opens=True)


def steps(*events: Event, options: AnswerOptions = PROMPT) -> Sequence[Sequence[Event]]:
    """What each of some events brings, behind the start of a message and of its text."""
    scrubber = TagScrubber(options=options, tools=TOOLS, in_place=True)
    return play(scrubber, FIRST, *events)[1:]


def said(*events: Event, **asked: Any) -> list[Event]:
    """What all of them bring."""
    return [event for step in steps(*events, **asked) for event in step]


def call(index: int) -> list[Event]:
    """The call of `MARKUP`, whatever its id."""
    return [BlockStart(index, ToolUseBlock("", "f")), ArgumentsDelta(index, '{"x": 1}'), BlockStop(index)]


def without_ids(events: Sequence[Event]) -> list[Event]:
    """Events whose calls have no id."""
    return [
        BlockStart(event.index, ToolUseBlock("", event.block.name))
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock)
        else event
        for event in events
    ]


def test_blanks_at_the_beginning_wait_for_the_first_text() -> None:
    assert steps(text(0, " "), text(0, "\n"), text(0, "a")) == [
        [],
        [],
        [start(0, TEXT), text(0, " "), text(0, "\n"), text(0, "a")],
    ]


def test_blanks_at_the_beginning_are_written_if_nothing_else_comes() -> None:
    assert steps(text(0, " "), END, MessageStop()) == [[], [start(0, TEXT), text(0, " "), END], [MessageStop()]]


def test_blanks_between_markup_and_the_first_text_are_not_written() -> None:
    made = steps(text(0, MARKUP), text(0, " "), text(0, "a"), text(0, " b"))
    assert without_ids(made[0]) == call(OWN)
    assert made[1:] == [[], [start(OWN + 1, TEXT), text(OWN + 1, "a")], [text(OWN + 1, " b")]]
    assert said(text(0, MARKUP), text(0, " a"))[-1] == text(OWN + 1, "a")


def test_blanks_between_markup_and_text_that_others_stand_before_are_written() -> None:
    assert said(text(0, "a"), text(0, MARKUP), text(0, " "), text(0, "b"))[-2:] == [
        text(OWN + 1, " "),
        text(OWN + 1, "b"),
    ]
    assert said(text(0, MARKUP), text(0, "a"), text(0, MARKUP), text(0, " b"))[-1] == text(OWN + 3, " b")


def test_text_behind_markup_of_which_no_blank_is_taken_leaves_as_the_event_that_it_was() -> None:
    other = start(1, TEXT)
    event = text(1, "a")
    made = said(text(0, NOTHING), stop(0), other, event)
    assert made == [other, event]
    assert made[1] is event


def test_blanks_that_were_written_before_a_block_are_text_to_what_follows() -> None:
    made = said(text(0, " "), start(1, CALL_A), stop(1), text(0, MARKUP), text(0, " b"))
    assert made[:4] == [start(0, TEXT), text(0, " "), start(1, CALL_A), stop(1)]
    assert made[-1] == text(OWN + 1, " b")


def test_blanks_behind_a_block_leave_at_once() -> None:
    assert steps(text(0, MARKUP), start(1, CALL_A), stop(1), text(0, " "))[-1] == [
        start(OWN + 1, TEXT),
        text(OWN + 1, " "),
    ]
    assert steps(AnnotationDelta(0, {}), text(0, " ")) == [[start(0, TEXT), AnnotationDelta(0, {})], [text(0, " ")]]


def test_what_belongs_to_no_block_waits_in_its_place() -> None:
    assert steps(BESIDE, text(0, MARKUP))[0] == []
    assert said(BESIDE, text(0, MARKUP))[0] is BESIDE
    assert steps(BESIDE, text(0, "a")) == [[], [start(0, TEXT), BESIDE, text(0, "a")]]
    opened = AnswerOptions(recover="prompt", reasoning_open=True)
    assert said(BESIDE, text(0, "hm"), options=opened) == [BESIDE, start(OWN, REASONING), think(OWN, "hm")]


def test_a_block_that_begins_while_another_speaks_stands_before_what_the_other_says_then() -> None:
    assert steps(text(0, "a"), start(1, TEXT), text(0, "b"))[-1] == [start(1, TEXT), text(0, "b")]


def test_text_behind_the_end_of_its_block_has_another() -> None:
    assert said(text(0, "a"), stop(0), text(0, "b"), stop(0))[2:] == [
        stop(0),
        start(OWN, TEXT),
        text(OWN, "b"),
        stop(OWN),
    ]


def test_text_of_a_block_that_never_began_has_one_and_its_end_too() -> None:
    assert said(text(5, "a"), stop(5)) == [start(0, TEXT), start(OWN, TEXT), text(OWN, "a"), stop(OWN)]


def test_a_block_of_ours_ends_with_the_message_and_once() -> None:
    assert steps(text(0, f"{NOTHING}a"), END, MessageStop()) == [
        [start(OWN, TEXT), text(OWN, "a")],
        [stop(OWN), END],
        [MessageStop()],
    ]


def test_reasoning_behind_text_closes_its_block() -> None:
    assert said(text(0, "a"), text(0, "<think>hm"), END) == [
        start(0, TEXT),
        text(0, "a"),
        stop(0),
        start(OWN, REASONING),
        think(OWN, "hm"),
        stop(OWN),
        END,
    ]


def test_reasoning_ends_before_what_follows_it() -> None:
    thought = [start(OWN, REASONING), think(OWN, "hm")]
    assert without_ids(said(text(0, f"<think>hm</think>{MARKUP}"))) == [*thought, stop(OWN), *call(OWN + 1)]
    other = [start(1, TEXT), text(1, "a")]
    assert said(text(0, "<think>hm</think>"), *other) == [*thought, stop(OWN), *other]


@pytest.mark.parametrize("written", ["<think>hm</think>", "<think>hm"])
def test_reasoning_ends_before_what_has_its_place_and_no_block_here(written: str) -> None:
    thought = [start(OWN, REASONING), think(OWN, "hm")]
    assert said(text(0, written), OPENING) == [*thought, stop(OWN), OPENING]
    assert said(text(0, written), BESIDE) == [*thought, BESIDE]


def test_reasoning_goes_on_behind_what_is_only_passed_on() -> None:
    thought = [start(OWN, REASONING), think(OWN, "one"), BESIDE, think(OWN, " two"), stop(OWN)]
    assert said(text(0, "<think>one "), BESIDE, text(0, "two</think>"), END) == [*thought, END]


BETWEEN: list[list[Event]] = [
    [OPENING],
    [stop(0), OPENING, start(1, TEXT)],
    [start(2, ServerBlock("x", {})), stop(2)],
    [start(2, CALL_A), args(2, "{}"), stop(2)],
]


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize(("first", "second"), [("one ", "two"), ("one", "\ntwo"), ("one \n", "\ntwo"), ("one ", " ")])
def test_between_two_parts_of_reasoning_no_blank_is_lost(first: str, second: str, between: list[Event]) -> None:
    events = [text(0, f"<think>{first}"), *between, text(0, second), text(0, " ...</think>"), END]
    made = said(*events)
    assert "".join(event.text for event in made if isinstance(event, ReasoningDelta)) == f"{first}{second} ..."
    assert [event.index for event in made if event in (start(OWN, REASONING), start(OWN + 1, REASONING))] == [
        OWN,
        OWN + 1,
    ]
    obeys(made, dense=False)
    whole = Scrubbed().give(BEGIN, start(0, TEXT), *[event for event in events if not isinstance(event, Carry)])
    assert "".join(event.text for event in whole.events if isinstance(event, ReasoningDelta)) == f"{first}{second} ..."


def test_blanks_that_nothing_follows_are_not_held_at_the_end() -> None:
    for in_place in (False, True):
        scrubber = TagScrubber(options=PROMPT, tools=TOOLS, in_place=in_place)
        play(scrubber, FIRST, text(0, "<think>one "), OPENING)
        assert scrubber.held == 1
        play(scrubber, END)
        assert scrubber.held == 0


def test_blanks_that_may_not_wait_any_longer_are_reasoning_whatever_closed_it() -> None:
    made = Scrubbed(limits=Limits(held_bytes=8), in_place=True).give(
        *FIRST, text(0, "<think>one"), OPENING, text(0, " " * 9), text(0, "two"), END
    )
    assert "".join(event.text for event in made.events if isinstance(event, ReasoningDelta)) == f"one{' ' * 9}two"


def test_blanks_about_markup_in_reasoning_are_not_written() -> None:
    made = said(text(0, f"<think> a {NOTHING}"), text(0, " b </think>"), END)
    assert [event.text for event in made if isinstance(event, ReasoningDelta)] == ["a", "b"]


def test_blanks_at_the_beginning_of_reasoning_that_the_prompt_opened_are_not_written() -> None:
    opened = AnswerOptions(recover="prompt", reasoning_open=True)
    assert said(text(0, " "), text(0, " a b"), text(0, " c"), options=opened) == [
        start(OWN, REASONING),
        think(OWN, "a b"),
        think(OWN, " c"),
    ]


def test_a_note_on_text_that_was_markup_is_recorded() -> None:
    scrubber = TagScrubber(options=PROMPT, tools=TOOLS, in_place=True)
    play(scrubber, FIRST, text(0, MARKUP), AnnotationDelta(0, {}))
    assert losses(scrubber.ledger) == [("annotation", "dropped", "the text that it belongs to was markup")]
    assert {entry.stage for entry in scrubber.ledger} == {"TagScrubber"}


NOTE, LATER = AnnotationDelta(0, {"x": 1}), AnnotationDelta(0, {"x": 2})


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("parts", [[MARKUP], cuts(MARKUP, 7), [f"{MARKUP}\n", MARKUP], [f"{MARKUP}</tool_call>\n"]])
@pytest.mark.parametrize("at", range(3))
def test_a_citation_that_waits_with_a_call_stays_with_the_text_before_it(
    parts: list[str], at: int, in_place: bool
) -> None:
    events: list[Event] = [text(0, part) for part in parts]
    events.insert(at, NOTE)
    out = Scrubbed(NATIVE, in_place=in_place).give(BEGIN, start(0, TEXT), text(0, "a"), *events, LATER, stop(0), END)
    assert out.events[1:6] == [start(0, TEXT), text(0, "a"), NOTE, LATER, stop(0)]
    assert out.lost == []


@pytest.mark.parametrize("in_place", [False, True])
def test_a_citation_of_the_text_behind_a_call_stays_with_that(in_place: bool) -> None:
    first = [BEGIN, start(0, TEXT), text(0, "a"), text(0, MARKUP), NOTE, text(0, "b"), LATER, stop(0)]
    for behind in ([], [start(1, TEXT), AnnotationDelta(1, {}), text(1, "c"), stop(1)]):
        scrubber = TagScrubber(options=NATIVE, tools=TOOLS, in_place=in_place)
        out = [type(event).__name__.removeprefix("Block") for event in play(scrubber, [*first, *behind, END])[0]]
        words = ["MessageStart", "Start", "TextDelta", "AnnotationDelta", "Stop", "Start", "ArgumentsDelta", "Stop"]
        words += ["Start", "TextDelta", "AnnotationDelta", "Stop"]
        words += ["Start", "AnnotationDelta", "TextDelta", "Stop"] if behind else []
        assert out == [*words, "MessageDelta"]
        assert len(scrubber.ledger) == 0


def test_a_citation_of_another_block_does_not_leave_before_it_begins() -> None:
    events = [start(1, TEXT), AnnotationDelta(1, {}), text(1, "c"), stop(1)]
    out = Scrubbed(NATIVE).give(BEGIN, start(0, TEXT), text(0, f"a{MARKUP}"), stop(0), *events, END)
    assert out.content == ["a", F, "c"]
    assert out.events[-5:-1] == [start(2, TEXT), AnnotationDelta(2, {}), text(2, "c"), stop(2)]


def test_plain_text_leaves_in_the_read_that_it_came_in() -> None:
    events = [text(0, "a"), text(0, " b "), text(0, "c")]
    made = steps(*events)
    assert made == [[start(0, TEXT), events[0]], [events[1]], [events[2]]]
    assert all(one is event for one, event in zip(said(*events)[1:], events, strict=True))


def test_a_call_that_is_cut_out_leaves_the_text_about_it() -> None:
    made = said(text(0, f"a<tool_call>{CALL}"), text(0, "</tool_call>b"), stop(0), END)
    assert without_ids(made) == [
        start(0, TEXT),
        text(0, "a"),
        stop(0),
        *call(OWN),
        start(OWN + 1, TEXT),
        text(OWN + 1, "b"),
        stop(OWN + 1),
        CALLED,
    ]


@pytest.mark.parametrize("beside", [AnnotationDelta(0, {"type": "x"}), RefusalDelta(0, "no")])
@pytest.mark.parametrize("markup", ["<think>a</think>", MARKUP])
def test_a_block_that_something_beside_text_began_is_closed_before_what_is_put_in(markup: str, beside: Event) -> None:
    out = said(beside, text(0, f"{markup}b"), stop(0), END)
    assert out[:3] == [start(0, TEXT), beside, stop(0)]
    obeys([BEGIN, *out], dense=False)
    assert [event for event in out if event == text(OWN + 1, "b")]


def test_the_start_of_a_text_block_behind_markup_leaves_before_another_block() -> None:
    other = start(2, REASONING)
    assert steps(text(0, MARKUP), stop(0), start(1, TEXT), other)[2:] == [[], [start(1, TEXT), other]]


def test_a_refusal_is_no_text_that_blanks_behind_markup_could_belong_to() -> None:
    made = said(RefusalDelta(0, "no"), text(0, MARKUP), text(0, " a"))
    assert [event.text for event in made if isinstance(event, TextDelta)] == ["a"]


def test_what_waits_behind_blanks_counts_with_its_frame() -> None:
    scrubber = TagScrubber(options=PROMPT, tools=TOOLS, in_place=True)
    play(scrubber, FIRST, text(0, " "))
    before = scrubber.held
    play(scrubber, Carry("x", Frame(b"1" * 50)))
    assert scrubber.held - before == EVENT + 50
