"""The official SDK reads what the encoder writes, and sends what it cannot read nowhere."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from openai import APIError, OpenAI

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
from pipeline.message import Message, Reasoning, Text, ToolUse
from stages.dialects.responses.body import write
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.errors import error_body
from stages.sse import SSEEncoder

BEGIN = [MessageStart("c1", "m"), BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "Why"), SignatureDelta(0, "SIG")]
TEXT: list[Event] = [BlockStart(1, TextBlock()), TextDelta(1, "Hel"), TextDelta(1, "lo"), BlockStop(1)]
CALLS: list[Event] = [
    BlockStart(2, ToolUseBlock("call_a", "f")),
    ArgumentsDelta(2, '{"x"'),
    ArgumentsDelta(2, ":1}"),
    BlockStop(2),
    BlockStart(3, ToolUseBlock("call_b", "patch", ToolKind.CUSTOM)),
    ArgumentsDelta(3, "***"),
    BlockStop(3),
]
USAGE = Usage(input=3, cache_read=4, output=5, reasoning=1)


def client(body: bytes, kind: str = "text/event-stream", status: int = 200) -> OpenAI:
    """The SDK before a server that answers so."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    transport = httpx2.MockTransport(answer)
    return OpenAI(
        api_key="x", base_url="http://127.0.0.1/v1", http_client=httpx2.Client(transport=transport), max_retries=0
    )


def written(events: Sequence[Event]) -> bytes:
    """The bytes of a stream of these events."""
    chain = ResponsesEncoder(facts=RequestFacts(echo={"temperature": 0})) | SSEEncoder()
    return b"".join([*chain.receive(events), *chain.idle(), *chain.receive_eof()])


def final(events: Sequence[Event]) -> Any:
    """What the SDK's helper makes of a stream, once it has read it all."""
    with client(written(events)).responses.stream(model="m", input="go") as stream:
        seen = [event.type for event in stream]
        assert seen[0] == "response.created"
        return stream.get_final_response()


def test_the_sdk_accumulates_a_turn() -> None:
    end = [MessageDelta(StopReason.TOOL_USE, usage=USAGE), MessageStop()]
    whole = final([*BEGIN, BlockStop(0), *TEXT, *CALLS, *end])
    reasoning, message, call, custom = whole.output
    assert reasoning.summary[0].text == "Why"
    assert reasoning.encrypted_content == "SIG"
    assert message.content[0].text == whole.output_text == "Hello"
    assert (call.call_id, call.name, call.arguments) == ("call_a", "f", '{"x":1}')
    assert (custom.call_id, custom.input) == ("call_b", "***")
    assert whole.usage.input_tokens_details.cached_tokens == 4
    assert whole.usage.total_tokens == 12


def test_the_sdk_reads_a_refusal_and_a_note() -> None:
    note = AnnotationDelta(0, {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1})
    said = [BlockStart(0, TextBlock()), TextDelta(0, "a"), note, RefusalDelta(0, "no"), BlockStop(0)]
    whole = final([MessageStart("c1", "m"), *said, MessageDelta(StopReason.REFUSAL), MessageStop()])
    assert whole.output[0].content[0].annotations[0].url == "u"
    assert whole.output[0].content[1].refusal == "no"


def test_the_sdk_tells_a_limit_and_a_failure_from_success() -> None:
    for end in ([MessageDelta(StopReason.MAX_TOKENS), MessageStop()], [StreamError(ErrorKind.CUT, "cut")]):
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            final([*BEGIN, BlockStop(0), *TEXT, *end])


def test_the_sdk_reads_a_failure_with_a_call_left_open() -> None:
    data = written([*BEGIN, BlockStop(0), *CALLS[:2], StreamError(ErrorKind.RATE_LIMIT, "slow down", retryable=True)])
    last = list(client(data).responses.create(model="m", input="go", stream=True))[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == ("rate_limit_exceeded", "slow down")


def test_the_sdk_reads_a_whole_answer() -> None:
    content = (Reasoning("Why", "SIG"), Text("Hello"), ToolUse("call_a", "f", '{"x":1}'))
    body = write(Message("c1", "m", content, StopReason.TOOL_USE, usage=USAGE))
    whole = client(json.dumps(body).encode(), "application/json").responses.create(model="m", input="go")
    assert whole.output_text == "Hello"
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
def test_the_sdk_raises_what_a_user_expects(status: int, name: str) -> None:
    body = error_body(StreamError(ErrorKind.API, "boom", "server_error", retryable=True))
    with pytest.raises(APIError, match="boom") as raised:
        client(json.dumps(body).encode(), "application/json", status).responses.create(model="m", input="go")
    assert type(raised.value).__name__ == name
    assert (raised.value.type, raised.value.code) == ("server_error", None)
