"""A number too large to be one stands in a call's arguments as it was written, whichever way it goes."""

import json
from typing import Any

import pytest

from pipeline.jsontext import loads
from pipeline.route import UpstreamRequest
from tests.exchange import answered, refusal, route
from tests.support import sse

LARGE = ["1e400", "-1E999", "9" * 400]
EACH_LARGE = pytest.mark.parametrize("digits", LARGE)
EACH_CLIENT = pytest.mark.parametrize("client", ["chat", "messages", "responses"])
ASKED: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
}
USAGE = {"input_tokens": 1, "output_tokens": 1}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": USAGE}


def with_digits(said: Any, digits: str) -> bytes:
    """The JSON of something in which `"N"` is the number."""
    return json.dumps(said).replace('"N"', digits).encode()


def call(**more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "f", "input": {"x": "N", "y": [1.5]}, **more}


def got(client: str, body: bytes, stream: bool) -> str:
    asked = json.dumps({"model": "m", "stream": stream, **ASKED[client]}).encode()
    answer = answered(route(client=client, upstream="messages").open(asked), body)
    assert answer.status == 200, answer.body
    return answer.body.decode().replace("\\", "")


def check(text: str, digits: str) -> None:
    assert f'"x":{digits},' in text.replace(" ", "")
    assert "Infinity" not in text
    assert '"x":null' not in text.replace(" ", "")


@EACH_CLIENT
@EACH_LARGE
@pytest.mark.parametrize("stream", [True, False])
def test_it_stands_in_the_input_of_a_whole_answer(client: str, digits: str, stream: bool) -> None:
    body = with_digits({**MESSAGE, "content": [call()], "stop_reason": "tool_use"}, digits)
    check(got(client, body, stream), digits)


@EACH_CLIENT
@EACH_LARGE
@pytest.mark.parametrize("stream", [True, False])
def test_it_stands_in_the_input_that_a_stream_announces(client: str, digits: str, stream: bool) -> None:
    start: dict[str, Any] = {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    block = {"type": "content_block_start", "index": 0, "content_block": call()}
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": USAGE}
    said = [start, block, {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}]
    body = b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), with_digits(one, digits)) for one in said)
    check(got(client, body, stream), digits)


@EACH_CLIENT
@EACH_LARGE
def test_it_stands_in_arguments_that_are_an_object(client: str, digits: str) -> None:
    fragment = {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": call()["input"]}}
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": "tool_calls"}]}
    stream = b"data: " + with_digits(chunk, digits) + b"\n\n" + sse("[DONE]")
    asked = json.dumps({"model": "m", "stream": True, **ASKED[client]}).encode()
    check(answered(route(client=client, upstream="chat").open(asked), stream).body.decode().replace("\\", ""), digits)


@EACH_CLIENT
@EACH_LARGE
def test_it_goes_up_in_a_call_and_in_a_schema(client: str, digits: str) -> None:
    schema = {"type": "object", "properties": {"x": {"maximum": "N"}}}
    user: dict[str, Any] = {"role": "user", "content": "hi"}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}
    messages = [user, {"role": "assistant", "content": [call()]}, result]
    asked = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [{"name": "f", "input_schema": schema}]}
    request = route(client="messages", upstream=client).open(with_digits(asked, digits)).request
    assert isinstance(request, UpstreamRequest), request
    text = request.body.decode().replace("\\", "")
    check(text, digits)
    assert f'"maximum":{digits}' in text
    assert loads(request.body)


@EACH_LARGE
def test_where_a_number_counts_it_is_refused_by_its_name(digits: str) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "temperature": "N"}
    status, error = refusal(route().open(with_digits(asked, digits)))
    assert (status, error["message"].split(":")[0]) == (400, "temperature")


@EACH_CLIENT
@EACH_LARGE
def test_among_counts_it_is_none(client: str, digits: str) -> None:
    counts = {"input_tokens": "N", "output_tokens": 7}
    text = [{"type": "text", "text": "a"}]
    body = with_digits({**MESSAGE, "content": text, "stop_reason": "end_turn", "usage": counts}, digits)
    got(client, body, stream=True)
