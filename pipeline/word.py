"""What a value off the wire is looked up as."""

from typing import Any


def word(value: Any) -> str:
    """A text as it is, and anything else as the empty one, which no table has.

    A list or an object cannot be looked up at all: whatever a member holds, looking for it is to raise nothing.
    """
    return value if isinstance(value, str) else ""
