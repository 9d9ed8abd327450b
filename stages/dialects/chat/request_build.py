"""Building a Chat Completions request."""

from collections.abc import Mapping
from typing import Any

from pipeline.builder import DECIDED
from pipeline.effort import OFF, effort_under, is_off
from pipeline.events import ToolKind
from pipeline.given import is_as_given, replaced, route_changes
from pipeline.ladder import TWICE, Ladder
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.request import (
    DEFAULT_OPTIONS,
    SAMPLING,
    Choosing,
    CustomTool,
    FunctionTool,
    OutputFormat,
    OutputKind,
    Request,
    RequestOptions,
    ServerTool,
    Tool,
    ToolChoice,
)
from pipeline.schemas import StrictBuilder
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
from stages.dialects.chat.request_messages import JSON, MessageWriter
from stages.dialects.chat.request_tables import (
    ANY_ID,
    BARRED,
    DECIDED_WITHIN,
    ID_CHARS,
    NAME,
    NAME_CHARS,
    READ,
    REASONING,
    STAGE,
    STOPS,
    STRICT_ALIKE,
    USER_CHARS,
    WRITE,
)

_PLAIN = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "logit_bias")
BOUNDS = OLDER, NEWER = "max_tokens", "max_completion_tokens"
"""The members that bound the answer's tokens."""


def build(
    request: Request, *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, options: RequestOptions = DEFAULT_OPTIONS
) -> BuiltRequest:
    """The Chat body for a request, and the map that its answer is read with.

    Raises `ClientError` naming the client's member that cannot be honoured and must not be dropped.
    """
    return _Builder(request, Ladder(STAGE, WRITE, ledger, options.strict), options).build()


class _Builder(StrictBuilder):
    """Builds one body."""

    alike = STRICT_ALIKE

    def __init__(self, request: Request, ladder: Ladder, options: RequestOptions) -> None:
        super().__init__(request, ladder, options, NAME)
        self.names = ToolNames(MANY, NOTHING) if self.native else ToolNames(NAME_CHARS, BARRED)
        self.ids = UpstreamIds(MANY, NOTHING) if self.native else UpstreamIds(ID_CHARS, ANY_ID)
        self.anew: set[str] = set()

    def build(self) -> BuiltRequest:
        """The body and its map."""
        body = self._begun()
        request = self.request
        tools = self._tools()
        writer = MessageWriter(self.ladder, self.names, self.ids, self.options, self.native)
        turns = request.turns if self.native else distinct(bind(request.turns, self.ladder), afresh=True)
        if self.native and request.given is not None and is_as_given(request):
            self._resealed(body, request.given.body, writer)
        else:
            body["messages"] = messages = writer.messages(request.system, turns)
            if not messages:
                self._lose("turns", "turns.none")
                messages.append({"role": "user", "content": SOMETHING})
            if not self.native and messages[-1]["role"] == "assistant":
                self.ladder.lose("turns.prefill", turns[-1].where)
        if tools and self.native and request.path("tools") == "functions":
            body["functions"] = [tool["function"] for tool in tools]
        elif tools:
            body["tools"] = tools
        if tools or self.native:
            self._choice(body)
        elif self._demands_a_call:
            self._lose("tool_choice", "tool_choice hosted")
        self._bounds(body)
        self._form(body)
        self._account(body)
        if request.stream:
            given = body.get("stream_options")
            body["stream_options"] = {**(given if isinstance(given, dict) else {}), "include_usage": True}
        return self._built(body, READ, self._changed(), decided=REASONING)

    def _resealed(self, body: JSON, own: Mapping[str, Any], writer: MessageWriter) -> None:
        """The client's own messages, if there are envelopes of ours among them, which are written anew."""
        turns = [turn for turn in self.request.turns if writer.is_sealed(turn)]
        if turns:
            body["messages"] = replaced(own["messages"], {turn.where: writer.messages((), [turn]) for turn in turns})
            self.anew.add("messages")

    def _changed(self) -> set[str]:
        """The members that are not as they came, also toward this same dialect."""
        changed = {"stream_options", *self.anew} if self.request.stream else set(self.anew)
        changed -= self._unread
        if self.options.old_max_tokens:
            changed.update(BOUNDS)
        sampling = ("temperature", "top_p")
        return changed | route_changes(
            self.request, self.options, bounds=BOUNDS, sampling=sampling, reasoning=REASONING
        )

    def _tools(self) -> list[JSON]:
        out = []
        seen: set[str] = set()
        for tool in self.request.tools:
            written = self._tool(tool, seen)
            if written is not None:
                out.append(written)
        return out

    def _tool(self, tool: Tool, described: set[str]) -> JSON | None:
        if isinstance(tool, ServerTool):
            if self.native:
                return dict(tool.payload)
            self.ladder.follow(tool.loss.row, tool.loss.where)
            return None
        if tool.cache is not None and not self.native:
            self.ladder.lose("part cache", tool.cache.where)
        kept = {**(tool.private if self.native else {}), **tool.extras}
        if tool.extras:
            self.ladder.carry(tool.where)
        description = description_of(tool, self.request.namespaces, described)
        if isinstance(tool, FunctionTool):
            name = self.names.offer(OfferedTool(tool.name, tool.namespace))
            inner = kept.pop("function", {}) if self.native else {}
            return {**kept, "type": "function", "function": {**inner, **self._function(tool, name, description)}}
        return {**kept, **self._custom(tool, description)}

    def _custom(self, tool: CustomTool, description: str) -> JSON:
        if self.native or self.options.custom_tools:
            name = self.names.offer(OfferedTool(tool.name, tool.namespace, ToolKind.CUSTOM))
            custom: JSON = {"name": name}
            if description:
                custom["description"] = description
            if tool.grammar is not None:
                grammar = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
                custom["format"] = {"type": "grammar", "grammar": grammar}
            return {"type": "custom", "custom": custom}
        name = self.names.offer(OfferedTool(tool.name, tool.namespace, ToolKind.CUSTOM, wrapped=True))
        return {"type": "function", "function": self._wrapped(tool, name, description)}

    def _wrapped(self, tool: CustomTool, name: str, description: str) -> JSON:
        """A freeform tool as a function of one string, its grammar in the description."""
        self.ladder.lose("tool grammar", tool.where)
        return {"name": name, "description": wrapped_description(tool, description), "parameters": WRAPPED_SCHEMA}

    def _choice(self, body: JSON) -> None:
        choice = self.request.tool_choice
        asked = self.native or choice is None or choice.mode is not Choosing.NONE
        if self.request.parallel is not None and asked:
            body["parallel_tool_calls"] = self.request.parallel
        if choice is not None and (written := self._choice_of(choice)) is not None:
            body["tool_choice"] = written

    def _choice_of(self, choice: ToolChoice) -> Any:
        mode = {Choosing.AUTO: "auto", Choosing.ANY: "required", Choosing.NONE: "none"}.get(choice.mode)
        offered = self.names.tools()
        if choice.allowed is not None:
            names = [self.names.name(*key) for key in choice.allowed]
            tools = [_named(name, offered[name]) for name in names if name in offered]
            self._not_there(choice.allowed)
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}} if tools else "none"
        if mode is not None:
            return mode
        name = self.names.name(choice.namespace, choice.name)
        if choice.payload is None and name in offered:
            return _named(name, offered[name])
        if self.native:
            return choice.payload or _named(name, OfferedTool(name, kind=choice.kind))
        self._lose("tool_choice", "tool_choice hosted")
        return None

    def _bounds(self, body: JSON) -> None:
        request = self.request
        bound = self._bound(*BOUNDS)
        if bound is not None:
            if bound == 0 and not self.native:
                self._lose("max_tokens", "max_tokens of zero")
            own = self.native and request.path("max_tokens") == OLDER and NEWER not in self._unread
            body[OLDER if self.options.old_max_tokens or own else NEWER] = bound
        if self.native:
            self._own_bounds(body, bound)
        if request.stop:
            most = MANY if self.native else STOPS
            if len(request.stop) > most:
                self._lose("stop", "stop beyond four")
            body["stop"] = list(request.stop[:most])
        for member in _PLAIN:
            value = getattr(request, member)
            if value is not None and member in SAMPLING and not self.options.sampling:
                self._lose(member, "sampling")
            elif value is not None:
                body[WRITE[member].to] = value
        if request.top_k is not None and self.native:
            body["top_k"] = request.top_k
        elif request.top_k is not None:
            self._lose("top_k")
        if request.choices is not None and request.choices != 1 and not self.native:
            self._lose("choices")
        elif request.choices is not None and self.native:
            body["n"] = request.choices

    def _own_bounds(self, body: JSON, bound: int | None) -> None:
        """The client's other name for the bound: within the most too, or, if the upstream does not know it, in place of
        the one it knows."""
        given, most = self.request.given, self.options.most_tokens
        if given is None or self.request.max_tokens != given.request.max_tokens:
            return
        if bound is None and NEWER in self._unread and self.options.old_max_tokens:
            body[OLDER] = given.body.get(OLDER, given.body[NEWER])
            if OLDER not in self._unread:
                self.ladder.ledger.record(STAGE, NEWER, "rewritten", DECIDED)
        if self._unread.isdisjoint(BOUNDS) and all(given.body.get(name) is not None for name in BOUNDS):
            other = int(given.body[OLDER])
            if self.options.old_max_tokens and other != self.request.max_tokens:
                self.ladder.follow(TWICE, OLDER)
            elif not self.options.old_max_tokens and most is not None:
                body[OLDER] = min(other, most)
                if other > most:
                    self.ladder.lose("max_tokens above the most", OLDER)
                    self.anew.update(BOUNDS)

    def _form(self, body: JSON) -> None:
        request = self.request
        if request.logprobs is not None:
            body["logprobs"] = True
            if request.logprobs:
                body["top_logprobs"] = request.logprobs
        self._reasoning(body)
        if request.output is not None:
            self.ladder.carry(request.output.where)
            strict = self._strict_output(request.output)
            body["response_format"] = _format(request.output, strict, self.native)
        if request.verbosity is not None:
            body["verbosity"] = request.verbosity

    def _reasoning(self, body: JSON) -> None:
        reasoning, policy = self.request.reasoning, self.options.effort
        if self.native and policy is None:
            return
        if policy is not None:
            self._undecided(body)
        effort = effort_under(reasoning, self.options)
        if effort:
            body["reasoning_effort"] = effort
        if effort != OFF and is_off(reasoning, self.options):
            self._lose("reasoning", "reasoning off")
        self._budget_beside_effort()
        if reasoning is not None and reasoning.summary and not self.native:
            self._lose("reasoning.summary")

    def _undecided(self, body: JSON) -> None:
        """The client's members that ask for reasoning, without what a policy says instead; with nothing of them where
        it says nothing."""
        for member in REASONING:
            found = body.pop(member, self._unread_member(member))
            if self.native and self.options.effort and isinstance(found, Mapping):
                beside = {name: value for name, value in found.items() if name not in DECIDED_WITHIN.get(member, ())}
                body.update({member: beside} if beside else {})

    def _function(self, tool: FunctionTool, name: str, description: str) -> JSON:
        function: JSON = {"name": name}
        if description:
            function["description"] = description
        if tool.schema is not None:
            function["parameters"] = tool.schema
        if (strict := self._strict_tool(tool)) is not None:
            function["strict"] = strict
        return function

    def _account(self, body: JSON) -> None:
        request = self.request
        if request.metadata is not None:
            body["metadata"] = dict(request.metadata)
        if request.user is not None and not self.native:
            body["safety_identifier"] = request.user_within(USER_CHARS)
        if request.older_user is not None and not self.native:
            body["user"] = request.older_user
        if request.cache_key is not None:
            body["prompt_cache_key"] = request.cache_key
        if request.cache is not None:
            self._lose("cache")
        if request.service_tier == "ultrafast" and not self.native:
            self._lose("service_tier", "service_tier above fast")
            body["service_tier"] = "fast"
        elif request.service_tier is not None:
            body["service_tier"] = request.service_tier
        if request.store is not None:
            body["store"] = request.store


def _named(name: str, tool: OfferedTool) -> JSON:
    kind = "custom" if tool.kind is ToolKind.CUSTOM and not tool.wrapped else "function"
    return {"type": kind, kind: {"name": name}}


def _format(output: OutputFormat, strict: bool | None, native: bool) -> JSON:
    if output.kind is OutputKind.TEXT:
        return {**output.extras, "type": "text"}
    if output.kind is OutputKind.JSON:
        return {**output.extras, "type": "json_object"}
    schema: JSON = dict(output.extras)
    if output.name or not native:
        schema["name"] = output.name or "output"
    if output.schema is not None:
        schema["schema"] = output.schema
    if output.description:
        schema["description"] = output.description
    if strict is not None:
        schema["strict"] = strict
    return {"type": "json_schema", "json_schema": schema}
