"""stages.scrub.tape: what waits, taken off as it was cut, and that nothing is kept where nothing waits."""

import tracemalloc

import pytest

from pipeline.events import Event, Frame, Ping, TextDelta
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import play
from stages.scrub import TagScrubber
from stages.scrub.scanner import Kind, Piece
from stages.scrub.tape import Tape
from tests.canonical import BEGIN, TEXT, start, text
from tests.scrubbing import CALL, PROMPT, TOOLS

STREAMS = 100
MOST = 2000
"""Bytes, of which an empty deque alone would take 600."""


def recorded(*events: Event) -> Tape:
    """A tape that holds these."""
    tape = Tape()
    tape.events.extend(events)
    return tape


def test_text_is_taken_off_in_the_deltas_that_it_came_in() -> None:
    ping = Ping()
    tape = recorded(text(0, "abc"), ping, text(1, "de"), text(1, "f"))
    assert list(tape.take(2)) == [text(0, "ab")]
    assert list(tape.take(2)) == [text(0, "c"), ping, text(1, "d")]
    assert list(tape.take(2)) == [text(1, "e"), text(1, "f")]
    assert not tape.events


def test_what_stands_behind_the_text_stays() -> None:
    tape = recorded(text(0, "ab"), Ping())
    assert list(tape.take(0)) == []
    assert list(tape.take(2)) == [text(0, "ab")]
    assert list(tape.events) == [Ping()]


@pytest.mark.parametrize("first", [True, False])
def test_of_a_delta_in_parts_the_first_that_is_shown_keeps_its_frame(first: bool) -> None:
    frame = Frame(b"x")
    tape = recorded(TextDelta(0, "abcd", origin=frame), TextDelta(0, "ef", origin=frame))
    origins = [[event.origin for event in tape.take(1, shown=shown)] for shown in (first, True, True, True)]
    assert origins == ([[frame], [None], [None], [None]] if first else [[frame], [frame], [None], [None]])
    assert [event.origin for event in tape.take(1, shown=True)] == [frame]


def test_it_tells_how_much_of_what_comes_next_is_whole_deltas() -> None:
    tape = recorded(text(0, "abc"), Ping(), text(0, "de"))
    assert [tape.whole(length) for length in range(6)] == [0, 0, 0, 3, 3, 5]
    list(tape.take(1))
    assert [tape.whole(length) for length in range(5)] == [0, 0, 2, 2, 4]


def test_pieces_are_in_order_and_their_bytes_are_counted() -> None:
    tape, first, last = Tape(), Piece(Kind.TEXT, "aü"), Piece(Kind.TEXT, "b")
    tape.tell(first)
    tape.tell(last)
    assert tape.size == 4
    assert tape.next() is first
    assert tape.size == 1
    tape.put_back(first)
    assert tape.size == 4
    assert [tape.next(), tape.next()] == [first, last]


def test_only_text_that_is_not_empty_speaks() -> None:
    assert recorded(text(0, "a")).speaks
    assert not recorded(text(0, "")).speaks
    assert not recorded(Ping(), text(0, "a")).speaks
    assert not recorded().speaks


def test_where_nothing_waits_nothing_is_kept_for_it() -> None:
    shared, outcome = Ledger(), Outcome()

    def stream() -> TagScrubber:
        return TagScrubber(options=PROMPT, tools=TOOLS, ledger=shared, outcome=outcome)

    events = (BEGIN, start(0, TEXT), text(0, f"a <tool_call>{CALL}</tool_call> b"), text(0, "c <"), text(0, "d"))
    play(stream(), *events)  # what is built once
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        streams = [stream() for _ in range(STREAMS)]
        for one in streams:
            for event in events:
                one.receive([event])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / STREAMS < MOST
