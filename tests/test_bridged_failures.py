"""One dialect over itself, a whole answer that failed and leaves as a stream: what it said, then that it failed."""

import json

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Verdict
from tests.lawful import check_law
from tests.patching import Json
from tests.returning import payloads
from tests.test_bridged import bodies, stream_of

ERROR: Json = {"message": "bad", "type": "x", "code": "rate_limit_exceeded", "odd": 1}


@pytest.mark.parametrize(
    ("beside", "due"),
    [
        ({"error": ERROR, "odd": 2}, {"error": ERROR, "odd": 2}),
        ({"error": "oops"}, {"error": {"message": "oops", "type": "server_error", "param": None, "code": None}}),
        (
            {"x_groq": {"id": "g", "error": {"message": "no"}}},
            {"error": {"message": "no", "type": "server_error", "param": None, "code": None}, "x_groq": {"id": "g"}},
        ),
        (
            {"base_resp": {"status_code": 1002, "status_msg": "slow"}},
            {"error": {"message": "slow", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}},
        ),
    ],
)
def test_a_chat_answer_beside_an_error_is_told_with_all_its_members_and_then_the_error(beside: Json, due: Json) -> None:
    body = {**bodies()["chat"], "service_tier": "flex", "system_fingerprint": "fp", **beside}
    stream, outcome = stream_of("chat", body)
    check_law("chat", stream)
    *chunks, last = payloads(stream)
    for chunk in chunks:
        assert (chunk["id"], chunk["created"], chunk["service_tier"]) == (body["id"], 7, "flex")
        assert (chunk["system_fingerprint"], chunk["choices"][0]["finish_reason"]) == ("fp", None)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[1]["content"] == "hello"
    assert deltas[2]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert last["error"] == due["error"]
    assert last.get("odd") == beside.get("odd", body["odd"])
    assert last.get("x_groq") == beside.get("x_groq")
    assert last["usage"] == body["usage"]
    assert outcome.verdict is Verdict.FAILED
    assert [(entry.path, entry.action) for entry in outcome.ledger] == [("finish_reason", "dropped")]


def test_each_choice_of_a_chat_answer_beside_an_error_is_told_and_no_count_that_nobody_wants() -> None:
    body = {**bodies()["chat"], "error": ERROR}
    second = {"role": "assistant", "content": "two"}
    body["choices"] = [{**body["choices"][0], "finish_reason": None}, {"index": 1, "message": second}]
    stream, outcome = stream_of("chat", body, RequestFacts(include_usage=False))
    *chunks, last = payloads(stream)
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk["choices"][0]["index"]] == [
        *(None, "two"),
    ]
    assert "usage" not in last
    assert list(outcome.ledger) == []


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        ({"status": "failed", "error": ERROR}, []),
        ({"status": "completed", "error": ERROR}, ["status"]),
        ({"status": "failed"}, ["error"]),
        ({"status": "cancelled"}, ["error", "status"]),
        ({"status": "in_progress"}, ["status", "body"]),
    ],
)
def test_a_response_that_failed_is_told_item_by_item_and_then_as_failed(how: Json, lost: list[str]) -> None:
    body = {**bodies()["responses"], **how}
    stream, outcome = stream_of("responses", body)
    check_law("responses", stream)
    last = payloads(stream)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["output"] == bodies()["responses"]["output"]
    assert last["response"]["odd"] == body["odd"]
    if "body" not in lost:
        assert last["response"]["usage"] == body["usage"]
    if "error" in how:
        assert last["response"]["error"] == ERROR
    assert outcome.verdict is (Verdict.CUT if how["status"] == "in_progress" else Verdict.FAILED)
    assert sorted(entry.path for entry in outcome.ledger) == sorted(lost)


@pytest.mark.parametrize("status", ["in_progress", "incomplete"])
def test_a_call_without_an_end_has_none_in_a_response_that_failed(status: str) -> None:
    body = {**bodies()["responses"], "status": "failed", "error": ERROR}
    whole = [item for item in body["output"] if item["type"] != "function_call"]
    for item in body["output"]:
        if item["type"] in ("function_call", "message"):
            item["status"] = status
    stream, outcome = stream_of("responses", body)
    check_law("responses", stream)
    done = [said["item"] for said in payloads(stream) if said["type"] == "response.output_item.done"]
    assert done == payloads(stream)[-1]["response"]["output"]
    assert done == [{**item, "status": "incomplete"} if item["type"] == "message" else item for item in whole]
    assert b"response.function_call_arguments.done" not in stream
    dropped = {("output[]", "dropped")} | ({("output[].status", "translated")} if status == "in_progress" else set())
    assert {(entry.path, entry.action) for entry in outcome.ledger} == dropped


def test_a_messages_answer_that_holds_an_error_is_an_answer_with_a_member_more() -> None:
    stream, outcome = stream_of("messages", {**bodies()["messages"], "error": ERROR})
    assert payloads(stream)[0]["message"]["error"] == ERROR
    assert (outcome.verdict, list(outcome.ledger)) == (Verdict.COMPLETE, [])


@pytest.mark.parametrize("name", ["output_text", "refusal", "odd"])
def test_only_a_text_has_annotations_that_are_none(name: str) -> None:
    part = {"type": name, {"refusal": "refusal"}.get(name, "text"): "Hi"}
    spoken = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    stream, _ = stream_of("responses", {**bodies()["responses"], "output": [spoken]})
    parts = [said["part"] for said in payloads(stream) if "part" in said]
    parts.append(payloads(stream)[-1]["response"]["output"][0]["content"][0])
    assert len(parts) == 3
    assert ["annotations" in one for one in parts] == [name == "output_text"] * 3
    assert json.dumps(part)[1:-1] in json.dumps(parts[-1])
