"""pipeline.failure: a provider's error object as an event."""

from typing import Any

import pytest

from pipeline.errors import ErrorKind
from pipeline.events import StreamError
from pipeline.failure import answered, code_of, failure, is_told, redirected, stated

KINDS = {"busy": ErrorKind.OVERLOADED, "no_key": ErrorKind.AUTHENTICATION}
NOTHING = "the upstream failed"


DEEP = {"message": "deep", "code": "busy", "param": "p"}
DEEP_TOLD = StreamError(ErrorKind.OVERLOADED, "deep", "busy", retryable=True, param="p")


def busy(message: str = "x", code: str = "busy") -> StreamError:
    return StreamError(ErrorKind.OVERLOADED, message, code, retryable=True)


@pytest.mark.parametrize(
    ("error", "around", "read"),
    [
        ({"message": "x", "code": "busy"}, {}, busy()),
        ({"message": "x", "type": "BUSY"}, {}, busy(code="BUSY")),
        ({"message": "x", "status": "busy"}, {}, busy()),
        ({"message": "x", "code": "odd", "type": "busy"}, {}, busy(code="odd")),
        ([{"detail": "x", "code": "busy"}, {"message": "y"}], {}, busy()),
        ("x", {"type": "busy"}, busy()),
        ("x", {"type": "busy", "code": "c"}, busy(code="c")),
        ({"message": "x", "code": 429}, {}, StreamError(ErrorKind.RATE_LIMIT, "x", "429", retryable=True)),
        ({"message": "x", "code": "404"}, {}, StreamError(ErrorKind.NOT_FOUND, "x", "404")),
        ({"message": "x", "status_code": 503}, {}, busy(code="503")),
        ({"message": "x", "code": 1302}, {}, StreamError(ErrorKind.API, "x", "1302", retryable=True)),
        ({"message": "x", "code": "9" * 5000}, {}, StreamError(ErrorKind.API, "x", "9" * 5000, retryable=True)),
        ({"message": "x", "code": ["busy"]}, {}, StreamError(ErrorKind.API, "x", "['busy']", retryable=True)),
        ({"code": "busy"}, {}, busy(f"{NOTHING}: busy")),
        ([], {}, StreamError(ErrorKind.API, NOTHING, "", retryable=True)),
        (7, {}, StreamError(ErrorKind.API, f"{NOTHING}: 7", "7", retryable=True)),
        (503, {"message": "x"}, busy(code="503")),
        (None, {}, StreamError(ErrorKind.API, NOTHING, "", retryable=True)),
    ],
)
def test_an_error_is_read_in_every_form(error: Any, around: dict[str, Any], read: StreamError) -> None:
    assert failure(error, around, KINDS) == read


@pytest.mark.parametrize(
    "error",
    [
        {"error": DEEP},
        {"error": {"error": DEEP}},
        {"error": [DEEP]},
        {"detail": DEEP},
        {"detail": {"error": DEEP}},
        {"message": {"error": DEEP}},
        {"message": "", "code": 400, "error": DEEP},
        {"type": "no_key", "error": DEEP},
        [{"error": DEEP}],
    ],
)
def test_an_error_within_an_error_is_told(error: Any) -> None:
    assert failure(error, {}, KINDS) == DEEP_TOLD


def test_an_error_says_for_itself_what_the_one_within_it_does_not() -> None:
    found = failure({"message": "x", "code": "busy", "error": {"param": "p"}}, {}, KINDS)
    assert found == StreamError(ErrorKind.OVERLOADED, "x", "busy", retryable=True, param="p")
    assert failure({"code": 429, "error": {"message": "x", "code": "odd"}}, {}, KINDS) == StreamError(
        ErrorKind.RATE_LIMIT, "x", "odd", retryable=True
    )
    assert failure({"error": "x", "code": "busy"}, {}, KINDS) == busy()


def test_errors_within_errors_have_an_end() -> None:
    error: dict[str, Any] = {"message": "x"}
    for _ in range(150):
        error = {"error": error}
    assert failure(error, {}, KINDS).message == NOTHING


@pytest.mark.parametrize(
    ("raw", "message", "code", "kind"),
    [
        ('{"error":{"message":"deep","code":"busy"}}', "Provider returned error: deep", "busy", ErrorKind.OVERLOADED),
        ({"error": {"message": "deep", "type": "busy"}}, "Provider returned error: deep", "400", ErrorKind.OVERLOADED),
        ("too  long", "Provider returned error: too  long", "400", ErrorKind.INVALID_REQUEST),
        ("x" * 900, f"Provider returned error: {'x' * 500}", "400", ErrorKind.INVALID_REQUEST),
        ('{"message":"deep","code":"odd"}', "Provider returned error: deep", "odd", ErrorKind.INVALID_REQUEST),
        ("Provider returned error", "Provider returned error", "400", ErrorKind.INVALID_REQUEST),
        ("", "Provider returned error", "400", ErrorKind.INVALID_REQUEST),
        (None, "Provider returned error", "400", ErrorKind.INVALID_REQUEST),
        (7, "Provider returned error", "400", ErrorKind.INVALID_REQUEST),
    ],
)
def test_the_cause_that_a_gateway_was_told_is_told(raw: Any, message: str, code: str, kind: ErrorKind) -> None:
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "P"}}
    found = failure(error, {}, KINDS)
    assert (found.message, found.code, found.kind) == (message, code, kind)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("x", "x"),
        (["x", {"msg": "y"}, 3, {"message": {"message": "z"}}], "x; y; z"),
        ({"message": "x"}, "x"),
        (None, NOTHING),
        ("", NOTHING),
    ],
)
def test_a_message_is_text_in_every_form(message: Any, text: str) -> None:
    assert stated(message, (), None, KINDS).message == text


def test_a_class_that_is_known_needs_no_words() -> None:
    assert stated("x", ("no_key",), 7, KINDS, ErrorKind.QUOTA) == StreamError(ErrorKind.QUOTA, "x", "7")


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        (ErrorKind.AUTHENTICATION, "no_key", "no_key"),
        (ErrorKind.AUTHENTICATION, "odd", "odd"),
        (ErrorKind.AUTHENTICATION, "busy", ""),
        (ErrorKind.AUTHENTICATION, "401", ""),
        (ErrorKind.AUTHENTICATION, "authentication_error", ""),
        (ErrorKind.AUTHENTICATION, "", ""),
        (ErrorKind.OVERLOADED, "BUSY", "BUSY"),
        (ErrorKind.OVERLOADED, "odd", "known"),
        (ErrorKind.OVERLOADED, "no_key", "known"),
        (ErrorKind.OVERLOADED, "529", "known"),
        (ErrorKind.OVERLOADED, "overloaded_error", "known"),
    ],
)
def test_the_code_says_what_the_class_does(kind: ErrorKind, code: str, told: str) -> None:
    assert code_of(StreamError(kind, "x", code), {ErrorKind.OVERLOADED: "known"}, KINDS) == told


def words(body: Any) -> StreamError | None:
    """A dialect in which an error is told by one member."""
    return failure(body["error"], {}, KINDS) if isinstance(body, dict) and body.get("error") else None


@pytest.mark.parametrize(
    ("status", "body", "read"),
    [
        (418, {"error": {"message": "x", "code": "busy"}}, busy()),
        (502, "Bad Gateway", StreamError(ErrorKind.API, "Bad Gateway", "", retryable=True)),
        (403, "x", StreamError(ErrorKind.PERMISSION, "x")),
        (429, {"errors": [{"message": "x"}, {"message": "y"}]}, StreamError(ErrorKind.RATE_LIMIT, "x", "", True)),
        (400, {"errors": ["x"]}, StreamError(ErrorKind.INVALID_REQUEST, "x")),
        (400, {"errors": [{"message": "x", "code": "busy"}]}, busy()),
        (400, {"detail": {"error": {"message": "x", "code": "busy"}}}, busy()),
        (400, {"message": {"message": "x", "code": "busy"}}, busy()),
    ],
)
def test_an_answer_is_told_by_its_words_then_by_its_status(status: int, body: Any, read: StreamError) -> None:
    assert answered(status, body, words) == read


@pytest.mark.parametrize("body", [None, "", {}, [], ["x"], 7, {"errors": []}, {"errors": None}])
def test_an_answer_that_says_nothing_is_told_by_its_status(body: Any) -> None:
    assert answered(404, body, words) == StreamError(
        ErrorKind.NOT_FOUND, "the upstream answered with status 404", "404"
    )


@pytest.mark.parametrize(
    ("error", "param"),
    [({"param": "top_p"}, "top_p"), ({"param": ""}, ""), ({"param": None}, ""), ({"param": 7}, ""), ({}, "")],
)
def test_the_member_that_an_error_is_about_is_a_name(error: dict[str, Any], param: str) -> None:
    found = failure({"message": "x", "code": "busy", **error}, {}, KINDS)
    assert (found, found.param) == (StreamError(ErrorKind.OVERLOADED, "x", "busy", True, param=param), param)
    assert answered(400, {"error": {"message": "x", **error}}, words).param == param


TOLD: dict[str, Any] = {"message": "x", "type": "t", "param": None, "code": None}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": TOLD}, True),
        ({"error": {**TOLD, "type": None, "param": "p", "code": "c", "more": 1}, "more": 1}, True),
        ({"error": {**TOLD, "code": 400}}, True),
        ({"error": {"message": "x", "type": "t"}}, True),
        ({"type": "error", "error": TOLD}, True),
        ({"type": "error", "error": {"message": "x", "type": "t"}}, False),
        ({"error": {"message": "x"}}, False),
        ({"error": {**TOLD, "message": None}}, False),
        ({"error": {**TOLD, "type": 7}}, False),
        ({"error": {**TOLD, "param": []}}, False),
        ({"error": {**TOLD, "code": True}}, False),
        ({"error": "x"}, False),
        (TOLD, False),
        ([{"error": TOLD}], False),
        (None, False),
    ],
)
def test_an_error_object_is_told_where_it_says_what_such_objects_do(body: Any, told: bool) -> None:
    assert is_told(body) is told


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://b.example/v1/x", " to https://b.example/v1/x"),
        ("https://me:secret@b.example/v1?key=secret#secret", " to https://b.example/v1"),
        ("/elsewhere?secret", " to /elsewhere"),
        ("//secret@b.example", " to //b.example"),
        ("?secret", ""),
        ("", ""),
        ("/a\x01b", ""),
        ("/caf\xe9", ""),
        ("/" + "x" * 600, " to /" + "x" * 499),
    ],
)
def test_a_redirection_is_named_without_what_may_be_secret(location: str, where: str) -> None:
    found = redirected(307, location)
    assert (found.kind, found.code, found.retryable) == (ErrorKind.INVALID_RESPONSE, "redirected", False)
    assert found.message == f"the upstream answered with status 307, a redirection{where}, which is not followed"


@pytest.mark.parametrize("status", [100, 301, 304, 399])
def test_what_is_no_errors_status_is_what_an_upstream_must_not_send(status: int) -> None:
    assert answered(status, None, words).kind is ErrorKind.INVALID_RESPONSE
