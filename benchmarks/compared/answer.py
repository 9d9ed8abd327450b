"""What a strict reader made of an answer stream, in words that no dialect owns."""

import json
from itertools import groupby
from typing import Any

from attrs import define, field


@define
class Block:
    """One piece of an answer, in order of its beginning: text, reasoning or a call."""

    kind: str
    text: str = ""
    """For a call its arguments."""
    name: str = ""
    id: str = ""
    closed: bool = False
    freeform: bool = False
    """A call whose input is no JSON."""

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments of a call, if they are a JSON object."""
        try:
            value = json.loads(self.text or "{}")
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@define
class Answer:
    """A stream, read to its end. `faults` are breaches of its dialect's grammar, each in a few words."""

    blocks: list[Block] = field(factory=list)
    stop: str = ""
    """`end`, `tool`, `limit`, `refusal`, or the wire's own word; empty if none was said."""
    error: str = ""
    """What the stream, or the library in its place, said went wrong."""
    ended: bool = False
    """The terminal came."""
    tokens: tuple[int, int] | None = None
    """All input tokens, cached ones too, and output tokens, as the last count says."""
    faults: list[str] = field(factory=list)

    def fault(self, said: str) -> None:
        """Note a breach, once."""
        if said not in self.faults:
            self.faults.append(said)

    def said(self, kind: str) -> str:
        """All text of a kind."""
        return "".join(block.text for block in self.blocks if block.kind == kind)

    @property
    def calls(self) -> list[Block]:
        """The calls, in order of their beginning."""
        return [block for block in self.blocks if block.kind == "call"]

    @property
    def runnable(self) -> list[Block]:
        """The calls that a client takes for whole."""
        return [block for block in self.calls if block.closed]

    @property
    def order(self) -> list[str]:
        """What follows what: runs of text and of reasoning as one, calls by name."""
        kinds = [
            f"call {block.name}" if block.kind == "call" else block.kind
            for block in self.blocks
            if block.kind == "call" or block.text.strip()
        ]
        return [key for key, run in groupby(kinds) for _ in (run if key.startswith("call") else [key])]

    def read_json(self, data: bytes) -> dict[str, Any] | None:
        """The object of a frame; anything else is a breach."""
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self.fault("a frame that is no JSON object")
            return None
        return value


def mapping(value: Any) -> dict[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, if it is one."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def message_of(error: Any) -> str:
    """The message of an error object, never empty."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or error.get("type")
    return str(error or "an error")


def count(value: Any) -> int:
    """A number of tokens, zero for what is none."""
    return value if isinstance(value, int) else 0
