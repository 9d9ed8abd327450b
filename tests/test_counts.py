"""Counts of tokens that no client could read to the digit."""

import json
from typing import Any

import pytest

from pipeline.counts import MOST, count_of
from pipeline.ledger import Ledger
from tests.exchange import answered, route
from tests.support import sse

HUGE = 10**25
TEXT = {"type": "output_text", "text": "x", "annotations": []}
ITEM = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat": {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": HUGE, "completion_tokens": 3},
    },
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": HUGE, "output_tokens": 3},
    },
    "responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "created_at": 1,
        "output": [ITEM],
        "usage": {"input_tokens": HUGE, "output_tokens": 3, "total_tokens": HUGE + 3},
    },
}
GO = [{"role": "user", "content": "go"}]
ASKED: dict[str, dict[str, Any]] = {
    "chat": {"messages": GO, "stream_options": {"include_usage": True}},
    "messages": {"max_tokens": 99, "messages": GO},
    "responses": {"input": "go"},
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", ASKED)
@pytest.mark.parametrize("upstream", ANSWERS)
def test_a_count_that_no_client_can_read_is_bounded_and_recorded_but_over_one_dialect(
    upstream: str, client: str, stream: bool
) -> None:
    asked = json.dumps({"model": "m", "stream": stream, **ASKED[client]}).encode()
    got = answered(route(client, upstream).open(asked), json.dumps(ANSWERS[upstream]).encode())
    bounded = [entry["path"] for entry in got.exchange.ledger if entry["action"] == f"bounded to {MOST}"]
    told = str(MOST if upstream != client else HUGE).encode()
    if upstream != client:
        assert told in got.body
        assert bounded == ["usage"]
    elif not stream:
        assert told in got.body
        assert bounded == []


def test_a_count_in_a_stream_is_bounded_too() -> None:
    start = {"type": "message_start", "message": {**ANSWERS["messages"], "content": [], "stop_reason": None}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": HUGE}}
    body = sse(start, end, {"type": "message_stop"})
    asked = json.dumps({"model": "m", "stream": True, **ASKED["chat"]}).encode()
    got = answered(route("chat", "messages").open(asked), body)
    assert f'"completion_tokens":{MOST}'.encode() in got.body


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (3, 3),
        (3.0, 3),
        (-1, None),
        (None, None),
        (MOST, MOST),
        (MOST + 1, MOST),
        (1e300, MOST),
        (True, None),
        ("3", None),
    ],
)
def test_a_count_is_a_whole_number_within_its_bound(value: Any, count: int | None) -> None:
    ledger = Ledger()
    assert count_of(value, ledger) == count
    assert len(ledger) == (value is not None and count != value)
