"""Stages and chains: joining, and how a failure travels."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.drive import Pipeline
from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError, UpstreamError
from pipeline.events import Event, MessageStop, StreamError, TextDelta
from pipeline.stage import AsyncStage, Chain, EventStage, Stage, cause_of, run
from pipeline.testing import EOF, play
from tests.scripted import LOST, SCRIPTS, Scripted, broke, broke_at_end


class Whole(AsyncStage[Any, Any]):
    """An async stage with nothing of its own but `receive`."""

    async def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        return items


class Gather(EventStage):
    """Joins text deltas, breaks at a Z, and at the end if what it holds has an E."""

    def __init__(self) -> None:
        self.text = ""

    def on_event(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, TextDelta):
            yield TextDelta(0, self.text)
            self.text = ""
            yield event
        elif event.text == "Z":
            yield TextDelta(0, self.text)
            raise StageError("Z came")
        else:
            self.text += event.text

    def on_end(self) -> Iterable[Event]:
        if self.text:
            yield TextDelta(0, self.text)
        if "E" in self.text:
            raise UpstreamError("E was left")


# Joining


def test_joined_stages_are_one_flat_chain_however_they_are_grouped() -> None:
    a, b, c, d = (Scripted(name) for name in "abcd")
    for chain in (a | b | c | d, (a | b) | (c | d), a | (b | (c | d))):
        assert isinstance(chain, Chain)
        assert chain.stages == (a, b, c, d)


def test_a_chain_with_an_async_stage_in_it_is_a_flat_pipeline() -> None:
    a, b, waits = Scripted("a"), Scripted("b"), Whole()
    for chain, stages in (
        (a | b | waits, (a, b, waits)),
        (waits | (a | b), (waits, a, b)),
        ((a | waits) | (waits | b), (a, waits, waits, b)),
    ):
        assert isinstance(chain, Pipeline)
        assert chain.stages == stages


@pytest.mark.parametrize("stage", [Scripted("a"), Whole(), Scripted("a") | Whole()])
def test_a_stage_joins_with_nothing_but_stages(stage: Any) -> None:
    with pytest.raises(TypeError):
        stage | len


def test_a_stage_of_one_method_holds_nothing_and_says_nothing() -> None:
    class Same(Stage[str, str]):
        def receive(self, items: Sequence[str]) -> Sequence[str]:
            return items

    assert play(Same(), "x", EOF) == [["x"], []]
    assert (Same() | Same()).idle() == []
    assert (Same().held, Same().ended) == (0, False)


def test_an_async_stage_of_one_method_holds_nothing_and_says_nothing() -> None:
    async def ask() -> tuple[Sequence[Any], Sequence[Any]]:
        return await Whole().receive_eof(LOST), await Whole().idle()

    assert anyio.run(ask) == ((), ())
    assert (Whole().held, Whole().ended) == (0, False)


# Running


def test_each_stage_is_given_what_the_one_before_it_made() -> None:
    b = Scripted("b", holds="y")
    assert play(Scripted("a", holds="x") | b, ["x", "y", "z"], "w", EOF) == [["z"], ["w"], ["x", "y"]]
    assert b.seen == ["y", "z", "w", "x"]


def test_a_stage_is_not_called_when_nothing_is_left_for_it() -> None:
    class Strict(Scripted):
        def receive(self, items: Sequence[Any]) -> Sequence[Any]:
            assert items
            return items

    chain = Scripted("a", holds="x") | Strict("b")
    assert play(chain, "x", EOF) == [[], ["x"]]
    assert play(Scripted("a") | Strict("b"), EOF) == [[]]


def test_a_chain_with_nothing_to_do_returns_the_list_it_was_given() -> None:
    items = ["x"]
    assert Chain(()).receive(items) is items


def test_a_chain_holds_what_its_stages_hold() -> None:
    chain = Scripted("a", holds="x") | Scripted("b", holds="y")
    play(chain, ["x", "y", "z"])
    assert chain.held == 2
    play(chain, EOF)
    assert chain.held == 0


def test_a_chain_has_ended_when_one_of_its_stages_has() -> None:
    a, b = Scripted("a"), Scripted("b")
    chain = a | b
    assert not chain.ended
    b.ended = True
    assert chain.ended


def test_what_stands_before_a_stage_that_has_ended_is_not_asked_at_the_end() -> None:
    a, b, c, d = map(Scripted, "abcd")
    chain = a | b | c | d
    b.ended = d.ended = True
    play(chain, EOF)
    assert (a.ends, b.ends, c.ends, d.ends) == ([], [None], [None], [None])


def test_nothing_comes_of_a_chain_after_its_end() -> None:
    a = Scripted("a", holds="x", says="p")
    chain = a | Scripted("b")
    assert play(chain, EOF, "x", "y", EOF) == [[], [], [], []]
    assert chain.ended
    assert chain.idle() == ()
    assert (a.seen, a.ends) == ([], [None])


def test_each_stage_says_its_word_behind_what_was_said_before_it() -> None:
    chain = Scripted("a", says="p") | Scripted("b", holds="p", says="q") | Scripted("c", says="r")
    assert chain.idle() == ["q", "r"]
    assert play(chain, EOF) == [["p"]]


# Failing


def test_a_failure_gives_what_was_made_then_what_was_held_then_the_cause() -> None:
    chain = Scripted("a", holds="h", breaks_at="!") | Scripted("b", makes_events=True)
    assert play(chain, ["h", "x", "!", "y"]) == [["x", "h", broke("a")]]


def test_the_cause_says_what_the_error_said() -> None:
    error = LimitExceeded("too much", code="held_bytes", retryable=True)
    assert cause_of(error) == StreamError(ErrorKind.LIMIT, "too much", "held_bytes", True)


def test_what_lies_before_the_failure_is_dropped() -> None:
    a = Scripted("a", holds="x", makes_events=True)
    chain = a | Scripted("b", breaks_at="!", makes_events=True)
    assert play(chain, ["x", "!"], EOF) == [[broke("b")], []]
    assert (a.ends, a.held, chain.held) == ([], 1, 0)


def test_the_first_stage_that_makes_events_tells_the_cause_and_behind_it_stands_a_plain_end() -> None:
    b, c, d = Scripted("b"), Scripted("c", makes_events=True), Scripted("d", makes_events=True)
    assert play(Scripted("a", breaks_at="!") | b | c | d, ["!"]) == [[broke("a")]]
    assert (b.ends, c.ends, d.ends) == ([broke("a")], [broke("a")], [None])
    assert d.seen == [broke("a")]


def test_a_stage_that_makes_events_tells_of_its_own_failure() -> None:
    b = Scripted("b", makes_events=True)
    a = Scripted("a", holds="h", breaks_at="!", makes_events=True)
    assert play(a | b, ["h", "!"]) == [["h", broke("a")]]
    assert b.ends == [None]


def test_an_end_that_fails_too_is_passed_over_but_not_what_it_made() -> None:
    chain = Scripted("a", holds="h", breaks_at="!", breaks_at_end=True) | Scripted("b", makes_events=True)
    assert play(chain, ["h", "x", "!"]) == [["x", "h", broke("a")]]


def test_stages_behind_the_failure_give_what_they_held_before_the_cause() -> None:
    chain = Scripted("a", breaks_at="!") | Scripted("b", holds="x", makes_events=True) | Scripted("c", holds="y")
    assert play(chain, ["x", "y", "z", "!"], EOF) == [["z", "x", broke("a"), "y"], []]


def test_after_a_failure_the_chain_has_ended() -> None:
    a = Scripted("a", breaks_at="!", says="p")
    chain = a | Scripted("b", makes_events=True)
    assert play(chain, "!", "x", EOF) == [[broke("a")], [], []]
    assert chain.ended
    assert chain.idle() == ()
    assert (a.seen, len(a.ends)) == (["!"], 1)


def test_of_two_causes_the_first_wins() -> None:
    b, c = Scripted("b", breaks_at_end=True), Scripted("c", makes_events=True)
    assert play(Scripted("a", breaks_at="!") | b | c, "!") == [[broke("a")]]


def test_a_failure_at_what_the_failed_stage_held_is_not_the_first() -> None:
    b, c = Scripted("b", breaks_at="h"), Scripted("c", makes_events=True)
    assert play(Scripted("a", holds="h", breaks_at="!") | b | c, ["x", "h", "!"]) == [["x", broke("a")]]


@pytest.mark.parametrize("items", [[["h", "x", "?", "y", "!"]], ["h", "x", "?", "y", "!"]])
def test_a_later_stage_that_breaks_at_what_was_made_before_the_failure_has_failed_first(items: list[Any]) -> None:
    a, b = Scripted("a", holds="h", breaks_at="!"), Scripted("b", breaks_at="?")
    outputs = play(a | Scripted("z", holds="x") | b | Scripted("c", makes_events=True), *items)
    assert [item for output in outputs for item in output] == [broke("b")]


def test_of_three_failures_in_one_read_the_first_in_the_stream_wins() -> None:
    a, b, c = Scripted("a", breaks_at="3"), Scripted("b", breaks_at="2"), Scripted("c", breaks_at="1")
    assert play(a | b | c | Scripted("d", makes_events=True), [*"0123"]) == [["0", broke("c")]]


def test_a_cause_that_a_later_stage_breaks_at_is_told_by_the_next_one() -> None:
    b = Scripted("b", makes_events=True)
    c, d = Scripted("c", breaks_at=broke("a")), Scripted("d", makes_events=True)
    assert play(Scripted("a", breaks_at="!") | b | c | d, ["x", "!"]) == [["x", broke("a")]]
    assert d.ends == [broke("a")]


def test_a_cause_that_a_failing_stage_had_passed_on_is_not_told_twice() -> None:
    class Twice(Scripted):
        def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
            return [*super().receive_eof(cause), "?"]

    b, d = Twice("b", makes_events=True), Scripted("d", makes_events=True)
    assert play(Scripted("a", breaks_at="!") | b | Scripted("c", breaks_at="?") | d, "!") == [[broke("a")]]
    assert d.ends == [None]


def test_a_failure_at_the_end_is_told_by_the_next_stage_that_makes_events() -> None:
    chain = Scripted("a", holds="h", breaks_at_end=True) | Scripted("b") | Scripted("c", makes_events=True)
    assert play(chain, ["h", "x"], EOF) == [["x"], ["h", broke_at_end("a")]]


def test_a_cause_from_outside_comes_first() -> None:
    chain = Scripted("a", holds="h", breaks_at_end=True) | Scripted("b", makes_events=True)
    assert play(chain, ["h"], EOF(LOST)) == [[], ["h", LOST]]


def test_an_error_that_no_stage_made_an_event_is_raised_with_what_came_of_the_end() -> None:
    chain = Scripted("a", breaks_at="!") | Scripted("b", holds="h")
    with pytest.raises(StageError, match="a broke") as raised:
        chain.receive(["x", "h", "!"])
    assert raised.value.made == ["x", "h"]
    assert play(chain, EOF) == [[]]


def test_an_error_at_the_end_that_no_stage_made_an_event_is_raised() -> None:
    chain = Scripted("a", holds="h", breaks_at_end=True) | Scripted("b")
    chain.receive(["h"])
    with pytest.raises(UpstreamError, match="a broke at the end") as raised:
        chain.receive_eof()
    assert raised.value.made == ["h"]


def test_a_cause_from_outside_that_no_stage_made_an_event_stays_with_the_caller() -> None:
    chain = Scripted("a", holds="h") | Scripted("b", breaks_at_end=True)
    assert play(chain, "h", EOF(LOST)) == [[], ["h"]]


def test_a_chain_within_a_chain_fails_as_if_its_stages_stood_alone() -> None:
    inner = Chain((Scripted("a", holds="h", breaks_at="!"), Scripted("b")))
    assert play(Chain((inner, Scripted("c", makes_events=True))), ["h", "x", "!"]) == [["x", "h", broke("a")]]


def test_a_stage_that_breaks_while_nothing_comes_has_failed() -> None:
    c = Scripted("c", makes_events=True)
    chain = Scripted("a", says="p") | Scripted("b", holds="h", says="!") | c
    chain.receive(["h"])
    assert chain.idle() == ["p", "h", broke("b")]
    assert chain.ended
    assert chain.idle() == ()


def test_a_stage_that_breaks_at_what_another_one_says_has_failed() -> None:
    chain = Scripted("a", says="p!q") | Scripted("b", breaks_at="!", says="w", makes_events=True)
    assert chain.idle() == ["p", broke("b")]


def test_what_is_no_error_of_ours_goes_straight_to_the_caller() -> None:
    class Odd(Scripted):
        def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
            raise StopIteration

    with pytest.raises(StopIteration):
        play(Odd("a") | Scripted("b", makes_events=True), EOF)


def whole_output(chain: Stage[Any, Any], reads: Iterable[Sequence[Any]]) -> tuple[list[Any], str]:
    """All that comes of a chain, and what it raised."""
    out: list[Any] = []
    try:
        for read in reads:
            out.extend(chain.receive(read))
        out.extend(chain.receive_eof())
    except PipelineError as error:
        return [*out, *error.made], str(error)
    return out, ""


@settings(deadline=None)
@given(st.lists(SCRIPTS, min_size=1, max_size=4), st.text("abcd", max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_failures_too_do_not_depend_on_how_the_items_are_batched(
    scripts: list[dict[str, Any]], items: str, cuts: list[int]
) -> None:
    def chain() -> Stage[Any, Any]:
        return Chain([Scripted(str(at), **script) for at, script in enumerate(scripts)])

    bounds = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    reads = [[*items[begin:end]] for begin, end in pairwise(bounds)]
    assert whole_output(chain(), reads) == whole_output(chain(), [[item] for item in items])


# The simple door


def test_an_event_stage_is_asked_event_by_event_and_at_the_end() -> None:
    outputs = play(Gather(), [TextDelta(0, "a"), TextDelta(0, "b")], [MessageStop(), TextDelta(0, "c")], EOF)
    assert outputs == [[], [TextDelta(0, "ab"), MessageStop()], [TextDelta(0, "c")]]


def test_an_event_stage_holds_nothing_back_unless_it_says_so() -> None:
    class Same(EventStage):
        def on_event(self, event: Event) -> Iterable[Event]:
            return (event,)

    assert play(Same(), MessageStop(), EOF) == [[MessageStop()], []]


def test_an_event_stage_says_what_it_had_made_before_its_error() -> None:
    with pytest.raises(StageError) as raised:
        Gather().receive([MessageStop(), TextDelta(0, "a"), TextDelta(0, "Z")])
    assert raised.value.made == [TextDelta(0, ""), MessageStop(), TextDelta(0, "a")]


def test_an_event_stage_keeps_what_the_error_itself_carries() -> None:
    class Carries(EventStage):
        def on_event(self, event: Event) -> Iterable[Event]:
            raise StageError("no").after([event])

    with pytest.raises(StageError) as raised:
        Carries().receive([MessageStop()])
    assert raised.value.made == [MessageStop()]


def test_an_event_stage_puts_the_cause_behind_what_it_held() -> None:
    assert play(Gather(), TextDelta(0, "a"), EOF(LOST)) == [[], [TextDelta(0, "a"), LOST]]


def test_an_event_stage_that_breaks_at_the_end_tells_of_it_itself() -> None:
    left = StreamError(ErrorKind.INVALID_RESPONSE, "E was left", retryable=True)
    assert play(Gather(), TextDelta(0, "E"), EOF) == [[], [TextDelta(0, "E"), left]]
    assert play(Gather(), TextDelta(0, "E"), EOF(LOST)) == [[], [TextDelta(0, "E"), LOST]]


def test_a_rule_that_makes_no_call_is_run_too() -> None:
    assert run(iter_of_nothing()) == "done"


def iter_of_nothing() -> Any:
    """A rule of no calls."""
    yield from ()
    return "done"


def test_an_error_that_is_raised_again_brings_nothing_of_another_stream() -> None:
    blocked = UpstreamError("blocked")

    class Blocks(EventStage):
        def on_event(self, event: Event) -> Iterable[Event]:
            if event == TextDelta(0, "bad"):
                raise blocked
            return [event]

    for said in ("secret", "hello"):
        first, second = (Chain([Blocks()]).receive([TextDelta(0, said), TextDelta(0, "bad")]) for _ in range(2))
        assert first == second
        assert [event.text for event in first if isinstance(event, TextDelta)] == [said]
