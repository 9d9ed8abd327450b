"""An upstream that reasons between and inside its calls, before a Messages client: what this project began with."""

import json
from typing import Any

import pytest

from pipeline.testing import cut
from tests.exchange import ASKED, Got, answered_over, opened_over, sent
from tests.interleaved import FIRST, SCRIPTS, SECOND, TIME, WEATHER
from tests.support import events_of

Way = tuple[str, ...]
WAYS: list[Way] = [("chat",), ("responses",), ("chat", "responses")]
"""The dialects that the client's request passes on its way up; the last is the upstream's, which has a script."""

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in (WEATHER[1], TIME[1])]

pytestmark = pytest.mark.parametrize("way", WAYS, ids=" then ".join)


def turn(way: Way, stream: bool, size: int | None = None) -> Got:
    """What the client gets of the turn, which its upstream streams exactly if it was asked to."""
    script = SCRIPTS[way[-1]]
    exchanges = opened_over(way, stream, tools=TOOLS)
    assert sent(exchanges[-1]).get("stream", False) is stream
    return answered_over(exchanges, *cut(script.streamed() if stream else script.whole(), size))


def replayed(way: Way, stream: bool) -> list[tuple[str, ...]]:
    """What reaches the upstream in the next request, in which the results stand the other way round."""
    results = [
        {"type": "tool_result", "tool_use_id": call, "content": said}
        for call, said in ((TIME[0], "noon"), (WEATHER[0], "18 °C"))
    ]
    turns = [
        *ASKED["messages"],
        {"role": "assistant", "content": turn(way, stream).message["content"]},
        {"role": "user", "content": results},
    ]
    return SCRIPTS[way[-1]].asked(sent(opened_over(way, stream, tools=TOOLS, messages=turns)[-1]))


@pytest.mark.parametrize("size", [None, 1, 7, 64])
def test_blocks_come_in_order_each_with_its_own_index(way: Way, size: int | None) -> None:
    got = turn(way, True, size)
    assert [(block["type"], block.get("thinking") or block["name"]) for block in got.message["content"]] == [
        ("thinking", FIRST),
        ("tool_use", WEATHER[1]),
        ("thinking", SECOND),
        ("tool_use", TIME[1]),
    ]
    starts = [event["index"] for event in events_of(got.body) if event["type"] == "content_block_start"]
    assert starts == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [None, 1, 7, 64])
def test_no_delta_comes_for_a_block_that_is_closed_and_every_block_is_closed(way: Way, size: int | None) -> None:
    open_block, closed = None, []
    for event in events_of(turn(way, True, size).body):
        if event["type"] == "content_block_start":
            assert open_block is None
            open_block = event["index"]
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_block
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_block
            closed.append(open_block)
            open_block = None
        elif event["type"] == "message_delta":
            assert open_block is None
            assert event["delta"]["stop_reason"] == "tool_use"
    assert closed == [0, 1, 2, 3]


def test_a_whole_answer_has_its_ids_and_every_digit_of_its_arguments(way: Way) -> None:
    got = turn(way, False)
    calls = [block for block in got.message["content"] if block["type"] == "tool_use"]
    assert [(block["id"], block["name"]) for block in calls] == [WEATHER[:2], TIME[:2]]
    for arguments in (WEATHER[2], TIME[2]):
        assert f'"input":{arguments}'.encode() in got.body
    assert got.message["stop_reason"] == "tool_use"


def test_an_assembled_stream_is_the_whole_answer(way: Way) -> None:
    streamed, whole = (turn(way, stream).message for stream in (True, False))
    if all(SCRIPTS[dialect].ordered for dialect in way):
        assert streamed == whole
    assert flat(streamed) == flat(whole)


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Chat can say it whole: its reasoning, then its calls."""
    thinking = "".join(block["thinking"] for block in message["content"] if block["type"] == "thinking")
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    return {**message, "content": [thinking, *calls]}


@pytest.mark.parametrize("stream", [True, False])
def test_the_next_request_replays_all_but_the_reasoning(way: Way, stream: bool) -> None:
    said = replayed(way, stream)
    assert [kind for kind, *_ in said] == ["user", "call", "call", "result", "result"]
    assert said[0] == ("user", "hello")
    assert [(call, name, json.loads(arguments)) for _, call, name, arguments in said[1:3]] == [
        (call, name, json.loads(arguments)) for call, name, arguments in (WEATHER, TIME)
    ]


@pytest.mark.parametrize("stream", [True, False])
def test_a_result_stays_bound_to_the_call_that_it_answers(way: Way, stream: bool) -> None:
    results = {said[1]: said[2] for said in replayed(way, stream) if said[0] == "result"}
    assert results == {WEATHER[0]: "18 °C", TIME[0]: "noon"}
