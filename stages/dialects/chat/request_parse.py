"""Reading a Chat Completions request."""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pipeline.effort import OFF, WORDS
from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import Reading
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.members import Members
from pipeline.request import (
    INSTRUCTING,
    Choosing,
    CustomTool,
    FunctionTool,
    Given,
    Grammar,
    OutputFormat,
    OutputKind,
    Reasoning,
    Request,
    ServerTool,
    Tool,
    ToolChoice,
)
from stages.dialects.chat.offered import is_older
from stages.dialects.chat.request_tables import KNOWN, NAME, READ, REASONING, TOP_OWN
from stages.dialects.chat.request_turns import TurnReader

_MODES = {"auto": Choosing.AUTO, "required": Choosing.ANY, "any": Choosing.ANY, "none": Choosing.NONE}
_FORMATS = {"text": OutputKind.TEXT, "json_object": OutputKind.JSON, "json_schema": OutputKind.SCHEMA}
_KEPT = ("user", "safety_identifier", "stream_options", *REASONING)


def parse(body: Mapping[str, Any], *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, own: bool = False) -> Request:
    """What a Chat Completions body asks for. `own`: of this same dialect, so what must be there may be missing.

    Raises `ClientError` naming the first member that is not as it must be.
    """
    members = Members(body)
    reading = Reading(READ)
    rest = reading.rest(members, KNOWN, TOP_OWN)
    if members.texts("modalities") == ("text",):
        reading.losses = [loss for loss in reading.losses if loss.where != "modalities"]
    rest["private"].update({name: body[name] for name in _KEPT if body.get(name) is not None})
    turns = TurnReader(reading, limits).turns(members)
    if not (turns or own):
        raise ClientError.about("messages", "is required, and not empty")
    at = next((at for at, turn in enumerate(turns) if turn.role not in INSTRUCTING), len(turns))
    options = members.object("stream_options")
    reading.others(options, "include_usage", "include_obfuscation")
    bound = "max_completion_tokens" if members.has("max_completion_tokens") else "max_tokens"
    request = Request(
        dialect=NAME,
        model=members.text("model") if own else members.need("model"),
        system=tuple(turns[:at]),
        turns=tuple(turns[at:]),
        tools=_tools(members, reading),
        tool_choice=_tool_choice(members, reading),
        parallel=False if is_older(body) else members.flag("parallel_tool_calls"),
        max_tokens=members.integer(bound),
        stop=_stop(members),
        temperature=members.number("temperature"),
        top_p=members.number("top_p"),
        top_k=members.integer("top_k"),
        seed=members.integer("seed"),
        frequency_penalty=members.number("frequency_penalty"),
        presence_penalty=members.number("presence_penalty"),
        logit_bias=None if (bias := members.object("logit_bias")) is None else bias.value,
        choices=members.integer("n"),
        logprobs=_logprobs(members),
        reasoning=_reasoning(members, reading),
        output=_output(members, reading),
        verbosity=members.text("verbosity") or None,
        metadata=None if (metadata := members.object("metadata")) is None else metadata.value,
        user=members.text("safety_identifier") or members.text("user") or None,
        cache_key=members.text("prompt_cache_key") or None,
        service_tier=members.text("service_tier") or None,
        store=members.flag("store"),
        stream=members.flag("stream") is True,
        include_usage=options is not None and options.flag("include_usage") is True,
        private=rest["private"],
        extras=rest["extras"],
        losses=tuple(reading.losses),
        paths={
            **_PATHS,
            "tools": "functions" if is_older(body) else "tools",
            "max_tokens": bound,
            "user": "safety_identifier" if members.has("safety_identifier") else "user",
        },
    )
    return evolve(request, given=Given(body, request))


_PATHS = {
    "turns": "messages",
    "choices": "n",
    "parallel": "parallel_tool_calls",
    "cache_key": "prompt_cache_key",
    "include_usage": "stream_options.include_usage",
}


def _stop(members: Members) -> tuple[str, ...]:
    found = members.value.get("stop")
    if isinstance(found, str):
        return (found,)
    return members.texts("stop")


def _logprobs(members: Members) -> int | None:
    """How many alternatives are asked for; None: no probabilities at all."""
    if members.flag("logprobs") is not True:
        return None
    return members.integer("top_logprobs") or 0


def _reasoning(members: Members, reading: Reading) -> Reasoning | None:
    """The effort, by this dialect's own member or by those that vendors have."""
    if effort := members.text("reasoning_effort"):
        return Reasoning(effort=effort if effort in WORDS else "", where="reasoning_effort")
    vendor = members.object("reasoning")
    if vendor is not None:
        reading.others(vendor, "effort", "max_tokens", "enabled")
        effort = vendor.text("effort")
        off = vendor.flag("enabled") is False or effort == OFF
        budget = vendor.integer("max_tokens")
        return Reasoning(not off, effort if effort in WORDS else "", budget, where="reasoning")
    thinking = members.object("thinking")
    if thinking is not None:
        reading.others(thinking, "type")
        return Reasoning(thinking.text("type") != "disabled", where="thinking")
    enabled = members.flag("enable_thinking")
    return None if enabled is None else Reasoning(enabled, where="enable_thinking")


def _output(members: Members, reading: Reading) -> OutputFormat | None:
    found = members.object("response_format")
    if found is None:
        return None
    found.need("type")
    kind = reading.word(found, "type", _FORMATS)
    if kind is None:
        return None
    if kind is not OutputKind.SCHEMA:
        return OutputFormat(kind, **reading.rest(found, ("type",), {}))
    schema = found.object("json_schema")
    if schema is None:
        raise ClientError.about(found.path("json_schema"), "is required")
    inner = schema.object("schema")
    return OutputFormat(
        kind,
        schema.text("name"),
        None if inner is None else inner.value,
        schema.flag("strict"),
        schema.text("description"),
        **reading.rest(schema, ("name", "schema", "strict", "description"), {}),
    )


def _tools(members: Members, reading: Reading) -> tuple[Tool, ...]:
    older = [_function(function, function, reading) for function in members.objects("functions")]
    return (*[_tool(tool, reading) for tool in members.objects("tools")], *older)


def _tool(tool: Members, reading: Reading) -> Tool:
    kind = tool.text("type", "function" if tool.has("function") else "")
    if kind == "function":
        function = tool.object("function")
        if function is None:
            raise ClientError.about(tool.path("function"), "is required")
        return _function(tool, function, reading)
    if kind == "custom":
        custom = tool.object("custom")
        if custom is None:
            raise ClientError.about(tool.path("custom"), "is required")
        rest = reading.rest(tool, ("type", "custom"), {})
        reading.others(custom, "name", "description", "format")
        return CustomTool(custom.need("name"), custom.text("description"), _grammar(custom), **rest)
    return ServerTool(tool.value, reading.loss("tools[] of another type", tool.where), where=tool.where)


def _function(tool: Members, function: Members, reading: Reading) -> FunctionTool:
    known = ("name", "description", "parameters", "strict")
    rest = reading.rest(tool, known if tool is function else ("type", "function"), {})
    if tool is not function and (inner := function.but(*known)):
        rest["private"]["function"] = inner
        reading.others(function, *known)
    schema = function.object("parameters")
    return FunctionTool(
        function.need("name"),
        function.text("description"),
        None if schema is None else schema.value,
        function.flag("strict"),
        **rest,
    )


def _grammar(custom: Members) -> Grammar | None:
    form = custom.object("format")
    grammar = None if form is None else form.object("grammar")
    return None if grammar is None else Grammar(grammar.need("syntax"), grammar.need("definition"))


def _tool_choice(members: Members, reading: Reading) -> ToolChoice | None:
    name = "tool_choice" if members.has("tool_choice") else "function_call"
    found = members.value.get(name)
    if found is None:
        return None
    if isinstance(found, str):
        mode = reading.word(members, name, _MODES)
        return None if mode is None else ToolChoice(mode, where=name)
    choice = Members.of(found, name)
    for inner in (choice.object("function"), choice.object("custom")):
        reading.others(inner, "name")
    allowed = choice.object("allowed_tools")
    if allowed is not None:
        mode = reading.word(allowed, "mode", _MODES) or Choosing.AUTO
        names = tuple(("", _chosen(tool)[0]) for tool in allowed.objects("tools"))
        return ToolChoice(mode, allowed=names, where=name)
    if name == "function_call" or choice.has("function") or choice.has("custom"):
        chosen, kind = _chosen(choice)
        return ToolChoice(Choosing.ONE, chosen, kind=kind, where=name)
    return ToolChoice(Choosing.ONE, payload=choice.value, where=name)


def _chosen(choice: Members) -> tuple[str, ToolKind]:
    custom = choice.object("custom")
    if custom is not None:
        return custom.need("name"), ToolKind.CUSTOM
    return (choice.object("function") or choice).need("name"), ToolKind.FUNCTION
