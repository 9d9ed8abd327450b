"""OpenAI Chat Completions, in every flavour that vendors serve."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pipeline.dialect import RequestFacts
from pipeline.errors import StageError
from pipeline.events import Event, Frame
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.stage import Stage
from stages.dialects.chat.normalize import DONE, ChatNormalizer


@frozen
class Chat:
    """Hands out the rooms of this dialect."""

    name: str = "chat"
    sentinels: tuple[bytes, ...] = (DONE,)

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What the answer's stages need to know of a client's request body."""
        model = request.get("model")
        return RequestFacts(model=model if isinstance(model, str) else "")

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""
        return ChatNormalizer(facts=facts, ledger=ledger, limits=limits)

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Raises `StageError`: Chat is read, not written."""
        raise StageError("the chat dialect is read, not written")


DIALECT = Chat()
