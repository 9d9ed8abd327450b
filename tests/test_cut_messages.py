"""A message that was cut: a Responses client is told that it is incomplete, whatever cut it and in whatever form."""

import json
from typing import Any

import pytest
from attrs import evolve

from pipeline.events import (
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    StopReason,
    TextBlock,
    TextDelta,
)
from pipeline.limits import Limits
from pipeline.testing import Chunk, cut
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests import support as cs
from tests.exchange import answered, route, whole

Json = dict[str, Any]
REASONS = {"length": "max_tokens", "content_filter": "refusal", "stop": "end_turn"}
"""Messages' stop reasons by Chat's."""


def given(upstream: str, reason: str, *, streams: bool, call: bool = False) -> bytes:
    """Text, or text and a call, that ended for a reason."""
    if upstream == "chat":
        called = cs.fragment(0, "a", "f", '{"x":1}') if call else None
        if streams:
            parts = [cs.text("par"), *([cs.chunk({"tool_calls": [called]})] if called else [])]
            return cs.sse(*parts, cs.finish(reason), cs.DONE)
        return whole(reason, content="par", **({"tool_calls": [called]} if called else {}))
    usage = {"input_tokens": 1, "output_tokens": 1}
    blocks = [{"type": "text", "text": "par"}, *([ms.call("a", "f", {"x": 1})] if call else [])]
    if not streams:
        return json.dumps(ms.message(*blocks, stop_reason=REASONS[reason], usage=usage)).encode()
    told = [one for at, block in enumerate(blocks) for one in ms.told_in_deltas(block, at)]
    return ms.sse([ms.begin(usage=usage), *told, ms.told(REASONS[reason], usage), ms.END])


def output(body: bytes, *, streams: bool) -> list[Json]:
    """The items of the response, which are those that were told done."""
    if not streams:
        items: list[Json] = json.loads(body)["output"]
        return items
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == items
    return items


def said(upstream: str, raw: bytes, *, streams: bool = True, chunk: Chunk = None, **limits: int) -> list[Json]:
    on = route("responses", upstream, limits=evolve(Limits(), **limits))
    exchange = on.open(json.dumps({"model": "m", "input": "hi", "stream": streams}).encode())
    return output(answered(exchange, *cut(raw, chunk)).body, streams=streams)


@pytest.mark.parametrize("leaves", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("arrives", [True, False], ids=["from a stream", "from a body"])
@pytest.mark.parametrize("upstream", ["chat", "messages"])
@pytest.mark.parametrize("reason", [*REASONS])
def test_a_message_is_whole_unless_the_answer_was_cut(upstream: str, reason: str, arrives: bool, leaves: bool) -> None:
    status = "completed" if reason == "stop" else "incomplete"
    raw = given(upstream, reason, streams=arrives)
    for size in (1, 7, None):
        (item,) = said(upstream, raw, streams=leaves, chunk=size)
        assert (item["status"], item["content"][0]["text"]) == (status, "par")
    message, call = said(upstream, given(upstream, reason, streams=arrives, call=True), streams=leaves)
    assert (message["status"], call["name"]) == ("completed", "f")


def test_a_message_that_a_call_followed_is_whole_though_more_text_was_cut() -> None:
    called = cs.chunk({"tool_calls": [cs.fragment(0, "a", "f", '{"x":1}')]})
    raw = cs.sse(cs.text("a"), called, cs.text("par"), cs.finish("length"), cs.DONE)
    assert [item["status"] for item in said("chat", raw)] == ["completed", "completed", "incomplete"]


def test_a_refusal_that_was_said_is_whole() -> None:
    raw = cs.sse(cs.chunk({"refusal": "I can't"}), cs.finish(), cs.DONE)
    assert [item["status"] for item in said("chat", raw)] == ["completed"]


BROKEN = {"error": {"message": "x", "type": "server_error"}}


@pytest.mark.parametrize("end", [[], [BROKEN], [cs.text(" <tool_ca")], [cs.text(" <tool_ca"), BROKEN]])
def test_a_message_that_a_failure_cut_is_incomplete(end: list[Any]) -> None:
    items = said("chat", cs.sse(cs.reasoning("hm"), cs.text("par"), *end))
    assert [item.get("status") for item in items] == [None, "incomplete"]


def test_a_message_that_a_bound_cut_is_incomplete() -> None:
    (item,) = said("chat", cs.sse(cs.text("par"), {"x": "y" * 300}), frame_bytes=250)
    assert item["status"] == "incomplete"


def test_a_message_that_had_ended_is_whole_whatever_comes_then() -> None:
    block = ms.told_in_deltas({"type": "text", "text": "a"}, 0)
    (item,) = said("messages", ms.sse([ms.begin(), *block]))
    assert item["status"] == "completed"
    called = cs.chunk({"tool_calls": [cs.fragment(0, "a", "f", '{"x"')]})
    assert [item["status"] for item in said("chat", cs.sse(cs.text("a"), called))] == ["completed"]


def test_only_the_end_of_a_message_waits_for_what_comes_behind_it() -> None:
    stage = rs.encoder()

    def step(*events: Any) -> list[str]:
        return [frame.name.decode().removeprefix("response.") for frame in stage.receive(events)]

    step(rs.START, BlockStart(0, TextBlock()))
    assert step(TextDelta(0, "a"))[-1] == "output_text.delta"
    assert step(BlockStop(0)) == []
    assert step(Ping()) == ["keepalive"]
    ends = ["output_text.done", "content_part.done", "output_item.done"]
    assert step(BlockStart(1, TextBlock())) == ends
    step(TextDelta(1, "b"))
    assert step(BlockStop(1), MessageDelta(StopReason.END_TURN)) == ends
    assert step(MessageStop()) == ["completed"]


def test_reasoning_which_has_no_status_waits_for_nothing() -> None:
    stage = rs.encoder()
    stage.receive([rs.START, BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "a")])
    assert stage.receive([BlockStop(0)])[-1].name == b"response.output_item.done"


@pytest.mark.parametrize(("complete", "status"), [(True, "completed"), (False, "incomplete")])
def test_a_sudden_end_tells_the_end_of_the_message_before_it(complete: bool, status: str) -> None:
    stage = rs.encoder()
    stage.receive([rs.START, BlockStart(0, TextBlock()), TextDelta(0, "a"), BlockStop(0, complete)])
    *_, done, failed = [json.loads(frame.data) for frame in stage.receive_eof()]
    assert (done["type"], done["item"]["status"]) == ("response.output_item.done", status)
    assert failed["response"]["output"] == [done["item"]]


def test_a_message_is_whole_where_the_route_calls_the_response_completed() -> None:
    events = [BlockStart(0, TextBlock()), TextDelta(0, "a"), BlockStop(0), MessageDelta(StopReason.MAX_TOKENS)]
    response = rs.ended(*events, MessageStop(), stage=rs.encoder(limit="completed"))
    assert (response["status"], response["output"][0]["status"]) == ("completed", "completed")
