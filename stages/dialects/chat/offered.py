"""What a client's request says that its answer depends on: the tools by their names, and whether counts are wanted."""

from collections.abc import Mapping
from typing import Any

from pipeline.events import ToolKind
from pipeline.toolnames import OfferedTool


def offered_tools(request: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """The tools that the client runs, by name."""
    named = [(kind, tool.get(kind.value)) for kind in ToolKind for tool in _objects(request.get("tools"))]
    named += [(ToolKind.FUNCTION, function) for function in _objects(request.get("functions"))]
    return {
        tool["name"]: OfferedTool(tool["name"], kind=kind)
        for kind, tool in named
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    }


def wants_usage(request: Mapping[str, Any]) -> bool:
    """Whether the client asked for token counts at the end of a stream."""
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
