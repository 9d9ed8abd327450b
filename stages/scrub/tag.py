"""An opening tag: its attributes, read as HTML reads them where they are in quotes or in none."""

import re
from collections.abc import Generator
from string import ascii_letters

from attrs import field, frozen

from pipeline.jsontext import end_of
from stages.scrub.ends import NEAR
from stages.scrub.grammar import BLANKS, Refused, Source, more, one_of, peek, skip, word

_FIRST = frozenset(ascii_letters + "_")
_NAME = re.compile(r"[\w:.-]+")
_BARE = re.compile(r"""[^\s"'`=<>,|]+""")
_VALUES = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in ('"', "'")}
_BLANK = re.compile(r"\s")
VALUE = 4096
"""So long may the value of an attribute be."""
NAMES = frozenset({"id", "name", "type"})
"""The attributes whose values are names."""


@frozen
class Tag:
    """An opening tag. `closed`: it closes itself, and nothing stands in it. `repeated`: an attribute was given again,
    which does not count, as in HTML (13.2.5.33)."""

    attributes: dict[str, str] = field(factory=dict)
    closed: bool = False
    repeated: bool = False


def tag(source: Source, most: int = VALUE) -> Generator[None, None, Tag]:
    """Take the rest of an opening tag behind its name.

    A slash right behind a value that has no quotes is part of it, as in HTML (13.2.5.38: the unquoted value ends with a
    blank or `>`). Raises `Refused` if it is no tag: words that are no `name="value"`, or `name=value`, are prose. A
    comma may part them. So long a value as `most`, or with words as `NEAR` where it is to be a name, is prose too.
    """
    attributes: dict[str, str] = {}
    repeated = False
    char = yield from peek(source)
    if char not in (">", "|", "/", *BLANKS):
        raise Refused
    while char := (yield from skip(source)):
        if char == ">":
            source.at += 1
            return Tag(attributes, repeated=repeated)
        if char in ("/", "|"):
            if not (yield from one_of(source, ("/>", "|>"))):
                break
            return Tag(attributes, char == "/", repeated)
        if char not in _FIRST:
            break
        name = yield from word(source, _NAME)
        if (yield from skip(source)) != "=":
            break
        source.at += 1
        value = yield from _value(source, most, words=name not in NAMES)
        repeated = repeated or name in attributes
        attributes.setdefault(name, value)
        if (yield from peek(source)) not in (">", "|", "/", ",", *BLANKS):
            break
        if (yield from skip(source)) == ",":
            source.at += 1
    raise Refused


def _value(source: Source, most: int, *, words: bool) -> Generator[None, None, str]:
    """Take the value of an attribute, in quotes, which may stand in it escaped, or in none, where it holds none.

    Raises `Refused` if there is none, or it is too long. `words`: it may be made of words.
    """
    quote = yield from skip(source)
    if quote not in _VALUES:
        return (yield from word(source, _BARE, most))
    source.mark()
    source.at += 1
    begin, inside = source.past, _VALUES[quote]
    while True:
        end = end_of(inside, source.text, source.at)
        if not words and _BLANK.search(source.text, source.at, end):
            most = NEAR
        source.at = end
        if source.past - begin > most:
            raise Refused
        if source.left and source.text[source.at] == quote:
            source.at += 1
            return source.taken()[1:-1]
        if not (yield from more(source)):
            raise Refused
