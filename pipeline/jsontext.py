"""Reading JSON as providers write it, and telling where a JSON value ends."""

import json
import re
import secrets
import sys
from collections.abc import Iterator
from math import isfinite
from typing import Any, NoReturn

import orjson
from attrs import define, field, frozen

from pipeline.errors import LimitExceeded

BLANK = " \t\n\r"
"""JSON's own blanks (RFC 8259, section 2)."""

HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that is half of a character; mostly the other half stands beside it."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_DIGITS = sys.float_info.max_10_exp
"""So many digits may a whole number have, that it can be reckoned with as any other."""
_STRUCTURE = re.compile(r'["{}\[\]]')
_LONG = 19
"""So many digits may not fit into 64 bits."""
_STRING_REST = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)  # possessive: no memory of where to go back to


def loads(data: bytes | str, depth: int = 200) -> Any:
    """The value of a JSON text.

    What orjson refuses is tried with the standard library: lone surrogates stay in the strings (see `whole_text`),
    invalid UTF-8 becomes U+FFFD, a number too large for Python is its text (`Verbatim`). NaN and Infinity are no JSON.

    Raises `ValueError` if it is no JSON, `LimitExceeded` if it is nested deeper than `depth`.
    """
    if len(data) > 2 * depth:
        check_depth(data, depth)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return exact(data)


def value_of(text: str, depth: int = 200) -> Any:
    """The value of a JSON text that came back from a client; None if it is none, or nested too deeply."""
    try:
        return loads(text, depth)
    except (ValueError, LimitExceeded):
        return None


def exact(data: bytes | str) -> Any:
    """The value of a JSON text by the standard library: slower, integers above 64 bits survive, and what is too large
    for a number is its text.

    Raises `ValueError` if it is no JSON.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_integer, strict=True)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_written(data: bytes) -> Any:
    """The value of a JSON text whose numbers `dumps` writes as they stand in it, but for whole ones of few digits.

    Raises `ValueError` if it is no JSON.
    """
    text = data.decode("utf-8", "replace")
    return json.loads(text, parse_float=Verbatim, parse_int=_number, parse_constant=_refuse)


def several(data: bytes) -> Iterator[Any]:
    """The values of JSON texts that stand one behind the other, parted by blanks at most.

    NaN and Infinity, which Python's servers write, are null; a number too large for Python is its text.

    Raises `ValueError` at the first thing that is no JSON.
    """
    text = data.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder(parse_constant=_nothing, parse_float=_float, parse_int=_integer)
    at = 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        yield value
        while at < len(text) and text[at] in BLANK:
            at += 1


@frozen
class Verbatim:
    """A JSON text in a value, which `dumps` writes as it is: every digit, every blank."""

    text: str


def verbatim(text: str) -> Any:
    """A JSON text as a value that `dumps` writes as it is, but for halves of characters, which break strict readers.

    Raises `ValueError` if it is no JSON.
    """
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        value = exact(text)
        if not _is_whole(value):
            return value
    return Verbatim(text)


def dumps(value: Any) -> bytes:
    """Compact JSON. What orjson refuses (integers above 64 bits, lone surrogates) the standard library writes."""
    try:
        return orjson.dumps(value, _as_it_is)
    except TypeError:
        return _written(value).encode()


def is_whole(text: str) -> bool:
    """Whether a text holds no half of a character (a lone surrogate)."""
    return _SURROGATE.search(text) is None


def whole_text(text: str) -> str:
    """Text without lone surrogates: a pair becomes its character, half a pair U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    joined = _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub("\ufffd", joined)


def size_of(text: str) -> int:
    """The bytes of a text in UTF-8; half a surrogate pair takes three, as U+FFFD does."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def end_of(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    """Where what matches there ends; the place itself if nothing matches."""
    found = pattern.match(text, at)
    return found.end() if found else at


def is_object(text: str, depth: int = 200) -> bool:
    """Whether a text is one whole JSON object.

    Raises `LimitExceeded` if it is nested deeper than `depth`.
    """
    if not text.lstrip(BLANK).startswith("{"):
        return False
    try:
        return isinstance(strictly(text, depth), dict)
    except ValueError:
        return False


def holds_object(text: str, depth: int = 200) -> bool:
    """The same, though halves of characters may stand in it, which not every reader accepts."""
    try:
        return isinstance(loads(text, depth), dict)
    except ValueError:
        return False


def strictly(text: str, depth: int = 200) -> Any:
    """The value of a JSON text that every reader accepts: no escape in it is half of a character.

    Raises `ValueError` if it is none, `LimitExceeded` if it is nested deeper than `depth`.
    """
    value = loads(text, depth)
    if HALF_ESCAPED.search(text) and not _is_whole(value):
        raise ValueError("half of a character")
    return value


def check_depth(data: bytes | str, depth: int) -> None:
    """Raise `LimitExceeded` if a JSON text is nested deeper than `depth`."""
    opened = data.count("{") + data.count("[") if isinstance(data, str) else data.count(b"{") + data.count(b"[")
    if opened > depth:
        scan = JSONScanner(depth)
        scan.feed(data if isinstance(data, str) else data.decode("utf-8", "replace"))


@define
class JSONScanner:
    """Tells where the object or array that a text begins with ends; fed in pieces, linear in all."""

    limit: int = 200
    """How deep it may be nested."""
    depth: int = field(init=False, default=0)
    _in_string: bool = field(init=False, default=False)
    _escape: bool = field(init=False, default=False)

    def feed(self, text: str) -> int:
        """Where in `text` the value ends (the place behind its last bracket), or -1 if not in it.

        Raises `LimitExceeded` if it is nested deeper than `limit`.
        """
        at = 0
        if self._in_string:
            at = self._string(text, 0)
        while not self._in_string and (found := _STRUCTURE.search(text, at)):
            at = found.end()
            token = found.group()
            if token == '"':
                self._in_string = True
                at = self._string(text, at)
            elif token in "{[":
                self.depth += 1
                if self.depth > self.limit:
                    raise LimitExceeded(f"JSON is nested deeper than {self.limit} levels", code="json_depth")
            else:
                self.depth -= 1
                if self.depth <= 0:
                    return at
        return -1

    def _string(self, text: str, at: int) -> int:
        """Go on inside a string, up to behind its closing quote or to the end of the text."""
        if self._escape and at < len(text):
            self._escape = False
            at += 1
        at = end_of(_STRING_REST, text, at)
        if at == len(text):
            return at
        if text[at] == '"':
            self._in_string = False
            return at + 1
        self._escape = True  # a backslash is the last character: it escapes the next piece's first
        return len(text)


def _as_it_is(value: Any) -> orjson.Fragment:
    if isinstance(value, Verbatim):
        return orjson.Fragment(value.text)
    raise TypeError


def _text_of(value: Any) -> str:
    if isinstance(value, Verbatim):
        return value.text
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _is_whole(value: Any) -> bool:
    """Whether no string of a value holds half of a character."""
    return is_whole(json.dumps(value, ensure_ascii=False, default=_text_of))


def _written(value: Any) -> str:
    """A value by the standard library, which cannot write a text as it is: a mark that nothing else holds stands for
    it until the rest is written."""
    mark, texts = secrets.token_hex(16), list[str]()

    def marked(inner: Any) -> str:
        texts.append(_text_of(inner))
        return f"{mark}{len(texts) - 1}"

    text = whole_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=marked))
    return re.sub(f'"{mark}([0-9]+)"', lambda found: texts[int(found[1])], text) if texts else text


def _nothing(word: str) -> None:
    """What a word that is no JSON says."""


def _integer(digits: str) -> int | Verbatim:
    return int(digits) if len(digits) <= _DIGITS else Verbatim(digits)


def _float(digits: str) -> float | Verbatim:
    return number if isfinite(number := float(digits)) else Verbatim(digits)


def _number(digits: str) -> "int | Verbatim":
    return int(digits) if len(digits) < _LONG else Verbatim(digits)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
