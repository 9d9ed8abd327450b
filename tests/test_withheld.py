"""An answer that a filter withheld, of which nothing was said: each client is told that it is refused."""

import json
from typing import Any

import pytest

from tests.exchange import Got, answered, route
from tests.lawful import check_law
from tests.support import DONE, call, chunk, finish, sse, text

GO = [{"role": "user", "content": "go"}]
ASKED: dict[str, dict[str, Any]] = {
    "chat": {"messages": GO},
    "messages": {"max_tokens": 99, "messages": GO},
    "responses": {"input": "go"},
}
THOUGHT = chunk({"reasoning_content": "hm"})
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
REFUSED = {"stop_reason": "refusal", "stop_sequence": None}


def got(client: str, upstream: str, body: bytes, stream: bool) -> Got:
    asked = json.dumps({"model": "m", "stream": stream, **ASKED[client]}).encode()
    answer = answered(route(client, upstream).open(asked), body)
    if stream:
        check_law(client, answer.body)
    return answer


def response(answer: Got, stream: bool) -> dict[str, Any]:
    """The response as it ends."""
    if not stream:
        body: dict[str, Any] = json.loads(answer.body)
        return body
    lines = [line for line in answer.body.decode().splitlines() if line.startswith("data: {")]
    last: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))["response"]
    return last


def message(content: list[Any], **members: Any) -> bytes:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    return json.dumps({**said, **REFUSED, "usage": {"input_tokens": 1, "output_tokens": 1}, **members}).encode()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("upstream", "body", "types"),
    [
        ("chat", sse(finish("content_filter"), DONE), ["message"]),
        ("chat", sse(THOUGHT, finish("content_filter"), DONE), ["reasoning", "message"]),
        ("chat", sse(text(" "), finish("SAFETY"), DONE), ["message"]),
        ("messages", message([]), ["message"]),
        ("messages", message([SEARCH]), ["web_search_call", "message"]),
    ],
)
def test_a_responses_client_is_given_a_refusal_for_it_would_ask_again_for_what_is_incomplete(
    upstream: str, body: bytes, types: list[str], stream: bool
) -> None:
    answer = got("responses", upstream, body, stream)
    said = response(answer, stream)
    assert [item["type"] for item in said["output"]] == types
    assert said["output"][-1]["content"] == [
        {"type": "refusal", "refusal": "The provider's filter withheld the answer."}
    ]
    assert (said["status"], said["incomplete_details"]) == ("completed", None)
    assert [entry["action"] for entry in answer.exchange.ledger if entry["path"] == "refusal"] == ["made"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("upstream", "body", "status"),
    [
        ("chat", sse(text("a"), finish("content_filter"), DONE), "incomplete"),
        ("chat", sse(call(0, "c", "f", "{}"), finish("content_filter"), DONE), "incomplete"),
        ("chat", sse(finish("length"), DONE), "incomplete"),
        ("chat", sse(finish("stop"), DONE), "completed"),
        ("messages", message([], stop_details={"type": "refusal", "explanation": "no"}), "completed"),
    ],
)
def test_nothing_is_made_where_something_was_said_or_nothing_withheld(
    upstream: str, body: bytes, status: str, stream: bool
) -> None:
    answer = got("responses", upstream, body, stream)
    assert response(answer, stream)["status"] == status
    assert b"withheld" not in answer.body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("client", "word"), [("chat", b'"content_filter"'), ("messages", b'"refusal"')])
def test_other_clients_are_told_by_the_stop_reason_alone(client: str, word: bytes, stream: bool) -> None:
    upstream, body = ("messages", message([])) if client == "chat" else ("chat", sse(finish("content_filter"), DONE))
    answer = got(client, upstream, body, stream)
    assert word in answer.body
    assert b"withheld" not in answer.body
