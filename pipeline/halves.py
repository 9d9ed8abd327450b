"""Characters that a server cut in two."""

from collections.abc import Iterable

from attrs import define, field

from pipeline.jsontext import whole_text


@define
class Halves:
    """Joins the halves of a character that two deltas brought; half a character alone becomes U+FFFD."""

    odd: bool = field(init=False, default=False)
    """A half is waiting."""
    _waiting: dict[str, str] | None = field(init=False, default=None)
    """Keys and their halves; hardly ever is there one."""

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return len(self._waiting or ())

    def joined(self, key: str, text: str) -> str:
        """The text that can be passed on for `key`; a leading half at its end waits for the next."""
        if not text or (text.isascii() and not self.odd):
            return text
        waiting = self._waiting = {} if self._waiting is None else self._waiting
        text = waiting.pop(key, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            waiting[key] = text[-1]
            text = text[:-1]
        self.odd = bool(waiting)
        return whole_text(text)

    def rest(self) -> Iterable[tuple[str, str]]:
        """What still waits, by key, without its other half."""
        waiting, self._waiting, self.odd = self._waiting, None, False
        return [(key, "\ufffd") for key in waiting or ()]
