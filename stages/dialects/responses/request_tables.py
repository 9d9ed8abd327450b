"""What becomes of each member of a Responses request: the ladder's rows for reading one and for building one.

In `READ`, `member` is this dialect's and `to` the canonical one; rows that drop or refuse are for members that only
this dialect has, and hold toward other dialects. In `WRITE`, `member` is the canonical one and `to` this dialect's;
rows that drop or refuse are for what this dialect cannot say.
"""

import re

from pipeline.ladder import EFFORT, TWICE, WITHIN, Row, Rule, table, top_level
from pipeline.portable import PORTABLE
from pipeline.turns import ORPHAN, UNANSWERED

NAME = "responses"
STAGE = "responses request"
STRICT_ALIKE = frozenset({NAME, "chat"})
"""The dialects whose strict mode takes the same schemas."""
NAME_CHARS = 64
ID_CHARS = 64
USER_CHARS = 64
LEAST_TOKENS = 16
BARRED = re.compile(r"[^a-zA-Z0-9_-]")
ANY_ID = re.compile(r"[^\x20-\x7e]")

_ACCEPT, _TRANSLATE, _DEGRADE, _DROP, _REFUSE = Rule.ACCEPT, Rule.TRANSLATE, Rule.DEGRADE, Rule.DROP, Rule.REFUSE
_FILE = "a file that another provider keeps cannot be carried: send its bytes"
_ABSENT = "it cannot be given"

_HOSTED = "it is run by the provider of this dialect"
_HINT = "a hint that changes no answer"
_STATE = "no conversation is kept here: send the whole of it"

READ = table(
    WITHIN,
    TWICE,
    EFFORT,
    Row("model", _ACCEPT, "model"),
    Row("input", _TRANSLATE, "turns"),
    Row("instructions", _TRANSLATE, "system"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel_tool_calls", _ACCEPT, "parallel"),
    Row("max_output_tokens", _ACCEPT, "max_tokens"),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_logprobs", _TRANSLATE, "logprobs"),
    Row("include", _TRANSLATE, "logprobs"),
    Row("include[] besides", _DROP, reason="no other dialect's answer holds it"),
    Row("reasoning", _TRANSLATE, "reasoning"),
    Row("reasoning.context", _DROP, reason="earlier reasoning is not sent to other providers"),
    Row("reasoning.mode", _DROP, reason="no other dialect has modes of reasoning"),
    Row("text", _TRANSLATE, "output, verbosity"),
    Row("text.format", _TRANSLATE, "output"),
    Row("text.verbosity", _TRANSLATE, "verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("safety_identifier", _ACCEPT, "user"),
    Row("user", _TRANSLATE, "user, older_user"),
    Row("prompt_cache_key", _ACCEPT, "cache_key"),
    Row("service_tier", _ACCEPT, "service_tier"),
    Row("store", _ACCEPT, "store"),
    Row("stream", _ACCEPT, "stream"),
    Row("stream_options", _DROP, reason="usage is always told"),
    Row("prompt_cache_options", _DROP, reason=_HINT),
    Row("prompt_cache_retention", _DROP, reason=_HINT),
    Row("client_metadata", _DROP, reason="it tells this dialect's provider about the client"),
    Row("access_programs", _DROP, reason="it concerns this dialect's provider"),
    Row("background_options", _DROP, reason="an answer is given while the client waits"),
    Row("image", _DROP, reason="no other dialect says how images are kept"),
    Row("truncation", _DROP, reason="a conversation that is too long is refused by the upstream"),
    Row("context_management", _DROP, reason="the upstream keeps the whole conversation"),
    Row("max_tool_calls", _DROP, reason="hosted tools are not called"),
    Row("moderation", _DROP, reason=_HOSTED, strict=_REFUSE),
    Row("background", _REFUSE, reason="an answer is given while the client waits"),
    Row("previous_response_id", _REFUSE, reason=_STATE),
    Row("conversation", _REFUSE, reason=_STATE),
    Row("prompt", _REFUSE, reason="no other provider has the prompt"),
    # items and their parts
    Row("input[] item_reference", _REFUSE, reason=_STATE),
    Row("input[] additional_tools", _TRANSLATE, "tools"),
    Row("input[] tool_search_call", _DROP, reason="every tool is loaded from the beginning"),
    Row("input[] tool_search_output", _DROP, reason="its tools are loaded from the beginning"),
    Row("input[] configuration_update", _DROP, reason="no other dialect changes its settings on the way"),
    Row("input[] compaction", _DROP, reason="its blob is for this dialect's provider", strict=_REFUSE),
    Row("input[] compaction_trigger", _DROP, reason="the upstream keeps the whole conversation"),
    Row("input[] of a hosted tool", _DROP, reason=_HOSTED, strict=_REFUSE),
    Row("input[] of unknown type", _REFUSE, reason="unknown item"),
    Row("input[].content[] of unknown type", _REFUSE, reason="unknown part"),
    Row("input[].id", _DROP, reason="items are known by name in this dialect alone"),
    Row("input[].status", _DROP, reason="no other dialect says that an item is unfinished"),
    Row("input[].name of a result", _DROP, reason="a result is bound by its call's id"),
    Row("input[].phase", _DROP, reason="no other dialect tells a comment from an answer"),
    Row("input[].caller", _DROP, reason="the call was made by the model all the same"),
    Row("input[].async", _DROP, reason="every result is waited for"),
    Row("content[].logprobs", _DROP, reason="they are notes on an answer that is given"),
    Row("content[].detail of a file", _DROP, reason="no other dialect says how closely to look at a file"),
    Row("content[].annotations", _DROP, reason="they are notes on an answer that is given"),
    # tools
    Row("tools[].defer_loading", _DROP, reason="the tool is loaded from the beginning"),
    Row("tools[].async", _DROP, reason="every result is waited for"),
    Row("tools[].allowed_callers", _DROP, reason="only the model calls tools"),
    Row("tools[].output_schema", _DROP, reason="no other dialect says what a tool's result looks like"),
    Row("tools[] default namespace", _DROP, reason="no other dialect has a namespace for all tools"),
    Row("tools[] tool_search", _DROP, reason="every tool is loaded from the beginning"),
    Row("tools[] web_search", _DROP, reason=_HOSTED),
    Row("tool_choice.tools[] of a hosted kind", _DROP, reason=_HOSTED, strict=_REFUSE),
    Row("tools[] of a hosted kind", _DROP, reason=_HOSTED, strict=_REFUSE),
)

KNOWN = top_level(READ, _ACCEPT, _TRANSLATE)
"""The members of the body that a `Request` has, in one way or another."""

TOP_OWN = {name: name for name in top_level(READ, _DROP, _REFUSE)}
"""The members of the body that only this dialect has."""

TOOL_OWN = {name: f"tools[].{name}" for name in ("defer_loading", "async", "allowed_callers", "output_schema")}
"""The members of a tool that only this dialect has."""

DEFAULT_NAMESPACE = "functions"
"""The namespace that a tool without one is in."""

HOSTED_ITEMS = frozenset(
    {
        "file_search_call",
        "web_search_call",
        "computer_call",
        "computer_call_output",
        "program",
        "program_output",
        "image_generation_call",
        "code_interpreter_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
    }
)
"""The items of tools that the provider runs or defines."""

OWN_ITEMS = frozenset(
    {
        "item_reference",
        "additional_tools",
        "tool_search_call",
        "tool_search_output",
        "configuration_update",
        "compaction",
        "compaction_trigger",
    }
)
"""The other items that only this dialect has; each has its row."""

ASSISTANT_ITEMS = frozenset(
    {
        "file_search_call",
        "web_search_call",
        "computer_call",
        "program",
        "image_generation_call",
        "code_interpreter_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "tool_search_call",
        "compaction",
    }
)
"""The items among those that are the assistant's."""

INSTRUCTING_ITEMS = frozenset({"additional_tools", "configuration_update"})
"""The items among those that instruct the model."""

WRITE = table(
    Row("model", _ACCEPT, "model"),
    Row("system", _TRANSLATE, "instructions"),
    Row("turns", _TRANSLATE, "input"),
    Row("turns.name", _DROP, reason="a message has no speaker's name"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel", _ACCEPT, "parallel_tool_calls"),
    Row("max_tokens", _ACCEPT, "max_output_tokens"),
    *PORTABLE,
    Row("max_tokens above the most", _DEGRADE, "the most", "the upstream takes no larger bound"),
    Row("max_tokens of zero", _REFUSE, reason="an answer of no tokens cannot be asked for"),
    Row("max_tokens below sixteen", _DEGRADE, "16", "the least that can be asked for"),
    Row("stop", _DROP, reason="there are no stop sequences", strict=_REFUSE),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("sampling", _DROP, reason="the upstream's models do not take it"),
    Row("top_k", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("seed", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("frequency_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("presence_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("logit_bias", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("choices", _REFUSE, reason="only one choice can be answered"),
    Row("logprobs", _TRANSLATE, "include, top_logprobs"),
    Row("reasoning", _TRANSLATE, "reasoning"),
    Row("reasoning.budget", _DROP, reason="the effort beside it says how much to think"),
    Row("reasoning off", _DEGRADE, "the least effort", "the upstream cannot do without"),
    Row("output", _TRANSLATE, "text.format"),
    Row("output.strict", _DEGRADE, "false", "strict mode does not take this schema"),
    Row("verbosity", _TRANSLATE, "text.verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("user", _TRANSLATE, "safety_identifier"),
    Row("older_user", _ACCEPT, "user"),
    Row("cache_key", _ACCEPT, "prompt_cache_key"),
    Row("cache", _DROP, reason="a hint that changes no answer"),
    Row("service_tier", _ACCEPT, "service_tier"),
    Row("store", _ACCEPT, "store"),
    Row("stream", _ACCEPT, "stream"),
    # parts
    Row("part cache", _DROP, reason="a hint that changes no answer"),
    Row("part reasoning", _DROP, reason="it belongs to the provider that made it"),
    Row("part image stored", _REFUSE, reason=_FILE),
    Row("part document stored", _REFUSE, reason=_FILE),
    Row("part document text", _DEGRADE, "text", "there are no documents of plain text"),
    Row("part document citations", _DROP, reason="citations cannot be asked for", strict=_REFUSE),
    Row("part audio", _REFUSE, reason="sound cannot be sent"),
    Row("part out of place", _DROP, reason="it cannot stand in a turn of this role", strict=_REFUSE),
    Row("part is_error", _DEGRADE, "a mark in the text", "a tool's result cannot say that it failed"),
    Row("turns.prefill", _DEGRADE, "a past turn", "the upstream may begin anew instead of going on", strict=_REFUSE),
    Row("turns.none", _DEGRADE, "a user's turn of one dot", "there must be a turn", strict=_REFUSE),
    Row(UNANSWERED, _DEGRADE, "an empty result", "every call must have its result", strict=_REFUSE),
    Row(ORPHAN, _DEGRADE, "text", "every result must have its call", strict=_REFUSE),
    # tools
    Row("tool strict", _DROP, reason="strict mode does not take its schema"),
    Row("web search besides", _DROP, reason="the upstream's own search cannot be told it"),
    Row("tool_choice hosted", _DROP, reason="the tool is not there", strict=_REFUSE),
)
