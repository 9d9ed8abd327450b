"""`convert` turns one recorded stream into another dialect's, and its exit code says how the stream ended."""

import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

import pipeline.__main__
from pipeline.__main__ import CLOSED, RECIPE
from pipeline.__main__ import main as process_main
from pipeline.cli import main
from pipeline.cli.convert import known
from pipeline.cli.options import Conversion, ConvertOptions, Recipe, conversion_of
from pipeline.dialect import GROUP, Dialect, RequestFacts
from pipeline.errors import LimitExceeded, StageError
from pipeline.events import Event, Frame, StreamError
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.outcome import Outcome, Verdict
from pipeline.stage import Stage
from stages.dialects.messages import Messages
from stages.recipe import default_chain

TO_MESSAGES = ("convert", "--from", "chat", "--to", "messages")


def chunk(finish: str | None = None, **delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c1", "model": "m", "choices": [choice]}).encode() + b"\n\n"


HELLO = chunk(role="assistant", content="") + chunk(content="Hel") + chunk(content="lo")
WHOLE = HELLO + chunk(finish="stop") + b"data: [DONE]\n\n"
FAILED = HELLO + b'data: {"error": {"message": "too hot", "type": "server_error"}}\n\n'

Run = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """The command line in this process: exit code, stdout, stderr."""

    def call(*argv: str, stdin: bytes = b"", recipe: Recipe = default_chain) -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main(argv, recipe=recipe)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else -1
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return call


def names(out: bytes) -> list[str]:
    return re.findall(r"^event: (\w+)", out.decode(), re.MULTILINE)


@define
class Shout(Stage[bytes, bytes]):
    """Upper-cases lines; a line that begins with `!` ends the stream with the verdict it names."""

    outcome: Outcome
    seen: list[bytes] = field(factory=list)
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _rest: bytes = field(init=False, default=b"")

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        self.seen.extend(items)
        *lines, self._rest = (self._rest + b"".join(items)).split(b"\n")
        self.held = len(self._rest)
        for line in lines:
            if line == b"!limit":
                raise LimitExceeded("too loud")
            if line.startswith(b"!"):
                self.outcome.verdict = Verdict(line[1:].decode().lower())
                self.ended = True
        return [line.upper() + b"\n" for line in lines]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        rest, self.held = self._rest, 0
        return [rest.upper()] if rest else []


@define
class Shouting:
    """A recipe of one stage, which remembers what it was asked."""

    routes: list[tuple[str, str]] = field(init=False, factory=list)
    facts: list[RequestFacts] = field(init=False, factory=list)
    made: list[Shout] = field(init=False, factory=list)

    def __call__(
        self, upstream: Dialect, client: Dialect, *, facts: RequestFacts, ledger: Ledger, outcome: Outcome, **_: object
    ) -> Stage[bytes, bytes]:
        ledger.record("Shout", "case", "raised", f"{upstream.name} speaks softly")
        self.routes.append((upstream.name, client.name))
        self.facts.append(facts)
        self.made.append(Shout(outcome))
        return self.made[-1]


@frozen
class Semaphore(Messages):
    """A dialect of somebody else's."""

    name: str = "semaphore"

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        return RequestFacts(model=request["flags"])

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        raise StageError("nobody waves")

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        raise StageError("nobody looks")


SEMAPHORE: Dialect = Semaphore()


def test_a_chat_answer_becomes_a_messages_answer(run: Run) -> None:
    code, out, err = run(*TO_MESSAGES, stdin=WHOLE)
    assert names(out) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert (code, err) == (0, "")


@pytest.mark.parametrize("size", ["1", "7", "frame"])
def test_the_cut_of_the_input_changes_nothing(run: Run, size: str) -> None:
    assert run(*TO_MESSAGES, "--chunk", size, stdin=WHOLE) == run(*TO_MESSAGES, stdin=WHOLE)


@pytest.mark.parametrize(("recorded", "status"), [(WHOLE, 0), (HELLO, 3), (FAILED, 4), (b"<html>", 4)])
def test_the_exit_code_says_how_the_stream_ended(run: Run, recorded: bytes, status: int) -> None:
    code, out, _ = run(*TO_MESSAGES, stdin=recorded)
    assert code == status
    assert ("message_stop" in names(out)) == (status == 0)
    assert ("error" in names(out)) == (status != 0)


@pytest.mark.parametrize("recorded", [b"no verdict\n", b"!cancelled\n"])
def test_an_ending_that_no_recording_can_have_is_a_loud_failure(run: Run, recorded: bytes) -> None:
    code, out, err = run(*TO_MESSAGES, stdin=recorded, recipe=Shouting())
    assert code == 4
    assert out == recorded.upper()
    assert "the chain ended with the verdict" in err


@pytest.mark.parametrize(
    ("flags", "reads"),
    [
        ((), [b"a\n\nbc\n\n!complete\n"]),
        (("--chunk", "7"), [b"a\n\nbc\n\n", b"!comple", b"te\n"]),
        (("--chunk", "frame"), [b"a\n\n", b"bc\n\n", b"!complete\n"]),
    ],
)
def test_the_input_is_read_whole_by_bytes_or_by_frames(run: Run, flags: Sequence[str], reads: list[bytes]) -> None:
    recipe = Shouting()
    run(*TO_MESSAGES, *flags, stdin=b"a\n\nbc\n\n!complete\n", recipe=recipe)
    assert recipe.made[0].seen == reads


def test_output_leaves_in_the_read_that_brought_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = io.BytesIO()
    left: list[bytes] = []

    class Watching(Shout):
        def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            left.append(reader.getvalue())
            return super().receive(items)

    def recipe(upstream: Dialect, client: Dialect, *, outcome: Outcome, **_: object) -> Stage[bytes, bytes]:
        return Watching(outcome)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n!complete\n")))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(reader), write_through=False))
    main([*TO_MESSAGES, "--chunk", "2"], recipe=recipe)
    assert left[:3] == [b"", b"A\n", b"A\nB\n"]


def test_nothing_is_read_behind_the_end_of_the_chain(run: Run, tmp_path: Path) -> None:
    recipe = Shouting()
    trace = tmp_path / "trace"
    stdin = b"!complete\nmore\nmore\n"
    assert run(*TO_MESSAGES, "--chunk", "5", "--trace", str(trace), stdin=stdin, recipe=recipe)[0] == 0
    assert recipe.made[0].seen == [b"!comp", b"lete\n"]


def test_a_trace_says_after_each_read_what_came_what_left_and_what_is_held(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run(*TO_MESSAGES, "--chunk", "6", "--trace", str(trace), stdin=b"ab\ncdef\n\ngh", recipe=Shouting())
    assert [json.loads(line) for line in trace.read_text().splitlines()] == [
        {"in": 6, "out": 3, "held": 3},
        {"in": 11, "out": 9, "held": 2},
        {"in": 11, "out": 11, "held": 0},
    ]


def test_the_ledger_is_a_list_of_the_losses(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    run(*TO_MESSAGES, "--ledger", str(path), stdin=b"!complete\n", recipe=Shouting())
    assert json.loads(path.read_text()) == [
        {
            "direction": "response",
            "stage": "Shout",
            "path": "case",
            "action": "raised",
            "reason": "chat speaks softly",
        }
    ]


def test_the_request_is_read_by_the_clients_dialect_which_any_package_may_bring(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "semaphore-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: semaphore\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[{GROUP}]\nsemaphore = {__name__}:SEMAPHORE\n")
    monkeypatch.syspath_prepend(tmp_path)
    recipe = Shouting()
    (tmp_path / "request").write_text('{"flags": "red"}')
    argv = ("convert", "--from", "chat", "--to", "semaphore", "--request", str(tmp_path / "request"))
    assert run(*argv, stdin=b"!complete\n", recipe=recipe)[0] == 0
    assert recipe.facts == [RequestFacts(model="red")]


@pytest.mark.parametrize(
    ("recorded", "verdicts", "status"),
    [
        (b"!complete\n", ("complete", "complete"), 0),
        (b"x\n", ("cut", "failed"), 3),
        (b"x\n", ("complete", "failed"), 4),
        (b"x\n", (None, "cut"), 3),
        (b"x\n", (None, "complete"), 4),
        (b"x\n", ("complete", None), 4),
    ],
)
def test_over_a_third_dialect_the_first_hop_that_went_wrong_says_how(
    run: Run, recorded: bytes, verdicts: Sequence[str | None], status: int
) -> None:
    left = list(verdicts)
    routes = []

    def recipe(upstream: Dialect, client: Dialect, *, outcome: Outcome, **_: object) -> Stage[bytes, bytes]:
        routes.append((upstream.name, client.name))
        verdict = left.pop(0)
        outcome.verdict = None if verdict is None else Verdict(verdict)
        return Shout(Outcome())

    code, out, _ = run("convert", "--from", "chat", "--via", "messages", "--to", "chat", stdin=recorded, recipe=recipe)
    assert routes == [("chat", "messages"), ("messages", "chat")]
    assert (code, out) == (status, recorded.upper())


BOTH = {"recover": "prompt", "residue": "hide", "unfinished": "hide", "envelope": "off"}


def test_every_option_is_carried_from_its_flag_or_its_member(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Conversion] = []

    def remember(members: dict[str, object]) -> Conversion:
        asked.append(conversion_of(members))
        return asked[-1]

    monkeypatch.setattr("pipeline.cli.convert.conversion_of", remember)
    flags = [word for name, value in BOTH.items() for word in (f"--{name}", value)]
    more = (
        "--reasoning-open",
        "--stream-calls",
        "--weak",
        "fence",
        "--weak",
        "react",
        "--chunk",
        "3",
        "--via",
        "messages",
    )
    run(*TO_MESSAGES, *flags, *more, stdin=b"!complete\n", recipe=Shouting())
    options = ConvertOptions(
        recover="prompt",
        residue="hide",
        unfinished="hide",
        reasoning_open=True,
        stream_calls=True,
        weak=["fence", "react"],
        envelope="off",
    )
    assert asked == [Conversion(from_="chat", to="messages", via="messages", chunk=3, options=options)]
    job = {"from": "chat", "to": "messages", "via": "messages", "chunk": 3, "request": None, "id": "the asker's own"}
    members = {**BOTH, "reasoning_open": True, "stream_calls": True, "weak": ["fence", "react"]}
    assert conversion_of({**job, "options": members}) == asked[0]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("convert", "--from", "chat"), "'to' is missing"),
        (("convert", "--to", "chat"), "'from' is missing"),
        (("convert", "--from", "morse", "--to", "messages"), "no dialect 'morse'"),
        ((*TO_MESSAGES, "--via", "morse"), "no dialect 'morse'"),
        ((*TO_MESSAGES, "--trace", "one", "--ledger", "one"), "'trace' and 'ledger' are one file"),
        ((*TO_MESSAGES, "--chunk", "0"), "'chunk' is 0"),
        ((*TO_MESSAGES, "--chunk", "-1"), "-1"),
        ((*TO_MESSAGES, "--chunk", "line"), "'chunk' is 'line'"),
        ((*TO_MESSAGES, "--recover", "maybe"), "argument --recover: invalid choice: 'maybe'"),
        ((*TO_MESSAGES, "--stream-calls"), "'stream_calls' does nothing without recover = 'prompt'; it is 'native'"),
        ((*TO_MESSAGES, "--request", "nowhere.json"), "cannot read 'nowhere.json': No such file"),
        ((*TO_MESSAGES, "--request", "\0"), "cannot read '\\x00': embedded null byte"),
        ((*TO_MESSAGES, "--ledger", "no/where"), "cannot write 'no/where': No such file"),
        ((*TO_MESSAGES, "--trace", "no/where"), "cannot write 'no/where': No such file"),
        (("convert", "--jobs", "nowhere.jsonl"), "cannot read 'nowhere.jsonl': No such file"),
        ((*TO_MESSAGES, "--jobs", "x", "--weak", "y"), "--jobs goes alone; each job says its own from, to, weak"),
    ],
)
def test_what_cannot_be_asked_for_is_a_wrong_usage_and_named(run: Run, argv: Sequence[str], told: str) -> None:
    code, out, err = run(*argv, stdin=WHOLE)
    assert (code, out) == (2, b"")
    assert err.startswith("usage: streamweir")
    assert told in err


@pytest.mark.parametrize(
    ("body", "told"),
    [("{", "as JSON: "), ("[1]", "is a list, not a JSON object"), ("[" * 500, "nested deeper than 200")],
)
def test_a_request_that_is_none_is_a_wrong_usage(run: Run, tmp_path: Path, body: str, told: str) -> None:
    path = tmp_path / "request"
    path.write_text(body)
    code, out, err = run(*TO_MESSAGES, "--request", str(path), stdin=WHOLE)
    assert (code, out) == (2, b"")
    assert str(path) in err
    assert told in err


def test_help_names_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert {"convert", "replay"} <= set(out.decode().split())


def test_a_dialect_is_looked_up_once_a_process() -> None:
    known("chat")
    before = known.cache_info()
    assert known("chat").name == "chat"
    assert known.cache_info().misses == before.misses


def process(*argv: str, stdin: bytes) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([sys.executable, "-m", "pipeline", *argv], input=stdin, capture_output=True, check=False)


def test_as_a_process_it_reads_stdin_writes_stdout_and_exits_with_the_ending() -> None:
    done = process(*TO_MESSAGES, "--chunk", "7", stdin=HELLO)
    assert (done.returncode, done.stderr) == (3, b"")
    assert names(done.stdout)[-1] == "error"


def test_a_reader_that_has_left_ends_the_process_quietly() -> None:
    """As in `convert ... | head`."""
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-m", "pipeline", *TO_MESSAGES]
    done = subprocess.run(argv, input=WHOLE, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (CLOSED, b"")


def test_the_process_finds_the_recipe_and_the_stages_of_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["streamweir", *TO_MESSAGES])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE)))
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(pipeline.__main__.__file__), run_name="__main__")
    assert left.value.code == 0
    assert names(capsysbinary.readouterr().out)[-1] == "message_stop"
    assert sys.path[-1] == str(tmp_path)
    assert f"{default_chain.__module__}:{default_chain.__qualname__}" == RECIPE


def test_a_closed_pipe_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE)))
    with os.fdopen(write, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert process_main([*TO_MESSAGES, "--chunk", "frame"]) == CLOSED
