"""What ends a body outside of its strings, and where one ends that cannot be read any more."""

import re
from collections.abc import Generator
from contextlib import suppress
from enum import Enum, auto
from functools import cache
from typing import TypeVar

from attrs import define, field, frozen

from stages.scrub.code import MARKS
from stages.scrub.grammar import BLANKS, Openings, Refused, Source, Unfinished, more, one_of, peek, skip, until, word

QUOTES = "\"'"
"""What may open a string of a body that cannot be read, and closes it then."""
BEHIND_STRING = ",:}]/"
"""What may stand behind a string; what ends a body may too."""
_BEFORE_STRING = frozenset("{[,:" + QUOTES)
"""What may stand before one: also another, where what parts them was left out."""
_TICKS = re.compile("`*")
_NAMES = ('"name"', '"function"')
"""What a body begins with that says its call."""
_UNTICKED = re.compile("[^\n`]*")
_MET = {False: "\n`", True: "\n`{"}
"""What else is met on the way to a closer; where other calls may stand there, they are too."""

BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}
"""What a bracket adds to how many are open."""
ESCAPE = "\\"
_FRAME = BLANKS + "`~"
"""What may stand between the last bracket and a closer: a fence ends there."""
NEAR = 64
"""So many characters may stand between a body and its closer, but for blanks."""

Taken = TypeVar("Taken")


class Ended(Enum):
    """How a body ended."""

    WHOLE = auto()  # its brackets matched
    CLOSED = auto()  # a closer came
    CUT = auto()  # other markup began


@frozen
class Ends:
    """What ends a body: the closers of its family, and what surely begins other markup."""

    closers: tuple[str, ...]
    openings: Openings
    tokens: tuple[str, ...] = field(init=False)
    firsts: frozenset[str] = field(init=False)

    @tokens.default
    def _tokens(self) -> tuple[str, ...]:
        return (*self.closers, *self.openings.tokens)

    @firsts.default
    def _firsts(self) -> frozenset[str]:
        return frozenset(token[0] for token in self.tokens)

    def here(self, source: Source) -> Generator[None, None, Ended | None]:
        """What ends the body here, outside of a string; nothing is taken."""
        token = yield from one_of(source, self.tokens)
        source.at -= len(token)
        if token in self.closers:
            return Ended.CLOSED
        return Ended.CUT if token and (yield from self.openings.here(source)) else None

    def until(self, source: Source, *closings: str) -> Generator[None, None, tuple[str, str]]:
        """Take the text up to a closing or a closer, and that; what stands between, and which it was: neither, where
        other markup begins. Raises `Unfinished` if none comes."""
        parts: list[str] = []
        while True:
            text, token = yield from until(source, (*closings, *self.tokens))
            parts.append(text)
            if token in closings or token in self.closers:
                return "".join(parts), token
            source.at -= len(token)
            if (yield from self.openings.here(source)):
                return "", ""
            source.at += len(token)
            parts.append(token)

    def words(self, source: Source, *, several: bool) -> Generator[None, None, str]:
        """Take what stands before a closer, and that; which it was. Nothing is taken if none is near, or if an opener
        stands before it. In code it is none. If there may be `several`, `{` is where another call begins: not taken.
        """
        source.mark()
        with suppress(Refused):
            if token := (yield from self._near(source, several=several)):
                source.taken()
                return token
        source.back()
        return ""

    def _near(self, source: Source, *, several: bool) -> Generator[None, None, str]:
        """As `words`; something may have been taken where nothing is found."""
        code, seen = _Quoted(source), 0
        search = marks_of(self.firsts, _MET[several]).search
        while seen <= NEAR:
            found = search(source.text, source.at)
            end = found.start() if found else len(source.text)
            seen += sum(map(len, source.text[source.at : end].split()))
            source.at = end
            if found is None:
                if not (yield from more(source)):
                    break
            elif found.group() in ("`", "\n"):
                seen += yield from code.mark(found.group(), within=seen > 0)
            elif found.group() == "{" and (yield from _names(source)):
                return "{" if seen <= NEAR else ""
            else:
                token = yield from one_of(source, self.tokens)
                if token and (token not in self.closers or seen > NEAR or (yield from self._opens(source, token))):
                    break
                if token and not (yield from code.holds()):
                    return token
                source.at += 0 if token else 1
                seen += len(token) or 1
        return ""

    def _opens(self, source: Source, token: str) -> Generator[None, None, bool]:
        """Whether the closer that was taken opens other markup; nothing is taken."""
        if token not in self.openings.tokens:
            return False
        source.at -= len(token)
        opens = yield from self.openings.here(source)
        source.at += len(token)
        return opens


@define
class _Quoted:
    """What of some words stands in code."""

    source: Source
    ticks: str = ""
    """What opened it."""
    within: bool = False
    """Words stand before it."""

    def mark(self, char: str, *, within: bool) -> Generator[None, None, int]:
        """Take backticks, or a line end, where a span ends; how many characters are no blanks."""
        if char == "\n":
            self.ticks = self.ticks if len(self.ticks) >= MARKS else ""
            self.source.at += 1
            return 0
        self.within = self.within if self.ticks else within
        ticks = yield from word(self.source, _TICKS, NEAR)
        self.ticks = "" if ticks == self.ticks else self.ticks or ticks
        return len(ticks)

    def holds(self) -> Generator[None, None, bool]:
        """Whether the code ends behind this: in the same line, and near, or, if it is a fence, behind blanks. What no
        words stand before is code only if nothing stands between. Nothing is taken."""
        source = self.source
        if not self.ticks:
            return False
        source.mark()
        try:
            if len(self.ticks) >= MARKS:
                yield from skip(source)
            else:
                yield from word(source, _UNTICKED, NEAR if self.within else 0)
            holds = (yield from word(source, _TICKS, NEAR)) == self.ticks
        except Refused:
            holds = False
        source.back()
        return holds


@define
class Loose:
    """A string, or a comment, that strict JSON does not hold: it may be one that only looks like it, and never ends."""

    source: Source
    ends: Ends
    closings: tuple[str, ...]
    """What ends it."""
    depth: int
    """So many brackets were open before it, less those that were closed in it."""
    quoted: bool = True
    """It is a string."""
    closed: int = 0
    """Where the first closer stands in it that no markup in it has opened, by what was taken before it; 0: nowhere."""
    _markup: int = 0
    """So much markup has begun in it and was not closed."""
    _bare: bool = False
    """The last bracket stands right before this, and closes."""

    def read(self, *, escapes: bool) -> Generator[None, None, Ended | None]:
        """Take the rest of it, what ends it included: then it is whole. `escapes`: a backslash hides what would end it.

        It is closed, where the body's closer stands behind all the brackets that close the body. None: it is no string,
        as other markup begins behind a closer, or the message ends.
        """
        source, known = self.source, (*self.closings, *self.ends.tokens)
        search = marks_of(frozenset(token[0] for token in known), "".join(BRACKETS) + ESCAPE * escapes).search
        while True:
            found = search(source.text, source.at)
            end = found.start() if found else len(source.text)
            self._bare = self._bare and not source.text[source.at : end].strip(_FRAME)
            source.at = end
            if found is None:
                if not (yield from more(source)):
                    return None
                continue
            token = yield from one_of(source, known)
            if token in self.closings:
                return Ended.WHOLE
            if token in self.ends.openings.closers:
                source.at -= len(token)
                return Ended.CUT
            if token:
                ended = yield from self._met(token)
                if ended is not Ended.WHOLE:
                    return ended
            else:
                self._pass(found.group())
                if found.group() == ESCAPE and (yield from peek(source)) in (ESCAPE, *self.closings):
                    source.at += 1

    def _met(self, token: str) -> Generator[None, None, Ended | None]:
        """A closer or an opener was taken; it is whole still, or ends as `read` tells."""
        source, closes = self.source, token in self.ends.closers
        source.at -= len(token)
        if closes and not self._markup:
            if self._bare and self.depth <= 0 and not (yield from self._ends_behind(token)):
                return Ended.CLOSED
            self.closed = self.closed or source.past
        elif closes:
            self._markup -= 1
        elif (yield from self.ends.openings.here(source)):
            if self.closed:
                return None
            self._markup += 1
        source.at += len(token)
        self._bare = False
        return Ended.WHOLE

    def _ends_behind(self, token: str) -> Generator[None, None, bool]:
        """Whether the string ends right behind the closer that stands here, and what may stand behind it does; nothing
        is taken."""
        if not self.quoted:
            return False
        source = self.source
        source.mark()
        source.at += len(token)
        ends = (yield from one_of(source, self.closings)) != "" and (yield from skip(source)) in ("}", "]", ",")
        source.back()
        return ends

    def _pass(self, char: str) -> None:
        """Take a character."""
        self.source.at += 1
        added = BRACKETS.get(char, 0)
        self.depth += added
        self._bare = added < 0


def adrift(source: Source, ends: Ends, before: str) -> Generator[None, None, tuple[Ended, int]]:
    """Take what is no JSON up to what ends it, outside of what looks like a string; how, and what was taken by then.
    `before`: the last character before it that is no blank.

    A string stands where one may, and behind it what may. Of one that does not look like it in the end, a closer in it
    is the body's, an opener is none. Raises `Unfinished` if nothing ends it.
    """
    reading = _Adrift(source, ends, before)
    while True:
        ended = yield from (reading.string() if reading.quote else reading.outside())
        if ended is not None:
            return ended


@define
class _Adrift:
    """One pass over what is no JSON."""

    source: Source
    ends: Ends
    before: str
    """The last character that is no blank."""
    quote: str = ""
    """Of the string that this may be."""

    def outside(self) -> Generator[None, None, tuple[Ended, int] | None]:
        """Go on outside of a string, up to the next one at most."""
        source, search = self.source, marks_of(self.ends.firsts, QUOTES).search
        found = search(source.text, source.at)
        self._take(found.start() if found else len(source.text))
        if found is None:
            if not (yield from more(source)):
                raise Unfinished
            return None
        char = found.group()
        if char in self.ends.firsts and (ended := (yield from self.ends.here(source))) is not None:
            return ended, source.past
        begins = char in QUOTES and self.before in _BEFORE_STRING
        self._take(source.at + 1)
        if begins:
            self.quote, self.before = char, ""
        return None

    def string(self) -> Generator[None, None, tuple[Ended, int] | None]:
        """Go on in what may be a string, up to its end."""
        source, quote, closed = self.source, self.quote, None
        closers, last = self.ends.closers, self.ends.openings.closers
        search = marks_of(frozenset(closer[0] for closer in (*closers, *last)), quote + ESCAPE).search
        while True:
            found = search(source.text, source.at)
            self._take(found.start() if found else len(source.text))
            if found is None:
                if not (yield from more(source)):
                    break
            elif found.group() == quote:
                before = self.before
                self._take(source.at + 1)
                if (yield from self._looks_whole()):
                    self.quote = ""
                    return None
                if closed is not None:
                    break
                self.quote = quote if before in _BEFORE_STRING else ""  # it may open another
                return None
            elif found.group() == ESCAPE and not (source.left > 1 or (yield from more(source))):
                break
            elif found.group() == ESCAPE:
                self._take(source.at + 2)
            else:
                past, token = source.past, (yield from one_of(source, (*closers, *last)))
                if token in last:
                    return Ended.CUT, past
                closed = past if token and closed is None else closed
                source.at += 0 if token else 1
                self.before = (token or found.group())[-1]
        if closed is None:
            raise Unfinished
        return Ended.CLOSED, closed

    def _looks_whole(self) -> Generator[None, None, bool]:
        """Whether what stands behind its closing quote may stand behind a string."""
        char = yield from skip(self.source)
        return (char != "" and char in BEHIND_STRING) or (yield from self.ends.here(self.source)) is not None

    def _take(self, end: int) -> None:
        """Take the text up to `end`."""
        source = self.source
        self.before = source.text[source.at : end].rstrip()[-1:] or self.before
        source.at = end


def _names(source: Source) -> Generator[None, None, bool]:
    """Whether an object begins here that names a call; nothing is taken."""
    source.mark()
    source.at += 1
    yield from skip(source)
    names = (yield from one_of(source, _NAMES)) != ""
    source.back()
    return names


def within(source: Source, steps: Generator[None, None, Taken], most: int) -> Generator[None, None, Taken]:
    """What some steps come to. Raises `Refused` if they take more than so many characters."""
    begin = source.past
    while True:
        try:
            next(steps)
        except StopIteration as end:
            taken: Taken = end.value
            break
        if source.past - begin > most:
            break
        yield None
    if source.past - begin > most:
        raise Refused
    return taken


@cache
def marks_of(firsts: frozenset[str], chars: str = "") -> "re.Pattern[str]":
    """Matches one of those characters."""
    return re.compile(f"[{re.escape(''.join(sorted(firsts | set(chars))))}]")
