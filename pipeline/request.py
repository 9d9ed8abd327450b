"""The canonical request: what a client asks of a model, in no dialect's words.

A dialect parses its own body into a `Request` and builds its own body from one, so there are 2N translators and not N².
What only the client's dialect can say stands in `private` and goes back into the same dialect alone; what nobody here
knows stands in `extras` and goes up untouched.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

from attrs import field, frozen

from pipeline.events import ToolKind
from pipeline.ladder import Loss


class Role(StrEnum):
    """Who speaks in a turn."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"


INSTRUCTING = frozenset({Role.SYSTEM, Role.DEVELOPER})
"""The roles whose turns instruct the model."""


@frozen
class CacheHint:
    """A wish that the provider caches what stands up to here. `ttl` in the client's words, empty: the default."""

    ttl: str = ""
    where: str = field(default="", eq=False)


@frozen(kw_only=True)
class Node:
    """What the pieces of a request have in common.

    `where` is the member of the client's body that it came from, as `messages[2].content[0]`.
    """

    where: str = field(default="", eq=False)
    private: Mapping[str, Any] = field(factory=dict)
    extras: Mapping[str, Any] = field(factory=dict)
    cache: CacheHint | None = None


@frozen
class Inline:
    """Bytes that stand in the request, in base64."""

    media_type: str
    data: str


@frozen
class Remote:
    """Bytes that the provider fetches."""

    url: str


@frozen
class Stored:
    """A file that one provider keeps; its id means nothing to another."""

    id: str


Source = Inline | Remote | Stored


@frozen
class TextPart(Node):
    """Text."""

    text: str


@frozen
class RefusalPart(Node):
    """The text in which the model refused."""

    text: str


@frozen
class ImagePart(Node):
    """An image. `detail`: how closely to look, in the client's words."""

    source: Source
    detail: str = ""


@frozen
class DocumentPart(Node):
    """A document: a file, or its text, or parts."""

    source: Source | str | tuple["ResultPart", ...]
    name: str = ""
    context: str = ""
    citations: bool = False


@frozen
class AudioPart(Node):
    """Sound, in base64. `format` is its container, as `wav`."""

    data: str
    format: str


@frozen
class ReasoningPart(Node):
    """Earlier reasoning. `opaque`: its provider's proof or blob, or an envelope of ours; `redacted`: it has no text."""

    text: str = ""
    opaque: str = ""
    redacted: bool = False


@frozen
class ToolUsePart(Node):
    """A tool call of an earlier answer. `arguments` is exactly what the client sent: the model's text, or an object."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]
    kind: ToolKind = ToolKind.FUNCTION
    namespace: str = ""


@frozen
class ToolResultPart(Node):
    """What came of the tool call `id`: parts, in a user's turn."""

    id: str
    parts: tuple["ResultPart", ...]
    is_error: bool = False
    kind: ToolKind = ToolKind.FUNCTION


@frozen
class ServerPart(Node):
    """A piece that only the client's dialect has. `loss` says what becomes of it elsewhere, `text` what it reads as."""

    payload: Mapping[str, Any]
    loss: Loss
    text: str = ""


ResultPart = TextPart | ImagePart | DocumentPart | ServerPart
"""What a tool's result, or a document made of parts, may hold."""

Part = ResultPart | RefusalPart | AudioPart | ReasoningPart | ToolUsePart | ToolResultPart


@frozen
class Turn(Node):
    """One message: who speaks, and what."""

    role: Role
    parts: tuple[Part, ...]
    name: str = ""


@frozen
class FunctionTool(Node):
    """A tool whose arguments are one JSON object. `schema` is the client's, verbatim; None: it gave none."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    strict: bool | None = None
    namespace: str = ""


@frozen
class Grammar:
    """What freeform input must look like: a definition in `syntax`, as `lark`."""

    syntax: str
    definition: str


@frozen
class CustomTool(Node):
    """A tool whose input is free text, within a grammar if there is one."""

    name: str
    description: str = ""
    grammar: Grammar | None = None
    namespace: str = ""


@frozen
class WebSearch:
    """What a provider's search may be told in more than one dialect; `besides`: where the client says more."""

    allowed_domains: tuple[str, ...] = ()
    location: Mapping[str, str] = field(factory=dict)
    besides: tuple[str, ...] = ()


@frozen
class ServerTool(Node):
    """A tool that the provider runs or defines, in the client's dialect's words. `search`: it searches the web."""

    payload: Mapping[str, Any]
    loss: Loss
    name: str = ""
    search: WebSearch | None = None


Tool = FunctionTool | CustomTool | ServerTool


class Choosing(StrEnum):
    """How free the model is to call tools."""

    AUTO = "auto"
    ANY = "any"
    NONE = "none"
    ONE = "one"


@frozen
class ToolChoice(Node):
    """Which tools the model may or must call. `name`: the one it must call; `allowed`: the only ones it may, as
    (namespace, name); `payload`: a hosted tool that it must call, in the client's dialect's words."""

    mode: Choosing
    name: str = ""
    namespace: str = ""
    kind: ToolKind = ToolKind.FUNCTION
    allowed: tuple[tuple[str, str], ...] | None = None
    payload: Mapping[str, Any] | None = None


@frozen
class Reasoning(Node):
    """How much the model should think, and how much of it is shown.

    `enabled` None: the client does not say. `effort` is a word from `none` to `max`, `budget` tokens, `summary` how the
    reasoning is shown (`auto`, `concise`, `detailed`, `omitted`; empty: the client does not say).
    """

    enabled: bool | None = None
    effort: str = ""
    budget: int | None = None
    summary: str = ""


class OutputKind(StrEnum):
    """What the answer's text must be."""

    TEXT = "text"
    JSON = "json"
    SCHEMA = "schema"


@frozen
class OutputFormat(Node):
    """The form of the answer's text. `schema` verbatim."""

    kind: OutputKind
    name: str = ""
    schema: Mapping[str, Any] | None = None
    strict: bool | None = None
    description: str = ""


@frozen
class Given:
    """The body that a request was read from, the request as it was then, and the members that could not be read."""

    body: Mapping[str, Any]
    request: "Request"
    unread: frozenset[str] = frozenset()


@frozen(kw_only=True)
class Request:
    """What a client asks. Options are None where it does not say. `older_user` is a second name beside `user`.

    `system` are the instructions that stand before everything, `turns` the rest, instructions in between included.
    `dialect` is the client's, in whose words `private` is; `losses` say what becomes of that elsewhere; `paths` name
    its member for each of ours that it gave; `given` is what the client's own dialect is told again.
    """

    dialect: str
    model: str
    turns: tuple[Turn, ...]
    system: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()
    namespaces: Mapping[str, str] = field(factory=dict)
    tool_choice: ToolChoice | None = None
    parallel: bool | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: Mapping[str, Any] | None = None
    choices: int | None = None
    logprobs: int | None = None
    reasoning: Reasoning | None = None
    output: OutputFormat | None = None
    verbosity: str | None = None
    metadata: Mapping[str, str] | None = None
    user: str | None = None
    older_user: str | None = None
    cache_key: str | None = None
    cache: CacheHint | None = None
    service_tier: str | None = None
    store: bool | None = None
    stream: bool = False
    include_usage: bool | None = None
    private: Mapping[str, Any] = field(factory=dict)
    extras: Mapping[str, Any] = field(factory=dict)
    losses: tuple[Loss, ...] = ()
    paths: Mapping[str, str] = field(factory=dict, eq=False)
    given: Given | None = field(default=None, eq=False, repr=False)

    def path(self, member: str) -> str:
        """The client's name for one of our members."""
        given = getattr(self, member, None)
        where = given.where if isinstance(given, Node | CacheHint) else ""
        return where or self.paths.get(member, member)

    def instructions(self) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
        """The instructions before everything, those that open the conversation included, and the turns behind them."""
        at = 0
        while at < len(self.turns) and self.turns[at].role in INSTRUCTING:
            at += 1
        return (*self.system, *self.turns[:at]), self.turns[at:]

    def parts(self) -> Iterator[Part]:
        """Every part of every turn, in order."""
        for turn in (*self.system, *self.turns):
            yield from turn.parts

    def bound(self, most: int | None) -> int | None:
        """The bound on the answer's tokens, within an upstream's own."""
        return self.max_tokens if self.max_tokens is None or most is None else min(self.max_tokens, most)

    def user_within(self, most: int) -> str:
        """The user's id within a provider's bound: as it is, or its hash."""
        user = self.user or ""
        return user if len(user) <= most else sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:most]


@frozen(kw_only=True)
class RequestOptions:
    """What a route decides about the requests it sends up. Every dialect reads what concerns it."""

    strict: bool = False
    """Refuse what would be lost and might matter, instead of recording it."""
    upstream: str = ""
    """The provider's name in envelopes; empty: no envelope is ever opened."""
    model: str = ""
    """The model to ask for; empty: the client's."""
    max_tokens: int = 32_000
    """The bound for a dialect that demands one, where the client gives none."""
    most_tokens: int | None = None
    """The largest bound that the upstream takes. Ours keep it too, and a budget to think that it leaves no room is half
    of it, or none."""
    old_max_tokens: bool = False
    """The upstream knows only the older name of the bound on the answer's tokens: no other goes up, also of one that
    could not be read."""
    effort: str | None = None
    """A policy's effort instead of the client's; empty: say nothing of reasoning at all. What the client says beside it
    in the same object stays toward its own dialect; what is replaced is recorded."""
    off_effort: str = "none"
    """What to ask for where no reasoning is wanted, for models that cannot do without; empty: nothing."""
    replay_reasoning: bool = False
    """Send echoed reasoning text back up, for providers that demand it."""
    developer_role: bool = False
    """The upstream tells developers from the system."""
    custom_tools: bool = False
    """The upstream has freeform tools; else they become functions of one string."""
    web_search: bool = False
    """Ask for the upstream's own web search where the client asked for its dialect's."""
    later_instructions: bool | None = None
    """The upstream reads instructions in the middle of a conversation; None: as is usual in its dialect."""
    sampling: bool = True
    """The upstream's models take `temperature`, `top_p`, `top_k`."""
    thinking_budget: bool = False
    """The upstream's models take a budget of tokens to think, not an effort: none goes up, also to the client's own
    dialect, and a client's own budget stays as it is."""


SAMPLING = ("temperature", "top_p", "top_k")
"""The members of a request that `RequestOptions.sampling` is about."""

DEFAULT_OPTIONS = RequestOptions()
