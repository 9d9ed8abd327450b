"""The grammar of a dialect's wire as one table of rules, and the breaches of it: which rule, where, by whose word.

A dialect brings a `Grammar`: rules, each about one kind of part, and a `Reading`, which takes the frames of one stream
apart and remembers what the rules ask for. Nothing here knows one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeGuard

from attrs import frozen

from pipeline.events import Frame

Part = tuple[str, Any]
"""A part of a frame, under the name by which rules speak of it."""

Broken = Callable[[Any, Any], object]
"""Whether a part breaks a rule, given the reading of what came before."""

WHATWG: Final = "HTML Standard, 9.2.5 Parsing an event stream"
READERS: Final = "httpx-sse 0.4, openai 3.57, npm openai 7.59: what each of them reads alike"


@frozen
class Rule:
    """One row: every `part` of a stream must be as `says`; `source` is where that is written or was measured."""

    part: str
    says: str
    source: str
    broken: Broken
    """Whether a part breaks it, given the reading of what came before."""
    own: bool = False
    """It binds what we write; not every vendor keeps it."""


@frozen
class Breach:
    """A rule that was broken: in which frame, counted from 0, and the offset of its first byte. The end of the stream
    is behind the last frame."""

    frame: int
    offset: int
    rule: Rule


class Reading(ABC):
    """One stream as far as it was read."""

    @abstractmethod
    def parts(self, frame: Frame) -> Iterator[Part]:
        """The parts of a frame. Of each is taken note when the next is asked for: rules see what came before it."""

    def end(self) -> Iterator[Part]:
        """What can be said only at the end."""
        yield "end", None


@frozen
class Grammar:
    """What a dialect's streams must be like."""

    rules: Sequence[Rule]
    reading: Callable[[], Reading]

    def breaches(self, stream: bytes, *, own: bool = True) -> Iterator[Breach]:
        """What in a whole stream breaks it, in order. `own`: it is one that we wrote."""
        rules = [rule for rule in self.rules if own or not rule.own]
        reading = self.reading()
        number = 0

        def broken(parts: Iterator[Part], offset: int) -> Iterator[Breach]:
            for name, part in parts:
                for rule in rules:
                    if rule.part == name and rule.broken(part, reading):
                        yield Breach(number, offset, rule)

        for block in blocks(stream):
            yield from broken(iter([("block", block)]), block.offset)
            if block.frame.data:
                yield from broken(reading.parts(block.frame), block.offset)
                number += 1
        yield from broken(reading.end(), len(stream))


@frozen
class Block:
    """What stands between two blank lines."""

    offset: int
    data: bytes
    whole: bool
    """A blank line ends it."""

    @property
    def lines(self) -> list[bytes]:
        """Its lines."""
        return self.data.split(b"\n")

    def values(self, name: bytes) -> list[bytes]:
        """What the lines of a field hold."""
        return [line[len(name) + 2 :] for line in self.lines if line.startswith(name + b": ")]

    @property
    def frame(self) -> Frame:
        """The event that it is."""
        return Frame(b"\n".join(self.values(b"data")), b"".join(self.values(b"event")))


def blocks(stream: bytes) -> Iterator[Block]:
    """The blocks of a stream."""
    at = 0
    while at < len(stream):
        end = stream.find(b"\n\n", at)
        whole = end >= 0
        yield Block(at, stream[at : end if whole else len(stream)], whole)
        at = end + 2 if whole else len(stream)


def framing(*, named: bool) -> tuple[Rule, ...]:
    """How events are framed, of a dialect whose events are named or are not."""
    rows: tuple[tuple[str, str, Broken], ...] = (
        ("ends with a blank line", WHATWG, lambda block, _: not block.whole),
        ("is UTF-8", WHATWG, lambda block, _: not _is_utf8(block.data)),
        ("has no byte order mark", READERS, lambda block, _: b"\xef\xbb\xbf" in block.data[:3]),
        ("has LF at the end of every line", READERS, lambda block, _: b"\r" in block.data),
        ("is comments, or a name at most and one line of data", READERS, _has_odd_lines),
        ("has no empty data", "openai 3.57 parses it as JSON", lambda block, _: b"" in block.values(b"data")),
    )
    name: tuple[str, str, Broken] = (
        "has no name",
        "OpenAI API reference, Streaming",
        lambda block, _: block.frame.name,
    )
    if named:
        name = ("is named", "anthropic 2.14 reads no other", _lacks_name)
    return tuple(Rule("block", says, source, broken, own=True) for says, source, broken in (*rows, name))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_odd_lines(block: Block, _: object) -> bool:
    names, datas = block.values(b"event"), block.values(b"data")
    comments = [line for line in block.lines if line.startswith(b":")]
    return len(names) + len(datas) + len(comments) < len(block.lines) or len(datas) > 1 or len(names) > len(datas)


def _lacks_name(block: Block, _: object) -> bool:
    return bool(block.values(b"data")) and not block.frame.name


# What rules of several dialects ask


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value is a number of things."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_word(value: Any) -> TypeGuard[str]:
    """Whether a value is a text that is not empty."""
    return isinstance(value, str) and value != ""


def get(value: Any, *path: str) -> Any:
    """The member at a path of members; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
