"""A code fence round the body of a call, which is markup as the tags are."""

import re
import sys
from collections.abc import Generator

from attrs import frozen

from stages.scrub.code import FENCES, MARKS
from stages.scrub.grammar import Refused, Source, behind_blanks, one_of, peek, word

LANGUAGES = frozenset({"", "json", "jsonc", "json5", "tool_call", "tool-call", "toolcall", "tool_code"})
"""What the line of a fence may say of the body without a loss."""

_OPENING = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n")
_RUNS = {mark: re.compile(f"{mark}*") for mark in FENCES}
_INFO = re.compile(r"[^\n{\[`]*")


@frozen
class Fence:
    """A fence that is open. `left`: its line says more than what language the body is."""

    marks: str
    left: bool = False

    def close(self, source: Source) -> Generator[None, None, None]:
        """Take the marks that end it, and blanks before them, if they stand here."""
        if (yield from behind_blanks(source, (self.marks,))):
            yield from word(source, _RUNS[self.marks[0]], sys.maxsize)


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


def unfenced(text: str) -> str:
    """What stands in a fence, if a text is one; else the text, but for the line ends round it."""
    found, rest = _OPENING.match(text), text.rstrip()
    if found is None or not rest.endswith(found[1]) or len(rest) - len(found[1]) < found.end():
        return text.strip("\r\n")
    return rest[found.end() : -len(found[1])].removesuffix("\n")
