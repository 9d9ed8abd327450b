"""No translator: the upstream's bytes are read with httpx and let go. What it costs, every translator pays too."""

import json
from typing import Any

from benchmarks.compared.translators.jobs import CLIENT_PATHS, Job, Reply, Translator

_client: list[Any] = []


async def answer(job: Job, reply: Reply) -> None:
    """Read, and keep nothing."""
    import httpx

    if not _client:
        _client.append(httpx.AsyncClient())
    url = f"{job.base}/{CLIENT_PATHS[job.upstream]}"
    async with _client[0].stream("POST", url, content=json.dumps(job.request).encode()) as upstream:
        async for _ in upstream.aiter_bytes():
            pass


TRANSLATOR = Translator("reading alone", "httpx", (), "httpx", answer)
