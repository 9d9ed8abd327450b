"""What becomes of each member of a Responses request: the ladder's rows for building one.

`member` names the canonical member, `to` where it goes; rows that drop or refuse are for what this dialect cannot say.
"""

import re

from pipeline.ladder import Row, Rule, table
from pipeline.turns import ORPHAN, UNANSWERED

NAME = "responses"
STAGE = "responses request"
NAME_CHARS = 64
ID_CHARS = 64
USER_CHARS = 64
LEAST_TOKENS = 16
BARRED = re.compile(r"[^a-zA-Z0-9_-]")
ANY_ID = re.compile(r"[^\x20-\x7e]")

_ACCEPT, _TRANSLATE, _DEGRADE, _DROP, _REFUSE = Rule.ACCEPT, Rule.TRANSLATE, Rule.DEGRADE, Rule.DROP, Rule.REFUSE
_FILE = "a file that another provider keeps cannot be carried: send its bytes"
_ABSENT = "it cannot be given"

WRITE = table(
    Row("model", _ACCEPT, "model"),
    Row("system", _TRANSLATE, "instructions"),
    Row("turns", _TRANSLATE, "input"),
    Row("turns.name", _DROP, reason="a message has no speaker's name"),
    Row("tools", _TRANSLATE, "tools"),
    Row("tool_choice", _TRANSLATE, "tool_choice"),
    Row("parallel", _ACCEPT, "parallel_tool_calls"),
    Row("max_tokens", _ACCEPT, "max_output_tokens"),
    Row("max_tokens of zero", _REFUSE, reason="an answer of no tokens cannot be asked for"),
    Row("max_tokens below sixteen", _DEGRADE, "16", "the least that can be asked for"),
    Row("stop", _DROP, reason="there are no stop sequences", strict=_REFUSE),
    Row("temperature", _ACCEPT, "temperature"),
    Row("top_p", _ACCEPT, "top_p"),
    Row("top_k", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("seed", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("frequency_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("presence_penalty", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("logit_bias", _DROP, reason=_ABSENT, strict=_REFUSE),
    Row("choices", _REFUSE, reason="only one choice can be answered"),
    Row("logprobs", _TRANSLATE, "include, top_logprobs"),
    Row("reasoning", _TRANSLATE, "reasoning"),
    Row("output", _TRANSLATE, "text.format"),
    Row("verbosity", _TRANSLATE, "text.verbosity"),
    Row("metadata", _ACCEPT, "metadata"),
    Row("user", _TRANSLATE, "safety_identifier"),
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
    Row("part in an assistant's turn", _DROP, reason="an assistant's turn holds text and calls only", strict=_REFUSE),
    Row("part is_error", _DEGRADE, "a mark in the text", "a tool's result cannot say that it failed"),
    Row("turns.prefill", _DROP, reason="the upstream may begin anew instead of going on", strict=_REFUSE),
    Row(UNANSWERED, _DEGRADE, "an empty result", "every call must have its result", strict=_REFUSE),
    Row(ORPHAN, _DEGRADE, "text", "every result must have its call", strict=_REFUSE),
    # tools
    Row("tool_choice hosted", _DROP, reason="the tool is not there", strict=_REFUSE),
)
