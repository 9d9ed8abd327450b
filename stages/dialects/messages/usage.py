"""Token counts, which are exclusive in Messages too."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from attrs import evolve

from pipeline.events import Usage


def usage_of(counts: Any, before: Usage | None = None) -> Usage | None:
    """A `usage` object; what it does not say, or says as null, stays as it was `before`. None: nobody counted.

    `output_tokens` holds the thinking. Counts replace earlier ones, never add to them.
    """
    if not isinstance(counts, dict):
        return before
    details = counts.get("output_tokens_details")
    told = {
        "input": _count(counts, "input_tokens"),
        "cache_read": _count(counts, "cache_read_input_tokens"),
        "cache_write": _count(counts, "cache_creation_input_tokens"),
        "output": _count(counts, "output_tokens"),
        "reasoning": _count(details, "thinking_tokens") if isinstance(details, dict) else None,
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


def _count(counts: Mapping[str, Any], name: str) -> int | None:
    """A count; an odd one counts as absent."""
    value = counts.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return max(0, int(value))
