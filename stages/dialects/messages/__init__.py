"""Anthropic Messages."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pipeline.dialect import RequestFacts
from pipeline.errors import StageError
from pipeline.events import Event, Frame
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.stage import Stage
from stages.dialects.messages.encode import MessagesEncoder


@frozen
class Messages:
    """Hands out the rooms of this dialect."""

    name: str = "messages"
    sentinels: tuple[bytes, ...] = ()

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What the answer's stages need to know of a client's request body."""
        model = request.get("model")
        return RequestFacts(model=model if isinstance(model, str) else "")

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Raises `StageError`: Messages is written, not read."""
        raise StageError("the messages dialect is written, not read")

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""
        return MessagesEncoder(ledger=ledger)


DIALECT = Messages()
