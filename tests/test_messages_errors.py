"""Errors of a Messages upstream: in a stream, and as an HTTP answer."""

from typing import Any

import pytest

from pipeline.errors import RETRYABLE, STATUS, ErrorKind
from pipeline.events import StreamError
from stages.dialects.messages import DIALECT
from stages.dialects.messages.errors import KINDS, error_body, error_in

BOOM = StreamError(ErrorKind.OVERLOADED, "boom", "overloaded_error", retryable=True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}, "request_id": "r"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom", "details": None}},
        {"error": {"type": "Overloaded_Error".lower(), "message": "boom"}},
        [{"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}],
    ],
)
def test_an_error_is_read_in_every_form(event: Any) -> None:
    assert error_in(event) == BOOM


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"type": "error"}, StreamError(ErrorKind.API, "the upstream failed", "", retryable=True)),
        ({"type": "error", "message": "boom"}, StreamError(ErrorKind.API, "boom", "", retryable=True)),
        ({"type": "error", "error": "boom"}, StreamError(ErrorKind.API, "boom", "error", retryable=True)),
        ({"error": {"message": "boom", "code": 429}}, StreamError(ErrorKind.RATE_LIMIT, "boom", "429", retryable=True)),
        ({"message": "boom"}, StreamError(ErrorKind.API, "boom", "", retryable=True)),
        ({"detail": "boom"}, StreamError(ErrorKind.API, "boom", "", retryable=True)),
        (  # Bedrock's exceptions
            {"type": "error", "error": {"type": "throttlingException", "message": "boom"}},
            StreamError(ErrorKind.RATE_LIMIT, "boom", "throttlingException", retryable=True),
        ),
        (
            {"type": "error", "error": {"type": "api_error", "message": "x", "details": {"error_code": "c"}}},
            StreamError(ErrorKind.API, "x", "c", retryable=True),
        ),
    ],
)
def test_an_error_tells_what_it_can(event: Any, error: StreamError) -> None:
    assert error_in(event) == error


@pytest.mark.parametrize("payload", ["boom", ["boom"], {"message": "boom"}, {"type": "weird", "message": "boom"}])
def test_whatever_comes_under_the_name_of_an_error_is_one(payload: Any) -> None:
    found = error_in(payload, b"error")
    assert found is not None
    assert found.message == "boom"


@pytest.mark.parametrize(
    "event",
    [{}, [], None, "x", {"type": "ping"}, {"type": "weird", "message": "x"}, {"error": None}, {"message": {"id": "m"}}],
)
def test_what_is_no_error_is_none(event: Any) -> None:
    assert error_in(event) is None


@pytest.mark.parametrize(("word", "kind"), KINDS.items())
def test_the_type_tells_the_class(word: str, kind: ErrorKind) -> None:
    read = error_in({"type": "error", "error": {"type": word.upper(), "message": "x"}})
    assert read == StreamError(kind, "x", word.upper(), retryable=kind in RETRYABLE)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "The request exceeds the context window of this model",
    ],
)
def test_what_the_model_cannot_take_is_told_by_the_message(message: str) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    for found in (error_in(body), DIALECT.read_error(400, body)):
        assert found == StreamError(ErrorKind.CONTEXT_LENGTH, message, "invalid_request_error")


def said(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "x"}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, said("invalid_request_error"), ErrorKind.INVALID_REQUEST),
        (401, said("authentication_error"), ErrorKind.AUTHENTICATION),
        (402, said("billing_error"), ErrorKind.BILLING),
        (403, said("permission_error"), ErrorKind.PERMISSION),
        (404, said("not_found_error"), ErrorKind.NOT_FOUND),
        (413, said("request_too_large"), ErrorKind.REQUEST_TOO_LARGE),
        (429, said("rate_limit_error"), ErrorKind.RATE_LIMIT),
        (500, said("api_error"), ErrorKind.API),
        (504, said("timeout_error"), ErrorKind.TIMEOUT),
        (529, said("overloaded_error"), ErrorKind.OVERLOADED),
        (500, said("overloaded_error"), ErrorKind.OVERLOADED),
        (429, said("weird"), ErrorKind.RATE_LIMIT),
        (429, said("invalid_request_error"), ErrorKind.RATE_LIMIT),
        (403, {"message": "x"}, ErrorKind.PERMISSION),
        (503, "x", ErrorKind.OVERLOADED),
    ],
)
def test_an_http_error_is_told_by_its_body_else_by_its_status(status: int, body: Any, kind: ErrorKind) -> None:
    found = DIALECT.read_error(status, body)
    assert (found.kind, found.message, found.retryable) == (kind, "x", kind in RETRYABLE)


@pytest.mark.parametrize("body", [None, "", {}, []])
def test_an_answer_that_says_nothing_is_told_by_its_status(body: Any) -> None:
    assert DIALECT.read_error(529, body) == StreamError(
        ErrorKind.OVERLOADED, "the upstream answered with status 529", "529", retryable=True
    )


@pytest.mark.parametrize("kind", ErrorKind)
def test_an_error_that_we_wrote_comes_back_as_one_that_clients_treat_alike(kind: ErrorKind) -> None:
    back = DIALECT.read_error(STATUS[kind], error_body(StreamError(kind, "x", "c", retryable=kind in RETRYABLE)))
    assert back.message == ("prompt is too long: x" if kind is ErrorKind.CONTEXT_LENGTH else "x")
    assert (back.kind is kind) or kind is not ErrorKind.CONTEXT_LENGTH
    assert back.retryable is (kind in RETRYABLE) or kind in (ErrorKind.INTERNAL, ErrorKind.LIMIT)


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        (ErrorKind.QUOTA, 0, 402),
        (ErrorKind.QUOTA, 429, 402),
        (ErrorKind.QUOTA, 503, 402),
        (ErrorKind.QUOTA, 403, 403),
        (ErrorKind.AUTHENTICATION, 500, 401),
        (ErrorKind.CONTEXT_LENGTH, 500, 400),
        (ErrorKind.INVALID_REQUEST, 409, 409),
        (ErrorKind.RATE_LIMIT, 429, 429),
        (ErrorKind.OVERLOADED, 429, 529),
        (ErrorKind.API, 500, 500),
        (ErrorKind.LIMIT, 503, 503),
        (ErrorKind.API, 302, 500),
    ],
)
def test_no_status_asks_the_sdk_to_try_again_what_is_not_worth_it(kind: ErrorKind, status: int, told: int) -> None:
    error = StreamError(kind, "x", retryable=kind in RETRYABLE)
    assert DIALECT.write_error(error, status)[0] == told
