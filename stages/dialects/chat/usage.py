"""Token counts: Chat's are inclusive and stand in several places; ours are exclusive."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from pipeline.events import Usage


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """A `usage` object in exclusive counts.

    `prompt_tokens` holds the cached and the cache-written tokens, wherever the vendor tells them apart (OpenAI and
    Alibaba in its details, Moonshot beside it, DeepSeek as hits). More cached than prompt tokens means that the vendor
    counts them exclusively already. `completion_tokens` holds the reasoning.
    """
    prompt_details = _object(counts.get("prompt_tokens_details"))
    completion_details = _object(counts.get("completion_tokens_details"))
    prompt = _count(counts.get("prompt_tokens"))
    read = _first(
        prompt_details.get("cached_tokens"),
        counts.get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cache_read_input_tokens"),
    )
    write = _first(
        prompt_details.get("cache_write_tokens"),
        prompt_details.get("cache_creation_input_tokens"),
        counts.get("cache_creation_input_tokens"),
    )
    return Usage(
        input=prompt - read - write if read + write <= prompt else prompt,
        cache_read=read,
        cache_write=write,
        output=_count(counts.get("completion_tokens")),
        reasoning=_first(completion_details.get("reasoning_tokens"), counts.get("reasoning_tokens")),
    )


def _first(*values: Any) -> int:
    return next((count for count in map(_count, values) if count), 0)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return 0
    return max(0, int(value))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
