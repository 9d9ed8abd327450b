"""A Responses client over a Messages upstream, sans-IO: Codex over Claude."""

import json
from typing import Any

import pytest

from pipeline.errors import ErrorKind
from pipeline.events import StreamError
from pipeline.outcome import Verdict
from pipeline.route import AnswerOptions, Exchange, Route, UpstreamRequest
from tests.exchange import Got, answered, route, sent
from tests.messages_stream import (
    END,
    TEXT,
    THINKING,
    Json,
    begin,
    call,
    given,
    message,
    signature,
    sse,
    start,
    stop,
    text,
    thinking,
    told,
)
from tests.responses_client import heard

GO: Json = {"role": "user", "content": "go"}
COUNTS = {"input_tokens": 10, "output_tokens": 5}
FORMS = [True, False]

BLOCKS: list[Json] = [
    {"type": "redacted_thinking", "data": "BLOB=="},
    {"type": "thinking", "thinking": "Why", "signature": "SIG=="},
    {"type": "thinking", "thinking": "", "signature": "HIDDEN=="},
    {"type": "text", "text": "Hi"},
    call(input={"x": 1}),
]
STREAM = sse(
    [
        begin(usage=COUNTS),
        *(start(BLOCKS[0]), stop()),
        *(start(THINKING, 1), thinking("W", 1), thinking("hy", 1), signature("SIG==", 1), stop(1)),
        *(start(THINKING, 2), signature("HIDDEN==", 2), stop(2)),
        *(start(TEXT, 3), text("Hi", 3), stop(3)),
        *(start(call(), 4), given('{"x":1}', 4), stop(4)),
        told("tool_use", usage=COUNTS),
        END,
    ]
)
BODY = json.dumps(message(*BLOCKS, stop_reason="tool_use", usage=COUNTS)).encode()
ANSWERS = [pytest.param(STREAM, id="streamed"), pytest.param(BODY, id="whole")]


def opened(*items: Json, stream: bool = True, on: Route | None = None, **members: Any) -> Exchange:
    """An exchange begun by a Responses client."""
    asked = {"model": "m", "input": [GO, *items], "stream": stream, **members}
    return (on or route("responses", "messages")).open(json.dumps(asked).encode())


def output(got: Got) -> list[Json]:
    """The items of an answer, of whichever form."""
    answer = heard(got.body).response if got.is_stream else json.loads(got.body)
    assert answer["status"] == "completed"
    items: list[Json] = answer["output"]
    return items


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("stream", FORMS)
def test_an_answer_comes_in_the_form_that_was_asked_for_whatever_form_it_has(stream: bool, answer: bytes) -> None:
    got = answered(opened(stream=stream), answer)
    assert (got.status, got.is_stream) == (200, stream)
    items = output(got)
    assert [item["type"] for item in items] == ["reasoning"] * 3 + ["message", "function_call"]
    assert items[1]["summary"][0]["text"] == "Why"
    assert items[3]["content"][0]["text"] == "Hi"
    assert (items[4]["call_id"], items[4]["name"], json.loads(items[4]["arguments"])) == ("a", "f", {"x": 1})
    assert got.exchange.outcome.verdict is Verdict.COMPLETE
    assert got.exchange.outcome.usage is not None
    assert got.exchange.ledger == []


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("stream", FORMS)
def test_every_kind_of_thinking_goes_back_as_the_provider_sent_it(stream: bool, answer: bytes) -> None:
    items = output(answered(opened(stream=stream), answer))
    result: Json = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    back = sent(opened(*items, result))
    assert back["messages"][1] == {"role": "assistant", "content": BLOCKS}
    assert list(back["messages"][1]["content"][1]) == ["type", "thinking", "signature"]
    elsewhere = route("responses", "messages", answers=AnswerOptions(upstream="another"))
    assert [block["type"] for block in sent(opened(*items, result, on=elsewhere))["messages"][1]["content"]] == [
        "text",
        "tool_use",
    ]


def test_thinking_that_was_edited_does_not_go_back() -> None:
    items = output(answered(opened(), STREAM))
    items[1]["summary"][0]["text"] = "Why not"
    blocks = sent(opened(*items[1:2], {"role": "user", "content": "on"}))["messages"]
    assert "thinking" not in json.dumps(blocks)


def test_a_request_goes_to_where_messages_are_asked_for() -> None:
    exchange = opened()
    assert isinstance(exchange.request, UpstreamRequest)
    assert exchange.request.path == "messages"
    assert exchange.route.upstream.headers("k") == {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def failed(kind: str, said: str = "boom") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": said}, "request_id": "r"}).encode()


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, failed("invalid_request_error"), "invalid_request_error", "boom"),
        (401, failed("authentication_error"), "authentication_error", "boom"),
        (403, failed("permission_error"), "permission_error", "boom"),
        (404, failed("not_found_error"), "not_found_error", "boom"),
        (413, failed("request_too_large"), "invalid_request_error", "boom"),
        (429, failed("rate_limit_error"), "rate_limit_error", "boom"),
        (500, failed("api_error"), "server_error", "boom"),
        (529, failed("overloaded_error"), "server_error", "boom"),
        (502, b"<html>", "server_error", "the upstream answered with status 502"),
        (503, b"", "server_error", "the upstream answered with status 503"),
    ],
)
def test_an_upstreams_error_is_one_in_the_clients_words(
    stream: bool, status: int, body: bytes, kind: str, said: str
) -> None:
    got = answered(opened(stream=stream), body, status=status, headers={"Retry-After": "7", "request-id": "r"})
    error = json.loads(got.body)["error"]
    told = 503 if status == 529 else status  # OpenAI's clients know no 529
    assert (got.status, error["type"], error["message"]) == (told, kind, said)
    assert got.head is not None
    assert {"retry-after": "7", "x-request-id": "r"}.items() <= got.head.headers.items()
    assert got.exchange.outcome.verdict is Verdict.FAILED


@pytest.mark.parametrize("stream", FORMS)
def test_a_stream_that_begins_with_an_error_is_one_that_failed_or_has_its_status(stream: bool) -> None:
    first = sse([{"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}])
    got = answered(opened(stream=stream), first)
    error = heard(got.body).response["error"] if stream else json.loads(got.body)["error"]
    assert (got.status, error["message"]) == (200 if stream else 503, "boom")


def test_a_connection_that_breaks_is_a_failure_in_the_stream() -> None:
    cause = StreamError(ErrorKind.CUT, "reset", "stream_cut", retryable=True)
    got = answered(opened(), STREAM[:600], cause=cause)
    assert heard(got.body).response["error"] == {"code": "server_error", "message": "reset"}
    assert got.exchange.outcome.verdict is Verdict.CUT


def test_a_freeform_call_comes_back_as_one() -> None:
    patch: Json = {"type": "custom", "name": "apply_patch", "description": "d"}
    exchange = opened(tools=[patch])
    assert sent(exchange)["tools"][0]["input_schema"]["required"] == ["input"]
    items = [begin(), start(call(name="apply_patch"))]
    items += [given(piece) for piece in ('{"inp', 'ut": "*** Be', 'gin\\n\\u00e9"}')]
    got = answered(exchange, sse([*items, stop(), told("tool_use"), END]))
    (item,) = output(got)
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin\né")
