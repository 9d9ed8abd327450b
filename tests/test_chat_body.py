"""A whole Chat answer: it says what the stream of one chunk would say."""

import json
from typing import Any

import pytest

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import StopReason, StreamError, ToolKind, Usage
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Content, Message, Reasoning, RedactedReasoning, Refusal, Text, ToolUse
from pipeline.request import DEFAULT_OPTIONS, Request
from stages.dialects.chat import DIALECT, body
from tests.canonical import losses
from tests.support import fragment


def answer(finish: str | None = "stop", **message: Any) -> bytes:
    """A body with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return json.dumps(
        {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


def read(raw: bytes, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None) -> Message:
    return body.read(raw, facts=facts, ledger=Ledger() if ledger is None else ledger, limits=DEFAULT_LIMITS)


def said(finish: str | None = "stop", **message: Any) -> tuple[Content, ...]:
    """What the message of a body says."""
    return read(answer(finish, **message)).content


def test_an_answer_is_reasoning_then_text_then_calls() -> None:
    calls = [fragment(None, "a", "f", '{"x": 1.10}'), fragment(None, "b", "g", "{}")]
    assert read(answer("tool_calls", tool_calls=calls, content="hi", reasoning_content="hm")) == Message(
        "c1",
        "m",
        (Reasoning("hm"), Text("hi"), ToolUse("a", "f", '{"x": 1.10}'), ToolUse("b", "g", "{}")),
        StopReason.TOOL_USE,
        usage=Usage(10, output=5),
    )


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": None}, ()),
        ({"content": ""}, ()),
        ({"content": None, "refusal": "no"}, (Refusal("no"),)),
        ({"content": "a", "annotations": [{"type": "url_citation"}]}, (Text("a", ({"type": "url_citation"},)),)),
        ({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}, "a"]}, (Reasoning("hm"), Text("a"))),
        ({"reasoning": "hm", "content": "a"}, (Reasoning("hm"), Text("a"))),
        ({"content": "a", "extra_content": {"google": {"thought": True}}}, (Text("a"),)),
        ({"function_call": {"name": "f", "arguments": "{}"}}, None),
        ({"tool_calls": [fragment(None, "a", "f", {"x": 2**70})]}, (ToolUse("a", "f", f'{{"x":{2**70}}}'),)),
        (
            {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
            (ToolUse("a", "f", "x", ToolKind.CUSTOM),),
        ),
    ],
)
def test_a_message_is_read_member_by_member(message: dict[str, Any], content: tuple[Content, ...] | None) -> None:
    found = said(**message)
    if content is None:
        assert [(call.name, call.arguments) for call in found if isinstance(call, ToolUse)] == [("f", "{}")]
    else:
        assert found == content


def test_opaque_reasoning_is_kept_to_go_back() -> None:
    details = [{"text": "hm", "signature": "S"}, {"type": "reasoning.encrypted", "data": "E"}]
    first, hidden, text = said(content="a", reasoning="hm", reasoning_details=details)
    assert first == Reasoning("hm", '{"reasoning_details":[{"signature":"S"}]}')
    assert isinstance(hidden, RedactedReasoning)
    assert json.loads(hidden.data) == {"reasoning_details": [details[1]]}
    assert text == Text("a")


def test_a_message_counts_for_more_than_the_delta_beside_it() -> None:
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "message": {"content": "a"}}
    assert read(json.dumps({"choices": [choice]}).encode()).content == (Text("a"),)
    assert read(json.dumps({"choices": [{"delta": {"content": "a"}}]}).encode()).content == (Text("a"),)


def test_an_answer_that_names_no_model_comes_from_the_one_that_was_asked() -> None:
    facts = RequestFacts(model="asked", usage=Usage(7))
    message = read(b'{"choices": [{"message": {"content": "a"}, "finish_reason": "length"}]}', facts)
    assert (message.model, message.stop_reason, message.usage) == ("asked", StopReason.MAX_TOKENS, Usage(7))


def test_an_answer_without_a_finish_ends_its_turn_and_that_is_recorded() -> None:
    ledger = Ledger()
    assert read(answer(None, content="a"), ledger=ledger).stop_reason is StopReason.END_TURN
    assert [entry[:2] for entry in losses(ledger)] == [("finish_reason", "supplied")]


def test_a_call_that_the_limit_cut_is_not_complete() -> None:
    (call,) = said("length", tool_calls=[fragment(None, "a", "f", '{"x": "')])
    assert call == ToolUse("a", "f", '{"x": "', complete=False)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"error": {"message": "boom", "code": "rate_limit_exceeded"}}', ErrorKind.RATE_LIMIT),
        (b'{"object": "error", "message": "boom", "code": 404}', ErrorKind.NOT_FOUND),
        (b'{"detail": "boom"}', ErrorKind.API),
        (b'[{"error": {"message": "boom", "code": 503}}]', ErrorKind.OVERLOADED),
        (b'{"choices": [], "error": {"message": "boom"}}', ErrorKind.API),
    ],
)
def test_an_error_in_place_of_an_answer_is_that_error(raw: bytes, kind: ErrorKind) -> None:
    error = read(raw).error
    assert error is not None
    assert (error.kind, error.message) == (kind, "boom")


def test_an_answer_that_failed_keeps_what_it_had_said() -> None:
    message = read(answer("error", content="half"))
    assert message.content == (Text("half"),)
    assert message.error == StreamError(
        ErrorKind.API, "the upstream ended with finish reason 'error'", "error", retryable=True
    )


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"<html>", "invalid_json"),
        (b"", "invalid_json"),
        (b'{"choices": [', "invalid_json"),
        (b"{}", "no_choices"),
        (b"7", "no_choices"),
        (b'"text"', "no_choices"),
        (b'{"id": "c1", "choices": []}', "no_choices"),
        (b'{"id": "c1", "choices": 7, "usage": {}}', "no_choices"),
    ],
)
def test_what_is_no_answer_is_the_upstreams_fault(raw: bytes, code: str) -> None:
    with pytest.raises(UpstreamError) as raised:
        read(raw)
    assert raised.value.code == code


def test_a_body_nested_too_deeply_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        body.read(b"[" * 50, facts=NO_REQUEST, ledger=Ledger(), limits=Limits(json_depth=10))


# Errors by status


@pytest.mark.parametrize(
    ("status", "said", "kind", "message"),
    [
        (401, {"error": {"message": "bad key", "type": "invalid_request_error"}}, ErrorKind.AUTHENTICATION, "bad key"),
        (400, {"error": {"message": "no", "type": "invalid_request_error"}}, ErrorKind.INVALID_REQUEST, "no"),
        (401, {"error": {"message": "bad key"}}, ErrorKind.AUTHENTICATION, "bad key"),
        (404, {"error": {"message": "no", "code": "model_not_found"}}, ErrorKind.NOT_FOUND, "no"),
        (429, {"error": {"message": "no", "code": "insufficient_quota"}}, ErrorKind.QUOTA, "no"),
        (429, {}, ErrorKind.RATE_LIMIT, "the upstream answered with status 429"),
        (500, None, ErrorKind.API, "the upstream answered with status 500"),
        (503, "busy", ErrorKind.OVERLOADED, "busy"),
        (418, None, ErrorKind.INVALID_REQUEST, "the upstream answered with status 418"),
        (302, None, ErrorKind.INVALID_RESPONSE, "the upstream answered with status 302"),
    ],
)
def test_an_error_goes_by_its_words_and_then_by_its_status(
    status: int, said: Any, kind: ErrorKind, message: str
) -> None:
    error = DIALECT.read_error(status, said)
    assert (error.kind, error.message) == (kind, message)


# The dialect's object


def test_the_dialect_hands_out_its_rooms() -> None:
    ledger = Ledger(direction="request")
    request = Request(dialect="x", model="m", turns=())
    built = DIALECT.build(request, ledger=ledger, limits=DEFAULT_LIMITS, options=DEFAULT_OPTIONS)
    assert built.body["model"] == "m"
    assert DIALECT.read_body(answer(content="a"), facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS).id == "c1"
    assert DIALECT.read_error(404, None).kind is ErrorKind.NOT_FOUND
    assert DIALECT.headers("key") == {"authorization": "Bearer key"}
    assert DIALECT.path == "chat/completions"
