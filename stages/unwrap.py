"""Freeform tools that an upstream knows as functions of one string: their input is free again."""

import json
import re
from collections.abc import Sequence
from enum import Enum, auto

from attrs import define, evolve, field

from pipeline.errors import LimitExceeded
from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, Event, StreamError, ToolKind, ToolUseBlock
from pipeline.jsontext import BLANK, loads, size_of, whole_text
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import Stage
from pipeline.toolnames import RequestMap

_HEAD = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"input"[ \t\n\r]*:[ \t\n\r]*"')
_HEAD_CHARS = 100
"""Within so many characters the string begins, or what comes is something else."""
_INSIDE = re.compile(r'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+', re.DOTALL)
"""The inside of a JSON string, up to its closing quote or to an escape that has not come whole."""
_HALF = re.compile(r"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")
"""At the end of that, the first half of a character that two escapes make."""
_ESCAPE_CHARS = 6


class _State(Enum):
    HEAD = auto()  # before the string: kept
    STRING = auto()  # inside it
    TAIL = auto()  # behind it: nothing more is said
    OTHER = auto()  # not one string: kept to the end
    RAW = auto()  # what cannot be kept or read: passed on as it comes


@define
class InputUnwrapper(Stage[Event, Event]):
    """A call of a wrapped freeform tool is a freeform call again, its input unescaped as it comes.

    Arguments that turn out not to be one string `input` are given as they were written, when the call ends: the tool
    says better than we what is wrong with them. Stands where one block is open at a time.
    """

    map: RequestMap
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    ended: bool = field(init=False, default=False)
    _index: int = field(init=False, default=-1)
    _input: "WrappedInput | None" = field(init=False, default=None)
    """Of the open call, if it is a wrapped one."""

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return 0 if self._input is None else self._input.held

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        if self._input is None and BlockStart not in map(type, items):
            return items
        out: list[Event] = []
        for event in items:
            if isinstance(event, BlockStart):
                event = self._begun(event)
            elif self._input is not None and isinstance(event, ArgumentsDelta):
                self._write(self._input.feed(event.text), out)
                continue
            elif isinstance(event, BlockStop | StreamError):
                self._end(out)
            out.append(event)
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        out: list[Event] = []
        self._end(out)
        return out if cause is None else [*out, cause]

    def _begun(self, event: BlockStart) -> BlockStart:
        block = event.block
        if not isinstance(block, ToolUseBlock) or not self.map.tool(block.name).wrapped:
            return event
        self._index, self._input = event.index, WrappedInput(self.limits)
        return BlockStart(event.index, evolve(block, kind=ToolKind.CUSTOM))

    def _end(self, out: list[Event]) -> None:
        if self._input is None:
            return
        self._write(self._input.close(), out)
        if self._input.odd:
            self.ledger.record("InputUnwrapper", "arguments", "dropped", "they stood behind the input")
        self._input = None

    def _write(self, text: str, out: list[Event]) -> None:
        if text:
            out.append(ArgumentsDelta(self._index, text))


@define
class WrappedInput:
    """The one string in `{"input": "..."}`, fed as fragments."""

    limits: Limits = DEFAULT_LIMITS
    held: int = field(init=False, default=0)
    """Bytes of what is kept."""
    odd: bool = field(init=False, default=False)
    """Something stood behind the string that cannot be said any more."""
    _state: _State = field(init=False, default=_State.HEAD)
    _kept: list[str] = field(init=False, factory=list)

    def feed(self, text: str) -> str:
        """What of the input may be written now."""
        if self._state is _State.STRING:
            return self._inside(self._taken() + text)
        if self._state is _State.TAIL:
            self._behind(text)
            return ""
        if self._state is _State.RAW:
            return text
        self._keep(text)
        if self._state is _State.HEAD:
            head = "".join(self._kept)
            if found := _HEAD.match(head, 0, _HEAD_CHARS):
                self._taken()
                self._state = _State.STRING
                return self._inside(head[found.end() :])
            if len(head) > _HEAD_CHARS:
                self._state = _State.OTHER
        if self.held > self.limits.held_bytes:
            self._state = _State.RAW
            return self._taken()
        return ""

    def close(self) -> str:
        """What is still to be written at the end of the call. Half an escape is nothing."""
        kept = self._taken()
        if self._state is _State.STRING:
            return ""
        try:
            said = loads(kept, self.limits.json_depth)
        except (ValueError, LimitExceeded):
            return kept
        text = said.get("input") if isinstance(said, dict) and len(said) == 1 else None
        return whole_text(text) if isinstance(text, str) else kept

    def _inside(self, text: str) -> str:
        found = _INSIDE.match(text)
        end = found.end() if found else 0  # it always matches
        inside, rest = text[:end], text[end:]
        if rest.startswith('"'):
            self._state = _State.TAIL
            self._behind(rest[1:])
            return _unescaped(inside)
        if len(rest) >= _ESCAPE_CHARS:  # no escape at all
            self._state = _State.RAW
            return _unescaped(inside) + rest
        if half := _HALF.search(inside):
            inside, rest = inside[: half.start(1)], half[1] + rest
        self._keep(rest)
        return _unescaped(inside)

    def _behind(self, text: str) -> None:
        self.odd = self.odd or bool(text.strip(BLANK + "}"))

    def _keep(self, text: str) -> None:
        self._kept.append(text)
        self.held += size_of(text)

    def _taken(self) -> str:
        kept, self._kept, self.held = "".join(self._kept), [], 0
        return kept


def _unescaped(inside: str) -> str:
    """What the inside of a JSON string says, its control characters included."""
    try:
        return whole_text(json.loads(f'"{inside}"', strict=False))
    except ValueError:
        return inside
