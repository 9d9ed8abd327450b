"""examples.gateway.table: what an upstream of the client's dialect is told of its headers."""

import pytest

from examples.gateway.config import Config
from examples.gateway.table import Asked, Gateway, passed_up
from pipeline.dialect import dialect
from pipeline.route import Exchange, UpstreamRequest


def test_what_no_server_can_write_and_what_nobody_knows_is_not_told() -> None:
    headers = {"x-codex-a": "1", "x-codex-\x01": "2", "x-codex-b": "a\nb", "x-other": "3", "x-codex-session-token": "4"}
    assert passed_up(headers, dialect("responses").tells) == {"x-codex-a": "1"}
    assert passed_up(headers, dialect("chat").tells) == {}


def gateway(speaks: str) -> Gateway:
    return Gateway.of(Config(dialect=speaks, upstream="http://x"))


BODIES = {
    "messages": b'{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"go"}]}',
    "chat/completions": b'{"model":"m","messages":[{"role":"user","content":"go"}]}',
    "responses": b'{"model":"m","input":"go"}',
}
VENDORS = {"anthropic-version": "2026-01-01", "anthropic-beta": "b-1", "openai-beta": "c-1", "x-codex-a": "d"}


def asked(path: str, query: str, upstream: str) -> Exchange:
    target = f"/v1/{path}?{query}" if query else f"/v1/{path}"
    return gateway(upstream).open(Asked(method="POST", target=target, headers=VENDORS, body=BODIES[path]))


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("upstream", ["messages", "chat", "responses"])
def test_an_upstream_of_the_clients_dialect_alone_is_told_its_query_and_its_vendors_headers(
    path: str, upstream: str
) -> None:
    exchange = asked(path, "beta=true&a=%20b", upstream)
    assert isinstance(exchange.request, UpstreamRequest)
    told = {name: value for name, value in exchange.request.headers.items() if name in VENDORS}
    own = {name for name in VENDORS if name.startswith("anthropic-" if path == "messages" else ("openai-", "x-codex-"))}
    own -= {"x-codex-a"} if path == "chat/completions" else set()
    lost = [(entry["path"], entry["action"]) for entry in exchange.ledger if entry["stage"] == "Route"]
    if dialect(upstream).path == path:
        assert exchange.request.path == f"{path}?beta=true&a=%20b"
        assert (set(told), len(lost)) == (own, 0)
    else:
        assert exchange.request.path == dialect(upstream).path
        assert told == {}
        assert sorted(lost) == sorted((name, "dropped") for name in ("query", *own))


@pytest.mark.parametrize("query", ["", "a b", "\xe9", "a\nb"])
def test_a_query_that_no_server_can_write_is_none(query: str) -> None:
    exchange = asked("messages", query, "messages")
    assert isinstance(exchange.request, UpstreamRequest)
    assert exchange.request.path == "messages"


def test_a_query_ends_where_a_fragment_begins() -> None:
    assert Asked(method="POST", target="/v1/messages?a=b#c").query == "a=b"
