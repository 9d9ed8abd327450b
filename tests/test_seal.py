"""stages.seal: opaque reasoning goes in an envelope, which only its own provider opens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import envelope
from pipeline.events import (
    BlockStart,
    BlockStop,
    Event,
    MessageStop,
    RedactedReasoningBlock,
    SignatureDelta,
)
from pipeline.testing import EOF, check_stage, play
from stages.interleave import InterleaveBuffer
from stages.seal import Sealer
from tests.canonical import BEGIN, BOOM, CALL_A, END, ITEM, REASONING, TEXT, args, losses, start, stop, text, think

HIDDEN = RedactedReasoningBlock("blob")


def sealed(*events: Event, envelopes: bool = True) -> list[Event]:
    """What goes on, read by read."""
    stage = Sealer(upstream="red", envelopes=envelopes)
    return [event for step in play(stage, *events, EOF) for event in step]


def signature_of(events: list[Event]) -> str:
    """The one signature among them."""
    (found,) = [event.signature for event in events if isinstance(event, SignatureDelta)]
    return found


def test_a_signature_comes_back_to_its_provider_byte_for_byte() -> None:
    made = sealed(BEGIN, start(0, ITEM), think(0, "I th"), think(0, "ink"), SignatureDelta(0, "blob=="), stop(0))
    found = envelope.open(signature_of(made), upstream="red", text="I think")
    assert found is not None
    assert (found.blob, found.model) == ("blob==", "model")
    assert envelope.open(signature_of(made), upstream="blue", text="I think") is None
    assert envelope.open(signature_of(made), upstream="red", text="I think!") is None


def test_all_else_goes_on_as_it_came() -> None:
    events: list[Event] = [BEGIN, start(0, TEXT), text(0, "a"), stop(0), start(1, CALL_A), args(1, "{}"), stop(1), END]
    assert sealed(*events, MessageStop()) == [*events, MessageStop()]
    deltas: list[Event] = [text(0, "a"), args(1, "{}"), END, MessageStop(), BOOM]
    assert Sealer(upstream="red").receive(deltas) is deltas


def test_redacted_reasoning_is_in_an_envelope_too() -> None:
    made = sealed(BEGIN, start(0, HIDDEN), stop(0))
    assert isinstance(made[1], BlockStart)
    assert isinstance(made[1].block, RedactedReasoningBlock)
    found = envelope.open(made[1].block.data, upstream="red", text="")
    assert found is not None
    assert found.blob == "blob"


def test_each_of_two_blocks_that_overlap_has_its_own_text() -> None:
    made = sealed(start(0, ITEM), start(1, ITEM), think(0, "a"), think(1, "b"), SignatureDelta(1, "y"), stop(1))
    assert envelope.open(signature_of(made), upstream="red", text="b") is not None


def test_a_part_of_the_reasoning_is_not_the_reasoning() -> None:
    events: list[Event] = [
        start(0, REASONING),
        think(0, "a"),
        start(1, TEXT),
        text(1, "t"),
        think(0, "b"),
        SignatureDelta(0, "x"),
        stop(0),
    ]
    made = [event for step in play(Sealer(upstream="red") | InterleaveBuffer(), *events) for event in step]
    assert envelope.open(signature_of(made), upstream="red", text="b") is None
    assert envelope.open(signature_of(made), upstream="red", text="ab") is not None


def test_a_signature_for_no_reasoning_block_belongs_to_no_text() -> None:
    made = sealed(SignatureDelta(7, "x"))
    assert envelope.open(signature_of(made), upstream="red", text="") is not None


def test_reasoning_of_no_open_block_goes_on() -> None:
    assert sealed(think(7, "x")) == [think(7, "x")]


def test_without_envelopes_a_signature_is_left_out_and_recorded() -> None:
    stage = Sealer(upstream="red", envelopes=False)
    events = [start(0, ITEM), think(0, "a"), SignatureDelta(0, "x"), stop(0)]
    assert play(stage, events) == [[start(0, ITEM), think(0, "a"), stop(0)]]
    assert [entry[:2] for entry in losses(stage.ledger)] == [("signature", "dropped")]


def test_without_envelopes_redacted_reasoning_is_left_out_and_recorded() -> None:
    stage = Sealer(upstream="red", envelopes=False)
    assert play(stage, start(0, HIDDEN), start(1, TEXT), stop(0), stop(1)) == [[], [start(1, TEXT)], [], [stop(1)]]
    assert [entry[:2] for entry in losses(stage.ledger)] == [("redacted reasoning", "dropped")]


def test_the_cause_of_a_sudden_end_is_told() -> None:
    stage = Sealer(upstream="red")
    assert play(stage, EOF(BOOM)) == [[BOOM]]
    assert stage.ended


@given(st.lists(st.text(), max_size=80), st.text())
def test_the_text_may_come_in_any_pieces(pieces: list[str], blob: str) -> None:
    made = sealed(start(0, ITEM), *(think(0, piece) for piece in pieces), SignatureDelta(0, blob), stop(0))
    found = envelope.open(signature_of(made), upstream="red", text="".join(pieces))
    assert found is not None
    assert found.blob == blob


@pytest.mark.parametrize("envelopes", [True, False])
def test_the_rules_of_every_stage_are_kept(envelopes: bool) -> None:
    events: list[Event] = [BEGIN, start(0, ITEM), think(0, "a"), SignatureDelta(0, "x"), BlockStop(0), start(1, HIDDEN)]
    check_stage(lambda: Sealer(upstream="red", envelopes=envelopes), [*events, stop(1), END, MessageStop()])
