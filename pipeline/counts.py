"""A count of tokens, as a provider's JSON tells it."""

from math import inf
from typing import Any, Final

from pipeline.ledger import Ledger

MOST: Final = 2**53 - 1
"""The largest count. Beyond it JavaScript loses digits, and a sum may not fit into the 64 bits of other clients."""


def count_of(value: Any, ledger: Ledger | None = None) -> int | None:
    """A count; None for what is none, and one beyond `MOST` is that, both of which are recorded; null says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        if value is not None and ledger is not None:
            ledger.record("counts", "usage", "ignored", "a count that is no number, or below zero")
        return None
    if value > MOST and ledger is not None:
        ledger.record("counts", "usage", f"bounded to {MOST}", "no client reads so large a count to the digit")
    return min(int(value), MOST)
