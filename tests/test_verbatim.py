"""stages.verbatim: one dialect over itself."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    BlockStart,
    Carry,
    Event,
    Frame,
    MessageStart,
    MessageStop,
    Origin,
    Ping,
    StreamError,
    TextBlock,
    TextDelta,
)
from pipeline.limits import Limits
from pipeline.stage import Stage
from pipeline.testing import EOF, play
from stages.raw import RawDecoder
from stages.sse import SSEDecoder, SSEEncoder
from stages.verbatim import LATE, FrameReturner, OriginKeeper

CUT = StreamError(ErrorKind.CUT, "reset", "stream_cut", retryable=True)


# RawDecoder


def frames_of(*reads: bytes) -> list[Frame]:
    """The frames of a stream that comes in these reads."""
    return [frame for step in play(RawDecoder(SSEDecoder()), *reads, EOF) for frame in step]


def told(frames: Sequence[Frame]) -> list[tuple[bytes, bytes, bytes]]:
    return [(frame.name, frame.data, frame.raw) for frame in frames]


def test_a_frame_has_the_bytes_it_came_as() -> None:
    raw = b'id: 7\nevent:  x\ndata:{"a":1}\ndata: 2\nretry: 1\n\n'
    assert told(frames_of(raw)) == [(b" x", b'{"a":1}\n2', raw)]


def test_silence_is_a_frame_of_its_own_and_does_not_wait() -> None:
    steps = play(RawDecoder(SSEDecoder()), b": hi\n\n", b"\n", b"data: 1\n\n", b": bye\n: cu", EOF)
    assert [told(step) for step in steps] == [
        [(b"", b"", b": hi\n\n")],
        [],
        [(b"", b"1", b"\ndata: 1\n\n")],
        [],
        [(b"", b"", b": bye\n")],
    ]


def test_a_frame_leaves_in_the_read_that_brought_its_blank_line() -> None:
    steps = play(RawDecoder(SSEDecoder()), b"data: 1\r\n", b"\r", b"\ndata: 2", b"\r\n\r\n", EOF)
    assert [told(step) for step in steps] == [
        [],
        [(b"", b"1", b"data: 1\r\n\r")],
        [],
        [(b"", b"2", b"\ndata: 2\r\n\r\n")],
        [],
    ]


def test_a_last_event_that_is_whole_is_given_its_blank_line() -> None:
    for end in (b"", b"\n"):
        assert told(frames_of(b'data: {"a":1}' + end)) == [(b"", b'{"a":1}', b'data: {"a":1}\n\n')]
    assert frames_of(b'data: {"a":') == []
    assert told(frames_of(b"data: 1\n\ndata: {")) == [(b"", b"1", b"data: 1\n\n")]


def test_what_is_no_event_stream_is_not_passed_on() -> None:
    decoder = RawDecoder(SSEDecoder())
    assert play(decoder, b"<html>\n\n<body>") == [[]]
    with pytest.raises(UpstreamError, match="not an event stream"):
        decoder.receive_eof()
    assert told(frames_of(b'{"error":1}\n')) == [(b"", b'{"error":1}', b'{"error":1}\n\n')]


def test_lines_that_are_none_of_an_event_stream_go_with_the_frame_behind_them() -> None:
    assert told(frames_of(b"junk\n\ndata: 1\n\n")) == [(b"", b"1", b"junk\n\ndata: 1\n\n")]
    both = frames_of(b'{"error":1}\n\ndata: 1\n\n')
    assert told(both) == [(b"", b'{"error":1}', b'{"error":1}\n\ndata: 1\n\n'), (b"", b"1", b"")]


def test_the_bounds_of_the_decoder_hold() -> None:
    decoder = RawDecoder(SSEDecoder(limits=Limits(line_bytes=10)))
    with pytest.raises(LimitExceeded) as raised:
        decoder.receive([b"data: 1\n\ndata: " + b"x" * 20])
    assert told(raised.value.made) == [(b"", b"1", b"data: 1\n\n")]
    waiting = RawDecoder(SSEDecoder())
    waiting.receive([b"data: 1"])
    assert waiting.held == 7


LINES = st.sampled_from([b"data: 1", b'data:{"a":1}', b"event: x", b": c", b"", b"", b"", b"id: 3", b"data"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.integers(1, 9), st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_the_frames_are_the_decoders_and_all_bytes_are_theirs_at_any_cut(
    lines: list[tuple[bytes, bytes]], size: int, bom: bytes
) -> None:
    data = bom + b"".join(line + end for line, end in lines)
    frames = frames_of(*(data[at : at + size] for at in range(0, len(data), size)))
    plain = [frame for step in play(SSEDecoder(), data, EOF) for frame in step]
    assert [(frame.name, frame.data) for frame in frames if frame.data] == [(one.name, one.data) for one in plain]
    raw = b"".join(frame.raw for frame in frames)
    assert data.startswith(raw) or raw.startswith(data)


def test_what_a_read_brings_is_looked_at_in_linear_time() -> None:
    """A read of many events that are not all alike takes about as long an event as a small one."""
    data = b": c\n" + b"data: 1\n\n: c\n" * 20_000
    began = time.process_time()
    frames = RawDecoder(SSEDecoder()).receive([data])
    assert len(frames) == 20_000
    assert time.process_time() - began < 2


# OriginKeeper


@define
class Letters(Stage[Frame, Event]):
    """A text of each letter; `.` is the end, `?` says nothing, `!` breaks it."""

    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        out: list[Event] = []
        for letter in b"".join(frame.data for frame in items).decode():
            if letter == "!":
                raise UpstreamError("a ! came").after(out)
            if letter == ".":
                self.ended = True
                out.append(MessageStop())
            elif letter != "?":
                out.append(TextDelta(0, letter))
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return () if self.ended else (cause or CUT,)


def frame(data: bytes) -> Frame:
    return Frame(data, raw=b"<" + data + b">")


def kept(*letters: bytes) -> list[Event]:
    """The events of frames with these letters."""
    return list(OriginKeeper(Letters(), "letters").receive([frame(one) for one in letters]))


def test_every_event_remembers_its_frame_and_which_one_it_is() -> None:
    first, second, third = kept(b"ab", b"c")
    assert first.origin is second.origin
    assert first.origin == Origin(b"ab", b"", b"<ab>", 0)
    assert third.origin == Origin(b"c", b"", b"<c>", 1)
    assert isinstance(first.origin, Origin)
    assert first.origin.made == (first, second)


def test_a_frame_that_says_nothing_and_one_behind_the_end_are_carried() -> None:
    made = kept(b"", b"?", b".", b"a")
    assert [type(one) for one in made] == [Carry, Carry, MessageStop, Carry]
    assert made[3] == Carry("letters", frame(b"a"))
    assert [one.origin.raw for one in made if one.origin] == [b"<>", b"<?>", b"<.>", b"<a>"]


def test_what_was_made_before_a_failure_goes_on_and_the_end_is_the_normalizers() -> None:
    stage = OriginKeeper(Letters(), "letters")
    with pytest.raises(UpstreamError) as raised:
        stage.receive([frame(b"a"), frame(b"b!")])
    assert raised.value.made == [TextDelta(0, "a"), TextDelta(0, "b")]
    assert [one.origin is None for one in raised.value.made] == [False, True]
    assert stage.receive_eof(CUT) == (CUT,)


# FrameReturner


@define
class Plain:
    """Writes what was changed as it is."""

    moved: bool = False
    gone: list[bytes | None] = field(factory=list)

    def passes(self, frame: Origin, event: Event) -> bool:
        return not self.moved

    def missing(self) -> None:
        self.moved = True

    def lost(self, frame: Origin | None) -> None:
        self.gone.append(None if frame is None else frame.data)

    def unchanged(self, frame: Origin, events: Sequence[Event]) -> Sequence[Frame]:
        return (frame,)

    def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
        said = ",".join(getattr(event, "text", type(event).__name__) for event in events)
        return (Frame(said.encode(), b"" if frame is None else b"was " + frame.data),)

    def another(self, frame: Origin, start: BlockStart) -> Sequence[Frame]:
        return (Frame(b"another", b"of " + frame.data),)

    def failed(self, error: StreamError) -> Sequence[Frame]:
        return (Frame(error.message.encode(), b"error"),)

    def idle(self) -> Sequence[Frame]:
        return (Frame(b"ping"),)


def returned(*steps: Any) -> list[bytes]:
    """What each step brings."""
    return [b"".join(step) for step in play(FrameReturner(Plain(), SSEEncoder()), *steps)]


def test_frames_whose_events_arrive_as_they_were_made_go_back_as_they_came() -> None:
    made = kept(b"a", b"?", b"bc", b".", b"d")
    assert returned(made, EOF) == [b"<a><?><bc><.><d>", b""]
    assert returned(*kept(b"a", b"bc", b".")) == [b"<a>", b"", b"<bc>", b"<.>"]


def test_a_frame_of_which_an_event_was_changed_is_patched() -> None:
    a, b, c, end = kept(b"ab", b"c", b".")
    louder = TextDelta(0, "B", origin=b.origin)
    assert returned([a, louder, c, end]) == [b"event: was ab\ndata: a,B\n\n<c><.>"]
    c, end = kept(b"c", b".")
    assert returned([TextDelta(0, "C", origin=c.origin), end]) == [b"event: was c\ndata: C\n\n<.>"]


def test_a_frame_of_which_an_event_was_left_out_is_patched_and_what_is_new_is_written_anew() -> None:
    a, b, c, end = kept(b"ab", b"c", b".")
    assert returned([a, c, end]) == [b"event: was ab\ndata: a\n\n<c><.>"]
    a, b, end = kept(b"ab", b".")
    assert returned([a, TextDelta(0, "x"), b, end]) == [
        b"event: was ab\ndata: a\n\ndata: x\n\nevent: was ab\ndata: b\n\n<.>"
    ]
    assert returned([a, MessageStart("", ""), MessageStop()]) == [
        b"event: was ab\ndata: a\n\ndata: MessageStart\n\ndata: MessageStop\n\n"
    ]


def test_a_frame_that_was_left_out_is_missed() -> None:
    a, b, c, end = kept(b"a", b"b", b"c", b".")
    returner = Plain()
    stage = FrameReturner(returner, SSEEncoder())
    assert play(stage, [a, c], [b], [end]) == [[b"<a><c>"], [b"<b>"], [b"<.>"]]
    assert returner.moved


def test_a_frame_of_which_nothing_comes_is_lost_once_nothing_can() -> None:
    a, _b, c, d, e, end = kept(b"a", b"b", b"?", b"cd", b".")
    returner = Plain()
    stage = FrameReturner(returner, SSEEncoder())
    stage.receive([a, d, e])
    assert returner.gone == [b"b"]
    stage.receive([c, end])
    assert returner.gone == [b"b"]
    a, _b, _c, d, e, end = kept(b"a", b"b", b"?", b"cd", b".")
    FrameReturner(returner := Plain(), SSEEncoder()).receive([a, d, e, end])
    assert returner.gone == [b"b", b"?"]


def test_so_many_frames_may_come_late_and_no_more() -> None:
    first, *silent, _end = kept(b"a", *[b"?"] * (LATE + 1), b".")
    stage = FrameReturner(returner := Plain(), SSEEncoder())
    stage.receive([first, kept_last := silent.pop()])
    assert kept_last.origin is not None
    assert returner.gone == []
    first, *silent, last, _end = kept(b"a", *[b"?"] * (LATE + 2), b".")
    FrameReturner(returner := Plain(), SSEEncoder()).receive([first, last])
    assert returner.gone == [b"?"]


def test_a_block_of_text_in_place_of_one_that_a_frame_began_is_told_of_that_frame() -> None:
    begun = BlockStart(9, TextBlock())
    a, b, end = kept(b"a", b"b", b".")
    assert returned([a, evolve(begun, origin=a.origin), b, end]) == [b"<a>event: of a\ndata: another\n\n<b><.>"]
    a, b, end = kept(b"a", b"b", b".")
    assert returned([a, evolve(begun, origin=b.origin), TextDelta(9, "b", origin=b.origin), end]) == [
        b"<a>event: of b\ndata: another\n\nevent: was b\ndata: b\n\n<.>"
    ]
    a, b, end = kept(b"a", b"b", b".")
    own = BlockStart(0, TextBlock(), origin=b.origin)
    assert returned([a, own, end]) == [b"<a>event: was b\ndata: BlockStart\n\n<.>"]
    _, b = kept(b"a", b"b")
    returner = Plain()
    FrameReturner(returner, SSEEncoder()).receive([evolve(begun, origin=b.origin)])
    assert returner.moved
    assert returned([CUT, evolve(begun, origin=kept(b"a")[0].origin)]) == [b"event: error\ndata: reset\n\n"]


def test_a_cut_is_told_by_us_and_nothing_comes_behind_it() -> None:
    assert returned(kept(b"a"), EOF) == [b"<a>", b"event: error\ndata: the stream ended before its terminal\n\n"]
    assert returned(kept(b"a"), EOF(CUT)) == [b"<a>", b"event: error\ndata: reset\n\n"]
    assert returned([CUT, *kept(b"a"), Ping()], EOF) == [b"event: error\ndata: reset\n\n", b""]


def test_an_error_that_remembers_a_body_and_no_frame_of_the_stream_is_told_by_us() -> None:
    assert returned([evolve(CUT, origin=Frame(b"{}"))], EOF) == [b"event: error\ndata: reset\n\n", b""]


def test_behind_the_streams_terminal_only_the_stream_goes_on() -> None:
    end, more = kept(b".", b"a")
    assert returned([end, Ping(), CUT, more], EOF(CUT)) == [b"<.><a>", b""]


def test_an_event_that_waits_for_the_rest_of_its_frame_goes_out_at_the_end() -> None:
    a, _, _ = kept(b"ab", b".")
    assert returned([a], EOF) == [
        b"",
        b"event: was ab\ndata: a\n\nevent: error\ndata: the stream ended before its terminal\n\n",
    ]


def test_a_ping_stands_before_a_frame_that_waits_for_its_events_and_never_behind_the_end() -> None:
    stage = FrameReturner(Plain(), SSEEncoder())
    a, b, end = kept(b"ab", b".")
    assert list(stage.idle()) == [b"data: ping\n\n"]
    assert not stage.receive([a])
    assert list(stage.idle()) == [b"data: ping\n\n"]
    assert list(stage.receive([b])) == [b"<ab>"]
    stage.receive([end])
    assert not stage.idle()


def test_a_failure_of_the_returner_brings_what_was_written_before() -> None:
    @define
    class Broken(Plain):
        def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
            raise UpstreamError("no")

    a, _ = kept(b"ab")
    (c,) = kept(b"c")
    with pytest.raises(UpstreamError) as raised:
        FrameReturner(Broken(), SSEEncoder()).receive([c, a, Ping()])
    assert raised.value.made == [b"<c>"]
