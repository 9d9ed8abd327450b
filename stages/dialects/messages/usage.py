"""Token counts, which are exclusive in Messages too."""

from typing import Any

from attrs import evolve

from pipeline.counts import count_of
from pipeline.events import Usage
from pipeline.ledger import Ledger


def usage_of(counts: Any, before: Usage | None = None, ledger: Ledger | None = None) -> Usage | None:
    """A `usage` object; what it does not say, or says as null, stays as it was `before`. None: nobody counted.
    `ledger`: see `count_of`.

    `output_tokens` holds the thinking. Counts replace earlier ones, never add to them.
    """
    if not isinstance(counts, dict):
        return before
    details = counts.get("output_tokens_details")
    told = {
        "input": count_of(counts.get("input_tokens"), ledger),
        "cache_read": count_of(counts.get("cache_read_input_tokens"), ledger),
        "cache_write": count_of(counts.get("cache_creation_input_tokens"), ledger),
        "output": count_of(counts.get("output_tokens"), ledger),
        "reasoning": count_of(details.get("thinking_tokens"), ledger) if isinstance(details, dict) else None,
    }
    found = {name: count for name, count in told.items() if count is not None}
    if not found:
        return before
    return evolve(before or Usage(), **found)


def counts_of(usage: Usage) -> dict[str, Any]:
    """Token counts as Messages writes them."""
    written: dict[str, Any] = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return written
