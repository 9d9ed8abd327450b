"""Text that an announcement tells, until it is known what the deltas behind it are: more of it, or it again."""

from typing import Final

from attrs import define, field

INSTEAD: Final = ("announcement", "the deltas behind it say something else")
NONE: Final = ("", "{}")
"""What a call is announced with that has no arguments yet."""


@define(eq=False)
class Announced:
    """A text as its announcement tells it; nothing of it was said yet."""

    text: str
    whole: bool = False
    """Nothing can stand behind it: other deltas stand for it."""
    lost: bool = field(init=False, default=False)
    """Other deltas stand for what it tells."""
    _again: int = field(init=False, default=0)
    """How much of it the deltas have told again."""

    def behind(self, delta: str) -> str | None:
        """What is to be said now that this came behind it; None while it may be told again."""
        if self.text.startswith(delta, self._again):
            self._again += len(delta)
            return self.text if self._again == len(self.text) else None
        if delta.startswith(rest := self.text[self._again :]):
            return self.text + delta[len(rest) :]
        self.lost = self.whole and self.text.strip() not in NONE
        return ("" if self.whole else self.text) + self.text[: self._again] + delta
