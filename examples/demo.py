"""Turns with interleaved reasoning and tools through the proxy, read with the real SDKs: `make demo`.

First with anthropic's, a block at a time, then with openai's, in Chat and in Responses. Everything runs in this
process: the clients, the proxy, and the embedded upstream that it asks, which speaks Chat.
"""

import asyncio
import json
import sys
from collections.abc import Callable

import openai
from anthropic import APIError, AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import ContentBlock, MessageParam, RawContentBlockDelta, ToolParam, ToolResultBlockParam

from examples import demo_openai
from examples.gateway.config import Config
from examples.proxy.app import serving

QUESTION: MessageParam = {"role": "user", "content": demo_openai.QUESTION}
FIRST = ["thinking", "text", "tool_use", "thinking", "tool_use"]
SECOND = ["thinking", "text"]

TOOLS: dict[str, Callable[..., str]] = {
    "get_weather": lambda city: f"18 °C and clear in {city}",
    "get_time": lambda timezone: f"14:05 in {timezone}",
}
OFFERED: list[ToolParam] = [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]


def check(holds: bool, wrong: str) -> None:
    """Give up, saying what is wrong."""
    if not holds:
        raise ValueError(wrong)


def piece(delta: RawContentBlockDelta) -> str:
    """What a delta brings: reasoning, text, or more of a call's arguments."""
    texts = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "partial_json"}
    return str(getattr(delta, texts[delta.type]))


async def turn(client: AsyncAnthropic, messages: list[MessageParam], expected: list[str]) -> list[ContentBlock]:
    """Ask, print the blocks of the answer while they arrive, and check them."""
    opened: list[str] = []
    written: list[str] = []
    print(f"--- turn {len(messages) // 2 + 1}")
    async with client.messages.stream(model="demo", max_tokens=1024, messages=messages, tools=OFFERED) as stream:
        async for event in stream:
            if event.type == "content_block_start":
                check(event.index == len(opened) == len(written), f"block {event.index} opens out of order")
                opened.append(event.content_block.type)
                print(f"[{event.index}] {opened[-1]} begins\n    ", end="")
                text = ""
            elif event.type == "content_block_delta":
                check(event.index == len(written), f"a delta for block {event.index}, which is not open")
                text += piece(event.delta)
                print(piece(event.delta), end="", flush=True)
            elif event.type == "content_block_stop":
                written.append(text)
                print(f"\n[{event.index}] {opened[-1]} ends", flush=True)
        blocks = (await stream.get_final_message()).content
    check(opened == expected, f"expected {expected}, got {opened}")
    check(len(written) == len(opened), "the last block was not closed")
    for block, text in zip(blocks, written, strict=True):
        check(block.type != "tool_use" or json.loads(text) == block.input, f"{text} are not the arguments of the call")
    return [*blocks]


async def messages(url: str) -> None:
    """The question, the tools' results, and the answer, with the anthropic SDK."""
    http = DefaultAsyncHttpxClient(trust_env=False)  # loopback only, whatever proxy the environment names
    async with AsyncAnthropic(base_url=url, api_key="demo", max_retries=0, timeout=60, http_client=http) as client:
        blocks = await turn(client, [QUESTION], FIRST)
        results: list[ToolResultBlockParam] = []
        for block in blocks:
            if block.type == "tool_use":
                result = TOOLS[block.name](**block.input)
                print(f"--- {block.name} says: {result}")
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": result})
        said: list[MessageParam] = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        answer = "".join(block.text for block in await turn(client, [QUESTION, *said], SECOND) if block.type == "text")
        for entry in results:
            check(str(entry["content"]) in answer, f"the answer does not name {entry['content']}")
    print("--- every block in order, each closed before the next")


async def with_openai(url: str) -> None:
    """The same with the openai SDK, in both its dialects."""
    for dialect, turns in demo_openai.TURNS.items():
        print(f"--- the same with the openai SDK, in {dialect}")
        results: list[str] = []

        def tell(name: str, arguments: str, told: list[str] = results) -> str:
            told.append(TOOLS[name](**json.loads(arguments)))
            print(f"{name} {arguments} says: {told[-1]}")
            return told[-1]

        async with demo_openai.client_of(url) as client:
            answer = await turns(client, tuple(TOOLS), tell, check)
        print(answer)
        for result in results:
            check(result in answer, f"the answer does not name {result}")


async def converse(config: Config) -> None:
    """All of it over one proxy."""
    async with serving(config) as url:
        await messages(url)
        await with_openai(url)


def main(config: Config | None = None) -> int:
    """Run it; 1 if something is missing or out of order."""
    try:
        asyncio.run(converse(config or Config(port=0)))
    except (APIError, openai.OpenAIError, ValueError) as error:
        print(f"\ndemo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
