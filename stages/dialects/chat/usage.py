"""Token counts: Chat's are inclusive and stand in several places; ours are exclusive."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import define, field

from pipeline.counts import count_of
from pipeline.events import Usage
from pipeline.ledger import Ledger
from pipeline.unread import Unread, says

COUNTS: Final[dict[str, tuple[str | None, frozenset[str]]]] = {
    "usage.": (
        None,
        frozenset(
            {
                *("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"),
                *("prompt_tokens_details", "completion_tokens_details"),
                *("prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
                *("cache_read_input_tokens", "cache_creation_input_tokens"),
            }
        ),
    ),
    "usage.prompt_tokens_details.": (
        "prompt_tokens_details",
        frozenset({"cached_tokens", "cache_write_tokens", "cache_creation_input_tokens"}),
    ),
    "usage.completion_tokens_details.": ("completion_tokens_details", frozenset({"reasoning_tokens"})),
}
"""What is read of a `usage` object, and of those in it. The misses of a cache are what its hits leave."""


def tells(usage: Any) -> bool:
    """Whether a `usage` object counts anything, in this dialect's words."""
    return isinstance(usage, dict) and any(
        count_of(usage.get(name)) is not None for name in ("prompt_tokens", "completion_tokens")
    )


def usage_of(counts: Mapping[str, Any], before: Usage | None = None, ledger: Ledger | None = None) -> Usage:
    """A `usage` object in exclusive counts; what it does not say stays as it was `before`. `ledger`: see `count_of`.

    `prompt_tokens` holds the cached and the cache-written tokens, wherever the vendor tells them apart (OpenAI and
    Alibaba in its details, Moonshot beside it, DeepSeek as hits). More cached than prompt tokens means that the vendor
    counts them exclusively already. `completion_tokens` holds the reasoning, unless the total says that it does not
    (xAI).
    """
    usage = before or Usage()
    prompt = count_of(counts.get("prompt_tokens"), ledger)
    output = count_of(counts.get("completion_tokens"), ledger)
    details = _object(counts.get("prompt_tokens_details"))
    read = _first(
        ledger,
        details.get("cached_tokens"),
        counts.get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cache_read_input_tokens"),
    )
    write = _first(
        ledger,
        details.get("cache_write_tokens"),
        details.get("cache_creation_input_tokens"),
        counts.get("cache_creation_input_tokens"),
    )
    details = _object(counts.get("completion_tokens_details"))
    reasoning = _first(ledger, details.get("reasoning_tokens"), counts.get("reasoning_tokens"))
    whole = (prompt or 0) + (output or 0)
    unseen = reasoning if count_of(counts.get("total_tokens")) == whole + reasoning else 0
    inclusive = read + write <= (prompt or 0)
    return Usage(
        input=usage.input if prompt is None else prompt - (read + write if inclusive else 0),
        cache_read=usage.cache_read if prompt is None else read,
        cache_write=usage.cache_write if prompt is None else write,
        output=usage.output if output is None else output + unseen,
        reasoning=usage.reasoning if output is None else reasoning,
    )


@define
class Counting:
    """The counts of one message, wherever it tells them: the last ones, but that zeros behind counts are none."""

    ledger: Ledger
    unread: Unread
    usage: Usage | None = field(init=False, default=None)
    """None: nobody counted."""
    _begun: Usage | None = field(init=False, default=None)

    def begun(self) -> Usage | None:
        """The counts that are known when the message begins."""
        self._begun = self.usage
        return self.usage

    def news(self) -> Iterable[str]:
        """The member that tells them at its end, if that is not what was known before."""
        return () if self.usage == self._begun else ("usage",)

    def hear(self, usage: Any) -> None:
        """A `usage` object, or what stands in its place."""
        if not usage:
            return
        if not tells(usage):
            if says(usage):
                self.ledger.record("ChatNormalizer", "usage", "ignored", "it holds no count of tokens")
            return
        counted = usage_of(usage, self.usage, self.ledger)
        if self.usage is None or counted != Usage():
            self.usage = counted
        for prefix, (member, read) in COUNTS.items():
            self.unread.note(usage if member is None else usage.get(member), read, prefix)


def usage_object(usage: Usage) -> dict[str, Any]:
    """The counts as a `usage` object, complete."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": min(usage.reasoning, usage.output)},
    }


def _first(ledger: Ledger | None, *values: Any) -> int:
    return next((count for value in values if (count := count_of(value, ledger))), 0)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
