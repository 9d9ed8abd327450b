"""Why a Chat answer ends, in the words of every vendor."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pipeline.events import StopReason
from pipeline.ledger import Ledger

STOP_REASONS: dict[str, StopReason] = {
    "stop": StopReason.END_TURN,
    "eos": StopReason.END_TURN,
    "end_turn": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_length": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
    "tool_calls": StopReason.TOOL_USE,
    "tool_use": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
    "sensitive": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
    "safety": StopReason.REFUSAL,
    "recitation": StopReason.REFUSAL,
    "blocklist": StopReason.REFUSAL,
    "prohibited_content": StopReason.REFUSAL,
    "spii": StopReason.REFUSAL,
}
"""Finish reasons of every vendor, in lower case, without what follows a colon. One that is not here ends the turn, and
is recorded."""

FINISH: Final[dict[StopReason, bytes]] = {
    StopReason.MAX_TOKENS: b"length",
    StopReason.CONTEXT_WINDOW: b"length",
    StopReason.REFUSAL: b"content_filter",
}
"""What is written for a stop reason. For the others it depends on what was written: tool calls, or only text."""

UNFINISHED: Final = {True: "the answer came without one", False: "[DONE] came without one"}
"""Why a finish is supplied, by whether the answer is whole."""

ONE_CALL: Final = "in the deprecated words the client can be told of one call"
"""Why a further call is lost."""

UNSAID: Final[dict[StopReason, str]] = {
    StopReason.STOP_SEQUENCE: "Chat does not tell that a stop sequence ended it",
    StopReason.PAUSE_TURN: "Chat does not tell that the turn is to go on",
    StopReason.CONTEXT_WINDOW: "Chat tells one limit from another by no word",
}
"""Stop reasons that are lost in part."""

_TOKEN = re.compile(r"<\|.*\|>|</?s>", re.DOTALL)


def finish_of(choice: Mapping[str, Any], ledger: Ledger) -> str:
    """The finish reason of a choice, as `STOP_REASONS` has them; empty while there is none."""
    reason = choice.get("finish_reason")
    if isinstance(reason, str):
        word = reason.strip().lower().partition(":")[0]
        return "" if word == "null" else word
    if reason is not None:
        ledger.record("ChatNormalizer", "finish_reason", "ignored", "no text")
    return ""


def stop_of(reason: str, ledger: Ledger) -> StopReason:
    """The stop reason that a finish reason is."""
    stop = STOP_REASONS.get(reason)
    if stop is None:
        ledger.record("ChatNormalizer", "finish_reason", "translated", "an unknown one ends the turn")
    return stop or StopReason.END_TURN


def sequence_of(choice: Mapping[str, Any]) -> str:
    """The stop sequence that a choice tells; vLLM and SGLang tell one where others tell a reason, or a token."""
    told = ""
    for name in ("stop_reason", "matched_stop", "stop_sequence"):
        sequence = choice.get(name)
        if isinstance(sequence, str) and sequence and (name == "stop_sequence" or not is_ending(sequence)):
            told = sequence
    return told


def is_ending(word: str) -> bool:
    """Whether a word is a reason, or a token of the model's template, and no stop sequence that somebody asked for."""
    return word.lower() in STOP_REASONS or _TOKEN.fullmatch(word) is not None
