"""What a family of markup is made of: a parser that is given text as it comes, and the small steps it is built from.

A parser is a generator. It reads a `Source` from behind its opener, yields None where it needs more text and what it
has found where it has found it, and returns where its markup ends. `Refused` says that the opener opens nothing of
this family, `Unfinished` that the message ended in the middle.
"""

import re
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import cache
from typing import Any

from attrs import define, field, frozen

from pipeline.limits import DEFAULT_LIMITS, Limits


@frozen
class Call:
    """A tool call: `arguments` is JSON text. `id`: one that is unique in the whole conversation; empty: none is."""

    name: str
    arguments: str
    id: str = ""
    mended: bool = False
    left: bool = False
    """Something else stood beside its name and its arguments."""


@frozen
class Lost:
    """Markup of a call that names none, or cannot be read, or what of it is not carried as it stands: `action`."""

    reason: str
    action: str = "dropped"


@frozen
class Part:
    """A call whose body is not whole: its name is certain, and so is more of the text of its arguments."""

    name: str
    arguments: str


@frozen
class Thinking:
    """From here on the text is reasoning, up to one of the closers."""

    closers: tuple[str, ...]


@frozen
class Answering:
    """From here on the text is for the reader again."""


@frozen
class Plain:
    """What was read since the last thing that was found is text after all."""


Found = Call | Lost | Part | Thinking | Answering | Plain

Schema = Mapping[str, Any]
Tools = Mapping[str, Schema]
"""The tools that the model may call: the schema of the arguments by name."""


@frozen(kw_only=True)
class Place:
    """Where an opener stands."""

    opener: str
    line: bool
    """Nothing but blanks stands before it in its line, or markup."""
    glued: bool
    """A character that is no blank stands right before it."""
    shown: bool
    """An opener that is text stands before it, and nothing has closed that."""
    behind: bool
    """Markup stands right before it, or the beginning of the message; blanks may lie between."""
    tools: Tools = field(factory=dict)
    freeform: Collection[str] = ()
    """Those of them whose input is free text."""
    limits: Limits = DEFAULT_LIMITS
    openings: "Openings" = field(factory=lambda: Openings())
    """What surely begins markup of calls, or ends the reasoning that this stands in."""
    weak: bool = False
    """The family that reads it is weak markup."""
    early: bool = False
    """Calls may be told before their body is whole."""

    def opens(self, name: str) -> bool:
        """Whether a call of that name may be told before its body is whole."""
        known = name in self.tools if self.weak else name != ""
        return self.early and known and len(name) <= self.limits.id_chars

    @property
    def mentioned(self) -> bool:
        """It stands within a line, parted from what comes before: as prose does where it speaks of markup."""
        return not self.line and not self.glued


@frozen
class Openings:
    """The openers of strong markup of calls, and how each stands where it surely begins markup, not where a text speaks
    of it."""

    tokens: tuple[str, ...] = ()
    pattern: "re.Pattern[str] | None" = None
    closers: tuple[str, ...] = ()
    """Those of the tokens that end the reasoning in which the markup stands, wherever they stand in it."""

    def here(self, source: "Source") -> Generator[None, None, bool]:
        """Whether markup begins here, where one of the openers stands; nothing is taken."""
        while self.pattern is not None:
            if self.pattern.match(source.text, source.at, source.at + LOOK):
                return True
            if source.left >= LOOK or not (yield from more(source)):
                break
        return False


LOOK = 128
"""By so many characters it is certain."""


class Refused(Exception):
    """The opener opens nothing of this family."""


class Unfinished(Exception):
    """The message ended in the middle of markup."""


@define
class Source:
    """The text behind an opener, as far as it has come and was not taken: `text` from `at` on. `over`: it is all.

    A step that looks far ahead takes what it passes, behind a mark to which it can go back: so nothing is looked at or
    copied again because more has come.
    """

    text: str = ""
    at: int = 0
    over: bool = False
    _past: int = field(init=False, default=0)
    """How much stood before `text`."""
    _marks: list[int] = field(init=False, factory=list)
    _kept: list[str] = field(init=False, factory=list)
    """What stood before `text`, from the first mark on."""

    def feed(self, text: str) -> None:
        """More has come."""
        if self._marks:
            self._kept.append(self.text[max(self._marks[0] - self._past, 0) : self.at])
        self.text = self.text[self.at :] + text
        self._past += self.at
        self.at = 0

    @property
    def past(self) -> int:
        """How many characters were taken."""
        return self._past + self.at

    def mark(self) -> None:
        """Remember this place."""
        self._marks.append(self.past)

    def back(self) -> None:
        """Go back to the last mark, which is gone: nothing was taken since."""
        if self._marks[-1] < self._past:
            kept = "".join(self._kept)
            self.text = kept + self.text
            self._past -= len(kept)
            self._kept.clear()
        self.at = self._marks.pop() - self._past

    def taken(self) -> str:
        """What was taken since the last mark, which is gone."""
        begin = self._marks.pop() - self._past
        text = self.text[begin : self.at] if begin >= 0 else "".join(self._kept)[begin:] + self.text[: self.at]
        if not self._marks:
            self._kept.clear()
        return text

    @property
    def left(self) -> int:
        """How many characters were not taken."""
        return len(self.text) - self.at


Step = Generator[Found | None, None, Any]
Parser = Callable[[Source, Place], Generator[Found | None, None, None]]


@frozen(kw_only=True)
class Family:
    """One family of markup: the literal beginnings by which it is found, and its parser."""

    name: str
    openers: tuple[str, ...]
    parse: Parser
    reasoning: bool = False
    """It is about reasoning, and is read where no tool is offered too."""
    closers: tuple[str, ...] = ()
    """What ends its reasoning, for where the prompt has opened it."""
    stray: bool = False
    """It makes nothing: closers that lack their opener, tokens that end a turn."""
    closes: bool = True
    """If it is stray: its tokens are closers, and may close what prose speaks of."""
    weak: bool = False
    """Prose may hold it: it is read only on demand, and makes a call only of a tool that is offered."""
    opening: str = ""
    """A pattern: an opener and what stands behind it where it surely begins markup, `LOOK` characters at most. It says
    only what stands there, never what does not, as more may come. Empty: the openers alone do."""


BLANKS = " \t\r\n"


def more(source: Source) -> Generator[None, None, bool]:
    """Wait for more text; whether any came."""
    before = source.left
    while not source.over:
        yield None
        if source.left > before:
            return True
    return False


def peek(source: Source) -> Generator[None, None, str]:
    """The next character; empty at the end."""
    if not source.left and not (yield from more(source)):
        return ""
    return source.text[source.at]


def skip(source: Source, blanks: str = BLANKS) -> Generator[None, None, str]:
    """Take blanks; the character behind them, which is not taken; empty at the end."""
    while char := (yield from peek(source)):
        while source.left and (char := source.text[source.at]) in blanks:
            source.at += 1
        if source.left:
            return char
    return ""


def one_of(source: Source, tokens: tuple[str, ...]) -> Generator[None, None, str]:
    """Take the longest of the tokens that stands here; empty if none does, and nothing is taken."""
    while True:
        rest = source.text[source.at : source.at + longest(tokens)]
        if rest not in prefixes(tokens) or not (yield from more(source)):
            break
    token = max((token for token in tokens if rest.startswith(token)), default="")  # the longest: they begin alike
    source.at += len(token)
    return token


def behind_blanks(source: Source, tokens: tuple[str, ...]) -> Generator[None, None, str]:
    """Take one of the tokens, and the blanks before it; nothing at all if none stands there, but for one that the end
    of the message cut."""
    source.mark()
    yield from skip(source)
    token = yield from one_of(source, tokens)
    if token or (source.left and is_cut(source, tokens)):
        source.at += 0 if token else source.left
        source.taken()
    else:
        source.back()
    return token


def is_cut(source: Source, tokens: tuple[str, ...]) -> bool:
    """Whether the message ended here, or within one of the tokens, of which none stands here."""
    return source.over and source.text[source.at :] in prefixes(tokens)


def until(source: Source, tokens: tuple[str, ...], most: int = sys.maxsize) -> Generator[None, None, tuple[str, str]]:
    """Take the text up to the first of the tokens, and that token; what stands between, and which it was.

    Of tokens that begin at one place it is the longest. Raises `Unfinished` if none comes, `Refused` if more than
    `most` characters stand before it.
    """
    parts: list[str] = []
    while True:
        over = source.over
        found = (alternation if over else beginnings)(tokens).search(source.text, source.at)
        end = found.start() if found else len(source.text)
        parts.append(source.text[source.at : end])
        most -= end - source.at
        source.at = end
        if most < 0:
            raise Refused
        if found is not None and (over or found.end() < len(source.text) or found.group() not in prefixes(tokens)):
            source.at = found.end()
            return "".join(parts), found.group()
        if over:
            raise Unfinished
        yield from more(source)


def word(source: Source, pattern: "re.Pattern[str]", most: int = 256) -> Generator[None, None, str]:
    """Take what matches, which must be a run of characters of one kind. Raises `Refused` if it is none, or longer
    than `most`."""
    parts: list[str] = []
    while True:
        found = pattern.match(source.text, source.at)
        if found is None and source.left and not parts:
            raise Refused
        if found is not None and found.group():
            parts.append(found.group())
            source.at = found.end()
            most -= len(parts[-1])
        if most < 0:
            raise Refused
        if source.left or not (yield from more(source)):
            return "".join(parts)


def second(source: Source) -> Generator[None, None, str]:
    """The first character behind the next one that is no blank; nothing is taken. Raises `Unfinished` at the end."""
    source.mark()
    if (yield from peek(source)):
        source.at += 1
    char = yield from skip(source)
    source.back()
    if not char:
        raise Unfinished
    return char


def stray(source: Source, place: Place) -> Generator[None, None, None]:
    """A closer that makes nothing, unless prose speaks of it, or of what it closes."""
    if place.shown:
        raise Refused
    yield from alone(source, place)


def alone(source: Source, place: Place) -> Generator[None, None, None]:
    """A token that makes nothing, unless prose speaks of it."""
    if place.mentioned and (yield from peek(source)) not in ("", "\n"):
        raise Refused


@cache
def alternation(tokens: tuple[str, ...], *more: str) -> "re.Pattern[str]":
    """Matches the longest of the tokens at a place; `more` patterns are tried before them."""
    return re.compile("|".join((*more, *map(re.escape, sorted(tokens, key=len, reverse=True)))))


@cache
def beginnings(tokens: tuple[str, ...]) -> "re.Pattern[str]":
    """The same, or, before that, what stands at the text's end and can still become one of them, or a longer one."""
    return alternation(tokens, *(re.escape(begun) + r"\Z" for begun in sorted(prefixes(tokens) - {""})))


@cache
def prefixes(tokens: tuple[str, ...]) -> frozenset[str]:
    """Everything that can still become one of the tokens, or a longer one; the empty text too."""
    return frozenset(token[:end] for token in tokens for end in range(len(token)))


@cache
def longest(tokens: Sequence[str]) -> int:
    """The length of the longest token."""
    return max(map(len, tokens), default=0)
