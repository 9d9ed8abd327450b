"""Token counts, which are exclusive in Messages too."""

from typing import Any, Final

from attrs import evolve

from pipeline.counts import MOST, count_of
from pipeline.events import Usage
from pipeline.ledger import Ledger
from pipeline.message import tells_input

NAMES: Final = {
    "input": "input_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "output": "output_tokens",
}
"""What the counts of a `usage` object, and those of an iteration, are called."""

COUNTS: Final[dict[str, tuple[str | None, frozenset[str]]]] = {
    "usage.": (None, frozenset({*NAMES.values(), "output_tokens_details", "iterations"})),
    "usage.output_tokens_details.": ("output_tokens_details", frozenset({"thinking_tokens"})),
}
"""What is read of a `usage` object, and of the one in it."""

FALLBACK: Final = "fallback_message"
OWN: Final = "message"
"""The iterations that the answer took; a compaction's and an advisor's are not in its counts."""


def usage_of(counts: Any, before: Usage | None = None, ledger: Ledger | None = None) -> Usage | None:
    """A `usage` object; what it does not say, or says as null, stays as it was `before`. None: nobody counted.
    `ledger`: see `count_of`.

    `output_tokens` holds the thinking. Counts replace earlier ones, never add to them. What the answer took in several
    iterations is their sum; but with a fallback these counts tell the whole.
    """
    if not isinstance(counts, dict):
        return before
    details = counts.get("output_tokens_details")
    told = {name: count_of(counts.get(member), ledger) for name, member in NAMES.items()}
    told["reasoning"] = count_of(details.get("thinking_tokens"), ledger) if isinstance(details, dict) else None
    told |= _summed(counts.get("iterations"), ledger)
    found = {name: count for name, count in told.items() if count is not None}
    if not found:
        return before
    return evolve(before or Usage(), **found)


def counts_of(usage: Usage | None, estimate: Usage | None = None) -> dict[str, Any]:
    """Token counts as Messages writes them. What went in is the estimate's where they do not tell it."""
    usage = usage or Usage()
    if estimate is not None and not tells_input(usage):
        usage = evolve(usage, input=estimate.input)
    written: dict[str, Any] = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return written


def _summed(iterations: Any, ledger: Ledger | None) -> dict[str, int | None]:
    """What the model's own iterations took together, as far as they tell."""
    told = [one for one in iterations if isinstance(one, dict)] if isinstance(iterations, list) else []
    if any(one.get("type") == FALLBACK for one in told):
        return {}
    sums: dict[str, int | None] = {}
    for name, member in NAMES.items():
        counts = [count_of(one.get(member), ledger) for one in told if one.get("type") == OWN]
        if found := [count for count in counts if count is not None]:
            sums[name] = min(sum(found), MOST)
    if len(told) > 1 and ledger is not None:
        ledger.record("MessagesNormalizer", "usage.iterations", "summed up", "clients are told what the answer took")
    return sums
