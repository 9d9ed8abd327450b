"""What is lost with a chunk of which nothing is left, or with what stood in one beside its text."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pipeline.events import AnnotationDelta, Event, Frame, Usage
from pipeline.ledger import Ledger
from pipeline.logprobs import scores_in
from pipeline.unread import Unread, says
from stages.dialects.chat.content import PLAIN
from stages.dialects.chat.patch import Json, said_in, spot_of
from stages.dialects.chat.usage import COUNTS, usage_of
from stages.dialects.chat.within import note_delta

STAGE: Final = "ChatReturner"
LOST: Final = "nothing is left of its frame"
FORGOTTEN: Final = "more frames were left out than are remembered"
ONCE: Final = frozenset({"service_tier", "system_fingerprint", "provider"})
"""What every chunk says again."""
OF_CHOICE: Final = frozenset({"index", "delta", "message", "finish_reason", "logprobs"})
"""The members of a choice that are told elsewhere, or noted by themselves."""


@define
class LostChunks:
    """Records it. What later chunks say again is not lost; nor is what was read: the calls and the reasoning that a
    text turned out to be, the finish, the counts."""

    ledger: Ledger
    _unread: Unread = field(init=False)
    _once: Json = field(init=False, factory=dict)
    """What was said in chunks that are lost, and may be said again."""

    def __attrs_post_init__(self) -> None:
        self._unread = Unread(STAGE, self.ledger, LOST)

    def lose(self, frame: Frame, made: Sequence[Event], first: Mapping[str, Any]) -> None:
        """A chunk is lost. `first`: the one that began the message."""
        said = said_in(frame)
        self._unread.note(said, PLAIN, apart=ONCE)
        self._once |= {name: said[name] for name in ONCE & said.keys() if said[name] != first.get(name)}
        if says(said.get("usage")):
            self._once["usage"] = said["usage"]
        if (spot := spot_of(said)) is None:
            return
        self._unread.note(spot.choice, OF_CHOICE, "choices[].")
        note_delta(spot.delta, self._unread)
        if says(spot.delta.get("stop_sequence")):
            self.ledger.record(STAGE, "choices[].delta.stop_sequence", "dropped", LOST)
        noted = any(isinstance(event, AnnotationDelta) and scores_in(event.annotation) for event in made)
        if says(spot.choice.get("logprobs")) and not noted:
            self.ledger.record(STAGE, "logprobs", "dropped", LOST)

    def said(self, chunk: Mapping[str, Any]) -> None:
        """A chunk goes out: what it says is not lost."""
        for name in self._once.keys() & chunk.keys():
            if says(chunk[name]):
                del self._once[name]

    def counts(self, usage: Usage) -> Json | None:
        """What a chunk that is lost told of these counts; it is told again."""
        told = self._once.get("usage")
        if not isinstance(told, dict) or usage_of(told) != usage:
            return None
        del self._once["usage"]
        return told

    def end(self) -> None:
        """Nothing is said again."""
        usage = self._once.pop("usage", None)
        for prefix, (member, read) in COUNTS.items() if isinstance(usage, dict) else ():
            self._unread.note(usage if member is None else usage.get(member), read, prefix)
        self._unread.note(self._once, frozenset())
        self._once = {}
