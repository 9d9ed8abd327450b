"""An upstream whose counts can be read in part: what cannot is no count, and no estimate is told in its place."""

import json
from itertools import product
from typing import Any

import pytest

from pipeline.events import MessageDelta, MessageStart, StopReason, Usage
from pipeline.message import Message, assemble, disassemble, final_usage
from tests import messages_stream as ms
from tests.exchange import answered
from tests.test_untold_usage import CROSSING, DIALECTS, FORMS, asked, says_hi, told

WORDS = {
    "chat": ("prompt_tokens", "completion_tokens"),
    "messages": ("input_tokens", "output_tokens"),
    "responses": ("input_tokens", "output_tokens"),
}
"""What a dialect calls what went in and what came out."""
ODD: list[Any] = ["5", -1, {}]
"""What is no count."""


def counts(upstream: str, at: int, odd: Any) -> dict[str, Any]:
    """The one count is odd, the other is not."""
    usage = dict.fromkeys(WORDS[upstream], 7)
    usage[WORDS[upstream][at]] = odd
    return usage


@pytest.mark.parametrize("odd", [*ODD, "absent"], ids=str)
@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize(("client", "upstream"), CROSSING)
def test_what_went_in_is_told_to_nobody_that_can_do_without_if_it_cannot_be_read(
    client: str, upstream: str, arrives: bool, leaves: bool, odd: Any
) -> None:
    exchange = asked(client, upstream, leaves)
    usage = counts(upstream, 0, odd)
    if odd == "absent":
        del usage[WORDS[upstream][0]]
    got = told(client, answered(exchange, says_hi(upstream, arrives, usage=usage)))
    assert exchange.facts.usage is not None
    due = exchange.facts.usage.input if client == "messages" else 0
    assert due > 0 or client != "messages"
    assert [got[name] for name in WORDS[client]] == [due, 7]
    assert (exchange.outcome.usage, exchange.outcome.estimated) == (Usage(output=7), False)


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize(("client", "upstream"), CROSSING)
def test_what_came_out_is_none_if_it_cannot_be_read(
    client: str, upstream: str, arrives: bool, leaves: bool, odd: Any
) -> None:
    exchange = asked(client, upstream, leaves)
    got = told(client, answered(exchange, says_hi(upstream, arrives, usage=counts(upstream, 1, odd))))
    assert [got[name] for name in WORDS[client]] == [7, 0]
    assert (exchange.outcome.usage, exchange.outcome.estimated) == (Usage(input=7), False)
    assert any(entry["path"] == "usage" for entry in exchange.ledger)


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize("client", DIALECTS)
def test_over_its_own_dialect_no_estimate_stands_for_it_either(
    client: str, arrives: bool, leaves: bool, at: int
) -> None:
    exchange = asked(client, client, leaves)
    raw = says_hi(client, arrives, usage=counts(client, at, "5"))
    answer = answered(exchange, raw)
    if client == "messages" and arrives and leaves:
        assert answer.body == raw
        return
    if client == "messages" and leaves:  # it must have a number when it begins
        events = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith(b"data: {")]
        assert exchange.facts.usage is not None
        assert events[0]["message"]["usage"]["input_tokens"] == (exchange.facts.usage.input, 7)[at]
        assert events[-2]["usage"] == ({"output_tokens": 7}, {"input_tokens": 7, "output_tokens": 0})[at]
        return
    got = told(client, answer)
    assert got[WORDS[client][1 - at]] == 7
    assert got[WORDS[client][at]] in (0, "5")
    assert exchange.outcome.usage == (Usage(output=7), Usage(input=7))[at]


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize(("client", "at"), [*product(["chat", "responses"], [0, 1])])
def test_nor_where_the_beginning_told_it(client: str, at: int, leaves: bool) -> None:
    block = [ms.start({"type": "text", "text": ""}), ms.text("hi"), ms.stop()]
    end = ms.event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None})
    raw = ms.sse([ms.begin(usage=counts("messages", at, "5")), *block, end, ms.END])
    got = told(client, answered(asked(client, "messages", leaves), raw))
    assert [got[name] for name in WORDS[client]] == [[0, 7], [7, 0]][at]


UNCOUNTED = [{}, {"usage": None}, {"usage": {}}, {"usage": {"odd": 3}}, {"usage": {"input_tokens": "5"}}]


@pytest.mark.parametrize("usage", UNCOUNTED, ids=str)
def test_a_whole_messages_answer_without_counts_is_streamed_with_an_estimate_that_is_called_one(usage: Any) -> None:
    exchange = asked("messages", "messages", True)
    got = answered(exchange, says_hi("messages", False, **usage))
    events = [json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: {")]
    begun, ended = events[0]["message"]["usage"], events[-2]["usage"]
    assert exchange.facts.usage is not None
    assert (begun["input_tokens"], begun["output_tokens"]) == (exchange.facts.usage.input, 0)
    assert ended == {"output_tokens": 0}
    assert (exchange.outcome.usage, exchange.outcome.estimated) == (exchange.facts.usage, True)


@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize("client", DIALECTS)
def test_over_its_own_dialect_what_nobody_counted_is_called_an_estimate(
    client: str, arrives: bool, leaves: bool
) -> None:
    exchange = asked(client, client, leaves)
    answered(exchange, says_hi(client, arrives))
    assert (exchange.outcome.usage, exchange.outcome.estimated) == (exchange.facts.usage, True)


def test_an_estimate_says_nothing_of_what_went_in() -> None:
    estimate = Usage(input=9)
    assert final_usage(estimate, Usage(output=2), estimate) == Usage(output=2)
    events = [MessageStart("", "", estimate), MessageDelta(StopReason.END_TURN, usage=Usage(output=2))]
    assert assemble(events, estimate).usage == Usage(output=2)
    assert assemble(events[:1], estimate).usage is None


def test_a_message_begins_with_an_estimate_if_its_counts_do_not_tell_what_went_in() -> None:
    estimate = Usage(input=9)
    for usage, begun in (
        (None, estimate),
        (Usage(output=2), estimate),
        (Usage(input=1), Usage(input=1)),
        (Usage(cache_read=1), Usage(cache_read=1)),
        (Usage(cache_write=1), Usage(cache_write=1)),
    ):
        first, last = [*disassemble(Message("", "", usage=usage), estimate)][:2]
        assert isinstance(first, MessageStart)
        assert isinstance(last, MessageDelta)
        assert (first.usage, last.usage) == (begun, usage)
    first = next(disassemble(Message("", "", usage=Usage(output=2))))
    assert isinstance(first, MessageStart)
    assert first.usage == Usage(output=2)
