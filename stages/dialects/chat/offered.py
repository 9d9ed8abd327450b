"""The tools of a client's request that the model may call."""

from collections.abc import Mapping
from typing import Any

KINDS = ("function", "custom")


def callable_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tools that the client runs, by name; none where the model may call none."""
    tools = request.get("tools")
    if request.get("tool_choice") == "none" or not isinstance(tools, list):
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        said = tool.get(tool.get("type")) if isinstance(tool, dict) and tool.get("type") in KINDS else None
        if isinstance(said, dict) and isinstance(said.get("name"), str):
            schema = said.get("parameters")
            found[said["name"]] = schema if isinstance(schema, dict) else {}
    return found
