"""Citations on a Chat answer: collected, and written all at once.

The official SDKs join a list that comes once; of one that comes in pieces the Python SDK's helper raises, and the other
keeps the last piece (openai 3.57, npm openai 7.59).
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from pipeline.citations import Page
from pipeline.jsontext import dumps
from pipeline.limits import DEFAULT_LIMITS

NOTE: Final = "url_citation"
"""The one kind of note that Chat has."""


@define
class Notes:
    """The citations of one message, bounded in bytes."""

    most: int = DEFAULT_LIMITS.held_bytes
    held: int = field(init=False, default=0)
    _notes: list[dict[str, Any]] = field(init=False, factory=list)

    def take(self, annotation: Mapping[str, Any], base: int, end: int) -> bool:
        """Keep a note on the text that began at `base` and has come to `end`; False if Chat has no such note.

        Its places are counted in the message's whole text. Chat's own (nested by their type) are already; another API's
        are counted from the beginning of its text. One that names none is on all of it.
        """
        if annotation.get("type") != NOTE:
            return False
        nested = annotation.get(NOTE)
        own, told, shift = (True, nested, 0) if isinstance(nested, dict) else (False, annotation, base)
        places = {
            "start_index": _place(told.get("start_index"), shift, base),
            "end_index": _place(told.get("end_index"), shift, end),
        }
        words = {"url": _word(told.get("url")), "title": _word(told.get("title"))}
        more = {name: value for name, value in told.items() if own and name not in {*places, *words}}
        note = {"type": NOTE, NOTE: {**places, **words, **more}}
        size = len(dumps(note))
        if not words["url"] or self.held + size > self.most:
            return False
        self.held += size
        self._notes.append(note)
        return True

    def cite(self, page: Page, base: int) -> bool:
        """Keep another API's page, cited for all of the text that began at `base`: `last` is to be told its end."""
        return self.take({"type": NOTE, "url": page.url, "title": page.title}, base, base)

    @property
    def last(self) -> dict[str, Any]:
        """What is noted last."""
        note: dict[str, Any] = self._notes[-1][NOTE]
        return note

    def taken(self) -> list[dict[str, Any]]:
        """All of them, which are no longer kept."""
        notes, self._notes, self.held = self._notes, [], 0
        return notes


def _place(value: Any, shift: int, otherwise: int) -> int:
    return value + shift if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
