"""Token counts: Chat's are inclusive and stand in several places; ours are exclusive."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from pipeline.events import Usage


def usage_of(counts: Mapping[str, Any], before: Usage | None = None) -> Usage:
    """A `usage` object in exclusive counts; what it does not say stays as it was `before`.

    `prompt_tokens` holds the cached and the cache-written tokens, wherever the vendor tells them apart (OpenAI and
    Alibaba in its details, Moonshot beside it, DeepSeek as hits). More cached than prompt tokens means that the vendor
    counts them exclusively already. `completion_tokens` holds the reasoning, unless the total says that it does not
    (xAI).
    """
    usage = before or Usage()
    prompt, output = counts.get("prompt_tokens"), counts.get("completion_tokens")
    details = _object(counts.get("prompt_tokens_details"))
    read = _first(
        details.get("cached_tokens"),
        counts.get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cache_read_input_tokens"),
    )
    write = _first(
        details.get("cache_write_tokens"),
        details.get("cache_creation_input_tokens"),
        counts.get("cache_creation_input_tokens"),
    )
    details = _object(counts.get("completion_tokens_details"))
    reasoning = _first(details.get("reasoning_tokens"), counts.get("reasoning_tokens"))
    unseen = reasoning if _count(counts.get("total_tokens")) == _count(prompt) + _count(output) + reasoning else 0
    inclusive = read + write <= _count(prompt)
    return Usage(
        input=usage.input if prompt is None else _count(prompt) - (read + write if inclusive else 0),
        cache_read=usage.cache_read if prompt is None else read,
        cache_write=usage.cache_write if prompt is None else write,
        output=usage.output if output is None else _count(output) + unseen,
        reasoning=usage.reasoning if output is None else reasoning,
    )


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


def _first(*values: Any) -> int:
    return next((count for count in map(_count, values) if count), 0)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return 0
    return max(0, int(value))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
