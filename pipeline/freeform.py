"""A freeform tool's text inside a function's one string: taken out of it, and put into it, while it streams."""

import json
import re
from enum import Enum, auto
from typing import Any, Final

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.jsontext import BLANK, dumps, loads, size_of, whole_text
from pipeline.limits import DEFAULT_LIMITS, Limits

MEMBER: Final = '"input"'
"""The one member of the function (`pipeline.toolnames.WRAPPED_SCHEMA`)."""

_BEGINNING = ("{", MEMBER, ":", '"')
_HEAD = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"input"[ \t\n\r]*:[ \t\n\r]*"')
_HEAD_CHARS = 100
"""Within so many characters the string begins, or what comes is something else."""
_JSON = re.compile(r'[ \t\n\r]*+(?:"|\{[ \t\n\r]*+(?:[}"]|\Z)|\Z)')
"""How a string or an object begins, or what may become one."""
_INSIDE = re.compile(r'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+', re.DOTALL)
"""The inside of a JSON string, up to its closing quote or to an escape that has not come whole."""
_HALF = re.compile(r"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")
"""At the end of that, the first half of a character that two escapes make."""
_ESCAPE_CHARS = 6


class _State(Enum):
    HEAD = auto()  # before the string: kept
    STRING = auto()  # inside it
    TAIL = auto()  # behind it: nothing more is said
    OTHER = auto()  # another object, or a string: kept to the end
    RAW = auto()  # the input itself, or what cannot be kept or read: passed on as it comes


@define
class Unwrapped:
    """The text inside `{"input": "..."}`, fed as fragments and given out as far as it is certain.

    What is no JSON is the text itself. So is a JSON string, decoded; and an object without that text, as it was
    written: it is given at the end, since the member may come late in it, or be spelled in another way.
    """

    limits: Limits = DEFAULT_LIMITS
    held: int = field(init=False, default=0)
    """Bytes of what is kept."""
    odd: bool = field(init=False, default=False)
    """Something stood beside the string, or behind it, that cannot be said."""
    bare: bool = field(init=False, default=False)
    """It was the text itself, and no object with it."""
    _state: _State = field(init=False, default=_State.HEAD)
    _kept: list[str] = field(init=False, factory=list)

    def feed(self, text: str) -> str:
        """What of the input may be written now."""
        if self._state is _State.STRING:
            return self._inside(self._taken() + text)
        if self._state is _State.TAIL:
            self._behind(text)
            return ""
        if self._state is _State.RAW:
            return text
        self._keep(text)
        if self._state is _State.HEAD:
            head = "".join(self._kept)
            if found := _HEAD.match(head, 0, _HEAD_CHARS):
                self._taken()
                self._state = _State.STRING
                return self._inside(head[found.end() :])
            if not _may_hold(head):
                self._state, self.bare = _State.RAW, True
                return self._taken()
            if len(head) > _HEAD_CHARS:
                self._state = _State.OTHER
        if self.held > self.limits.held_bytes:
            self._state = _State.RAW
            return self._taken()
        return ""

    def close(self, whole: bool = True) -> str:
        """What is still to be written at the end of the call. Half an escape is nothing, nor is an empty object."""
        kept = self._taken()
        if self._state is not _State.HEAD and self._state is not _State.OTHER:
            return ""
        text, beside = _text_of(kept, self.limits.json_depth)
        self.odd = self.odd or beside
        self.bare = text is None or kept.lstrip(BLANK).startswith('"')
        return kept if text is None else text

    def _inside(self, text: str) -> str:
        found = _INSIDE.match(text)
        end = found.end() if found else 0  # it always matches
        inside, rest = text[:end], text[end:]
        if rest.startswith('"'):
            self._state = _State.TAIL
            self._behind(rest[1:])
            return _unescaped(inside)
        if len(rest) >= _ESCAPE_CHARS:  # no escape at all
            self._state = _State.RAW
            return _unescaped(inside) + rest
        if half := _HALF.search(inside):
            inside, rest = inside[: half.start(1)], half[1] + rest
        self._keep(rest)
        return _unescaped(inside)

    def _behind(self, text: str) -> None:
        self.odd = self.odd or bool(text.strip(BLANK + "}"))

    def _keep(self, text: str) -> None:
        self._kept.append(text)
        self.held += size_of(text)

    def _taken(self) -> str:
        kept, self._kept, self.held = "".join(self._kept), [], 0
        return kept


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


def beginning(text: str) -> int:
    """Where the string of `{"input": "` begins; 0 if it may still come, -1 if it cannot."""
    at = 0
    for token in _BEGINNING:
        while at < len(text) and text[at] in BLANK:
            at += 1
        if not text.startswith(token, at):
            return 0 if token.startswith(text[at:]) else -1
        at += len(token)
    return at


def _may_hold(head: str) -> bool:
    """Whether a beginning may be that of a string, or of an object, wherever in it the one member comes."""
    return _JSON.match(head) is not None


def _text_of(kept: str, depth: int) -> tuple[str | None, bool]:
    """The text that a JSON value holds: an object with the one member, or none, or a string, also one that is such an
    object; None if it is another. And whether there is more beside it."""
    said = _read(kept, depth)
    text, beside = _member(_read(said, depth) if isinstance(said, str) else said)
    if text is None and isinstance(said, str):
        text = said
    if text is not None:
        return whole_text(text), beside
    return "" if said == {} or not kept.strip(BLANK) else None, False


def _member(said: Any) -> tuple[str | None, bool]:
    """The text of the one member, and whether there are others; None if it is no object with such a text."""
    text = said.get("input") if isinstance(said, dict) else None
    return (text, len(said) > 1) if isinstance(text, str) else (None, False)


def _read(text: str, depth: int) -> Any:
    try:
        return loads(text, depth)
    except (ValueError, LimitExceeded):
        return None


def _unescaped(inside: str) -> str:
    """What the inside of a JSON string says, its control characters included."""
    try:
        return whole_text(json.loads(f'"{inside}"', strict=False))
    except ValueError:
        return inside
