"""agent-wire-proxy, by its server: a thread of this process, asked over HTTP."""

import asyncio
import json
import tempfile
from pathlib import Path

from benchmarks.compared.translators.http import ask
from benchmarks.compared.translators.jobs import Job, Reply, Translator

PAIRS = (("chat", "messages"), ("responses", "messages"), ("chat", "responses"))
APIS = {"chat": "chat_completions", "responses": "responses"}
_ports: dict[str, int] = {}


async def answer(job: Job, reply: Reply) -> None:
    """Ask the proxy in front of the upstream's dialect."""
    if job.upstream not in _ports:
        _ports[job.upstream] = started(job)
    body = json.dumps(job.request).encode()
    await asyncio.to_thread(ask, _ports[job.upstream], job, body, reply)


def started(job: Job) -> int:
    """A proxy whose models all stand for the upstream; gives its port."""
    from agent_wire_proxy.config import ModelConfig, ProxyConfig
    from agent_wire_proxy.runtime import serve

    names = [f"{job.upstream}-{number:03}" for number in range(1000)]
    models = tuple(ModelConfig(name, job.origin, APIS[job.upstream], None, ()) for name in names)
    place = Path(tempfile.mkdtemp(prefix="compared-"))
    server = serve(
        config=ProxyConfig(names[0], models),
        block=False,
        listen="127.0.0.1:0",
        log=place / "log.jsonl",
        route_receipt_dir=place,
        anthropic_upstream_api=APIS[job.upstream],
    )
    port: int = server.server_port
    return port


TRANSLATOR = Translator("agent-wire-proxy", "agent-wire-proxy", PAIRS, "its server, over HTTP", answer)
