"""streamweir itself, by the door that a host uses: a route, an exchange, and httpx as the HTTP client."""

import json
from typing import Any

from benchmarks.compared.translators.jobs import Job, Reply, Translator

PAIRS = (
    ("chat", "messages"),
    ("responses", "messages"),
    ("messages", "chat"),
    ("messages", "responses"),
    ("chat", "responses"),
    ("responses", "chat"),
)
_client: list[Any] = []


async def answer(job: Job, reply: Reply) -> None:
    """Open the exchange, ask the upstream, run the chain."""
    import httpx

    from pipeline.dialect import dialect
    from pipeline.drive import through
    from pipeline.reply import Refusal
    from pipeline.route import Route
    from stages.recipe import default_chain

    if not _client:
        _client.append(httpx.AsyncClient())
    route = Route(client=dialect(job.client), upstream=dialect(job.upstream), recipe=default_chain)
    exchange = route.open(json.dumps(job.request).encode())
    asked = exchange.request
    if isinstance(asked, Refusal):
        reply.status, reply.body = asked.head.status, asked.body
        return
    async with _client[0].stream(
        "POST", f"{job.base}/{asked.path}", headers=dict(asked.headers), content=asked.body
    ) as upstream:
        run = exchange.reply(upstream.status_code, upstream.headers)
        async for data in through(upstream.aiter_bytes(), run.chain):
            reply.body += data
        reply.status = run.head.status if run.head else 502


TRANSLATOR = Translator("streamweir", "streamweir", PAIRS, "`Route.open`, `Exchange.reply`, httpx", answer)
