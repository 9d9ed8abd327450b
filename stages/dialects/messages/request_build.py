"""Building a Messages request."""

from collections.abc import Mapping
from typing import Any

from pipeline.events import ToolKind
from pipeline.given import is_as_given, replaced, route_changes
from pipeline.jsontext import dumps
from pipeline.ladder import Ladder
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.request import (
    DEFAULT_OPTIONS,
    SAMPLING,
    Choosing,
    FunctionTool,
    OutputFormat,
    OutputKind,
    Request,
    RequestOptions,
    ServerTool,
    Tool,
    WebSearch,
)
from pipeline.toolnames import (
    MANY,
    NOTHING,
    WRAPPED_SCHEMA,
    BuiltRequest,
    OfferedTool,
    ToolNames,
    UpstreamIds,
    description_of,
    wrapped_description,
)
from pipeline.turns import SOMETHING, bind, distinct
from stages.dialects.messages.request_blocks import JSON, BlockWriter, content_of
from stages.dialects.messages.request_schema import Fitting, is_recursive
from stages.dialects.messages.request_tables import (
    BARRED,
    ID_CHARS,
    NAME,
    NAME_CHARS,
    READ,
    STAGE,
    WRITE,
)
from stages.dialects.messages.request_thinking import ThinkingBuilder

_ABSENT = ("seed", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "cache_key", "verbosity")
_MODES = {Choosing.AUTO: "auto", Choosing.ANY: "any", Choosing.NONE: "none", Choosing.ONE: "tool"}
_TIERS = {"default": "standard_only", **dict.fromkeys(("auto", "scale", "priority", "fast", "ultrafast"), "auto")}
_SEARCH = "web_search"
_JSON_ONLY = "Answer with one JSON object and nothing else."


def build(
    request: Request, *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, options: RequestOptions = DEFAULT_OPTIONS
) -> BuiltRequest:
    """The Messages body for a request, and the map that its answer is read with.

    Raises `ClientError` naming the client's member that cannot be honoured and must not be dropped.
    """
    return _Builder(request, Ladder(STAGE, WRITE, ledger, options.strict), options).build()


class _Builder(ThinkingBuilder):
    """Builds one body."""

    def __init__(self, request: Request, ladder: Ladder, options: RequestOptions) -> None:
        super().__init__(request, ladder, options, NAME)
        self.names = ToolNames(MANY, NOTHING) if self.native else ToolNames(NAME_CHARS, BARRED)
        self.ids = UpstreamIds(MANY, NOTHING) if self.native else UpstreamIds(ID_CHARS, BARRED)
        self.anew: set[str] = set()
        self.writer = BlockWriter(ladder, self.names, self.ids, options, self.native)

    def build(self) -> BuiltRequest:
        """The body and its map."""
        body = self._begun()
        tools = self._tools()
        self._conversation(body)
        self._bounds(body)
        self._thinking(body)
        self._form(body)
        self._sampling(body)
        if tools:
            body["tools"] = tools
            self._choice(body)
        elif not self.native and self._demands_a_call:
            self._lose("tool_choice", "tool_choice hosted")
        self._account(body)
        changed = route_changes(self.request, self.options, bounds=("max_tokens",), sampling=SAMPLING, reasoning=())
        return self._built(body, READ, changed | self.anew, decided=("thinking", "output_config"))

    def _conversation(self, body: JSON) -> None:
        request = self.request
        if self.native and request.given is not None and is_as_given(request):
            body["messages"] = given = list(request.given.body["messages"]) if request.turns else []
            anew = {
                turn.where: self.writer.again(turn, message)
                for turn, message in zip(request.turns, given, strict=True)
                if self.writer.is_foreign(turn)
            }
            if anew:
                body["messages"] = replaced(given, anew)
                self.anew.add("messages")
            return
        system, turns = (request.system, request.turns) if self.native else request.instructions()
        blocks = self.writer.system(system)
        if instruction := self._instruction():
            blocks.append({"type": "text", "text": instruction})
        if blocks:
            body["system"] = content_of(blocks)
        body["messages"] = self.writer.messages(turns if self.native else distinct(bind(turns, self.ladder)))
        if not body["messages"]:
            self._lose("turns", "turns.none")
            body["messages"] = [{"role": "user", "content": SOMETHING}]

    def _instruction(self) -> str:
        """What is asked of the answer's form that cannot be demanded."""
        output = self.request.output
        if output is not None and output.kind is OutputKind.JSON:
            self._lose("output", "output json")
            return _JSON_ONLY
        if output is not None and self._is_beyond(output):
            self._lose("output", "output recursive")
            return f"{_JSON_ONLY} It must keep to this JSON schema:\n{dumps(output.schema).decode()}"
        return ""

    def _is_beyond(self, output: OutputFormat) -> bool:
        demanded = not self.native and output.kind is OutputKind.SCHEMA
        return demanded and output.schema is not None and is_recursive(output.schema)

    def _fit(self, schema: Mapping[str, Any], where: str) -> JSON:
        fitting = Fitting()
        fitted: JSON = fitting.fit(schema)
        for row, keyword in sorted(fitting.lost):
            self.ladder.lose(row, f"{where}.{keyword}")
        return fitted

    def _tools(self) -> list[JSON]:
        choice = self.request.tool_choice
        allowed = None if choice is None else choice.allowed
        described: set[str] = set()
        names: set[str] = set()
        out = []
        for tool in self.request.tools:
            if not isinstance(tool, ServerTool) and allowed is not None and (tool.namespace, tool.name) not in allowed:
                self.ladder.lose("tool not allowed", tool.where)
                continue
            if self.native and "tool_addition" in tool.private:
                continue  # it stands in the conversation
            if not self.native and self._is_twice(tool, names):
                self.ladder.lose("tool of one name", tool.where)
            elif (written := self._tool(tool, described)) is not None:
                out.append(written)
        return out

    def _is_twice(self, tool: Tool, names: set[str]) -> bool:
        """Whether one of the `names` that are given is the tool's; else it is one of them from now on."""
        if not isinstance(tool, ServerTool):
            name = self.names.name(tool.namespace, tool.name)
        elif tool.search is not None and self.options.web_search:
            name = _SEARCH
        else:
            return False
        known = name in names
        names.add(name)
        return known

    def _tool(self, tool: Tool, described: set[str]) -> JSON | None:
        if isinstance(tool, ServerTool):
            if self.native:
                return dict(tool.payload)
            if tool.search is not None and self.options.web_search:
                for where in tool.search.besides:
                    self.ladder.lose("web search besides", where)
                return _search(tool.search)
            self.ladder.follow(tool.loss.row, tool.loss.where)
            return None
        description = description_of(tool, self.request.namespaces, described)
        if isinstance(tool, FunctionTool):
            return self._function(tool, description)
        name = self.names.offer(OfferedTool(tool.name, tool.namespace, ToolKind.CUSTOM, wrapped=True))
        self.ladder.lose("tool grammar", tool.where)
        written: JSON = {"name": name, "description": wrapped_description(tool, description)}
        return self.writer.own(tool, {**written, "input_schema": WRAPPED_SCHEMA})

    def _function(self, tool: FunctionTool, description: str) -> JSON:
        written: JSON = {"name": self.names.offer(OfferedTool(tool.name, tool.namespace))}
        if description:
            written["description"] = description
        schema = tool.schema
        if not self.native and (schema is None or schema.get("type") != "object"):
            schema = {"type": "object", "properties": {}} if schema is None else {**schema, "type": "object"}
        strict = tool.strict
        if strict and not self.native:
            if is_recursive(schema or {}):
                self.ladder.lose("tool strict", tool.where)
                strict = None
            else:
                schema = self._fit(schema or {}, tool.where)
        if schema is not None:
            written["input_schema"] = schema
        if strict or (self.native and strict is not None):
            written["strict"] = strict
        return self.writer.own(tool, written)

    def _choice(self, body: JSON) -> None:
        choice, parallel = self.request.tool_choice, self.request.parallel
        if choice is None:
            if parallel is False:
                body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
            return
        if choice.allowed is not None:
            self._not_there(choice.allowed)
        written: JSON = {**(choice.extras if self.native else {}), "type": _MODES[choice.mode]}
        if choice.mode is Choosing.ONE:
            written["name"] = self.names.name(choice.namespace, choice.name)
            if choice.payload is not None or (written["name"] not in self.names.tools() and not self.native):
                self._lose("tool_choice", "tool_choice hosted")
                written = {"type": "auto"}
        if written["type"] in ("any", "tool") and self._thinks(body) and (self.imposed or not self.native):
            self._lose("tool_choice", "tool_choice with thinking")
            self.anew.add("tool_choice")
            written = {"type": "auto"}
        if parallel is not None and written["type"] != "none" and (not parallel or self.native):
            written["disable_parallel_tool_use"] = not parallel
        body["tool_choice"] = written

    def _bounds(self, body: JSON) -> None:
        request = self.request
        bound = self._bound("max_tokens")
        body["max_tokens"] = self._most(self.options.max_tokens) if bound is None else bound
        stop = [text for text in request.stop if text.strip() or self.native]
        if len(stop) != len(request.stop):
            self._lose("stop", "stop of blanks")
        if stop or (self.native and request.stop):
            body["stop_sequences"] = stop
        if request.choices is not None and request.choices != 1:
            self._lose("choices")
        for member in _ABSENT:
            if getattr(request, member) is not None:
                self._lose(member)
        if request.logprobs:
            self.ladder.lose("logprobs", request.path("top_logprobs"))

    def _form(self, body: JSON) -> None:
        request, output = self.request, self.request.output
        if self.native or output is None or output.kind is not OutputKind.SCHEMA or self._is_beyond(output):
            return
        lost = {"name": bool(output.name), "description": bool(output.description), "strict": output.strict is False}
        for member in (name for name, is_lost in lost.items() if is_lost):
            self.ladder.lose(f"output.{member}", f"{request.path('output')}.{member}")
        self.ladder.carry(output.where)
        schema = self._fit(output.schema or {"type": "object"}, f"{output.where}.schema")
        form = {**output.extras, "type": "json_schema", "schema": schema}
        body["output_config"] = {**_config(body), "format": form}

    def _sampling(self, body: JSON) -> None:
        request = self.request
        for member in SAMPLING:
            value = getattr(request, member)
            if value is None:
                continue
            if not self.options.sampling:
                self._lose(member, "sampling")
                continue
            if (self.imposed or not self.native) and self._thinks(body) and value != 1:
                self._lose(member, "sampling with thinking")
                self.anew.add(member)
                continue
            if member == "temperature" and value > 1 and not self.native:
                self._lose(member, "temperature above one")
                value = 1
            body[member] = value

    def _account(self, body: JSON) -> None:
        request = self.request
        if request.user is not None and not self.native:
            body["metadata"] = {"user_id": request.user}
        if request.older_user is not None and not self.native:
            self._lose("older_user")
        if request.metadata:
            self._lose("metadata")
        if request.cache is not None and (mark := self.writer.mark(request.cache)) is not None:
            body["cache_control"] = mark
        if request.store:
            self._lose("store")
        if request.service_tier in _TIERS:
            body["service_tier"] = _TIERS[request.service_tier]
        elif request.service_tier is not None:
            self._lose("service_tier", "service_tier of another kind")


def _config(body: JSON) -> JSON:
    config = body.get("output_config")
    return config if isinstance(config, dict) else {}


def _search(search: WebSearch) -> JSON:
    written: JSON = {"type": "web_search_20250305", "name": _SEARCH}
    if search.allowed_domains:
        written["allowed_domains"] = list(search.allowed_domains)
    if search.location:
        written["user_location"] = {"type": "approximate", **search.location}
    return written
