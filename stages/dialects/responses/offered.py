"""The tools of a client's request by the name that an upstream may call them by, and what its answer repeats."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.events import ToolKind
from pipeline.toolnames import MANY, NOTHING, WRAPPED_SCHEMA, OfferedTool, ToolNames
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
    """The schemas of the tools that the model may call, by the upstream's name; a freeform one's is that of the one
    string that it is called with."""
    if request.get("tool_choice") == "none":
        return {}
    names, allowed = ToolNames(MANY, NOTHING), _allowed(request.get("tool_choice"))
    named = {names.offer(tool): (tool, schema) for tool, schema in _tools(request)}
    return {name: schema for name, (tool, schema) in named.items() if allowed is None or tool.key in allowed}


def _allowed(choice: Any) -> set[tuple[str, str]] | None:
    """The only tools that the model may call, each by its namespace and name; None if it may call all."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return None
    return {(_space(tool.get("namespace")), str(tool.get("name"))) for tool in _objects(choice.get("tools"))}


def _tools(request: Mapping[str, Any]) -> Iterator[tuple[OfferedTool, Mapping[str, Any]]]:
    yield from _of_list(request.get("tools"), "")
    for item in _objects(request.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            yield from _of_list(item.get("tools"), "")


def _of_list(tools: Any, namespace: str) -> Iterator[tuple[OfferedTool, Mapping[str, Any]]]:
    for tool in _objects(tools):
        inner = tool.get("function")  # some clients nest it as another dialect does
        given = inner if isinstance(inner, dict) else tool
        if not isinstance(name := given.get("name"), str):
            continue
        if tool.get("type") == "namespace":
            yield from _of_list(tool.get("tools"), _space(name))
        elif (kind := TOOL_KINDS.get(str(tool.get("type")))) is not None:
            schema = WRAPPED_SCHEMA if kind is ToolKind.CUSTOM else given.get("parameters")
            yield OfferedTool(name, namespace, kind), schema if isinstance(schema, Mapping) else {}


def _space(name: Any) -> str:
    """A namespace; the one of all tools is none."""
    return name if isinstance(name, str) and name != DEFAULT_NAMESPACE else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
