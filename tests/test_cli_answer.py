"""`answer` turns one recorded whole answer into another dialect's, and `request` a client's request."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from pipeline.cli import main
from pipeline.cli.options import Recipe
from pipeline.dialect import Dialect
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form
from pipeline.stage import Stage
from stages.recipe import default_chain
from tests.exchange import ASKED, whole

ANSWER = ("answer", "--from", "chat", "--to", "messages")
REQUEST = ("request", "--from", "messages", "--to", "chat")
HELLO = whole(content="hello", audio="x")
SLOW = b'{"error": {"message": "slow", "code": "rate_limit_exceeded"}}'
ASKS = json.dumps({**ASKED, "top_k": 7}).encode()
NO_MODEL = json.dumps({**ASKED, "model": None}).encode()

Run = Callable[..., tuple[int, bytes, str]]
Jobs = Callable[..., tuple[int, list[dict[str, Any]]]]


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


@pytest.fixture
def jobs(run: Run, tmp_path: Path) -> Jobs:
    """Run a command over these inputs, each a job with these members: exit code and the lines printed."""

    def call(command: str, *inputs: bytes | None, **members: Any) -> tuple[int, list[dict[str, Any]]]:
        lines = []
        for at, data in enumerate(inputs):
            files = {"input": str(tmp_path / f"{at}.in"), "output": str(tmp_path / f"{at}.out")}
            if data is not None:
                Path(files["input"]).write_bytes(data)
            lines.append(json.dumps({**files, **members}))
        (tmp_path / "jobs").write_text("\n".join(lines))
        code, out, _ = run(command, "--jobs", str(tmp_path / "jobs"))
        return code, [json.loads(line) for line in out.splitlines()]

    return call


def written(row: dict[str, Any]) -> Any:
    return json.loads(Path(row["output"]).read_bytes())


# answer


def test_a_whole_answer_becomes_another_dialects(run: Run, tmp_path: Path) -> None:
    code, out, err = run(*ANSWER, "--ledger", str(tmp_path / "ledger"), stdin=HELLO)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["type"], answer["content"]) == ("message", [{"type": "text", "text": "hello"}])
    assert [entry["path"] for entry in json.loads((tmp_path / "ledger").read_bytes())] == ["choices[].delta.audio"]


@pytest.mark.parametrize("size", ["1", "7", "frame"])
def test_the_cut_of_the_answer_changes_nothing(run: Run, size: str) -> None:
    assert run(*ANSWER, "--chunk", size, stdin=HELLO) == run(*ANSWER, stdin=HELLO)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [(SLOW, 4, "rate_limit_error"), (b"<html>", 4, "api_error"), (HELLO[:50], 3, "api_error"), (b"", 3, "api_error")],
)
def test_an_answer_that_failed_becomes_the_clients_error(run: Run, body: bytes, status: int, kind: str) -> None:
    code, out, _ = run(*ANSWER, stdin=body)
    assert (code, json.loads(out)["error"]["type"]) == (status, kind)


def test_each_job_writes_an_answer_and_prints_its_ending_and_ledger(jobs: Jobs) -> None:
    members = {"from": "chat", "to": "messages", "via": None, "chunk": None, "request": None}
    code, rows = jobs("answer", HELLO, SLOW, HELLO[:50], None, **members, options={"recover": "off"})
    assert code == 1
    assert [row.get("ending") for row in rows] == ["complete", "failed", "cut", None]
    assert [entry["path"] for entry in rows[0]["ledger"]] == ["choices[].delta.audio"]
    assert written(rows[0])["content"] == [{"type": "text", "text": "hello"}]
    assert written(rows[1])["error"] == {"type": "rate_limit_error", "message": "slow"}
    assert written(rows[2])["type"] == "error"
    assert "cannot read" in rows[3]["error"]


@pytest.mark.parametrize(("option", "signature"), [("on", True), ("off", False)])
def test_the_envelope_is_an_option(run: Run, option: str, signature: bool) -> None:
    signed = whole(content="a", reasoning_details=[{"text": "hm", "signature": "S"}])
    code, out, _ = run(*ANSWER, "--envelope", option, stdin=signed)
    assert code == 0
    assert bool(json.loads(out)["content"][0]["signature"]) == signature


@define
class Through(Stage[bytes, bytes]):
    """Passes everything on."""

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return items


@pytest.mark.parametrize(("command", "end"), [("answer", Form.WHOLE), ("convert", Form.STREAM)])
def test_between_two_hops_every_answer_is_a_stream(run: Run, command: str, end: Form) -> None:
    forms = []

    def recipe(
        upstream: Dialect, client: Dialect, *, arriving: Form | None, leaving: Form, outcome: Outcome, **_: object
    ) -> Stage[bytes, bytes]:
        forms.append((arriving, leaving))
        outcome.verdict = Verdict.COMPLETE
        return Through()

    argv = (command, "--from", "chat", "--via", "messages", "--to", "chat")
    assert run(*argv, stdin=b"hello", recipe=recipe) == (0, b"hello", "")
    assert forms == [(end, Form.STREAM), (Form.STREAM, end)]


# request


def test_a_request_becomes_another_dialects(run: Run, tmp_path: Path) -> None:
    code, out, err = run(*REQUEST, "--ledger", str(tmp_path / "ledger"), stdin=ASKS)
    assert (code, err) == (0, "")
    assert json.loads(out)["messages"] == [{"role": "user", "content": "hello"}]
    assert json.loads((tmp_path / "ledger").read_bytes())[0]["direction"] == "request"


@pytest.mark.parametrize("body", [b"", b"{", NO_MODEL])
def test_a_request_that_is_refused_becomes_the_clients_error(run: Run, body: bytes) -> None:
    code, out, _ = run(*REQUEST, stdin=body)
    assert (code, json.loads(out)["error"]["type"]) == (4, "invalid_request_error")


def test_each_job_writes_a_request_and_prints_its_status_and_ledger(jobs: Jobs) -> None:
    code, rows = jobs("request", ASKS, NO_MODEL, None, **{"from": "messages", "to": "chat"})
    assert code == 1
    assert [row.get("status") for row in rows] == [200, 400, None]
    assert [entry["path"] for entry in rows[0]["ledger"]] == ["top_k"]
    assert set(rows[0]) == {"output", "status", "ledger"}
    assert written(rows[0])["model"] == "m"
    assert written(rows[1])["type"] == "error"
    assert "cannot read" in rows[2]["error"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("request", "--from", "messages"), "'to' is missing"),
        (("request", "--to", "chat"), "'from' is missing"),
        (("request", "--from", "x", "--to", "chat"), "no dialect 'x'"),
        (("request", "--jobs", "f", "--to", "chat"), "--jobs goes alone; each job says its own to"),
        (("request", "--jobs", "/nowhere/f"), "cannot read '/nowhere/f'"),
        (("answer", "--jobs", "f", "--from", "chat"), "--jobs goes alone; each job says its own from"),
    ],
)
def test_what_cannot_be_asked_for_is_told(run: Run, argv: tuple[str, ...], told: str) -> None:
    code, _, err = run(*argv, stdin=HELLO)
    assert code in (2, 4)
    assert told in err
