"""Frames that differ in one string alone, as nearly all of a stream do: the rest of them is not parsed again."""

from collections.abc import Callable
from typing import Any

import orjson
from attrs import define, field

from pipeline.jsontext import dumps

_PROBE = "\ue000sw"
_LONGEST = 4096
"""So many bytes, and no more, are kept of a frame."""
_FRUITLESS = 8
"""So many times in a row a frame is learnt that no other is like, before no more are."""


@define
class Template:
    """Knows the frame it has learnt again, whatever a certain string in it says, and tells that string.

    What it tells is what parsing the whole frame would: the bytes before and behind the string are the same, and the
    string is one JSON string. A stream whose frames are never alike (counts in each, padding) is given up.
    """

    _head: bytes = field(init=False, default=b"")
    _tail: bytes = field(init=False, default=b"")
    _around: int = field(init=False, default=-1)
    """So many bytes are both; -1: nothing was learnt."""
    _fruitless: int = field(init=False, default=0)

    def text(self, data: bytes) -> str:
        """The string of a frame like the one that was learnt; empty if it is another frame, or says nothing."""
        string = data.removeprefix(self._head).removesuffix(self._tail)
        if len(data) - len(string) != self._around:
            return ""
        try:
            text = orjson.loads(string)
        except orjson.JSONDecodeError:
            return ""
        if type(text) is not str:
            return ""
        self._fruitless = 0
        return text

    def learn(self, data: bytes, text: str, reads: Callable[[Any], Any]) -> bool:
        """Learn a frame which says `text`, as `reads` tells of its JSON. Whether it could be learnt."""
        self.forget()
        if self._fruitless >= _FRUITLESS or len(data) - len(text) > _LONGEST:
            return False
        self._fruitless += 1
        head, quoted, tail = data.partition(dumps(text))
        try:
            if not quoted or reads(orjson.loads(head + dumps(_PROBE) + tail)) != _PROBE:
                return False
        except orjson.JSONDecodeError:
            return False
        self._head, self._tail, self._around = head, tail, len(head) + len(tail)
        return True

    def forget(self) -> None:
        """What was learnt holds no longer."""
        self._head = self._tail = b""
        self._around = -1
