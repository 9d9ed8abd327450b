"""The rest of `make demo`: the same turns over the same upstream, read with the real openai SDK in both dialects."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import FunctionToolParam

QUESTION = "What is the weather in Paris, and what time is it there?"
ITEMS = ["reasoning", "message", "function_call", "reasoning", "function_call"]
"""What the first turn brings in Responses, which shows where the model thought."""

Answer = Callable[[str, str], str]
"""What a tool says: its name, its arguments as they came."""
Check = Callable[[bool, str], None]
"""Gives up, saying what is wrong."""


def client_of(url: str) -> AsyncOpenAI:
    """The SDK before the proxy. Loopback only, whatever proxy the environment names."""
    http = DefaultAsyncHttpxClient(trust_env=False)
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="demo", max_retries=0, timeout=60, http_client=http)


async def chat(client: AsyncOpenAI, tools: Sequence[str], answer: Answer, check: Check) -> str:
    """Both turns in Chat; the text of the second."""
    offered: list[ChatCompletionToolUnionParam] = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in tools
    ]
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    async with client.chat.completions.stream(model="demo", messages=messages, tools=offered) as stream:
        first = (await stream.get_final_completion()).choices[0]
    calls = first.message.tool_calls or []
    called = [call.function.name for call in calls]
    check(called == list(tools), f"expected calls of {[*tools]}, got {called}")
    check(first.finish_reason == "tool_calls", f"expected an end by tool calls, got {first.finish_reason}")
    said: Any = first.message  # the SDK sends its own answers back
    messages.append(said)
    for call in calls:
        result = answer(call.function.name, call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    async with client.chat.completions.stream(model="demo", messages=messages, tools=offered) as stream:
        return str((await stream.get_final_completion()).choices[0].message.content)


async def responses(client: AsyncOpenAI, tools: Sequence[str], answer: Answer, check: Check) -> str:
    """Both turns in Responses; the text of the second."""
    offered: list[FunctionToolParam] = [
        {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False} for name in tools
    ]
    items: list[Any] = [{"type": "message", "role": "user", "content": QUESTION}]
    async with client.responses.stream(model="demo", input=items, tools=offered, store=False) as stream:
        output = (await stream.get_final_response()).output
    brought = [item.type for item in output]
    check(brought == ITEMS, f"expected {ITEMS}, got {brought}")
    items.extend(output)
    for item in output:
        if item.type == "function_call":
            result = answer(item.name, item.arguments)
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
    async with client.responses.stream(model="demo", input=items, tools=offered, store=False) as stream:
        return (await stream.get_final_response()).output_text


TURNS: Mapping[str, Callable[[AsyncOpenAI, Sequence[str], Answer, Check], Awaitable[str]]] = {
    "Chat": chat,
    "Responses": responses,
}
