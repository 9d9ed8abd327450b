"""Building a Messages request."""

from collections.abc import Sequence
from typing import Any

from pipeline.builder import Builder
from pipeline.effort import OFF, budget_of_effort, effort_of, effort_under, is_off
from pipeline.events import ToolKind
from pipeline.given import is_as_given, replaced, route_changes
from pipeline.ladder import Ladder
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.request import (
    DEFAULT_OPTIONS,
    SAMPLING,
    Choosing,
    FunctionTool,
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
from stages.dialects.messages.request_blocks import JSON, BlockWriter
from stages.dialects.messages.request_tables import (
    BARRED,
    ID_CHARS,
    LEAST_BUDGET,
    NAME,
    NAME_CHARS,
    READ,
    STAGE,
    WRITE,
)

_ABSENT = ("seed", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "cache_key", "verbosity")
_MODES = {Choosing.AUTO: "auto", Choosing.ANY: "any", Choosing.NONE: "none", Choosing.ONE: "tool"}
_EFFORTS = {"minimal": "low"}
_TIERS = {"default": "standard_only", **dict.fromkeys(("auto", "scale", "priority", "fast", "ultrafast"), "auto")}
_JSON_ONLY = "Answer with one JSON object and nothing else."


def build(
    request: Request, *, ledger: Ledger, limits: Limits = DEFAULT_LIMITS, options: RequestOptions = DEFAULT_OPTIONS
) -> BuiltRequest:
    """The Messages body for a request, and the map that its answer is read with.

    Raises `ClientError` naming the client's member that cannot be honoured and must not be dropped.
    """
    return _Builder(request, Ladder(STAGE, WRITE, ledger, options.strict), options).build()


class _Builder(Builder):
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
        return self._built(body, READ, self._changed())

    def _changed(self) -> set[str]:
        """The members that are not as they came, also toward this same dialect."""
        bound = () if "max_tokens" in self._unread and not self.options.thinking_budget else ("max_tokens",)
        reasoning = ("thinking", "output_config", *bound)
        changed = route_changes(
            self.request, self.options, bounds=("max_tokens",), sampling=SAMPLING, reasoning=reasoning
        )
        return changed | self.anew

    def _conversation(self, body: JSON) -> None:
        request = self.request
        if self.native and request.given is not None and is_as_given(request):
            anew = {turn.where: self.writer.messages([turn]) for turn in request.turns if self.writer.is_foreign(turn)}
            body["messages"] = given = list(request.given.body["messages"]) if request.turns else []
            if anew:
                body["messages"] = replaced(given, anew)
                self.anew = {"messages"}
            return
        system, turns = (request.system, request.turns) if self.native else request.instructions()
        blocks = self.writer.system(system)
        if request.output is not None and request.output.kind is OutputKind.JSON:
            self._lose("output", "output json")
            blocks.append({"type": "text", "text": _JSON_ONLY})
        if blocks:
            plain = len(blocks) == 1 and set(blocks[0]) == {"type", "text"}
            body["system"] = blocks[0]["text"] if plain else blocks
        body["messages"] = self.writer.messages(turns if self.native else distinct(bind(turns, self.ladder)))
        if not body["messages"]:
            self._lose("turns", "turns.none")
            body["messages"] = [{"role": "user", "content": SOMETHING}]

    def _tools(self) -> list[JSON]:
        choice = self.request.tool_choice
        allowed = None if choice is None else choice.allowed
        described: set[str] = set()
        out = []
        for tool in self.request.tools:
            if not isinstance(tool, ServerTool) and allowed is not None and (tool.namespace, tool.name) not in allowed:
                self.ladder.lose("tool not allowed", tool.where)
                continue
            if self.native and "tool_addition" in tool.private:
                continue  # it stands in the conversation
            if (written := self._tool(tool, described)) is not None:
                out.append(written)
        return out

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
        if schema is not None:
            written["input_schema"] = schema
        if tool.strict or (self.native and tool.strict is not None):
            written["strict"] = tool.strict
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
        if written["type"] in ("any", "tool") and self._thinks(body) and not self.native:
            self._lose("tool_choice", "tool_choice with thinking")
            written = {"type": "auto"}
        if parallel is not None and written["type"] != "none" and (not parallel or self.native):
            written["disable_parallel_tool_use"] = not parallel
        body["tool_choice"] = written

    def _bounds(self, body: JSON) -> None:
        request = self.request
        bound = self._bound("max_tokens")
        body["max_tokens"] = self.options.max_tokens if bound is None else bound
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

    def _thinking(self, body: JSON) -> None:
        """How much to think, and whether it is shown."""
        self._thought(body)
        reasoning = self.request.reasoning
        if self.native or reasoning is None:
            return
        if "budget_tokens" not in body.get("thinking", {}):
            self._budget_beside_effort()
        if reasoning.summary and not self._thinks(body):
            self._lose("reasoning.summary")

    def _thought(self, body: JSON) -> None:
        reasoning = self.request.reasoning
        own = reasoning.private.get("thinking") if reasoning is not None else None
        if self.native and self.options.effort is None:
            if own is not None:
                body["thinking"] = own
            return
        effort, off = effort_under(reasoning, self.options), is_off(reasoning, self.options)
        if off and effort != OFF:
            self._lose("reasoning", "reasoning off")
        if self.options.effort == "" or (not effort and (off or reasoning is None or not reasoning.enabled)):
            return
        if effort == OFF:
            body["thinking"] = {"type": "disabled"}
            return
        if self.options.thinking_budget:
            self._budget(body, effort)
        else:
            body["thinking"] = {"type": "adaptive"}
            if effort:
                body["output_config"] = {**_config(body), "effort": _EFFORTS.get(effort, effort)}
        if reasoning is not None and reasoning.summary and "thinking" in body:
            body["thinking"]["display"] = "omitted" if reasoning.summary == "omitted" else "summarized"

    def _budget(self, body: JSON, effort: str) -> None:
        """Thinking by a budget, which must stay below the bound on the whole answer."""
        if _in_tool_loop(body["messages"]):
            self._lose("reasoning", "reasoning in a tool loop")
            return
        reasoning = self.request.reasoning
        asked = None if reasoning is None or effort != effort_of(reasoning) else reasoning.budget
        if asked is not None and reasoning is not None and reasoning.effort:
            self._lose("reasoning.effort")
        budget = max(LEAST_BUDGET, asked or budget_of_effort(effort or "medium"))
        if budget >= body["max_tokens"]:
            body["max_tokens"] += budget
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}

    def _thinks(self, body: JSON) -> bool:
        thinking = body.get("thinking")
        return isinstance(thinking, dict) and thinking.get("type") != "disabled"

    def _form(self, body: JSON) -> None:
        request, output = self.request, self.request.output
        if self.native or output is None or output.kind is not OutputKind.SCHEMA:
            return
        lost = {"name": bool(output.name), "description": bool(output.description), "strict": output.strict is False}
        for member in (name for name, is_lost in lost.items() if is_lost):
            self.ladder.lose(f"output.{member}", f"{request.path('output')}.{member}")
        self.ladder.carry(output.where)
        form = {**output.extras, "type": "json_schema", "schema": output.schema or {"type": "object"}}
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
            if not self.native and self._thinks(body) and value != 1:
                self._lose(member, "sampling with thinking")
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
    written: JSON = {"type": "web_search_20250305", "name": "web_search"}
    if search.allowed_domains:
        written["allowed_domains"] = list(search.allowed_domains)
    if search.location:
        written["user_location"] = {"type": "approximate", **search.location}
    return written


def _in_tool_loop(messages: Sequence[Any]) -> bool:
    """Whether the last message answers calls of a turn that does not begin with thinking."""
    said = [message.get("content") for message in messages if message["role"] == "assistant"]
    last = messages[-1].get("content") if messages else ""
    if not said or not isinstance(last, list) or not any(block["type"] == "tool_result" for block in last):
        return False
    begun = said[-1][:1] if isinstance(said[-1], list) else ()
    return not any(block["type"] in ("thinking", "redacted_thinking") for block in begun)
