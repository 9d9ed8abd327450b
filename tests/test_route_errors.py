"""pipeline.route: errors, and the record of an exchange."""

import json
from typing import Any

import pytest

from pipeline.errors import ErrorKind
from pipeline.events import StopReason, StreamError, Usage
from pipeline.limits import Limits
from pipeline.outcome import Verdict
from pipeline.stage import Chain
from tests.canonical import CUT
from tests.exchange import Got, answered, calls, opened, route, whole
from tests.support import (
    DONE,
    call,
    chunk,
    finish,
    fragment,
    read,
    sse,
    text,
    usage,
)

HELLO = sse(text("hello"), finish(), usage(), DONE)
SAYS_HELLO = whole(content="hello")
FORMS = [True, False]
SLOW = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}


# Errors


def failed(stream: bool, *reads: bytes, **members: Any) -> Got:
    """What a client gets of an answer that failed before anything of it was said."""
    got = answered(opened(stream), *reads, **members)
    assert not got.is_stream
    assert got.exchange.outcome.verdict in (Verdict.FAILED, Verdict.CUT)
    return got


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(
    ("status", "body", "due", "kind", "message"),
    [
        (400, b'{"error": {"message": "bad", "param": "x"}}', 400, "invalid_request_error", "bad"),
        (
            400,
            b'{"error": {"code": "context_length_exceeded", "message": "long"}}',
            400,
            "invalid_request_error",
            "prompt is too long: long",
        ),
        (401, b'{"error": {"message": "bad key"}}', 401, "authentication_error", "bad key"),
        (402, b'{"error": {"message": "pay"}}', 402, "billing_error", "pay"),
        (403, b'{"error": {"message": "no"}}', 403, "permission_error", "no"),
        (404, b'{"error": {"message": "no such model"}}', 404, "not_found_error", "no such model"),
        (413, b"", 413, "request_too_large", "the upstream answered with status 413"),
        (429, json.dumps(SLOW).encode(), 429, "rate_limit_error", "slow down"),
        (500, b"<html><h1>oops</h1>", 500, "api_error", "the upstream answered with status 500"),
        (500, b'{"error": "boom"}', 500, "api_error", "boom"),
        (502, b'{"cut', 502, "api_error", "the upstream answered with status 502"),
        (503, b"upstream connect error", 529, "overloaded_error", "upstream connect error"),
        (504, b"", 504, "timeout_error", "the upstream answered with status 504"),
        (529, b"", 529, "overloaded_error", "the upstream answered with status 529"),
        (302, b"", 502, "api_error", "the upstream answered with status 302"),
    ],
)
def test_an_upstreams_error_is_one_in_the_clients_words(
    stream: bool, status: int, body: bytes, due: int, kind: str, message: str
) -> None:
    got = failed(stream, body, status=status, headers={"retry-after": "3"})
    assert (got.status, got.error) == (due, {"type": kind, "message": message})
    assert got.head is not None
    assert got.head.headers["retry-after"] == "3"


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(
    ("body", "due", "kind", "verdict"),
    [
        (b"<html>busy</html>", 502, "api_error", Verdict.FAILED),
        (b"Not Found", 502, "api_error", Verdict.FAILED),
        (b'"text"', 502, "api_error", Verdict.FAILED),
        (b"{}", 502, "api_error", Verdict.FAILED),
        (json.dumps(SLOW).encode(), 429, "rate_limit_error", Verdict.FAILED),
        (sse(SLOW), 429, "rate_limit_error", Verdict.FAILED),
        (b'{"error": {"code": 503, "message": "busy"}}', 529, "overloaded_error", Verdict.FAILED),
        (b"", 502, "api_error", Verdict.CUT),
        (b"\n\n", 502, "api_error", Verdict.CUT),
        (SAYS_HELLO[:50], 502, "api_error", Verdict.CUT),
        (b": comment\n\n", 502, "api_error", Verdict.CUT),
    ],
)
def test_what_is_no_answer_is_an_error_though_its_status_is_a_success(
    stream: bool, body: bytes, due: int, kind: str, verdict: Verdict
) -> None:
    got = failed(stream, body)
    assert (got.status, got.error["type"]) == (due, kind)
    assert got.exchange.outcome.verdict is verdict


@pytest.mark.parametrize("stream", FORMS)
def test_a_connection_that_breaks_before_the_first_byte_is_an_error_with_a_status(stream: bool) -> None:
    got = failed(stream, cause=CUT)
    assert (got.status, got.error) == (502, {"type": "api_error", "message": "the upstream went away"})
    assert got.exchange.outcome.verdict is Verdict.CUT


@pytest.mark.parametrize("cause", [None, CUT])
@pytest.mark.parametrize("body", [sse(text("a")), sse(text("a"), SLOW), sse(call(0, "i", "f", '{"x'))])
def test_an_error_behind_the_beginning_is_told_in_a_stream_and_is_all_of_a_whole_answer(
    body: bytes, cause: StreamError | None
) -> None:
    streamed = answered(opened(), body, cause=cause)
    assert (streamed.status, streamed.is_stream) == (200, True)
    assert read(streamed.body).error == streamed.error
    gathered = answered(opened(False), body, cause=cause)
    assert (gathered.status, gathered.error) == (429 if b"slow" in body else 502, streamed.error)


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("arguments", ["[1]", '{"x":', "text"])
def test_a_whole_answer_with_invalid_arguments_fails(stream: bool, arguments: str) -> None:
    got = answered(opened(stream), whole("tool_calls", content="a", tool_calls=calls(("i", "f", arguments))))
    assert got.is_stream == stream
    assert got.status == (200 if stream else 502)
    assert got.error == {"type": "api_error", "message": "the arguments of the call of 'f' are no JSON object"}
    assert got.exchange.outcome.error is not None
    assert got.exchange.outcome.error.kind is ErrorKind.INVALID_TOOL_ARGUMENTS


def test_an_answer_that_is_too_large_fails() -> None:
    small = route(limits=Limits(answer_bytes=1_000))
    for body in (whole(content="x" * 2_000), sse(*[text("x" * 50)] * 20, finish(), DONE)):
        got = answered(opened(False, on=small), body)
        assert (got.status, got.error["type"]) == (502, "api_error")
        assert got.error["message"] == "the answer is larger than 1000 bytes"


def test_a_large_body_of_an_error_is_not_read_to_its_end() -> None:
    small = route(limits=Limits(error_bytes=1_000))
    exchange = opened(on=small)
    reply = exchange.reply(500, {})
    assert isinstance(reply.chain, Chain)
    assert not reply.chain.receive([b"x" * 2_000])
    assert reply.chain.ended
    assert reply.chain.held == 1_000
    assert json.loads(b"".join(reply.chain.receive_eof()))["error"]["message"] == "x" * 500


def test_an_upstream_that_does_not_answer_is_an_error() -> None:
    exchange = opened()
    refused = exchange.failed(StreamError(ErrorKind.TIMEOUT, "the upstream did not answer", retryable=True))
    assert refused.head.status == 504
    assert json.loads(refused.body)["error"] == {"type": "timeout_error", "message": "the upstream did not answer"}
    assert exchange.outcome.verdict is Verdict.FAILED


# The record


@pytest.mark.parametrize("stream", FORMS)
def test_the_outcome_says_how_it_ended_and_what_it_cost(stream: bool) -> None:
    outcome = answered(opened(stream), HELLO).exchange.outcome
    assert (outcome.verdict, outcome.stop_reason, outcome.error) == (Verdict.COMPLETE, StopReason.END_TURN, None)
    assert (outcome.usage, outcome.estimated) == (Usage(10, output=5), False)
    assert (outcome.recovered, outcome.repairs, outcome.hold) == (0, 0, 0.0)


@pytest.mark.parametrize("stream", FORMS)
def test_a_cost_that_the_upstream_does_not_tell_is_an_estimate(stream: bool) -> None:
    exchange = opened(stream)
    outcome = answered(exchange, sse(text("a"), finish(), DONE)).exchange.outcome
    assert outcome.usage == exchange.facts.usage
    assert outcome.estimated


def test_a_client_that_leaves_cancels_the_exchange_and_its_cost_stays_known() -> None:
    exchange = opened()
    reply = exchange.reply(200, {})
    assert isinstance(reply.chain, Chain)
    reply.chain.receive([sse(text("a"))])
    exchange.cancel()
    assert exchange.outcome.verdict is Verdict.CANCELLED
    assert (exchange.outcome.usage, exchange.outcome.estimated) == (exchange.facts.usage, True)
    assert exchange.outcome.error is None


def test_a_client_that_leaves_behind_the_end_changes_nothing() -> None:
    exchange = answered(opened(), HELLO).exchange
    exchange.cancel()
    assert exchange.outcome.verdict is Verdict.COMPLETE


def test_what_was_mended_is_counted() -> None:
    same = [fragment(0, "i", "f", "{}"), fragment(1, "i", "g", "{}")]
    exchange = answered(opened(), sse(chunk({"tool_calls": same}), finish("tool_calls"), DONE)).exchange
    assert exchange.outcome.repairs == 1


def test_the_ledger_holds_what_was_lost_both_ways() -> None:
    exchange = opened(top_k=7)
    answered(exchange, sse(chunk({"content": "a", "audio": {"data": "x"}}), finish(), DONE))
    assert [(entry["direction"], entry["path"]) for entry in exchange.ledger] == [
        ("request", "top_k"),
        ("response", "choices[].delta.audio"),
        ("response", "usage"),
    ]
