"""Errors in a Chat stream, in every form that vendors give them."""

from typing import Any

import pytest

from pipeline.errors import RETRYABLE, ErrorKind
from pipeline.events import StreamError
from stages.dialects.chat import DIALECT
from stages.dialects.chat.errors import (
    FAILED_FINISH,
    KINDS,
    STATUS_CODES,
    error_body,
    error_in,
    failed_finish,
)
from tests.support import finish, text, usage


def failed(chunk: Any, name: bytes = b"") -> StreamError:
    """The error that a payload is."""
    error = error_in(chunk, name)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("chunk", "kind", "code"),
    [
        ({"error": {"message": "boom", "type": "server_error", "param": None, "code": None}}, "api", "server_error"),
        (
            {"error": {"message": "boom", "type": "x", "code": "rate_limit_exceeded"}},
            "rate_limit",
            "rate_limit_exceeded",
        ),
        ({"error": {"message": "boom", "type": "insufficient_quota"}}, "quota", "insufficient_quota"),
        (
            {"error": {"message": "boom", "code": "context_length_exceeded"}},
            "context_length",
            "context_length_exceeded",
        ),
        # xAI and Fireworks: a bare string
        ({"code": "boom code", "error": "boom"}, "api", "boom code"),
        ({"error": "boom"}, "api", ""),
        ({"error": 503, "message": "boom"}, "overloaded", "503"),
        # Gemini: an array
        ([{"error": {"code": 429, "message": "boom", "status": "RESOURCE_EXHAUSTED"}}], "rate_limit", "429"),
        ([7, {"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}}], "overloaded", "503"),
        # OpenRouter: a number for a code, beside choices
        ({**text("a"), "error": {"code": 502, "message": "boom"}}, "api", "502"),
        ({"choices": [], "error": {"code": 402, "message": "boom"}}, "billing", "402"),
        ({"choices": [], "error": {"code": 408, "message": "boom"}}, "timeout", "408"),
        # Copilot
        ({"choices": None, "error": {"code": "model_not_found", "message": "boom"}}, "not_found", "model_not_found"),
        # old vLLM, Mistral
        ({"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}, "invalid_request", "400"),
        (
            {"object": "error", "message": "boom", "type": "invalid_request_error", "code": "1210"},
            "invalid_request",
            "1210",
        ),
        # Groq
        ({**text("a"), "x_groq": {"error": "boom"}}, "api", ""),
        (
            {**text("a"), "x_groq": {"error": {"message": "boom", "code": "too_many_requests"}}},
            "rate_limit",
            "too_many_requests",
        ),
        # Anthropic's shape
        ({"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}, "overloaded", "overloaded_error"),
        # Zhipu: numbers as text
        ({"error": {"code": "1302", "message": "boom"}}, "rate_limit", "1302"),
        ({"error": {"code": "1113", "message": "boom"}}, "quota", "1113"),
        # MiniMax
        ({"base_resp": {"status_code": 1002, "status_msg": "boom"}}, "rate_limit", "1002"),
        ({**text("a"), "base_resp": {"status_code": 1004, "status_msg": "boom"}}, "authentication", "1004"),
        ({"base_resp": {"status_code": 9999, "status_msg": "boom"}}, "api", "9999"),
        ({"base_resp": {"status_code": "odd", "status_msg": "boom"}}, "api", "odd"),
        # FastAPI
        ({"detail": "boom"}, "api", ""),
        ({"detail": [{"msg": "boom"}, {"msg": ""}]}, "api", ""),
        ({"status_code": 429, "message": "boom"}, "rate_limit", "429"),
        # others
        ({"message": "boom", "code": 401}, "authentication", "401"),
        ({"errors": [{"message": "boom", "code": 10000}]}, "api", "10000"),
        ({"error": [{"message": "boom"}]}, "api", ""),
        ({"error": ["boom"]}, "api", ""),
        ({"error": [["boom"]]}, "api", ""),
        ({"error": {"message": {"message": "boom"}}}, "api", ""),
        ({"error": {"detail": "boom", "status_code": 404}}, "not_found", "404"),
        ({"error": {"message": "boom", "code": True}}, "api", "True"),
        ({"error": {"message": "boom", "code": "4" * 5000}}, "api", "4" * 5000),
    ],
)
def test_an_error_is_read_in_the_form_it_comes_in(chunk: Any, kind: str, code: str) -> None:
    error = failed(chunk)
    assert error.message == "boom"
    assert (error.kind, error.code) == (ErrorKind(kind), code)
    assert error.retryable == (error.kind in RETRYABLE)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"detail": [{"loc": ["body"], "msg": "boom"}, {"msg": ""}]}, "body: boom"),
        ({"error": {"type": "server_error"}}, "the upstream failed: server_error"),
        ({"error": {"code": 500}}, "the upstream failed: 500"),
        ({"error": True}, "the upstream failed"),
        ({"error": {"message": 7}}, "the upstream failed"),
    ],
)
def test_an_error_without_a_message_is_given_one(chunk: Any, message: str) -> None:
    assert failed(chunk).message == message


@pytest.mark.parametrize(
    "chunk", ["boom", {"message": "boom"}, {"error": {"message": "boom"}}, ["boom"], {"type": "boom"}]
)
def test_whatever_comes_under_the_event_name_error_is_one(chunk: Any) -> None:
    assert "boom" in failed(chunk, b"error").message


@pytest.mark.parametrize("name", [b"", b"message", b"error"])
def test_a_chunk_with_choices_is_no_error_whatever_its_name(name: bytes) -> None:
    assert error_in(text("a"), name) is None
    assert error_in(finish(), name) is None


@pytest.mark.parametrize(
    "chunk",
    [
        usage(),
        {"error": None, "choices": []},
        {"error": "", "choices": []},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "choices": []},
        {"base_resp": None, "x_groq": {"id": "r"}, "choices": []},
        {"usage": {}, "message": "kept for the usage's sake"},
        {"choices": [], "message": "m", "detail": "d", "errors": ["e"]},
        {"message": {"role": "assistant"}},
        {"errors": {}},
        {"type": "ping"},
        {},
        [],
        [{"choices": []}],
        "text",
        7,
        None,
    ],
)
def test_what_is_no_error_is_none(chunk: Any) -> None:
    assert error_in(chunk) is None


@pytest.mark.parametrize("nothing", ["", [], None, 0])
def test_nothing_under_the_event_name_error_is_none(nothing: Any) -> None:
    assert error_in(nothing, b"error") is None


@pytest.mark.parametrize(("word", "kind"), sorted(KINDS.items()))
def test_the_words_of_errors_are_known_in_any_case(word: str, kind: ErrorKind) -> None:
    for place in ("code", "type", "status"):
        assert failed({"error": {"message": "boom", place: word.upper()}}).kind is kind


@pytest.mark.parametrize(("code", "kind"), sorted(STATUS_CODES.items()))
def test_the_numbers_of_minimax_are_known(code: int, kind: ErrorKind) -> None:
    assert failed({"base_resp": {"status_code": code, "status_msg": "boom"}}).kind is kind


@pytest.mark.parametrize(("reason", "kind"), sorted(FAILED_FINISH.items()))
def test_a_finish_reason_may_be_a_failure(reason: str, kind: ErrorKind) -> None:
    error = failed_finish(reason)
    assert error is not None
    assert (error.kind, error.code) == (kind, reason)
    assert reason in error.message
    assert failed_finish("stop") is None


# Written


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (StreamError(ErrorKind.INVALID_REQUEST, "x"), "invalid_request_error", None),
        (StreamError(ErrorKind.AUTHENTICATION, "x", "invalid_api_key"), "authentication_error", "invalid_api_key"),
        (StreamError(ErrorKind.BILLING, "x"), "billing_error", None),
        (StreamError(ErrorKind.PERMISSION, "x", "bio_policy"), "permission_error", "bio_policy"),
        (StreamError(ErrorKind.NOT_FOUND, "x", "model_not_found"), "not_found_error", "model_not_found"),
        (StreamError(ErrorKind.REQUEST_TOO_LARGE, "x"), "invalid_request_error", "request_too_large"),
        (StreamError(ErrorKind.CONTEXT_LENGTH, "x", "too_long"), "invalid_request_error", "context_length_exceeded"),
        (StreamError(ErrorKind.RATE_LIMIT, "x", "429"), "rate_limit_error", "rate_limit_exceeded"),
        (StreamError(ErrorKind.RATE_LIMIT, "x", "1302"), "rate_limit_error", "1302"),
        (StreamError(ErrorKind.QUOTA, "x", "usage_limit_reached"), "insufficient_quota", "insufficient_quota"),
        (StreamError(ErrorKind.OVERLOADED, "x", "slow_down"), "overloaded_error", "slow_down"),
        (StreamError(ErrorKind.OVERLOADED, "x", "rate_limit_error"), "overloaded_error", None),
        (StreamError(ErrorKind.TIMEOUT, "x"), "timeout_error", None),
        (StreamError(ErrorKind.API, "x", "server_error"), "server_error", None),
        (StreamError(ErrorKind.CUT, "x", "stream_cut"), "server_error", "stream_cut"),
        (StreamError(ErrorKind.INVALID_RESPONSE, "x"), "server_error", None),
        (StreamError(ErrorKind.INVALID_TOOL_ARGUMENTS, "x"), "server_error", None),
        (StreamError(ErrorKind.LIMIT, "x", "held_bytes"), "server_error", "held_bytes"),
        (StreamError(ErrorKind.INTERNAL, "x"), "server_error", None),
    ],
)
def test_an_error_is_written_with_the_words_of_its_class(error: StreamError, kind: str, code: str | None) -> None:
    assert error_body(error) == {"error": {"message": "x", "type": kind, "param": None, "code": code}}


def test_an_error_always_has_a_message() -> None:
    assert error_body(StreamError(ErrorKind.API, ""))["error"]["message"] == "the upstream failed"


OURS = {
    ErrorKind.CUT,
    ErrorKind.INVALID_RESPONSE,
    ErrorKind.INVALID_TOOL_ARGUMENTS,
    ErrorKind.LIMIT,
    ErrorKind.INTERNAL,
}
"""Classes that say what happened to us; a client is told that the server failed."""


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("code", ["", "c", "rate_limit_error", "429"])
def test_an_error_comes_back_as_its_class(kind: ErrorKind, code: str) -> None:
    error = StreamError(kind, "x", code, retryable=kind in RETRYABLE)
    status, written = DIALECT.write_error(error, 0)
    back, streamed = DIALECT.read_error(status, written), error_in(written)
    assert streamed is not None
    assert back.message == streamed.message == "x"
    if kind in OURS:
        assert back.retryable
    else:
        assert back.kind is kind
        assert streamed.kind is kind


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        (ErrorKind.RATE_LIMIT, 0, 429),
        (ErrorKind.RATE_LIMIT, 403, 403),
        (ErrorKind.OVERLOADED, 0, 503),
        (ErrorKind.OVERLOADED, 529, 503),
        (ErrorKind.API, 302, 500),
        (ErrorKind.API, 599, 599),
        (ErrorKind.CUT, 200, 502),
        (ErrorKind.CONTEXT_LENGTH, 0, 400),
        (ErrorKind.CONTEXT_LENGTH, 500, 400),
        (ErrorKind.QUOTA, 429, 429),
    ],
)
def test_the_status_is_the_upstreams_or_that_of_the_class(kind: ErrorKind, status: int, told: int) -> None:
    assert DIALECT.write_error(StreamError(kind, "x"), status)[0] == told
