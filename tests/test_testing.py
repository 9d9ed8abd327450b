"""The tools for people who write stages: they show what a stage does, and find the one that breaks a rule."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import anyio
import pytest

from pipeline.errors import StageError
from pipeline.events import Event, Frame, StreamError, TextDelta
from pipeline.stage import AsyncStage, EventStage, Stage
from pipeline.testing import EOF, UnknownEvent, acheck_stage, aplay, check_stage, play
from tests.lines import AsyncUpper, Lines, Texts, Upper
from tests.scripted import LOST, Scripted

BACKENDS = ["asyncio", "trio"]
TEXTS = [TextDelta(0, letter) for letter in "abcdefghi"]

# Playing


def test_play_gives_what_each_step_made() -> None:
    assert play(Scripted("a", holds="y"), "x", ["y", "z"], EOF) == [["x"], ["z"], ["y"]]


def test_play_may_end_for_a_cause() -> None:
    assert play(Scripted("a", makes_events=True), EOF(LOST)) == [[LOST]]
    assert EOF.cause is None


def test_play_takes_bytes_for_one_item() -> None:
    assert play(Lines(), b"a\nb", [b"\nc\n", b"d"], EOF) == [[Frame(b"a")], [Frame(b"b"), Frame(b"c")], [Frame(b"d")]]


def test_play_raises_what_the_stage_raises() -> None:
    with pytest.raises(StageError, match="a broke"):
        play(Scripted("a", breaks_at="!"), "!")


@pytest.mark.parametrize("backend", BACKENDS)
def test_aplay_waits_for_each_step(backend: str) -> None:
    outputs = anyio.run(aplay, AsyncUpper(), TEXTS[0], TEXTS[1:3], EOF(LOST), backend=backend)
    assert outputs == [[TextDelta(0, "A")], [TextDelta(0, "B"), TextDelta(0, "C")], [LOST]]


# Checking


class Breaker(EventStage):
    """Has every fault that a test gives it."""

    shared: list[Event] = []

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.count = 0

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        self.count += 1
        if self.fault == "counts reads":
            return [*items, TextDelta(0, str(self.count))]
        if self.fault == "gives back less of a long read":
            return items[:6]
        if self.fault == "takes from the read" and isinstance(items, list):
            return [items.pop()]
        if self.fault == "changes the read" and isinstance(items, list):
            first, items[0] = items[0], TextDelta(0, "z")
            return [first, *items[1:]]
        return super().receive(items)

    def on_event(self, event: Event) -> Iterable[Event]:
        match self.fault:
            case "changes an item" if isinstance(event, TextDelta):
                setattr(event, "text", "z")  # noqa: B010  # the type checker would refuse the plain way
            case "changes where an item came from" if event.origin is not None:
                setattr(event.origin, "raw", b"z")  # noqa: B010
            case "shares state":
                self.shared.append(event)
                return (event, TextDelta(0, str(len(self.shared))))
            case "goes on after its end":
                self.ended = True
            case "holds after the end":
                self.held = 1
            case "knows all events" if isinstance(event, UnknownEvent):
                raise StageError("what is that?")
            case "fails late" if event == TEXTS[4]:
                raise StageError("the fifth")
            case "fails at another place" if event == TEXTS[4]:
                raise StageError(f"read {self.count}")
            case "raises another's error":
                raise KeyError(event)
        return (event,)

    def on_end(self) -> Iterable[Event]:
        self.held = self.held if self.fault == "holds after the end" else 0
        return ()


def test_a_stage_that_keeps_the_rules_passes() -> None:
    check_stage(Upper, TEXTS)
    check_stage(Lines, [b"a\nb", b"c", b"\nd", b"e"])
    check_stage(Texts, [Frame(b"a"), Frame(b"b"), Frame(b".")])
    check_stage(Breaker, TEXTS)
    check_stage(Breaker, [])


def test_a_stage_may_fail_if_it_fails_alike_however_the_items_are_batched() -> None:
    check_stage(Lines, [b"a\n", b"b\n!", b"\nc"])
    check_stage(lambda: Breaker("fails late"), TEXTS)
    check_stage(lambda: Scripted("a", holds="bd", breaks_at="e", breaks_at_end=True), [*"abcdef"])
    check_stage(lambda: Scripted("a", holds="bd", breaks_at_end=True, makes_events=True), [*"abcdef"])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("counts reads", "2 items a read: .*"),
        ("gives back less of a long read", "7 items a read: .*"),
        ("takes from the read", "the list that a read brought was changed"),
        ("changes the read", "the list that a read brought was changed"),
        ("changes an item", "an item was changed, one item a read"),
        ("changes where an item came from", "an item was changed, one item a read"),
        ("shares state", "2 items a read: .*"),
        ("goes on after its end", r"the stage had ended, and made \[TextDelta"),
        ("holds after the end", "1 bytes are held after the end"),
        ("knows all events", r"an unknown event: StageError\('what is that\?'\)"),
        ("fails at another place", r"2 items a read: StageError\('read 3'\); else StageError\('read 5'\)"),
    ],
)
def test_a_broken_rule_is_named(fault: str, message: str) -> None:
    items = [TextDelta(0, text.text, origin=Frame(b"f")) for text in TEXTS]
    with pytest.raises(AssertionError, match=f"^{message}"):
        check_stage(lambda: Breaker(fault), items)


def test_what_a_stage_had_made_before_its_error_must_not_be_lost() -> None:
    class Forgets(Breaker):
        def receive(self, items: Sequence[Event]) -> Sequence[Event]:
            if TEXTS[4] in items:
                raise StageError("the fifth")
            return items

    with pytest.raises(AssertionError, match="3 items a read"):
        check_stage(Forgets, TEXTS)


def test_one_stage_for_two_streams_is_found_out() -> None:
    only = Scripted("a", holds="b")
    stages = [*[Scripted(str(at), holds="b") for at in range(5)], only, only]
    with pytest.raises(AssertionError, match="beside another stream"):
        check_stage(lambda: stages.pop(0), [*"abc"])


def test_an_error_that_is_none_of_ours_is_raised() -> None:
    with pytest.raises(KeyError):
        check_stage(lambda: Breaker("raises another's error"), TEXTS)


def test_bytes_are_the_same_however_they_are_parted() -> None:
    class Join(Stage[bytes, bytes]):
        def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            return [b"".join(items)]

    check_stage(Join, [b"a", b"b", b"c"])
    with pytest.raises(AssertionError, match="2 items a read"):
        check_stage(Join, [b"a", b"b", b"c"], equal=lambda one, other: one == other)


def test_a_stage_may_say_itself_when_two_outputs_are_equal() -> None:
    class Merge(EventStage):
        def receive(self, items: Sequence[Event]) -> Sequence[Event]:
            return [TextDelta(0, "".join(item.text for item in items if isinstance(item, TextDelta)))]

        def on_event(self, event: Event) -> Iterable[Event]:
            raise NotImplementedError

    def text(out: Sequence[Any]) -> str:
        return "".join(event.text for event in out)

    check_stage(Merge, TEXTS, equal=lambda one, other: text(one) == text(other))
    with pytest.raises(AssertionError, match="2 items a read"):
        check_stage(Merge, TEXTS)


def test_streams_that_disturb_each_other_are_found_out() -> None:
    class Newest(Stage[str, str]):
        """Falls silent when another one is made."""

        newest: ClassVar["Newest"]

        def __init__(self) -> None:
            Newest.newest = self

        def receive(self, items: Sequence[str]) -> Sequence[str]:
            return items if self is Newest.newest else ()

    class Last(Stage[str, str]):
        """Falls silent when another one has ended."""

        running: ClassVar[bool]

        def __init__(self) -> None:
            Last.running = True

        def receive(self, items: Sequence[str]) -> Sequence[str]:
            return items if Last.running else ()

        def receive_eof(self, cause: StreamError | None = None) -> Sequence[str]:
            Last.running = False
            return ()

    makes: tuple[Callable[[], Stage[str, str]], ...] = (Newest, Last)
    for make in makes:
        with pytest.raises(AssertionError, match="beside another stream"):
            check_stage(make, [*"abc"])


def test_an_item_that_is_no_event_must_not_be_changed_either() -> None:
    class Fills(Stage[dict[str, int], dict[str, int]]):
        def receive(self, items: Sequence[dict[str, int]]) -> Sequence[dict[str, int]]:
            for item in items:
                item["seen"] = 1
            return items

    with pytest.raises(AssertionError, match="an item was changed"):
        check_stage(Fills, [{"a": 1}])


@pytest.mark.parametrize("backend", BACKENDS)
def test_stages_that_await_are_checked_too(backend: str) -> None:
    class Counts(AsyncStage[Event, Event]):
        count = 0

        async def receive(self, items: Sequence[Event]) -> Sequence[Event]:
            self.count += 1
            return [TextDelta(0, str(self.count))]

    anyio.run(acheck_stage, AsyncUpper, TEXTS, backend=backend)
    with pytest.raises(AssertionError, match="2 items a read"):
        anyio.run(acheck_stage, Counts, TEXTS, backend=backend)
