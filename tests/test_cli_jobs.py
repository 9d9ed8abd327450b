"""`convert --jobs` runs many conversions in one process; a job that breaks says so and the rest go on."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli import main
from pipeline.cli.jobs import run_jobs
from pipeline.cli.options import OPTIONS, Conversion, ConvertOptions, Recipe, conversion_of
from pipeline.dialect import Dialect
from pipeline.errors import ClientError
from pipeline.stage import Stage
from stages.recipe import default_chain

HELLO = b'data: {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hello"}}]}\n\n'
STOP = b'data: {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"

Jobs = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def jobs(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Jobs:
    """Run these lines (bytes as they are, else JSON) as a jobs file: exit code and the lines printed."""

    def call(*lines: object, recipe: Recipe = default_chain) -> tuple[int, list[dict[str, Any]]]:
        path = tmp_path / "jobs.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
        code = main(["convert", "--jobs", str(path)], recipe=recipe)
        return code, [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]

    return call


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., dict[str, object]]:
    """A job over a recording, with these members besides."""

    def call(name: str, recorded: bytes = HELLO + STOP + DONE, **members: object) -> dict[str, object]:
        (tmp_path / f"{name}.in").write_bytes(recorded)
        files = {"input": str(tmp_path / f"{name}.in"), "output": str(tmp_path / f"{name}.out")}
        return {**files, "from": "chat", "to": "messages", **members}

    return call


Job = Callable[..., dict[str, object]]


def test_each_job_writes_its_output_and_prints_its_ending_and_ledger(jobs: Jobs, job: Job) -> None:
    work = [
        job("a"),
        job("b", HELLO, chunk=1, via=None, request=None, options={}),
        job("c", HELLO + DONE, options=None),
    ]
    code, rows = jobs(*work)
    assert code == 0
    assert [(row["output"], row["ending"]) for row in rows] == [
        (work[0]["output"], "complete"),
        (work[1]["output"], "cut"),
        (work[2]["output"], "complete"),
    ]
    assert [entry["path"] for entry in rows[0]["ledger"]] == ["usage"]
    assert set(rows[2]["ledger"][0]) == {"direction", "stage", "path", "action", "reason"}
    assert b"event: message_stop" in Path(str(work[0]["output"])).read_bytes()
    assert b"event: error" in Path(str(work[1]["output"])).read_bytes()


def test_a_failed_stream_is_no_broken_job(jobs: Jobs, job: Job) -> None:
    code, rows = jobs(job("a", b"<html>"))
    assert (code, rows[0]["ending"]) == (0, "failed")


def test_a_job_writes_its_trace(jobs: Jobs, job: Job, tmp_path: Path) -> None:
    jobs(job("a", trace=str(tmp_path / "trace"), chunk="frame"))
    lines = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    assert [line["in"] for line in lines][:3] == [len(HELLO), len(HELLO + STOP), len(HELLO + STOP + DONE)]
    assert lines[-1]["out"] == (tmp_path / "a.out").stat().st_size


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"input": "nowhere.in"}, "cannot read 'nowhere.in': No such file"),
        ({"input": None}, "'input' is missing"),
        ({"input": 0}, "'input' is 0, not a text"),
        ({"from": "morse"}, "no dialect 'morse'"),
        ({"via": ""}, "'via' is empty"),
        ({"chunk": "line"}, "'chunk' is 'line'"),
        ({"request": "nowhere.json"}, "cannot read 'nowhere.json'"),
        ({"trace": "no/where"}, "cannot write 'no/where'"),
        ({"options": {"recover": "yes"}}, "'recover' is 'yes'"),
    ],
)
def test_a_job_that_breaks_names_the_thing_and_the_rest_go_on(
    jobs: Jobs, job: Job, wrong: dict[str, object], told: str
) -> None:
    broken, sound = job("a", **wrong), job("b")
    code, rows = jobs(broken, sound)
    assert code == 1
    assert set(rows[0]) == {"output", "error"}
    assert rows[0]["output"] == broken["output"]
    assert told in rows[0]["error"]
    assert (rows[1]["output"], rows[1]["ending"]) == (sound["output"], "complete")


@pytest.mark.parametrize(("one", "other"), [("trace", "output"), ("trace", "input"), ("output", "input")])
def test_a_job_does_not_write_over_its_own_files(jobs: Jobs, job: Job, one: str, other: str) -> None:
    broken = job("a")
    code, rows = jobs({**broken, one: broken[other]})
    assert (code, rows[0]["error"]) == (1, "'input', 'output' and 'trace' are not three files")


@pytest.mark.parametrize(
    ("output", "told"), [(None, "'output' is missing"), (1, "'output' is 1, not a text"), ("no/where", "cannot write")]
)
def test_an_output_that_cannot_be_written_breaks_its_job(jobs: Jobs, job: Job, output: object, told: str) -> None:
    code, rows = jobs(job("a", output=output), job("b"))
    assert (code, rows[0]["output"], rows[1]["ending"]) == (1, output, "complete")
    assert told in rows[0]["error"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "line 2 cannot be read as JSON: "),
        (b"[]", "line 2 is a list, not a JSON object"),
        (b"[" * 500, "line 2 cannot be read as JSON: JSON is nested deeper than 200"),
        (b"\xff", "line 2 cannot be read as JSON: "),
    ],
)
def test_a_line_that_is_no_job_breaks_alone(jobs: Jobs, job: Job, line: bytes, told: str) -> None:
    code, rows = jobs(job("a"), line, b"  ", job("b"))
    assert code == 1
    assert [row.get("ending") for row in rows] == ["complete", None, "complete"]
    assert rows[1]["output"] is None
    assert told in rows[1]["error"]


def test_a_missing_or_null_member_means_its_default() -> None:
    plain = Conversion(from_="chat", to="messages")
    nulls = dict.fromkeys(("via", "chunk", "request", "trace", "options"))
    assert conversion_of({"from": "chat", "to": "messages"}) == plain
    assert conversion_of({"from": "chat", "to": "messages", **nulls}) == plain
    assert conversion_of({"from": "chat", "to": "messages", "options": dict.fromkeys(OPTIONS)}) == plain
    assert plain.options == ConvertOptions(
        recover="native",
        residue="verbatim",
        unfinished="verbatim",
        reasoning_open=False,
        weak=(),
        stream_calls=False,
        envelope="on",
    )


@pytest.mark.parametrize(
    ("member", "told"),
    [
        ({"from": None}, "'from' is missing"),
        ({"to": ["messages"]}, "'to' is a list, not a text"),
        ({"via": 5}, "'via' is 5, not a text"),
        ({"request": {}}, "'request' is an object, not a text"),
        ({"trace": True}, "'trace' is a boolean, not a text"),
        ({"chunk": 0}, "'chunk' is 0, neither a number above 0 nor 'frame'"),
        ({"chunk": True}, "'chunk' is a boolean, neither"),
        ({"chunk": 1.5}, "'chunk' is a fraction, neither"),
        ({"chunk": "7"}, "'chunk' is '7', neither"),
        ({"options": []}, "'options' is a list, not an object"),
        ({"options": {"recovr": "off"}}, "there is no option 'recovr'; there are: recover, residue"),
        ({"options": {"recover": "yes"}}, "'recover' is 'yes', not one of native, prompt, off"),
        ({"options": {"recover": ["off"]}}, "'recover' is a list, not one of"),
        ({"options": {"residue": "off"}}, "'residue' is 'off', not one of verbatim, hide"),
        ({"options": {"unfinished": ""}}, "'unfinished' is '', not one of verbatim, hide"),
        ({"options": {"reasoning_open": "yes"}}, "'reasoning_open' is 'yes', not true or false"),
        ({"options": {"weak": "fence"}}, "'weak' is not a list of texts"),
        ({"options": {"weak": [1]}}, "'weak' is not a list of texts"),
        ({"options": {"stream_calls": True}}, "'stream_calls' does nothing without recover = 'prompt'"),
        ({"options": {"stream_calls": True, "recover": "off"}}, "'stream_calls' does nothing without recover"),
        ({"options": {"envelope": True}}, "'envelope' is a boolean, not one of on, off"),
    ],
)
def test_a_member_of_a_wrong_kind_is_named(member: dict[str, object], told: str) -> None:
    with pytest.raises(ClientError, match=re.escape(told)):
        conversion_of({"from": "chat", "to": "messages", **member})


def test_a_bug_met_by_one_job_is_told_and_the_rest_go_on(
    jobs: Jobs, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    class Buggy(Stage[bytes, bytes]):
        def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            raise ZeroDivisionError("one over none")

    chains = [Buggy()]

    def recipe(upstream: Dialect, client: Dialect, **shared: Any) -> Stage[bytes, bytes]:
        return chains.pop() if chains else default_chain(upstream, client, **shared)

    code, rows = jobs(job("a"), job("b"), recipe=recipe)
    assert code == 1
    assert rows[0] == {"output": job("a")["output"], "error": "line 1: ZeroDivisionError('one over none')"}
    assert rows[1]["ending"] == "complete"
    assert "Traceback" in caplog.text


def test_dialects_that_do_not_go_together_are_named(jobs: Jobs, job: Job) -> None:
    def recipe(upstream: Dialect, client: Dialect, **_: object) -> Stage[bytes, bytes]:
        raise ClientError("it is read, not written")

    code, rows = jobs(job("a"), recipe=recipe)
    assert (code, rows[0]["error"]) == (1, "cannot convert chat to messages: it is read, not written")


def test_a_stream_without_a_verdict_is_a_broken_job(jobs: Jobs, job: Job) -> None:
    class Silent(Stage[bytes, bytes]):
        def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            return ()

    def recipe(upstream: Dialect, client: Dialect, **_: object) -> Stage[bytes, bytes]:
        return Silent()

    code, rows = jobs(job("a"), recipe=recipe)
    assert code == 1
    assert "the verdict None" in rows[0]["error"]


def test_a_file_that_cannot_be_written_to_breaks_its_job(
    jobs: Jobs, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk shows only when it is written to."""
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    code, rows = jobs(job("a", output="/dev/full"), job("b"))
    assert (code, rows[1]["ending"]) == (1, "complete")
    assert "No space left" in rows[0]["error"]
    assert caplog.text == ""  # the disk's fault is no bug of ours


def test_each_line_is_printed_before_the_next_job_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(reader)))
    path = tmp_path / "jobs"
    path.write_text('{"output": "a"}\n{"output": "b"}\n')
    printed = []

    def do(members: object) -> dict[str, object]:
        printed.append(reader.getvalue())
        return {}

    assert run_jobs(str(path), do) == 0
    assert printed == [b"", b'{"output":"a"}\n']


def all_of(screen: int) -> bytes:
    shown = b""
    with os.fdopen(screen, "rb", buffering=0) as file, suppress(OSError):  # how Linux says that the terminal is closed
        while part := file.read(1000):
            shown += part
    return shown


def test_a_progress_bar_stands_on_stderr_only_if_that_is_a_terminal(job: Job, tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text(json.dumps(job("a")) + "\n")
    argv = [sys.executable, "-m", "pipeline", "convert", "--jobs", str(path)]
    plain = subprocess.run(argv, capture_output=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, b"")
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    shown = subprocess.run(argv, stdout=subprocess.PIPE, stderr=terminal, check=False)
    os.close(terminal)
    assert b"1/1" in all_of(screen)
    assert shown.stdout == plain.stdout
