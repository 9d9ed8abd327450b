"""How much a Messages request asks to think: by an effort, or by a budget within the bound on the whole answer."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from pipeline.builder import Builder
from pipeline.effort import OFF, budget_of_effort, effort_of, effort_under, is_off
from pipeline.request import Reasoning
from stages.dialects.messages.request_tables import LEAST_BUDGET

JSON = dict[str, Any]

_EFFORTS = {"minimal": "low"}
_DECIDED = ("type", "budget_tokens")
"""The members of `thinking` that say how much; the others say how it is shown."""
_FORMS = ("enabled", "disabled")
"""How a model that takes a budget is asked."""


class ThinkingBuilder(Builder):
    """Writes `thinking`, and what of `output_config` and `max_tokens` goes with it.

    Toward the client's own dialect only what the route decides is written anew, which is noted in `anew`.
    """

    anew: set[str]
    """The members that are not as they came, also toward this same dialect."""
    imposed = False
    """The model thinks because the route says so, in its words."""

    def _thinking(self, body: JSON) -> None:
        """How much to think, and whether it is shown."""
        if self.native:
            self._own_thinking(body)
            return
        if self.options.effort is not None:  # also what the client's dialect does not know of
            body.pop("thinking", None)
            self._own_effort(body)
        self._thought(body, {})
        reasoning = self.request.reasoning
        if reasoning is None:
            return
        if reasoning.summary and "thinking" in body and body["thinking"]["type"] != "disabled":
            body["thinking"]["display"] = "omitted" if reasoning.summary == "omitted" else "summarized"
        if "budget_tokens" not in body.get("thinking", {}):
            self._budget_beside_effort()
        if reasoning.summary and not self._thinks(body):
            self._lose("reasoning.summary")

    def _own_thinking(self, body: JSON) -> None:
        """The client's own words, but for those that the route decides; what stands beside them stays."""
        reasoning, policy = self.request.reasoning, self.options.effort
        thinking = reasoning.private.get("thinking") if reasoning is not None else None
        thinking = self._unread_member("thinking") if thinking is None else thinking
        if thinking is not None:
            body["thinking"] = thinking
        shown = {name: value for name, value in thinking.items() if name not in _DECIDED} if _is(thinking) else {}
        if policy is not None:
            self._own_effort(body)
            body.pop("thinking", None)
            self.anew.add("thinking")
            self._thought(body, shown)
        elif self.options.thinking_budget:
            self._own_effort(body)
            if _is(thinking) and isinstance(kind := thinking.get("type"), str) and kind not in _FORMS:
                del body["thinking"]
                self.anew.add("thinking")
                self._budget(body, effort_of(reasoning), shown)
        self._within_bound(body)

    def _own_effort(self, body: JSON) -> None:
        """The client's `output_config` without an effort, which is not left to it."""
        config = body.get("output_config", self._unread_member("output_config"))
        if not _is(config):
            body.update({} if config is None else {"output_config": config})
            return
        body["output_config"] = {name: value for name, value in config.items() if name != "effort"}
        if not body["output_config"]:
            del body["output_config"]
        self.anew.add("output_config")

    def _within_bound(self, body: JSON) -> None:
        """The client's own budget, where the upstream's most leaves it no room."""
        if self.options.most_tokens is None or (self.request.max_tokens is None and "max_tokens" not in self._unread):
            return
        thinking, bound = body.get("thinking"), body["max_tokens"]
        if not _is(thinking) or thinking.get("type") != "enabled" or bound == self.request.max_tokens:
            return
        budget = thinking.get("budget_tokens")
        if type(budget) is not int or budget < bound:
            return
        self.anew.add("thinking")
        if bound > LEAST_BUDGET:
            body["thinking"] = {**thinking, "budget_tokens": max(LEAST_BUDGET, bound // 2)}
        else:
            self._lose("reasoning", "reasoning beyond the bound")
            del body["thinking"]

    def _thought(self, body: JSON, shown: Mapping[str, Any]) -> None:
        reasoning = self.request.reasoning
        effort, off = effort_under(reasoning, self.options), is_off(reasoning, self.options)
        if off and effort != OFF:
            self._lose("reasoning", "reasoning off")
        if self.options.effort == "" or (not effort and (off or reasoning is None or not reasoning.enabled)):
            return
        if effort == OFF:
            body["thinking"] = {"type": "disabled"}
            return
        if self.options.thinking_budget:
            self._budget(body, effort, shown)
            return
        self.imposed = True
        body["thinking"] = {**shown, "type": "adaptive"}
        if effort:
            config = body.get("output_config")
            beside = config if isinstance(config, Mapping) else {}
            body["output_config"] = {**beside, "effort": _EFFORTS.get(effort, effort)}
            self.anew.add("output_config")

    def _budget(self, body: JSON, effort: str, shown: Mapping[str, Any]) -> None:
        """Thinking by a budget, which must stay below the bound on the whole answer, and that within the most."""
        if _in_tool_loop(body["messages"]):
            self._lose("reasoning", "reasoning in a tool loop")
            return
        reasoning, most, bound = self.request.reasoning, self.options.most_tokens, body["max_tokens"]
        budget = max(LEAST_BUDGET, self._asked(reasoning, effort) or budget_of_effort(effort or "medium"))
        if budget >= bound > 0:
            bound = bound + budget if most is None else min(bound + budget, most)
        if budget >= bound and bound <= LEAST_BUDGET:
            self._lose("reasoning", "reasoning beyond the bound")
            return
        if budget >= bound:
            budget = max(LEAST_BUDGET, bound // 2)
            if reasoning is not None and self.options.effort is None:
                self._lose("reasoning", "reasoning within the most")
        if bound != body["max_tokens"] and self.request.max_tokens is not None:
            self._lose("max_tokens", "max_tokens beside a budget")
        self.imposed = True
        self.anew.add("max_tokens")
        body["max_tokens"] = bound
        body["thinking"] = {**shown, "type": "enabled", "budget_tokens": budget}

    def _asked(self, reasoning: Reasoning | None, effort: str) -> int | None:
        """The client's own budget, where the effort is its own too."""
        if reasoning is None or reasoning.budget is None or effort != effort_of(reasoning):
            return None
        if reasoning.effort and not self.native:
            self._lose("reasoning.effort")
        return reasoning.budget

    def _thinks(self, body: JSON) -> bool:
        thinking = body.get("thinking")
        return isinstance(thinking, dict) and thinking.get("type") != "disabled"


def _is(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _in_tool_loop(messages: Sequence[Any]) -> bool:
    """Whether the last message answers calls of a turn that does not begin with thinking."""
    said = [message.get("content") for message in messages if message["role"] == "assistant"]
    last = messages[-1].get("content") if messages else ""
    if not said or not isinstance(last, list) or not any(block["type"] == "tool_result" for block in last):
        return False
    begun = said[-1][:1] if isinstance(said[-1], list) else ()
    return not any(block["type"] in ("thinking", "redacted_thinking") for block in begun)
