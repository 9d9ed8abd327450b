"""stages.scrub: what waits behind something that is not certain, and when it does no longer."""

from typing import Any

import pytest

from pipeline.events import AnnotationDelta, BlockStart, Event, ToolUseBlock
from pipeline.ledger import Ledger
from pipeline.route import AnswerOptions
from stages.scrub import TagScrubber
from stages.scrub.scanner import Kind, Piece
from stages.scrub.tape import Tape
from tests.canonical import BEGIN, REASONING, TEXT, losses, start, stop, text, think
from tests.scrubbing import CALL, MARKUP, PROMPT, TOOLS, F, Scrubbed, at_every_cut, cuts, said, scrubbed

NOTE = AnnotationDelta(0, {"n": 1})
STRAY = "</tool_call>"
CLOSED = """<tool_call name="f" arguments="{'x': 1}"/>"""
"""Markup that ends with the call."""


def stage(**asked: Any) -> TagScrubber:
    """A scrubber in the text of an answer."""
    asked = {"options": PROMPT, "tools": TOOLS, **asked}
    made = TagScrubber(**asked)
    made.receive([BEGIN, start(0, TEXT)])
    return made


def calls(events: Any) -> list[str]:
    """Of which tools calls begin."""
    blocks = [event.block for event in events if isinstance(event, BlockStart)]
    return [block.name for block in blocks if isinstance(block, ToolUseBlock)]


def recorded(*events: Event) -> Tape:
    """A tape that these waited for."""
    tape = Tape()
    for event in events:
        if event == NOTE:
            tape.wait(event)
        else:
            tape.events.append(event)
    return tape


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("behind", [f"{MARKUP}b", f"{MARKUP} b", f"{MARKUP}\n{MARKUP}b", f"{CLOSED}b"])
def test_a_call_waits_for_no_citation_where_text_stands_behind_it(behind: str, in_place: bool) -> None:
    assert calls(stage(whole=True, in_place=in_place).receive([text(0, f"a {behind}")]))[:1] == ["f"]


@pytest.mark.parametrize("behind", ["", " ", f"\n{MARKUP}"])
def test_a_call_that_ends_the_text_so_far_waits_for_a_citation(behind: str) -> None:
    scrubber = stage(whole=True)
    assert calls(scrubber.receive([text(0, f"a {MARKUP}{behind}")])) == []
    assert calls(scrubber.receive([NOTE])) == []
    assert calls(scrubber.receive([text(0, "b")]))[:1] == ["f"]


def test_citations_that_are_taken_off_a_tape_weigh_nothing_there() -> None:
    tape = recorded(text(0, "ab"), NOTE, text(0, "c"))
    tape.tell(Piece(Kind.CALLS, "ab"))
    before = tape.size
    assert before > 2
    assert tape.notes(2, []) == [NOTE]
    assert tape.size == 2
    assert [*tape.events] == [text(0, "ab"), text(0, "c")]


def test_a_citation_that_came_since_is_found_where_the_text_ended() -> None:
    tape = recorded(text(0, "ab"))
    assert tape.notes(2, []) == []
    tape.wait(NOTE)
    assert tape.notes(1, []) == []
    assert tape.notes(2, []) == [NOTE]


def test_a_citation_is_found_behind_what_is_known_since_to_show_nothing() -> None:
    tape = recorded(text(0, "ab"))
    assert tape.notes(2, []) == []
    tape.events.append(text(0, "cd"))
    tape.wait(NOTE)
    assert tape.notes(2, [Piece(Kind.CALLS, "cd")]) == [NOTE]


def test_a_block_that_waits_behind_a_call_that_is_cut_is_recorded() -> None:
    ledger = Ledger()
    scrubber = stage(options=AnswerOptions(recover="prompt", stream_calls=True), ledger=ledger)
    begun = f"a <tool_call>{CALL[:-4]}"
    assert calls(scrubber.receive([text(0, begun)])) == ["f"]
    scrubber.receive([text(0, CALL[-4:-2]), start(1, REASONING), think(1, "b"), stop(1)])
    scrubber.receive_eof()
    assert losses(ledger) == [("block", "dropped", "it waited behind a call that was cut")]
    assert scrubber.held == 0


def test_blanks_that_are_all_of_a_text_which_is_cut_are_written() -> None:
    scrubber = stage()
    assert scrubber.receive([text(0, " ")]) == []
    assert [*scrubber.receive_eof()] == [start(0, TEXT), text(0, " "), stop(0)]


def test_text_behind_text_passes_in_the_very_list_that_it_came_in() -> None:
    scrubber, read = stage(), [text(0, "b")]
    assert scrubber.receive([text(0, "a")]) == [start(0, TEXT), text(0, "a")]
    assert scrubber.receive(read) is read


@pytest.mark.parametrize("word", ["weigh ", "weigh " * 50])
def test_a_call_that_was_weighed_in_reasoning_stays_there_once_the_model_answers(word: str) -> None:
    whole = f"{word}{MARKUP}"
    assert scrubbed(f"<think>{whole}", "</think>ok", in_place=True).content == [[whole], "ok"]
    assert scrubbed(f"<think>{whole}", "</think>", in_place=True).content == [[word.strip()], F]


def test_of_a_piece_in_several_deltas_only_the_last_waits_for_what_is_not_decided() -> None:
    whole = f"a <toolx b {MARKUP}"
    made = Scrubbed(in_place=True).give(*said("<think>a <tool", f"x b {MARKUP}", "</think>ok"))
    assert made.content == [[whole], "ok"]


def test_a_token_that_is_text_begins_a_delta_but_where_each_passes_as_it_came() -> None:
    whole = f"a {STRAY}\nb"
    assert scrubbed(whole, in_place=True).deltas == [whole]
    assert scrubbed(whole).deltas == ["a ", f"{STRAY}\nb"]


def test_in_place_an_empty_delta_that_waited_leaves_if_its_block_is_open_as_it_came() -> None:
    assert scrubbed("a <", "", "b", in_place=True).deltas == ["a <", "", "b"]
    assert scrubbed("a", MARKUP, "b <", "", "c", in_place=True).deltas == ["a", "b <", "c"]
    assert scrubbed("a <", "", "b").deltas == ["a ", "<", "b"]


def test_a_mark_of_a_quote_that_came_alone_begins_no_line_behind_more_of_it() -> None:
    assert at_every_cut(f"> abc ```\n{MARKUP}").content == ["> abc ```\n", F]
    assert scrubbed("a\n", "> ", "abc ", f"```\n{MARKUP}").content == ["a\n> abc ```\n", F]
    assert scrubbed(*cuts(f"> ```\n{MARKUP}", 1)).content == [f"> ```\n{MARKUP}"]
