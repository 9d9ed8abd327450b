"""What becomes of each member of a Messages request: the ladder's rows for reading one and for building one.

In `READ`, `member` is this dialect's and `to` the canonical one; rows that drop or refuse are for members that only
this dialect has, and hold toward other dialects. In `WRITE`, `member` is the canonical one and `to` this dialect's;
rows that drop or refuse are for what this dialect cannot say.
"""

import re

from pipeline.errors import ErrorKind
from pipeline.ladder import TWICE, WITHIN, Row, Rule, table, top_level
from pipeline.portable import PORTABLE
from pipeline.turns import ORPHAN, UNANSWERED

NAME = "messages"
STAGE = "messages request"
NAME_CHARS = 128
ID_CHARS = 256
CACHE_MARKS = 4
LEAST_BUDGET = 1_024
BARRED = re.compile(r"[^a-zA-Z0-9_-]")
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF = "application/pdf"

_ACCEPT, _TRANSLATE, _DEGRADE, _DROP, _REFUSE = Rule.ACCEPT, Rule.TRANSLATE, Rule.DEGRADE, Rule.DROP, Rule.REFUSE

HOSTED = "it is run by the provider of this dialect"
HINT = "a hint that changes no answer"

READ = table(
    WITHIN,
    TWICE,
    Row("model", _ACCEPT, "model"),
    Row("messages", _TRANSLATE, "turns"),
    Row("system", _TRANSLATE, "system"),
    Row("max_tokens", _ACCEPT, "max_tokens"),
    Row("stop_sequences", _ACCEPT, "stop"),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_k", _ACCEPT, "top_k"),
    Row("stream", _ACCEPT, "stream"),
    Row("service_tier", _TRANSLATE, "service_tier"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("tool_choice.disable_parallel_tool_use", _TRANSLATE, "parallel"),
    Row("thinking", _TRANSLATE, "reasoning"),
    Row("thinking between tools", _DROP, reason="no other dialect says when to think"),
    Row("thinking.display of another word", _DROP, reason="no other dialect shows reasoning so"),
    Row("thinking.block_binding", _DROP, reason="earlier thinking is not sent to other providers"),
    Row("output_config", _TRANSLATE, "reasoning, output"),
    Row("output_config.effort", _TRANSLATE, "reasoning"),
    Row("output_config.format", _TRANSLATE, "output"),
    Row("output_config.task_budget", _DROP, reason="no other dialect has a budget for a whole task"),
    Row("output_format", _TRANSLATE, "output"),
    Row("metadata", _TRANSLATE, "user"),
    Row("cache_control", _ACCEPT, "cache"),
    Row("anthropic_version", _DROP, reason="it names a version of this dialect"),
    Row("anthropic_beta", _DROP, reason="it names betas of this dialect"),
    Row("betas", _DROP, reason="it names betas of this dialect"),
    Row("context_management", _DROP, reason="the upstream keeps the whole conversation"),
    Row("compaction", _DROP, reason="the upstream keeps the whole conversation"),
    Row("diagnostics", _DROP, reason="it asks the provider about its own cache"),
    Row("speed", _DROP, reason="no other dialect sells speed apart from the service tier"),
    Row("billing_policy", _DROP, reason="it concerns this dialect's provider"),
    Row("fallback_credit_token", _DROP, reason="it concerns this dialect's provider"),
    Row("fallbacks", _DROP, reason="it concerns this dialect's provider"),
    Row("user_profile_id", _DROP, reason="it concerns this dialect's provider"),
    Row("workspace_id", _DROP, reason="it concerns this dialect's provider"),
    Row("inference_geo", _DROP, reason="no other dialect says where a model runs", strict=_REFUSE),
    Row("container", _DROP, reason=HOSTED, strict=_REFUSE),
    Row("mcp_servers", _DROP, reason=HOSTED, strict=_REFUSE),
    Row("thread", _DROP, reason="the client keeps the conversation; none is kept for it"),
    Row(
        "thread.continue",
        _REFUSE,
        reason="no thread is kept here: send the whole conversation",
        kind=ErrorKind.NOT_FOUND,
        code="thread_not_found",
    ),
    # messages and their blocks
    Row("messages[].output_config", _DROP, reason="no other dialect has an effort for one turn"),
    Row("messages[].clear_at", _DROP, reason="the instruction stays in the conversation"),
    Row("content[].citations", _DROP, reason="they point into documents in this dialect's own way"),
    Row("content[].caller", _DROP, reason="the call was made by the model all the same"),
    Row("content[].toolset_name", _DROP, reason="the call is known by its name"),
    Row("content[].transformations", _DROP, reason="no other dialect says what to do with a large image"),
    Row("block search_result", _DEGRADE, "text", "no other dialect has search results"),
    Row("block tool_reference", _DEGRADE, "text", "every tool is loaded from the beginning"),
    Row("block browser_state", _DEGRADE, "text", "no other dialect has a browser's state"),
    Row("block tool_addition", _DROP, reason="every tool is loaded from the beginning"),
    Row("block tool_removal", _DROP, reason="no other dialect takes a tool away"),
    Row("block container_upload", _DEGRADE, "text", "no other provider has the file", strict=_REFUSE),
    Row("block compaction", _DEGRADE, "text", "its blob is for this dialect's provider", strict=_REFUSE),
    Row("block fallback", _DROP, reason="it tells which model of this dialect's provider answered"),
    Row("block mcp_tool_listing", _DROP, reason=HOSTED),
    Row("block server_tool_use", _DROP, reason="it was run by the provider of this dialect", strict=_REFUSE),
    Row("block server_tool_result", _DROP, reason="it was run by the provider of this dialect", strict=_REFUSE),
    Row("block of unknown type", _REFUSE, reason="unknown block"),
    # tools
    Row("tools[].defer_loading", _DROP, reason="the tool is loaded from the beginning"),
    Row("tools[].eager_input_streaming", _DROP, reason="arguments are always streamed as they come"),
    Row("tools[].allowed_callers", _DROP, reason="only the model calls tools"),
    Row("tools[].input_examples", _DROP, reason="no other dialect has examples of a tool's input"),
    Row("tool that searches the web", _DROP, reason=HOSTED),
    Row("tool run by the provider", _DROP, reason=HOSTED, strict=_REFUSE),
    Row(
        "tool with the provider's schema",
        _DROP,
        reason="only this dialect's models know its schema",
        strict=_REFUSE,
    ),
    Row("tool that searches tools", _DROP, reason="every tool is loaded from the beginning"),
)

KNOWN = (*top_level(READ, _ACCEPT, _TRANSLATE), "thread")
"""The members of the body that a `Request` has, in one way or another."""

TOP_OWN = {name: name for name in top_level(READ, _DROP, _REFUSE) if name != "thread"}
"""The members of the body that only this dialect has."""

TOOL_OWN = {
    name: f"tools[].{name}" for name in ("defer_loading", "eager_input_streaming", "allowed_callers", "input_examples")
}
"""The members of a function tool that only this dialect has."""

BLOCK_OWN = {name: f"content[].{name}" for name in ("citations", "caller", "toolset_name", "transformations")}
"""The members of a block that only this dialect has."""

SERVER_USES = frozenset({"server_tool_use", "mcp_tool_use"})
SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
    }
)
"""The blocks of tools that the provider runs itself."""

ROW_OF_BLOCK = {
    **dict.fromkeys(SERVER_USES, "block server_tool_use"),
    **dict.fromkeys(SERVER_RESULTS, "block server_tool_result"),
    **{
        name: f"block {name}"
        for name in (
            "search_result",
            "tool_reference",
            "browser_state",
            "tool_addition",
            "tool_removal",
            "container_upload",
            "compaction",
            "fallback",
            "mcp_tool_listing",
        )
    },
}
"""The row of each block that only this dialect has."""

_ABSENT = "it cannot be given"
_FILE = "a file that another provider keeps cannot be carried: send its bytes"

WRITE = table(
    Row("model", _ACCEPT, "model"),
    Row("system", _TRANSLATE, "system"),
    Row("turns", _TRANSLATE, "messages"),
    Row("turns.name", _DROP, reason="a message has no speaker's name"),
    Row("turns.first", _DEGRADE, "a user's turn before it", "the first turn must be a user's", strict=_REFUSE),
    Row("turns.later instructions", _DEGRADE, "a user's text", "the upstream has instructions at the beginning only"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel", _TRANSLATE, "tool_choice.disable_parallel_tool_use"),
    Row("max_tokens", _ACCEPT, "max_tokens"),
    *PORTABLE,
    Row("max_tokens above the most", _DEGRADE, "the most", "the upstream takes no larger bound"),
    Row("max_tokens beside a budget", _DEGRADE, "the bound and the budget", "the budget to think counts within it"),
    Row("stop", _TRANSLATE, "stop_sequences"),
    Row("stop of blanks", _DROP, reason="a stop sequence must hold more than blanks", strict=_REFUSE),
    Row("temperature", _ACCEPT, "temperature"),
    Row("temperature above one", _DEGRADE, "1", "the highest there is"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_k", _ACCEPT, "top_k"),
    Row("sampling with thinking", _DROP, reason="it cannot be given while the model thinks"),
    Row("sampling", _DROP, reason="the upstream's models do not take it"),
    Row("seed", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("frequency_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("presence_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("logit_bias", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("logprobs", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("choices", _REFUSE, reason="only one choice can be answered"),
    Row("reasoning", _TRANSLATE, "thinking, output_config.effort"),
    Row("reasoning.budget", _DROP, reason="the effort beside it says how much to think"),
    Row("reasoning.effort", _DROP, reason="the budget beside it says how much to think"),
    Row("reasoning.summary", _DROP, reason="no thinking is asked for that could be shown"),
    Row("reasoning off", _DEGRADE, "the least effort", "the upstream cannot do without"),
    Row("reasoning in a tool loop", _DROP, reason="the turn that calls must begin with this dialect's own thinking"),
    Row("reasoning within the most", _DEGRADE, "half the bound", "the budget must stay below the upstream's most"),
    Row("reasoning beyond the bound", _DROP, reason="the bound holds no budget to think"),
    Row("output", _TRANSLATE, "output_config.format"),
    Row("output json", _DEGRADE, "an instruction", "only a schema can be demanded"),
    Row("output recursive", _DEGRADE, "an instruction", "no schema that leads back into itself can be demanded"),
    Row("output.name", _DROP, reason="a schema has no name"),
    Row("output.description", _DROP, reason="a schema has no description but its own"),
    Row("output.strict", _DROP, reason="a schema is always kept to"),
    Row("schema keyword", _DEGRADE, "its schema's description", "no schema can demand it"),
    Row("schema oneOf", _DEGRADE, "anyOf", "no schema can demand that one choice alone fits"),
    Row("schema open", _DEGRADE, "false", "every object must be closed"),
    Row("schema mark", _DROP, reason="it asks for nothing, and is not taken"),
    Row("schema beside a reference", _DROP, reason="a reference stands alone"),
    Row("verbosity", _DROP, reason=_ABSENT),
    Row("metadata", _DROP, reason="only the user can be named"),
    Row("user", _TRANSLATE, "metadata.user_id"),
    Row("older_user", _DROP, reason="the user has one name"),
    Row("cache_key", _DROP, reason=HINT),
    Row("cache", _ACCEPT, "cache_control"),
    Row("service_tier", _TRANSLATE, "service_tier"),
    Row("service_tier of another kind", _DROP, reason="there is no tier like it"),
    Row("store", _DROP, reason="nothing is kept"),
    Row("stream", _ACCEPT, "stream"),
    # parts
    Row("part cache", _TRANSLATE, "cache_control"),
    Row("part cache within an instruction", _DROP, reason="an instruction in the conversation is one text"),
    Row("part cache beyond four", _DROP, reason="at most four pieces can be marked"),
    Row("part reasoning", _DROP, reason="it belongs to the provider that made it"),
    Row("part citation", _DROP, reason="it came from another API, and only its own are taken back"),
    Row("part empty text", _DROP, reason="a block of text must hold some"),
    Row("part image stored", _REFUSE, reason=_FILE),
    Row("part image of another type", _REFUSE, reason="an image must be jpeg, png, gif or webp"),
    Row("part image detail", _DROP, reason="how closely to look cannot be said"),
    Row("part document stored", _REFUSE, reason=_FILE),
    Row("part document of another type", _REFUSE, reason="a document must be pdf or text"),
    Row("part audio", _REFUSE, reason="sound cannot be sent"),
    Row("part out of place", _DROP, reason="it cannot stand in a turn of this role", strict=_REFUSE),
    Row("part arguments", _DEGRADE, "an object that holds them", "arguments must be a JSON object", strict=_REFUSE),
    Row("turns.none", _DEGRADE, "a user's turn of one dot", "there must be a turn", strict=_REFUSE),
    Row(UNANSWERED, _DEGRADE, "an empty result", "every call must have its result", strict=_REFUSE),
    Row(ORPHAN, _DEGRADE, "text", "every result must have its call", strict=_REFUSE),
    # tools
    Row("web search besides", _DROP, reason="the upstream's own search cannot be told it"),
    Row("tool strict", _DROP, reason="no schema that leads back into itself can be demanded"),
    Row("tool grammar", _DEGRADE, "the tool's description", "there are no freeform tools"),
    Row("tool of one name", _DROP, reason="two tools cannot have one name: the first one counts"),
    Row("tool_choice allowed", _TRANSLATE, "tools"),
    Row("tool not allowed", _DROP, reason="only the tools that may be called can be offered"),
    Row("tool_choice hosted", _DROP, reason="the tool is not there", strict=_REFUSE),
    Row("tool_choice with thinking", _DEGRADE, "auto", "no tool can be forced while the model thinks", strict=_REFUSE),
)
