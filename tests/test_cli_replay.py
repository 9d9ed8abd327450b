"""`replay` shows what one stage makes of a recording, and compares it with a golden."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from attrs import define

from pipeline.cli import main
from pipeline.events import StreamError
from pipeline.stage import AsyncStage, Stage
from stages.recipe import default_chain

HERE = "tests.test_cli_replay"
DECODER = "stages.sse:SSEDecoder()"


@define
class Add(Stage[bytes, bytes]):
    """Adds a word behind each item."""

    word: str = "!"
    times: int = 1

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return [item + self.word.encode() * self.times for item in items]


class Awaiting(AsyncStage[bytes, bytes]):
    """Doubles each item, as a stage that awaits."""

    async def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return [item + item for item in items]

    async def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        return ()


def adding(word: str) -> Stage[bytes, bytes]:
    return Add(word)


class Rooms:
    """Something that hands out stages."""

    here = Add("@")
    number = 5

    @staticmethod
    def words(words: Iterable[str], *, times: int = 1) -> Stage[bytes, bytes]:
        return Add("".join(words), times)


Replay = Callable[..., tuple[int, str, str]]


@pytest.fixture
def replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Replay:
    """`replay` over a recording of two frames: exit code, stdout, stderr."""
    path = tmp_path / "recording"
    path.write_bytes(b"data: a\n\ndata: b\n\n")

    def call(*argv: str) -> tuple[int, str, str]:
        try:
            code = main(["replay", str(path), *argv], recipe=default_chain)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else -1
        out, err = capsys.readouterr()
        return code, out, err

    return call


def came_out(transcript: str) -> list[str]:
    return [line[3:] for line in transcript.splitlines() if line.startswith("<< ")]


def test_a_transcript_shows_what_went_in_and_what_came_out(replay: Replay) -> None:
    code, out, err = replay(DECODER, "--chunk", "frame")
    assert (code, err) == (0, "")
    assert out.splitlines()[:4] == [r">> b'data: a\n\n'", "<< frame - a", r">> b'data: b\n\n'", "<< frame - b"]


def test_the_recording_is_cut_as_asked(replay: Replay) -> None:
    _, out, _ = replay(f"{HERE}:Add", "--chunk", "9")
    assert came_out(out) == [r"b'data: a\n\n!'", r"b'data: b\n\n!'"]
    assert came_out(replay(f"{HERE}:Add")[1]) == [r"b'data: a\n\ndata: b\n\n!'"]


def test_the_stages_before_it_come_in_the_order_given(replay: Replay) -> None:
    code, out, _ = replay("--after", f"{HERE}:Add('1')", "--after", f"{HERE}:Add('2')", f"{HERE}:Add('3')")
    assert code == 0
    assert out.startswith(r">> b'data: a\n\ndata: b\n\n12'")
    assert came_out(out) == [r"b'data: a\n\ndata: b\n\n123'"]


@pytest.mark.parametrize(
    ("spec", "added"),
    [
        ("Add", "!"),
        ("Add()", "!"),
        ("Add('x', 2)", "xx"),
        ("Add(times=3)", "!!!"),
        (" Add ( word = '-' ) ", "-"),
        ("adding('y')", "y"),
        ("Rooms.here", "@"),
        ("Rooms.words(['p', 'q'], times=2)", "pqpq"),
        ("Rooms.words(('p',))", "p"),
    ],
)
def test_a_stage_is_named_as_it_would_be_called(replay: Replay, spec: str, added: str) -> None:
    code, out, err = replay(f"{HERE}:{spec}", "--chunk", "frame")
    assert (code, err) == (0, "")
    assert came_out(out)[0] == rf"b'data: a\n\n{added}'"


@pytest.mark.parametrize(
    ("argv", "out"),
    [
        ((f"{HERE}:Awaiting",), r"b'data: a\n\ndata: a\n\n'"),
        ((f"{HERE}:Add", "--after", f"{HERE}:Awaiting"), r"b'data: a\n\ndata: a\n\n!'"),
        ((f"{HERE}:Awaiting", "--after", f"{HERE}:Add"), r"b'data: a\n\n!data: a\n\n!'"),
    ],
)
def test_stages_that_await_are_replayed_like_the_others(replay: Replay, argv: Sequence[str], out: str) -> None:
    code, shown, _ = replay(*argv, "--chunk", "frame")
    assert (code, came_out(shown)[0]) == (0, out)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("stages.sse", "there is no colon"),
        ("stages.sse:SSEDecoder(limits=5)", "AttributeError"),
        ("stages.validate:BlockValidator(mode='x')", "'x' is not a valid Mode"),
        ("pipeline.stage:Stage", "Can't instantiate abstract class"),
        ("sys:exit(7)", "SystemExit(7)"),
        (f"{HERE}:", "not to be had as module:Name(args)"),
        (f"{HERE}:Add(", "not to be had as module:Name(args)"),
        (f"{HERE}:Nothing", "has no attribute 'Nothing'"),
        ("no.such.module:Add", "No module named 'no"),
        (f"{HERE}:Add(colour='red')", "unexpected keyword argument 'colour'"),
        (f"{HERE}:Add(open('x'))", "malformed node or string"),
        (f"{HERE}:Add(**{{'word': 'x'}})", "unexpected keyword argument 'None'"),
        (f"{HERE}:adding", "missing a required argument: 'word'"),
        (f"{HERE}:Rooms.number", "5 is not a callable object"),
        (f"{HERE}:Rooms.here()", "is not a callable object"),
        (f"{HERE}:Rooms", "makes a Rooms, which is no stage"),
    ],
)
@pytest.mark.parametrize("place", ["alone", "after"])
def test_what_is_no_stage_is_a_wrong_usage_and_named(replay: Replay, spec: str, told: str, place: str) -> None:
    code, out, err = replay(spec) if place == "alone" else replay("--after", spec, DECODER)
    assert (code, out) == (2, "")
    assert repr(spec) in err
    assert told in err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "the following arguments are required: STAGE"),
        ((DECODER, "--chunk", "0"), "'chunk' is 0"),
        ((DECODER, "--check", "nowhere.golden"), "cannot read 'nowhere.golden'"),
        ((DECODER, "--update", "no/where"), "cannot write 'no/where'"),
        ((DECODER, "--check", "a", "--update", "b"), "not allowed with argument --check"),
    ],
)
def test_what_cannot_be_asked_for_is_a_wrong_usage(replay: Replay, argv: Sequence[str], told: str) -> None:
    code, out, err = replay(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("usage: streamweir replay")
    assert told in err


def test_a_golden_is_written_and_agrees(replay: Replay, tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    shown = replay(DECODER)[1]
    assert replay(DECODER, "--update", str(golden)) == (0, "", "")
    assert golden.read_text() == shown
    assert replay(DECODER, "--check", str(golden)) == (0, "", "")


def test_a_difference_from_the_golden_is_shown_and_exits_with_one(replay: Replay, tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    replay(DECODER, "--chunk", "frame", "--update", str(golden))
    golden.write_text(golden.read_text().replace("frame - b", "frame - c").rstrip("\n"))
    code, out, _ = replay(DECODER, "--chunk", "frame", "--check", str(golden))
    assert code == 1
    assert out.startswith(f"--- {golden}\n+++ replay\n@@ ")
    assert "\n-<< frame - c\n+<< frame - b\n" in out
    assert out.endswith("\n")


def test_as_a_process_it_finds_stages_by_their_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pipeline.stage import Stage\n\nclass Mine(Stage):\n    def receive(self, items):\n        return items\n"
    )
    (tmp_path / "recording").write_bytes("é".encode())
    argv = [sys.executable, "-m", "pipeline", "replay", "recording", "mine:Mine"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"<< b'\\xc3\\xa9'" in done.stdout
