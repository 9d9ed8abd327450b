"""stages.interleave: work, and what is copied, is linear in the events, however they mix: counted, not timed."""

from collections.abc import Callable, Iterator
from itertools import chain

import pytest

from pipeline.events import AnnotationDelta, Block, Event, MessageStop, RefusalDelta, ToolUseBlock
from pipeline.limits import Limits
from stages.interleave import InterleaveBuffer
from tests.canonical import BEGIN, CALL_A, END, ITEM, REASONING, TEXT, args, start, stop, text, think
from tests.scrubbing import calls_made

LIMITS = Limits(blocks=1_000_000, held_bytes=1 << 30)


class Index(int):
    """A block's index, whose comparisons are calls that count."""

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))


def call(index: int) -> list[Event]:
    return [start(index, ToolUseBlock(f"c{index}", "f")), args(index, "{}"), stop(index)]


def turns(count: int, *events: Event) -> Iterator[Event]:
    return chain.from_iterable([events] * count)


def opened(count: int, says: Callable[[int], Event] = lambda at: text(at, "a"), block: Block = TEXT) -> list[Event]:
    """So many blocks, all begun before any ends."""
    return [event for at in map(Index, range(1, count + 1)) for event in (start(at, block), says(at))]


def each(count: int, event: Callable[[int], Event]) -> list[Event]:
    return [event(at) for at in map(Index, range(1, count + 1))]


TALK = [start(0, TEXT), start(1, REASONING)]
SHAPES: dict[str, Callable[[int], list[Event]]] = {
    "blanks between reasoning": lambda n: [*TALK, text(0, "x"), *turns(n, text(0, " "), think(1, "b"))],
    "blanks between reasoning, then text": lambda n: [
        *[*TALK, text(0, "x"), *turns(n, text(0, " "), think(1, "b"))],
        *[text(0, "y"), stop(0)],
    ],
    "many blanks, then turns": lambda n: [
        *[*TALK, text(0, "x"), think(1, "a"), *turns(n, text(0, " "))],
        *turns(n, think(1, "b"), text(0, " ")),
    ],
    "blanks between calls": lambda n: [
        *[start(0, TEXT), text(0, "x")],
        *chain.from_iterable([text(0, " "), *call(at)] for at in range(1, n + 1)),
        text(0, "y"),
    ],
    "text between calls": lambda n: [
        start(0, TEXT),
        *chain.from_iterable([text(0, "a"), *call(at)] for at in range(1, n + 1)),
    ],
    "refusals and blanks between reasoning": lambda n: [
        *[*TALK, RefusalDelta(0, "x")],
        *turns(n, RefusalDelta(0, " "), think(1, "b")),
    ],
    "notes and blanks between reasoning": lambda n: [
        *[*TALK, text(0, "x")],
        *turns(n, AnnotationDelta(0, {}), text(0, " "), think(1, "b")),
    ],
    "text and reasoning behind a call": lambda n: [
        *[start(9, CALL_A), *TALK, *turns(n, text(0, "a"), think(1, "b")), args(9, "{}"), stop(9)],
    ],
    "text and reasoning behind a call that fails": lambda n: [
        *[start(9, CALL_A), args(9, "{}"), *TALK, *turns(n, text(0, "a"), think(1, "b"))],
    ],
    "text behind a reasoning item": lambda n: [start(0, ITEM), start(1, TEXT), *turns(n, text(1, "a"), think(0, "b"))],
    "texts at once": lambda n: [*opened(n), *each(n, stop)],
    "texts at once, ended the other way": lambda n: [*opened(n), *reversed(each(n, stop))],
    "texts at once that go on": lambda n: [*opened(n), *each(n, lambda at: text(at, "b")), *each(n, stop)],
    "texts at once that go on with blanks": lambda n: [*opened(n), *each(n, lambda at: text(at, " ")), *each(n, stop)],
    "texts at once around calls": lambda n: [
        *[*opened(n), *call(n + 1), *each(n, lambda at: text(at, "b")), *call(n + 2), *each(n, stop)],
    ],
    "texts at once that nobody ends": opened,
    "refusals at once": lambda n: [*opened(n, lambda at: RefusalDelta(at, "a")), *each(n, stop)],
    "reasoning at once": lambda n: [*opened(n, lambda at: think(at, "a"), REASONING), *each(n, stop)],
    "the first of two texts goes on around blanks": lambda n: [
        *[start(0, TEXT), text(0, "a"), start(1, TEXT), text(1, "b")],
        *[*turns(n, text(0, " "), text(1, " ")), stop(0), stop(1)],
    ],
    "calls at once": lambda n: [
        *[start(at, ToolUseBlock(f"c{at}", "f")) for at in range(1, n + 1)],
        *[*each(n, lambda at: args(at, "{}")), *each(n, stop)],
    ],
    "blocks that say nothing": lambda n: [*each(n, lambda at: start(at, TEXT)), *each(n, stop)],
}


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str, ends: bool) -> None:
    def work(count: int) -> Callable[[], object]:
        events = [BEGIN, *SHAPES[shape](count), *([END, MessageStop()] if ends else [])]
        stage = InterleaveBuffer(limits=LIMITS)
        return lambda: [stage.receive([event]) for event in events] and stage.receive_eof()

    short, long = calls_made(work(200)), calls_made(work(800))
    assert long <= 4.2 * short + 100


def test_what_is_held_comes_to_nothing() -> None:
    for shape in SHAPES.values():
        stage = InterleaveBuffer(limits=LIMITS)
        for event in [BEGIN, *shape(10), END]:
            stage.receive([event])
        assert stage.held == 0
