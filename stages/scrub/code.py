"""Where a text quotes: code fences and code spans, in which markup is text."""

import re

from attrs import define, field

FENCES = ("`", "~")
MARKS = 3
"""A fence is so many marks at a line's start, or more; marks of lists and quotes may stand before it."""

_BEFORE = re.compile(r"(?:[\s>]|(?:[-*+]|\d{1,9}[.)])(?=\s))*")
_UNDER_WAY = re.compile(_BEFORE.pattern + r"(?:[-*+]|\d{1,9}[.)]?)?")
_RUNS = re.compile("`+|~+|[^`~]+")
_MOST = 64
"""So many characters of a line are looked at, blanks at its start apart."""


@define
class Code:
    """Whether the next character of a text stands in code, as Markdown has it; a span ends with its line at the latest.

    `passed` is told all text but runs of fence marks, `marks` is told those.
    """

    before: str | None = field(init=False, default="")
    """The line so far, while a fence may begin in it: blanks, marks of lists and quotes."""
    _fence: int = field(init=False, default=0)
    """How many marks opened the fence."""
    _kind: str = field(init=False, default="")
    """Which these were."""
    _quoted: bool = field(init=False, default=False)
    """It stands in a quote, every line of which has its mark."""
    _span: int = field(init=False, default=0)
    """How many marks opened the span, which also a fence is in its first line."""
    run: int = field(init=False, default=0)
    """How many marks stand at the end of the text, while more may come."""
    _mark: str = field(init=False, default="")
    """Which these are."""
    _begins: str | None = field(init=False, default=None)
    """What stands before them, if they stand at a line's start."""

    @property
    def blank(self) -> bool:
        """Nothing but blanks stands in the line so far."""
        return self.before is not None and not self.before.strip()

    @property
    def inside(self) -> bool:
        """The next character stands in code."""
        return bool(self._span or self._fence)

    def read(self, text: str) -> None:
        """Any text has passed."""
        for found in _RUNS.finditer(text):
            (self.marks if found.group()[0] in FENCES else self.passed)(found.group())

    def passed(self, text: str) -> None:
        """Text without marks has passed."""
        if not text:
            return
        if self.run:
            self.settle(text[0])
        end = text.rfind("\n")
        if end >= 0:
            self._span = 0
            self.before = ""
            text = text[end + 1 :]
        if self.before is not None:
            before = (self.before + text[: _MOST + 1]) if text.strip() or self.before.strip() else text[-1:]
            self.before = before if len(before) <= _MOST and _UNDER_WAY.fullmatch(before) else None

    def marks(self, text: str) -> None:
        """Marks of one kind have passed."""
        if self.run and self._mark != text[0]:
            self.settle(text[0])
        if not self.run:
            before, self.before = self.before, None
            self._begins = before if before is not None and _BEFORE.fullmatch(before) else None
        self.run += len(text)
        self._mark = text[0]

    def cut(self) -> None:
        """Markup was cut out here: what follows it begins as a line does."""
        self.before = ""

    def settle(self, behind: str) -> None:
        """`behind` is no mark: a run of them has ended."""
        count, self.run = self.run, 0
        ticks = self._mark == "`"
        if not count:
            return
        if self._fence:
            closes = self._mark == self._kind and count >= self._fence
            if closes and (self._span or (self._ends and (behind.isspace() or behind == "<"))):
                self._fence, self._span = 0, 0
        elif ticks and self._span:
            self._span = 0 if self._span == count else self._span
        elif count >= MARKS and self._begins is not None:
            self._fence, self._kind, self._span = count, self._mark, count if ticks else 0
            self._quoted = ">" in self._begins
        elif ticks:
            self._span = count

    @property
    def _ends(self) -> bool:
        """Whether a run stands where one that ends the fence may."""
        return self._begins is not None and not self._begins.replace(">" if self._quoted else "", "").strip()
