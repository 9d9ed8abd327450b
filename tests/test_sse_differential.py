"""Framing against two oracles: the specification, line by line, and httpx-sse's own decoder.

Where httpx-sse differs, a test below shows each difference; but for those, the frames are the same.
"""

import base64
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from httpx_sse import ServerSentEvent
from httpx_sse._decoders import SSEDecoder as TheirDecoder
from httpx_sse._decoders import SSELineDecoder
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.events import Frame
from stages.sse import SSEDecoder
from tests.test_sse import BOM, SIZES, cut, data, outcome, soup

CASES = Path(__file__).parents[2] / "shared" / "cases" / "streams.jsonl"

Said = list[tuple[str, str]]


def ours(reads: Iterable[bytes]) -> Said:
    """Name and data of every frame made before the end of the stream."""
    decoder = SSEDecoder()
    frames = [frame for read in reads for frame in decoder.receive([read])]
    return [(frame.name.decode(errors="replace") or "message", frame.data.decode(errors="replace")) for frame in frames]


def events(reads: Iterable[str]) -> list[ServerSentEvent]:
    """What httpx-sse makes of a stream's text, as its `EventSource` does."""
    lines, decoder = SSELineDecoder(), TheirDecoder()
    found = [decoder.decode(line) for read in reads for line in lines.decode(read)]
    found += [decoder.decode(line) for line in lines.flush()]
    return [event for event in found if event is not None]


def theirs(reads: Iterable[str]) -> Said:
    """Name and data of every event of httpx-sse that has data."""
    return [(event.event, event.data) for event in events(reads) if event.data]


def by_the_book(stream: bytes) -> list[Frame]:
    """WHATWG's rules over a whole stream, line by line; but for data that is empty, which they dispatch."""
    frames, name, values = [], b"", list[bytes]()
    stream = stream.removeprefix(BOM)
    for line in stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]:
        key, _, value = line.partition(b":")
        if not line:
            if payload := b"\n".join(values):
                frames.append(Frame(payload, name))
            name, values = b"", []
        elif key == b"data":
            values.append(value.removeprefix(b" "))
        elif key == b"event":
            name = value.removeprefix(b" ")
    return frames


@given(soup)
@example(b"{}\ndata: a\n\n")
def test_frames_are_those_of_the_specification(stream: bytes) -> None:
    frames, book = list(SSEDecoder().receive([stream])), by_the_book(stream)
    told = len(frames) - len(book)  # a JSON text that stands bare before all frames is one too
    assert frames[told:] == book
    assert told == 0 or (told == 1 and json.loads(frames[0].data) is not None)


@given(soup, st.sampled_from(SIZES), st.sampled_from(SIZES))
def test_frames_are_those_of_httpx_sse(stream: bytes, size: int, other: int) -> None:
    text = stream.removeprefix(BOM).decode(errors="replace")
    reads = [text[at : at + other] for at in range(0, len(text), other)]
    assert ours(cut(stream, size)) == theirs(reads)


def test_a_byte_order_mark_costs_httpx_sse_the_first_event() -> None:
    stream = BOM + b"data: a\n\ndata: b\n\n"
    assert theirs([stream.decode()]) == [("message", "b")]
    assert ours([stream]) == [("message", "a"), ("message", "b")]


@pytest.mark.parametrize("block", ["data:", "event: x", "retry: 1", "id: 1", "event: x\ndata: "])
def test_a_block_without_data_is_an_event_for_httpx_sse_alone(block: str) -> None:
    assert [event.data for event in events([block + "\n\n"])] == [""]
    assert ours([block.encode() + b"\n\n"]) == []


def test_behind_an_id_every_blank_line_is_an_event_for_httpx_sse_alone() -> None:
    stream = "id: 1\ndata: a\n\n\n\n"
    assert [event.data for event in events([stream])] == ["a", "", ""]
    assert ours([stream.encode()]) == [("message", "a")]


def test_a_carriage_return_at_the_end_of_a_read_waits_in_httpx_sse_alone() -> None:
    lines = SSELineDecoder()
    assert lines.decode("data: a\r\r") == ["data: a"]
    assert SSEDecoder().receive([b"data: a\r\r"]) == data(b"a")


def test_whole_data_without_a_blank_line_is_lost_in_httpx_sse_alone() -> None:
    assert events(['data: {"a":1}']) == []
    assert outcome([b'data: {"a":1}'])[0] == data(b'{"a":1}')


def test_what_is_no_event_stream_is_silence_in_httpx_sse_alone() -> None:
    assert events(['{"error":1}\n', "<p>"]) == []
    assert outcome([b'{"error":1}\n'])[0] == data(b'{"error":1}')
    assert outcome([b"<p>"])[1] is not None


def test_a_line_of_a_field_error_is_lost_in_httpx_sse_alone() -> None:
    stream = 'error: {"code":500}\n\n'
    assert events([stream]) == []
    assert SSEDecoder().receive([stream.encode()]) == [Frame(b'{"code":500}', b"error")]
    assert SSEDecoder().receive([b"event: x\nerror: a\ndata: b\n\n"]) == [Frame(b"a\nb", b"x")]


def test_bytes_that_are_no_utf_8_stay_as_they_are_in_ours_alone() -> None:
    assert theirs([b"data: \xff\n\n".decode(errors="replace")]) == [("message", "\ufffd")]
    assert SSEDecoder().receive([b"data: \xff\n\n"]) == data(b"\xff")


def test_no_name_and_the_name_message_are_one_in_httpx_sse_alone() -> None:
    stream = "data: a\n\nevent: message\ndata: b\n\n"
    assert theirs([stream]) == [("message", "a"), ("message", "b")]
    assert SSEDecoder().receive([stream.encode()]) == [Frame(b"a"), Frame(b"b", b"message")]


def sse_cases() -> list[tuple[str, bytes]]:
    if not CASES.exists():
        return []
    cases = [json.loads(line) for line in CASES.read_bytes().splitlines()]
    return [(case["id"], base64.b64decode(case["raw_b64"])) for case in cases if case["kind"] == "sse"]


@pytest.mark.skipif(not sse_cases(), reason="the shared cases are not beside this checkout")
@pytest.mark.parametrize(("name", "stream"), sse_cases())
def test_a_shared_case_is_whole_at_every_cut(name: str, stream: bytes) -> None:
    frames, failure, dropped = outcome([stream])
    assert (failure, "frame" in dropped) == (None, False), name
    ended = stream.removeprefix(BOM).decode(errors="replace") + "\n\n"
    assert [frame.data.decode(errors="replace") for frame in frames] == [said for _, said in theirs([ended])]
    assert all(outcome(cut(stream, size)) == (frames, failure, dropped) for size in SIZES)
