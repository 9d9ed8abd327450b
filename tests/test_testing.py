"""The tools for people who write stages: they show what a stage does, and find the one that breaks a rule."""

from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from pipeline.drive import AsyncEventStage
from pipeline.errors import ErrorKind, LimitExceeded, StageError, UpstreamError
from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    StopReason,
    StreamError,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.stage import AsyncStage, EventStage, Stage
from pipeline.testing import EOF, UnknownEvent, acheck_stage, aplay, areplay, check_stage, cut, play, replay, show
from tests.scripted import LOST, Scripted

BACKENDS = ["asyncio", "trio"]

AnyStage = Stage[Any, Any] | AsyncStage[Any, Any]


@define
class Lines(Stage[bytes, Frame]):
    """A frame a line; the last one needs no line end. A line of `!` breaks it."""

    held: int = field(default=0, init=False)
    rest: bytes = field(default=b"", init=False)

    def receive(self, items: Sequence[bytes]) -> Sequence[Frame]:
        out: list[Frame] = []
        for item in items:
            *lines, self.rest = (self.rest + item).split(b"\n")
            for line in lines:
                if line == b"!":
                    self.rest, self.held = b"", 0
                    raise LimitExceeded("a line\nof !").after(out)
                out.append(Frame(line))
        self.held = len(self.rest)
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        rest, self.rest, self.held = self.rest, b"", 0
        return [Frame(rest)] if rest else []


@define
class Texts(Stage[Frame, Event]):
    """A text a frame; a frame `.` ends the message."""

    ended: bool = field(default=False, init=False)

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        out: list[Event] = []
        for item in items:
            if item.data == b"?":
                raise UpstreamError("a ? came").after(out)
            if not self.ended:
                self.ended = item.data == b"."
                out.append(MessageStop() if self.ended else TextDelta(0, item.data.decode()))
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return () if cause is None else (cause,)


class Upper(EventStage):
    """Louder texts."""

    def on_event(self, event: Event) -> Iterable[Event]:
        return (TextDelta(event.index, event.text.upper()),) if isinstance(event, TextDelta) else (event,)


class AsyncUpper(AsyncEventStage):
    """Louder texts, after a while."""

    async def on_event(self, event: Event) -> Iterable[Event]:
        await anyio.lowlevel.checkpoint()
        return (TextDelta(event.index, event.text.upper()),) if isinstance(event, TextDelta) else (event,)


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


# Replaying


def test_a_replay_shows_what_went_in_and_what_came_out() -> None:
    assert replay(b"a\nb", Lines(), chunk=1) == (
        ">> b'a'\n>> b'\\n'\n<< frame - a\n>> b'b'\n>> EOF\n<< frame - b\n== held 0, not ended\n"
    )


def test_a_replay_gives_a_stage_what_the_stages_before_it_made() -> None:
    assert replay(b"a\nb\nc", Upper(), [Lines() | Texts()], 4) == (
        ">> TextDelta(0, 'a')\n>> TextDelta(0, 'b')\n<< TextDelta(0, 'A')\n<< TextDelta(0, 'B')\n"
        ">> TextDelta(0, 'c')\n<< TextDelta(0, 'C')\n>> EOF\n== held 0, not ended\n"
    )


def test_a_replay_stops_where_the_stages_have_ended() -> None:
    assert replay(b"a\n.\nb\nc\n", Texts(), [Lines()], 4) == (
        ">> frame - a\n>> frame - .\n<< TextDelta(0, 'a')\n<< MessageStop()\n>> EOF\n== held 0, ended\n"
    )


def test_a_replay_shows_what_the_stage_raises_and_what_becomes_of_it() -> None:
    failed = "StreamError('invalid_response', 'a ? came', retryable=True)"
    assert replay(b"a\n?\nb\n", Texts(), [Lines()]) == (
        ">> frame - a\n>> frame - ?\n>> frame - b\n<< TextDelta(0, 'a')\n!! UpstreamError('a ? came')\n"
        f">> EOF {failed}\n<< {failed}\n== held 0, not ended\n"
    )


def test_a_replay_shows_a_failure_before_the_stage_as_the_cause_of_its_end() -> None:
    failed = "StreamError('limit', 'a line\\nof !')"
    assert replay(b"a\n!\n", Texts(), [Lines()]) == (
        f">> frame - a\n<< TextDelta(0, 'a')\n>> EOF {failed}\n<< {failed}\n== held 0, not ended\n"
    )


def test_a_replay_ends_though_no_stage_makes_the_error_an_event() -> None:
    assert replay(b"a\n!\nb", Lines()) == (
        ">> b'a\\n!\\nb'\n<< frame - a\n!! LimitExceeded('a line\\nof !')\n"
        ">> EOF StreamError('limit', 'a line\\nof !')\n== held 0, not ended\n"
    )


def test_a_replay_says_what_is_still_held() -> None:
    class Keeps(Upper):
        held = 7

    assert replay(b"", Keeps()) == ">> EOF\n== held 7, not ended\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_replay_through_stages_that_await_reads_alike(backend: str) -> None:
    after: Sequence[AnyStage] = (Lines(), Texts(), AsyncUpper())
    stage: AnyStage = Upper()
    assert anyio.run(areplay, b"a\nb", stage, after, 2, backend=backend) == (
        ">> TextDelta(0, 'A')\n<< TextDelta(0, 'A')\n>> TextDelta(0, 'B')\n<< TextDelta(0, 'B')\n"
        ">> EOF\n== held 0, not ended\n"
    )
    same = replay(b"a\nb\n", Upper(), [Lines(), Texts()], 2)
    stage, after = AsyncUpper(), (Lines(), Texts())
    assert anyio.run(areplay, b"a\nb\n", stage, after, 2, backend=backend) == same


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (TextDelta(0, "Hello"), "TextDelta(0, 'Hello')"),
        (TextDelta(1, "two\nlines", origin=Frame(b"x")), "TextDelta(1, 'two\\nlines')"),
        (MessageStart("m", "model", Usage(input=3)), "MessageStart('m', 'model', usage=Usage(input=3))"),
        (BlockStart(2, ToolUseBlock("t", "look")), "BlockStart(2, ToolUseBlock('t', 'look'))"),
        (BlockStop(2), "BlockStop(2)"),
        (BlockStop(2, complete=False), "BlockStop(2, complete=False)"),
        (MessageDelta(StopReason.END_TURN), "MessageDelta('end_turn')"),
        (StreamError(ErrorKind.CUT, "lost", "gone", True), "StreamError('cut', 'lost', code='gone', retryable=True)"),
        (Carry("some", Frame(b"{}", b"ping")), "Carry('some', frame ping {})"),
        (Frame(b'{"a": "\xc3\xa9"}'), 'frame - {"a": "é"}'),
        (Frame(b"two\nlines", b"n"), "frame n b'two\\nlines'"),
        (Frame(b"\xff", b"n"), "frame n b'\\xff'"),
        (Frame(b""), "frame - "),
        (b"data: \xc3\xa9\n\n", "b'data: \\xc3\\xa9\\n\\n'"),
        (7, "7"),
    ],
)
def test_an_item_is_shown_on_one_line(item: object, shown: str) -> None:
    assert show(item) == shown


# Cutting


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_frame_ends_behind_its_blank_line_whatever_the_line_ends(end: bytes) -> None:
    data = end.join([b"event: a", b"data: b", b"", b"data: c", b"", b"", b"data: d"])
    first, second = end.join([b"event: a", b"data: b", b"", b""]), end.join([b"data: c", b"", b""])
    assert cut(data, "frame") == [first, second, end, b"data: d"]


def test_line_ends_may_be_mixed() -> None:
    assert cut(b"\na\r\n\rb\n\r\nc\r\n\r\n", "frame") == [b"\n", b"a\r\n\r", b"b\n\r\n", b"c\r\n\r\n"]


@pytest.mark.parametrize(("chunk", "reads"), [(None, [b"abcde"]), (2, [b"ab", b"cd", b"e"]), (9, [b"abcde"])])
def test_a_recording_is_cut_every_so_many_bytes_or_not_at_all(chunk: int | None, reads: list[bytes]) -> None:
    assert cut(b"abcde", chunk) == reads


@pytest.mark.parametrize("chunk", [None, 1, "frame"])
def test_nothing_is_no_read(chunk: Any) -> None:
    assert cut(b"", chunk) == []


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_read_of_no_bytes_is_refused(chunk: int) -> None:
    with pytest.raises(ValueError, match="brings nothing"):
        cut(b"abc", chunk)


@given(st.binary(max_size=40).map(lambda data: data.replace(b"0", b"\n").replace(b"1", b"\r")), st.integers(1, 9))
def test_a_cut_loses_nothing(data: bytes, chunk: int) -> None:
    assert b"".join(cut(data, chunk)) == b"".join(cut(data, "frame")) == b"".join(cut(data, None)) == data
