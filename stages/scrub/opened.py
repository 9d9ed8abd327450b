"""A call that was opened before its body was whole: what was written of it stands, and the rest must fit it."""

import json
import re
from typing import Any

from attrs import define, field

from pipeline.errors import ErrorKind, UpstreamError
from pipeline.events import ArgumentsDelta, BlockStop, Event, ToolKind, ToolUseBlock
from pipeline.jsontext import BLANK, dumps, end_of, exact

_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+')
_SCALAR = re.compile(r"[-+.\w]++")
_ENDS = ("}", "]")
_BLANKS = re.compile(f"[{BLANK}]*+")


@define
class OpenCall:
    """The call that is being written."""

    block: ToolUseBlock
    index: int
    behind: list[Event] = field(init=False, factory=list)
    """What came meanwhile, in order."""
    _written: list[str] = field(init=False, factory=list)

    def more(self, arguments: str, out: list[Event]) -> None:
        """More of its arguments; freeform input is written when it is whole."""
        if arguments and self.block.kind is ToolKind.FUNCTION:
            self._written.append(arguments)
            out.append(ArgumentsDelta(self.index, arguments))

    def end(self, name: str, arguments: str, out: list[Event]) -> None:
        """Its body is whole, and says this. Raises as `broken` tells, if what was written is no beginning of that."""
        rest = rest_of("".join(self._written), arguments)
        if rest is None or name != self.block.name:
            raise self.broken()
        if rest:
            out.append(ArgumentsDelta(self.index, rest))
        out.append(BlockStop(self.index))

    def broken(self) -> UpstreamError:
        """It cannot be ended any more, and is left open."""
        return UpstreamError(
            f"the arguments of the call of {self.block.name!r} are no JSON object",
            kind=ErrorKind.INVALID_TOOL_ARGUMENTS,
            code="invalid_tool_arguments",
        )


def rest_of(written: str, text: str) -> str | None:
    """What makes of the beginning of a JSON object a text that says what `text` does; None if nothing can.

    The beginning ends behind a bracket or a member, or within a string that is a value.
    """
    if text.startswith(written):
        return text[len(written) :]
    try:
        value = exact(text)
        rest = _Rest(written).of(value)
        return rest if exact(written + rest) == value else None
    except (ValueError, RecursionError):
        return None


@define
class _Rest:
    """What a text lacks that begins as some value does."""

    text: str
    at: int = 0

    def of(self, value: Any) -> str:
        """Go past a value that is to be this one; what it lacks, if the text ends in it."""
        char = self.text[self.at]
        if char == '"':
            return self._string(value)
        if char in ("{", "["):
            return self._items(char, value)
        self._past(_SCALAR)
        return ""

    def _string(self, value: Any) -> str:
        begin = self.at
        if self._ended_string():
            return ""
        begun = json.loads(self.text[begin:] + '"')
        if not isinstance(value, str) or not value.startswith(begun):
            raise ValueError
        return _said(value[len(begun) :])[1:]

    def _items(self, opening: str, value: Any) -> str:
        """Go past an object or an array."""
        left = {**value} if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
        lacks, count = "", 0
        self.at += 1
        self._past(_BLANKS)
        while self.at < len(self.text):
            if self.text[self.at] in _ENDS:
                self.at += 1
                return ""
            if self.text[self.at] == ",":
                self.at += 1
                self._past(_BLANKS)
            lacks = self.of(left.pop(self._key() if opening == "{" else count, None))
            count += 1
            self._past(_BLANKS)
        more = [_said(one) if opening == "[" else f"{_said(key)}: {_said(one)}" for key, one in left.items()]
        comma = ", " if count and more else ""
        return lacks + comma + ", ".join(more) + ("}" if opening == "{" else "]")

    def _key(self) -> Any:
        """Go past a key and its colon."""
        begin = self.at
        self._ended_string()
        key = json.loads(self.text[begin : self.at])
        self._past(_BLANKS)
        self.at += 1
        self._past(_BLANKS)
        return key

    def _ended_string(self) -> bool:
        """Go past a string; whether it ends."""
        self.at += 1
        self._past(_STRING)
        self.at += 1
        return self.at <= len(self.text)

    def _past(self, pattern: "re.Pattern[str]") -> None:
        self.at = end_of(pattern, self.text, self.at)


def _said(value: Any) -> str:
    return dumps(value).decode()
