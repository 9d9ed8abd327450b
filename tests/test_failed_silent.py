"""An answer that failed and says content: both reach the client, or the ledger has what does not."""

import copy
import json
from typing import Any

import pytest

from pipeline.outcome import Verdict
from pipeline.reply import Form
from tests.answer_full import WHOLE, Json, frames_of, written
from tests.exchange import Got, answered, route
from tests.test_errors_kept import ASKED

BOOM: Json = {"type": "api_error", "message": "BOOM", "code": "x"}
FAILURES: dict[str, list[Json]] = {
    "chat": [
        {"error": BOOM},
        {"error": "BOOM"},
        {"type": "error", "error": BOOM},
        {"object": "error", "message": "BOOM"},
        {"base_resp": {"status_code": 1002, "status_msg": "BOOM"}},
        {"x_groq": {"error": BOOM}},
        {"choices": [{**WHOLE["chat"]["choices"][0], "error": BOOM}]},
        {"choices": [{**WHOLE["chat"]["choices"][0], "error": BOOM, "finish_reason": "error"}]},
        {"choices": [{**WHOLE["chat"]["choices"][0], "error": "BOOM", "finish_reason": None}]},
    ],
    "messages": [
        {"type": "error", "error": BOOM},
        {"type": "error", "error": "BOOM"},
        {"type": "error", "message": "BOOM"},
        {"type": "error", "error": BOOM, "content": "hi"},
    ],
    "responses": [
        {"status": "failed", "error": BOOM},
        {"error": BOOM},
        {"status": "cancelled", "error": BOOM},
        {"type": "error", "error": BOOM},
        {"status": "failed", "error": {"message": "BOOM"}, "output_text": "hi"},
    ],
}
"""What a whole answer of each dialect says where it failed, beside its content."""
ROUTES = [(up, down, at) for up in WHOLE for down in WHOLE for at in range(len(FAILURES[up]))]
TOLD_BY_ITS_ERROR = ("content", "dropped", "the answer failed: it is told by its error")


def got(client: str, upstream: str, body: bytes, leaving: Form, **members: Any) -> Got:
    """What a client gets of an upstream's reply."""
    asked = {"model": "m", "stream": leaving is Form.STREAM, **ASKED[client], **members}
    return answered(route(client=client, upstream=upstream).open(json.dumps(asked).encode()), body)


def lost(reply: Got) -> list[tuple[str, str, str]]:
    """The content that the ledger has."""
    entries = [(entry["path"], entry["action"], entry["reason"]) for entry in reply.exchange.ledger]
    return [entry for entry in entries if entry[0] == "content"]


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize(("upstream", "client", "at"), ROUTES)
def test_a_whole_answer_that_failed_is_told_with_its_content_or_that_is_recorded(
    upstream: str, client: str, at: int, leaving: Form
) -> None:
    body = json.dumps({**WHOLE[upstream], **FAILURES[upstream][at]}).replace('"hi"', '"HALLO"').encode()
    reply = got(client, upstream, body, leaving)
    assert b"BOOM" in reply.body
    assert reply.exchange.outcome.verdict is Verdict.FAILED
    assert lost(reply) == ([] if b"HALLO" in reply.body else [TOLD_BY_ITS_ERROR])
    assert b"HALLO" in reply.body or leaving is Form.WHOLE


@pytest.mark.parametrize("failed", [[], [{"type": "error", "error": BOOM}]], ids=["cut", "failed"])
@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("client", WHOLE)
@pytest.mark.parametrize("upstream", WHOLE)
def test_a_stream_that_is_cut_or_fails_is_told_with_its_content_or_that_is_recorded(
    upstream: str, client: str, leaving: Form, failed: list[Json]
) -> None:
    frames = json.loads(json.dumps(frames_of(upstream)).replace('"hi"', '"HALLO"'))
    for end in range(len(frames) - 1):
        stream = written(upstream, [*frames[:end], *failed]).removesuffix(b"data: [DONE]\n\n")
        reply = got(client, upstream, stream, leaving)
        if reply.exchange.outcome.verdict is Verdict.COMPLETE:
            continue
        said = "HALLO" in json.dumps(frames[:end])
        assert said or lost(reply) in ([], [TOLD_BY_ITS_ERROR])
        if said and b"HALLO" not in reply.body:
            assert (leaving, lost(reply)) == (Form.WHOLE, [TOLD_BY_ITS_ERROR]), end


@pytest.mark.parametrize("client", WHOLE)
@pytest.mark.parametrize("upstream", WHOLE)
def test_a_failure_without_content_loses_none(upstream: str, client: str) -> None:
    empty: dict[str, Json] = {"chat": {"choices": []}, "messages": {"content": []}, "responses": {"output": []}}
    body = {**WHOLE[upstream], **FAILURES[upstream][0], **empty[upstream]}
    assert lost(got(client, upstream, json.dumps(body).encode(), Form.WHOLE)) == []


@pytest.mark.parametrize("text", ["hi", [{"type": "text", "text": "hi"}]])
def test_a_messages_body_that_is_an_error_is_unrolled_to_its_content_and_the_error(text: Any) -> None:
    body = {**copy.deepcopy(WHOLE["messages"]), "type": "error", "error": {**BOOM, "odd": 1}, "content": text, "zz": 7}
    reply = got("messages", "messages", json.dumps(body).encode(), Form.STREAM)
    frames = [json.loads(line[6:]) for line in reply.body.splitlines() if line.startswith(b"data: ")]
    assert [frame["type"] for frame in frames] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "error",
    ]
    assert (frames[0]["message"]["type"], frames[0]["message"]["zz"]) == ("message", 7)
    assert "error" not in frames[0]["message"]
    assert frames[-1] == {"type": "error", "error": {**BOOM, "odd": 1}}
    assert reply.exchange.ledger == [
        {
            "direction": "response",
            "stage": "messages.forms",
            "path": "stop_reason",
            "action": "dropped",
            "reason": "the answer failed",
        }
    ]


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize("kind", ["response.failed", "response.cancelled", "response.completed"])
def test_what_a_response_tells_late_is_recorded_also_where_it_failed(kind: str, client: str, leaving: Form) -> None:
    frames = frames_of("responses")
    last = frames[-1]
    response = last["response"]
    status = kind.partition(".")[2]
    response |= {"status": status, "metadata": {"a": "b"}, "zz": 1, "service_tier": "flex"}
    stream = written("responses", [*frames[:-1], {**last, "type": kind, "ww": 1}])
    found = [entry["path"] for entry in got(client, "responses", stream, leaving).exchange.ledger]
    late = ["service_tier", "usage"] if kind != "response.completed" else []
    assert [path for path in found if path in ("event.ww", "metadata", "zz", "usage")] == sorted(
        ["event.ww", "metadata", "zz", *late[1:]]
    )
    assert found.count("service_tier") == (1 if late or client == "messages" else 0)


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_delta_of_a_kind_that_nobody_knows_is_one_entry(client: str) -> None:
    frames = frames_of("messages")
    at = next(at for at, frame in enumerate(frames) if frame.get("delta", {}).get("type") == "text_delta")
    odd = {**frames[at], "delta": {"type": "odd_delta", "x": "y", "text": "z"}}
    found = [
        entry["path"]
        for entry in got(
            client, "messages", written("messages", [*frames[:at], odd, *frames[at:]]), Form.STREAM
        ).exchange.ledger
    ]
    assert [path for path in found if path.startswith("delta")] == ["delta"]
