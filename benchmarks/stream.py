"""The fixed streams that the benchmarks run: Chat, as a vendor of a reasoning model sends it."""

import json
from typing import Any

WORDS = [
    "the",
    "weir",
    "holds",
    "a",
    "river",
    "back",
    "just",
    "enough",
    "to",
    "make",
    "it",
    "orderly",
    "and",
    "that",
    "is",
    "the",
    "whole",
    "of",
    "its",
    "job",
]


def chat_stream(events: int = 400) -> list[bytes]:
    """About `events` frames: reasoning, text, and three calls whose fragments come one call after another."""
    frames = [_frame({"role": "assistant", "content": None, "reasoning_content": ""})]
    frames += [_frame({"content": None, "reasoning_content": _word(at)}) for at in range(events * 2 // 5)]
    frames += [_frame({"content": _word(at), "reasoning_content": None}) for at in range(events * 7 // 20)]
    for call in range(3):
        opening = {
            "index": call,
            "id": f"call_{call}",
            "type": "function",
            "function": {"name": "write", "arguments": ""},
        }
        frames.append(_frame({"tool_calls": [opening]}))
        body = json.dumps({"path": f"/src/{call}.py", "text": "".join(map(_word, range(events // 6))), "line": call})
        step = max(1, len(body) * 12 // events)
        for at in range(0, len(body), step):
            fragment = {"index": call, "function": {"arguments": body[at : at + step]}}
            frames.append(_frame({"tool_calls": [fragment]}))
    frames.append(_frame({"content": ""}, finish="tool_calls"))
    usage = {"prompt_tokens": 900, "completion_tokens": events, "total_tokens": 900 + events}
    return [*frames, _framed({**_chunk(), "choices": [], "usage": usage}), b"data: [DONE]\n\n"]


def _word(at: int) -> str:
    return f" {WORDS[at % len(WORDS)]}"


def _chunk() -> dict[str, Any]:
    return {"id": "chatcmpl-7c1f0a9e", "object": "chat.completion.chunk", "created": 1790000000, "model": "weir-1"}


def _frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _framed({**_chunk(), "choices": [choice]})


def _framed(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"
