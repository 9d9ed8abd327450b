"""The status of an answer: whatever the cut of the bytes, what decides it is the first that says something."""

import json
import re
from typing import Any

import pytest

from tests.exchange import answered, route
from tests.patching import Json

BEGUN: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
WHY = {"code": "rate_limit_exceeded", "message": "slow down"}
RESPONSES = [
    {"type": "response.created", "response": BEGUN},
    {"type": "response.in_progress", "response": BEGUN},
    {"type": "response.failed", "response": {**BEGUN, "status": "failed", "error": WHY}},
]
LIMIT = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
MESSAGES = [
    {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "ping"},
    LIMIT,
]
CHAT = [{"id": "c", "model": "m", "choices": []}, {"error": {"message": "slow down", "code": 429}}]
FAILING: dict[str, list[Any]] = {"responses": RESPONSES, "messages": MESSAGES, "chat": CHAT}
SPOKEN: dict[str, Json] = {
    "responses": {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "Hi"},
    "messages": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
    "chat": {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]},
}
ASKED = {"model": "m", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def sse(frames: list[Any]) -> bytes:
    named = [f"event: {frame['type']}\n" if "type" in frame else "" for frame in frames]
    return b"".join(f"{name}data: {json.dumps(one)}\n\n".encode() for name, one in zip(named, frames, strict=True))


def answers(client: str, upstream: str, raw: bytes) -> set[tuple[int, bytes]]:
    """The status and the body that a client gets, with the bytes cut in two: round each frame's end, and between."""
    asked = {"model": "m", "stream": True, "input": "hi"} if client == "responses" else ASKED
    ends = [found.end() for found in re.finditer(rb"\n\n", raw)]
    found = set()
    for at in sorted(
        {*range(0, len(raw), 7), *(end + by for end in ends for by in (-2, -1, 0, 1) if end + by < len(raw))}
    ):
        exchange = route(client, upstream).open(json.dumps(asked).encode())
        got = answered(exchange, *filter(None, (raw[:at], raw[at:])))
        found.add((got.status, got.body if got.status != 200 else b""))
    return found


@pytest.mark.parametrize("client", FAILING)
@pytest.mark.parametrize("upstream", FAILING)
def test_an_error_behind_the_announcement_alone_has_its_status_at_every_cut(upstream: str, client: str) -> None:
    """But where it goes as it came, and to a client that acts on a stream that failed: `test_failed_in_stream`."""
    ((status, body),) = answers(client, upstream, sse(FAILING[upstream]))
    if client in (upstream, "responses"):
        assert status == 200
        return
    assert status == 429
    assert b"slow down" in body


@pytest.mark.parametrize("client", FAILING)
@pytest.mark.parametrize("upstream", FAILING)
def test_an_error_behind_something_of_the_answer_is_told_in_the_stream_at_every_cut(upstream: str, client: str) -> None:
    *begun, error = FAILING[upstream]
    ((status, _),) = answers(client, upstream, sse([*begun, SPOKEN[upstream], error]))
    assert status == 200
