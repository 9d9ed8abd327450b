"""any-llm, by `amessages` over its OpenAI provider and `acompletion` over its Anthropic provider.

With tools and thinking asked for, `amessages` speaks Responses to the upstream; without thinking, Chat.
"""

from typing import Any

from benchmarks.compared.translators.jobs import Job, Reply, Translator

PAIRS = (("chat", "messages"), ("responses", "messages"), ("messages", "chat"))
MODELS = {"chat": "weir-1", "responses": "gpt-5", "messages": "claude-sonnet-4-5"}
"""Which recording is meant, the key says."""


async def answer(job: Job, reply: Reply) -> None:
    """Call the function of the client's dialect, and write the events it gives."""
    from any_llm import AnyLLM

    request: dict[str, Any] = {**job.request, "model": MODELS[job.upstream]}
    if job.client == "messages":
        if job.upstream == "responses":
            request["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        provider = AnyLLM.create("openai", api_key=job.model, api_base=job.base, max_retries=0)
        async for event in await provider.amessages(**request):
            reply.body += f"event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n".encode()
        return
    provider = AnyLLM.create("anthropic", api_key=job.model, api_base=job.origin, max_retries=0)
    async for chunk in await provider.acompletion(**request):
        reply.body += f"data: {chunk.model_dump_json(exclude_none=True)}\n\n".encode()


TRANSLATOR = Translator("any-llm", "any-llm-sdk", PAIRS, "`amessages`, `acompletion` of the SDK", answer)
