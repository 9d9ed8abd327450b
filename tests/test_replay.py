"""Recordings as reads, through a stage, as a transcript."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ErrorKind
from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Frame,
    MessageDelta,
    MessageStart,
    StopReason,
    StreamError,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.stage import AsyncStage, Stage
from pipeline.testing import areplay, cut, replay, show
from tests.lines import AsyncUpper, Lines, Texts, Upper

AnyStage = Stage[Any, Any] | AsyncStage[Any, Any]
BACKENDS = ["asyncio", "trio"]


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


def test_a_replay_stops_where_a_stage_before_has_ended() -> None:
    class Over(Lines):
        ended = True

    assert replay(b"a\nb\n", Texts(), [Over()]) == ">> EOF\n== held 0, not ended\n"


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


@settings(deadline=None)
@given(st.binary(max_size=40).map(lambda data: data.replace(b"0", b"\n").replace(b"1", b"\r")), st.integers(1, 9))
def test_a_cut_loses_nothing(data: bytes, chunk: int) -> None:
    assert b"".join(cut(data, chunk)) == b"".join(cut(data, "frame")) == b"".join(cut(data, None)) == data
