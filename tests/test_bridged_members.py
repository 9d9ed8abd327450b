"""One dialect over itself, in the other form: what stands beside an answer in its frames, and what a failure leaves."""

import json
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.events import Usage
from pipeline.outcome import Verdict
from tests.exchange import answered, route
from tests.lawful import check_law
from tests.patching import ODD, Json, chat
from tests.returning import payloads
from tests.test_bridged import bodies, body_of, stream_of


def sse(*items: Any) -> bytes:
    """A stream of these frames."""
    kinds = [f"event: {item['type']}\n" if "type" in item else "" for item in items]
    return b"".join(f"{kind}data: {json.dumps(item)}\n\n".encode() for kind, item in zip(kinds, items, strict=True))


def frames_of(name: str) -> list[Json]:
    return [said for said in payloads(stream_of(name, bodies()[name])[0]) if said != "[DONE]"]


def test_what_stands_beside_a_message_or_a_block_in_a_messages_stream_is_in_the_whole_answer() -> None:
    frames = frames_of("messages")
    beside = [{**frame, f"beside_{frame['type']}": at} for at, frame in enumerate(frames)]
    out, outcome = body_of("messages", sse(*beside, {"type": "ping", "odd": 1}))
    whole = json.loads(out)
    due = bodies()["messages"]
    ends = {"beside_message_start": 0, "beside_message_delta": len(frames) - 2, "beside_message_stop": len(frames) - 1}
    assert {name: value for name, value in whole.items() if name != "content"} == {
        **{name: value for name, value in due.items() if name != "content"},
        **ends,
    }
    for block, known in zip(whole["content"], due["content"], strict=True):
        assert known.items() <= block.items()
        assert {"beside_content_block_start", "beside_content_block_stop"} <= block.keys()
    assert list(outcome.ledger) == []
    odd = {"type": "odd", "said": 1}
    assert [entry.path for entry in body_of("messages", sse(*frames[:3], odd, *frames[3:]))[1].ledger] == ["odd"]


def test_what_stands_beside_a_response_in_its_stream_is_recorded() -> None:
    frames = frames_of("responses")
    out, outcome = body_of("responses", sse(*frames[:-1], {**frames[-1], "odd": 1}))
    assert json.loads(out) == bodies()["responses"]
    assert [entry.path for entry in outcome.ledger] == ["odd"]


def test_counts_of_nothing_are_the_upstreams_word_too() -> None:
    frames = frames_of("responses")
    for frame in frames:
        if (frame.get("response") or {}).get("usage"):
            frame["response"]["usage"] |= {"input_tokens": 0, "total_tokens": 4}
    out, outcome = body_of("responses", sse(*frames), RequestFacts(stream=False, usage=Usage(input=77)))
    usage = json.loads(out)["usage"]
    assert (usage["input_tokens"], usage["total_tokens"], outcome.usage) == (0, 4, Usage(output=4))


@pytest.mark.parametrize("none", [{}, {"odd": 1}, {"prompt_tokens": "5", "input_tokens": "5", "output_tokens": None}])
def test_what_counts_nothing_is_no_count_and_no_estimate_of_ours_in_its_place(none: Json) -> None:
    facts = RequestFacts(stream=False, usage=Usage(input=77))
    said = ["usage"] if none else []
    for name in ("chat", "responses"):
        frames = frames_of(name)
        for frame in frames:
            where = frame.get("response") or frame
            if where.get("usage"):
                where["usage"] = none
        out, outcome = body_of(name, sse(*frames) + (b"data: [DONE]\n\n" if name == "chat" else b""), facts)
        assert json.loads(out).get("usage") is None
        assert (outcome.usage, outcome.estimated) == (facts.usage, True)
        assert [entry.path for entry in outcome.ledger] == said
        stream, outcome = stream_of(name, {**bodies()[name], "usage": none}, RequestFacts(usage=facts.usage))
        check_law(name, stream)
        assert [frame for frame in payloads(stream)[:-1] if frame.get("usage")] == []
        assert name == "chat" or payloads(stream)[-1]["response"]["usage"] is None
        assert (outcome.usage, outcome.estimated) == (facts.usage, True)
        assert [entry.path for entry in outcome.ledger] == said


def gathered(*frames: Json) -> tuple[int, Json, list[str]]:
    """What a Responses client that wants a whole answer gets of a stream, and what of it was lost."""
    exchange = route("responses", "responses").open(b'{"model":"m","input":"hi"}')
    got = answered(exchange, sse(*frames))
    assert exchange.outcome.verdict is Verdict.FAILED
    body: Json = json.loads(got.body)
    return got.status, body, [entry["path"] for entry in exchange.ledger]


def test_what_was_told_before_a_response_failed_is_in_the_whole_response_that_failed() -> None:
    *frames, last = frames_of("responses")
    error = {"code": "server_error", "message": "boom"}
    none: list[Json] = []
    for output in (last["response"]["output"], none):
        failed = {**last["response"], "status": "failed", "error": error, "output": output}
        status, body, lost = gathered(*frames, {**last, "type": "response.failed", "response": failed})
        assert (status, body["status"], body["error"], lost) == (200, "failed", error, [])
        assert body["output"] == bodies()["responses"]["output"]
        assert body["odd"] == ODD
    failed = {**last["response"], "status": "failed", "error": error, "output": []}
    ends = [at for at, frame in enumerate(frames) if frame["type"] == "response.output_text.delta"]
    status, body, lost = gathered(*frames[: ends[0] + 1], {"type": "response.failed", "response": failed})
    assert [item["type"] for item in body["output"]] == ["reasoning"]
    assert (status, body["status"], lost) == (200, "failed", ["content"])
    status, body, lost = gathered(frames[0], {"type": "response.failed", "response": failed})
    assert (status, body["error"]["message"]) == (500, "boom")
    assert lost == ["message", "metadata", "odd", "usage", "usage.odd"]


def test_what_was_told_before_an_error_that_no_whole_answer_holds_is_recorded() -> None:
    for name in ("chat", "messages"):
        frames = frames_of(name)
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}
        out, outcome = body_of(name, sse(*frames[:3], error))
        assert (out, outcome.verdict) == (b"", Verdict.FAILED)
        assert [entry.path for entry in outcome.ledger] == ["content"]


def test_a_response_is_told_as_a_stream_with_what_it_has_and_what_every_one_must_have() -> None:
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    body: Json = {"id": "resp_1", "status": "completed", "output": [said], "top_p": None}
    facts = RequestFacts(model="m", echo={"temperature": 0.5, "instructions": "Be short.", "tool_choice": "required"})
    stream, outcome = stream_of("responses", body, facts)
    check_law("responses", stream)
    response = payloads(stream)[-1]["response"]
    must = {"object", "created_at", "model", "parallel_tool_calls", "tool_choice", "tools"}
    assert response.keys() == body.keys() | must
    assert (response["tool_choice"], response["tools"], list(outcome.ledger)) == ("required", [], [])
    assert json.loads(body_of("responses", stream, facts)[0]).keys() == response.keys()


def test_a_status_and_an_id_that_a_stream_cannot_have_are_changed_and_recorded() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    items = [{**said, "id": "msg_1", "status": "in_progress"}, {**said, "id": "msg_1", "status": "completed"}]
    stream, outcome = stream_of("responses", {**bodies()["responses"], "output": items})
    check_law("responses", stream)
    assert [item["status"] for item in payloads(stream)[-1]["response"]["output"]] == ["completed"] * 2
    assert [entry.path for entry in outcome.ledger] == ["output[].id", "output[].status"]


@pytest.mark.parametrize("lacking", [("message_start",), ("message_delta",), ("message_start", "message_delta")])
def test_a_messages_answer_has_all_that_every_one_must_have_where_its_stream_lacks_it(lacking: tuple[str, ...]) -> None:
    due = bodies()["messages"]
    frames = [frame for frame in frames_of("messages") if frame["type"] not in lacking]
    out, outcome = body_of("messages", sse(*frames), RequestFacts(model="asked", stream=False))
    whole = json.loads(out)
    assert whole["content"] == due["content"]
    assert (whole["type"], whole["role"], whole["stop_reason"]) == ("message", "assistant", "tool_use")
    assert whole["model"] == ("asked" if "message_start" in lacking else due["model"])
    assert whole["id"].startswith("msg_") or "message_start" not in lacking
    assert {"input_tokens", "output_tokens"} <= whole["usage"].keys()
    lost = {(entry.path, entry.action) for entry in outcome.ledger}
    assert (("stop_reason", "mended") in lost) is ("message_delta" in lacking)
    assert outcome.verdict is Verdict.COMPLETE


def test_a_messages_answer_of_which_nothing_is_told_is_one() -> None:
    out, _ = body_of("messages", sse({"type": "message_stop"}), RequestFacts(model="asked", stream=False))
    whole = json.loads(out)
    assert (whole["model"], whole["content"], whole["stop_reason"], whole["stop_sequence"]) == (
        "asked",
        [],
        "end_turn",
        None,
    )


def test_what_a_part_of_a_chat_content_has_beside_its_text_is_recorded_where_a_stream_has_no_parts() -> None:
    parts: list[Json] = [
        {"type": "thinking", "thinking": "R", "more": ODD},
        {"type": "text", "text": "hel", "odd": 1, "annotations": [{"x": 1}]},
        {"type": "text", "text": "lo", "odd": 2, "none": None},
        {"type": "odd", "said": 1},
    ]
    body = chat(parts)
    body["choices"].pop()
    stream, outcome = stream_of("chat", body)
    check_law("chat", stream)
    deltas = [choice["delta"] for said in payloads(stream)[:-1] for choice in said["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "hello"
    lost = sorted((entry.path, entry.action) for entry in outcome.ledger)
    paths = ("content[]", *(f"content[].{name}" for name in ("annotations", "more", "odd")))
    assert lost == [(path, "dropped") for path in paths]


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_a_frame_that_is_no_json_object_is_recorded_where_its_stream_becomes_a_whole_answer(name: str) -> None:
    stream, _ = stream_of(name, bodies()[name])
    head, sep, rest = stream.partition(b"\n\n")
    out, outcome = body_of(name, head + sep + b"data: [1]\n\n" + rest)
    assert json.loads(out) == json.loads(body_of(name, stream)[0])
    assert ("frame", "ignored") in [(entry.path, entry.action) for entry in outcome.ledger]
    assert body_of(name, stream)[1].ledger.as_dicts() == []


def test_a_choice_that_is_none_is_recorded() -> None:
    frames = frames_of("chat")
    frames[0]["choices"].append(7)
    assert [entry.path for entry in body_of("chat", sse(*frames))[1].ledger] == ["choices[]"]


def test_a_delta_without_a_block_is_in_one_of_its_own() -> None:
    frames = [frame for frame in frames_of("messages") if frame["type"] != "content_block_start" or frame["index"] > 1]
    out, outcome = body_of("messages", sse(*frames))
    content = json.loads(out)["content"]
    assert [block["type"] for block in content[:2]] == ["thinking", "text"]
    assert (content[0]["thinking"], content[1]["text"]) == ("T", "hello")
    assert {(entry.path, entry.action) for entry in outcome.ledger} == {("content_block_start", "mended")}
