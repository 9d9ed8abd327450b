"""A freeform tool's text inside a function's one string: taken out of it, and put into it, while it streams."""

import json
import re
from enum import Enum, auto
from typing import Final

from attrs import define, field

from pipeline.halves import Halves
from pipeline.jsontext import BLANK, dumps

MEMBER: Final = '"input"'
"""The one member of the function (`pipeline.toolnames.WRAPPED_SCHEMA`)."""

_BEGINNING = ("{", MEMBER, ":", '"')
_STRING = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_EMPTY = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*\}[ \t\n\r]*\Z")
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


class _State(Enum):
    HEAD = auto()  # it may still become `{"input": "`
    TEXT = auto()  # inside the string
    AFTER = auto()  # behind it
    RAW = auto()  # it is something else: passed on as it comes


@define
class Unwrapped:
    """The text inside `{"input": "..."}`, fed as fragments and given out as far as it is certain.

    What turns out to be something else is given out as it was written.
    """

    _state: _State = field(init=False, default=_State.HEAD)
    _held: str = field(init=False, default="")
    _halves: Halves = field(init=False, factory=Halves)

    def feed(self, text: str) -> str:
        """What may be written now."""
        if self._state is _State.RAW:
            return text
        if self._state is _State.AFTER:
            return ""
        text, self._held = self._held + text, ""
        if self._state is _State.TEXT:
            return self._text(text)
        begun = _beginning(text)
        if begun > 0:
            self._state = _State.TEXT
            return self._text(text[begun:])
        if begun == 0 or _EMPTY.match(text):
            self._held = text
            return ""
        self._state = _State.RAW
        return text

    def close(self, whole: bool) -> str:
        """At the end: what is still to be written. An empty object is an empty text."""
        held, self._held = self._held, ""
        if self._state is _State.HEAD:
            return "" if _EMPTY.match(held) else held
        return "".join(half for _, half in self._halves.rest())

    def _text(self, text: str) -> str:
        """Inside the string: what of it is whole."""
        found = _STRING.match(text)
        end = found.end() if found else 0  # it always matches
        rest = text[end:]
        if rest.startswith('"'):
            self._state = _State.AFTER
        elif _ESCAPE_BEGUN.match(rest):
            self._held = rest
        return self._halves.joined("", json.loads(f'"{text[:end]}"', strict=False))


@define
class Wrapped:
    """A freeform text as `{"input": "..."}`, fed as fragments; what was cut stays open."""

    _begun: bool = field(init=False, default=False)

    def feed(self, text: str) -> str:
        """What may be written now."""
        inside = dumps(text)[1:-1].decode()
        if self._begun:
            return inside
        self._begun = True
        return "".join(_BEGINNING) + inside

    def close(self, whole: bool) -> str:
        """At the end: what is still to be written."""
        begun = "" if self._begun else "".join(_BEGINNING)
        return begun + '"}' if whole else begun


def _beginning(text: str) -> int:
    """Where the string of `{"input": "` begins; 0 if it may still come, -1 if it cannot."""
    at = 0
    for token in _BEGINNING:
        while at < len(text) and text[at] in BLANK:
            at += 1
        if not text.startswith(token, at):
            return 0 if token.startswith(text[at:]) else -1
        at += len(token)
    return at
