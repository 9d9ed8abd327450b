"""What is counted before a failure is told, or the ledger has it: in each dialect, whole and streamed, at each cut."""

import json
from typing import Any

import pytest

from pipeline.outcome import Verdict
from pipeline.reply import Form
from tests.answer_full import WHOLE, Json, frames_of, written
from tests.exchange import Got, answered, route
from tests.test_errors_kept import ASKED

BOOM: Json = {"type": "api_error", "message": "BOOM", "code": "x"}
CROSSING = [(up, down) for up in WHOLE for down in WHOLE if up != down]
COUNTS: dict[str, Json] = {
    "chat": {"prompt_tokens": 70001, "completion_tokens": 80002, "total_tokens": 150003},
    "messages": {"input_tokens": 70001, "output_tokens": 80002},
    "responses": {"input_tokens": 70001, "output_tokens": 80002, "total_tokens": 150003},
}
FAILED = ("usage", "dropped", "the answer failed")


def got(client: str, upstream: str, body: bytes, leaving: Form) -> Got:
    """What a client gets of an upstream's reply."""
    asked: dict[str, Any] = {"model": "m", "stream": leaving is Form.STREAM, **ASKED[client]}
    if client == "chat" and leaving is Form.STREAM:
        asked["stream_options"] = {"include_usage": True}
    return answered(route(client=client, upstream=upstream).open(json.dumps(asked).encode()), body)


def lost(reply: Got) -> list[tuple[str, str, str]]:
    """The counts that the ledger has."""
    return [
        (entry["path"], entry["action"], entry["reason"])
        for entry in reply.exchange.ledger
        if entry["path"] == "usage" and entry["action"] == "dropped"
    ]


def counted(upstream: str, late: bool) -> list[Json]:
    """A stream's frames: counts in those that have them, all in the first or the last of these."""
    frames = [frame for frame in frames_of(upstream) if frame.get("type") != "message_stop"]
    for frame in frames:
        for holder in (frame, frame.get("message"), frame.get("response")):
            if isinstance(holder, dict):
                holder.pop("usage", None)
    if upstream == "messages":
        (frames[-1] if late else frames[0]["message"])["usage"] = COUNTS[upstream]
    else:
        frames[-1 if late else 0]["usage"] = COUNTS[upstream]
    return frames


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("upstream", "client"), [pair for pair in CROSSING if pair[0] != "responses"])
def test_counts_before_a_failure_in_a_stream_are_told_or_recorded_once(
    upstream: str, client: str, cut: bool, late: bool
) -> None:
    frames = counted(upstream, late)
    if upstream == "chat":  # no finish: behind one, an end is an end
        frames = [frame for frame in frames if not any(one["finish_reason"] for one in frame["choices"])]
        frames[-1 if late else 0]["usage"] = COUNTS[upstream]
    error: list[Json] = [] if cut else [{"type": "error", "error": BOOM}]
    stream = written(upstream, [*frames, *error]).removesuffix(b"data: [DONE]\n\n")
    reply = got(client, upstream, stream, Form.STREAM)
    assert reply.exchange.outcome.verdict is not Verdict.COMPLETE
    told = b"70001" in reply.body
    assert lost(reply) == ([] if told else [FAILED])
    assert told or late or client != "messages"


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("upstream", "client"), [pair for pair in CROSSING if pair[0] != "responses"])
def test_counts_at_the_start_and_late_are_one_loss_before_a_failure(upstream: str, client: str, cut: bool) -> None:
    begun, late = counted(upstream, late=False), counted(upstream, late=True)
    early = begun[0]["message"] if upstream == "messages" else begun[0]
    early["usage"] = {**COUNTS[upstream], next(iter(COUNTS[upstream])): 60009}
    if upstream == "chat":
        late = [frame for frame in late if not any(one["finish_reason"] for one in frame["choices"])]
        late[-1]["usage"] = COUNTS[upstream]
    error: list[Json] = [] if cut else [{"type": "error", "error": BOOM}]
    stream = written(upstream, [begun[0], *late[1:], *error]).removesuffix(b"data: [DONE]\n\n")
    reply = got(client, upstream, stream, Form.STREAM)
    assert reply.exchange.outcome.verdict is not Verdict.COMPLETE
    assert lost(reply) == [FAILED]


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize("beside", [{}, {"choices": []}])
def test_a_whole_chat_answers_counts_beside_its_error_are_told_or_recorded(
    client: str, leaving: Form, beside: Json
) -> None:
    body = json.dumps({**WHOLE["chat"], "usage": COUNTS["chat"], "error": BOOM, **beside}).encode()
    reply = got(client, "chat", body, leaving)
    assert b"BOOM" in reply.body
    assert lost(reply) == ([] if b"70001" in reply.body else [FAILED])


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_what_else_a_chat_stream_tells_late_is_recorded_where_it_failed(client: str) -> None:
    first = next(frame for frame in frames_of("chat") if frame["choices"])
    late = [{**first, "service_tier": "flex", "provider": "P"}]
    stream = written("chat", [first, *late, {"error": BOOM}])
    paths = [entry["path"] for entry in got(client, "chat", stream, Form.STREAM).exchange.ledger]
    assert [path for path in paths if path in ("service_tier", "provider")] == ["provider", "service_tier"]


def test_counts_of_nothing_are_no_loss() -> None:
    for upstream, client in CROSSING:
        frames = frames_of(upstream)[:1]
        for frame in frames:
            for holder in (frame, frame.get("message"), frame.get("response")):
                if isinstance(holder, dict):
                    holder.pop("usage", None)
        reply = got(client, upstream, written(upstream, frames).removesuffix(b"data: [DONE]\n\n"), Form.STREAM)
        assert lost(reply) == []
