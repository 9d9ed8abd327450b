"""What a dialect must offer. Nothing here knows one."""

from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

from attrs import field, frozen

from pipeline.errors import ClientError
from pipeline.events import Event, Frame, Usage
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.stage import Stage
from pipeline.toolnames import OfferedTool

GROUP = "streamweir.dialects"
"""The entry-point group in which packages offer their dialects."""


@frozen(kw_only=True)
class RequestFacts:
    """What the stages of an answer need to know of the request it answers."""

    model: str = ""
    """The model asked for; what an answer that names none is said to come from."""
    usage: Usage | None = None
    """An estimate of the request's own tokens, for answers that begin before the upstream counts them."""
    tools: Mapping[str, OfferedTool] = field(factory=dict)
    """The client's tools by the name that the upstream calls them by; one that is not here is what it seems."""
    echo: Mapping[str, Any] = field(factory=dict)
    """Members of the request that the answer repeats."""


NO_REQUEST = RequestFacts()


class Dialect(Protocol):
    """One API's words. Its object is found through the entry-point group `streamweir.dialects`."""

    @property
    def name(self) -> str:
        """The word by which a route names it."""

    @property
    def sentinels(self) -> Collection[bytes]:
        """Payloads that are whole though they are no JSON."""

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What a client's request body says that the answer's stages need.

        Raises `ClientError` if it is no request of this dialect.
        """

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""


def dialects() -> dict[str, Dialect]:
    """The installed dialects by name."""
    return {found.name: found.load() for found in entry_points(group=GROUP)}


def dialect(name: str) -> Dialect:
    """The installed dialect of that name.

    Raises `ClientError` naming the installed ones if there is none.
    """
    for found in entry_points(group=GROUP, name=name):
        loaded: Dialect = found.load()
        return loaded
    raise ClientError(f"no dialect {name!r}; there are: {', '.join(sorted(dialects()))}")
