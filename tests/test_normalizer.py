"""pipeline.normalizer: what holds of every dialect's normalizer, shown by one that knows three words."""

from typing import Any, ClassVar

import pytest

from pipeline.errors import ErrorKind, UpstreamError
from pipeline.events import Carry, Event, Frame, MessageStop, StreamError, TextDelta
from pipeline.normalizer import Normalizer
from pipeline.testing import EOF, play

FAILED = StreamError(ErrorKind.API, "so it says", "said", True)
CAUSE = StreamError(ErrorKind.TIMEOUT, "nothing came", "idle", True)


class Words(Normalizer):
    """Text under `text`, more of it as a bare string, the end as `end`, a failure as `error`, in JSON or none."""

    dialect: ClassVar[str] = "words"
    stage: ClassVar[str] = "Words"
    sentinel: ClassVar[bytes] = b"OVER"

    def _goes_on(self, payload: Any, frame: Frame, out: list[Event]) -> bool:
        if isinstance(payload, str):
            out.append(TextDelta(1, payload))
        return isinstance(payload, str)

    def _read(self, payload: Any, frame: Frame, out: list[Event]) -> None:
        if (error := self._error_in(payload, frame.name)) is not None:
            self._fail(error, out)
        elif text := payload.get("text"):
            out.append(TextDelta(0, text))
        elif payload.get("end"):
            out.append(MessageStop())
            self.ended = True

    def _error_in(self, payload: Any, name: bytes) -> StreamError | None:
        return FAILED if "error" in payload or name == b"error" else None

    def _fail(self, error: StreamError, out: list[Event]) -> None:
        out.append(error)
        self.ended = True


class Ending(Words):
    """The sentinel ends the message too, and a cut behind a text is the end."""

    terminal: ClassVar[str] = "last word"

    def _done(self, out: list[Event]) -> None:
        out.append(MessageStop())
        self.ended = True

    def _eof(self, cause: StreamError, out: list[Event]) -> None:
        self._done(out) if cause.kind is ErrorKind.CUT else super()._eof(cause, out)


def frames(*data: bytes) -> list[Frame]:
    return [Frame(one) for one in data]


def test_every_frame_makes_an_event_also_one_that_says_nothing() -> None:
    nothing, other = Frame(b"{}"), Frame(b": a comment")
    stage = Words()
    assert play(stage, frames(b'{"text":"a"}'), [nothing], [other]) == [
        [TextDelta(0, "a")],
        [Carry("words", nothing)],
        [Carry("words", other)],
    ]
    assert [(entry.stage, entry.path, entry.action) for entry in stage.ledger] == [("Words", "frame", "ignored")]


def test_what_is_plainly_more_takes_the_short_way() -> None:
    assert play(Words(), frames(b'{"text":"a"}', b'"b"')) == [[TextDelta(0, "a"), TextDelta(1, "b")]]


def test_nothing_is_read_behind_the_end_in_the_same_read_or_a_later_one() -> None:
    stage = Words()
    assert play(stage, frames(b'{"end":1}', b'{"text":"a"}'), frames(b'{"text":"b"}'), EOF) == [[MessageStop()], [], []]
    assert stage.ended


def test_several_texts_in_one_frame_are_read_up_to_the_end() -> None:
    assert play(Words(), frames(b'{"text":"a"}{"end":1}{"text":"b"}')) == [[TextDelta(0, "a"), MessageStop()]]


@pytest.mark.parametrize("frame", [Frame(b'{"error":1}'), Frame(b"an error"), Frame(b"busy", b"error")])
def test_an_error_in_json_or_in_none_ends_the_stream(frame: Frame) -> None:
    assert play(Words(), [Frame(b'{"text":"a"}'), frame, Frame(b'{"text":"b"}')]) == [[TextDelta(0, "a"), FAILED]]


def test_what_breaks_the_stage_comes_behind_what_was_made_before_it() -> None:
    with pytest.raises(UpstreamError) as raised:
        Words().receive(frames(b'{"text":"a"}', b'{"text":'))
    assert list(raised.value.made) == [TextDelta(0, "a")]
    assert isinstance(raised.value.__cause__, ValueError)


def test_the_sentinel_says_nothing_unless_the_dialect_says_so() -> None:
    over = Frame(b"OVER")
    assert play(Words(), [over]) == [[Carry("words", over)]]
    assert play(Ending(), [over, Frame(b'{"text":"a"}')], EOF) == [[MessageStop()], []]
    assert play(Ending(), frames(b'{"end":1} OVER')) == [[MessageStop()]]
    assert play(Ending(), frames(b"OVER without error")) == [[MessageStop()]]


def test_the_end_before_the_terminal_is_a_cut_or_its_cause() -> None:
    cut = StreamError(ErrorKind.CUT, "the upstream ended before its terminal event", "stream_cut", True)
    assert play(Words(), EOF) == [[cut]]
    assert Words().receive_eof(CAUSE) == [CAUSE]


def test_a_dialect_may_know_that_the_end_was_one() -> None:
    assert play(Ending(), EOF) == [[MessageStop()]]
    assert Ending().receive_eof(CAUSE) == [CAUSE]
    seen: list[StreamError] = []

    class Last(Ending):
        def _eof(self, cause: StreamError, out: list[Event]) -> None:
            seen.append(cause)

    Last().receive_eof()
    assert [cause.message for cause in seen] == ["the upstream ended before its last word"]
