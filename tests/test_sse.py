"""Framing: what arrives, what leaves, and that no cut of the bytes changes it."""

import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ErrorKind, LimitExceeded, PipelineError, StageError, UpstreamError
from pipeline.events import Frame, StreamError
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.testing import EOF, check_stage, play
from stages.sse import SSEDecoder, SSEEncoder

BOM = b"\xef\xbb\xbf"
END = b"[END]"
UNICODE = "é日👍\u2028\u2029\x85\x0b\x0c".encode()
RESET = StreamError(ErrorKind.CUT, "connection reset")
SIZES = [1, 2, 3, 7, 64, 1_000_000]

Outcome = tuple[list[Frame], tuple[str, str] | None, list[str]]


def cut(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def outcome(reads: Iterable[bytes], cause: StreamError | None = None, limits: Limits = DEFAULT_LIMITS) -> Outcome:
    """All frames of a stream, the code and words of its failure, and the paths of what the ledger says was dropped."""
    ledger = Ledger()
    decoder = SSEDecoder(limits=limits, sentinels=(END,), ledger=ledger)
    frames: list[Frame] = []
    failure = None
    try:
        for read in reads:
            frames += decoder.receive([read])
        frames += decoder.receive_eof(cause)
    except PipelineError as error:
        frames += error.made
        failure = (error.code, str(error))
    assert decoder.ended
    assert decoder.held == 0
    assert decoder.receive([b"data: late\n\n"]) == ()
    assert decoder.receive_eof() == ()
    return frames, failure, [entry.path for entry in ledger]


def data(*payloads: bytes) -> list[Frame]:
    return [Frame(payload) for payload in payloads]


# What arrives, and the frames it makes, at every cut.
STREAMS: dict[str, tuple[bytes, list[Frame]]] = {
    "one event": (b"data: a\n\n", data(b"a")),
    "several events": (b"data: a\n\ndata: b\n\ndata: c\n\n", data(b"a", b"b", b"c")),
    "named events": (b"event: x\ndata: a\n\nevent: y\ndata: b\n\n", [Frame(b"a", b"x"), Frame(b"b", b"y")]),
    "a name is its event's only": (b"event: x\ndata: a\n\ndata: b\n\n", [Frame(b"a", b"x"), Frame(b"b")]),
    "the name behind the data": (b"data: a\nevent: x\n\n", [Frame(b"a", b"x")]),
    "the last name counts": (b"event: x\nevent: y\ndata: a\n\n", [Frame(b"a", b"y")]),
    "a name without data": (b"event: x\n\nevent: y\ndata: a\n\n", [Frame(b"a", b"y")]),
    "no data between names": (b"event: x\ndata: a\n\nevent: y\nid: 1\n\nevent: z\n\n", [Frame(b"a", b"x")]),
    "several data lines are joined": (b"data: a\ndata: b\n\ndata: c\n\n", data(b"a\nb", b"c")),
    "several data lines under a name": (b"event: x\ndata: a\ndata: b\n\n", [Frame(b"a\nb", b"x")]),
    "CRLF": (b"data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n", [Frame(b"a"), Frame(b"b", b"x")]),
    "CR": (b"data: a\r\revent: x\rdata: b\r\r", [Frame(b"a"), Frame(b"b", b"x")]),
    "mixed line ends": (b"data: a\rdata: b\r\ndata: c\n\r\ndata: d\n\r", data(b"a\nb\nc", b"d")),
    "LF CR LF is two line ends": (b"data: a\n\r\ndata: b\r\n\n", data(b"a", b"b")),
    "a byte order mark": (BOM + b"data: a\n\n", data(b"a")),
    "a byte order mark only at the start": (BOM + BOM + b"data: a\n\ndata: b\n\n", data(b"b")),
    "a byte order mark inside is data": (b"data: " + BOM + b"\n\n", data(BOM)),
    "half a byte order mark is none": (b"\xef\xbbdata: a\n\ndata: b\n\n", data(b"b")),
    "a byte order mark and nothing": (BOM + b"\n\n", []),
    "no blank after the colon": (b"data:a\n\nevent:x\ndata:b\n\n", [Frame(b"a"), Frame(b"b", b"x")]),
    "one blank of several is removed": (
        b"data:  a \n\nevent:  x\ndata:   b\n\n",
        [Frame(b" a "), Frame(b"  b", b" x")],
    ),
    "only a blank is removed": (b"data:\ta\n\n", data(b"\ta")),
    "comments": (b": x\n\n:\n\ndata: a\n: y\ndata: b\n\n: z\ndata: c\n\n", data(b"a\nb", b"c")),
    "a comment that looks like a field": (b":data: x\n\ndata: : y\n\n", data(b": y")),
    "ids and retries": (b"retry: 3\n\nid: 1\ndata: a\n\nid\nretry\n\n\ndata: b\n\n", data(b"a", b"b")),
    "names are case-sensitive": (b"DATA: x\ndata: a\nData: y\n data: z\n\n", data(b"a")),
    "unknown fields": (b"foo: bar\ndatax: 1\ndata: a\nbaz\n\n", data(b"a")),
    "empty data": (b"data\n\ndata:\n\ndata: \n\nevent: x\ndata: \n\ndata: a\n\n", data(b"a")),
    "empty data between": (b"data: a\n\ndata: \n\ndata: b\n\nevent: x\ndata: \n\n", data(b"a", b"b")),
    "empty named data between": (b"event: x\ndata: \n\nevent: y\ndata: a\n\n", [Frame(b"a", b"y")]),
    "two empty data lines are a line end": (b"data:\ndata:\n\n", data(b"\n")),
    "runs of blank lines": (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", data(b"a", b"b")),
    "UTF-8 and its line ends are data": (b"data: " + UNICODE + b"\n\n", data(UNICODE)),
    "no UTF-8 and NUL": (b"data: \xff\x00\xc3\n\n\x00\n\n", data(b"\xff\x00\xc3")),
    "nothing": (b"", []),
    "comments and blanks only": (b": x\n\n \n\n\t\r\n:", []),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("title", STREAMS)
def test_a_stream_makes_these_frames_at_every_cut(title: str, size: int) -> None:
    stream, frames = STREAMS[title]
    assert outcome(cut(stream, size))[:2] == (frames, None)


def test_a_split_crlf_is_one_line_end() -> None:
    steps = [b'data: {"i":\r', b"", b"\ndata: 0}\r\n\r", b"\n", b"data: a\r\n\r\n"]
    assert play(SSEDecoder(), *steps, EOF) == [[], [], data(b'{"i":\n0}'), [], data(b"a"), []]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_frame_leaves_with_the_first_byte_that_makes_its_blank_line(end: bytes) -> None:
    decoder = SSEDecoder()
    blank = len(b"data: a" + end)
    came = [bool(decoder.receive([read])) for read in cut(b"data: a" + end + end + b"data: b" + end, 1)]
    assert [at for at, made in enumerate(came) if made] == [blank]


def test_several_reads_in_one_call_are_one_read() -> None:
    assert play(SSEDecoder(), [b"data: ", b"", b"a\n", b"\ndata: b\n\n"], []) == [data(b"a", b"b"), []]


def test_buffers_are_taken_as_bytes() -> None:
    decoder = SSEDecoder()
    (frame,) = decoder.receive([bytearray(b"data: a\n"), memoryview(b"\n")])  # type: ignore[list-item]  # taken all the same
    assert type(frame.data) is bytes
    assert frame == Frame(b"a")


def test_held_counts_the_unfinished_event() -> None:
    decoder = SSEDecoder()
    decoder.receive([b"data: a\n\ndata: b"])
    assert decoder.held == len(b"data: b")
    decoder.receive([b"\n"])
    assert decoder.held == len(b"data: b\n")
    decoder.receive([b"\n"])
    assert decoder.held == 0


def test_held_counts_the_lines_that_may_be_a_whole_answer() -> None:
    decoder = SSEDecoder()
    decoder.receive([b'{"a":\n\n1}'])
    assert decoder.held == len(b'{"a":\n1}')
    decoder.receive([b"\n\ndata: a\n\n"])
    assert decoder.held == 0


# The end of the stream: what is left, the frames, the failure, what the ledger names.
NO_STREAM = "not_an_event_stream"
ENDS: dict[str, tuple[bytes, list[Frame], str, list[str]]] = {
    "whole JSON is salvaged": (b'event: x\ndata: {"a":1}', [Frame(b'{"a":1}', b"x")], "", []),
    "the same with one line end": (b'data: {"a":1}\n', data(b'{"a":1}'), "", []),
    "the same with a CR": (b'data: {"a":1}\r', data(b'{"a":1}'), "", []),
    "the same with the next field begun": (b'data: {"a":1}\nda', data(b'{"a":1}'), "", []),
    "whole JSON over several lines": (b'data: {"a":\ndata: 1}', data(b'{"a":\n1}'), "", []),
    "JSON that orjson refuses": (b'data: "\\ud800 \xff"', data(b'"\\ud800 \xff"'), "", []),
    "a sentinel is salvaged": (b"data: a\n\ndata: [END] ", data(b"a", b"[END] "), "", []),
    "half a sentinel is not": (b"data: a\n\ndata: [EN", data(b"a"), "", ["frame"]),
    "half JSON is dropped": (b'data: a\n\ndata: {"a":', data(b"a"), "", ["frame"]),
    "NaN is no JSON": (b"data: a\n\ndata: NaN", data(b"a"), "", ["frame"]),
    "half JSON alone": (b'data: {"a":', [], "", ["frame"]),
    "a name alone": (b"event: x", [], "", []),
    "half a field name": (b"dat", [], "", []),
    "half a byte order mark": (b"\xef\xbb", [], "", []),
    "a comment": (b"data: a\n\n: x", data(b"a"), "", []),
    "junk among frames": (b"data: a\n\nfoo\nbar: 1\n\ndata: b\n\nbaz", data(b"a", b"b"), "", ["line"]),
    "junk before a frame": (b"foo\n\ndata: a\n\n", data(b"a"), "", ["line"]),
    "junk beside a frame": (b"foo\ndata: a\n\n", data(b"a"), "", ["line"]),
    "junk before a salvaged frame": (b'foo\n\ndata: {"a":1}', data(b'{"a":1}'), "", ["line"]),
    "junk beside a salvaged frame": (b'foo\ndata: {"a":1}', data(b'{"a":1}'), "", ["line"]),
    "ids and retries are no junk": (b"id: 1\nretry\n\ndata: a\n\n", data(b"a"), "", []),
    "a bare JSON text before a frame": (b'{"a":1}\n\ndata: a\n\n', data(b'{"a":1}', b"a"), "", []),
    "a bare JSON text in a frame's block": (b'{"a":\n1}\ndata: a\n\n', data(b'{"a":\n1}', b"a"), "", []),
    "a bare JSON text before a salvaged frame": (b'{"a":1}\ndata: {}', data(b'{"a":1}', b"{}"), "", []),
    "junk behind a frame": (b'data: a\n\n{"a":1}\n\ndata: b\n\n', data(b"a", b"b"), "", ["line"]),
    "a bare JSON body": (b'{"error":{"message":"no"}}', data(b'{"error":{"message":"no"}}'), "", []),
    "a bare JSON array": (b"\n[1]\n", data(b"[1]"), "", []),
    "a pretty-printed body": (b'{\r\n  "id":\r\n\r\n  1\r\n}\r\n', data(b'{\n  "id":\n  1\n}'), "", []),
    "a body behind comments": (b': x\n\n\n{"a":1}\n', data(b'{"a":1}'), "", []),
    "half a body": (b'{"a":', [], NO_STREAM, []),
    "two JSON texts": (b'{"a":1}\n{"b":2}\n', [], NO_STREAM, []),
    "a bare scalar": (b"1", [], NO_STREAM, []),
    "a bare sentinel": (END, [], NO_STREAM, []),
    "a page": (b"<!doctype html>\n<title>x</title>\n\n<p>y</p>\n", [], NO_STREAM, []),
    "NUL": (b"\x00", [], NO_STREAM, []),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("title", ENDS)
def test_the_end_of_a_stream_at_every_cut(title: str, size: int) -> None:
    stream, frames, code, dropped = ENDS[title]
    made, failure, paths = outcome(cut(stream, size))
    assert (made, failure[0] if failure else "", paths) == (frames, code, dropped)


@pytest.mark.parametrize("title", ENDS)
def test_a_cause_stands_before_our_own_complaint(title: str) -> None:
    stream, frames, _, dropped = ENDS[title]
    assert outcome([stream], RESET) == (frames, None, dropped)


def test_what_is_no_event_stream_is_the_providers_fault_and_is_not_quoted() -> None:
    decoder = SSEDecoder()
    decoder.receive([b"<html>secret</html>\n"])
    with pytest.raises(UpstreamError) as caught:
        decoder.receive_eof()
    assert str(caught.value) == "the answer is not an event stream: 19 bytes, and no event among them"
    assert caught.value.retryable


def test_without_a_ledger_losses_are_not_recorded() -> None:
    decoder = SSEDecoder()
    assert decoder.receive([b"foo\n\ndata: a\n\ndata: {"]) == data(b"a")
    assert decoder.receive_eof() == []


@pytest.mark.parametrize("stream", [b"data: [[[1]]]", b"[[[1]]]", b"foo\n\ndata: [[[1]]]"])
def test_json_nested_too_deeply_at_the_end_fails(stream: bytes) -> None:
    _, failure, _ = outcome([stream], limits=Limits(json_depth=2))
    assert failure == ("json_depth", "JSON is nested deeper than 2 levels")


# Bounds: limits.line_bytes is 8, limits.frame_bytes 12; the frames, the failure and its frame.
TIGHT = Limits(line_bytes=8, frame_bytes=12)
BOUNDS: dict[str, tuple[bytes, list[Frame], str, str]] = {
    "a line of just so many bytes": (b"data: ab\n\n", data(b"ab"), "", ""),
    "a frame of just so many bytes": (b"data: ab\n:xy\n\n", data(b"ab"), "", ""),
    "blank lines do not count": (b"\n\n\ndata: ab\n:xy\n\n\n\ndata: ab\n:xy\n\n", data(b"ab", b"ab"), "", ""),
    "line ends count as one": (b"data: ab\r\n:xy\r\n\r\ndata: ab\r\n\r\n", data(b"ab", b"ab"), "", ""),
    "a long line": (b"data: abc\n\n", [], "line_bytes", "a line of frame 1"),
    "a long line behind a frame": (b"data: a\n\ndata: abc", data(b"a"), "line_bytes", "a line of frame 2"),
    "a long second line": (b"data: a\n\n:x\ndata: abc", data(b"a"), "line_bytes", "a line of frame 2"),
    "a long frame": (b"data: a\n\ndata: ab\n:xyz\n\ndata: b\n\n", data(b"a"), "frame_bytes", "frame 2"),
    "a long frame, then a long line": (b"data: a\n:x\n:y\n:xxxxxxxxxx", [], "frame_bytes", "frame 1"),
    "no line end at all": (b"x" * 99, [], "line_bytes", "a line of frame 1"),
    "many lines and no blank": (b":\n" * 99, [], "frame_bytes", "frame 1"),
    "much junk": (b"foo\n\n" * 9, [], "frame_bytes", "what came instead of frame 1"),
    "much junk at the end": (b"foo\n\n" * 3 + b"foo", [], "frame_bytes", "what came instead of frame 1"),
    "much junk behind a frame": (b"data: a\n\n" + b"foo\n\n" * 9, data(b"a"), "", ""),
    "junk, a frame, a long line": (b"foo\n\ndata: a\n\ndata: abc\n\n", data(b"a"), "line_bytes", "a line of frame 2"),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("title", BOUNDS)
def test_a_bound_fails_the_stream_behind_the_frames_before_it(title: str, size: int) -> None:
    stream, frames, code, words = BOUNDS[title]
    most = 8 if code == "line_bytes" else 12
    wanted = (code, f"{words} is longer than {most} bytes (limits.{code})") if code else None
    dropped = ["line"] if b"foo" in stream and frames else []
    assert outcome(cut(stream, size), limits=TIGHT) == (frames, wanted, dropped)


def test_where_both_bounds_are_one_the_line_is_named() -> None:
    assert "line_bytes" in str(outcome([b"x" * 9], limits=Limits(line_bytes=8, frame_bytes=8))[1])


def test_a_bound_fails_as_soon_as_it_is_known() -> None:
    decoder = SSEDecoder(limits=TIGHT)
    decoder.receive([b"data: ab"])
    with pytest.raises(LimitExceeded):
        decoder.receive([b"c"])


FRAGMENTS = [
    *(b"data", b"data:", b"data: ", b"event: ", b"id: 1", b"retry: 2", b":", b": x", b" ", b"foo", b"\x00"),
    *(b"\n", b"\n", b"\n\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", BOM, BOM[:2], b"\xff", "\u2028".encode()),
    *(b"data: a\n\n", b"event: x\ndata: b\n\n", b"data: a\r\n\r\n", END, b'{"a":', b"1}", b"{}", b'"', b"[", b"]"),
]
soup = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=2), max_size=30).map(b"".join)
bounds = st.builds(Limits, line_bytes=st.integers(1, 24), frame_bytes=st.integers(1, 40)) | st.just(DEFAULT_LIMITS)


@given(soup, bounds, st.lists(st.integers(0, 120)), st.sampled_from([None, RESET]))
def test_any_cut_of_the_bytes_gives_the_same(
    stream: bytes, limits: Limits, places: list[int], cause: StreamError | None
) -> None:
    whole = outcome([stream], cause, limits)
    for size in SIZES:
        assert outcome(cut(stream, size), cause, limits) == whole
    edges = [0, *sorted(places), len(stream)]
    assert outcome([stream[a:b] for a, b in pairwise(edges)], cause, limits) == whole


class Counted(bytearray):
    """A buffer that counts the bytes that are looked at or copied out of it."""

    seen = 0

    def find(self, sub: object, start: SupportsIndex | None = 0, end: SupportsIndex | None = None) -> int:
        found = super().find(sub, start, end)  # type: ignore[arg-type]  # any needle
        self.seen += len(self[start:end] if found < 0 else self[start:found])
        return found

    def __bytes__(self) -> bytes:
        self.seen += len(self)
        return b"".join([self])


def work(reads: Sequence[bytes], limits: Limits = DEFAULT_LIMITS) -> int:
    """Bytes looked at or copied in the unfinished event, and bytes allocated on the way, call by call."""
    decoder = SSEDecoder(limits=limits)
    block = decoder._block = Counted()
    allocated = 0
    tracemalloc.start()
    try:
        for read in reads:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            decoder.receive([read])
            allocated += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert decoder._block is block
    return block.seen + allocated


def lines(count: int) -> bytes:
    return b"data: 0123456789\n" * count + b"\n"


@pytest.mark.parametrize(
    ("make", "size", "limits"),
    [
        (lines, 16, DEFAULT_LIMITS),
        (lambda count: lines(count).replace(b"\n", b"\r\n"), 16, DEFAULT_LIMITS),
        (lambda count: b"data: " + b"x" * 17 * count + b"\n\n", 16, DEFAULT_LIMITS),
        (lambda count: b"x" * 2 * count, 1, DEFAULT_LIMITS),
        (lambda count: (b"x" * 999 + b"\n") * (count // 50), 16, Limits(line_bytes=1000)),
        (lambda count: b"foo\n\n" * 2 * count, 5, DEFAULT_LIMITS),
    ],
    ids=["lines", "CRLF lines", "one long line", "no line end, byte by byte", "past the line bound", "junk"],
)  # fmt: skip
def test_four_times_the_bytes_are_four_times_the_work(make: Callable[[int], bytes], size: int, limits: Limits) -> None:
    few, many = (work(cut(make(count), size), limits) for count in (1_000, 4_000))
    assert many < 5 * few


def test_an_event_of_32_000_lines_in_small_reads_is_one_frame() -> None:
    frames, failure, _ = outcome(cut(lines(32_000), 7))
    assert failure is None
    assert frames == data(b"\n".join([b"0123456789"] * 32_000))


def test_megabytes_without_a_line_end_are_held_up_to_the_bound() -> None:
    decoder = SSEDecoder(limits=Limits(line_bytes=2_000_000))
    for read in cut(b"x" * 2_000_000, 100):
        decoder.receive([read])
    assert decoder.held == 2_000_000
    with pytest.raises(LimitExceeded, match="a line of frame 1 is longer than 2000000 bytes"):
        decoder.receive([b"x"])
    assert decoder.held == 0


# What the encoder is given, and what it writes.
WRITTEN: list[tuple[list[Frame], list[bytes]]] = [
    ([Frame(b"a")], [b"data: a\n\n"]),
    ([Frame(b"a", b"x"), Frame(b"b")], [b"event: x\ndata: a\n\ndata: b\n\n"]),
    ([Frame(b"a\nb\r\nc\rd\n", b"x")], [b"event: x\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"]),
    ([Frame(b"a\rb"), Frame(UNICODE)], [b"data: a\ndata: b\n\ndata: " + UNICODE + b"\n\n"]),
    ([Frame(b" a", b" x")], [b"event:  x\ndata:  a\n\n"]),
    ([Frame(b""), Frame(b"", b"x"), Frame(b"a")], [b"data: a\n\n"]),
    ([Frame(b"", b"x")], []),
    ([], []),
]


@pytest.mark.parametrize(("frames", "written"), WRITTEN)
def test_frames_of_one_call_are_written_as_one_bytes_object(frames: list[Frame], written: list[bytes]) -> None:
    assert list(SSEEncoder().receive(frames)) == written


def test_the_encoder_says_nothing_of_its_own() -> None:
    encoder = SSEEncoder()
    assert (encoder.idle(), encoder.receive_eof(RESET), encoder.ended) == ((), (), True)
    assert encoder.receive([Frame(b"late")]) == ()


def test_both_keep_the_rules_of_every_stage() -> None:
    check_stage(SSEDecoder, [*cut(STREAMS["CRLF"][0], 5), b"data: {"])
    check_stage(SSEEncoder, [Frame(b"a"), Frame(b"b", b"x"), Frame(b"")])


@pytest.mark.parametrize("name", [b"x\ndata: y", b"x\r"])
def test_an_event_name_cannot_break_out_of_its_line(name: bytes) -> None:
    with pytest.raises(StageError, match="holds a line end") as caught:
        SSEEncoder().receive([Frame(b"a"), Frame(b"b", name), Frame(b"c")])
    assert caught.value.made == [b"data: a\n\n"]
    with pytest.raises(StageError) as caught:
        SSEEncoder().receive([Frame(b"b", name)])
    assert caught.value.made == ()


payloads = st.binary(min_size=1).map(lambda payload: payload.replace(b"\r", b"\n"))
names = st.binary(max_size=3).map(lambda name: name.replace(b"\r", b"").replace(b"\n", b""))


@given(st.lists(st.builds(Frame, payloads, names)))
def test_what_is_written_reads_as_the_same_frames(frames: list[Frame]) -> None:
    decoder = SSEDecoder()
    assert [frame for read in SSEEncoder().receive(frames) for frame in decoder.receive([read])] == frames
