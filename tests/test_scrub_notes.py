"""stages.scrub: whose a citation is that comes behind a call which was written as text."""

from typing import Any

import pytest

from pipeline.events import AnnotationDelta, BlockStop, Event, MessageDelta, TextDelta
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from stages.scrub import TagScrubber
from tests.canonical import BEGIN, END, TEXT, losses, start, stop, text
from tests.scrubbing import CALL, MARKUP, PROMPT, TOOLS, cuts

A, B = AnnotationDelta(0, {"n": 1}), AnnotationDelta(0, {"n": 2})
CLOSED = ("annotation", "dropped", "the text that it belongs to ended before a call")
WAS_MARKUP = ("annotation", "dropped", "the text that it belongs to was markup")


def given(*events: Event, **asked: Any) -> tuple[list[list[str]], list[tuple[str, str, str]], list[Event]]:
    """The words of each block, with the numbers of its citations, the losses, and what leaves before the end."""
    ledger = Ledger()
    stage = TagScrubber(options=PROMPT, tools=TOOLS, ledger=ledger, **asked)
    early = [made for event in (BEGIN, start(0, TEXT), *events) for made in stage.receive([event])]
    rest = [made for event in (stop(0), END) for made in stage.receive([event])]
    assert stage.held == 0
    blocks: dict[int, list[str]] = {}
    for event in (*early, *rest):
        if isinstance(event, TextDelta):
            blocks.setdefault(event.index, []).append(event.text)
        elif isinstance(event, AnnotationDelta):
            blocks.setdefault(event.index, []).append(str(event.annotation["n"]))
    opened = sum(type(event).__name__ == "BlockStart" for event in (*early, *rest))
    assert sum(isinstance(event, BlockStop) for event in (*early, *rest)) == opened
    assert isinstance(rest[-1], MessageDelta)
    return [*blocks.values()], losses(ledger), early


BEHIND = [
    [f"a {MARKUP}"],
    ["a ", MARKUP],
    ["a ", *cuts(MARKUP, 5)],
    [f"a {MARKUP}\n{MARKUP}\n"],
    ["a ", MARKUP, "\n", MARKUP],
    [f"a {MARKUP}</tool_call>"],
]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("parts", BEHIND)
def test_in_a_whole_answer_a_citation_behind_a_call_stays_with_the_text_before_it(
    parts: list[str], in_place: bool
) -> None:
    words = [*(text(0, part) for part in parts), A, B]
    for events in (words, [A, B, *words[:-2]], [*words[:-2], A, text(0, " "), B]):
        blocks, lost, _ = given(*events, whole=True, in_place=in_place)
        assert [sorted(block) for block in blocks] == [["1", "2", "a "]]
        assert lost == []


@pytest.mark.parametrize("in_place", [False, True])
def test_that_of_the_text_behind_the_call_stays_with_that(in_place: bool) -> None:
    events = [text(0, f"a {MARKUP}"), text(0, "b"), A, text(0, MARKUP), B]
    assert given(*events, whole=True, in_place=in_place)[:2] == ([["a "], ["b", "1", "2"]], [])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("parts", BEHIND)
def test_in_a_stream_a_call_leaves_at_once_and_a_citation_behind_it_is_recorded(
    parts: list[str], in_place: bool
) -> None:
    blocks, lost, early = given(*(text(0, part) for part in parts), A, in_place=in_place)
    assert (blocks, lost) == ([["a "]], [CLOSED])
    assert any(type(event).__name__ == "ArgumentsDelta" for event in early)
    assert given(A, *(text(0, part) for part in parts), in_place=in_place)[1] == []


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_that_of_text_which_was_markup_is_recorded_as_such(in_place: bool, whole: bool) -> None:
    assert given(text(0, MARKUP), A, in_place=in_place, whole=whole)[:2] == ([], [WAS_MARKUP])


@pytest.mark.parametrize("in_place", [False, True])
def test_what_waits_for_a_citation_is_bounded(in_place: bool) -> None:
    limits = Limits(held_bytes=300)
    events = [text(0, f"a {MARKUP}"), *(text(0, f"<tool_call>{CALL}</tool_call>") for _ in range(9)), A]
    blocks, lost, early = given(*events, whole=True, in_place=in_place, limits=limits)
    assert (blocks, lost) == ([["a "]], [CLOSED])
    assert sum(type(event).__name__ == "ArgumentsDelta" for event in early) == 10


@pytest.mark.parametrize("in_place", [False, True])
def test_a_block_behind_it_or_the_end_lets_it_go(in_place: bool) -> None:
    for behind in ([stop(0)], [stop(0), start(1, TEXT), text(1, "b"), stop(1)], [END]):
        stage = TagScrubber(options=PROMPT, tools=TOOLS, in_place=in_place, whole=True)
        before = [made for event in (BEGIN, start(0, TEXT), text(0, f"a {MARKUP}")) for made in stage.receive([event])]
        assert not any(type(event).__name__ == "ArgumentsDelta" for event in before)
        assert any(type(event).__name__ == "ArgumentsDelta" for event in stage.receive(behind))
