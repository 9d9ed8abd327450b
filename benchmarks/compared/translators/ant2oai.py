"""ant2oai (a2o), by its FastAPI app on uvicorn in this process, asked over HTTP."""

import asyncio
import json
from typing import Any

from benchmarks.compared.translators.http import ask, free_port, wait_for
from benchmarks.compared.translators.jobs import CLIENT_PATHS, Job, Reply, Translator

PAIRS = (("chat", "messages"),)
_ports: list[int] = []
_tasks: list[Any] = []


async def answer(job: Job, reply: Reply) -> None:
    """Ask the server; it passes the model's name on."""
    if not _ports:
        await started(job)
    await asyncio.to_thread(ask, _ports[0], job, json.dumps(job.request).encode(), reply)


async def started(job: Job) -> None:
    """The server, on a task of this loop."""
    import uvicorn
    from a2o.config import Config
    from a2o.server import create_app

    port = free_port()
    app = create_app(Config(openai_base_url=f"{job.base}/{CLIENT_PATHS['chat']}"))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    _tasks.append(asyncio.create_task(server.serve()))
    await asyncio.to_thread(wait_for, port)
    _ports.append(port)


TRANSLATOR = Translator("ant2oai", "ant2oai", PAIRS, "its server, over HTTP", answer)
