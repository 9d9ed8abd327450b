"""protocol-converter, by `ProtocolConverterEngine.convert_and_forward` and its own HTTP client."""

from typing import Any

from benchmarks.compared.translators.jobs import CLIENT_PATHS, KEY, Job, Reply, Translator

PAIRS = (
    ("chat", "messages"),
    ("responses", "messages"),
    ("messages", "chat"),
    ("messages", "responses"),
    ("chat", "responses"),
    ("responses", "chat"),
)
BACKENDS = {"chat": "openai", "messages": "anthropic", "responses": "openai_responses"}
_client: list[Any] = []


async def answer(job: Job, reply: Reply) -> None:
    """One engine a request, since it keeps the state of a stream."""
    from protocol_converter import ConverterConfig, ProtocolConverterEngine
    from protocol_converter.engine import create_http_client

    if not _client:
        _client.append(create_http_client())
    url = f"{job.base}/{CLIENT_PATHS[job.upstream]}"
    config = ConverterConfig(backend_type=BACKENDS[job.upstream], backend_url=url, api_key=KEY)
    stream = await ProtocolConverterEngine(config).convert_and_forward(dict(job.request), _client[0])
    async for event in stream:
        reply.body += event.encode()


TRANSLATOR = Translator("protocol-converter", "protocol-converter", PAIRS, "`convert_and_forward`", answer)
