"""The tools of a client's request by the name that an upstream may call them by, and what its answer repeats."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.events import ToolKind
from pipeline.toolnames import MANY, NOTHING, OfferedTool, ToolNames
from stages.dialects.responses.request_tables import DEFAULT_NAMESPACE

TOOL_KINDS = {"function": ToolKind.FUNCTION, "custom": ToolKind.CUSTOM}

ECHOED = (
    "instructions",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
    "background",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "text",
    "top_logprobs",
    "truncation",
    "user",
)
"""The members of a request that the response repeats."""


def echo_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request the response repeats."""
    return {name: request[name] for name in ECHOED if request.get(name) is not None}


def offered_tools(request: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """The tools that the client runs, by the upstream's name, and by their own where it is the only one of that name.

    They stand in `tools`, in namespaces there, and in the items that offer more of them.
    """
    tools = [tool for tool, _ in _tools(request)]
    names = ToolNames(MANY, NOTHING)
    by_name = {names.offer(tool): tool for tool in tools}
    for tool in tools:
        if sum(other.name == tool.name for other in tools) == 1:
            by_name.setdefault(tool.name, tool)
    return by_name


def callable_tools(request: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tools that the client runs, by the upstream's name; none where the model may call none."""
    if request.get("tool_choice") == "none":
        return {}
    names = ToolNames(MANY, NOTHING)
    return {names.offer(tool): schema for tool, schema in _tools(request)}


def _tools(request: Mapping[str, Any]) -> Iterator[tuple[OfferedTool, Mapping[str, Any]]]:
    yield from _of_list(request.get("tools"), "")
    items = request.get("input")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output"):
            yield from _of_list(item.get("tools"), "")


def _of_list(tools: Any, namespace: str) -> Iterator[tuple[OfferedTool, Mapping[str, Any]]]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            continue
        if tool.get("type") == "namespace":
            yield from _of_list(tool.get("tools"), "" if name == DEFAULT_NAMESPACE else name)
        elif (kind := TOOL_KINDS.get(str(tool.get("type")))) is not None:
            schema = tool.get("parameters")
            yield OfferedTool(name, namespace, kind), schema if isinstance(schema, dict) else {}
