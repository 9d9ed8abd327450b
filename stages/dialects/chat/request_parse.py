"""Reading a Chat Completions request."""

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from attrs import evolve

from pipeline.asker import asker_of
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
from stages.dialects.chat.request_turns import CACHE, TurnReader, cache, kept

_MODES = {"auto": Choosing.AUTO, "required": Choosing.ANY, "any": Choosing.ANY, "none": Choosing.NONE}
_FORMATS = {"text": OutputKind.TEXT, "json_object": OutputKind.JSON, "json_schema": OutputKind.SCHEMA}
_FORMS = {form: form for form in ("text", "grammar")}
_BOUNDS = ("max_completion_tokens", "max_tokens")
_SUMMARIES = {word: word for word in ("auto", "concise", "detailed")}
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
    include_usage = _include_usage(members, reading)
    request = Request(
        dialect=NAME,
        model=members.text("model") if own else members.need("model"),
        system=tuple(turns[:at]),
        turns=tuple(turns[at:]),
        tools=_tools(members, reading),
        tool_choice=_tool_choice(members, reading),
        parallel=_parallel(members, reading),
        **_sampling(members, reading),
        reasoning=_reasoning(members, reading),
        output=_output(members, reading),
        verbosity=members.text("verbosity") or None,
        **asker_of(members),
        stream=members.flag("stream") is True,
        include_usage=include_usage,
        private=rest["private"],
        extras=rest["extras"],
        losses=tuple(reading.losses),
        paths=_paths(members),
    )
    return evolve(request, given=Given(body, request))


def _budget_path(body: Mapping[str, Any]) -> str:
    """Where the bound on the tokens to think stands."""
    return _first_of(body, "reasoning.max_tokens", "thinking.budget_tokens", "thinking_budget")


_PATHS = {
    "turns": "messages",
    "choices": "n",
    "parallel": "parallel_tool_calls",
    "cache_key": "prompt_cache_key",
    "include_usage": "stream_options.include_usage",
    "older_user": "user",
}


def _paths(members: Members) -> dict[str, str]:
    """Our members' names in this body."""
    body = members.value
    return {
        **_PATHS,
        "tools": "functions" if is_older(body) else "tools",
        "max_tokens": "max_completion_tokens" if members.has("max_completion_tokens") else "max_tokens",
        "reasoning.effort": _first_of(body, "reasoning_effort", "reasoning.effort"),
        "reasoning.budget": _budget_path(body),
        "user": "safety_identifier" if members.has("safety_identifier") else "user",
    }


def _include_usage(members: Members, reading: Reading) -> bool:
    """Whether a stream is to end with its counts."""
    options = members.object("stream_options")
    reading.within(options, "include_usage", "include_obfuscation")
    if options is not None and options.flag("include_obfuscation"):
        reading.lose("stream_options.include_obfuscation", "stream_options.include_obfuscation")
    return options is not None and options.flag("include_usage") is True


class _Sampling(TypedDict):
    """How the answer's tokens are drawn, and how many."""

    max_tokens: int | None
    stop: tuple[str, ...]
    temperature: float | None
    top_p: float | None
    top_k: int | None
    seed: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[str, Any] | None
    choices: int | None
    logprobs: int | None


def _sampling(members: Members, reading: Reading) -> _Sampling:
    return {
        "max_tokens": reading.first(*((name, members.integer(name)) for name in _BOUNDS)),
        "stop": _stop(members),
        "temperature": members.number("temperature"),
        "top_p": members.number("top_p"),
        "top_k": members.integer("top_k"),
        "seed": members.integer("seed"),
        "frequency_penalty": members.number("frequency_penalty"),
        "presence_penalty": members.number("presence_penalty"),
        "logit_bias": None if (bias := members.object("logit_bias")) is None else bias.value,
        "choices": members.integer("n"),
        "logprobs": _logprobs(members, reading),
    }


def _stop(members: Members) -> tuple[str, ...]:
    found = members.value.get("stop")
    if isinstance(found, str):
        return (found,)
    return members.texts("stop")


def _first_of(body: Mapping[str, Any], *paths: str) -> str:
    """The first of some paths at which there is something, else the last."""
    for path in paths:
        name, _, inner = path.partition(".")
        found = body.get(name)
        if (found.get(inner) if inner and isinstance(found, Mapping) else found) is not None:
            return path
    return paths[-1]


def _parallel(members: Members, reading: Reading) -> bool | None:
    """Whether several calls may be made at once; a client that knows the older words alone reads one."""
    wanted = members.flag("parallel_tool_calls")
    if not is_older(members.value):
        return wanted
    if wanted:
        reading.excluded(members, "parallel_tool_calls")
    return False


def _logprobs(members: Members, reading: Reading) -> int | None:
    """How many alternatives are asked for; None: no probabilities at all."""
    if members.flag("logprobs") is not True:
        if members.integer("top_logprobs"):
            reading.lose("top_logprobs without logprobs", "top_logprobs")
        return None
    return members.integer("top_logprobs") or 0


def _reasoning(members: Members, reading: Reading) -> Reasoning | None:
    """How much to think, by this dialect's own member and by those that vendors have."""
    asked = next((name for name in REASONING if members.has(name)), None)
    if asked is None:
        return None
    vendor, thinking = members.object("reasoning") or Members({}), members.object("thinking") or Members({})
    reading.within(vendor, "effort", "enabled", "max_tokens", "summary", "exclude")
    reading.within(thinking, "type", "budget_tokens")
    efforts = ("reasoning_effort", members.text("reasoning_effort")), ("reasoning.effort", vendor.text("effort"))
    effort = reading.effort(WORDS, *efforts)
    budget = reading.first(
        ("reasoning.max_tokens", vendor.integer("max_tokens")),
        ("thinking.budget_tokens", thinking.integer("budget_tokens")),
        ("thinking_budget", members.integer("thinking_budget")),
    )
    enabled = reading.first(
        ("reasoning.enabled", vendor.flag("enabled")),
        ("thinking.type", thinking.text("type") != "disabled" if thinking.value else None),
        ("enable_thinking", members.flag("enable_thinking")),
    )
    if vendor.value and enabled is not False:
        enabled = vendor.text("effort") != OFF
    if enabled is False:
        reading.first(("", OFF), *efforts)
        reading.first(("", OFF), (_budget_path(members.value), budget))
        budget = None
    summary = reading.word(vendor, "summary", _SUMMARIES) or ""
    if vendor.flag("exclude"):
        summary = reading.first(("reasoning.exclude", "omitted"), ("reasoning.summary", summary))
    return Reasoning(enabled, effort, budget, summary, where=asked)


def _output(members: Members, reading: Reading) -> OutputFormat | None:
    found = members.object("response_format")
    if found is None:
        return None
    found.need("type")
    kind = reading.word(found, "type", _FORMATS)
    if kind is None:
        return None
    if kind is OutputKind.SCHEMA:
        reading.within(found, "type", "json_schema")
    else:
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
        rest = reading.rest(tool, ("type", "custom", *CACHE), {})
        rest["private"].update(kept(tool))
        reading.within(custom, "name", "description", "format")
        grammar, description = _grammar(custom, reading), custom.text("description")
        return CustomTool(custom.need("name"), description, grammar, cache=cache(tool, reading), **rest)
    return ServerTool(tool.value, reading.loss("tools[] of another type", tool.where), where=tool.where)


def _function(tool: Members, function: Members, reading: Reading) -> FunctionTool:
    known = ("name", "description", "parameters", "strict")
    rest = reading.rest(tool, (*(known if tool is function else ("type", "function")), *CACHE), {})
    rest["private"].update(kept(tool))
    if tool is not function and (inner := function.but(*known)):
        rest["private"]["function"] = inner
        reading.within(function, *known)
    schema = function.object("parameters")
    return FunctionTool(
        function.need("name"),
        function.text("description"),
        None if schema is None else schema.value,
        function.flag("strict"),
        cache=cache(tool, reading),
        **rest,
    )


def _grammar(custom: Members, reading: Reading) -> Grammar | None:
    form = custom.object("format")
    if form is None:
        return None
    grammar = form.object("grammar")
    reading.word(form, "type", _FORMS)
    reading.within(form, "type", "grammar")
    reading.within(grammar, "syntax", "definition")
    return None if grammar is None else Grammar(grammar.need("syntax"), grammar.need("definition"))


def _tool_choice(members: Members, reading: Reading) -> ToolChoice | None:
    name = "tool_choice" if members.has("tool_choice") else "function_call"
    found = members.value.get(name)
    if found is None:
        return None
    if name == "tool_choice" and members.has("function_call"):
        reading.first((name, _meant(found)), ("function_call", _meant(members.value["function_call"])))
    if isinstance(found, str):
        mode = reading.word(members, name, _MODES)
        return None if mode is None else ToolChoice(mode, where=name)
    choice = Members.of(found, name)
    allowed = choice.object("allowed_tools")
    if allowed is not None:
        mode = reading.word(allowed, "mode", _MODES) or Choosing.AUTO
        reading.within(choice, "type", "allowed_tools")
        reading.within(allowed, "mode", "tools")
        return ToolChoice(mode, allowed=tuple(_allowed(allowed, reading)), where=name)
    if name == "function_call" or choice.has("function") or choice.has("custom"):
        chosen, kind = _chosen(choice, reading)
        return ToolChoice(Choosing.ONE, chosen, kind=kind, where=name)
    return ToolChoice(Choosing.ONE, payload=choice.value, where=name)


def _meant(choice: Any) -> Any:
    """What a choice says in the older words, so that it is known which of two say the same."""
    function = choice.get("function", choice) if isinstance(choice, Mapping) else choice
    return {"name": function.get("name")} if isinstance(function, Mapping) else function


def _allowed(allowed: Members, reading: Reading) -> Iterator[tuple[str, str]]:
    """The tools that alone may be called; those that the provider runs are lost."""
    for tool in allowed.objects("tools"):
        if tool.text("type", "function") in ("function", "custom"):
            yield "", _chosen(tool, reading)[0]
        else:
            reading.lose("allowed_tools.tools[] of another type", tool.where)


def _chosen(choice: Members, reading: Reading) -> tuple[str, ToolKind]:
    """The name and the kind of a tool."""
    custom, function = choice.object("custom"), choice.object("function")
    named = custom or function or choice
    if custom is not None:
        reading.excluded(choice, "function")
    reading.within(choice, "type", "custom", "function", *(("name",) if named is choice else ()))
    if named is not choice:
        reading.within(named, "name")
    return named.need("name"), ToolKind.FUNCTION if custom is None else ToolKind.CUSTOM
