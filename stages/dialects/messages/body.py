"""A whole Messages answer."""

from typing import Any

from pipeline.events import StopReason, ToolKind, Usage
from pipeline.jsontext import is_object, verbatim
from pipeline.ledger import Ledger
from pipeline.message import Content, Message, Reasoning, RedactedReasoning, Refusal, Text, ToolUse
from stages.dialects.messages.encode import NAME, counts, message_id


def write(message: Message, ledger: Ledger) -> dict[str, Any]:
    """The body of an answer: what a client makes of its stream. What Messages cannot show is recorded.

    The input of a call stands in it as the model wrote it, to be written by `pipeline.jsontext.dumps`.
    """
    blocks = [_block(content, ledger) for content in message.content]
    return {
        "id": message_id(message.id),
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": [block for block in blocks if block is not None],
        "stop_reason": message.stop_reason or StopReason.END_TURN,
        "stop_sequence": message.stop_sequence,
        "usage": counts(message.usage or Usage()),
    }


def _block(content: Content, ledger: Ledger) -> dict[str, Any] | None:
    """A content block; None for one that this dialect cannot show."""
    if isinstance(content, Text | Refusal):
        if isinstance(content, Text) and content.annotations:
            _lose("annotation", "Messages cannot show another API's citations", ledger)
        return {"type": "text", "text": content.text}
    if isinstance(content, Reasoning):
        return {"type": "thinking", "thinking": content.text, "signature": content.signature}
    if isinstance(content, RedactedReasoning):
        return {"type": "redacted_thinking", "data": content.data}
    if isinstance(content, ToolUse):
        return {"type": "tool_use", "id": content.id, "name": content.name, "input": _input(content, ledger)}
    if content.dialect == NAME:
        return dict(content.payload)
    _lose("ServerBlock", "Messages cannot show it", ledger)
    return None


def _input(call: ToolUse, ledger: Ledger) -> Any:
    """A call's input as a value, every digit of its numbers kept; of one that the limit cut, nothing."""
    if call.kind is ToolKind.CUSTOM and call.complete:
        return {"input": call.arguments}
    if call.kind is ToolKind.FUNCTION and is_object(call.arguments):
        return verbatim(call.arguments)
    _lose("arguments", "cut by the limit: a whole answer cannot show a part of them", ledger)
    return {}


def _lose(path: str, reason: str, ledger: Ledger) -> None:
    ledger.record("messages.body", path, "dropped", reason)
