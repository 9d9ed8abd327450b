"""The beginning of a call, read while its body arrives: its name, and its arguments for as long as they are strict."""

import json
import math
import re
from collections.abc import Generator
from contextlib import suppress

from attrs import define, field

from pipeline.jsontext import end_of
from stages.scrub.grammar import Part, Place, Source, more, skip
from stages.scrub.strings import name_of

_HEX = "[0-9a-fA-F]"
_HALF = f"u[dD][89abAB]{_HEX}{_HEX}"
"""The first half of a character; the second one is told with it, and one that lacks it is not told."""
_OTHER = f"u[dD][c-fC-F]{_HEX}{_HEX}"
_ONE = rf'["\\/bfnrt]|(?!u[dD][89a-fA-F])u{_HEX}{{4}}|{_HALF}\\{_OTHER}'
_INSIDE = re.compile(rf'[^"\\\x00-\x1f]*+(?:\\(?:{_ONE})[^"\\\x00-\x1f]*+)*+')
_ESCAPE = re.compile(rf"\\(?:{_HALF}|(?:{_HALF}\\)?(?:u{_HEX}{{0,3}})?)\Z")
"""An escape that the end of the text cuts."""
_SCALAR = re.compile(r"[-+.\w]++")
_VALUE = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")

MOST = 1000
"""What waits to become certain is no longer, or it ends the reading: a key, a number, blanks. So is a name."""

DEEPEST = 50
"""What is nested more deeply ends the reading, because each level takes three frames of Python's stack."""

Path = tuple[str, ...]
"""The keys under which a value stands."""
SAID: tuple[Path, ...] = ((), ("function",))
"""Where a body may say its call."""
OUTSIDE: Path = ("",)
"""Where no body says anything."""

Reading = Generator[None, None, None]


class _Loose(Exception):
    """The text is no strict JSON."""


@define
class Beginning:
    """Told the text of a body, it tells the call that this is as soon as its name is certain, and its arguments.

    What it tells never has to be unsaid, unless a body contradicts itself: of what may be mended, as a comma that
    turns out to be the last, it waits for what follows. Text that is no strict JSON ends it.
    """

    place: Place
    name: str = ""
    """The call's, where it is said outside of the body; else the body's own, when it is known."""
    whole: bool = False
    """The body is the arguments, whatever its members are called."""
    opened: bool = field(init=False, default=False)
    """The call was told."""
    _source: Source = field(init=False, factory=Source)
    _certain: int = field(init=False, default=0)
    """Up to where the source's text is."""
    _named: Path | None = field(init=False, default=None)
    """Where the call's name stands."""
    _given: Path | None = field(init=False, default=None)
    """Where the arguments stand, once they have begun."""
    _inside: bool = field(init=False, default=False)
    """The text is theirs."""
    _told: list[str] = field(init=False, factory=list)
    _reader: Reading = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reader = self._read()

    def feed(self, text: str) -> None:
        """More of the body."""
        source = self._source
        if source.over:
            return
        source.text, source.at = source.text[self._certain :] + text, source.at - self._certain
        self._certain = 0
        next(self._reader, None)
        if len(source.text) - self._certain > MOST:
            source.over = True

    def take(self) -> Part | None:
        """What is certain and was not told: the call, or more of its arguments."""
        if self._named is None:
            return None
        free = self.name in self.place.freeform  # its input is told whole
        told = "".join(self._told) if self._given == self._named and not free else ""
        self._told.clear()
        if self.opened and not told:
            return None
        self.opened = True
        return Part(self.name, told)

    def _read(self) -> Reading:
        with suppress(_Loose):
            yield from self._skip()
            yield from self._arguments(()) if self.whole else self._value(())

    def _skip(self) -> Generator[None, None, str]:
        """Take blanks; the character behind them."""
        char = yield from skip(self._source)
        self._bound()
        return char

    def _value(self, path: Path) -> Reading:
        """Take a value."""
        char = yield from self._skip()
        if char == "{":
            yield from self._object(path)
        elif char == "[" and path:
            yield from self._array(path)
        elif char == '"':
            yield from self._string()
        else:
            yield from self._scalar()

    def _object(self, path: Path) -> Reading:
        """Take an object. A comma and a key are certain when a value follows them."""
        self._enter(path)
        key = None
        while (yield from self._skip()) != "}":
            if key is not None:
                self._take(",")
                yield from self._skip()
            first = key is None
            key = yield from self._key()
            if first and not path:
                self._begun(key)
            yield from self._member(path, key)
        self._past()

    def _member(self, path: Path, key: str) -> Reading:
        """What stands behind a key."""
        char = yield from self._skip()
        if self.whole or path not in SAID:
            yield from self._value((*path, key))
        elif key == "name" and char == '"':
            self._call((yield from self._string()), path)
        elif key == "arguments" and char == "{" and self._given is None:
            yield from self._arguments(path)
        else:
            yield from self._value((*path, key))

    def _arguments(self, path: Path) -> Reading:
        self._given, self._inside, self._certain = path, True, self._source.at
        yield from self._value((*path, *OUTSIDE) if not self.whole else ())
        self._inside = False

    def _array(self, path: Path) -> Reading:
        """Take an array."""
        self._enter(path)
        if (yield from self._skip()) != "]":
            yield from self._value((*path, *OUTSIDE))
            while (yield from self._skip()) != "]":
                self._take(",")
                yield from self._value((*path, *OUTSIDE))
        self._past()

    def _key(self) -> Generator[None, None, str]:
        """Take a key and its colon."""
        if self._source.text[self._source.at] != '"':
            raise _Loose
        key = yield from self._text(certain=False)
        self._bound()
        yield from self._skip()
        self._take(":")
        return key

    def _string(self) -> Generator[None, None, str]:
        text = yield from self._text(certain=True)
        self._tell()
        return text

    def _text(self, *, certain: bool) -> Generator[None, None, str]:
        """Take a string; what it says, or nothing if it is long. It is `certain` as it comes, or not yet at its end."""
        source, parts, size = self._source, [], 0
        source.at += 1
        while True:
            begin = source.at
            source.at = end_of(_INSIDE, source.text, begin)
            size += source.at - begin
            if size <= MOST:
                parts.append(source.text[begin : source.at])
            if certain:
                self._tell()
            if source.left and source.text[source.at] == '"':
                break
            if source.left and not _ESCAPE.match(source.text, source.at):
                raise _Loose
            yield from more(source)
        source.at += 1
        text: str = json.loads(f'"{"".join(parts)}"') if size <= MOST else ""
        return text

    def _scalar(self) -> Reading:
        source = self._source
        while (found := _SCALAR.match(source.text, source.at)) and found.end() == len(source.text):
            yield from more(source)
        if found is None or (value := _VALUE.fullmatch(found.group())) is None:
            raise _Loose
        if (value[1] or value[2]) and not math.isfinite(float(value.group())):
            raise _Loose
        source.at = found.end()
        self._bound()
        self._tell()

    def _take(self, char: str) -> None:
        """Take this character, which must stand here."""
        if self._source.text[self._source.at] != char:
            raise _Loose
        self._source.at += 1

    def _enter(self, path: Path) -> None:
        """Take an opening bracket."""
        if len(path) > DEEPEST:
            raise _Loose
        self._past()

    def _past(self) -> None:
        """Take a bracket."""
        self._source.at += 1
        self._tell()

    def _tell(self) -> None:
        """What was taken is certain."""
        source = self._source
        if self._inside:
            self._told.append(source.text[self._certain : source.at])
        self._certain = source.at

    def _bound(self) -> None:
        if self._source.at - self._certain > MOST:
            raise _Loose

    def _begun(self, key: str) -> None:
        """The body has begun, with this key: if its call is named outside of it, that is it."""
        if self._named is None and self.name and (self.whole or key != "name") and self.place.opens(self.name):
            self._named = () if self.whole else OUTSIDE

    def _call(self, name: str, path: Path) -> None:
        """A name is certain."""
        if self.name:  # the body's own is one only if its arguments say so; where both agree it is certain
            if name_of(name) == self.name and self.place.opens(self.name):
                self._named = self._named or OUTSIDE
        elif self._named is None and self.place.opens(name_of(name)):
            self.name, self._named = name_of(name), path
