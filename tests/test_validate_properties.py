"""stages.validate: what holds of every stream."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StageError
from pipeline.events import AnnotationDelta, Event, MessageStop, Ping, RefusalDelta, ServerBlock, SignatureDelta
from pipeline.ledger import Ledger
from pipeline.testing import EOF, check_stage, play
from stages.interleave import InterleaveBuffer
from stages.validate import BlockValidator, Mode
from tests.canonical import (
    BEGIN,
    BOOM,
    CALL_A,
    END,
    FREEFORM,
    ITEM,
    LIMIT,
    REASONING,
    TEXT,
    TOOLS,
    Stream,
    args,
    losses,
    start,
    stop,
    streams,
    text,
    think,
)

events = st.one_of(
    st.sampled_from([BEGIN, END, TOOLS, LIMIT, MessageStop(), BOOM, Ping()]),
    st.builds(
        start, st.integers(0, 3), st.sampled_from([TEXT, REASONING, ITEM, CALL_A, FREEFORM, ServerBlock("chat", {})])
    ),
    *(st.builds(kind, st.integers(0, 3), st.just("a")) for kind in (text, think, args, RefusalDelta, SignatureDelta)),
    st.builds(AnnotationDelta, st.integers(0, 3), st.just({})),
    st.builds(stop, st.integers(0, 3), st.booleans()),
)
soup = st.lists(events, max_size=20)
spiced = st.tuples(soup, streams()).map(lambda both: [BEGIN, *both[1].events, *both[0], both[1].finish, MessageStop()])


def mended(stage: BlockValidator, items: list[Event]) -> list[Event]:
    """What a stage makes of events, and the error that is told where a call would be cut."""
    out: list[Event] = []
    try:
        for event in items:
            out += stage.receive([event])
    except StageError as error:
        return [*out, *error.made, BOOM]
    return [*out, *stage.receive_eof()]


@given(soup | spiced)
def test_strict_accepts_whatever_repair_makes_of_anything(items: list[Event]) -> None:
    out = mended(BlockValidator(), items)
    assert [event for made in play(BlockValidator(mode=Mode.STRICT), *out, EOF) for event in made] == out


@given(soup | spiced)
def test_report_changes_nothing_and_sees_what_repair_mends(items: list[Event]) -> None:
    in_order = Ledger("request"), Ledger("request")  # these keep the order of time
    reported, mending = BlockValidator(mode=Mode.REPORT, ledger=in_order[0]), BlockValidator(ledger=in_order[1])
    assert [event for made in play(reported, *items, EOF) for event in made] == items
    mended(mending, items)
    seen = [reason for _, _, reason in losses(mending.ledger)]
    reasons = [reason for _, _, reason in losses(reported.ledger)]
    assert reasons[: len(seen)] == seen
    assert seen == reasons or mended(BlockValidator(), items)[-1] is BOOM


@given(streams())
def test_repair_changes_nothing_of_what_is_lawful(stream: Stream) -> None:
    lawful = [event for made in play(InterleaveBuffer(), *stream.whole) for event in made]
    stage = BlockValidator()
    assert [event for made in play(stage, *lawful, EOF) for event in made] == lawful
    assert not list(stage.ledger)


@given(soup | spiced, st.sampled_from(Mode))
def test_any_batches_give_the_same(items: list[Event], mode: Mode) -> None:
    check_stage(lambda: BlockValidator(mode=mode), items)
