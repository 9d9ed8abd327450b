"""What a Messages client gets and sends at the edges, over every upstream: empty answers, refusals, limits, results."""

import json
from typing import Any

import pytest

from tests import responses_stream as rs
from tests.exchange import ASKED, Got, answered, opened, route, sent, whole
from tests.support import DONE, call, chunk, finish, sse
from tests.test_order import wire

UPSTREAMS = ["chat", "responses"]
FORMS = [True, False]

every_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)
both_forms = pytest.mark.parametrize("stream", FORMS)


def got(upstream: str, stream: bool, body: bytes) -> Got:
    return answered(opened(stream, on=route(upstream=upstream)), body)


def body_of(*output: rs.Json, status: str = "completed", **members: Any) -> bytes:
    """A whole Responses answer."""
    return json.dumps(rs.response(status, output, **members)).encode()


@every_upstream
@both_forms
def test_an_answer_that_says_nothing_is_an_empty_message(upstream: str, stream: bool) -> None:
    for body in (whole(), whole(content=None), whole(content="")) if upstream == "chat" else (body_of(),):
        message = got(upstream, stream, body).message
        assert (message["content"], message["stop_reason"]) == ([], "end_turn")


@every_upstream
@both_forms
def test_a_refusal_is_read_as_text_and_is_the_reason_of_the_stop(upstream: str, stream: bool) -> None:
    streams = {
        "chat": sse(chunk({"refusal": "I will"}), chunk({"refusal": " not."}), finish(), DONE),
        "responses": wire(
            rs.created(), rs.added(rs.message()), rs.event("response.refusal.delta", item_id="m1", delta="I will not."),
            rs.done(rs.refusal("I will not.")), rs.terminal(output=[rs.refusal("I will not.")]),
        ),
    }  # fmt: skip
    bodies = {"chat": whole(refusal="I will not."), "responses": body_of(rs.refusal("I will not."))}
    for said in (streams[upstream], bodies[upstream]):
        message = got(upstream, stream, said).message
        assert message["content"] == [{"type": "text", "text": "I will not."}]
        assert message["stop_reason"] == "refusal"


@every_upstream
@both_forms
def test_a_call_that_the_limit_cut_is_never_announced_as_one_to_run(upstream: str, stream: bool) -> None:
    limit = {"reason": "max_output_tokens"}
    cut = rs.call('{"x": ', call_id="i", status="incomplete")
    streams = {
        "chat": sse(call(0, "i", "f", '{"x": '), finish("length"), DONE),
        "responses": wire(
            rs.created(), rs.added(rs.call(call_id="i")), rs.arguments('{"x": '), rs.done(cut),
            rs.terminal("incomplete", [cut], incomplete_details=limit),
        ),
    }  # fmt: skip
    message = got(upstream, stream, streams[upstream]).message
    assert [block["type"] for block in message["content"]] == ["tool_use"]
    assert (message["content"][0]["input"], message["stop_reason"]) == ({}, "max_tokens")


@pytest.mark.parametrize(("kind", "stop"), [("completed", "end_turn"), ("incomplete", "max_tokens")])
def test_a_response_without_a_status_has_that_of_the_event_that_brings_it(kind: str, stop: str) -> None:
    response = {name: value for name, value in rs.response().items() if name != "status"}
    said = rs.added(rs.message()), rs.text("a"), rs.event(f"response.{kind}", response=response)
    assert got("responses", True, wire(rs.created(), *said)).message["stop_reason"] == stop
    failed = wire(rs.created(), rs.added(rs.message()), rs.text("a"), rs.event("response.failed", response=response))
    assert got("responses", True, failed).error["type"] == "api_error"


@every_upstream
def test_a_result_without_content_goes_up_as_an_empty_one(upstream: str) -> None:
    called: dict[str, Any] = {"type": "tool_use", "id": "i", "name": "f"}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i"}]}
    body = sent(
        opened(
            on=route(upstream=upstream),
            messages=[*ASKED["messages"], {"role": "assistant", "content": [called]}, result],
        )
    )
    if upstream == "chat":
        assert body["messages"][-1] == {"role": "tool", "tool_call_id": "i", "content": ""}
    else:
        assert body["input"][-1] == {"type": "function_call_output", "call_id": "i", "output": ""}


@every_upstream
def test_the_counts_of_a_stream_are_asked_for_where_they_must_be(upstream: str) -> None:
    streamed = sent(opened(on=route(upstream=upstream)))
    assert streamed.get("stream_options") == ({"include_usage": True} if upstream == "chat" else None)
    assert "stream_options" not in sent(opened(False, on=route(upstream=upstream)))


@every_upstream
@both_forms
def test_the_counts_add_up_to_the_whole_prompt(upstream: str, stream: bool) -> None:
    cached = {"cached_tokens": 60, "cache_write_tokens": 30}
    if upstream == "chat":
        counts = {"prompt_tokens": 100, "prompt_tokens_details": cached, "completion_tokens": 5}
        said = sse(chunk({"content": "a"}), finish(), {**chunk(), "choices": [], "usage": counts}, DONE)
    else:
        counts = {"input_tokens": 100, "input_tokens_details": cached, "output_tokens": 5, "total_tokens": 105}
        said = body_of(rs.message("a"), usage=counts)
    usage = got(upstream, stream, said).message["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        10,
        60,
        30,
    )
