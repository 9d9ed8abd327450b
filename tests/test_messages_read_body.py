"""A whole Messages answer as a message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import NO_REQUEST, RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import StopReason, StreamError, Usage
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message, Reasoning, RedactedReasoning, Refusal, ServerItem, Text, ToolUse, assemble
from stages.dialects.messages import DIALECT
from stages.dialects.messages.opaque import proof_of
from tests.messages_stream import END, Json, begin, call, events, message, search, told, told_in_deltas


def answer(
    body: Any, facts: RequestFacts = NO_REQUEST, ledger: Ledger | None = None, limits: Limits = DEFAULT_LIMITS
) -> Message:
    """What a body is read as."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return DIALECT.read_body(data, facts=facts, ledger=Ledger() if ledger is None else ledger, limits=limits)


CITED = {"type": "text", "text": "Hi", "citations": [{"type": "char_location"}]}
CONTENT: list[Json] = [
    {"type": "thinking", "thinking": "Why", "signature": "SIG"},
    {"type": "redacted_thinking", "data": "BLOB"},
    CITED,
    search(input={"query": "q"}),
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    call(input={"x": 1}),
    call("b", "g"),
]


def test_an_answer_is_a_message() -> None:
    counts = {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 5}
    assert answer(message(*CONTENT, stop_reason="tool_use", usage=counts)) == Message(
        "msg_1",
        "m",
        (
            Reasoning("Why", proof_of("thinking", "SIG"), splittable=False),
            RedactedReasoning(proof_of("redacted_thinking", "BLOB")),
            Text("Hi", ({"type": "char_location"},)),
            ServerItem("messages", CONTENT[3], "q"),
            ServerItem("messages", CONTENT[4]),
            ToolUse("a", "f", '{"x":1}'),
            ToolUse("b", "g", "{}"),
        ),
        StopReason.TOOL_USE,
        usage=Usage(10, 4, output=5),
    )


@pytest.mark.parametrize(
    ("members", "reason", "sequence"),
    [
        ({"stop_reason": "stop_sequence", "stop_sequence": "##"}, StopReason.STOP_SEQUENCE, "##"),
        ({"stop_reason": "max_tokens"}, StopReason.MAX_TOKENS, None),
        ({"stop_reason": "pause_turn"}, StopReason.PAUSE_TURN, None),
        ({"stop_reason": "weird"}, StopReason.END_TURN, None),
        ({"stop_reason": None}, StopReason.END_TURN, None),
    ],
)
def test_it_ends_as_it_says(members: Json, reason: StopReason, sequence: str | None) -> None:
    found = answer(message(**members))
    assert (found.stop_reason, found.stop_sequence) == (reason, sequence)


def test_a_refusal_is_explained() -> None:
    body = message(stop_reason="refusal", stop_details={"type": "refusal", "explanation": "no"})
    assert answer(body).content == (Refusal("no"),)


def test_what_is_told_of_a_stop_and_is_not_shown_is_recorded() -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "no", "other": None}
    for content, stop, lost in (
        ((), "refusal", ["category"]),
        (({"type": "text", "text": "Hi"},), "refusal", ["category", "explanation"]),
        ((), "end_turn", ["category", "explanation"]),
    ):
        ledger = Ledger()
        body = json.dumps(message(*content, stop_reason=stop, stop_details=why)).encode()
        DIALECT.read_body(body, facts=RequestFacts(), ledger=ledger, limits=DEFAULT_LIMITS)
        assert [(entry.path, entry.action) for entry in ledger] == [
            (f"stop_details.{name}", "dropped") for name in lost
        ]


def test_a_call_that_the_limit_cut_is_not_whole() -> None:
    body = message(call(), stop_reason="max_tokens")
    assert answer(body).content == (ToolUse("a", "f", "", complete=False),)


@pytest.mark.parametrize(("content", "said"), [("Hi", (Text("Hi"),)), (None, ()), ([], ()), ([3, "x", {}], ())])
def test_odd_content_is_read_as_far_as_it_goes(content: Any, said: tuple[Text, ...]) -> None:
    assert answer({**message(), "content": content, "stop_reason": "end_turn"}).content == said


def test_what_an_answer_lacks_comes_from_the_request() -> None:
    facts = RequestFacts(model="asked", usage=Usage(input=7))
    assert answer({"content": []}, facts) == Message("", "asked", (), StopReason.END_TURN, usage=Usage(input=7))


def test_no_digit_of_an_input_is_lost() -> None:
    body = json.dumps(message(call(input={"x": 0}), stop_reason="tool_use"))
    big = body.replace('"x": 0', '"x": 123456789012345678901234567890')
    assert answer(big.encode()).content == (ToolUse("a", "f", '{"x":123456789012345678901234567890}'),)


@pytest.mark.parametrize(
    "body",
    [{"type": "error", "error": {"type": "overloaded_error", "message": "no"}, "content": []}, {"message": "no"}],
)
def test_an_error_body_is_a_message_that_is_an_error(body: Json) -> None:
    found = answer(body, RequestFacts(model="asked"))
    assert (found.model, found.content) == ("asked", ())
    assert isinstance(found.error, StreamError)
    assert found.error.message == "no"
    assert found.error.kind in (ErrorKind.OVERLOADED, ErrorKind.API)


@pytest.mark.parametrize("body", [None, [], "x", {}, {"type": "message"}, {"choices": []}])
def test_what_is_neither_a_message_nor_an_error_is_refused(body: Any) -> None:
    with pytest.raises(UpstreamError, match="neither a message nor an error") as raised:
        answer(body)
    assert raised.value.code == "no_message"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"content":['])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(UpstreamError, match="no JSON") as raised:
        answer(body)
    assert raised.value.code == "invalid_json"


def test_a_body_nested_too_deeply_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        answer(b'{"content":' + b"[" * 300 + b"]" * 300 + b"}")


def test_a_body_may_hold_half_a_character() -> None:
    assert answer(b'{"content":[{"type":"text","text":"a\\ud83d"}]}').content == (Text("a\ufffd"),)


def test_losses_are_recorded() -> None:
    ledger = Ledger()
    answer(message(container={"id": "c"}, stop_reason="end_turn"), ledger=ledger)
    assert [entry.path for entry in ledger] == ["container"]


WORDS = st.text(min_size=1, max_size=6)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, WORDS),
    st.builds(lambda text: {**CITED, "text": text}, WORDS),
    st.tuples(WORDS, st.sampled_from(["", "S"])).map(
        lambda told: {"type": "thinking", "thinking": told[0], "signature": told[1]}
    ),
    st.just({"type": "redacted_thinking", "data": "BLOB"}),
    st.builds(lambda value: call(input={"x": value}), st.integers() | WORDS),
    st.just(call()),
    st.just(search(input={"query": "q"})),
    st.just({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
)
REASONS = st.sampled_from(["end_turn", "max_tokens", "tool_use", "stop_sequence", "pause_turn", "refusal"])


@given(st.lists(BLOCKS, max_size=4), REASONS, st.lists(st.integers(0, 40), max_size=3))
def test_the_assembled_stream_is_the_whole_answer(blocks: list[Json], reason: str, cuts: list[int]) -> None:
    counts = {"input_tokens": 10, "output_tokens": 5}
    told_of = [one for at, block in enumerate(blocks) for one in told_in_deltas(block, at, cuts)]
    streamed = assemble(events(begin(usage=counts), *told_of, told(reason), END))
    whole = answer(message(*blocks, stop_reason=reason, usage=counts))
    assert same_inputs(streamed) == same_inputs(whole)


def same_inputs(message: Message) -> list[Any]:
    """What a message says; the blanks of inputs and the id of a call are nothing."""
    return [
        [
            (one.name, json.loads(one.arguments or "{}"), one.complete) if isinstance(one, ToolUse) else one
            for one in message.content
        ],
        message.stop_reason,
        message.usage,
    ]
