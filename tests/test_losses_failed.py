"""What stands beside an error that is told in other words: in the ledger, once, whatever form and status it came in."""

import json
from typing import Any

import pytest

from pipeline.reply import Form
from tests.alike import Json, asked
from tests.answer_full import WHOLE, frames_of, written
from tests.exchange import answered, route
from tests.lawful import GRAMMARS
from tests.test_failed_counts import COUNTS, FAILED, got, lost

ERROR: Json = {"message": "BOOM", "type": "server_error", "odd": 1, "none": None}
CROSSING = [(up, down) for up in GRAMMARS for down in GRAMMARS if up != down]


def paths(client: str, upstream: str, body: Any, *, stream: bool) -> list[str]:
    """What the ledger has of a reply of status 200: the members that are odd."""
    exchange = route(client, upstream).open(asked(client, stream=stream))
    reply = answered(exchange, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert b"BOOM" in reply.body
    return [entry["path"] for entry in exchange.ledger if "odd" in entry["path"]]


def failing(upstream: str, *, begun: bool) -> bytes:
    """A stream that tells an error, alone or behind the beginning of an answer."""
    if upstream == "responses" and begun:
        told: Json = {"type": "response.failed", "response": {"status": "failed", "output": [], "error": ERROR}}
    else:
        told = {"type": "error", "error": ERROR, "odd": 2} if upstream != "chat" else {"error": ERROR, "odd": 2}
    frames = [frame for frame in frames_of(upstream)[: 4 if upstream == "responses" else 2] if begun]
    return written(upstream, [*frames, told]).removesuffix(b"data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_odd_members_of_an_error_in_a_stream_are_recorded(
    upstream: str, client: str, begun: bool, stream: bool
) -> None:
    due = ["error.odd"] if upstream == "responses" and begun else ["error.odd", "odd"]
    assert paths(client, upstream, failing(upstream, begun=begun), stream=stream) == due


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", GRAMMARS)
@pytest.mark.parametrize("client", GRAMMARS)
def test_odd_members_of_an_error_that_came_as_a_success_are_recorded_unless_it_goes_as_it_came(
    client: str, upstream: str, stream: bool
) -> None:
    body: Json = {"error": ERROR, "odd": 1}
    due = [] if client == upstream and client != "messages" else ["error.odd", "odd"]
    assert paths(client, upstream, body, stream=stream) == due


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_and_those_of_one_beside_content(upstream: str, client: str, stream: bool) -> None:
    kind = {"type": "error"} if upstream == "messages" else {}
    assert paths(client, upstream, {**WHOLE[upstream], **kind, "error": ERROR}, stream=stream) == ["error.odd"]


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_and_those_of_one_in_a_choice(client: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "error": ERROR}
    for stream in (True, False):
        assert paths(client, "chat", {"choices": [choice]}, stream=stream) == ["error.odd"]


@pytest.mark.parametrize("where", ["top", "choice"])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("client", GRAMMARS)
def test_counts_of_a_chat_answer_that_failed_are_told_or_recorded_once(
    client: str, leaving: Form, streamed: bool, where: str
) -> None:
    said: Json = {"role": "assistant", "content": "hi"}
    choice: Json = {"index": 0, "delta" if streamed else "message": said}
    (choice if where == "choice" else {})["error"] = ERROR
    body: Json = {"id": "c", "model": "m", "choices": [choice], **({} if where == "choice" else {"error": ERROR})}
    (choice if where == "choice" else body)["usage"] = COUNTS["chat"]
    raw = b"data: " + json.dumps(body).encode() + b"\n\n" if streamed else json.dumps(body).encode()
    reply = got(client, "chat", raw, leaving)
    assert b"BOOM" in reply.body
    assert lost(reply) == ([] if b"70001" in reply.body else [FAILED])


def test_counts_in_a_chunk_before_the_error_are_recorded_where_the_client_is_told_the_error_alone() -> None:
    first: Json = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]}
    frames = [first, {"choices": [], "usage": COUNTS["chat"]}, {"error": ERROR}]
    reply = got("chat", "chat", written("chat", frames), Form.WHOLE)
    assert b"70001" not in reply.body
    assert lost(reply) == [FAILED]
