"""What a call's strings may hold: the name of a tool, and whole characters."""

import re

from pipeline.jsontext import HALF_ESCAPED, is_whole, whole_text

_UNNAMED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
"""What no name holds: control characters, halves of characters, and what becomes of those."""

_FIRST, _SECOND, _HEX = "u[dD][89abAB]", "u[dD][c-fC-F]", "[0-9a-fA-F]{2}"
_ESCAPES = re.compile(rf"\\(?:{_FIRST}{_HEX}\\{_SECOND}{_HEX}|(u[dD][89a-fA-F]{_HEX})|.)", re.DOTALL)
"""Escapes; a group is half of a character that lacks the other."""


def name_of(text: str) -> str:
    """The name of a tool that a text says; empty if it can be none."""
    name = text.strip()
    return "" if _UNNAMED.search(name) else name


def whole_escapes(text: str) -> str:
    """A JSON text with no half of a character in its strings: what lacks the other half is U+FFFD. It stays as it is
    written but for that."""
    if not is_whole(text):
        text = whole_text(text)
    if HALF_ESCAPED.search(text) is None:
        return text
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found.group(), text)
