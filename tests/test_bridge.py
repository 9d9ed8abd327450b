"""One dialect over itself, in the other form: what its stages make of events, in a dialect of the tests."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from attrs import evolve

from pipeline.change import Change
from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStop,
    Event,
    Frame,
    MessageStart,
    MessageStop,
    Origin,
    ReasoningDelta,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import Message, Reasoning, Refusal, ServerItem, Text, ToolUse, assemble, disassemble
from pipeline.stage import Stage
from pipeline.testing import EOF, check_stage, play
from stages.bridge import OVERHEAD, StreamGatherer, Unroller, in_order_of
from stages.interleave import meant
from tests.canonical import BEGIN, BOOM, CUT, END, REASONING, TEXT, start, stop, text

ENDING = (END, MessageStop())
CALL = ToolUse("a", "f", '{"x": 1}')


def remembering(events: Sequence[Event]) -> list[Event]:
    """Events, each of a frame of its own."""
    for number, event in enumerate(events):
        event.origin = Origin(b"%d" % number, number=number, made=(event,))  # type: ignore[misc]  # made just now
    return [*events]


def stream(*said: str) -> list[Event]:
    """A stream of texts."""
    blocks = [event for at, one in enumerate(said) for event in (start(at, TEXT), text(at, one), stop(at))]
    return remembering([evolve(BEGIN), *blocks, *map(evolve, ENDING)])


def gatherer(told: Message | None, limits: Limits | None = None) -> tuple[StreamGatherer, list[Any], Ledger]:
    """One whose answer says what is `told`; and the frames that it was made of."""
    rolled: list[Any] = []
    ledger = Ledger()

    def roll(frames: Sequence[Frame], lost: Ledger) -> dict[str, Any]:
        rolled.extend(frame.data for frame in frames)
        return {"body": 1}

    def read(body: bytes) -> Message:
        assert body == b'{"body":1}'
        if told is None:
            raise UpstreamError("no answer", code="none")
        return told

    bound = limits or Limits()
    means = partial(meant, freeform=(), ledger=ledger, limits=bound)
    return StreamGatherer(roll, read, meant=means, ledger=ledger, limits=bound), rolled, ledger


def message(*content: Any) -> Message:
    return evolve(assemble([BEGIN, *ENDING]), content=content)


def test_a_stream_leaves_at_its_end_as_the_answer_that_its_frames_make() -> None:
    stage, rolled, ledger = gatherer(message(Text("hello")))
    *first, last = stream("hello")
    before, (*out,) = play(stage, first, [last])
    assert before == []
    assert rolled == [b"%d" % number for number in range(6)]
    assert assemble(out) == message(Text("hello"))
    origin = out[0].origin
    assert isinstance(origin, Origin)
    assert (origin.raw, assemble(origin.made), list(ledger)) == (b'{"body":1}', assemble(out), [])
    assert all(event.origin is origin for event in out)
    assert (stage.held, stage.ended, play(stage, stream("more"), EOF)) == (0, True, [[], []])


def test_what_the_answer_says_otherwise_is_a_change() -> None:
    stage, _, _ = gatherer(evolve(message(Text("hellohello")), id="whose"))
    (out,) = play(stage, stream("hello"))
    origin = out[0].origin
    assert isinstance(origin, Origin)
    assert assemble(out) == evolve(message(Text("hello")), id="whose")
    assert assemble(origin.made).content == (Text("hellohello"),)


def test_another_order_is_recorded_and_no_change() -> None:
    stage, _, ledger = gatherer(message(Reasoning("hm"), Text("hello")))
    events = [BEGIN, start(0, TEXT), text(0, "hello"), start(1, REASONING), ReasoningDelta(1, "hm"), stop(0), stop(1)]
    (out,) = play(stage, remembering([*map(evolve, [*events, *ENDING])]))
    assert assemble(out).content == (Reasoning("hm"), Text("hello"))
    assert [(entry.path, entry.action) for entry in ledger] == [("content", "reordered")]


@pytest.mark.parametrize("said", ["", " ", "null"])
def test_a_call_without_arguments_has_an_empty_object(said: str) -> None:
    stage, _, _ = gatherer(message(ToolUse("a", "f", "{}")))
    called = [start(0, ToolUseBlock("a", "f")), *([ArgumentsDelta(0, said)] if said else []), BlockStop(0)]
    (out,) = play(stage, remembering([*map(evolve, [BEGIN, *called, *ENDING])]))
    assert assemble(out).content == (ToolUse("a", "f", "{}"),)


@pytest.mark.parametrize("told", [None, Message("", "", error=BOOM)])
def test_a_stream_that_makes_no_answer_leaves_without_one(told: Message | None) -> None:
    stage, _, ledger = gatherer(told)
    (out,) = play(stage, stream("hello"))
    assert assemble(out) == message(Text("hello"))
    assert [event.origin for event in out] == [None] * len(out)
    assert [(entry.path, entry.action) for entry in ledger] == [("body", "rewritten")]


def test_a_stream_that_fails_leaves_as_it_is() -> None:
    lost = [("content", "dropped")]
    stage, _, ledger = gatherer(message())
    events = [*stream("hello")[:3], evolve(BOOM)]
    assert play(stage, events[:3], events[3:]) == [[], events]
    assert (stage.held, stage.ended) == (0, True)
    assert [(entry.path, entry.action) for entry in ledger] == lost
    stage, _, ledger = gatherer(None)
    assert play(stage, events[:3], EOF) == [[], events[:3]]
    assert [(entry.path, entry.action) for entry in ledger] == lost
    stage, _, ledger = gatherer(None)
    assert play(stage, events[:1], EOF) == [[], events[:1]]
    assert play(stage, EOF) == [[]]
    assert list(ledger) == []
    broken = [text(9, "of no block"), evolve(BOOM)]
    stage, _, ledger = gatherer(None)
    assert play(stage, broken) == [broken]
    assert [(entry.path, entry.action) for entry in ledger] == lost
    stage, _, _ = gatherer(message())
    stage.receive(events[:2])
    assert stage.receive_eof(CUT) == [*events[:2], CUT]


@pytest.mark.parametrize(("told", "lost"), [((Text("hello"),), 0), ((Text("hello"), CALL), 1)])
def test_a_failure_whose_frames_make_an_answer_that_says_it_remembers_that(told: tuple[Any, ...], lost: int) -> None:
    stage, _, ledger = gatherer(evolve(message(*told), error=BOOM))
    *events, error = play(stage, [*stream("hello")[:3], evolve(BOOM)])[0]
    assert (len(events), error, error.origin) == (3, BOOM, Frame(b'{"body":1}'))
    assert len(ledger) == lost
    stage, _, ledger = gatherer(evolve(message(*told), error=BOOM))
    stage.answers = lambda answer: False
    *_, error = play(stage, [*stream("hello")[:3], evolve(BOOM)])[0]
    assert (error.origin, len(ledger)) == (None, 1)


def test_counts_of_ours_say_nothing_beside_the_upstreams() -> None:
    estimate, none = Usage(input=7), Usage(output=2)
    for first, last, begun, due in (
        (estimate, none, estimate, none),
        (estimate, None, estimate, None),
        (Usage(input=3), none, Usage(input=3, output=2), Usage(input=3, output=2)),
    ):
        events = [evolve(BEGIN, usage=first), evolve(END, usage=last), MessageStop()]
        stage, _, _ = gatherer(message())
        stage.estimate = estimate
        (out,) = play(stage, remembering([*map(evolve, events)]))
        assert isinstance(out[0], MessageStart)
        assert out[0].usage == begun
        assert (out[0].usage is estimate) is (begun is estimate)
        assert assemble(out, estimate).usage == due


def test_what_is_kept_is_bounded() -> None:
    room = 3 * (OVERHEAD + 1)
    stage, _, _ = gatherer(message(), Limits(answer_bytes=room))
    events = stream("hello")
    assert (play(stage, events[:3]), stage.held) == ([[]], room)
    with pytest.raises(LimitExceeded, match="larger than 303 bytes") as caught:
        stage.receive(events[3:])
    assert caught.value.take() == events[:4]
    assert (stage.held, stage.ended) == (0, True)


def test_it_keeps_the_rules_of_every_stage() -> None:
    events = [evolve(event, origin=Frame(b"x")) for event in stream("hello")]
    check_stage(lambda: gatherer(message(Text("hello")))[0], events)


def test_calls_are_known_by_their_ids_and_the_rest_by_what_it_is() -> None:
    a, b = CALL, ToolUse("b", "g", "{}")
    said = (Text("1"), b, Reasoning("2"), a, Text("3"))
    assert in_order_of((Reasoning("x"), Text("y"), Text("z"), a, b), said) == (
        *(Reasoning("2"), Text("1"), Text("3")),
        *(a, b),
    )
    assert in_order_of((a, Refusal("no")), said) == (a, Text("1"), Text("3"), b, Reasoning("2"))


class Keeper(Stage[Frame, Event]):
    """A text in a message, from frames that hold it; or what `Encoder` wrote."""

    ended = False

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        return remembering([*disassemble(message(*(Text(item.raw.decode()) for item in items)))])

    def receive_eof(self, cause: object = None) -> Sequence[Event]:
        return ()


class Encoder(Stage[Event, Frame]):
    """A frame a text."""

    ended = False

    def receive(self, items: Sequence[Event]) -> Sequence[Frame]:
        return [Frame(item.text.encode()) for item in items if isinstance(item, TextDelta)]

    def receive_eof(self, cause: object = None) -> Sequence[Frame]:
        return ()


def unroller(ledger: Ledger) -> Unroller:
    def unroll(body: bytes) -> list[Frame]:
        return [Frame(one.encode()) for one in json.loads(body)]

    def patch(change: Change) -> dict[str, Any]:
        raise AssertionError("nothing was mended")

    def framing(frames: Sequence[Frame]) -> list[bytes]:
        return [frame.data for frame in frames]

    return Unroller(unroll, Keeper, Encoder, framing, ledger, patch=patch, meant=lambda content: content)


def test_an_answer_is_told_as_the_frames_of_its_stream() -> None:
    ledger = Ledger()
    out = unroller(ledger)(b'["a", "b"]', message(Text("a"), Text("b")))
    assert [one.text for one in out if isinstance(one, TextDelta)] == ["a", "b"]
    assert all(isinstance(event.origin, Origin) for event in out)
    assert list(ledger) == []


def test_what_its_stream_does_not_say_is_told_anew_and_recorded() -> None:
    ledger = Ledger()
    out = unroller(ledger)(b'["a"]', message(Text("a"), Text("b")))
    assert [one.text for one in out if isinstance(one, TextDelta)] == ["a", "b"]
    assert [(entry.path, entry.action) for entry in ledger] == [("body", "rewritten")]


@pytest.mark.parametrize(
    "said",
    [
        (Reasoning("a"), Refusal("b")),
        (Text("ab"),),
        (Text("a"), Text(""), Text("b")),
    ],
)
def test_what_a_text_is_called_is_no_matter(said: Any) -> None:
    ledger = Ledger()
    unroller(ledger)(b'["a", "b"]', message(*said))
    assert list(ledger) == []


@pytest.mark.parametrize("said", [(Text("a"), CALL), (Text("a"), ServerItem("x", {})), (Text("b"),)])
def test_a_call_or_an_item_more_is_one(said: Any) -> None:
    ledger = Ledger()
    unroller(ledger)(b'["a"]', message(*said))
    assert len(list(ledger)) == 1


def test_an_answer_that_failed_is_told_as_the_frames_of_its_stream() -> None:
    ledger = Ledger()
    failed = evolve(message(Text("a"), evolve(CALL, complete=False)), stop_reason=None, error=evolve(BOOM))

    class FailedKeeper(Keeper):
        """A text, a call that is whole, and an error, from frames that hold no more than the text."""

        def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
            return remembering([*disassemble(evolve(failed, content=(Text("a"), CALL)))])

    stage = evolve(unroller(ledger), keeper=FailedKeeper)
    out = stage(b'["a"]', failed)
    assert assemble(out).error == BOOM
    assert all(isinstance(event.origin, Origin) for event in out)
    assert list(ledger) == []


@pytest.mark.parametrize("frames", [b'["a"]', b'["b"]'])
def test_a_failure_that_its_stream_does_not_tell_is_told_behind_it_and_recorded(frames: bytes) -> None:
    ledger = Ledger()
    failed = evolve(message(Text("a")), stop_reason=None, error=evolve(BOOM))
    *told, error = unroller(ledger)(frames, failed)
    assert (error, error.origin) == (BOOM, None)
    assert [type(event).__name__ for event in told] == ["MessageStart", "BlockStart", "TextDelta", "BlockStop"]
    assert all(isinstance(event.origin, Origin) for event in told)
    assert assemble(told).content == (Text("a"),)
    assert [(entry.path, entry.action) for entry in ledger] == [("body", "rewritten")]


def test_a_failure_that_its_answer_does_not_tell_is_none() -> None:
    ledger = Ledger()

    class FailedKeeper(Keeper):
        """At first an error."""

        def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
            error = evolve(BOOM) if items[0].raw == b"b" else None
            return remembering([*disassemble(evolve(message(Text("a")), error=error))])

    out = evolve(unroller(ledger), keeper=FailedKeeper)(b'["b"]', message(Text("a")))
    assert assemble(out).error is None
    assert [(entry.path, entry.action) for entry in ledger] == [("body", "rewritten")]
