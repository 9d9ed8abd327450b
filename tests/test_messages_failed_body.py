"""A Messages body with an error and nothing else is that error, whatever it calls itself."""

import json
from typing import Any

import pytest

from pipeline.outcome import Verdict
from tests.alike import Json, asked
from tests.exchange import answered, route
from tests.lawful import GRAMMARS

ERROR: Json = {"type": "overloaded_error", "message": "BOOM"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("client", GRAMMARS)
@pytest.mark.parametrize("content", [[], "", None, [{}]])
@pytest.mark.parametrize("beside", [{}, {"type": "message", "role": "assistant", "stop_reason": "end_turn"}])
def test_an_error_without_content_is_no_success(
    client: str, content: Any, beside: Json, stream: bool, framed: bool
) -> None:
    body = json.dumps({**beside, "content": content, "error": ERROR}).encode()
    exchange = route(client, "messages").open(asked(client, stream=stream))
    got = answered(exchange, b"event: message\ndata: " + body + b"\n\n" if framed else body)
    assert exchange.outcome.verdict is Verdict.FAILED
    assert b"BOOM" in got.body
    told = exchange.outcome.begun or (framed and client != "chat")  # in the stream that the upstream told it in
    assert (got.is_stream and told) or got.status in (503, 529)


@pytest.mark.parametrize("client", GRAMMARS)
@pytest.mark.parametrize("error", [None, {}, "", 0])
def test_one_that_says_nothing_is_none(client: str, error: Any) -> None:
    exchange = route(client, "messages").open(asked(client, stream=False))
    body = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn", "error": error}
    got = answered(exchange, json.dumps(body).encode())
    assert (got.status, exchange.outcome.verdict) == (200, Verdict.COMPLETE)


@pytest.mark.parametrize("client", [client for client in GRAMMARS if client != "messages"])
def test_beside_content_an_error_is_a_member_that_is_lost(client: str) -> None:
    exchange = route(client, "messages").open(asked(client, stream=False))
    body = {"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "error": ERROR}
    got = answered(exchange, json.dumps(body).encode())
    assert got.status == 200
    assert b"hello" in got.body
    assert "error" in [entry["path"] for entry in exchange.ledger]
