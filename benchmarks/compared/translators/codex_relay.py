"""codex-relay, by its server: a binary that the wheel brings, in a process of its own, asked over HTTP."""

import asyncio
import json

from benchmarks.compared.translators.http import ask, free_port, wait_for
from benchmarks.compared.translators.jobs import KEY, Job, Reply, Translator

PAIRS = (("chat", "responses"),)
_ports: list[int] = []


async def answer(job: Job, reply: Reply) -> None:
    """Ask the server; it passes the model's name on."""
    if not _ports:
        _ports.append(await asyncio.to_thread(started, job))
    await asyncio.to_thread(ask, _ports[0], job, json.dumps(job.request).encode(), reply)


def started(job: Job) -> int:
    """The server in front of the upstream, which ends with this process's group; gives its port."""
    import codex_relay

    port = free_port()
    codex_relay.start(port=port, upstream=job.base, api_key=KEY)
    wait_for(port)
    return port


TRANSLATOR = Translator("codex-relay", "codex-relay", PAIRS, "its server (a binary), over HTTP", answer, measured=False)
