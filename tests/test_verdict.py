"""stages.verdict: how the stream ended, for the record."""

import pytest
from attrs import evolve

from pipeline.errors import ErrorKind
from pipeline.events import (
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    StopReason,
    StreamError,
    Usage,
)
from pipeline.outcome import Outcome, Verdict
from pipeline.testing import EOF, check_stage, play
from stages.verdict import LARGE, VerdictStage
from tests.canonical import BEGIN, BOOM, CUT, END, TEXT, start, stop, text


def test_everything_passes_as_it_came() -> None:
    items: list[Event] = [BEGIN, start(0, TEXT), text(0, "a"), stop(0), END, MessageStop()]
    assert VerdictStage(Outcome()).receive(items) is items


def test_until_the_terminal_there_is_no_verdict() -> None:
    outcome = Outcome()
    play(VerdictStage(outcome), BEGIN, END)
    assert outcome.verdict is None


def test_a_stream_with_its_terminal_is_complete() -> None:
    outcome = Outcome()
    stage = VerdictStage(outcome)
    usage = Usage(input=1, output=2)
    play(stage, BEGIN, MessageDelta(StopReason.MAX_TOKENS, None, usage), MessageStop())
    assert (stage.ended, play(stage, EOF), stage.ended) == (False, [[]], True)
    assert outcome == Outcome(Verdict.COMPLETE, StopReason.MAX_TOKENS, usage, None, begun=True, announced=True)


def test_the_beginning_announces_an_answer_and_so_does_a_frame_that_goes_as_it_came() -> None:
    silent = Carry("chat", Frame(b"{}"))
    kept = Carry("chat", Frame(b"{}"), origin=Frame(b"{}"))
    for event, announced in ((BEGIN, True), (kept, True), (silent, False), (Ping(), False)):
        outcome = Outcome()
        play(VerdictStage(outcome), event)
        assert (outcome.announced, outcome.begun) == (announced, False)


@pytest.mark.parametrize("kind", ErrorKind)
def test_an_error_is_a_failure_unless_it_tells_of_a_cut(kind: ErrorKind) -> None:
    error = StreamError(kind, "why")
    outcome = Outcome()
    play(VerdictStage(outcome), BEGIN, error)
    assert outcome.verdict is (Verdict.CUT if kind is ErrorKind.CUT else Verdict.FAILED)
    assert outcome.error is error


def test_the_first_terminal_stands() -> None:
    outcome = Outcome()
    play(VerdictStage(outcome), BOOM, CUT, MessageStop(), EOF)
    assert (outcome.verdict, outcome.error) == (Verdict.FAILED, BOOM)


def test_the_cause_of_a_sudden_end_is_noted_and_told() -> None:
    outcome = Outcome()
    assert play(VerdictStage(outcome), BEGIN, EOF(BOOM)) == [[BEGIN], [BOOM]]
    assert (outcome.verdict, outcome.error) == (Verdict.FAILED, BOOM)


def test_an_end_without_a_terminal_is_a_cut() -> None:
    outcome = Outcome()
    play(VerdictStage(outcome), BEGIN, END, EOF)
    assert (outcome.verdict, outcome.error) == (Verdict.CUT, None)


def test_the_last_counts_that_are_told_stand() -> None:
    outcome = Outcome()
    stage = VerdictStage(outcome)
    play(stage, MessageStart("", "", Usage(1)))
    assert outcome.usage == Usage(1)
    play(stage, MessageDelta(StopReason.END_TURN, None, Usage(2, output=3)))
    assert outcome.usage == Usage(2, output=3)
    play(stage, MessageDelta(StopReason.END_TURN))
    assert outcome.usage == Usage(2, output=3)


def test_our_estimate_is_told_from_the_upstreams_counts() -> None:
    outcome, ours, theirs = Outcome(), Usage(7), Usage(7)
    stage = VerdictStage(outcome, ours)
    play(stage, MessageStart("", "", ours))
    assert (outcome.usage, outcome.estimated) == (Usage(7), True)
    play(stage, MessageDelta(StopReason.END_TURN, None, theirs))
    assert (outcome.usage, outcome.estimated) == (Usage(7), False)


@pytest.mark.parametrize(
    "first",
    [[BOOM], [Carry("chat", Frame(b"{}")), BOOM], [BEGIN, BOOM], [BEGIN, Ping(), Carry("chat", Frame(b"{}")), BOOM]],
)
def test_an_error_that_comes_alone_is_told_from_one_behind_a_beginning(first: list[Event]) -> None:
    alone, behind = Outcome(), Outcome()
    play(VerdictStage(alone), first)
    play(VerdictStage(behind), [start(0, TEXT)], first)
    assert (alone.begun, behind.begun) == (False, True)
    together = Outcome()
    play(VerdictStage(together), [start(0, TEXT), *first])
    assert together == behind


def test_a_client_that_left_is_no_failure_and_nothing_behind_the_end() -> None:
    outcome = Outcome()
    outcome.cancel()
    outcome.note(BOOM)
    assert (outcome.verdict, outcome.error) == (Verdict.CANCELLED, None)
    ended = Outcome(Verdict.COMPLETE)
    ended.cancel()
    assert ended.verdict is Verdict.COMPLETE


def test_repairs_are_counted_among_all_that_was_recorded() -> None:
    outcome = Outcome()
    for action in ("mended", "dropped", "unwrapped", "renamed", "supplied", "ignored", "reported"):
        outcome.ledger.record("Stage", "path", action, "why")
    assert outcome.repairs == 4


def test_the_rules_of_every_stage_are_kept() -> None:
    check_stage(lambda: VerdictStage(Outcome()), [BEGIN, start(0, TEXT), text(0, "a"), stop(0), END, MessageStop()])


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_what_says_something_has_begun_the_answer_before_an_error_and_not_behind_it(size: int) -> None:
    silent: list[Event] = [BEGIN, Ping(), Carry("x", Frame(b"1"))]
    large = evolve(BEGIN, origin=Frame(b"x" * 16 * LARGE))
    for items, begun in (
        (silent, False),
        ([*silent, BOOM, start(0, TEXT)], False),
        ([*silent, start(0, TEXT), BOOM], True),
        ([Ping()] * 16, False),
        ([Ping()] * 17, True),
        ([large], True),
    ):
        outcome = Outcome()
        play(VerdictStage(outcome), *(items[at : at + size] for at in range(0, len(items), size)))
        assert outcome.begun is begun
