"""A Messages request as a Chat request: text, tools, their calls and their results. What else there is, is refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.errors import ClientError, LimitExceeded
from pipeline.jsontext import dumps, loads
from pipeline.limits import DEFAULT_LIMITS, Limits

JSONObject = dict[str, Any]

ROLES = ("user", "assistant", "system")
DROPPED = ("thinking", "redacted_thinking")
"""Blocks of an assistant that are not sent back: what another provider's model thought."""

MEMBERS = {
    "model": "model",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
}
"""Members that both dialects have: their names in Messages and in Chat."""

CHOICES = {"auto": "auto", "any": "required", "none": "none"}
"""Tool choices in Messages and in Chat; the choice of one tool stands apart."""


def parse(body: bytes, limits: Limits = DEFAULT_LIMITS) -> JSONObject:
    """A client's request for a streamed answer.

    Raises `ClientError` naming the member that is missing or wrong.
    """
    try:
        asked = loads(body, limits.json_depth)
    except LimitExceeded as error:
        raise ClientError(f"the body: {error}") from error
    except ValueError as error:
        raise ClientError("the body is no JSON") from error
    asked = _object(asked, "the body")
    _string(asked.get("model"), "model")
    most = asked.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise ClientError("max_tokens: must be a whole number above 0")
    if not _list(asked.get("messages"), "messages"):
        raise ClientError("messages: must not be empty")
    if asked.get("stream") is not True:
        raise ClientError("stream: must be true; whole answers are not served here")
    return asked


def chat_request(asked: Mapping[str, Any]) -> JSONObject:
    """The same request for a Chat upstream.

    Raises `ClientError` naming what cannot be carried.
    """
    request: JSONObject = {new: asked[old] for old, new in MEMBERS.items() if asked.get(old) is not None}
    request["messages"] = [*_system(asked), *_turns(asked)]
    if tools := _list(asked.get("tools") or [], "tools"):
        request["tools"] = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(tools)]
    if choice := asked.get("tool_choice"):
        request["tool_choice"] = _choice(_object(choice, "tool_choice"))
    return {**request, "stream": True, "stream_options": {"include_usage": True}}


def _system(asked: Mapping[str, Any]) -> Iterator[JSONObject]:
    if system := asked.get("system"):
        yield {"role": "system", "content": _text(system, "system")}


def _turns(asked: Mapping[str, Any]) -> Iterator[JSONObject]:
    for at, message in enumerate(_list(asked.get("messages"), "messages")):
        path = f"messages[{at}]"
        message = _object(message, path)
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise ClientError(f"{path}.role: must be one of {', '.join(ROLES)}")
        if role == "assistant":
            yield _assistant(_blocks(content, f"{path}.content"), f"{path}.content")
        else:
            yield from _said(role, _blocks(content, f"{path}.content"), f"{path}.content")


def _assistant(blocks: Sequence[JSONObject], path: str) -> JSONObject:
    """An assistant's turn: its text and its calls."""
    texts, calls = [], []
    for at, block in enumerate(blocks):
        here = f"{path}[{at}]"
        if block["type"] == "text":
            texts.append(_string(block.get("text"), f"{here}.text", empty=True))
        elif block["type"] == "tool_use":
            calls.append(_call(block, here))
        elif block["type"] not in DROPPED:
            raise _refused(block, here)
    turn: JSONObject = {"role": "assistant", "content": "".join(texts)}
    return {**turn, "tool_calls": calls} if calls else turn


def _call(block: JSONObject, path: str) -> JSONObject:
    arguments = dumps(_object(block.get("input"), f"{path}.input")).decode()
    function = {"name": _string(block.get("name"), f"{path}.name"), "arguments": arguments}
    return {"id": _string(block.get("id"), f"{path}.id"), "type": "function", "function": function}


def _said(role: str, blocks: Sequence[JSONObject], path: str) -> Iterator[JSONObject]:
    """A user's turn: a message a tool result, then one with the text."""
    texts = []
    for at, block in enumerate(blocks):
        here = f"{path}[{at}]"
        if block["type"] == "text":
            texts.append(_string(block.get("text"), f"{here}.text", empty=True))
        elif block["type"] == "tool_result":
            content = _text(block.get("content") or "", f"{here}.content")
            call = _string(block.get("tool_use_id"), f"{here}.tool_use_id")
            yield {"role": "tool", "tool_call_id": call, "content": content}
        else:
            raise _refused(block, here)
    if texts:
        yield {"role": role, "content": "\n".join(texts)}


def _tool(tool: Any, path: str) -> JSONObject:
    tool = _object(tool, path)
    function = {
        "name": _string(tool.get("name"), f"{path}.name"),
        "parameters": _object(tool.get("input_schema"), f"{path}.input_schema"),
    }
    if description := tool.get("description"):
        function["description"] = _string(description, f"{path}.description")
    return {"type": "function", "function": function}


def _choice(choice: Mapping[str, Any]) -> Any:
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": _string(choice.get("name"), "tool_choice.name")}}
    if not isinstance(kind, str) or kind not in CHOICES:
        raise ClientError(f"tool_choice.type: must be tool or one of {', '.join(CHOICES)}")
    return CHOICES[kind]


def _text(content: Any, path: str) -> str:
    """Content that is text alone."""
    texts = []
    for at, block in enumerate(_blocks(content, path)):
        if block["type"] != "text":
            raise _refused(block, f"{path}[{at}]")
        texts.append(_string(block.get("text"), f"{path}[{at}].text", empty=True))
    return "\n".join(texts)


def _blocks(content: Any, path: str) -> list[JSONObject]:
    """Content as blocks, each with its type."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = [_object(block, f"{path}[{at}]") for at, block in enumerate(_list(content, path))]
    for at, block in enumerate(blocks):
        _string(block.get("type"), f"{path}[{at}].type")
    return blocks


def _refused(block: Mapping[str, Any], path: str) -> ClientError:
    return ClientError(f"{path}: a block of type {block['type'][:50]!r} cannot be carried here")


def _object(value: Any, path: str) -> JSONObject:
    if not isinstance(value, dict):
        raise ClientError(f"{path}: must be an object")
    return value


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ClientError(f"{path}: must be a list")
    return value


def _string(value: Any, path: str, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise ClientError(f"{path}: must be a string" + ("" if empty else " that is not empty"))
    return value
