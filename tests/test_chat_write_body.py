"""A whole Chat answer that we write: what a client makes of the stream of it."""

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind
from pipeline.events import CUTTING, StopReason, StreamError, ToolKind, Usage
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
)
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.chat import DIALECT, body
from stages.dialects.chat.encode import ChatEncoder
from stages.dialects.chat.normalize import ChatNormalizer
from stages.sse import SSEEncoder
from tests.canonical import losses
from tests.lawful import check_law

Json = dict[str, Any]
CITED: Json = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
NESTED: Json = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1, "url": "u", "title": "t"}}


def message(*content: Content, stop: StopReason = StopReason.END_TURN, **members: Any) -> Message:
    return Message("c1", "m", content, stop, **members)


def said(*content: Content, **members: Any) -> Json:
    """The message of the body of an answer that says so."""
    whole = body.write(message(*content, **members))
    told: Json = whole["choices"][0]["message"]
    return told


def test_an_answer_is_one_choice_that_lacks_nothing() -> None:
    content = (Reasoning("Why"), Text("Hel"), Text("lo"), ToolUse("a", "f", '{"x": 1.10}'), ToolUse("b", "g", "{}"))
    given = message(*content, stop=StopReason.TOOL_USE, usage=Usage(3, 4, 0, 5, 1))
    whole = {**DIALECT.write_body(given, facts=RequestFacts(include_usage=False), ledger=Ledger())}
    assert isinstance(whole.pop("created"), int)
    assert whole.pop("id").startswith("chatcmpl-")
    assert whole == {
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hello",
                    "refusal": None,
                    "reasoning_content": "Why",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1.10}'}},
                        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ((), {"content": None, "refusal": None}),
        ((Refusal("no"),), {"content": None, "refusal": "no"}),
        ((Text("a", (CITED,)),), {"content": "a", "refusal": None, "annotations": [NESTED]}),
        (
            (Reasoning("A", "S", splittable=False), RedactedReasoning("D"), Reasoning("B", splittable=False)),
            {
                "content": None,
                "refusal": None,
                "reasoning_content": "A\n\nB",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "A", "signature": "S", "index": 0},
                    {"type": "reasoning.encrypted", "data": "D", "index": 1},
                    {"type": "reasoning.text", "text": "B", "index": 2},
                ],
            },
        ),
        (
            (ToolUse("c", "patch", "***", ToolKind.CUSTOM),),
            {
                "content": None,
                "refusal": None,
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "patch", "input": "***"}}],
            },
        ),
    ],
)
def test_what_an_answer_says(content: tuple[Content, ...], told: Json) -> None:
    assert said(*content) == {"role": "assistant", **told}


def test_a_call_has_the_form_that_the_client_declared() -> None:
    facts = RequestFacts(map=RequestMap({"patch": OfferedTool("patch", kind=ToolKind.CUSTOM)}))
    wrapped = ToolUse("c", "patch", '{"input":"a\\nb"}')
    assert body.write(message(wrapped), facts=facts)["choices"][0]["message"]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}}
    ]


def test_a_call_that_the_limit_cut_is_told_as_far_as_it_came() -> None:
    cut = message(ToolUse("a", "f", '{"x":', complete=False), stop=StopReason.MAX_TOKENS)
    (choice,) = body.write(cut)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"x":'


def test_an_order_that_a_whole_answer_cannot_keep_is_recorded() -> None:
    ledger = Ledger()
    call = ToolUse("a", "f", "{}")
    body.write(message(Reasoning("a"), Text("b"), call), ledger=ledger)
    assert losses(ledger) == []
    body.write(message(call, Text("b")), ledger=ledger)
    assert losses(ledger) == [
        ("content", "reordered", "a whole answer holds reasoning, text, refusal and calls apart"),
    ]


def test_so_is_that_a_refusal_stood_before_text() -> None:
    ledger = Ledger()
    body.write(message(Reasoning("a"), Text("b"), Refusal("c"), ToolUse("a", "f", "{}")), ledger=ledger)
    assert losses(ledger) == []
    call = ToolUse("a", "f", "{}")
    odds: list[list[Content]] = [[Refusal("c"), Text("b")], [Text("b"), Refusal("c"), Text("d")], [call, Refusal("c")]]
    for odd in odds:
        body.write(message(*odd), ledger=(ledger := Ledger()))
        assert [action for _, action, _ in losses(ledger)] == ["reordered"]


def test_counts_that_nobody_told_are_left_out() -> None:
    assert "usage" not in body.write(message(Text("a")))
    estimate = Usage(10)
    assert "usage" not in body.write(message(Text("a"), usage=estimate), facts=RequestFacts(usage=estimate))


def test_a_message_that_is_an_error_is_its_body() -> None:
    failed = message(Text("a"), error=StreamError(ErrorKind.RATE_LIMIT, "slow down", retryable=True))
    assert body.write(failed) == {
        "error": {
            "message": "slow down",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }


# What comes back

words = st.text(min_size=1, max_size=4).filter(lambda text: not text.isspace())
ids = words.filter(lambda text: text != "null")  # Mistral's SDK writes the word for none: it is read so
CONTENTS = st.one_of(
    st.builds(Text, words, st.sampled_from([(), (CITED,), (NESTED,), ({"type": "file_path"},)])),
    st.builds(Refusal, words),
    st.builds(Reasoning, words, st.sampled_from(["", "SIG"]), st.just(False)),
    st.builds(Reasoning, words),
    st.just(RedactedReasoning("DATA")),
    st.builds(ToolUse, ids, words, words.map(lambda text: json.dumps({"x": text}))),
    st.builds(ToolUse, ids, words, words, st.just(ToolKind.CUSTOM)),
    st.just(ServerItem("responses", {"type": "web_search_call"})),
)
MESSAGES = st.builds(
    Message,
    words.map(lambda name: f"chatcmpl-{name}"),
    words,
    st.lists(CONTENTS, max_size=4, unique_by=lambda one: getattr(one, "id", object())).map(tuple),
    st.sampled_from(StopReason),
    st.none(),
    st.builds(Usage, *[st.integers(0, 99)] * 3, st.integers(50, 99), st.integers(0, 50)),
)


def flat(content: tuple[Content, ...], cutting: bool = False) -> Json:
    """What Chat can say of a message's content: each kind by itself.

    `cutting`: it ended in a way that may have cut a call, and no call of it is said to be whole.
    """
    thoughts = [one for one in content if isinstance(one, Reasoning)]
    return {
        "reasoning": "".join(one.text for one in thoughts),
        "signatures": [one.signature for one in thoughts if one.signature],
        "redacted": [one.data for one in content if isinstance(one, RedactedReasoning)],
        "text": "".join(one.text for one in content if isinstance(one, Text)),
        "refusal": "".join(one.text for one in content if isinstance(one, Refusal)),
        "calls": [evolve(one, complete=not cutting) for one in content if isinstance(one, ToolUse)],
    }


def shown(content: tuple[Content, ...]) -> str:
    """The reasoning that a client shows: items stand a blank line apart."""
    thoughts = [one for one in content if isinstance(one, Reasoning)]
    joints = ["\n\n" if at and not one.splittable else "" for at, one in enumerate(thoughts)]
    return "".join(joint + one.text for joint, one in zip(joints, thoughts, strict=True))


def unwrapped(name: str, proof: str) -> str:
    """The blob of a detail that came back as something opaque."""
    (detail,) = json.loads(proof)["reasoning_details"]
    return str(detail[name])


def back(content: tuple[Content, ...]) -> Json:
    """The same of what came back, whose proofs are details now."""
    told = flat(content)
    told["calls"] = [one for one in content if isinstance(one, ToolUse)]
    told["signatures"] = [unwrapped("signature", proof) for proof in told["signatures"]]
    told["redacted"] = [unwrapped("data", proof) for proof in told["redacted"]]
    return told


def lost(given: Message) -> set[tuple[str, str]]:
    """What the ledger must say of a message: exactly what Chat cannot."""
    said = set()
    for at, one in enumerate(given.content):
        if isinstance(one, ServerItem):
            said.add((f"ServerBlock[{at}] web_search_call", "dropped"))
        if isinstance(one, Text) and any(note["type"] == "file_path" for note in one.annotations):
            said.add(("annotation", "dropped"))
    if given.stop_reason in (StopReason.STOP_SEQUENCE, StopReason.PAUSE_TURN, StopReason.CONTEXT_WINDOW):
        said.add(("stop reason", "translated"))
    return said


def stops(given: Message) -> StopReason:
    """The stop reason that comes back."""
    called = any(isinstance(one, ToolUse) for one in given.content)
    refused = any(isinstance(one, Refusal) for one in given.content)
    if given.stop_reason in (StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW):
        return StopReason.MAX_TOKENS
    if given.stop_reason is StopReason.REFUSAL:
        return StopReason.REFUSAL
    return StopReason.TOOL_USE if called else StopReason.REFUSAL if refused else StopReason.END_TURN


@given(MESSAGES)
def test_a_message_comes_back_from_its_stream_and_the_ledger_names_the_rest(given: Message) -> None:
    ledger = Ledger()
    chain = ChatEncoder(ledger=ledger) | ChatNormalizer()
    streamed = assemble([*chain.receive([*disassemble(given)]), *chain.receive_eof()])
    assert back(streamed.content) == flat(given.content, given.stop_reason in CUTTING)
    assert (streamed.id, streamed.model, streamed.usage) == (given.id, given.model, given.usage)
    assert streamed.stop_reason is stops(given)
    assert {(entry.path, entry.action) for entry in ledger} == lost(given)


@given(MESSAGES)
def test_the_whole_answer_says_what_the_stream_of_it_does(given: Message) -> None:
    ledger = Ledger()
    whole = body.write(given, ledger=ledger)
    read = body.read(dumps(whole), facts=RequestFacts(), ledger=Ledger(), limits=DEFAULT_LIMITS)
    told, due = back(read.content), flat(given.content, given.stop_reason in CUTTING)
    items = [one.splittable for one in given.content if isinstance(one, Reasoning)]
    if len(set(items)) > 1:  # what may be signed and what may not: the details tell only of the one
        del told["reasoning"], due["reasoning"]
    assert told == due
    assert (read.id, read.model, read.usage) == (given.id, given.model, given.usage)
    assert read.stop_reason is stops(given)
    assert {entry.path for entry in ledger} - {"content"} == {path for path, _ in lost(given)}


@given(MESSAGES)
def test_a_client_makes_of_the_stream_what_the_whole_answer_says(given: Message) -> None:
    frames = ChatEncoder().receive([*disassemble(given)])
    check_law("chat", b"".join(SSEEncoder().receive(frames)))
    whole: Json = {"content": "", "refusal": "", "reasoning_content": ""}
    calls: list[Json] = []
    for frame in frames[:-1]:
        for choice in json.loads(frame.data)["choices"]:
            for name, value in choice["delta"].items():
                if name in whole:
                    whole[name] += value or ""
            for call in choice["delta"].get("tool_calls", ()):
                if call["index"] == len(calls):
                    calls.append({"name": "", "text": ""})
                inner = call.get("function") or call.get("custom")
                calls[call["index"]]["name"] += inner.get("name", "")
                calls[call["index"]]["text"] += inner.get("arguments", "") + inner.get("input", "")
    told = body.write(given)["choices"][0]["message"]
    assert whole == {name: told.get(name) or "" for name in whole}
    assert whole["reasoning_content"] == shown(given.content)
    inners = [call.get("function") or call.get("custom") for call in told.get("tool_calls", ())]
    assert calls == [
        {"name": inner["name"], "text": inner.get("arguments", "") + inner.get("input", "")} for inner in inners
    ]
