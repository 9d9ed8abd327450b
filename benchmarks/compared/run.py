"""Runs translators over cases, each in a subprocess with a time limit for every job."""

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import define, field

from benchmarks.compared.answer import Answer
from benchmarks.compared.cases import READERS, ROOT

SECONDS = 15.0
STARTUP = 120.0
"""The limit for the first job of a process, which imports the library."""
HANGS = {"status": 0, "body": "", "raised": "", "hangs": True, "cpu": 0.0}
PASSED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""The variables of the environment that a translator sees: no key, no proxy, no address."""


@define
class Process:
    """A translator's process, started when it is needed, and again after it was stopped for hanging."""

    python: Path
    module: str
    home: Path
    seconds: float = SECONDS
    _running: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")

    @property
    def log(self) -> Path:
        """What the process says on its error output."""
        return self.home / f"{self.module}.log"

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to a job. A process that does not answer in time is stopped.

        Raises `RuntimeError` if it died, which no answer of a translator makes it do.
        """
        limit = STARTUP if self._running is None else self.seconds
        running = self._running = self._running or self._started()
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(json.dumps(job).encode() + b"\n")
        running.stdin.flush()
        ready, _, _ = select.select([running.stdout], [], [], limit)
        if not ready:
            self.close()
            return dict(HANGS)
        if not (line := running.stdout.readline()):
            self.close()
            raise RuntimeError(f"{self.module} died, see {self.log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        env = {name: os.environ[name] for name in PASSED if name in os.environ}
        env |= {"HOME": str(self.home), "PATH": f"{self.python.parent}{os.pathsep}{env.get('PATH', '')}"}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [self.python, "-m", "benchmarks.compared.translators.jobs", self.module],
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def close(self) -> None:
        """Stop the process and all that it started."""
        if (running := self._running) is None:
            return
        self._running = None
        for pipe in (running.stdin, running.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def read_reply(reply: dict[str, Any], client: str) -> Answer:
    """A reply, read: an error status or an exception is the answer's error, and takes back a Chat finish."""
    body = reply["body"].encode("latin-1")
    answer = READERS[client](body)
    if reply["status"] >= 400:
        return Answer(error=f"HTTP {reply['status']}: {reply['body'][:200]}")
    if reply["raised"]:
        answer.error = answer.error or reply["raised"]
        answer.ended = False
        if client == "chat":
            for call in answer.calls:
                call.closed = False
    return answer


def cost(process: Process, job: dict[str, Any], frames: int, repeats: Iterable[int]) -> float:
    """Microseconds of CPU time a frame of the upstream: the least of several runs."""
    process.ask(job)
    spent = min(process.ask(job)["cpu"] for _ in repeats)
    return float(spent / frames * 1e6)
