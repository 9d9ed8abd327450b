"""The tools of a client's request by name, and those of them that the model may call."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.toolnames import OfferedTool
from stages.dialects.messages.request_parts import tool_of_addition

CLIENT = (None, "custom")
"""The type of a tool that the client describes."""
DEFINED = ("bash_", "text_editor_", "memory_", "computer_")
"""What the types of the others begin with that the client runs."""


def offered_tools(request: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """The tools that the client describes, by name."""
    return {tool["name"]: OfferedTool(tool["name"]) for tool in _named(request) if tool.get("type") in CLIENT}


def callable_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tools that the client runs, by name; none where the model may call none."""
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "none":
        return {}
    schemas = {tool["name"]: tool.get("input_schema") for tool in _named(request)}
    return {name: schema if isinstance(schema, dict) else {} for name, schema in schemas.items()}


def _named(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that offer the tools that the client runs, also those that blocks of the conversation add."""
    turns = (turn.get("content") for turn in _objects(request.get("messages")))
    added = (tool_of_addition(block) for content in turns for block in _objects(content))
    for tool in (*_objects(request.get("tools")), *_objects([*added])):
        kind = tool.get("type")
        ours = kind in CLIENT or (isinstance(kind, str) and kind.startswith(DEFINED))
        if ours and isinstance(tool.get("name"), str):
            yield tool


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
