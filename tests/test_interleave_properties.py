"""stages.interleave: what holds of every stream."""

import json
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import (
    ArgumentsDelta,
    Block,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStop,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.jsontext import size_of
from pipeline.limits import Limits
from pipeline.stage import Chain
from pipeline.testing import EOF, check_stage, play
from stages.interleave import InterleaveBuffer
from stages.validate import BlockValidator, Mode
from tests.canonical import BEGIN, BOOM, ITEM, LIMIT, NO_OBJECTS, OBJECTS, REASONING, TEXT, WORDS, Stream, streams

Piece = tuple[Block, str]

TEXTS = (TextDelta, RefusalDelta, ReasoningDelta, ArgumentsDelta)
CONTENT = (*TEXTS, SignatureDelta)
plain = streams(words=WORDS, arguments=OBJECTS, alone=True)


def content(event: Event) -> str:
    if isinstance(event, SignatureDelta):
        return event.signature
    return event.text if isinstance(event, TEXTS) else ""


def written(events: Sequence[Event]) -> list[Piece]:
    """The blocks of an output, each with what was written in it: their indexes are dense, one at most is open."""
    blocks: list[Piece] = []
    opened = False
    for event in events:
        if isinstance(event, BlockStart):
            assert not opened
            assert event.index == len(blocks)
            blocks.append((event.block, ""))
            opened = True
        elif isinstance(event, (*CONTENT, BlockStop)):
            assert opened
            assert event.index == len(blocks) - 1
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + content(event))
            opened = not isinstance(event, BlockStop)
    return blocks


def in_order_of_arrival(events: Sequence[Event]) -> list[Piece]:
    """What the output is to be: blocks in order of arrival, text and reasoning parted where something came between."""
    blocks: dict[int, Block] = {}
    arrived: list[tuple[int, list[str]]] = []

    def is_last(index: int) -> bool:
        return bool(arrived) and arrived[-1][0] == index

    leads: dict[int, list[str]] = {}
    spoke: set[int] = set()

    def set_blank_aside(behind: Block | None = None) -> None:
        if arrived and blocks[arrived[-1][0]] == TEXT and "".join(arrived[-1][1]).isspace():
            index, blanks = arrived.pop()
            if behind != REASONING or index in spoke:
                leads[index] = [*leads.get(index, []), *blanks]

    for event in events:
        if isinstance(event, BlockStart):
            blocks[event.index] = event.block
            if event.block not in (TEXT, REASONING):
                set_blank_aside(event.block)
                arrived.append((event.index, []))
        elif isinstance(event, CONTENT) and content(event):
            if blocks[event.index] in (TEXT, REASONING) and not is_last(event.index):
                set_blank_aside(blocks[event.index])
                if not is_last(event.index):
                    arrived.append((event.index, leads.pop(event.index, [])))
            next(parts for index, parts in reversed(arrived) if index == event.index).append(content(event))
            if not content(event).isspace():
                spoke.add(event.index)
    set_blank_aside()
    return [(blocks[index], "".join(parts)) for index, parts in arrived]


def as_written(block: Block, arguments: str) -> str:
    """A whole call's arguments as they are to be written; anything else stays what it is."""
    if not isinstance(block, ToolUseBlock) or block.kind is ToolKind.CUSTOM:
        return arguments
    if arguments.startswith('"'):
        return str(json.loads(arguments))
    return "{}" if arguments in ("", "null") else arguments.removeprefix("null").replace("{}{", "{")


def played(stream: Stream) -> list[Event]:
    return [event for out in play(InterleaveBuffer(), *stream.whole, EOF) for event in out]


@given(streams(alone=True))
def test_blocks_leave_one_at_a_time_in_order_of_arrival_and_nothing_is_lost(stream: Stream) -> None:
    out = played(stream)
    assert written(out) == [(block, as_written(block, text)) for block, text in in_order_of_arrival(stream.events)]
    assert out[-2:] == [stream.finish, MessageStop()]


@given(streams())
def test_texts_that_are_told_at_once_are_not_shuffled(stream: Stream) -> None:
    spoken = [event for _, event in _of_blocks(played(stream))]
    for says in (TextDelta, RefusalDelta, ReasoningDelta):
        text = "".join(content(event) for event in spoken if type(event) is says)
        assert "".join(text.split()) == in_turn(stream, says)


def _of_blocks(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """The deltas of what may be split, each with the block that it stands in."""
    blocks = {event.index: event.block for event in events if isinstance(event, BlockStart)}
    for event in events:
        if isinstance(event, TEXTS) and blocks[event.index] in (TEXT, REASONING):
            yield event.index, event


def in_turn(stream: Stream, says: type[Event]) -> str:
    """What blocks say, the whole of each before the next, in the order in which they began to; without blanks."""
    said: dict[int, str] = {}
    for index, event in _of_blocks(stream.events):
        if (
            type(event) is says
            and content(event)
            and (index in said or says is ReasoningDelta or not content(event).isspace())
        ):
            said[index] = said.get(index, "") + content(event)
    return "".join("".join(said.values()).split())


@given(streams())
def test_the_output_keeps_the_law_and_every_whole_call_is_closed_as_one(stream: Stream) -> None:
    out = play(InterleaveBuffer() | BlockValidator(mode=Mode.STRICT), *stream.whole, EOF)
    assert all(event.complete for made in out for event in made if isinstance(event, BlockStop))


@given(streams(arguments=NO_OBJECTS, lawful=False), st.sampled_from([LIMIT, BOOM, None]))
def test_any_batches_give_the_same(stream: Stream, finish: Event | None) -> None:
    check_stage(InterleaveBuffer, [BEGIN, *stream.events, finish or stream.finish])


@given(plain)
def test_what_has_come_is_written_or_held_and_held_is_what_waits(stream: Stream) -> None:
    stage = InterleaveBuffer()
    came = left = 0
    for event in stream.whole:
        came += size_of(content(event))
        left += sum(size_of(content(made)) for made in stage.receive([event]))
        assert stage.held == came - left
    assert stage.held == 0


@given(streams(words=WORDS))
def test_texts_that_wait_are_held_no_longer_than_the_one_before_them_goes_on(stream: Stream) -> None:
    stage = InterleaveBuffer()
    for event in stream.whole:
        stage.receive([event])
        if stage.held:
            assert not isinstance(event, MessageDelta | MessageStop)


@given(plain)
def test_nothing_is_held_that_need_not_be(stream: Stream) -> None:
    stage = InterleaveBuffer()
    out: list[Event] = []
    for event in stream.whole:
        out.extend(stage.receive([event]))
        if stage.held:
            block, arguments = written(out)[-1]
            assert not isinstance(out[-1], BlockStop)
            assert block == ITEM or isinstance(block, ToolUseBlock)
            assert arguments not in OBJECTS


@given(plain, st.integers(0, 40))
def test_an_error_anywhere_leaves_what_was_written_and_at_most_one_call_open(stream: Stream, at: int) -> None:
    law = BlockValidator(mode=Mode.STRICT)
    out = [event for made in play(InterleaveBuffer() | law, BEGIN, *stream.events[:at], BOOM, EOF) for event in made]
    wanted = in_order_of_arrival(stream.events[:at])
    got = written(out)
    assert out[-1] == BOOM
    assert got == wanted[: len(got)]
    if len(got) < len(wanted):
        assert isinstance(got[-1][0], ToolUseBlock)


@given(streams(arguments=NO_OBJECTS, lawful=False), st.integers(0, 40), st.sampled_from([LIMIT, BOOM, None]))
def test_nothing_that_comes_breaks_the_law(stream: Stream, at: int, finish: Event | None) -> None:
    buffer = InterleaveBuffer()
    chain = buffer | BlockValidator(mode=Mode.STRICT)
    end: list[Event] = [stream.finish if finish is None else finish]
    if end != [BOOM]:
        end.append(MessageStop())
    out = [event for made in play(chain, BEGIN, *stream.events[:at], *end, EOF) for event in made]
    written(out)
    assert buffer.held == 0


@given(streams(words=WORDS), st.integers(0, 12), st.integers(0, 4))
def test_what_is_held_never_exceeds_its_bound(stream: Stream, held_bytes: int, blocks: int) -> None:
    limits = Limits(held_bytes=held_bytes, blocks=blocks)
    buffer = InterleaveBuffer(limits=limits)
    chain = Chain([buffer, BlockValidator(mode=Mode.STRICT)])
    for event in stream.whole:
        chain.receive([event])
        assert buffer.held <= held_bytes
    chain.receive_eof()
    assert buffer.held == 0
