"""An upstream that counts nothing: an estimate is told only to a client that must have numbers, in whatever form."""

import json
from itertools import product
from typing import Any

import pytest

from pipeline.events import MessageDelta, MessageStart, MessageStop, StopReason, Usage
from pipeline.message import final_usage
from pipeline.route import Exchange
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests import support as cs
from tests.exchange import Got, answered, route
from tests.messages_client import folded

Json = dict[str, Any]
DIALECTS = ("chat", "messages", "responses")
ASKED: dict[str, Json] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}], "stream_options": {"include_usage": True}},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
}


def says_hi(upstream: str, streams: bool, **usage: Any) -> bytes:
    """An answer without counts, or with these at its end."""
    if upstream == "chat":
        counted = [{**cs.chunk(), "choices": [], **usage}] if usage else []
        message = {"role": "assistant", "content": "hi"}
        body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return cs.sse(cs.text("hi"), cs.finish(), *counted, cs.DONE) if streams else json.dumps(body | usage).encode()
    if upstream == "messages":
        block = [ms.start({"type": "text", "text": ""}), ms.text("hi"), ms.stop()]
        end = ms.event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, **usage)
        whole = ms.message({"type": "text", "text": "hi"}, stop_reason="end_turn", **usage)
        return ms.sse([ms.begin(), *block, end, ms.END]) if streams else json.dumps(whole).encode()
    item = rs.message("hi")
    items = [rs.created(), rs.added({**item, "content": []}), rs.text("hi"), rs.done(item)]
    whole = rs.response(output=[item], **usage)
    return ms.sse([*items, rs.terminal(output=[item], **usage)]) if streams else json.dumps(whole).encode()


def asked(client: str, upstream: str, streams: bool) -> Exchange:
    body = {"model": "m", "stream": streams, **ASKED[client]}
    return route(client, upstream).open(json.dumps(body).encode())


def told(client: str, got: Got) -> Any:
    """The counts that a client is told, by the end of the answer; a word if it is told of none."""
    if not got.is_stream:
        return json.loads(got.body).get("usage", "absent")
    if client == "messages":
        return folded(got.body)["usage"]
    events = [json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: {")]
    if client == "responses":
        return events[-1]["response"].get("usage", "absent")
    return next((event["usage"] for event in events if event.get("usage")), "absent")


FORMS = [*product((True, False), (True, False))]
CROSSING = [pair for pair in product(DIALECTS, DIALECTS) if pair[0] != pair[1]]


UNREADABLE: list[Json] = [{}, {"usage": {"total_tokens": 15}}, {"usage": {"prompt_tokens": "1", "input_tokens": "1"}}]
"""No counts, and what holds none."""


@pytest.mark.parametrize("counts", UNREADABLE, ids=str)
@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize(("client", "upstream"), CROSSING)
def test_an_estimate_is_told_to_no_client_that_can_do_without(
    client: str, upstream: str, arrives: bool, leaves: bool, counts: Json
) -> None:
    exchange = asked(client, upstream, leaves)
    usage = told(client, answered(exchange, says_hi(upstream, arrives, **counts)))
    if client == "messages":
        assert exchange.facts.usage is not None
        assert (usage["input_tokens"], usage["output_tokens"]) == (exchange.facts.usage.input, 0)
    else:
        assert usage == (None if client == "responses" else "absent")
    assert exchange.outcome.estimated
    assert exchange.outcome.usage == exchange.facts.usage


@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_nor_is_it_over_its_own_dialect(client: str, arrives: bool, leaves: bool) -> None:
    assert told(client, answered(asked(client, client, leaves), says_hi(client, arrives))) in (None, "absent")


COUNTS: dict[str, Json] = {
    "chat": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    "messages": {"input_tokens": 10, "output_tokens": 5},
    "responses": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
}


@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize(("client", "upstream"), [*CROSSING, ("chat", "chat"), ("responses", "responses")])
def test_what_the_upstream_counted_is_told_in_every_form(
    client: str, upstream: str, arrives: bool, leaves: bool
) -> None:
    exchange = asked(client, upstream, leaves)
    usage = told(client, answered(exchange, says_hi(upstream, arrives, usage=COUNTS[upstream])))
    assert {name: usage[name] for name in COUNTS[client]} == COUNTS[client]
    assert not exchange.outcome.estimated


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_counts_that_came_with_the_beginning_alone_stand(client: str, leaves: bool) -> None:
    block = [ms.start({"type": "text", "text": ""}), ms.text("hi"), ms.stop()]
    end = ms.event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None})
    raw = ms.sse([ms.begin(usage=COUNTS["messages"]), *block, end, ms.END])
    usage = told(client, answered(asked(client, "messages", leaves), raw))
    assert {name: usage[name] for name in COUNTS[client]} == COUNTS[client]


def test_the_last_counts_stand_but_for_what_went_in_if_they_do_not_tell_it() -> None:
    first, estimate = Usage(input=3, cache_read=2, cache_write=1, output=1), Usage(input=9)
    assert final_usage(first, None, estimate) is first
    assert final_usage(first, Usage(output=7), estimate) == Usage(3, 2, 1, 7)
    assert final_usage(first, estimate, estimate) is first
    for last in (Usage(input=1), Usage(cache_read=1), Usage(cache_write=1)):
        assert final_usage(first, last, estimate) is last
    assert final_usage(None, first) is first
    assert final_usage(None, Usage(output=1)) == Usage(output=1)
    for ends in (None, estimate):
        assert final_usage(estimate, ends, estimate) is None
        assert final_usage(None, None, ends) is None
    assert final_usage(first, None) is first


def test_a_response_tells_what_went_in_as_the_beginning_did_if_the_end_does_not() -> None:
    end = MessageDelta(StopReason.END_TURN, usage=Usage(output=2))
    told_ = rs.told(MessageStart("", "", Usage(input=3)), end, MessageStop())[-1]["response"]["usage"]
    assert (told_["input_tokens"], told_["output_tokens"], told_["total_tokens"]) == (3, 2, 5)
