"""What of a request stays as it came, or goes up once, toward Messages; and what clients are told of failures."""

import json
from typing import Any

import pytest

from pipeline import envelope
from pipeline.request import RequestOptions
from pipeline.stage import Stage
from tests.exchange import route, sent
from tests.request_shapes import JSON

GO = {"role": "user", "content": "go"}
SEALED = envelope.seal("elsewhere", "m", "t", "{}")
NEIGHBOURS: list[JSON] = [
    {"type": "zz", "text": "a"},
    {"type": "zz", "zz": 1},
    {"type": "text", "text": "a", "zz": None, "cache_control": {"type": "ephemeral", "zz": 1}},
    {"type": "text", "text": "", "citations": [{"type": "char_location"}]},
    {"type": "tool_use", "id": "i", "name": "f"},
    {"type": "tool_use", "id": "i", "name": "f", "input": {}, "caller": None, "zz": 1},
    {"type": "image", "source": {"type": "url", "url": "u", "zz": 1}},
    {"type": "redacted_thinking", "data": "d", "zz": 1},
]


@pytest.mark.parametrize("signature", ["", SEALED], ids=["unsigned", "sealed"])
@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=str)
def test_beside_foreign_thinking_a_block_stays_as_it_came(neighbour: JSON, signature: str) -> None:
    foreign = {"type": "thinking", "thinking": "t", "signature": signature}
    for content, left in (
        ([foreign, neighbour], [neighbour]),
        ([neighbour, foreign, neighbour], [neighbour, neighbour]),
    ):
        said = {"role": "assistant", "content": content, "zz": None}
        asked = {"model": "m", "max_tokens": 9, "messages": [GO, said]}
        exchange = route("messages", "messages").open(json.dumps(asked).encode())
        assert sent(exchange) == {**asked, "messages": [GO, {**said, "content": left}]}
        assert [entry["path"] for entry in exchange.ledger] == [f"messages[1].content[{content.index(foreign)}]"]


def test_an_instruction_of_an_unknown_block_stays_one() -> None:
    system = [{"type": "zz", "text": "a"}]
    asked = {"model": "m", "max_tokens": 9, "messages": [GO], "system": system}
    exchange = route("messages", "messages", requests=RequestOptions(sampling=False)).open(json.dumps(asked).encode())
    assert sent(exchange) == asked


def tool(client: str, name: str, description: str) -> JSON:
    function = {"name": name, "description": description, "parameters": {"type": "object"}}
    return {"type": "function", "function": function} if client == "chat" else {"type": "function", **function}


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_toward_messages_the_first_of_two_tools_of_one_name_counts(client: str) -> None:
    turns: JSON = {"input": "go"} if client == "responses" else {"messages": [GO]}
    tools = [tool(client, "f", "one"), tool(client, "g", "other"), tool(client, "f", "two")]
    if client == "responses":
        tools += [{"type": "custom", "name": "f"}, {"type": "web_search"}, tool(client, "web_search", "own")]
    on = route(client, "messages", requests=RequestOptions(web_search=True))
    exchange = on.open(json.dumps({"model": "m", **turns, "tools": tools}).encode())
    offered = [(given["name"], given.get("description")) for given in sent(exchange)["tools"]]
    assert offered[:2] == [("f", "one"), ("g", "other")]
    assert [name for name, _ in offered[2:]] == (["web_search"] if client == "responses" else [])
    twice = [entry["path"] for entry in exchange.ledger if "one name" in entry["reason"]]
    assert twice == [f"tools[{at}]" for at in ((2,) if client == "chat" else (2, 3, 5))]


def test_toward_its_own_dialect_tools_of_one_name_stay() -> None:
    tools = [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {"type": "object"}}]
    asked = {"model": "m", "max_tokens": 9, "messages": [GO], "tools": tools}
    assert sent(route("messages", "messages").open(json.dumps(asked).encode())) == asked


ASKED: dict[str, JSON] = {
    "chat": {"model": "m", "messages": [GO]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [GO]},
    "responses": {"model": "m", "input": "go"},
}
CROSS = [(client, upstream) for client in ASKED for upstream in ASKED if client != upstream]
MISSING = {"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "field required"}
OVERFLOW = "This model's maximum context length is 8192 tokens"


def failed(client: str, upstream: str, status: int, body: Any) -> tuple[int, JSON]:
    """The status and the error that the client of a failed request is told."""
    exchange = route(client, upstream).open(json.dumps(ASKED[client]).encode())
    reply = exchange.reply(status, {"content-type": "application/json"})
    assert isinstance(reply.chain, Stage)
    raw = b"".join(reply.chain.receive([json.dumps(body).encode()])) + b"".join(reply.chain.receive_eof())
    assert reply.head is not None
    error: JSON = json.loads(raw)["error"]
    return reply.head.status, error


@pytest.mark.parametrize(("client", "upstream"), CROSS)
def test_an_error_says_which_member_it_is_about(client: str, upstream: str) -> None:
    place = "body.messages.0.content: field required"
    assert failed(client, upstream, 422, {"detail": [MISSING]})[1]["message"] == place
    several = failed(client, upstream, 422, {"detail": [MISSING, {**MISSING, "loc": ["body", "n"]}]})
    assert (several[0], several[1]["message"]) == (422, f"{place}; body.n: field required")
    for odd in ([], "body", None, [None]):
        assert failed(client, upstream, 422, {"detail": [{**MISSING, "loc": odd}]})[1]["message"] == "field required"


@pytest.mark.parametrize(("client", "upstream"), CROSS)
def test_the_status_of_an_error_is_that_of_its_type(client: str, upstream: str) -> None:
    for code in (429, "rate_limit_error"):
        status, error = failed(client, upstream, 400, {"error": {"message": "slow down", "code": code}})
        assert (status, error["type"]) == (429, "rate_limit_error")
    assert failed(client, upstream, 400, {"error": {"message": "no", "code": "invalid_request_error"}})[0] == 400


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_claude_code_is_told_in_its_words_that_the_conversation_is_too_long(upstream: str) -> None:
    body = {"error": {"message": OVERFLOW, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    status, error = failed("messages", upstream, 400, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"] == f"prompt is too long: {OVERFLOW}"
    told = {"error": {**body["error"], "message": "Prompt is too long: 9 tokens > 8 maximum"}}
    assert failed("messages", upstream, 400, told)[1]["message"] == told["error"]["message"]
    again = {"type": "error", "error": error}
    assert failed("chat", "messages", 400, again)[1]["code"] == "context_length_exceeded"
