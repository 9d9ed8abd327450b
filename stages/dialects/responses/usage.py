"""Token counts: Responses' are inclusive, ours are exclusive."""

from collections.abc import Mapping
from typing import Any

from pipeline.counts import count_of
from pipeline.events import Usage
from pipeline.ledger import Ledger


def usage_of(counts: Mapping[str, Any], ledger: Ledger | None = None) -> Usage:
    """A `usage` object in exclusive counts. `ledger`: see `count_of`.

    `input_tokens` holds the cached and the cache-written tokens, `output_tokens` the reasoning. Servers that write
    Chat's names are read too. More cached than input tokens means that they are counted exclusively already.
    """
    read_from = _object(counts.get("input_tokens_details") or counts.get("prompt_tokens_details"))
    spent_on = _object(counts.get("output_tokens_details") or counts.get("completion_tokens_details"))
    total = count_of(counts.get("input_tokens", counts.get("prompt_tokens")), ledger) or 0
    read = count_of(read_from.get("cached_tokens"), ledger) or 0
    write = count_of(read_from.get("cache_write_tokens"), ledger) or 0
    return Usage(
        input=total - read - write if read + write <= total else total,
        cache_read=read,
        cache_write=write,
        output=count_of(counts.get("output_tokens", counts.get("completion_tokens")), ledger) or 0,
        reasoning=count_of(spent_on.get("reasoning_tokens"), ledger) or 0,
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    """The counts as a `usage` object, complete: Codex refuses one that lacks a total or a detail."""
    total = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": total + usage.output,
    }


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
