"""llm-rosetta, by its gateway: a server of its own in this process, asked over HTTP."""

import asyncio
import json
from typing import Any

from benchmarks.compared.translators.http import ask, free_port, wait_for
from benchmarks.compared.translators.jobs import KEY, Job, Reply, Translator

PAIRS = (
    ("chat", "messages"),
    ("responses", "messages"),
    ("messages", "chat"),
    ("messages", "responses"),
    ("chat", "responses"),
    ("responses", "chat"),
)
TYPES = {"chat": "openai_chat", "messages": "anthropic", "responses": "openai_responses"}
_ports: list[int] = []
_tasks: list[Any] = []


async def answer(job: Job, reply: Reply) -> None:
    """Ask the gateway; the model's name tells it the upstream."""
    if not _ports:
        await started(job)
    await asyncio.to_thread(ask, _ports[0], job, json.dumps(job.request).encode(), reply)


async def started(job: Job) -> None:
    """One gateway, since a process has one configuration, with a provider for each dialect."""
    from llm_rosetta.gateway.app import GatewayExtensions, create_app
    from llm_rosetta.gateway.config import GatewayConfig

    bases = {dialect: job.origin if dialect == "messages" else job.base for dialect in TYPES}
    providers = {name: {"type": TYPES[name], "base_url": base, "api_key": KEY} for name, base in bases.items()}
    models = {f"{name}-{number:03}": name for name in TYPES for number in range(1000)}
    config = GatewayConfig({"providers": providers, "models": models})
    app = create_app(config, extensions=GatewayExtensions(skip_builtin_auth=True, skip_admin_setup=True))
    port = free_port()
    _tasks.append(asyncio.create_task(app._serve("127.0.0.1", port)))
    await asyncio.to_thread(wait_for, port)
    _ports.append(port)


TRANSLATOR = Translator("llm-rosetta", "llm-rosetta", PAIRS, "its gateway, over HTTP", answer)
