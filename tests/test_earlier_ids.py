"""An id that an earlier call of the conversation has: a client of another dialect is told another one."""

import json
from itertools import product
from typing import Any

import pytest

from pipeline.ids import CallIds
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests import support as cs
from tests.exchange import answered, route, whole

DIALECTS = ("chat", "messages", "responses")


def asked(client: str, *ids: str, **members: Any) -> bytes:
    """A request whose conversation holds calls of those ids."""
    user = {"role": "user", "content": "hi"}
    if client == "chat":
        turns: list[Any] = [user]
        for name in ids:
            turns += [{"role": "assistant", "content": None, "tool_calls": [cs.fragment(None, name, "f", "{}")]}]
            turns += [{"role": "tool", "tool_call_id": name, "content": "x"}]
        return json.dumps({"model": "m", "messages": turns, **members}).encode()
    if client == "messages":
        turns = [user]
        for name in ids:
            turns += [{"role": "assistant", "content": [ms.call(name, "f", {})]}]
            turns += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "x"}]}]
        return json.dumps({"model": "m", "max_tokens": 9, "messages": turns, **members}).encode()
    items: list[Any] = [user]
    for name in ids:
        items += [rs.call("{}", call_id=name), {"type": "function_call_output", "call_id": name, "output": "x"}]
    return json.dumps({"model": "m", "input": items, **members}).encode()


def calls(upstream: str, name: str, *, streams: bool) -> bytes:
    """An answer that is one call."""
    if upstream == "chat":
        called = cs.fragment(0, name, "f", "{}")
        chunks = cs.sse(cs.chunk({"tool_calls": [called]}), cs.finish("tool_calls"), cs.DONE)
        return chunks if streams else whole("tool_calls", tool_calls=[called])
    if upstream == "messages":
        block = ms.call(name, "f", {})
        usage = {"input_tokens": 1, "output_tokens": 1}
        told = [ms.begin(usage=usage), ms.start(block), ms.stop(), ms.told("tool_use", usage), ms.END]
        message = ms.message(block, stop_reason="tool_use", usage=usage)
        return ms.sse(told) if streams else json.dumps(message).encode()
    item = rs.call("{}", call_id=name)
    items = [rs.created(), rs.added(item), rs.done(item), rs.terminal(output=[item])]
    return ms.sse(items) if streams else json.dumps(rs.response(output=[item])).encode()


FORMS = [*product((True, False), (True, False))]


@pytest.mark.parametrize(("arrives", "leaves"), FORMS)
@pytest.mark.parametrize(("client", "upstream"), [*product(DIALECTS, DIALECTS)])
def test_an_id_of_an_earlier_turn_gets_a_suffix_but_over_its_own_dialect(
    client: str, upstream: str, arrives: bool, leaves: bool
) -> None:
    raw = calls(upstream, "call_0", streams=arrives)
    for earlier, told in (((), "call_0"), (("call_0",), "call_0_2"), (("call_0", "call_0_2"), "call_0_3")):
        exchange = route(client, upstream).open(asked(client, *earlier, stream=leaves))
        body = answered(exchange, raw).body
        if client == upstream:
            told = "call_0"
            assert body == raw or arrives != leaves
        assert f'"{told}"'.encode() in body
        renamed = [entry["action"] for entry in exchange.ledger if entry["action"] == "renamed"]
        assert renamed == (["renamed"] if told != "call_0" else [])


def test_an_id_that_the_upstream_was_given_for_an_earlier_one_is_no_new_calls() -> None:
    exchange = route("chat", "messages").open(asked("chat", "a:b", stream=False))
    (theirs,) = exchange.facts.map.ids
    body = answered(exchange, calls("messages", theirs, streams=False)).body
    (call,) = json.loads(body)["choices"][0]["message"]["tool_calls"]
    assert call["id"] == f"{theirs}_2"


def test_ids_are_unique_beside_those_of_earlier_calls() -> None:
    given = CallIds("Normalizer", "calls[].id", Ledger(), DEFAULT_LIMITS, ["a", "b"])
    assert [given.unique(name) for name in ("a", "c", "b", "a")] == ["a_2", "c", "b_2", "a_3"]
