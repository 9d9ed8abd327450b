"""What is lost with a frame of which nothing is left, or with a block of which nothing is."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from pipeline.ledger import Ledger
from pipeline.unread import Unread, says
from pipeline.word import word
from stages.dialects.messages.blocks import READ
from stages.dialects.messages.normalize import DELTA_KINDS, OF_DELTA, OF_EVENT

STAGE: Final = "MessagesReturner"
LOST: Final = "nothing is left of its frame"
SILENT: Final = "nothing is left of its text"
CLOSED: Final = "its block is not open"
FORGOTTEN: Final = "more frames were left out than are remembered"


@define
class LostFrames:
    """Records what stands in them that no event carries."""

    ledger: Ledger
    _unread: Unread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._unread = Unread(STAGE, self.ledger, LOST)

    def lose(self, said: Mapping[str, Any]) -> None:
        """An event is lost."""
        if (read := OF_EVENT.get(str(said.get("type")))) is not None:
            self._unread.note(said, read, "event.")
        self._unread.note(said.get("delta"), OF_DELTA, "delta.")
        note_block(said.get("content_block"), self._unread)

    def late(self, said: Mapping[str, Any]) -> None:
        """A delta of a block that is not open is lost; one that is known and says nothing was none."""
        delta = found if isinstance(found := said.get("delta"), dict) else {}
        known = word(delta.get("type")) in DELTA_KINDS
        if not known or any(says(delta[name]) for name in OF_DELTA & delta.keys() - {"type"}):
            self.ledger.record(STAGE, "delta", "dropped", CLOSED)
        self.lose(said if known else {**said, "delta": None})


def lose_block(block: Any, ledger: Ledger) -> None:
    """A block of a whole answer is lost: all that it says is told as something else."""
    note_block(block, Unread("messages.body", ledger, SILENT))


def note_block(block: Any, unread: Unread) -> None:
    """Record what of a block is not read."""
    if isinstance(block, dict) and (read := READ.get(str(block.get("type")))) is not None:
        unread.note(block, read, "content[].")
