"""litellm, by the functions of its SDK: `anthropic_messages`, `acompletion` and `aresponses`.

What they give is written as its proxy writes it. A Chat upstream is `hosted_vllm`, and `custom_openai` for Responses
clients, since `hosted_vllm` asks for Responses then; a Responses upstream is `openai`.
"""

import os
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
MODELS = {
    ("chat", "messages"): "hosted_vllm/weir-1",
    ("responses", "messages"): "openai/gpt-5",
    ("messages", "chat"): "anthropic/claude-sonnet-4-5",
    ("messages", "responses"): "anthropic/claude-sonnet-4-5",
    ("chat", "responses"): "custom_openai/weir-1",
    ("responses", "chat"): "openai/responses/gpt-5",
}
"""Names that it knows where it looks them up. Which recording is meant, the key says."""
FUNCTIONS = {"chat": "acompletion", "messages": "anthropic_messages", "responses": "aresponses"}


async def answer(job: Job, reply: Reply) -> None:
    """Call the function of the client's dialect, and write what it gives."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    request = {**job.request, "model": MODELS[job.upstream, job.client]}
    base = job.origin if job.upstream == "messages" else job.base
    function = getattr(litellm, FUNCTIONS[job.client])
    async for item in await function(
        **request, api_base=base, api_key=job.model, num_retries=0, max_retries=0, timeout=10
    ):
        reply.body += written(item, job.client)


def written(item: Any, client: str) -> bytes:
    """One item of a stream as bytes of it: some are bytes already."""
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, dict):
        import json

        return f"event: {item.get('type')}\ndata: {json.dumps(item)}\n\n".encode()
    data = item.model_dump_json(exclude_none=True, exclude_unset=True)
    head = f"event: {getattr(item.type, 'value', item.type)}\n" if client == "responses" else ""
    return f"{head}data: {data}\n\n".encode()


TRANSLATOR = Translator(
    "litellm", "litellm", PAIRS, "`anthropic_messages`, `acompletion`, `aresponses` of the SDK", answer
)
