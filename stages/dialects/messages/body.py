"""A whole Messages answer."""

from typing import Any

from pipeline.events import StopReason, ToolKind, Usage
from pipeline.jsontext import dumps, exact, loads
from pipeline.ledger import Ledger
from pipeline.message import Content, Message, Reasoning, RedactedReasoning, Refusal, Text, ToolUse
from stages.dialects.messages.encode import NAME, counts, message_id


def write(message: Message, ledger: Ledger) -> dict[str, Any]:
    """The body of an answer: what its stream would build in an SDK. What Messages cannot show is recorded."""
    blocks = []
    for content in message.content:
        block = _block(content)
        if block is not None:
            blocks.append(block)
        if block is None or (isinstance(content, Text) and content.annotations):
            ledger.record("messages", type(content).__name__, "dropped", "Messages cannot show it")
    return {
        "id": message_id(message.id),
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": blocks,
        "stop_reason": message.stop_reason or StopReason.END_TURN,
        "stop_sequence": message.stop_sequence,
        "usage": counts(message.usage or Usage()),
    }


def _block(content: Content) -> dict[str, Any] | None:
    """A content block; None for one that this dialect cannot show."""
    if isinstance(content, Text | Refusal):
        return {"type": "text", "text": content.text}
    if isinstance(content, Reasoning):
        return {"type": "thinking", "thinking": content.text, "signature": content.signature}
    if isinstance(content, RedactedReasoning):
        return {"type": "redacted_thinking", "data": content.data}
    if isinstance(content, ToolUse):
        return {"type": "tool_use", "id": content.id, "name": content.name, "input": _input(content)}
    if content.dialect == NAME:
        return dict(content.payload)
    return None


def _input(call: ToolUse) -> Any:
    """A call's arguments as a value, every digit of its numbers kept; of a call that was cut, nothing."""
    if call.kind is ToolKind.CUSTOM:
        return {"input": call.arguments}
    try:
        value = loads(call.arguments)
        return value if dumps(value) == call.arguments.encode() else exact(call.arguments)
    except ValueError:
        return {}
