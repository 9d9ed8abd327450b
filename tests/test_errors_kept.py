"""One dialect over itself: an error in its own words goes to the client as it came, anything else is made one."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.outcome import Verdict
from tests.exchange import Got, answered, route
from tests.support import sse

ASKED: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
}
BAD = "invalid_request_error"
FORMS = [True, False]


def asked(client: str, upstream: str, *reads: bytes, stream: bool = True, status: int = 200) -> Got:
    """What a client gets of a reply."""
    body = json.dumps({"model": "m", "stream": stream, **ASKED[client]}).encode()
    return answered(route(client=client, upstream=upstream).open(body), *reads, status=status)


def error(message: str = "no", kind: str | None = BAD, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, **more}}


OWN = [
    ("chat", 400, error(param="temperature", code="unsupported_parameter")),
    ("chat", 401, error("no key", param=None, code="invalid_api_key")),
    ("chat", 400, error(kind=None, param="prompt", code="content_filter", innererror={"jailbreak": True})),
    ("chat", 400, error(kind="BadRequestError", param=None, code=400)),
    ("chat", 529, error("busy", "overloaded_error")),
    ("chat", 404, {**error(), "request_id": "r"}),
    ("responses", 400, error(param="previous_response_id", code="previous_response_not_found")),
    ("responses", 429, error("used up", "usage_limit_reached", plan_type="plus", resets_at=7, code=None)),
    ("messages", 404, {"type": "error", **error(kind="not_found_error"), "request_id": "req_1"}),
    ("messages", 503, {"type": "error", **error(kind="overloaded_error", details={"a": 1})}),
    ("messages", 400, {"type": "error", **error(kind="a_type_of_tomorrow")}),
]
"""Errors of each dialect as its servers write them."""


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(("name", "status", "body"), OWN)
def test_an_error_of_the_dialect_keeps_its_status_and_its_bytes(
    stream: bool, name: str, status: int, body: dict[str, Any]
) -> None:
    raw = b" " + json.dumps(body, indent=1).encode() + b"\n"
    got = asked(name, name, raw[:9], raw[9:], stream=stream, status=status)
    assert (got.status, got.body) == (status, raw)
    assert got.exchange.outcome.verdict is Verdict.FAILED


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(("name", "status", "body"), OWN)
def test_an_error_that_comes_with_a_success_keeps_its_bytes_and_has_the_status_of_its_class(
    stream: bool, name: str, status: int, body: dict[str, Any]
) -> None:
    raw = json.dumps(body).encode()
    got = asked(name, name, raw, stream=stream)
    assert (got.status >= 400, got.body) == (True, raw)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("chat", error(param="p", code="c", extra=1)),
        ("messages", {"type": "error", **error(kind="overloaded_error", details={"a": 1}), "request_id": "r"}),
        ("responses", {"type": "error", "sequence_number": 0, **error(param="p", code="c")}),
    ],
)
def test_an_error_that_comes_first_in_a_stream_goes_with_it_as_it_came(name: str, first: dict[str, Any]) -> None:
    """Not as a body with a status: the client acts on it as it does without us."""
    raw = json.dumps(first).encode()
    for stream in sse(first), b"event: error\ndata: " + raw + b"\n\n":
        got = asked(name, name, stream)
        assert (got.status, got.body, got.is_stream) == (200, stream, True)


ODD: list[bytes] = [
    b"",
    b"<html>no</html>",
    b"no",
    b'{"error":"no"}',
    b'{"error":{"message":"no"}}',
    b'{"error":{"message":null,"type":"x"}}',
    b'{"error":{"message":"no","type":7}}',
    b'{"detail":[{"msg":"no"}]}',
    b'[{"error":{"message":"no","type":"x"}}]',
    b'{"type":"oops","error":{"message":"no","type":"x"}}',
    b'{"error":{"message":"\xff","type":"x"},"type":"error","half":"\xff"}',
    b'{"error":{"message":"\\ud800","type":"x","param":null},"type":"error"}',
    b'{"type":"error","error":{"message":"no","type":"x","param":null}}{}',
]
"""What no client of any dialect reads."""


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("raw", ODD)
def test_anything_else_is_made_an_error_of_the_dialect(name: str, stream: bool, raw: bytes) -> None:
    got = asked(name, name, raw, stream=stream, status=400)
    said = json.loads(got.body)
    assert (got.status, said["error"]["type"]) == (400, BAD)
    assert dialect(name).keeps_error(said, 400) == 400


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    "body",
    [
        {"type": "error", **error(kind="not_found_error")},
        error(kind="not_found_error", param="p", code=None),
        {"object": "error", "message": "no", "type": "NotFoundError", "code": 404},
    ],
)
def test_the_shape_of_another_dialect_is_made_the_clients(name: str, body: dict[str, Any]) -> None:
    got = asked(name, name, json.dumps(body).encode(), status=404)
    assert dialect(name).keeps_error(json.loads(got.body), 404) == 404
    is_own = bool(dialect(name).keeps_error(body, 404))
    assert is_own == (("param" in body.get("error", ())) if name != "messages" else body.get("type") == "error")


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "error": {"code": "server_error", "message": "no"},
}
PARTIAL = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "incomplete",
    "content": [{"type": "output_text", "text": "a", "annotations": []}],
}
STATES = [
    {"status": "failed"},
    {"status": "failed", "output": [PARTIAL]},
    {"status": "cancelled", "error": None},
    {"status": "queued", "error": None},
    {"status": "in_progress", "error": None, "output": [PARTIAL]},
]
"""Whole responses that are no answer."""


@pytest.mark.parametrize("state", STATES)
def test_a_whole_response_that_says_how_it_stands_goes_as_it_came_with_its_success(state: dict[str, Any]) -> None:
    raw = b"\n " + json.dumps({**RESPONSE, **state}, indent=1).encode()
    got = asked("responses", "responses", raw[:20], raw[20:], stream=False)
    assert (got.status, got.body) == (200, raw)
    assert got.exchange.outcome.verdict in (Verdict.FAILED, Verdict.CUT)


@pytest.mark.parametrize("state", STATES)
def test_to_anybody_else_it_is_an_error(state: dict[str, Any]) -> None:
    raw = json.dumps({**RESPONSE, **state}).encode()
    for client in ("chat", "messages"):
        assert asked(client, "responses", raw, stream=False).status >= 500
    if not state.get("output"):
        assert asked("responses", "responses", raw, stream=True).status >= 500
    assert asked("responses", "responses", raw, stream=False, status=500).status == 500


@pytest.mark.parametrize("stream", [True, False])
def test_a_response_that_is_complete_and_tells_of_an_error_too(stream: bool) -> None:
    said = {**RESPONSE, "status": "completed", "output": [PARTIAL], **error(code="server_error")}
    raw = json.dumps(said).encode()
    for client in ("chat", "messages"):
        got = asked(client, "responses", raw, stream=stream)
        assert got.status >= 500 or b'"error"' in got.body
        assert b"message_stop" not in got.body
        assert b"[DONE]" not in got.body
    got = asked("responses", "responses", raw, stream=False)
    assert (got.status, got.body) == (200, raw)


def test_a_response_without_its_output_is_none() -> None:
    raw = json.dumps({**RESPONSE, "status": "failed", "output": None}).encode()
    assert asked("responses", "responses", raw, stream=False).status >= 500


@pytest.mark.parametrize("blanks", [b"\n", b" \r\n\t" * 9, b"\n" * 2_000])
def test_the_blanks_before_a_whole_answer_stay(blanks: bytes) -> None:
    raw = blanks + json.dumps({**RESPONSE, "status": "completed", "output": [PARTIAL], "error": None}).encode()
    got = asked("responses", "responses", *(raw[at : at + 7] for at in range(0, len(raw), 7)), stream=False)
    assert (got.status, got.body) == (200, raw)


def test_a_chunk_with_an_error_beside_its_choices_is_none() -> None:
    got = asked("chat", "chat", json.dumps({"choices": [], **error(code="c", extra=1)}).encode())
    assert (got.status, json.loads(got.body)) == (400, error(param=None, code="c"))


@pytest.mark.parametrize(("client", "upstream"), [("chat", "responses"), ("responses", "chat")])
def test_what_both_dialects_can_say_crosses(client: str, upstream: str) -> None:
    said = error(param="temperature", code="unsupported_parameter")
    got = asked(client, upstream, json.dumps({**said, "more": 1}).encode(), status=400)
    assert (got.status, json.loads(got.body)) == (400, said)
    streamed = asked(client, upstream, sse(said))
    if client == "responses":  # it is told in a stream what a stream told
        assert (streamed.status, b'"code":"invalid_prompt","message":"no"' in streamed.body) == (200, True)
    else:
        assert (streamed.status, json.loads(streamed.body)) == (400, said)


def test_the_flat_error_of_a_stream_names_its_parameter_too() -> None:
    flat = {"type": "error", "code": "invalid_prompt", "message": "no", "param": "input", "sequence_number": 0}
    for client, stream in (("chat", True), ("chat", False), ("responses", False)):
        got = asked(client, "responses", sse(flat), stream=stream)
        assert (got.status, json.loads(got.body)) == (400, error(param="input", code="invalid_prompt"))


@pytest.mark.parametrize("param", [None, "", 7, ["x"]])
def test_a_parameter_that_is_no_name_is_none(param: Any) -> None:
    got = asked("chat", "responses", json.dumps(error(param=param)).encode(), status=400)
    assert json.loads(got.body)["error"]["param"] is None


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("body", [b"", b"<html>Moved</html>", json.dumps(error(param="p", code=None)).encode()])
def test_a_redirection_is_a_502_that_names_it(name: str, stream: bool, body: bytes) -> None:
    exchange = route(client=name, upstream=name).open(
        json.dumps({"model": "m", "stream": stream, **ASKED[name]}).encode()
    )
    got = answered(exchange, body, status=308, headers={"Location": "https://a.example/v2?key=secret"})
    message = json.loads(got.body)["error"]["message"]
    assert got.status == 502
    assert message == (
        "the upstream answered with status 308, a redirection to https://a.example/v2, which is not followed"
    )
