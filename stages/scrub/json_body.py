"""A JSON body in markup: where it ends, and what may stand behind it."""

import re
from collections.abc import Generator
from functools import cache

from attrs import define, evolve, field, frozen

from pipeline.jsontext import BLANK, end_of
from stages.scrub.early import Beginning
from stages.scrub.ends import BEHIND_STRING, NEAR, Ended, Ends, Loose, adrift, marks_of, within
from stages.scrub.fence import FAR, Fence, another
from stages.scrub.grammar import (
    Openings,
    Part,
    Refused,
    Source,
    Unfinished,
    is_cut,
    more,
    one_of,
    second,
    skip,
    word,
)
from stages.scrub.mend import LEAKED_QUOTE, LEAKED_QUOTES, QUOTES, WORDS

_INSIDE = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BLANKS = re.compile(f"[{BLANK}]*+")
NOTHING = Openings()
COMMENTS = {"//": "\n", "/*": "*/"}
"""What opens a comment, and what closes it then."""
_LOOSE = {**{opening: (closing,) for opening, closing in COMMENTS.items()}, LEAKED_QUOTE: LEAKED_QUOTES}
"""What opens what strict JSON does not hold, besides quotes of one character, and what closes it then."""
_BEGIN = "\"'“‘{}/,:[]"
"""What may stand behind the brace of an object, besides the letters of a bare key."""
_STOPS = '"\\' + "".join(map(chr, range(0x20)))
"""What a string of strict JSON ends with, or holds in escapes only."""
_MARKS = ("```", "~~~")
_TOO_MANY = ("}", "]", ";")
_BETWEEN = (*_TOO_MANY, "{", ",", *_MARKS, *COMMENTS)
"""What may stand between a body and its closer: a bracket too many, the next body, the end of a fence, a comment."""
_VALUE = "\"'“‘{[<-0123456789"
"""What a value may begin with, besides words."""
_BARE_KEY = re.compile(r"[\w.-]*")


@frozen
class Body:
    """The text of a JSON body. `whole`: it ended by itself, its brackets matched; else a closer came, or, if it was
    `cut`, other markup."""

    text: str
    whole: bool
    cut: bool = False


@define
class _Extent:
    """Which brackets are open in what was taken of a body."""

    ends: Ends
    depth: int
    early: Beginning | None = None
    brackets: list[str] = field(factory=list)
    string: int = 0
    """Where the last string began, by what was taken before it."""
    closed: int = 0
    """Where that stands which ends the body, if what it stands in is no string after all."""
    ended: Ended = Ended.CLOSED
    """How it ends there."""

    def take(self, source: Source, end: int) -> None:
        """Take the text up to `end`."""
        if self.early is not None:
            self.early.feed(source.text[source.at : end])
        source.at = end

    def tell(self) -> Generator[Part | None, None, None]:
        """Tell the call that this is, as far as it is certain."""
        if self.early is not None and (part := self.early.take()) is not None:
            yield part


def body(
    source: Source,
    closers: tuple[str, ...],
    depth: int,
    early: Beginning | None = None,
    *,
    openings: Openings = NOTHING,
) -> Generator[Part | None, None, Body]:
    """Take the object or array that begins here, blanks and closer excluded.

    It ends where its brackets match outside of strings, or where a closer stands there, or other markup surely begins.
    Where it cannot be mended any more, that is read anew from the last string on, if what stands behind that is to
    blame; nothing is left of it if `early` has told its call. A closer in a string that strict JSON does not hold, or
    in a comment, ends it if that does not end. Raises `Unfinished` if nothing ends it.
    """
    extent = _Extent(Ends(closers, openings), depth, early)
    begin = source.past
    source.mark()
    try:
        ended = yield from _to_end(source, extent)
        yield from extent.tell()
        if ended is not None:
            return Body(source.taken(), ended is Ended.WHOLE, ended is Ended.CUT)
        if early is not None and early.opened:
            source.taken()
            return Body("", False)
        if extent.closed:
            ended, end = extent.ended, extent.closed
        else:
            drifting = extent.string or source.past
            source.back()
            source.mark()
            before = source.text[source.at : source.at + drifting - begin].rstrip()[-1:]
            source.at += drifting - begin
            ended, end = yield from adrift(source, extent.ends, before)
    except Unfinished:
        yield from extent.tell()
        source.back()
        raise
    source.back()
    begun = source.at
    source.at += end - begin
    return Body(source.text[begun : source.at], False, ended is Ended.CUT)


def _more(source: Source, extent: _Extent) -> Generator[Part | None, None, bool]:
    """Wait for more text, all that is certain being told; whether any came."""
    yield from extent.tell()
    return (yield from more(source))


def _to_end(source: Source, extent: _Extent) -> Generator[Part | None, None, Ended | None]:
    """Take the body up to its end; how it ends. None: it cannot be mended any more."""
    firsts = extent.ends.firsts
    search = _structure(firsts).search
    while True:
        found = search(source.text, source.at)
        if found is None:
            extent.take(source, len(source.text))
            if not (yield from _more(source, extent)):
                raise Unfinished
            continue
        extent.take(source, found.start())
        char = found.group()
        closes = extent.brackets[-1:] == [char]
        if not closes and char in firsts and (ended := (yield from extent.ends.here(source))) is not None:
            return ended
        if char in ("{", "["):
            extent.take(source, source.at + 1)
            extent.brackets.append("}" if char == "{" else "]")
            if len(extent.brackets) > extent.depth:
                return None
        elif char in ("}", "]"):
            if extent.brackets.pop() != char:
                return None
            extent.take(source, source.at + 1)
            if not extent.brackets:
                return Ended.WHOLE
        elif char in QUOTES:
            extent.string = source.past
            extent.take(source, source.at + 1)
            if char == '"':
                if not (yield from _string(source, extent)):
                    return None
            elif (ended := (yield from _loose(source, extent, (QUOTES[char],)))) is not Ended.WHOLE:
                return ended
            if not (yield from _may_follow(source, extent)):
                return None
            extent.string = 0
        elif opening := (yield from one_of(source, tuple(_LOOSE))):
            source.at -= len(opening)
            extent.take(source, source.at + len(opening))
            if (ended := (yield from _loose(source, extent, _LOOSE[opening]))) is not Ended.WHOLE:
                return ended
        elif char in ("/", LEAKED_QUOTE[0]):
            return None
        else:  # what ends a body begins so, and none stands here
            extent.take(source, source.at + 1)


def _string(source: Source, extent: _Extent) -> Generator[Part | None, None, bool]:
    """Take the rest of a string of strict JSON: whatever stands in it is its; whether it is one."""
    if extent.ends.openings.closers:
        return (yield from _weighed(source, extent))
    while True:
        extent.take(source, end_of(_INSIDE, source.text, source.at))
        if source.left and source.text[source.at] != "\\":
            extent.take(source, source.at + 1)
            return True
        if not (yield from _more(source, extent)):
            raise Unfinished


def _weighed(source: Source, extent: _Extent) -> Generator[None, None, bool]:
    """The same in reasoning. It is none if it holds what ends that, and a control character, or if nothing closes it:
    then the body ends where that stands."""
    last, closed, control = extent.ends.openings.closers, 0, False
    search = marks_of(frozenset(token[0] for token in last), _STOPS).search
    while not (closed and control):
        found = search(source.text, source.at)
        source.at = found.start() if found else len(source.text)
        if found is None or (found.group() == "\\" and source.left < len("\\.")):
            if not (yield from more(source)):
                break
        elif found.group() == "\\":
            source.at += len("\\.")
        elif found.group() == '"':
            source.at += 1
            return True
        else:
            past, token = source.past, "" if closed else (yield from one_of(source, last))
            closed = past if token else closed
            control = control or found.group() < " "
            source.at += 0 if token else 1
    if not closed:
        raise Unfinished
    extent.closed, extent.ended = closed, Ended.CUT
    return False


def _may_follow(source: Source, extent: _Extent) -> Generator[Part | None, None, bool]:
    """Take blanks behind a string; whether what comes then may stand there."""
    while True:
        extent.take(source, _blanks(source.text, source.at))
        if source.left:
            if source.text[source.at] in BEHIND_STRING:
                return True
            return (yield from extent.ends.here(source)) is not None
        if not (yield from _more(source, extent)):
            raise Unfinished


def _loose(source: Source, extent: _Extent, closings: tuple[str, ...]) -> Generator[Part | None, None, Ended | None]:
    """Take the rest of what strict JSON does not hold, up to what closes it: as `Loose.read` tells. What is told early
    has ended before it. Raises `Unfinished` if nothing ends it, or the message does in a call that was told."""
    yield from extent.tell()
    loose = Loose(source, extent.ends, closings, len(extent.brackets), closings[0] not in COMMENTS.values())
    ended = yield from loose.read(escapes=closings[0] in QUOTES.values())
    told = extent.early is not None and extent.early.opened
    if ended is None and (not loose.closed or (told and not source.left)):
        raise Unfinished
    extent.closed = 0 if ended else loose.closed
    return ended


def begins(source: Source) -> Generator[None, None, bool]:
    """Whether a body begins here: nothing that prose would write between brackets."""
    char = source.text[source.at]
    if char not in ("{", "["):
        return False
    inside = yield from second(source)
    return inside in "{]" if char == "[" else inside in _BEGIN or inside == "_" or inside.isalpha()


def hollow(source: Source, closers: tuple[str, ...]) -> Generator[None, None, bool]:
    """Take the bracket of a body in which nothing follows but the closer, and that, if they stand here; whether they
    do."""
    source.mark()
    token = ""
    if (yield from one_of(source, ("{", "["))):
        yield from skip(source)
        token = yield from one_of(source, closers)
    if not token:
        source.back()
        return False
    source.taken()
    return True


@frozen
class Behind:
    """What stands behind a body: the closer, or its beginning, if the end of the message cut it; `{`: another body
    begins. Empty: neither does. `said`: words stood between. `mended`: so did what is too many in JSON."""

    token: str = ""
    said: bool = False
    mended: bool = False
    apart: bool = False
    """Words stood before the other body."""
    around: Fence | None = None
    """A fence that opens round the other body."""


def end(
    source: Source, closers: tuple[str, ...], openings: Openings, *, several: bool, around: Fence | None = None
) -> Generator[None, None, Behind]:
    """Take what may stand between a body and its closer, and the closer, or, if there may be `several`, what stands
    before another body.

    Without either nothing is taken: what stands there is the reader's, as it is where markup begins before that. What
    stands in the fence `around` the body is never the reader's, if that ends near.
    """
    ends = Ends(closers, openings)
    closed = around is None or (yield from around.close(source))
    found = yield from _end(source, ends, several=several)
    if around is None or closed or found.token:
        return found
    source.mark()
    if not (yield from around.rest(source, ends)):
        source.back()
        return found
    source.taken()
    yield from around.close(source)
    found = yield from _end(source, ends, several=several)
    return evolve(found, said=True, apart=found.token == "{")


def _end(source: Source, ends: Ends, *, several: bool) -> Generator[None, None, Behind]:
    """As `end`, outside of a fence."""
    source.mark()
    try:
        found = yield from _behind(source, ends, several=several)
    except (Refused, Unfinished):
        found = Behind()
    if found.token:
        source.taken()
        return found
    source.back()
    return Behind()


def _behind(source: Source, ends: Ends, *, several: bool) -> Generator[None, None, Behind]:
    """As `end`; something may have been taken where it finds nothing."""
    behind = Behind()
    while True:
        yield from skip(source)
        token = yield from one_of(source, (*ends.closers, *_BETWEEN))
        if token in COMMENTS:
            text, token = yield from within(source, ends.until(source, COMMENTS[token]), FAR)
            behind = evolve(behind, said=behind.said or text.strip() != "")
        elif token in _MARKS:
            source.at -= len(token)
            behind = evolve(behind, around=(yield from another(source)))
        elif token in _TOO_MANY:
            behind = evolve(behind, mended=True)
        elif token == "{":
            source.at -= 1
            if not (several and (yield from _goes_on(source))):
                token = ""
        if not token and (token := (yield from ends.words(source, several=several))):
            behind = evolve(behind, said=True, apart=token == "{")
        if token in ends.closers or token == "{":
            return evolve(behind, token=token)
        if not token:
            cut = source.text[source.at :] if is_cut(source, ends.closers) else ""
            source.at += len(cut)
            return evolve(behind, token=cut)


def _goes_on(source: Source) -> Generator[None, None, bool]:
    """Whether another body begins here: behind a key that is in no quotes come its colon and a value; nothing is
    taken."""
    if not (yield from begins(source)):
        return False
    source.mark()
    source.at += 1
    char = yield from skip(source)
    goes_on = not (char == "_" or char.isalpha())
    if not goes_on:
        try:
            yield from word(source, _BARE_KEY, NEAR)
            if (yield from skip(source)) == ":":
                source.at += 1
                char = yield from skip(source)
                goes_on = (char != "" and char in _VALUE) or (yield from one_of(source, tuple(WORDS))) != ""
        except Refused:
            pass
    source.back()
    return goes_on


@cache
def _structure(firsts: frozenset[str]) -> "re.Pattern[str]":
    """Matches what matters outside of strings."""
    return re.compile(f"[{re.escape(''.join(sorted({*QUOTES, *'{}[]/', LEAKED_QUOTE[0], *firsts})))}]")


def _blanks(text: str, at: int) -> int:
    return end_of(_BLANKS, text, at)
