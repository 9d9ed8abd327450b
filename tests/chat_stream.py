"""A Chat stream as our encoder writes it, read as strictly as can be."""

import json
from collections.abc import Sequence
from typing import Any

from pipeline.events import Event, Frame, MessageDelta, MessageStart, MessageStop, StopReason
from pipeline.testing import EOF, play
from stages.dialects.chat.encode import ChatEncoder

Json = dict[str, Any]

START = MessageStart("chatcmpl-1", "m")
END: list[Event] = [MessageDelta(StopReason.END_TURN), MessageStop()]
ROLE: Json = {"role": "assistant", "content": None}


def encoder(**options: Any) -> ChatEncoder:
    """A fresh one, whose clock stands still."""
    return ChatEncoder(clock=lambda: 7.9, **options)


def told(*events: Event, stage: ChatEncoder | None = None) -> list[Any]:
    """The chunks that these events are written as, and `[DONE]`."""
    return payloads([frame for step in play(stage or encoder(), *events, EOF) for frame in step])


def payloads(frames: Sequence[Frame]) -> list[Any]:
    """What frames say; none has a name. Comments say nothing."""
    assert not any(frame.name for frame in frames)
    return ["[DONE]" if frame.data == b"[DONE]" else json.loads(frame.data) for frame in frames if frame.data]


def deltas(*events: Event, stage: ChatEncoder | None = None) -> list[Json]:
    """What is written between the role and the finish of a message."""
    chunks = told(START, *events, *END, stage=stage)
    assert chunks.pop() == "[DONE]"
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert choices[0] == {"index": 0, "delta": ROLE, "finish_reason": None}
    assert all(choice["finish_reason"] is None for choice in choices[:-1])
    assert choices[-1]["delta"] == {}
    return [choice["delta"] for choice in choices[1:-1]]


def finish(*events: Event, stage: ChatEncoder | None = None) -> str:
    """The finish reason of a message that ends so."""
    *_, last, done = told(START, *events, MessageStop(), stage=stage)
    assert done == "[DONE]"
    reason: str = last["choices"][0]["finish_reason"]
    return reason
