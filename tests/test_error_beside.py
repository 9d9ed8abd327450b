"""The body of an HTTP error that is told in other words: what else stands in it is in the ledger."""

import json
from typing import Any

import pytest

from tests.alike import Json, asked
from tests.exchange import answered, route
from tests.lawful import GRAMMARS

ERROR: Json = {"message": "BOOM", "type": "server_error", "code": "x", "param": None, "odd": 1, "none": None}
SPOKEN: dict[str, Json] = {
    "chat": {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}}]},
    "messages": {"content": [{"type": "text", "text": "hello"}]},
    "responses": {"output": [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}]},
}
WHY = "the answer failed: it is told by its error"


def lost(client: str, upstream: str, body: Any, status: int = 500, *, stream: bool = False) -> list[str]:
    """What the ledger has of an error's body."""
    exchange = route(client, upstream).open(asked(client, stream=stream))
    got = answered(exchange, body if isinstance(body, bytes) else json.dumps(body).encode(), status=status)
    assert got.status == 500
    assert b"BOOM" in got.body
    entries = [entry for entry in exchange.ledger if entry["direction"] == "response"]
    assert {(entry["action"], entry["reason"]) for entry in entries} <= {("dropped", WHY)}
    return sorted(entry["path"] for entry in entries)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", GRAMMARS)
@pytest.mark.parametrize("client", GRAMMARS)
def test_content_and_members_beside_an_error_are_recorded_where_its_body_is_not_passed_on(
    client: str, upstream: str, stream: bool
) -> None:
    kind = {"type": "error"} if upstream == "messages" else {}
    body = {**kind, "error": ERROR, **SPOKEN[upstream], "odd": 2, "none": 0}
    kept = client == upstream and client != "chat"
    due = [] if kept else sorted([*SPOKEN[upstream], "error.odd", "odd"])
    assert lost(client, upstream, body, stream=stream) == due


@pytest.mark.parametrize(
    ("body", "due"),
    [
        ({"error": ERROR}, ["error.odd"]),
        ({"error": [ERROR], "odd": 1}, ["error.odd", "odd"]),
        ([{"error": ERROR, "odd": 1}, {"odd": 2}, 7], ["error.odd", "odd"]),
        ({"error": {"message": {"error": ERROR, "more": 1}}}, ["error.more", "error.odd"]),
        ({"error": {"metadata": {"raw": "BOOM", "by": "p"}}}, ["error.metadata.by"]),
        ({"detail": [{"msg": "BOOM", "loc": ["body"]}]}, []),
        ({"told": {"deep": [{"why": "BOOM"}]}, "message": "BOOM", "odd": 1}, ["odd"]),
        ({"error": "BOOM", "x": {"y": [0, None, ""]}}, []),
        (b"BOOM", []),
    ],
)
def test_what_is_told_of_an_error_or_says_nothing_is_not_lost(body: Any, due: list[str]) -> None:
    assert lost("messages", "chat", body) == due


def test_of_an_error_that_came_as_a_success_what_stands_around_it_is_recorded_once() -> None:
    for client in GRAMMARS:
        exchange = route(client, "chat").open(asked(client, stream=False))
        answered(exchange, json.dumps({"error": {**ERROR, "message": 7}, "odd": 1}).encode())
        paths = [entry["path"] for entry in exchange.ledger if entry["direction"] == "response"]
        assert paths.count("error.odd") == 1
        assert paths.count("odd") <= 1
