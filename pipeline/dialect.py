"""What a dialect must offer. Nothing here knows one."""

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, runtime_checkable

from attrs import evolve, field, frozen

from pipeline.change import Change
from pipeline.errors import ClientError
from pipeline.events import BlockStart, Event, Frame, Origin, StreamError, Usage
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message
from pipeline.request import Request, RequestOptions
from pipeline.stage import Stage
from pipeline.toolnames import NO_MAP, BuiltRequest, RequestMap

GROUP = "streamweir.dialects"
"""The entry-point group in which packages offer their dialects."""


@frozen(kw_only=True)
class RequestFacts:
    """What the stages of an answer need to know of the request it answers."""

    model: str = ""
    """The model asked for; what an answer that names none is said to come from."""
    usage: Usage | None = None
    """An estimate of the request's own tokens, for answers that begin before the upstream counts them."""
    stream: bool = True
    """The client asked for a stream."""
    include_usage: bool = True
    """The client wants to see token counts, where its dialect lets it choose."""
    one_call: bool = False
    """The client can be told of one call alone, in the older words of its dialect."""
    map: RequestMap = NO_MAP
    """The way back from the names and ids that the upstream was given."""
    tools: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """The schema of each tool that the model may call, by the name that the upstream was given."""
    calls: frozenset[str] = frozenset()
    """The ids of the calls that the conversation holds, the client's and those that the upstream was given."""
    echo: Mapping[str, Any] = field(factory=dict)
    """Members of the request that the answer repeats."""

    def sent(self, given: RequestMap) -> "RequestFacts":
        """The same, of a request that went up with the names and ids of `given`; by its own name a tool is known too.

        A tool that was given no name has the client's.
        """
        names = {tool.key: name for name, tool in given.tools.items()}
        own = {name: given.tools.get(names.get(tool.key, ""), tool) for name, tool in self.map.tools.items()}
        schemas = {names.get(self.map.tool(name).key, name): schema for name, schema in self.tools.items()}
        return evolve(self, map=evolve(given, tools={**own, **given.tools}), tools=schemas)


NO_REQUEST = RequestFacts()

ShownReasoning = Literal["summary", "content"]
ToldLimit = Literal["incomplete", "completed"]


class Dialect(Protocol):
    """One API's words. Its object is found through the entry-point group `streamweir.dialects`.

    A dialect that is only a client's, or only an upstream's, raises `ClientError` where it is asked for the rest.
    """

    @property
    def name(self) -> str:
        """The word by which a route names it."""

    @property
    def path(self) -> str:
        """Where its answers are asked for, behind the base URL that ends in `/v1`."""

    @property
    def sentinels(self) -> Collection[bytes]:
        """Payloads that are whole though they are no JSON."""

    @property
    def told(self) -> Collection[str]:
        """The headers of its answers that its clients read, besides those that are everybody's; one that ends in a
        hyphen stands for all that begin so."""

    @property
    def tells(self) -> Collection[str]:
        """The headers of its clients that an upstream of this dialect reads, as in `told`; no credentials."""

    def facts(self, request: Mapping[str, Any]) -> RequestFacts:
        """What a client's request body says that the answer's stages need; what is odd in it counts as absent."""

    def parse(self, body: Mapping[str, Any], *, ledger: Ledger, limits: Limits, own: bool = False) -> Request:
        """A client's request. `own`: it goes up to this dialect again, so what must be there may be missing.

        Raises `ClientError` naming the member that is none of this dialect, or cannot be honoured.
        """

    def build(self, request: Request, *, ledger: Ledger, limits: Limits, options: RequestOptions) -> BuiltRequest:
        """The body to send up for a request.

        Raises `ClientError` naming the client's member that cannot be honoured and must not be dropped.
        """

    def headers(self, key: str) -> Mapping[str, str]:
        """What an upstream wants to see: its key, if that is not empty, and which version of this dialect is spoken."""

    def normalizer(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Frame, Event]:
        """Fresh, for one stream of this dialect's answers."""

    def encoder(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Stage[Event, Frame]:
        """Fresh, for one stream of answers in this dialect."""

    def read_body(self, body: bytes, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Message:
        """The message of a whole answer; an error's is its `error`.

        Raises `UpstreamError` if it is no answer.
        """

    def write_body(
        self, message: Message, *, facts: RequestFacts, ledger: Ledger, limits: Limits = DEFAULT_LIMITS
    ) -> Mapping[str, Any]:
        """The body of a whole answer."""

    def read_error(self, status: int, body: Any) -> StreamError:
        """The error that an upstream answered with: its status, and what its body says: JSON, a text, or None."""

    def write_error(self, error: StreamError, status: int) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of an error. `status` is the upstream's; 0: it did not answer with an error."""

    def keeps_error(self, body: Any, status: int) -> int:
        """The status under which a body that tells of an error goes as it came to a client of this dialect, which
        reads it so; 0: it does not. `status` is the error's: the upstream's, or its class's."""


class Returner(Protocol):
    """Writes a stream of one dialect that came in the same dialect: frames go back as they came, until one cannot.

    What it returns is written in order: an `Origin` as the bytes it came as, any other frame anew.
    """

    def passes(self, frame: Origin, event: Event) -> bool:
        """Whether a delta that is all that its frame made, and arrived as it was made, goes back with no more ado.

        The returner may take note of it. If it does not pass, it is told as `unchanged`.
        """

    def missing(self) -> None:
        """Frames were left out."""

    def lost(self, frame: Origin | None) -> None:
        """Nothing will come any more of a frame that was left out: what stands in it that no event tells of, and that
        was told nowhere else, is recorded. None: there were more of them than are remembered."""

    def unchanged(self, frame: Origin, events: Sequence[Event]) -> Sequence[Frame]:
        """A frame all of whose events arrived, as they were made."""

    def changed(self, frame: Origin | None, events: Sequence[Event]) -> Sequence[Frame]:
        """What is left of a frame, of which some events were changed or left out; or events that no frame made."""

    def another(self, frame: Origin, start: BlockStart) -> Sequence[Frame]:
        """A block of text that no frame made begins: it holds text of the block that the frame began, which was left
        out, or ended where something was put in. What stands in that frame beside the text is told of it too."""

    def failed(self, error: StreamError) -> Sequence[Frame]:
        """An error of ours: what is open is closed as it must be, then it is told."""

    def idle(self) -> Sequence[Frame]:
        """The dialect's keep-alive."""


@runtime_checkable
class Returning(Protocol):
    """A dialect whose answers can go back to a client of the same dialect as they came."""

    def returner(self, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Returner:
        """Fresh, for one stream."""

    def patch_body(self, change: Change, *, facts: RequestFacts, ledger: Ledger, limits: Limits) -> Mapping[str, Any]:
        """A whole answer with what was changed in it: every member that nobody changed stays as it came."""

    def unroll(self, body: bytes, *, facts: RequestFacts, ledger: Ledger) -> Sequence[Frame]:
        """The stream of a whole answer, which is read already: lawful, and with all that stands in the body."""

    def roll(self, frames: Sequence[Frame], *, facts: RequestFacts, ledger: Ledger) -> Mapping[str, Any]:
        """The whole answer that a stream which ended well makes, with all that stands in its frames.

        It need not read what the stream says in odd forms: what the answer does not say will be written into it.
        """


@runtime_checkable
class Restating(Protocol):
    """A dialect whose streams tell the whole answer once more at their end, which counts, whatever was told before."""

    @property
    def restates(self) -> bool:
        """Whether they do."""


@runtime_checkable
class Wording(Protocol):
    """A dialect that can say the same in two ways, of which the route chooses."""

    def worded(self, *, reasoning: ShownReasoning, limit: ToldLimit) -> Dialect:
        """The dialect that says it so, as `pipeline.route.AnswerOptions` has them."""


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
