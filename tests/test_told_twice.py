"""What a stream tells twice, or beside the place where clients look for it."""

import json
from typing import Any

import pytest

from stages.dialects.messages.normalize import MessagesNormalizer
from tests.alike import heard
from tests.patching import Json, response, spoken
from tests.responses_stream import frame
from tests.returning import payloads
from tests.test_bridged import body_of, stream_of
from tests.test_bridged_arguments import named

BEGUN: Json = {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 3}}}
STOP: list[Json] = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


def called(given: Any, *pieces: str) -> list[Json]:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": given}
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    start: Json = {"type": "content_block_start", "index": 0, "content_block": block}
    return [BEGUN, start, *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas), *STOP]


@pytest.mark.parametrize(
    ("given", "pieces", "lost"),
    [
        ({"a": 1}, ['{"b"', ": 2}"], 1),
        ({"a": 1.5}, ['{"a"', ":1.50}"], 0),
        ({"a": 1}, ['{"a": 1}'], 0),
        ({}, ['{"b": 2}'], 0),
        ({"a": 1}, [], 0),
    ],
    ids=str,
)
def test_input_of_a_call_that_its_deltas_tell_otherwise_is_in_the_ledger(
    given: Any, pieces: list[str], lost: int
) -> None:
    due = ("input", "dropped")
    events = called(given, *pieces)
    for client in ("chat", "responses"):
        for stream in (True, False):
            assert heard(client, "messages", [named(events)], stream=stream).ledger == (due,) * lost
    out, outcome = body_of("messages", named(events))
    assert json.loads(out)["content"][0]["input"] == (json.loads("".join(pieces)) if pieces else given)
    assert len(outcome.ledger) == lost


def test_a_message_that_begins_again_is_in_the_ledger() -> None:
    stage = MessagesNormalizer()
    stage.receive([*map(frame, [BEGUN, BEGUN, *called({"a": 1})[1:]])])
    assert [(entry.path, entry.action) for entry in stage.ledger] == [("message_start", "ignored")]


@pytest.mark.parametrize("own", [None, {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}])
def test_counts_that_stand_beside_those_of_chat_are_where_clients_look_for_them(own: Any) -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "queue_time": 0.5}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": None}
    ends = {"index": 0, "delta": {}, "finish_reason": "stop"}
    last = {**chunk, "choices": [ends], "x_groq": {"id": "r", "usage": counts}, **({"usage": own} if own else {})}
    raw = b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in ({**chunk, "choices": [said]}, last))
    out, outcome = body_of("chat", raw + b"data: [DONE]\n\n")
    body = json.loads(out)
    assert (body["usage"], body["x_groq"], [*outcome.ledger]) == (own or counts, {"id": "r", "usage": counts}, [])


def test_a_response_that_was_cancelled_failed_at_the_server_in_its_stream_too() -> None:
    out, _ = stream_of("responses", response(spoken("hi"), status="cancelled"))
    assert payloads(out)[-1]["response"]["error"]["code"] == "server_error"
