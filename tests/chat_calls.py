"""Calls, given entries of `tool_calls`."""

from collections.abc import Collection
from itertools import count
from typing import Any

from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    Event,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.chat.calls import Calls
from stages.dialects.chat.fragments import fragments_of


class Spoken:
    """Calls, given entries of `tool_calls`, with what came of them."""

    def __init__(self, limits: Limits | None = None, offered: Collection[str] = ()) -> None:
        self.ledger = Ledger()
        tools = {name: OfferedTool(name) for name in offered}
        self.calls = Calls(self.ledger, limits or Limits(), count(), RequestMap(tools))
        self.out: list[Event] = []

    def say(self, *entries: dict[str, Any]) -> list[Event]:
        """What these entries make."""
        before = len(self.out)
        for one in fragments_of(entries, self.ledger):
            self.calls.add(one, self.out)
        return self.out[before:]

    def whole(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of the calls, in order."""
        said: dict[int, list[str]] = {}
        for event in self.out:
            if isinstance(event, BlockStart):
                assert isinstance(event.block, ToolUseBlock)
                said[event.index] = [event.block.id, event.block.name, ""]
            elif isinstance(event, ArgumentsDelta):
                said[event.index][2] += event.text
        return [(id_, name, text) for id_, name, text in said.values()]


def called(*entries: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The calls that these entries make."""
    spoken = Spoken()
    spoken.say(*entries)
    return spoken.whole()
