"""Reading a Messages request."""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import Loss, Reading
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.members import Members
from pipeline.request import (
    Choosing,
    FunctionTool,
    Given,
    OutputFormat,
    OutputKind,
    Reasoning,
    Request,
    Role,
    ServerPart,
    ServerTool,
    TextPart,
    Tool,
    ToolChoice,
    Turn,
    WebSearch,
)
from stages.dialects.messages.request_parts import cache, content, tool_of_addition
from stages.dialects.messages.request_tables import KNOWN, NAME, READ, TOOL_OWN, TOP_OWN

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_CHOICES = {"auto": Choosing.AUTO, "any": Choosing.ANY, "none": Choosing.NONE, "tool": Choosing.ONE}
_EFFORTS = {effort: effort for effort in ("low", "medium", "high", "xhigh", "max")}
_TIERS = {"auto": "auto", "standard_only": "default"}
_KEPT = ("output_config", "output_format", "metadata")
"""Members that have a meaning of ours and hold more than it."""
_CLIENT_TOOLS = ("bash_", "text_editor_", "memory_", "computer_", "browser_")


def parse(body: Mapping[str, Any], *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, own: bool = False) -> Request:
    """What a Messages body asks for. `own`: of this same dialect, so what must be there may be missing.

    Raises `ClientError` naming the first member that is not as it must be.
    """
    members = Members(body)
    reading = Reading(READ)
    rest = reading.rest(members, KNOWN, TOP_OWN)
    rest["private"].update(_private(members, reading))
    turns = _turns(members, reading, limits)
    if not (turns or own):
        raise ClientError.about("messages", "is required, and not empty")
    choice, parallel = _tool_choice(members, reading)
    request = Request(
        dialect=NAME,
        model=members.text("model") if own else members.need("model"),
        turns=turns,
        system=_system(members, reading, limits),
        tools=(*_tools(members, reading), *_added(turns, reading)),
        tool_choice=choice,
        parallel=parallel,
        max_tokens=_max_tokens(members, own),
        stop=members.texts("stop_sequences"),
        temperature=members.number("temperature"),
        top_p=members.number("top_p"),
        top_k=members.integer("top_k"),
        reasoning=_reasoning(members, reading),
        output=_output(members, reading),
        user=_user(members, reading),
        cache=cache(members, reading),
        service_tier=reading.word(members, "service_tier", _TIERS),
        stream=members.flag("stream") is True,
        include_usage=True,
        private=rest["private"],
        extras=rest["extras"],
        losses=tuple(reading.losses),
        paths=_PATHS,
    )
    return evolve(request, given=Given(body, request))


_PATHS = {
    "turns": "messages",
    "stop": "stop_sequences",
    "parallel": "tool_choice.disable_parallel_tool_use",
    "user": "metadata.user_id",
    "reasoning.budget": "thinking.budget_tokens",
    "reasoning.summary": "thinking.display",
}


def _private(members: Members, reading: Reading) -> dict[str, Any]:
    """The members that go back into this dialect as they came, of which the others are told a part, or nothing."""
    kept = {name: members.value[name] for name in _KEPT if members.has(name)}
    thread = members.object("thread")
    if thread is None:
        return kept
    reading.lose("thread.continue" if thread.text("type") == "continue" else "thread", "thread")
    return {"thread": thread.value, **kept}


def _turns(members: Members, reading: Reading, limits: Limits) -> tuple[Turn, ...]:
    turns = []
    for message in members.objects("messages"):
        message.need("role")
        role = reading.word(message, "role", _ROLES) or Role.USER
        own = {name: f"messages[].{name}" for name in ("output_config", "clear_at")}
        rest = reading.rest(message, ("role", "content"), own)
        turns.append(Turn(role, content(message, reading, limits), **rest))
    return tuple(turns)


def _system(members: Members, reading: Reading, limits: Limits) -> tuple[Turn, ...]:
    parts = content(members, reading, limits, "system")
    for part in parts:
        if not isinstance(part, TextPart):
            reading.refuse(f"{part.where}.type", "must be text")
    return (Turn(Role.SYSTEM, parts, where="system"),) if parts else ()


def _max_tokens(members: Members, own: bool) -> int | None:
    found = members.integer("max_tokens")
    if found is None and not own:
        raise ClientError.about("max_tokens", "is required")
    if found is not None and found < 0:
        raise ClientError.about("max_tokens", "must not be negative")
    return found


def _tools(members: Members, reading: Reading) -> tuple[Tool, ...]:
    return tuple(_tool(tool, reading) for tool in members.objects("tools"))


def _tool(tool: Members, reading: Reading) -> Tool:
    kind = tool.text("type", "custom")
    if kind != "custom":
        return ServerTool(
            tool.value,
            Loss(tool.where, READ[_row_of_tool(kind)]),
            tool.text("name"),
            _search(tool) if kind.startswith("web_search_") else None,
            where=tool.where,
        )
    rest = reading.rest(tool, ("type", "name", "description", "input_schema", "strict", "cache_control"), TOOL_OWN)
    if "type" in tool.value:
        rest["private"]["type"] = kind
    schema = tool.object("input_schema")
    return FunctionTool(
        tool.need("name"),
        tool.text("description"),
        None if schema is None else schema.value,
        tool.flag("strict"),
        cache=cache(tool, reading),
        **rest,
    )


def _row_of_tool(kind: str) -> str:
    if kind.startswith("tool_search_tool_"):
        return "tool that searches tools"
    if kind.startswith("web_search_"):
        return "tool that searches the web"
    return "tool with the provider's schema" if kind.startswith(_CLIENT_TOOLS) else "tool run by the provider"


def _search(tool: Members) -> WebSearch:
    location = tool.object("user_location")
    return WebSearch(
        tool.texts("allowed_domains"),
        {} if location is None else {name: location.text(name) for name in location.but("type")},
        tuple(tool.path(name) for name in tool.but("type", "name", "allowed_domains", "user_location")),
    )


def _added(turns: tuple[Turn, ...], reading: Reading) -> list[Tool]:
    """The tools that blocks of the conversation define."""
    added = []
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ServerPart) and (definition := tool_of_addition(part.payload)) is not None:
                tool = _tool(Members.of(definition, f"{part.where}.tool.definition"), reading)
                added.append(evolve(tool, private={**tool.private, "tool_addition": True}))
    return added


def _tool_choice(members: Members, reading: Reading) -> tuple[ToolChoice | None, bool | None]:
    choice = members.object("tool_choice")
    if choice is None:
        return None, None
    choice.need("type")
    mode = reading.word(choice, "type", _CHOICES) or Choosing.AUTO
    name = choice.need("name") if mode is Choosing.ONE else ""
    single = choice.flag("disable_parallel_tool_use")
    if mode is not Choosing.ONE:
        reading.excluded(choice, "name")
    rest = reading.rest(choice, ("type", "name", "disable_parallel_tool_use"), {})
    return ToolChoice(mode, name, kind=ToolKind.FUNCTION, **rest), None if single is None else not single


def _reasoning(members: Members, reading: Reading) -> Reasoning | None:
    config = members.object("output_config")
    effort = "" if config is None else reading.word(config, "effort", _EFFORTS) or ""
    reading.within(config, "effort", "format", "task_budget")
    if config is not None and config.has("task_budget"):
        reading.lose("output_config.task_budget", "output_config.task_budget")
    thinking = members.object("thinking")
    if thinking is None:
        return Reasoning(effort=effort, where="output_config.effort") if effort else None
    kind = thinking.need("type")
    if kind == "between_tools":
        reading.lose("thinking between tools", "thinking.type")
    if (shown := thinking.text("display")) and shown not in _SUMMARIES:
        reading.lose("thinking.display of another word", "thinking.display")
    if kind == "disabled":
        reading.excluded(thinking, "budget_tokens")
    own = {"block_binding": "thinking.block_binding"}
    rest = reading.rest(thinking, ("type", "budget_tokens", "display"), own)
    rest["private"]["thinking"] = thinking.value
    return Reasoning(
        kind != "disabled",
        effort,
        None if kind == "disabled" else thinking.integer("budget_tokens"),
        _SUMMARIES.get(shown, ""),
        **rest,
    )


_SUMMARIES = {"summarized": "auto", "updates": "auto", "omitted": "omitted"}


def _output(members: Members, reading: Reading) -> OutputFormat | None:
    config = members.object("output_config")
    found = (config and config.object("format")) or members.object("output_format")
    if found is None:
        return None
    reading.first((found.where, found.value), ("output_format", members.value.get("output_format")))
    if found.need("type") != "json_schema":
        reading.refuse(found.path("type"), "must be json_schema")
        return None
    schema = found.object("schema")
    if schema is None:
        raise ClientError.about(found.path("schema"), "is required")
    reading.within(found, "type", "schema")
    return OutputFormat(OutputKind.SCHEMA, schema=schema.value, where=found.where)


def _user(members: Members, reading: Reading) -> str | None:
    metadata = members.object("metadata")
    reading.within(metadata, "user_id")
    return (metadata.text("user_id") or None) if metadata is not None else None
