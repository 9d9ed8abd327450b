"""Token counts: Responses' are inclusive, ours are exclusive."""

from collections.abc import Mapping
from typing import Any, Final

from pipeline.counts import count_of
from pipeline.events import Usage
from pipeline.ledger import Ledger
from pipeline.unread import Unread, says

COUNTS: Final[dict[str, tuple[str | None, frozenset[str]]]] = {
    "usage.": (
        None,
        frozenset(
            {
                *("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"),
                *("prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details"),
            }
        ),
    ),
    "usage.input_tokens_details.": ("input_tokens_details", frozenset({"cached_tokens", "cache_write_tokens"})),
    "usage.output_tokens_details.": ("output_tokens_details", frozenset({"reasoning_tokens"})),
}
"""What is read of a `usage` object, and of those in it."""


def tells(usage: Any) -> bool:
    """Whether a `usage` object counts anything, in the words that are read."""
    names = ("input_tokens", "prompt_tokens", "output_tokens", "completion_tokens")
    return isinstance(usage, dict) and any(count_of(usage.get(name)) is not None for name in names)


def counted(usage: Any, ledger: Ledger, unread: Unread) -> Usage | None:
    """The counts of a `usage` object; None if there are none in it, as if there were no such object."""
    if not tells(usage):
        if says(usage):
            ledger.record("ResponsesNormalizer", "usage", "ignored", "it holds no count of tokens")
        return None
    for prefix, (member, read) in COUNTS.items():
        unread.note(usage if member is None else usage.get(member), read, prefix)
    return usage_of(usage, ledger)


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
