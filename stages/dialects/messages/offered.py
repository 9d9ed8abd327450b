"""The tools of a client's request that the model may call."""

from collections.abc import Mapping
from typing import Any

CLIENT = (None, "custom")
"""The type of a tool that the client runs."""


def callable_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tools that the client runs, by name; none where the model may call none."""
    choice, tools = request.get("tool_choice"), request.get("tools")
    if (isinstance(choice, dict) and choice.get("type") == "none") or not isinstance(tools, list):
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if isinstance(tool, dict) and tool.get("type") in CLIENT and isinstance(tool.get("name"), str):
            schema = tool.get("input_schema")
            found[tool["name"]] = schema if isinstance(schema, dict) else {}
    return found
