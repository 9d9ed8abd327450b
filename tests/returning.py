"""One dialect over itself: a stream through the default chain, with or without a stage in the middle."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from attrs import define

from pipeline.dialect import dialect
from pipeline.events import Event, TextDelta
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.stage import EventStage
from stages.recipe import default_chain, default_halves


def returned(name: str, reads: Iterable[bytes], **members: Any) -> tuple[bytes, Outcome]:
    """What a client of a dialect gets of a stream of the same dialect, and how it ended."""
    outcome = Outcome(ledger=Ledger())
    chain = default_chain(dialect(name), dialect(name), outcome=outcome, ledger=outcome.ledger, **members)
    made = [piece for part in reads for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()]), outcome


@define
class Each(EventStage):
    """What a function makes of each event."""

    make: Callable[[Event], Iterable[Event]]

    def on_event(self, event: Event) -> Iterable[Event]:
        return self.make(event)


def through(name: str, make: Callable[[Event], Iterable[Event]], reads: Iterable[bytes], **members: Any) -> bytes:
    """The same with a stage in the middle."""
    before, after = default_halves(dialect(name), dialect(name), **members)
    chain = before | Each(make) | after
    made = [piece for part in reads for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()])


def payloads(raw: bytes) -> list[Any]:
    """What the frames of a stream say."""
    lines = (line[6:] for line in raw.split(b"\n") if line.startswith(b"data: "))
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


def replacing(old: str, new: str) -> Callable[[Event], Iterable[Event]]:
    """A stage that replaces words in the text."""

    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta) and old in event.text:
            event = TextDelta(event.index, event.text.replace(old, new), origin=event.origin)
        yield event

    return make
