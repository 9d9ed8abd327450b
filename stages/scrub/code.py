"""Where a text quotes: code fences and code spans, in which markup is text."""

from attrs import define, field

FENCES = ("`", "~")
MARKS = 3
"""A fence is so many marks at a line's start, or more."""


@define
class Code:
    """Whether the next character of a text stands in code, as Markdown has it; a span ends with its line at the latest.

    `passed` is told all text but runs of fence marks, `marks` is told those.
    """

    blank: bool = field(init=False, default=True)
    """Nothing but blanks stands in the line so far."""
    _fence: str = field(init=False, default="")
    """The marks that opened the fence."""
    _span: int = field(init=False, default=0)
    """How many marks opened the span, which also a fence is in its first line."""
    run: str = field(init=False, default="")
    """The marks at the end of the text, while more may come."""
    _begins: bool = field(init=False, default=False)
    """They stand at a line's start."""

    @property
    def inside(self) -> bool:
        """The next character stands in code."""
        return bool(self._span or self._fence)

    def passed(self, text: str) -> None:
        """Text without marks has passed."""
        if not text:
            return
        if self.run:
            self.settle(text[0])
        end = text.rfind("\n")
        if end >= 0:
            self._span = 0
            self.blank = True
            text = text[end + 1 :]
        self.blank = self.blank and (not text or text.isspace())

    def marks(self, text: str) -> None:
        """Marks of one kind have passed."""
        if self.run and self.run[0] != text[0]:
            self.settle(text[0])
        if not self.run:
            self._begins, self.blank = self.blank, False
        self.run += text

    def cut(self) -> None:
        """Markup was cut out here: what follows it begins as a line does."""
        self.blank = True

    def settle(self, behind: str) -> None:
        """`behind` is no mark: a run of them has ended."""
        run, self.run = self.run, ""
        if not run:
            return
        count = len(run)
        if self._fence:
            if run.startswith(self._fence) and (self._span or (self._begins and (behind.isspace() or behind == "<"))):
                self._fence, self._span = "", 0
        elif run[0] == "`" and self._span:
            self._span = 0 if self._span == count else self._span
        elif count >= MARKS and self._begins:
            self._fence, self._span = run, count if run.startswith("`") else 0
        elif run[0] == "`":
            self._span = count
