"""Opaque reasoning on its way to a client of another dialect: in an envelope, or not at all."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.envelope import TextDigest, seal
from pipeline.events import (
    BlockStart,
    BlockStop,
    Event,
    MessageStart,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    SignatureDelta,
    StreamError,
)
from pipeline.ledger import Ledger
from pipeline.stage import Stage

CHANGING = frozenset({MessageStart, BlockStart, SignatureDelta, BlockStop})
"""What is changed, or says what is to be."""


@define
class Sealer(Stage[Event, Event]):
    """Every blob of a provider's reasoning is in an envelope, which brings it back to that provider alone.

    The envelope holds a hash of the whole reasoning that the blob belongs to, so that an edited text is noticed, and
    so is a part of it: this stands before the stage that may split it. With `envelopes` off, signatures and redacted
    blocks are left out; both are recorded.
    """

    upstream: str = field(kw_only=True)
    """The provider's name in envelopes."""
    envelopes: bool = field(default=True, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    ended: bool = field(init=False, default=False)
    _model: str = field(init=False, default="")
    _texts: dict[int, TextDigest] = field(init=False, factory=dict)
    """Of the reasoning blocks that are open."""
    _left_out: frozenset[int] = field(init=False, default=frozenset())

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in items:
            if type(event) in CHANGING:
                return self._all_sealed(items)
        for event in items:
            if type(event) is ReasoningDelta:
                self._note(event)
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.ended = True
        return () if cause is None else (cause,)

    def _all_sealed(self, items: Sequence[Event]) -> Sequence[Event]:
        """The events as they go on. (Apart from `receive`, whose every call would pay for what this closes over.)"""
        return [sealed for event in items if (sealed := self._sealed(event)) is not None]

    def _sealed(self, event: Event) -> Event | None:
        """The event as it goes on, if it does."""
        if isinstance(event, ReasoningDelta):
            self._note(event)
        elif isinstance(event, SignatureDelta):
            return self._signature(event)
        elif isinstance(event, BlockStart):
            return self._start(event)
        elif isinstance(event, BlockStop):
            self._texts.pop(event.index, None)
            if event.index in self._left_out:
                self._left_out -= {event.index}
                return None
        elif isinstance(event, MessageStart):
            self._model = event.model
        return event

    def _note(self, event: ReasoningDelta) -> None:
        if (text := self._texts.get(event.index)) is not None:
            text.add(event.text)

    def _start(self, event: BlockStart) -> BlockStart | None:
        block = event.block
        if isinstance(block, ReasoningBlock):
            self._texts[event.index] = TextDigest()
        elif isinstance(block, RedactedReasoningBlock):
            if self.envelopes:
                return BlockStart(event.index, RedactedReasoningBlock(self._envelope("", block.data)))
            self._lose("redacted reasoning")
            self._left_out |= {event.index}
            return None
        return event

    def _signature(self, event: SignatureDelta) -> SignatureDelta | None:
        if self.envelopes:
            return SignatureDelta(event.index, self._envelope(self._texts.get(event.index, ""), event.signature))
        self._lose("signature")
        return None

    def _envelope(self, text: str | TextDigest, blob: str) -> str:
        return seal(self.upstream, self._model, text, blob)

    def _lose(self, path: str) -> None:
        self.ledger.record("Sealer", path, "dropped", "opaque reasoning of another provider, and envelopes are off")
