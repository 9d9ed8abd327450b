"""An upstream that reasons between and inside its calls, behind the example hosts: what this project began with."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

from examples.raw_socket.connection import Connection
from pipeline.reply import Head
from tests.interleaved import FIRST, SCRIPTS, SECOND, TIME, WEATHER
from tests.upstreams import EVERY_HOST, QUESTION, REQUEST, Host, Server, begin, events, over, posted, sdk

TOOLS: list[ToolParam] = [{"name": name, "input_schema": {"type": "object"}} for name in (WEATHER[1], TIME[1])]
RESULTS = {TIME[0]: "noon", WEATHER[0]: "18 °C"}
"""What the tools say, in the order in which the client brings it: the other way round."""

pytestmark = [pytest.mark.anyio, EVERY_HOST, pytest.mark.parametrize("upstream", [*SCRIPTS])]


def playing(upstream: str) -> Server:
    """Streams the turn, an event a write, or answers it whole, as it is asked."""
    script = SCRIPTS[upstream]

    async def answer(server: Server, client: Connection) -> None:
        if server.asked[-1].get("stream"):
            await begin(client, *(frame + b"\n\n" for frame in script.streamed().split(b"\n\n")[:-1]))
            await client.end()
        else:
            await client.whole(Head(200, {"content-type": "application/json"}), script.whole())

    return Server(answer)


@asynccontextmanager
async def conversing(host: Host, server: Server, upstream: str) -> AsyncIterator[AsyncAnthropic]:
    """The SDK before the host."""
    async with over(host, server, dialect=upstream) as url, sdk(url) as client:
        yield client


async def turn(client: AsyncAnthropic, stream: bool, *said: MessageParam) -> Message:
    """The answer, as the SDK puts it together."""
    messages = [QUESTION, *said]
    if not stream:
        return await client.messages.create(model="m", max_tokens=64, messages=messages, tools=TOOLS)
    async with client.messages.stream(model="m", max_tokens=64, messages=messages, tools=TOOLS) as read:
        return await read.get_final_message()


async def streamed(host: Host, upstream: str) -> list[dict[str, Any]]:
    """The events of the turn."""
    body = {**REQUEST, "tools": TOOLS}
    async with over(host, playing(upstream), dialect=upstream) as url, posted(url, body) as reply:
        return events(await reply.aread())


async def replayed(host: Host, upstream: str, stream: bool) -> list[tuple[str, ...]]:
    """What reaches the upstream when the client brings the results."""
    server = playing(upstream)
    async with conversing(host, server, upstream) as client:
        first = await turn(client, stream)
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in RESULTS.items()
        ]
        said: list[MessageParam] = [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ]
        await turn(client, stream, *said)
    return SCRIPTS[upstream].asked(server.asked[1])


async def test_blocks_come_in_order_each_with_its_own_index(host: Host, upstream: str) -> None:
    stream = await streamed(host, upstream)
    starts = [event for event in stream if event["type"] == "content_block_start"]
    assert [event["index"] for event in starts] == [0, 1, 2, 3]
    assert [event["content_block"]["type"] for event in starts] == ["thinking", "tool_use"] * 2
    assert [event["content_block"].get("id") for event in starts] == [None, WEATHER[0], None, TIME[0]]


async def test_no_delta_comes_for_a_block_that_is_closed_and_every_block_is_closed(host: Host, upstream: str) -> None:
    opened: list[int] = []
    closed: list[int] = []
    for event in await streamed(host, upstream):
        if event["type"] == "content_block_start":
            assert opened == closed
            opened.append(event["index"])
        elif event["type"] == "content_block_delta":
            assert event["index"] == opened[-1]
            assert opened[:-1] == closed
        elif event["type"] == "content_block_stop":
            assert event["index"] == opened[-1]
            closed.append(event["index"])
    assert opened == closed == [0, 1, 2, 3]
    assert event["type"] == "message_stop"


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_has_its_reasoning_its_ids_and_its_arguments(host: Host, upstream: str, stream: bool) -> None:
    async with conversing(host, playing(upstream), upstream) as client:
        message = await turn(client, stream)
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [(call.id, call.name, call.input) for call in calls] == [
        (call, name, json.loads(arguments)) for call, name, arguments in (WEATHER, TIME)
    ]
    reasoning = "".join(block.thinking for block in message.content if block.type == "thinking")
    assert reasoning == FIRST + SECOND
    assert message.stop_reason == "tool_use"


async def test_an_assembled_stream_is_the_whole_answer(host: Host, upstream: str) -> None:
    async with conversing(host, playing(upstream), upstream) as client:
        assembled, whole = [(await turn(client, stream)).model_dump(exclude_none=True) for stream in (True, False)]
    if SCRIPTS[upstream].ordered:
        assert assembled == whole
    assert flat(assembled) == flat(whole)


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Chat can say it whole: its reasoning, then its calls."""
    thinking = "".join(block["thinking"] for block in message["content"] if block["type"] == "thinking")
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    return {**message, "content": [thinking, *calls]}


@pytest.mark.parametrize("stream", [True, False])
async def test_the_next_request_replays_all_but_the_reasoning(host: Host, upstream: str, stream: bool) -> None:
    said = await replayed(host, upstream, stream)
    assert [kind for kind, *_ in said] == ["user", "call", "call", "result", "result"]
    assert said[0] == ("user", QUESTION["content"])
    assert [(call, name, json.loads(arguments)) for _, call, name, arguments in said[1:3]] == [
        (call, name, json.loads(arguments)) for call, name, arguments in (WEATHER, TIME)
    ]
    results = {call: text for _, call, text in said[3:]}
    assert results == RESULTS
