"""The official SDK reads the Chat that we write: its stream, its helper's accumulation, whole answers, errors."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from openai import APIError, ContentFilterFinishReasonError, LengthFinishReasonError, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from pipeline.message import assemble
from pipeline.toolnames import RequestMap
from stages.dialects.chat.body import write
from stages.dialects.chat.encode import ChatEncoder
from stages.dialects.chat.errors import error_body
from stages.sse import SSEEncoder
from tests.lawful import check_law

ITEM = ReasoningBlock(splittable=False)
CITED = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
USAGE = Usage(input=3, cache_read=4, output=5, reasoning=1)
BEGIN: list[Event] = [
    MessageStart("c1", "m"),
    BlockStart(0, ITEM),
    ReasoningDelta(0, "Why"),
    ReasoningDelta(0, "?"),
    SignatureDelta(0, "SIG"),
    BlockStop(0),
    BlockStart(1, RedactedReasoningBlock("DATA")),
    BlockStop(1),
    BlockStart(2, ITEM),
    ReasoningDelta(2, "So."),
    SignatureDelta(2, "GIS"),
    BlockStop(2),
]
TEXT: list[Event] = [
    BlockStart(3, TextBlock()),
    TextDelta(3, "Hel"),
    AnnotationDelta(3, CITED),
    TextDelta(3, "lo"),
    AnnotationDelta(3, CITED),
    BlockStop(3),
]
CALLS: list[Event] = [
    BlockStart(4, ToolUseBlock("call_a", "f")),
    ArgumentsDelta(4, '{"x"'),
    ArgumentsDelta(4, ":1}"),
    BlockStop(4),
    BlockStart(5, ToolUseBlock("call_b", "g")),
    BlockStop(5),
]
FREEFORM: list[Event] = [
    BlockStart(6, ToolUseBlock("call_c", "patch", ToolKind.CUSTOM)),
    ArgumentsDelta(6, "**"),
    ArgumentsDelta(6, "*"),
    BlockStop(6),
]


def client(body: bytes, kind: str = "text/event-stream", status: int = 200) -> OpenAI:
    """The SDK before a server that answers so."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    transport = httpx2.MockTransport(answer)
    return OpenAI(
        api_key="x", base_url="http://127.0.0.1/v1", http_client=httpx2.Client(transport=transport), max_retries=0
    )


def end(reason: StopReason = StopReason.END_TURN) -> list[Event]:
    return [MessageDelta(reason, usage=USAGE), MessageStop()]


def written(events: Sequence[Event], facts: RequestFacts | None = None) -> bytes:
    """The bytes of a stream of these events, keep-alives among them."""
    chain = ChatEncoder(facts=facts or RequestFacts()) | SSEEncoder()
    out = [*chain.idle()]
    for event in events:
        out += [*chain.receive([event]), *chain.idle()]
    stream = b"".join([*out, *chain.receive_eof()])
    check_law("chat", stream)
    return stream


def final(data: bytes) -> Any:
    """What the SDK's helper makes of a stream, once it has read it all."""
    with client(data).chat.completions.stream(model="m", messages=[]) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def chunks(data: bytes) -> list[ChatCompletionChunk]:
    """What the SDK's plain stream brings."""
    return list(client(data).chat.completions.create(model="m", messages=[], stream=True))


def test_the_sdks_helper_accumulates_a_turn() -> None:
    whole = final(written([*BEGIN, *TEXT, *CALLS, *end(StopReason.TOOL_USE)]))
    (choice,) = whole.choices
    said = choice.message
    assert (said.role, said.content, said.refusal) == ("assistant", "Hello", None)
    assert said.reasoning_content == "Why?\n\nSo."
    assert [(call.id, call.type, call.function.name, call.function.arguments) for call in said.tool_calls] == [
        ("call_a", "function", "f", '{"x":1}'),
        ("call_b", "function", "g", "{}"),
    ]
    assert [note.url_citation.url for note in said.annotations] == ["u", "u"]
    assert choice.finish_reason == "tool_calls"
    assert (whole.usage.prompt_tokens, whole.usage.prompt_tokens_details.cached_tokens) == (7, 4)
    assert (whole.usage.completion_tokens, whole.usage.total_tokens) == (5, 12)


def test_the_sdks_helper_keeps_each_reasoning_with_its_own_proof() -> None:
    said = final(written([*BEGIN, *TEXT, *end()])).choices[0].message
    assert [
        (one["type"], one.get("text"), one.get("signature", one.get("data"))) for one in said.reasoning_details
    ] == [
        ("reasoning.text", "Why?", "SIG"),
        ("reasoning.encrypted", None, "DATA"),
        ("reasoning.text", "So.", "GIS"),
    ]


def test_the_sdks_helper_makes_of_the_stream_what_the_whole_answer_says() -> None:
    events = [*BEGIN, *TEXT, *CALLS, *end(StopReason.TOOL_USE)]
    streamed = json.loads(final(written(events)).to_json())
    whole = json.loads(ChatCompletion.model_validate(write(assemble(events))).to_json())
    for call in streamed["choices"][0]["message"]["tool_calls"]:
        del call["index"]
    assert said_in(streamed) == said_in(whole)


def said_in(value: Any) -> Any:
    """What says something of an answer; not the clock, nor what the helper parses."""
    if isinstance(value, list):
        return [said_in(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = ("created", "parsed", "parsed_arguments")
    return {name: said_in(one) for name, one in value.items() if one is not None and name not in own}


def test_the_sdks_plain_stream_reads_every_chunk() -> None:
    read = chunks(written([*BEGIN, *TEXT, *CALLS, *end(StopReason.TOOL_USE)]))
    for chunk in read:
        ChatCompletionChunk.model_validate(chunk.to_dict(), strict=True)  # each of its type to the letter
    assert [chunk.usage is None for chunk in read] == [*[True] * (len(read) - 1), False]
    assert read[-1].choices == []
    assert [chunk.choices[0].finish_reason for chunk in read[:-1]] == [*[None] * (len(read) - 2), "tool_calls"]


def test_the_sdks_helper_reads_an_undeclared_freeform_call_as_a_function() -> None:
    facts = RequestFacts(map=RequestMap())
    said = final(written([BEGIN[0], *FREEFORM, *end(StopReason.TOOL_USE)], facts)).choices[0].message
    assert [json.loads(call.function.arguments) for call in said.tool_calls] == [{"input": "***"}]


def test_the_sdk_reads_a_freeform_call_as_one_that_declared_it() -> None:
    """Its plain stream and its whole answers do; its helper knows none (openai 3.57)."""
    events = [BEGIN[0], *FREEFORM, *end(StopReason.TOOL_USE)]
    deltas = [chunk.choices[0].delta.to_dict() for chunk in chunks(written(events)) if chunk.choices]
    pieces: Any = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert [piece["custom"]["input"] for (piece,) in pieces] == ["", "**", "*"]
    answer = json.dumps(write(assemble(events))).encode()
    whole = client(answer, "application/json").chat.completions.create(model="m", messages=[])
    assert whole.choices[0].message.tool_calls is not None
    (call,) = whole.choices[0].message.tool_calls
    assert call.type == "custom"
    assert call.custom.input == "***"


def test_the_sdks_helper_reads_a_refusal() -> None:
    said = [BlockStart(0, TextBlock()), RefusalDelta(0, "n"), RefusalDelta(0, "o"), BlockStop(0)]
    whole = final(written([BEGIN[0], *said, *end(StopReason.REFUSAL)]))
    assert whole.choices[0].message.refusal == "no"
    assert whole.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("reason", "raised"),
    [(StopReason.MAX_TOKENS, LengthFinishReasonError), (StopReason.REFUSAL, ContentFilterFinishReasonError)],
)
def test_the_sdks_helper_tells_a_limit_and_a_filter_from_success(reason: StopReason, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        final(written([*BEGIN, *TEXT, *end(reason)]))


def test_the_sdk_raises_a_failure_behind_what_had_come() -> None:
    data = written([*BEGIN, *CALLS[:2], StreamError(ErrorKind.RATE_LIMIT, "slow down", retryable=True)])
    stream = client(data).chat.completions.create(model="m", messages=[], stream=True)
    seen: list[ChatCompletionChunk] = []
    with pytest.raises(APIError, match="slow down") as raised:
        seen.extend(stream)
    assert seen[-1].choices[0].delta.tool_calls is not None
    assert (raised.value.code, raised.value.type) == ("rate_limit_exceeded", "rate_limit_error")
    with pytest.raises(APIError, match="slow down"):
        final(data)


def test_the_sdk_reads_a_whole_answer() -> None:
    body = json.dumps(write(assemble([*BEGIN, *TEXT, *CALLS, *end(StopReason.TOOL_USE)]))).encode()
    whole = client(body, "application/json").chat.completions.create(model="m", messages=[])
    ChatCompletion.model_validate(whole.to_dict(), strict=True)
    assert whole.choices[0].message.content == "Hello"


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (503, "InternalServerError"),
    ],
)
def test_the_sdk_raises_what_a_user_expects(status: int, name: str) -> None:
    body = error_body(StreamError(ErrorKind.CONTEXT_LENGTH, "boom"))
    with pytest.raises(APIError, match="boom") as raised:
        client(json.dumps(body).encode(), "application/json", status).chat.completions.create(model="m", messages=[])
    assert type(raised.value).__name__ == name
    assert raised.value.code == "context_length_exceeded"
