"""What a client's request says that its answer depends on: the tools by their names, and whether counts are wanted."""

from collections.abc import Mapping
from typing import Any

from pipeline.events import ToolKind
from pipeline.toolnames import WRAPPED_SCHEMA, OfferedTool

Json = dict[str, Any]


def offered_tools(request: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """The tools that the client runs, by name."""
    return {tool["name"]: OfferedTool(tool["name"], kind=kind) for kind, tool in _named(request)}


def callable_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tools that the model may call, by name; a freeform one's is that of the one string that it is
    called with."""
    if "none" in (request.get("tool_choice"), request.get("function_call")):
        return {}
    allowed = _allowed(request.get("tool_choice"))
    found = {
        tool["name"]: WRAPPED_SCHEMA if kind is ToolKind.CUSTOM else tool.get("parameters")
        for kind, tool in _named(request)
        if allowed is None or tool["name"] in allowed
    }
    return {name: schema if isinstance(schema, Mapping) else {} for name, schema in found.items()}


def is_older(request: Mapping[str, Any]) -> bool:
    """Whether the client offers its tools in the deprecated words alone, and so reads calls in no others."""
    return bool(_objects(request.get("functions"))) and not request.get("tools")


def wants_usage(request: Mapping[str, Any]) -> bool:
    """Whether the client asked for token counts at the end of a stream."""
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _allowed(choice: Any) -> set[str] | None:
    """The names of the only tools that the model may call; None if it may call all."""
    among = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if not isinstance(among, dict):
        return None
    named = [tool.get("custom") or tool.get("function") or tool for tool in _objects(among.get("tools"))]
    return {tool["name"] for tool in _objects(named) if isinstance(tool.get("name"), str)}


def _named(request: Mapping[str, Any]) -> list[tuple[ToolKind, Json]]:
    """The objects that describe the client's tools, also the deprecated ones."""
    found = [(kind, tool.get(kind.value)) for kind in ToolKind for tool in _objects(request.get("tools"))]
    found += [(ToolKind.FUNCTION, function) for function in _objects(request.get("functions"))]
    return [(kind, tool) for kind, tool in found if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
