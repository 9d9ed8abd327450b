"""A translator's process: jobs come in as lines of JSON on stdin, answers leave as lines of JSON on stdout."""

import asyncio
import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, frozen

CLIENT_PATHS = {"chat": "chat/completions", "messages": "messages", "responses": "responses"}
"""Where each dialect is asked, below `/v1/`."""
KEY = "none"
"""The key that is sent to the loopback upstream."""


@frozen
class Job:
    """One request of a client: `request` is its body, `origin` the upstream's address without a path."""

    upstream: str
    client: str
    model: str
    origin: str
    request: Mapping[str, Any]

    @property
    def base(self) -> str:
        """The upstream's base URL as OpenAI's clients want it."""
        return f"{self.origin}/v1"


@define
class Reply:
    """What a client got: the head, and the bytes as far as they came."""

    status: int = 200
    body: bytes = b""
    raised: str = ""
    """A library's door raised this in place of writing on."""


@frozen
class Translator:
    """A translator: `pairs` are (upstream, client); `door` says what is called."""

    name: str
    package: str
    pairs: tuple[tuple[str, str], ...]
    door: str
    answer: Callable[[Job, Reply], Any]
    """A coroutine function that fills the reply; what it raises, the client got as an exception."""
    measured: bool = True
    """Whether its work is done in this process, so that its time can be told."""


async def answered(translator: Translator, job: Job) -> dict[str, Any]:
    """The answer to one job, as a line of JSON can say it."""
    reply = Reply()
    began = time.process_time()
    try:
        await translator.answer(job, reply)
    except ImportError:
        raise  # not its answer: it is not installed
    except Exception as error:  # noqa: BLE001 whatever a library raises is its answer
        reply.raised = f"{type(error).__name__}: {error}"[:300]
    spent = time.process_time() - began
    return {"status": reply.status, "body": reply.body.decode("latin-1"), "raised": reply.raised, "cpu": spent}


async def serve(translator: Translator, out: Any) -> None:
    """Answer until stdin ends."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        said = await answered(translator, Job(**json.loads(line)))
        out.write(json.dumps(said) + "\n")
        out.flush()


def main(module: str) -> None:
    """Serve the translator of a module; what libraries print goes to stderr."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        translator = importlib.import_module(f"benchmarks.compared.translators.{module}").TRANSLATOR
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(translator, out))
        out.flush()
        os._exit(0)  # libraries leave threads behind that would wait


if __name__ == "__main__":
    main(sys.argv[1])
