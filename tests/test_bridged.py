"""One dialect over itself, in the other form than it came in: nothing of it is lost, and what is written is lawful."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.jsontext import value_of
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from stages.sse import SSEDecoder
from tests.lawful import GRAMMARS, check_law
from tests.patching import MARKUP, ODD, Json, chat, messages, response, saying, spoken
from tests.returning import payloads, returned

SHARED = Path(__file__).parents[2] / "shared"
CORPUS = SHARED / "corpus"

every_dialect = pytest.mark.parametrize("name", GRAMMARS)
recorded = pytest.mark.skipif(not CORPUS.exists(), reason="../shared does not lie beside the project")


def bodies() -> dict[str, Json]:
    """An answer of each dialect that says something of every kind, with members that nobody knows."""
    call: Json = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}, "odd": 1}
    thought = {"type": "thinking", "thinking": "T", "signature": "S"}
    told = {"type": "text", "text": "hello", "citations": [{"type": "char_location", "odd": 1}]}
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1.50}}
    reasoning = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "R"}]}
    calls: list[Json] = [
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"x": 1}', "odd": 1},
        {"type": "custom_tool_call", "id": "ctc", "call_id": "c2", "name": "g", "input": "ls"},
    ]
    about = {"object": "response", "created_at": 7, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "odd": 1}
    counts: Json = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, **details}
    counts["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = chat("hello", reasoning_content="R", tool_calls=[call])
    whole["choices"][0]["finish_reason"] = "tool_calls"
    whole["choices"].pop()
    return {
        "chat": {**whole, "object": "chat.completion", "created": 7},
        "messages": messages(
            *(thought, told, server, {"type": "redacted_thinking", "data": "D"}),
            {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}},
            stop_reason="tool_use",
            stop_details=ODD,
            context_management=ODD,
        ),
        "responses": response(
            {**reasoning, "encrypted_content": "E", "content": [{"type": "reasoning_text", "text": "raw"}]},
            spoken("hello"),
            *({**call, "status": "completed"} for call in calls),
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": ODD},
            **about,
            error=None,
            incomplete_details=None,
            usage=counts,
            instructions=None,
            temperature=1.50,
            top_p=None,
        ),
    }


def stream_of(name: str, body: Any, facts: RequestFacts = NO_REQUEST, **options: Any) -> tuple[bytes, Outcome]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return returned(name, [raw], arriving=Form.WHOLE, leaving=Form.STREAM, facts=facts, **options)


def body_of(name: str, stream: bytes, facts: RequestFacts = NO_REQUEST, **options: Any) -> tuple[bytes, Outcome]:
    return returned(name, [stream], arriving=Form.STREAM, leaving=Form.WHOLE, facts=facts, **options)


@every_dialect
def test_what_leaves_in_the_other_form_and_comes_back_is_the_same(name: str) -> None:
    body = bodies()[name]
    stream, outcome = stream_of(name, body)
    check_law(name, stream)
    back, again = body_of(name, stream)
    assert json.loads(back) == body
    assert [*outcome.ledger, *again.ledger] == []
    assert outcome.verdict is again.verdict is Verdict.COMPLETE


@every_dialect
def test_numbers_are_as_they_were_written(name: str) -> None:
    raw = json.dumps(saying(name, "Hi")).replace('"deep": [1,', '"deep": [1.50, 1e400, -0.0,').encode()
    assert b"[1.50,1e400,-0.0," in stream_of(name, raw)[0]


@every_dialect
@pytest.mark.parametrize("form", Form)
def test_what_is_recovered_is_recovered_in_the_other_form_too(name: str, form: Form) -> None:
    facts = RequestFacts(stream=form is Form.STREAM, tools={"f": {}})
    body = saying(name, f"A {MARKUP} B")
    if name == "chat":
        body["choices"].pop()
    raw = json.dumps(body).encode() if facts.stream else stream_of(name, body)[0]
    bridge = stream_of if facts.stream else body_of
    out, outcome = bridge(name, raw, facts, options=AnswerOptions(recover="prompt"))
    assert b"tool_call>" not in out
    assert b"Paris" in out
    assert (
        ODD in [value for said in payloads(out) if isinstance(said, dict) for value in members(said)]
        or json.loads(out)["odd"] == ODD
    )
    assert outcome.verdict is Verdict.COMPLETE


def members(said: Json) -> list[Any]:
    """What a frame tells of its answer."""
    return [(said.get(part) or {}).get("odd") for part in ("response", "message")] + [said.get("odd")]


def test_each_choice_of_several_has_its_own_chunks_the_first_first() -> None:
    body = chat("one")
    body["choices"][1]["message"] = {"role": "assistant", "content": "two", "odd": 1}
    body["choices"].reverse()
    stream, _ = stream_of("chat", body)
    deltas = [
        (choice["index"], choice["delta"].get("content"), choice["finish_reason"])
        for chunk in payloads(stream)[:-1]
        for choice in chunk["choices"]
    ]
    assert deltas == [
        *((0, None, None), (0, "one", None), (0, None, "stop")),
        *((1, None, None), (1, "two", None), (1, None, "stop")),
    ]
    back = json.loads(body_of("chat", stream)[0])
    assert [choice["message"] for choice in back["choices"]] == [
        {**choice["message"]} for choice in reversed(body["choices"])
    ]


@every_dialect
def test_an_answer_that_failed_is_an_error_in_the_other_form_too(name: str) -> None:
    failed = b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}'
    assert stream_of(name, failed)[1].verdict is Verdict.FAILED
    stream, _ = stream_of(name, bodies()[name])
    out, outcome = body_of(name, stream[: len(stream) // 2])
    assert (out, outcome.verdict) == (b"", Verdict.CUT)


def recordings(kind: str) -> list[tuple[str, str]]:
    """Every recording of that kind that is an answer."""
    lines = (CORPUS / "manifest.jsonl").read_bytes().splitlines() if CORPUS.exists() else []
    rows = [row for row in map(json.loads, lines) if row["kind"] == kind and row["status"] == 200]
    return [(row["dialect"], row["file"]) for row in rows if row["dialect"] == row["sub_dialect"] in GRAMMARS]


def test_they_are_there() -> None:
    if CORPUS.exists():
        assert len(recordings("unary")) >= 200
        assert len(recordings("stream")) >= 400


def test_what_a_body_must_have_and_lacks_is_made() -> None:
    said = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": ""}}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9, "odd": 1}
    bodies: dict[str, Json] = {
        "chat": {"choices": [{"message": said, "finish_reason": None}], "usage": usage, "created": "7"},
        "messages": {"content": [{"type": "text", "text": ""}, {"type": "tool_use", "name": "f", "input": {}}]},
        "responses": {"output": [{"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}]},
    }
    for name, body in bodies.items():
        stream, outcome = stream_of(name, body)
        check_law(name, stream)
        assert outcome.verdict is Verdict.COMPLETE
        told = {"chat": ["finish_reason", "usage"], "messages": ["stop_reason"], "responses": ["status"]}
        assert [entry.path for entry in outcome.ledger] == told[name]
        assert json.loads(body_of(name, stream)[0])["id"]
    (first, *_, counts, _done) = payloads(stream_of("chat", bodies["chat"])[0])
    assert (first["created"], counts["usage"]["total_tokens"], counts["usage"]["odd"]) == (7, 3, 1)


@pytest.mark.parametrize("word", ["stop", "tool_calls", "end_turn", "tool_use", "Stop", "odd: yes", "function_call"])
@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("name", ["chat", "messages"])
def test_a_stop_reason_is_the_servers_own_word_in_every_form(name: str, word: str, *, called: bool) -> None:
    body = bodies()[name]
    if name == "chat":
        body["choices"][0]["finish_reason"] = word
        if not called:
            del body["choices"][0]["message"]["tool_calls"]
    else:
        body |= {"stop_reason": word, "content": body["content"] if called else body["content"][:2]}
    whole = json.dumps(body).encode()
    stream, outcome = stream_of(name, whole)
    member = "finish_reason" if name == "chat" else "stop_reason"
    assert json.dumps(payloads(stream)).count(f'"{member}": "{word}"') == 1
    back, again = body_of(name, stream)
    assert json.loads(back) == body
    assert returned(name, [stream])[0] == stream
    assert returned(name, [whole], arriving=Form.WHOLE, leaving=Form.WHOLE)[0] == whole
    assert [*outcome.ledger, *again.ledger] == []


def test_a_chat_client_that_wants_no_counts_is_told_none() -> None:
    stream, _ = stream_of("chat", bodies()["chat"], RequestFacts(include_usage=False))
    assert b'"usage"' not in stream


def test_a_content_in_parts_is_told_text_by_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]
    stream, _ = stream_of("chat", {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})
    check_law("chat", stream)
    assert payloads(stream)[1]["choices"][0]["delta"] == {"content": "Hi", "reasoning_content": "hm"}


ENDS = ("finish", "end told")
"""What tells why an answer ended, which is the server's word."""
NOT_OURS = ("status", "usage", "output", "content", "choices", "stop_reason", "object")
"""Members that tell the answer itself, or are told in the dialect's own words."""
TWICE = "vercel__ai/openai_responses_openai-shell-skills.1"
"""The server gives the item of a result the id of its call."""


@recorded
@every_dialect
def test_a_recorded_answer_leaves_as_a_lawful_stream_with_all_its_members(name: str) -> None:
    for dialect, file in recordings("unary"):
        raw = (CORPUS / file).read_bytes()
        if dialect != name or file.startswith(TWICE):
            continue
        stream, outcome = stream_of(name, raw)
        if outcome.verdict is not Verdict.COMPLETE:
            continue
        body = json.loads(raw)
        if len(body.get("choices", "1")) == 1:
            breaches = [breach.rule for breach in GRAMMARS[name].breaches(stream)]
            assert [rule.says for rule in breaches if rule.part not in ENDS] == [], file
        back = json.loads(body_of(name, stream)[0])
        lost = {
            member for member in body if member not in NOT_OURS and body[member] and back.get(member) != body[member]
        }
        assert lost - ({"created"} if isinstance(body.get("created"), str) else set()) == set(), file


@recorded
@every_dialect
def test_a_recorded_stream_leaves_as_an_answer_that_says_the_same(name: str) -> None:
    for dialect, file in recordings("stream"):
        if dialect != name:
            continue
        raw = (CORPUS / file).read_bytes()
        out, outcome = body_of(name, raw)
        assert not [entry for entry in outcome.ledger if entry.action == "rewritten"], file
        if outcome.verdict is Verdict.COMPLETE:
            assert members_of(name, raw) - json.loads(out).keys() == set(), file


def members_of(name: str, stream: bytes) -> set[str]:
    """All that the frames of a stream tell of their answer."""
    whose = {"messages": "message", "responses": "response"}.get(name)
    decoder = SSEDecoder(sentinels=(b"[DONE]",))
    frames = [*decoder.receive([stream]), *decoder.receive_eof()]
    told = [value_of(frame.data.decode()) for frame in frames]
    told = [said.get(whose) if whose else said for said in told if isinstance(said, dict)]
    return {member for said in told if isinstance(said, dict) for member in said} - {"obfuscation", "p"}
