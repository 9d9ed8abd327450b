"""A code fence round the body of a call, which is markup as the tags are."""

import re
import sys
from collections.abc import Generator

from attrs import frozen

from stages.scrub.code import FENCES, MARKS
from stages.scrub.ends import NEAR, Ends, marks_of
from stages.scrub.grammar import (
    Refused,
    Source,
    behind_blanks,
    more,
    one_of,
    peek,
    skip,
    word,
)

LANGUAGES = frozenset({"", "json", "jsonc", "json5", "tool_call", "tool-call", "toolcall", "tool_code"})
"""What the line of a fence may say of the body without a loss."""
FAR = 1024
"""So many characters may stand between a body and the end of the fence round it."""

_OPENING = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n")
_RUNS = {mark: re.compile(f"{mark}*") for mark in FENCES}
_INFO = re.compile(r"[^\n{\[`]*")
_LANGUAGE = re.compile(r"[\w+#.-]*")


@frozen
class Fence:
    """A fence that is open. `left`: its line says more than what language the body is."""

    marks: str
    left: bool = False

    def close(self, source: Source) -> Generator[None, None, bool]:
        """Take the marks that end it, and blanks before them, if they stand here; whether they do."""
        if not (yield from behind_blanks(source, (self.marks,))):
            return False
        yield from word(source, _RUNS[self.marks[0]], sys.maxsize)
        return True

    def rest(self, source: Source, ends: Ends) -> Generator[None, None, bool]:
        """Take what stands in it up to the marks that end it, which end their line too, or up to a closer; whether
        either stands near. Other markup or the end of the message may not come first."""
        begin, tokens, closes = source.past, (self.marks, *ends.tokens), False
        search = marks_of(frozenset(token[0] for token in tokens)).search
        while not closes and source.past - begin <= FAR:
            found = search(source.text, source.at)
            source.at = found.start() if found else len(source.text)
            if found is None:
                if not (yield from more(source)):
                    return False
                continue
            token = yield from one_of(source, tokens)
            source.at -= len(token)
            if token == self.marks:
                closes = yield from self._closes(source, ends)
                if not closes:
                    return False
            elif token in ends.closers:
                closes = True
            elif token and (yield from ends.openings.here(source)):
                return False
            else:
                source.at += len(token) or 1
        return source.past - begin <= FAR

    def _closes(self, source: Source, ends: Ends) -> Generator[None, None, bool]:
        """Whether the marks here end their line, or a closer stands behind them; nothing is taken."""
        source.mark()
        yield from self.close(source)
        char = yield from skip(source, " \t\r")
        closes = char in ("", "\n") or (yield from one_of(source, ends.closers)) != ""
        source.back()
        return closes


def closing(closers: tuple[str, ...], around: Fence | None) -> tuple[str, ...]:
    """What ends a body, in a fence or in none."""
    return closers if around is None else (*closers, around.marks)


def fence(source: Source) -> Generator[None, None, Fence]:
    """Take the line that opens a code fence; where the body begins in it, one word may stand between.

    Raises `Refused` if it is none.
    """
    mark = yield from one_of(source, tuple(mark * MARKS for mark in FENCES))
    if not mark:
        raise Refused
    marks = mark + (yield from word(source, _RUNS[mark[0]]))
    info = yield from word(source, _INFO)
    char = yield from peek(source)
    if char == "`" or (char in ("{", "[") and len(info.split()) > 1):
        raise Refused
    return Fence(marks, info.strip().lower() not in LANGUAGES)


def another(source: Source) -> Generator[None, None, Fence | None]:
    """Take the marks of a fence that stand here, and all its line, if it opens one round a body: that."""
    source.mark()
    mark = yield from one_of(source, tuple(mark * MARKS for mark in FENCES))
    marks = mark + (yield from word(source, _RUNS[mark[0]], sys.maxsize))
    source.mark()
    try:
        yield from skip(source, " \t")
        language = yield from word(source, _LANGUAGE, NEAR)
        if (yield from skip(source)) == "{":
            source.taken()
            source.taken()
            return Fence(marks, language.lower() not in LANGUAGES)
    except Refused:
        pass
    source.back()
    source.taken()
    return None


def unfenced(text: str) -> str:
    """What stands in a fence, if a text is one; else the text, but for the line ends round it."""
    found, rest = _OPENING.match(text), text.rstrip()
    if found is None or not rest.endswith(found[1]) or len(rest) - len(found[1]) < found.end():
        return text.strip("\r\n")
    return rest[found.end() : -len(found[1])].removesuffix("\n")
