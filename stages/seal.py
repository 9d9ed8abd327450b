"""Opaque reasoning on its way to a client of another dialect: in an envelope, or not at all."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.envelope import seal
from pipeline.events import (
    BlockStart,
    BlockStop,
    Event,
    MessageStart,
    ReasoningDelta,
    RedactedReasoningBlock,
    SignatureDelta,
    StreamError,
)
from pipeline.ledger import Ledger
from pipeline.stage import Stage

SEEN = frozenset({MessageStart, BlockStart, ReasoningDelta, SignatureDelta, BlockStop})


@define
class Sealer(Stage[Event, Event]):
    """Every blob of another provider's reasoning is in an envelope, which brings it back to that provider alone.

    The envelope holds a hash of the reasoning it belongs to, so that an edited text is noticed. With `envelopes` off a
    signature is left out and so is a redacted block; both are recorded. Stands where one block is open at a time.
    """

    upstream: str = field(kw_only=True)
    """The provider's name in envelopes."""
    envelopes: bool = field(default=True, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    ended: bool = field(init=False, default=False)
    _model: str = field(init=False, default="")
    _text: list[str] = field(init=False, factory=list)
    _left_out: int = field(init=False, default=-1)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in items:
            if type(event) in SEEN:
                return [passed for one in items if (passed := self._sealed(one)) is not None]
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        return () if cause is None else (cause,)

    def _sealed(self, event: Event) -> Event | None:
        if isinstance(event, MessageStart):
            self._model = event.model
        elif isinstance(event, ReasoningDelta):
            self._text.append(event.text)
        elif isinstance(event, SignatureDelta):
            if not self.envelopes:
                self._lose("signature")
                return None
            return SignatureDelta(event.index, seal(self.upstream, self._model, "".join(self._text), event.signature))
        elif isinstance(event, BlockStart):
            self._text.clear()
            if isinstance(event.block, RedactedReasoningBlock):
                if not self.envelopes:
                    self._lose("redacted reasoning")
                    self._left_out = event.index
                    return None
                sealed = seal(self.upstream, self._model, "", event.block.data)
                return BlockStart(event.index, RedactedReasoningBlock(sealed))
        elif isinstance(event, BlockStop) and event.index == self._left_out:
            self._left_out = -1
            return None
        return event

    def _lose(self, path: str) -> None:
        self.ledger.record("Sealer", path, "dropped", "opaque reasoning of another provider, and envelopes are off")
