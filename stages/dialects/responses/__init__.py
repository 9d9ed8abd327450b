"""OpenAI Responses, in every flavour that servers speak."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pipeline.dialect import RequestFacts
from pipeline.events import Event, Frame
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.stage import Stage
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.normalize import DONE, ResponsesNormalizer
from stages.dialects.responses.offered import echo_of, offered_tools


@frozen
class Responses:
    """Hands out the rooms of this dialect."""

    name: str = "responses"
    sentinels: tuple[bytes, ...] = (DONE,)

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What the answer's stages need to know of a client's request body."""
        model = request.get("model")
        return RequestFacts(
            model=model if isinstance(model, str) else "", tools=offered_tools(request), echo=echo_of(request)
        )

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""
        return ResponsesNormalizer(facts=facts, ledger=ledger, limits=limits)

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""
        return ResponsesEncoder(facts=facts, ledger=ledger)


DIALECT = Responses()
