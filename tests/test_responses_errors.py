"""stages.dialects.responses.errors: errors in a stream, in a response, as a body, and as clients act on them."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.errors import RETRYABLE, ErrorKind
from pipeline.events import StreamError
from stages.dialects.responses import DIALECT
from stages.dialects.responses.errors import (
    CODES,
    KEPT,
    KINDS,
    error_body,
    error_in,
    failed,
    failed_error,
)

SLOW = StreamError(ErrorKind.RATE_LIMIT, "x", "invalid_request_error", retryable=True)
BOOM = StreamError(ErrorKind.API, "boom", "server_error", retryable=True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "sequence_number": 1, "code": "server_error", "message": "boom", "param": None},
        {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "boom", "param": None}},
        {"type": "error", "error": {"type": "server_error", "message": "boom"}},
        {"type": "response.error", "error": {"code": "server_error", "message": "boom"}},
        {"error": {"message": "boom", "type": "server_error", "code": None}},
        [{"error": {"message": "boom", "type": "server_error"}}],
        {"detail": "boom", "code": "server_error"},
        {"message": "boom", "code": "server_error"},
    ],
)
def test_an_error_is_read_in_every_form(event: Any) -> None:
    assert error_in(event) == BOOM


def test_an_error_that_says_nothing_is_one_all_the_same() -> None:
    assert error_in({"type": "error"}) == StreamError(ErrorKind.API, "the upstream failed", "", retryable=True)


def test_the_event_name_tells_an_error_that_its_payload_does_not() -> None:
    assert error_in({"type": "weird", "message": "boom", "code": "server_error"}, b"error") == BOOM


def test_whatever_comes_under_the_name_of_an_error_is_one() -> None:
    assert error_in("boom", b"error") == StreamError(ErrorKind.API, "boom", "", retryable=True)
    assert error_in([{}], b"error") == StreamError(ErrorKind.API, "the upstream failed", "", retryable=True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.mcp_call.failed", "error": "x"},
        {"type": "keepalive"},
        {"type": "weird", "message": "x", "detail": "y"},
        {"object": "response", "message": "x"},
        {"error": None},
        {"detail": ""},
        [{"type": "weird"}],
        [],
        {},
        "error",
        None,
    ],
)
def test_what_is_no_error_is_none(event: Any) -> None:
    assert error_in(event) is None


@pytest.mark.parametrize(("word", "kind"), KINDS.items())
def test_the_code_tells_the_class(word: str, kind: ErrorKind) -> None:
    read = error_in({"type": "error", "code": word.upper(), "message": "x"})
    assert read == StreamError(kind, "x", word.upper(), retryable=kind in RETRYABLE)


def test_why_a_response_failed_is_its_error() -> None:
    assert failed({"status": "failed", "error": {"code": "server_error", "message": "boom"}}) == BOOM


@pytest.mark.parametrize(
    ("response", "code", "retryable"),
    [({"status": "failed", "error": None}, "failed", True), ({"status": "cancelled"}, "cancelled", False)],
)
def test_a_response_that_failed_without_an_error_is_told_by_its_status(
    response: dict[str, Any], code: str, retryable: bool
) -> None:
    assert failed(response) == StreamError(
        ErrorKind.API, f"the upstream ended the response as {code}", code, retryable=retryable
    )


def test_a_response_without_anything_failed() -> None:
    assert failed({}).code == "failed"


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (
            {"error": {"message": "no key", "type": "invalid_request_error", "code": "invalid_api_key"}},
            401,
            StreamError(ErrorKind.AUTHENTICATION, "no key", "invalid_api_key"),
        ),
        ({"error": {"message": "x", "code": "y"}}, 429, StreamError(ErrorKind.RATE_LIMIT, "x", "y", retryable=True)),
        (
            None,
            502,
            StreamError(ErrorKind.API, "the upstream answered with status 502", "502", retryable=True),
        ),
        (None, 404, StreamError(ErrorKind.NOT_FOUND, "the upstream answered with status 404", "404")),
        ("Bad Gateway", 502, StreamError(ErrorKind.API, "Bad Gateway", "", retryable=True)),
        ("teapot", 418, StreamError(ErrorKind.INVALID_REQUEST, "teapot", "")),
        ({"errors": [{"message": "multi"}]}, 503, StreamError(ErrorKind.OVERLOADED, "multi", "", retryable=True)),
        ({"error": {"message": "x", "type": "invalid_request_error"}}, 429, SLOW),
        ({"detail": "no"}, 403, StreamError(ErrorKind.PERMISSION, "no", "")),
        ("busy", 503, StreamError(ErrorKind.OVERLOADED, "busy", "", retryable=True)),
        (
            {"error": {"message": "large", "type": "invalid_request_error"}},
            413,
            StreamError(ErrorKind.REQUEST_TOO_LARGE, "large", "invalid_request_error"),
        ),
    ],
)
def test_an_http_error_is_told_by_its_body_else_by_its_status(body: Any, status: int, error: StreamError) -> None:
    assert DIALECT.read_error(status, body) == error


@pytest.mark.parametrize("kind", ErrorKind)
def test_an_error_body_comes_back_as_its_class(kind: ErrorKind) -> None:
    from pipeline.errors import STATUS

    body = error_body(StreamError(kind, "x", "c", retryable=kind in RETRYABLE))
    assert body["error"].keys() == {"message", "type", "param", "code"}
    back = DIALECT.read_error(STATUS[kind], body)
    assert back.message == "x"
    assert back.retryable is (kind in RETRYABLE) or kind is ErrorKind.INTERNAL or kind is ErrorKind.LIMIT


def test_an_error_without_a_code_has_none() -> None:
    assert error_body(StreamError(ErrorKind.API, "x"))["error"]["code"] is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StreamError(ErrorKind.CONTEXT_LENGTH, "x", "string_above_max_length"), "context_length_exceeded"),
        (StreamError(ErrorKind.QUOTA, "x"), "insufficient_quota"),
        (StreamError(ErrorKind.BILLING, "x"), "insufficient_quota"),
        (StreamError(ErrorKind.RATE_LIMIT, "x", "1302", retryable=True), "rate_limit_exceeded"),
        # Codex gives up at the codes of an overloaded server, though it is worth asking again
        (StreamError(ErrorKind.OVERLOADED, "x", "overloaded_error", retryable=True), "server_error"),
        (StreamError(ErrorKind.OVERLOADED, "x", "server_is_overloaded", retryable=True), "server_error"),
        (StreamError(ErrorKind.OVERLOADED, "x", "slow_down", retryable=True), "server_error"),
        (StreamError(ErrorKind.PERMISSION, "x", "bio_policy"), "bio_policy"),
        (StreamError(ErrorKind.CUT, "x", "stream_cut", retryable=True), "server_error"),
        (StreamError(ErrorKind.AUTHENTICATION, "x", "invalid_api_key"), "invalid_prompt"),
        (StreamError(ErrorKind.LIMIT, "x", "held_bytes"), "invalid_prompt"),
    ],
)
def test_a_response_that_failed_has_a_code_that_clients_act_on(error: StreamError, code: str) -> None:
    assert failed_error(error) == {"code": code, "message": "x"}


def test_a_response_that_failed_always_has_a_message() -> None:
    assert failed_error(StreamError(ErrorKind.API, "", retryable=True))["message"] == "the upstream failed"


def test_every_code_that_is_written_is_one_that_may_stand_there() -> None:
    assert set(CODES.values()) <= KEPT


@pytest.mark.parametrize("wrap", [lambda event: event, lambda event: [{"type": "response.created"}, event]])
def test_a_response_that_failed_tells_why_also_as_the_body_of_an_http_error(wrap: Callable[[Any], Any]) -> None:
    event = {"type": "response.failed", "response": {"error": {"code": "server_is_overloaded", "message": "x"}}}
    assert DIALECT.read_error(429, wrap(event)) == StreamError(
        ErrorKind.OVERLOADED, "x", "server_is_overloaded", retryable=True
    )
