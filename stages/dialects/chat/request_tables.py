"""What becomes of each member of a Chat Completions request: the ladder's rows for building one.

`member` names the canonical member, `to` where it goes; rows that drop or refuse are for what this dialect cannot say.
"""

import re

from pipeline.ladder import Row, Rule, table
from pipeline.turns import ORPHAN, UNANSWERED

NAME = "chat"
STAGE = "chat request"
NAME_CHARS = 64
ID_CHARS = 64
USER_CHARS = 64
STOPS = 4
BARRED = re.compile(r"[^a-zA-Z0-9_-]")
ANY_ID = re.compile(r"[^\x20-\x7e]")

_ACCEPT, _TRANSLATE, _DEGRADE, _DROP, _REFUSE = Rule.ACCEPT, Rule.TRANSLATE, Rule.DEGRADE, Rule.DROP, Rule.REFUSE
_FILE = "a file that another provider keeps cannot be carried: send its bytes"

WRITE = table(
    Row("model", _ACCEPT, "model"),
    Row("system", _TRANSLATE, "messages"),
    Row("turns", _TRANSLATE, "messages"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel", _ACCEPT, "parallel_tool_calls"),
    Row("max_tokens", _ACCEPT, "max_completion_tokens"),
    Row("max_tokens of zero", _REFUSE, reason="an answer of no tokens cannot be asked for"),
    Row("stop", _ACCEPT, "stop"),
    Row("stop beyond four", _DROP, reason="at most four stop sequences can be given", strict=_REFUSE),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_k", _DROP, reason="it cannot be given", strict=_REFUSE),
    Row("seed", _ACCEPT, "seed"),
    Row("frequency_penalty", _ACCEPT, "frequency_penalty"),
    Row("presence_penalty", _ACCEPT, "presence_penalty"),
    Row("logit_bias", _ACCEPT, "logit_bias"),
    Row("choices", _REFUSE, reason="only one choice can be answered in another dialect"),
    Row("logprobs", _TRANSLATE, "logprobs, top_logprobs"),
    Row("reasoning", _TRANSLATE, "reasoning_effort"),
    Row("reasoning.summary", _DROP, reason="the upstream alone decides what reasoning it shows"),
    Row("output", _TRANSLATE, "response_format"),
    Row("verbosity", _ACCEPT, "verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("user", _TRANSLATE, "safety_identifier"),
    Row("cache_key", _ACCEPT, "prompt_cache_key"),
    Row("cache", _DROP, reason="a hint that changes no answer"),
    Row("service_tier", _ACCEPT, "service_tier"),
    Row("store", _ACCEPT, "store"),
    Row("stream", _ACCEPT, "stream"),
    Row("include_usage", _TRANSLATE, "stream_options.include_usage"),
    # parts
    Row("part cache", _DROP, reason="a hint that changes no answer"),
    Row("part reasoning", _DROP, reason="it belongs to the provider that made it"),
    Row("part image stored", _REFUSE, reason=_FILE),
    Row("part document stored", _REFUSE, reason=_FILE),
    Row("part document by url", _REFUSE, reason="a document can be sent only by its bytes"),
    Row("part document text", _DEGRADE, "text", "there are no documents of plain text"),
    Row("part document citations", _DROP, reason="citations cannot be asked for", strict=_REFUSE),
    Row("part image in a result", _DEGRADE, "a message behind the results", "a tool's result can only be text"),
    Row("part in an assistant's turn", _DROP, reason="an assistant's turn holds text and calls only", strict=_REFUSE),
    Row("part is_error", _DEGRADE, "a mark in the text", "a tool's result cannot say that it failed"),
    Row("turns.prefill", _DROP, reason="the upstream may begin anew instead of going on", strict=_REFUSE),
    Row(UNANSWERED, _DEGRADE, "an empty result", "every call must have its result", strict=_REFUSE),
    Row(ORPHAN, _DEGRADE, "text", "every result must have its call", strict=_REFUSE),
    # tools
    Row("tool grammar", _DEGRADE, "the tool's description", "the upstream has no freeform tools"),
    Row("tool_choice hosted", _DROP, reason="the tool is not there", strict=_REFUSE),
    Row("tool_choice allowed", _TRANSLATE, "tool_choice.allowed_tools"),
)
