"""Reading a Responses request."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from pipeline.asker import asker_of
from pipeline.effort import WORDS
from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import Reading
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.members import Members
from pipeline.request import (
    Choosing,
    CustomTool,
    FunctionTool,
    Given,
    Grammar,
    OutputFormat,
    OutputKind,
    Reasoning,
    Request,
    Role,
    ServerTool,
    TextPart,
    Tool,
    ToolChoice,
    Turn,
    WebSearch,
)
from stages.dialects.responses.request_tables import DEFAULT_NAMESPACE, KNOWN, NAME, READ, TOOL_OWN, TOP_OWN
from stages.dialects.responses.request_turns import ItemReader

_MODES = {"auto": Choosing.AUTO, "required": Choosing.ANY, "none": Choosing.NONE}
_OF_SCHEMA = ("name", "schema", "strict", "description")
_FORMATS = {"text": OutputKind.TEXT, "json_object": OutputKind.JSON, "json_schema": OutputKind.SCHEMA}
_SUMMARIES = {word: word for word in ("auto", "concise", "detailed")}
_FORMS = {form: form for form in ("text", "grammar")}
_LOGPROBS = "message.output_text.logprobs"
_INCLUDED = ("reasoning.encrypted_content", _LOGPROBS)
"""What of `include` an answer of any dialect holds: the first in an envelope, the other where it can be asked for."""
_OF_FUNCTION = ("name", "description", "parameters", "strict")
_STATE = ("previous_response_id", "conversation", "prompt")
_KEPT = ("user", "safety_identifier", "include", "reasoning", "text", "top_logprobs")


def parse(body: Mapping[str, Any], *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, own: bool = False) -> Request:
    """What a Responses body asks for. `own`: of this same dialect, so what must be there may be missing.

    Raises `ClientError` naming the first member that is not as it must be.
    """
    members = Members({name: value for name, value in body.items() if (name, value) != ("background", False)})
    reading = Reading(READ)
    rest = reading.rest(members, KNOWN, TOP_OWN)
    rest["private"].update({name: body[name] for name in _KEPT if body.get(name) is not None})
    reader = ItemReader(reading, limits)
    turns = reader.turns(members)
    if not (turns or own or any(members.has(name) for name in _STATE)):
        raise ClientError.about("input", "is required, and not empty")
    _include(members, reading)
    tools = _Tools(reading)
    text = _text(members, reading)
    request = Request(
        dialect=NAME,
        model=members.text("model") if own or members.has("prompt") else members.need("model"),
        system=_instructions(members),
        turns=tuple(turns),
        tools=tools.read(members, reader.late_tools),
        namespaces=tools.namespaces,
        tool_choice=_tool_choice(members, reading),
        parallel=members.flag("parallel_tool_calls"),
        max_tokens=members.integer("max_output_tokens"),
        temperature=members.number("temperature"),
        top_p=members.number("top_p"),
        logprobs=_logprobs(members),
        reasoning=_reasoning(members, reading),
        output=None if text is None else _output(text, reading),
        verbosity=None if text is None else text.text("verbosity") or None,
        **asker_of(members),
        stream=members.flag("stream") is True,
        private=rest["private"],
        extras=rest["extras"],
        losses=tuple(reading.losses),
        paths=_paths(members),
    )
    return evolve(request, given=Given(body, request))


_PATHS = {
    "turns": "input",
    "system": "instructions",
    "parallel": "parallel_tool_calls",
    "max_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
    "cache_key": "prompt_cache_key",
    "older_user": "user",
    "reasoning.summary": "reasoning.summary",
}


def _paths(members: Members) -> dict[str, str]:
    """Our members' names in this body."""
    return {
        **_PATHS,
        "logprobs": "top_logprobs" if members.has("top_logprobs") else "include",
        "user": "safety_identifier" if members.has("safety_identifier") else "user",
    }


def _include(members: Members, reading: Reading) -> None:
    """What the answer is to hold besides, and no other dialect's does."""
    for at, word in enumerate(members.texts("include")):
        if word not in _INCLUDED:
            reading.lose("include[] besides", f"include[{at}]")


def _text(members: Members, reading: Reading) -> Members | None:
    """What is asked of the answer's text."""
    text = members.object("text")
    reading.within(text, "format", "verbosity")
    return text


def _instructions(members: Members) -> tuple[Turn, ...]:
    text = members.text("instructions")
    return (Turn(Role.SYSTEM, (TextPart(text, where="instructions"),), where="instructions"),) if text else ()


def _logprobs(members: Members) -> int | None:
    """How many alternatives are asked for; None: no probabilities at all."""
    wanted = members.integer("top_logprobs")
    return wanted if wanted or _LOGPROBS not in members.list("include") else 0


def _reasoning(members: Members, reading: Reading) -> Reasoning | None:
    found = members.object("reasoning")
    if found is None:
        return None
    effort = reading.effort(WORDS, ("reasoning.effort", found.text("effort")))
    newer, older = (reading.word(found, name, _SUMMARIES) for name in ("summary", "generate_summary"))
    summary = reading.first(("reasoning.summary", newer), ("reasoning.generate_summary", older)) or ""
    own = {name: f"reasoning.{name}" for name in ("context", "mode")}
    rest = reading.rest(found, ("effort", "summary", "generate_summary"), own)
    return Reasoning(None, effort, None, summary, **rest)


def _output(text: Members, reading: Reading) -> OutputFormat | None:
    found = text.object("format")
    if found is None:
        return None
    found.need("type")
    kind = reading.word(found, "type", _FORMATS)
    if kind is None:
        return None
    if kind is not OutputKind.SCHEMA:
        reading.excluded(found, *_OF_SCHEMA)
    rest = reading.rest(found, ("type", *_OF_SCHEMA), {})
    schema = found.object("schema")
    return OutputFormat(
        kind,
        found.text("name"),
        None if schema is None else schema.value,
        found.flag("strict"),
        found.text("description"),
        **rest,
    )


class _Tools:
    """Reads the tools of one request, those within namespaces and those that stand among the items included."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.namespaces: dict[str, str] = {}

    def read(self, members: Members, late: list[tuple[Any, str]]) -> tuple[Tool, ...]:
        """The tools of `tools`, and those of `late`, marked as such."""
        found = [tool for given in members.objects("tools") for tool in self._tools(given)]
        for given, where in late:
            for tool in self._tools(Members.of(given, where)):
                found.append(evolve(tool, private={**tool.private, "late": True}))
        return tuple(found)

    def _tools(self, given: Members) -> Iterator[Tool]:
        if given.text("type") != "namespace":
            yield self._tool(given, "")
            return
        name = given.need("name")
        self.reading.within(given, "type", "name", "description", "tools")
        self.namespaces.setdefault(name, given.text("description"))
        if name == DEFAULT_NAMESPACE and given.text("description"):
            self.reading.lose("tools[] default namespace", given.path("description"))
        for tool in given.objects("tools"):
            yield self._tool(tool, name)

    def _tool(self, tool: Members, namespace: str) -> Tool:
        kind = tool.need("type")
        if kind not in ("function", "custom"):
            return self._hosted(tool, kind)
        given = tool.object("function") or tool  # some clients nest it as another dialect does
        known = ("type", "function", "name", "description", "parameters", "strict", "format")
        rest = self.reading.rest(tool, known, TOOL_OWN)
        if given is not tool:
            self.reading.within(given, "name", "description", "parameters", "strict")
            own = (name for name in _OF_FUNCTION if tool.value.get(name) != given.value.get(name))
            self.reading.excluded(tool, *own)
        self.reading.excluded(tool, *(_OF_FUNCTION[2:] if kind == "custom" else ("format",)))
        if namespace == DEFAULT_NAMESPACE:
            rest["private"]["namespace"], namespace = namespace, ""
        name, description = given.need("name"), given.text("description")
        if kind == "custom":
            return CustomTool(name, description, _grammar(tool, self.reading), namespace, **rest)
        schema = given.object("parameters")
        return FunctionTool(
            name, description, None if schema is None else schema.value, given.flag("strict"), namespace, **rest
        )

    def _hosted(self, tool: Members, kind: str) -> ServerTool:
        if kind == "tool_search":
            row = "tools[] tool_search"
        else:
            row = "tools[] web_search" if kind.startswith("web_search") else "tools[] of a hosted kind"
        search = _search(tool) if kind.startswith("web_search") else None
        return ServerTool(tool.value, self.reading.loss(row, tool.where), kind, search, where=tool.where)


def _grammar(tool: Members, reading: Reading) -> Grammar | None:
    form = tool.object("format")
    if form is not None:
        reading.word(form, "type", _FORMS)
        reading.within(form, "type", "syntax", "definition")
    if form is None:
        return None
    if form.text("type") != "grammar":
        reading.excluded(form, "syntax", "definition")
        return None
    return Grammar(form.need("syntax"), form.need("definition"))


def _search(tool: Members) -> WebSearch:
    filters, location = tool.object("filters"), tool.object("user_location")
    besides = [tool.path(name) for name in tool.but("type", "filters", "user_location")]
    if filters is not None:
        besides.extend(filters.path(name) for name in filters.but("allowed_domains"))
    return WebSearch(
        () if filters is None else filters.texts("allowed_domains"),
        {} if location is None else {name: location.text(name) for name in location.but("type")},
        tuple(besides),
    )


def _tool_choice(members: Members, reading: Reading) -> ToolChoice | None:
    found = members.value.get("tool_choice")
    if found is None:
        return None
    if isinstance(found, str):
        mode = reading.word(members, "tool_choice", _MODES)
        return None if mode is None else ToolChoice(mode, where="tool_choice")
    choice = Members.of(found, "tool_choice")
    kind = choice.need("type")
    raw = {"tool_choice": choice.value}
    if kind == "allowed_tools":
        mode = reading.word(choice, "mode", _MODES) or Choosing.AUTO
        reading.within(choice, "type", "mode", "tools")
        return ToolChoice(mode, allowed=tuple(_allowed(choice, reading)), private=raw, where="tool_choice")
    if kind in ("function", "custom"):
        reading.within(choice, "type", "name", "namespace")
        namespace, name = _named(choice)
        tool_kind = ToolKind.CUSTOM if kind == "custom" else ToolKind.FUNCTION
        return ToolChoice(Choosing.ONE, name, namespace, tool_kind, private=raw, where="tool_choice")
    return ToolChoice(Choosing.ONE, payload=choice.value, where="tool_choice")


def _allowed(choice: Members, reading: Reading) -> Iterator[tuple[str, str]]:
    """The tools that alone may be called; those that the provider runs are lost."""
    for tool in choice.objects("tools"):
        if tool.text("type", "function") in ("function", "custom"):
            reading.within(tool, "type", "name", "namespace")
            yield _named(tool)
        else:
            reading.lose("tool_choice.tools[] of a hosted kind", tool.where)


def _named(choice: Members) -> tuple[str, str]:
    namespace = choice.text("namespace")
    return "" if namespace == DEFAULT_NAMESPACE else namespace, choice.need("name")
