"""How an answer was made, as a provider's JSON tells it where it tells of that beside the answer."""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from pipeline.counts import count_of
from pipeline.events import Served
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.unread import says

NOBODY = Served()


def told_of(served: Served) -> dict[str, str]:
    """How an answer was made, but for its time, in members of the same names."""
    told = {"service_tier": served.service_tier, "provider": served.provider}
    return {name: word for name, word in told.items() if word is not None}


@define
class Serving:
    """What is told of it, as far as it was told; the last word counts, but for the time, of which the first does."""

    limits: Limits = DEFAULT_LIMITS
    ledger: Ledger = field(factory=Ledger)
    stage: str = ""
    """What the ledger calls whoever hears it."""
    served: Served = field(init=False, default=NOBODY)
    _begun: Served = field(init=False, default=NOBODY)

    def hear(self, said: Mapping[str, Any], created: str) -> None:
        """What an object tells; `created`: what its time is called."""
        before = self.served
        tier, provider = self._word(said, "service_tier"), self._word(said, "provider")
        time = before.created or count_of(said.get(created)) or None
        if time is None and says(said.get(created)):
            self.ledger.record(self.stage, created, "ignored", "no time")
        now = Served(time, tier or before.service_tier, provider or before.provider)
        if now != before:
            self.served = now

    def differs(self, said: Mapping[str, Any]) -> bool:
        """Whether an object tells a word that is not the last one."""
        tier, provider = said.get("service_tier"), said.get("provider")
        served = self.served
        return bool(tier and tier != served.service_tier) or bool(provider and provider != served.provider)

    def begun(self) -> Served | None:
        """What is known when the message begins; None: nothing."""
        self._begun = self.served
        return None if self.served is NOBODY else self.served

    def ended(self) -> Served | None:
        """What is known at its end, if that is not what was known before."""
        return None if self.served is self._begun else self.served

    def news(self) -> Iterable[str]:
        """The members that tell it at its end and told something else, or nothing, before."""
        before = told_of(self._begun)
        return [name for name, word in told_of(self.served).items() if before.get(name) != word]

    def _word(self, said: Mapping[str, Any], name: str) -> str | None:
        value = said.get(name)
        if isinstance(value, str) and 0 < len(value) <= self.limits.id_chars:
            return value
        if says(value):
            self.ledger.record(self.stage, name, "ignored", "no text, or a long one")
        return None
