"""Building a Responses request."""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pipeline.effort import OFF, effort_under, is_off
from pipeline.events import ToolKind
from pipeline.given import is_as_given, replaced, route_changes
from pipeline.ladder import Ladder
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.request import (
    DEFAULT_OPTIONS,
    Choosing,
    CustomTool,
    FunctionTool,
    OutputFormat,
    OutputKind,
    ReasoningPart,
    Request,
    RequestOptions,
    Role,
    ServerTool,
    TextPart,
    Tool,
    ToolChoice,
    ToolUsePart,
    Turn,
    WebSearch,
)
from pipeline.schemas import StrictBuilder
from pipeline.toolnames import BuiltRequest, OfferedTool, ToolNames, UpstreamIds
from pipeline.turns import SOMETHING, bind, distinct
from stages.dialects.responses.request_items import JSON, ItemWriter, is_anew
from stages.dialects.responses.request_tables import (
    ANY_ID,
    BARRED,
    ID_CHARS,
    LEAST_TOKENS,
    NAME,
    NAME_CHARS,
    READ,
    STAGE,
    STRICT_ALIKE,
    USER_CHARS,
    WRITE,
)

_ABSENT = ("top_k", "seed", "frequency_penalty", "presence_penalty", "logit_bias")
_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_MODES = {Choosing.AUTO: "auto", Choosing.ANY: "required", Choosing.NONE: "none"}


def build(
    request: Request, *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, options: RequestOptions = DEFAULT_OPTIONS
) -> BuiltRequest:
    """The Responses body for a request, and the map that its answer is read with.

    Raises `ClientError` naming the client's member that cannot be honoured and must not be dropped.
    """
    return _Builder(request, Ladder(STAGE, WRITE, ledger, options.strict), options).build()


class _Builder(StrictBuilder):
    """Builds one body."""

    alike = STRICT_ALIKE

    def __init__(self, request: Request, ladder: Ladder, options: RequestOptions) -> None:
        super().__init__(request, ladder, options, NAME)
        self.names = ToolNames(NAME_CHARS, BARRED)
        self.ids = UpstreamIds(ID_CHARS, ANY_ID)
        self.anew: set[str] = set()

    def build(self) -> BuiltRequest:
        """The body and its map."""
        body = self._begun()
        tools = self._tools()
        self._conversation(body)
        if tools:
            body["tools"] = tools
        if tools or self.native:
            self._choice(body)
        elif self._demands_a_call:
            self._lose("tool_choice", "tool_choice hosted")
        self._bounds(body)
        self._reasoning(body)
        self._text(body)
        self._account(body)
        return self._built(body, READ, self._changed(), decided=("reasoning",))

    def _changed(self) -> set[str]:
        """The members that are not as they came, also toward this same dialect."""
        changed = route_changes(
            self.request,
            self.options,
            bounds=("max_output_tokens",),
            sampling=("temperature", "top_p"),
            reasoning={"reasoning", "include"} - (self._unread & {"include"}),
        )
        return changed | self.anew

    def _conversation(self, body: JSON) -> None:
        request = self.request
        system, turns = (request.system, request.turns) if self.native else request.instructions()
        if not turns:  # instructions alone are no input
            system, turns = (), system
        turns = turns if self.native else tuple(distinct(bind(turns, self.ladder), afresh=True))
        kinds = {part.id: part.kind for turn in turns for part in turn.parts if isinstance(part, ToolUsePart)}
        writer = ItemWriter(self.ladder, self.names, self.ids, self.options, self.native, kinds)
        if self.native and request.given is not None and is_as_given(request):
            anew = {
                part.where: writer.items([evolve(turn, parts=(part,))])
                for turn in turns
                for part in turn.parts
                if isinstance(part, ReasoningPart) and is_anew(part)
            }
            if anew:
                body["input"] = replaced(request.given.body["input"], anew)
                self.anew = {"input"}
            return
        if text := "\n\n".join(text for turn in system if (text := writer.instructions(turn))):
            body["instructions"] = text
        body["input"] = items = writer.items(turns)
        if not items and not self.native:
            self._lose("turns", "turns.none")
            items.extend(writer.items([Turn(Role.USER, (TextPart(SOMETHING),))]))
        if not self.native and items and items[-1].get("role") == "assistant":
            self.ladder.lose("turns.prefill", turns[-1].where)

    def _tools(self) -> list[JSON]:
        out: list[JSON] = []
        spaces: dict[str, JSON] = {}
        for tool in self.request.tools:
            written = None if self.native and "late" in tool.private else self._tool(tool)
            if written is None:
                continue
            space = "" if isinstance(tool, ServerTool) else written.pop("namespace", tool.namespace)
            if not self.native or not space:
                out.append(written)
                continue
            if space not in spaces:
                description = self.request.namespaces.get(space, "")
                spaces[space] = {"type": "namespace", "name": space, "description": description, "tools": []}
                out.append(spaces[space])
            spaces[space]["tools"].append(written)
        return out

    def _tool(self, tool: Tool) -> JSON | None:
        if isinstance(tool, ServerTool):
            if self.native:
                return dict(tool.payload)
            if tool.search is not None and self.options.web_search:
                for where in tool.search.besides:
                    self.ladder.lose("web search besides", where)
                return _search(tool.search)
            self.ladder.follow(tool.loss.row, tool.loss.where)
            return None
        if tool.cache is not None and not self.native:
            self.ladder.lose("part cache", tool.cache.where)
        kind = ToolKind.FUNCTION if isinstance(tool, FunctionTool) else ToolKind.CUSTOM
        name = tool.name if self.native else self.names.offer(OfferedTool(tool.name, tool.namespace, kind))
        written: JSON = {**(tool.private if self.native else {}), **tool.extras, "name": name}
        if tool.extras:
            self.ladder.carry(tool.where)
        if tool.description:
            written["description"] = tool.description
        written.update(self._function(tool) if isinstance(tool, FunctionTool) else _custom(tool))
        return written

    def _function(self, tool: FunctionTool) -> JSON:
        schema = tool.schema
        if schema is None and not self.native:
            schema = {"type": "object", "properties": {}}
        strict = self._strict_tool(tool)
        strict = strict if self.native else strict is True
        return {"type": "function", "parameters": schema, "strict": strict}

    def _choice(self, body: JSON) -> None:
        choice = self.request.tool_choice
        asked = self.native or choice is None or choice.mode is not Choosing.NONE
        if self.request.parallel is not None and asked:
            body["parallel_tool_calls"] = self.request.parallel
        if choice is not None and (written := self._choice_of(choice)) is not None:
            body["tool_choice"] = written

    def _choice_of(self, choice: ToolChoice) -> Any:
        if self.native and (own := choice.payload or choice.private.get("tool_choice")) is not None:
            return own
        mode = _MODES.get(choice.mode)
        offered = self.names.tools()
        if choice.allowed is not None:
            self._not_there(choice.allowed)
            names = [name for key in choice.allowed if (name := self.names.name(*key)) in offered]
            tools = [_named(name, offered[name].kind) for name in names]
            return {"type": "allowed_tools", "mode": mode, "tools": tools} if tools else "none"
        if mode is not None:
            return mode
        name = self.names.name(choice.namespace, choice.name)
        if choice.payload is None and name in offered:
            return _named(name, offered[name].kind)
        self._lose("tool_choice", "tool_choice hosted")
        return None

    def _bounds(self, body: JSON) -> None:
        request = self.request
        bound = self._bound("max_output_tokens")
        if bound is not None:
            body["max_output_tokens"] = bound
            if bound == 0 and not self.native:
                self._lose("max_tokens", "max_tokens of zero")
            if bound < (least := min(LEAST_TOKENS, self.options.most_tokens or LEAST_TOKENS)) and not self.native:
                self._lose("max_tokens", "max_tokens below sixteen")
                body["max_output_tokens"] = least
        if request.stop:
            self._lose("stop")
        for member in ("temperature", "top_p"):
            value = getattr(request, member)
            if value is not None and not self.options.sampling:
                self._lose(member, "sampling")
            elif value is not None:
                body[member] = value
        for member in _ABSENT:
            if getattr(request, member) is not None:
                self._lose(member)
        if request.choices is not None and request.choices != 1:
            self._lose("choices")

    def _reasoning(self, body: JSON) -> None:
        """The effort, and a summary with every effort that is not off: without it the API shows no reasoning at all."""
        policy, reasoning = self.options.effort, self.request.reasoning
        self._budget_beside_effort()
        if self.native and policy is None:
            return
        effort, off = effort_under(reasoning, self.options), is_off(reasoning, self.options)
        if off and effort != OFF:
            self._lose("reasoning", "reasoning off")
        if policy == "":
            body.pop("reasoning", None)
            return
        if reasoning is None and not effort and not self.native:
            return  # what the client's dialect does not know of goes up as it came
        own = body.pop("reasoning", self._unread_member("reasoning"))
        written: JSON = dict(own) if isinstance(own, Mapping) else {}
        if self.native:
            written.pop("effort", None)
        if effort:
            written["effort"] = effort
        if not (self.native and any(written.get(name) is not None for name in ("summary", "generate_summary"))):
            summary = reasoning.summary if reasoning is not None else ""
            if summary != "omitted" and (summary or not off):
                written["summary"] = summary or "auto"
        if written:
            body["reasoning"] = written
        if not off:
            body["include"] = _with(body.get("include"), _ENCRYPTED)

    def _text(self, body: JSON) -> None:
        request = self.request
        if self.native:
            return
        own = body.get("text")
        text: JSON = dict(own) if isinstance(own, dict) else {}
        if request.output is not None:
            text["format"] = _format(request.output, self._strict_output(request.output))
            self.ladder.carry(request.output.where)
        if request.verbosity is not None:
            text["verbosity"] = request.verbosity
        if text:
            body["text"] = text
        if request.logprobs is not None:
            body["include"] = _with(body.get("include"), _LOGPROBS)
            if request.logprobs:
                body["top_logprobs"] = request.logprobs

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
        if request.service_tier is not None:
            body["service_tier"] = request.service_tier
        if request.store is not None or not self.native:
            body["store"] = request.store is True


def _custom(tool: CustomTool) -> JSON:
    if tool.grammar is None:
        return {"type": "custom"}
    grammar = {"type": "grammar", "syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
    return {"type": "custom", "format": grammar}


def _search(search: WebSearch) -> JSON:
    written: JSON = {"type": "web_search"}
    if search.allowed_domains:
        written["filters"] = {"allowed_domains": list(search.allowed_domains)}
    if search.location:
        written["user_location"] = {"type": "approximate", **search.location}
    return written


def _named(name: str, kind: ToolKind) -> JSON:
    return {"type": "custom" if kind is ToolKind.CUSTOM else "function", "name": name}


def _with(given: object, word: str) -> list[Any]:
    words = list(given) if isinstance(given, list) else []
    return words if word in words else [*words, word]


def _format(output: OutputFormat, strict: bool | None) -> JSON:
    if output.kind is OutputKind.TEXT:
        return {**output.extras, "type": "text"}
    if output.kind is OutputKind.JSON:
        return {**output.extras, "type": "json_object"}
    schema: JSON = {
        **output.extras,
        "type": "json_schema",
        "name": output.name or "output",
        "schema": output.schema or {},
    }
    if output.description:
        schema["description"] = output.description
    if strict is not None:
        schema["strict"] = strict
    return schema
