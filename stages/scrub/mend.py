"""JSON as models write it when they do not write JSON: what is meant, where that is certain."""

import math
import re
from typing import Any

from attrs import define

from pipeline.jsontext import dumps, end_of, holds_object, loads, whole_text

LEAKED_QUOTE = '<|"|>'
LEAKED_QUOTES = (LEAKED_QUOTE, '<|">')
"""Tokens of some models that stand for a quote; the second only closes."""
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
"""What may open a string, and what closes it then."""
LAYERS = 16
"""So many doubled braces are one."""

_SKIPPED = re.compile(r"(?:[ \t\n\r]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_KEY = re.compile(r"""["'“‘]([^"'“”‘’\\{}\n:]*)["'”’](?=\s*:)|([A-Za-z_][A-Za-z0-9_.-]*)(?=\s*:)""")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]+(?!\w)")
_STRINGS = {
    opening: re.compile(rf"([^{closing}\\]*+(?:\\.[^{closing}\\]*+)*+){closing}", re.DOTALL)
    for opening, closing in QUOTES.items()
}
_LEAKED = re.compile(r'(.*?)<\|"(?:\|)?>', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)

WORDS: dict[str, Any] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"', "'": "'", "\n": "\n"}
"""What an escape says. One that is none stands for itself, its backslash included."""


def mend(text: str, *, depth: int, missing: int = 0) -> Any:
    """The object or array that a text means.

    Mended are: trailing commas, single and curly quotes, keys with two kinds of quotes or none, Python's words, control
    characters in strings, escapes that are none, comments, doubled braces, leaked quote tokens, and, if so many are
    said to be `missing`, a last bracket. Raises `ValueError` if it is something else.
    """
    return mend_told(text, depth=depth, missing=missing)[0]


def mend_told(text: str, *, depth: int, missing: int = 0, call: bool = False) -> tuple[Any, bool]:
    """The same, and whether a member of an object was given again: the last one counts, as it does to readers of JSON.
    If the objects say a `call` each, then of those, and of their `function`, the first one does."""
    mender = _Mender(text, missing, depth, call=call)
    mender.skip()
    if not text.startswith(("{", "["), mender.at):
        raise ValueError("neither an object nor an array")
    try:
        value = mender.value()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    mender.skip()
    if mender.at != len(text):
        raise ValueError(f"something stands behind the value, at {mender.at}")
    return value, mender.repeated


def meant_object(text: str, *, depth: int) -> str | None:
    """The JSON text of the object that a text means, every reader's; None if it means none.

    Raises `LimitExceeded` if the text is nested more deeply than `depth`.
    """
    try:
        value = loads(text, depth) if holds_object(text, depth) else mend(text.strip(), missing=1, depth=depth)
    except ValueError:
        return None
    return dumps(value).decode() if isinstance(value, dict) else None


@define
class _Mender:
    """Reads one value where it stands."""

    text: str
    missing: int
    depth: int
    at: int = 0
    layers: int = 0
    repeated: bool = False
    call: bool = False
    """What stands here says a call."""

    def skip(self) -> None:
        """Go past blanks and comments."""
        self.at = end_of(_SKIPPED, self.text, self.at)

    def value(self) -> Any:
        """The value that stands here."""
        char = self.text[self.at : self.at + 1]
        if char in ("{", "["):
            self.depth -= 1
            if self.depth < 0:
                raise ValueError("nested too deeply")
            value = self._object() if char == "{" else self._array()
            self.depth += 1
            return value
        if char in QUOTES or self.text.startswith(LEAKED_QUOTE, self.at):
            return self._string(char)
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _number(number)
        word = _WORD.match(self.text, self.at)
        if word is None or word.group() not in WORDS:
            raise ValueError(f"no value at {self.at}")
        self.at = word.end()
        return WORDS[word.group()]

    def _object(self) -> dict[str, Any]:
        """An object; one that is doubled is the one inside."""
        self.at += 1
        self.skip()
        if self.text.startswith("{", self.at):
            return self._doubled()
        found: dict[str, Any] = {}
        call = self.call
        while not self._ends("}"):
            key = self._key()
            self.skip()
            if not self._takes(":"):
                raise ValueError(f"no value for {key!r}")
            self.skip()
            self.call = call and key == "function"
            value = self.value()
            self.repeated = self.repeated or key in found
            if not (call and key in found):
                found[key] = value
            self._part("}")
        self.call = call
        return found

    def _doubled(self) -> dict[str, Any]:
        """The object inside a doubled brace."""
        self.layers += 1
        if self.layers > LAYERS:
            raise ValueError("too many braces")
        inner: dict[str, Any] = self.value()
        self.skip()
        if not self._ends("}"):
            raise ValueError("a doubled brace is not closed")
        return inner

    def _array(self) -> list[Any]:
        self.at += 1
        self.skip()
        found = []
        while not self._ends("]"):
            found.append(self.value())
            self._part("]")
        return found

    def _part(self, closing: str) -> None:
        """Go past the comma behind a member; before the closing bracket none need stand."""
        self.skip()
        if self._takes(","):
            self.skip()
        elif self.at < len(self.text) and not self.text.startswith(closing, self.at):
            raise ValueError(f"no comma at {self.at}")

    def _ends(self, closing: str) -> bool:
        """Go past the closing bracket, if it stands here, or may be missing."""
        if self.at >= len(self.text):
            self.missing -= 1
            if self.missing < 0:
                raise ValueError(f"{closing} is missing")
            return True
        return self._takes(closing)

    def _takes(self, char: str) -> bool:
        if not self.text.startswith(char, self.at):
            return False
        self.at += 1
        return True

    def _key(self) -> str:
        if found := _KEY.match(self.text, self.at):
            self.at = found.end()
            return found[1] if found[1] is not None else found[2]
        return self._string(self.text[self.at : self.at + 1])

    def _string(self, opening: str) -> str:
        if self.text.startswith(LEAKED_QUOTE, self.at):
            found, self.at = _LEAKED.match(self.text, self.at + len(LEAKED_QUOTE)), self.at + len(LEAKED_QUOTE)
        else:
            found = _STRINGS[opening].match(self.text, self.at + 1) if opening in _STRINGS else None
        if found is None:
            raise ValueError(f"no string at {self.at}")
        self.at = found.end()
        return whole_text(_ESCAPE.sub(_escaped, found[1]))


def _escaped(found: "re.Match[str]") -> str:
    return chr(int(found[1], 16)) if found[1] else ESCAPES.get(found[2], found.group())


def _number(found: "re.Match[str]") -> int | float:
    if found[1] is None and found[2] is None:
        return int(found.group())
    number = float(found.group())
    if not math.isfinite(number):
        raise ValueError(f"{found.group()} is too large")
    return number
