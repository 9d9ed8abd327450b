"""Streams made of the official SDK's own types are read as the SDK itself reads them."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.types import (
    CitationsDelta,
    CitationsWebSearchResultLocation,
    InputJSONDelta,
    MessageDeltaUsage,
    OutputTokensDetails,
    RawContentBlockDeltaEvent,
    RawContentBlockStartEvent,
    RawContentBlockStopEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    RedactedThinkingBlock,
    ServerToolUseBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    Usage,
    WebSearchResultBlock,
    WebSearchToolResultBlock,
)
from anthropic.types import Message as SDKMessage
from anthropic.types.raw_message_delta_event import Delta

from pipeline.dialect import NO_REQUEST
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.message import Message, Reasoning, RedactedReasoning, ServerItem, Text, ToolUse, assemble
from stages.dialects.messages import DIALECT
from stages.dialects.messages.normalize import MessagesNormalizer
from stages.dialects.messages.opaque import blob_of
from stages.sse import SSEDecoder

NOTE = CitationsWebSearchResultLocation(
    type="web_search_result_location", cited_text="c", encrypted_index="E", title="t", url="u"
)
RESULT = WebSearchResultBlock(type="web_search_result", encrypted_content="E", title="t", url="u", page_age=None)
BLOCKS: list[tuple[Any, list[Any]]] = [
    (
        ThinkingBlock(type="thinking", thinking="", signature=""),
        [
            ThinkingDelta(type="thinking_delta", thinking="Wh"),
            ThinkingDelta(type="thinking_delta", thinking="y"),
            SignatureDelta(type="signature_delta", signature="SIG"),
        ],
    ),
    (RedactedThinkingBlock(type="redacted_thinking", data="BLOB"), []),
    (
        ServerToolUseBlock(type="server_tool_use", id="s", name="web_search", input={}),
        [InputJSONDelta(type="input_json_delta", partial_json='{"query": "q"}')],
    ),
    (WebSearchToolResultBlock(type="web_search_tool_result", tool_use_id="s", content=[RESULT]), []),
    (
        TextBlock(type="text", text="", citations=None),
        [
            CitationsDelta(type="citations_delta", citation=NOTE),
            TextDelta(type="text_delta", text="Hé"),
            TextDelta(type="text_delta", text="👍"),
        ],
    ),
    (
        ToolUseBlock(type="tool_use", id="a", name="f", input={}),
        [
            InputJSONDelta(type="input_json_delta", partial_json=""),
            InputJSONDelta(type="input_json_delta", partial_json='{"x"'),
            InputJSONDelta(type="input_json_delta", partial_json=": 1}"),
        ],
    ),
    (ToolUseBlock(type="tool_use", id="b", name="g", input={}), []),
]


def stream() -> bytes:
    """A turn with every kind of block."""
    usage = Usage(input_tokens=10, cache_read_input_tokens=4, cache_creation_input_tokens=3, output_tokens=1)
    message = SDKMessage(
        id="msg_1",
        type="message",
        role="assistant",
        model="m",
        content=[],
        stop_reason=None,
        stop_sequence=None,
        usage=usage,
    )
    events: list[Any] = [RawMessageStartEvent(type="message_start", message=message)]
    for index, (block, deltas) in enumerate(BLOCKS):
        events.append(RawContentBlockStartEvent(type="content_block_start", index=index, content_block=block))
        events += [RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(RawContentBlockStopEvent(type="content_block_stop", index=index))
    counts = MessageDeltaUsage(
        output_tokens=9,
        input_tokens=None,
        cache_read_input_tokens=None,
        cache_creation_input_tokens=None,
        output_tokens_details=OutputTokensDetails(thinking_tokens=2),
    )
    events.append(
        RawMessageDeltaEvent(
            type="message_delta", delta=Delta(stop_reason="tool_use", stop_sequence=None), usage=counts
        )
    )
    return written([*events, RawMessageStopEvent(type="message_stop")])


def written(events: Sequence[Any]) -> bytes:
    """The bytes of a stream of the SDK's events."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (one.type.encode(), one.model_dump_json().encode()) for one in events)


def as_the_sdk_reads(raw: bytes) -> SDKMessage:
    """What the SDK's helper makes of a stream."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=raw, headers={"content-type": "text/event-stream"})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = Anthropic(api_key="x", base_url="http://127.0.0.1", http_client=http, max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}]) as stream:
        return stream.get_final_message()


def as_we_read(raw: bytes) -> Message:
    """What we make of it."""
    chain = SSEDecoder() | MessagesNormalizer()
    return assemble([*chain.receive([raw]), *chain.receive_eof()])


def in_its_words(content: Any) -> dict[str, Any]:
    """A content in the words of the SDK, but for what it has as null."""
    if isinstance(content, Reasoning):
        return {"type": "thinking", "thinking": content.text, "signature": blob_of(content.signature)}
    if isinstance(content, RedactedReasoning):
        return {"type": "redacted_thinking", "data": blob_of(content.data)}
    if isinstance(content, ServerItem):
        return {name: value for name, value in content.payload.items() if value is not None}
    if isinstance(content, ToolUse):
        return {"type": "tool_use", "id": content.id, "name": content.name, "input": json.loads(content.arguments)}
    assert isinstance(content, Text)
    noted = {"citations": [dict(note) for note in content.annotations]} if content.annotations else {}
    return {"type": "text", "text": content.text, **noted}


def test_a_stream_says_to_us_what_it_says_to_the_sdk() -> None:
    ours, theirs = as_we_read(stream()), as_the_sdk_reads(stream())
    content = [json.loads(block.model_dump_json(exclude_none=True)) for block in theirs.content]
    assert [_without_nulls(in_its_words(one)) for one in ours.content] == content
    assert (ours.id, ours.model, ours.stop_reason) == (theirs.id, theirs.model, theirs.stop_reason)
    assert ours.usage is not None
    assert (ours.usage.input, ours.usage.cache_read, ours.usage.cache_write) == (10, 4, 3)
    assert (ours.usage.output, ours.usage.reasoning) == (9, 2)


def test_the_message_that_the_sdk_made_is_read_as_the_stream_was() -> None:
    whole = as_the_sdk_reads(stream()).model_dump_json(exclude={"content": {"__all__": {"parsed_output"}}}).encode()
    read = DIALECT.read_body(whole, facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS)
    ours = as_we_read(stream())
    assert [_without_nulls(in_its_words(one)) for one in read.content] == [
        _without_nulls(in_its_words(one)) for one in ours.content
    ]
    assert (read.stop_reason, read.usage) == (ours.stop_reason, ours.usage)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
