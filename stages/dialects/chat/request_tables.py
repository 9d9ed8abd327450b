"""What becomes of each member of a Chat Completions request: the ladder's rows for reading one and for building one.

In `READ`, `member` is this dialect's and `to` the canonical one; rows that drop or refuse are for members that only
this dialect has, and hold toward other dialects. In `WRITE`, `member` is the canonical one and `to` this dialect's;
rows that drop or refuse are for what this dialect cannot say.
"""

import re

from pipeline.ladder import EFFORT, TWICE, WITHIN, Row, Rule, table, top_level
from pipeline.portable import PORTABLE
from pipeline.turns import ORPHAN, UNANSWERED

NAME = "chat"
STAGE = "chat request"
STRICT_ALIKE = frozenset({NAME, "responses"})
"""The dialects whose strict mode takes the same schemas."""
NAME_CHARS = 64
ID_CHARS = 64
USER_CHARS = 64
STOPS = 4
REASONING = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget")
"""The members that ask for reasoning, this dialect's own and those of vendors."""
DECIDED_WITHIN = {"reasoning": ("effort", "enabled", "max_tokens"), "thinking": ("type", "budget_tokens")}
"""What within them says how much to think."""
BARRED = re.compile(r"[^a-zA-Z0-9_-]")
ANY_ID = re.compile(r"[^\x20-\x7e]")

_ACCEPT, _TRANSLATE, _DEGRADE, _DROP, _REFUSE = Rule.ACCEPT, Rule.TRANSLATE, Rule.DEGRADE, Rule.DROP, Rule.REFUSE
_FILE = "a file that another provider keeps cannot be carried: send its bytes"

_HOSTED = "it is run by the provider of this dialect"
_HINT = "a hint that changes no answer"

READ = table(
    WITHIN,
    TWICE,
    EFFORT,
    Row("model", _ACCEPT, "model"),
    Row("messages", _TRANSLATE, "turns"),
    Row("tools", _TRANSLATE, "tools"),
    Row("functions", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("function_call", _TRANSLATE, "tool_choice"),
    Row("parallel_tool_calls", _ACCEPT, "parallel"),
    Row("max_completion_tokens", _ACCEPT, "max_tokens"),
    Row("max_tokens", _TRANSLATE, "max_tokens"),
    Row("stop", _TRANSLATE, "stop"),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_k", _ACCEPT, "top_k"),
    Row("seed", _ACCEPT, "seed"),
    Row("frequency_penalty", _ACCEPT, "frequency_penalty"),
    Row("presence_penalty", _ACCEPT, "presence_penalty"),
    Row("logit_bias", _ACCEPT, "logit_bias"),
    Row("n", _ACCEPT, "choices"),
    Row("logprobs", _TRANSLATE, "logprobs"),
    Row("top_logprobs", _TRANSLATE, "logprobs"),
    Row("top_logprobs without logprobs", _DROP, reason="no probabilities are asked for"),
    Row("reasoning_effort", _ACCEPT, "reasoning"),
    Row("reasoning", _TRANSLATE, "reasoning"),
    Row("thinking", _TRANSLATE, "reasoning"),
    Row("enable_thinking", _TRANSLATE, "reasoning"),
    Row("thinking_budget", _TRANSLATE, "reasoning"),
    Row("response_format", _TRANSLATE, "output"),
    Row("verbosity", _ACCEPT, "verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("safety_identifier", _ACCEPT, "user"),
    Row("user", _TRANSLATE, "user, older_user"),
    Row("prompt_cache_key", _ACCEPT, "cache_key"),
    Row("service_tier", _ACCEPT, "service_tier"),
    Row("store", _ACCEPT, "store"),
    Row("stream", _ACCEPT, "stream"),
    Row("stream_options", _TRANSLATE, "include_usage"),
    Row("stream_options.include_obfuscation", _DROP, reason="answers are not padded"),
    Row("audio", _DROP, reason="no other dialect answers with sound", strict=_REFUSE),
    Row("modalities", _DROP, reason="no other dialect answers with sound", strict=_REFUSE),
    Row("prediction", _DROP, reason="it makes an answer faster, not another"),
    Row("prompt_cache_options", _DROP, reason=_HINT),
    Row("prompt_cache_retention", _DROP, reason=_HINT),
    Row("moderation", _DROP, reason=_HOSTED, strict=_REFUSE),
    Row("web_search_options", _DROP, reason=_HOSTED, strict=_REFUSE),
    # messages and their parts
    Row("messages[].name of a tool", _DROP, reason="a result is bound by its call's id"),
    Row("messages[].audio", _DROP, reason="no other provider has the sound", strict=_REFUSE),
    Row("messages[].extra_content", _DROP, reason="it belongs to the provider that made it"),
    Row("messages[].annotations", _DROP, reason="they are notes on an answer that is given"),
    Row("messages[].content[] of unknown type", _REFUSE, reason="unknown part"),
    # tools
    Row("allowed_tools.tools[] of another type", _DROP, reason=_HOSTED, strict=_REFUSE),
    Row("tools[] of another type", _DROP, reason=_HOSTED, strict=_REFUSE),
)

KNOWN = top_level(READ, _ACCEPT, _TRANSLATE)
"""The members of the body that a `Request` has, in one way or another."""

TOP_OWN = {name: name for name in top_level(READ, _DROP, _REFUSE)}
"""The members of the body that only this dialect has."""

WRITE = table(
    Row("model", _ACCEPT, "model"),
    Row("system", _TRANSLATE, "messages"),
    Row("turns", _TRANSLATE, "messages"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel", _ACCEPT, "parallel_tool_calls"),
    Row("max_tokens", _ACCEPT, "max_completion_tokens"),
    *PORTABLE,
    Row("max_tokens above the most", _DEGRADE, "the most", "the upstream takes no larger bound"),
    Row("max_tokens of zero", _REFUSE, reason="an answer of no tokens cannot be asked for"),
    Row("stop", _ACCEPT, "stop"),
    Row("stop beyond four", _DROP, reason="at most four stop sequences can be given", strict=_REFUSE),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("sampling", _DROP, reason="the upstream's models do not take it"),
    Row("top_k", _DROP, reason="it cannot be given", strict=_REFUSE),
    Row("seed", _ACCEPT, "seed"),
    Row("frequency_penalty", _ACCEPT, "frequency_penalty"),
    Row("presence_penalty", _ACCEPT, "presence_penalty"),
    Row("logit_bias", _ACCEPT, "logit_bias"),
    Row("choices", _REFUSE, reason="only one choice can be answered in another dialect"),
    Row("logprobs", _TRANSLATE, "logprobs, top_logprobs"),
    Row("reasoning", _TRANSLATE, "reasoning_effort"),
    Row("reasoning.budget", _DROP, reason="the effort beside it says how much to think"),
    Row("reasoning.summary", _DROP, reason="the upstream alone decides what reasoning it shows"),
    Row("reasoning off", _DEGRADE, "the least effort", "the upstream cannot do without"),
    Row("output", _TRANSLATE, "response_format"),
    Row("output.strict", _DEGRADE, "false", "strict mode does not take this schema"),
    Row("verbosity", _ACCEPT, "verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("user", _TRANSLATE, "safety_identifier"),
    Row("older_user", _ACCEPT, "user"),
    Row("cache_key", _ACCEPT, "prompt_cache_key"),
    Row("cache", _DROP, reason="a hint that changes no answer"),
    Row("service_tier", _ACCEPT, "service_tier"),
    Row("service_tier above fast", _DEGRADE, "fast", "the fastest that there is"),
    Row("store", _ACCEPT, "store"),
    Row("stream", _ACCEPT, "stream"),
    Row("include_usage", _TRANSLATE, "stream_options.include_usage"),
    # parts
    Row("part cache", _DROP, reason="a hint that changes no answer"),
    Row("part reasoning", _DROP, reason="it belongs to the provider that made it"),
    Row("part reasoning replayed", _DEGRADE, "text", "the rest of it belongs to the provider that made it"),
    Row("part image stored", _REFUSE, reason=_FILE),
    Row("part document stored", _REFUSE, reason=_FILE),
    Row("part document by url", _REFUSE, reason="a document can be sent only by its bytes"),
    Row("part document text", _DEGRADE, "text", "there are no documents of plain text"),
    Row("part document citations", _DROP, reason="citations cannot be asked for", strict=_REFUSE),
    Row("part image in a result", _DEGRADE, "a message behind the results", "a tool's result can only be text"),
    Row("part out of place", _DROP, reason="it cannot stand in a turn of this role", strict=_REFUSE),
    Row("part is_error", _DEGRADE, "a mark in the text", "a tool's result cannot say that it failed"),
    Row("turns.later instructions", _DEGRADE, "a user's text", "the upstream has instructions at the beginning only"),
    Row("turns.prefill", _DEGRADE, "a past turn", "the upstream may begin anew instead of going on", strict=_REFUSE),
    Row("turns.none", _DEGRADE, "a user's turn of one dot", "there must be a turn", strict=_REFUSE),
    Row(UNANSWERED, _DEGRADE, "an empty result", "every call must have its result", strict=_REFUSE),
    Row(ORPHAN, _DEGRADE, "text", "every result must have its call", strict=_REFUSE),
    # tools
    Row("tool strict", _DROP, reason="strict mode does not take its schema"),
    Row("tool grammar", _DEGRADE, "the tool's description", "the upstream has no freeform tools"),
    Row("tool_choice hosted", _DROP, reason="the tool is not there", strict=_REFUSE),
    Row("tool_choice allowed", _TRANSLATE, "tool_choice.allowed_tools"),
)
