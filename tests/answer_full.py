"""Answers that hold what each dialect has: every piece, in its place, streamed and whole."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.reply import Form
from stages.recipe import default_chain

Json = dict[str, Any]

SCORES = [{"token": "hi", "logprob": -1, "bytes": [104, 105], "top_logprobs": [{"token": "hi", "logprob": -1}]}]
PAGE = {"url": "http://u", "title": "t", "start_index": 0, "end_index": 1}

WHOLE: dict[str, Json] = {
    "chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "hi",
                    "annotations": [{"type": "url_citation", "url_citation": PAGE}],
                    "reasoning_content": "r",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
                },
                "finish_reason": "tool_calls",
                "logprobs": {"content": SCORES},
            }
        ],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "total_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    },
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "S"},
            {"type": "redacted_thinking", "data": "D"},
            {
                "type": "text",
                "text": "hi",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "http://u",
                        "title": "t",
                        "cited_text": "x",
                        "encrypted_index": "e",
                    }
                ],
            },
            {"type": "tool_use", "id": "tu", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_creation_input_tokens": 4,
            "cache_creation": {"ephemeral_5m_input_tokens": 4},
            "output_tokens_details": {"thinking_tokens": 1},
        },
    },
    "responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 5,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "s"}],
                "encrypted_content": "E",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "hi",
                        "annotations": [{"type": "url_citation", **PAGE}],
                        "logprobs": SCORES,
                    },
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": '{"a":1}',
                "status": "completed",
            },
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "g", "input": "i"},
        ],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 1},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 3,
        },
    },
}
"""A whole answer of each dialect."""


def answered(upstream: str, client: str, body: bytes, arriving: Form, leaving: Form) -> tuple[bytes, Ledger]:
    """What a client gets, and what was lost."""
    ledger = Ledger()
    ways: dict[str, Any] = {"arriving": arriving, "leaving": leaving, "ledger": ledger}
    chain = default_chain(dialect(upstream), dialect(client), **ways)
    return b"".join([*chain.receive([body]), *chain.receive_eof()]), ledger


def written(upstream: str, frames: Sequence[Json]) -> bytes:
    """A stream of frames."""
    named = [f"event: {frame['type']}\n" if "type" in frame else "" for frame in frames]
    lines = [f"{name}data: {json.dumps(frame)}\n\n" for name, frame in zip(named, frames, strict=True)]
    return "".join([*lines, "data: [DONE]\n\n" if upstream == "chat" else ""]).encode()


def frames_of(upstream: str) -> list[Json]:
    """The same answer, streamed."""
    whole = json.dumps(WHOLE[upstream]).encode()
    body, _ = answered(upstream, upstream, whole, Form.WHOLE, Form.STREAM)
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]


def places(value: Any, where: str = "") -> Iterator[str]:
    """The path of each object in an answer, but for a call's input, which is its own."""
    if isinstance(value, dict):
        yield where
        for name, inner in value.items():
            if name != "input":
                yield from places(inner, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, f"{where}[{at}]")
