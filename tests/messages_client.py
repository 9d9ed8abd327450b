"""A Messages client that makes of a stream the message that a whole answer is, and minds every word of the law."""

import json
from typing import Any

from tests.support import read

MEMBERS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def folded(raw: bytes) -> dict[str, Any]:
    """The message that a stream makes, as the official SDKs accumulate it; it must be legal and whole."""
    assert read(raw).ended
    message: dict[str, Any] = {}
    arguments: dict[int, str] = {}
    for block in raw.decode().split("\n\n")[:-1]:
        event = json.loads(block.partition("\ndata: ")[2])
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                arguments[event["index"]] = arguments.get(event["index"], "") + delta["partial_json"]
            else:
                member = MEMBERS[delta["type"]]
                message["content"][event["index"]][member] += delta[member]
        elif event["type"] == "content_block_stop" and event["index"] in arguments:
            message["content"][event["index"]]["input"] = _parsed(arguments[event["index"]])
        elif event["type"] == "message_delta":
            message.update(event["delta"])
            message["usage"].update(event["usage"])
    return message


def _parsed(text: str) -> Any:
    """A call's input; of one that the limit cut, nothing."""
    try:
        return json.loads(text)
    except ValueError:
        return {}
