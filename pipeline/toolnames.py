"""Names and ids of tools that an upstream accepts, and the way back from them."""

import hashlib
import re
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from pipeline.events import ToolKind
from pipeline.jsontext import dumps
from pipeline.request import CustomTool, FunctionTool

WRAPPED_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""The arguments of a freeform tool where it must be a function."""

MANY = 1_000_000
NOTHING = re.compile(r"(?!)")
"""The bounds of a dialect toward itself: none."""

_TAG = 8


@frozen
class OfferedTool:
    """A tool as the client knows it. `wrapped`: the upstream knows it as a function of one string `input`."""

    name: str
    namespace: str = ""
    kind: ToolKind = ToolKind.FUNCTION
    wrapped: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the client's other tools."""
        return self.namespace, self.name


@frozen
class RequestMap:
    """What the answer's stages need to turn an upstream's words back into the client's.

    `tools`: those offered, by the name that the upstream was given. `seen`: those that only earlier calls name. `ids`:
    by the call id that the upstream was given, the client's, where they differ. `calls`: the ids of the calls that the
    conversation holds, the client's; none where it is only known what was offered.
    """

    tools: Mapping[str, OfferedTool] = field(factory=dict)
    seen: Mapping[str, OfferedTool] = field(factory=dict)
    ids: Mapping[str, str] = field(factory=dict)
    calls: frozenset[str] = frozenset()

    def tool(self, name: str) -> OfferedTool:
        """The client's tool of an upstream's name; one that the upstream was never told of is itself."""
        return self.tools.get(name) or self.seen.get(name) or OfferedTool(name)

    def offered_as(self, name: str, namespace: str = "") -> OfferedTool | None:
        """The tool that the client offered under that name of its own; None if there is none."""
        offered = (tool for tool in self.tools.values() if tool.name == name and tool.namespace == namespace)
        return next(offered, None)

    def kind(self, name: str, told: ToolKind) -> ToolKind:
        """What a call is: one of a function, if that is what was offered, else what the upstream says."""
        return told if name not in self.tools or self.tools[name].kind is not ToolKind.FUNCTION else ToolKind.FUNCTION

    @property
    def offered(self) -> Iterable[str]:
        """The names that the upstream was given."""
        return self.tools.keys()


NO_MAP = RequestMap()
"""Every name and id is the client's."""


@frozen
class BuiltRequest:
    """An upstream's request body, and what its answer is read with."""

    body: dict[str, object]
    map: RequestMap


def description_of(tool: FunctionTool | CustomTool, namespaces: Mapping[str, str], described: set[str]) -> str:
    """A tool's description; the first of a namespace (none of it is in `described` yet) tells the namespace's too."""
    if not tool.namespace or tool.namespace in described:
        return tool.description
    described.add(tool.namespace)
    return "\n\n".join(text for text in (tool.description, namespaces.get(tool.namespace, "")) if text)


def wrapped_description(tool: CustomTool, description: str) -> str:
    """The description of a freeform tool where it must be a function: what its input must look like stands in it."""
    if tool.grammar is None:
        return description
    grammar = f"`input` must match this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
    return f"{description}\n\n{grammar}" if description else grammar


def wrapped_input(text: str) -> str:
    """The arguments of a freeform tool's call where it must be a function."""
    return dumps({"input": text}).decode()


@define
class ToolNames:
    """Gives each tool one name within an upstream's bounds: its own if that will do, else one with a tag of its hash.

    The same tool always gets the same name, so a provider's cache of the request holds over turns.
    """

    most: int
    barred: re.Pattern[str]
    """Matches one character that may not stand in a name."""
    _by_tool: dict[tuple[str, str], str] = field(init=False, factory=dict)
    _tools: dict[str, OfferedTool] = field(init=False, factory=dict)
    _seen: dict[str, OfferedTool] = field(init=False, factory=dict)

    def offer(self, tool: OfferedTool) -> str:
        """The upstream's name of a tool that is offered."""
        name = self.name(tool.namespace, tool.name)
        self._tools[name] = tool
        return name

    def see(self, tool: OfferedTool) -> str:
        """The upstream's name of a tool that an earlier call names."""
        name = self.name(tool.namespace, tool.name)
        if name not in self._tools:
            self._seen[name] = tool
        return name

    def name(self, namespace: str, name: str) -> str:
        """The upstream's name of a tool, offered or not."""
        key = (namespace, name)
        if key not in self._by_tool:
            whole = f"{namespace}__{name}" if namespace else name
            given = self._within(whole, whole)
            if given in self._by_tool.values():
                given = self._within(whole + "_" * self.most, f"{namespace}\0{name}")
            self._by_tool[key] = given
        return self._by_tool[key]

    def tools(self) -> Mapping[str, OfferedTool]:
        """The offered tools by the upstream's name."""
        return dict(self._tools)

    def map(self, ids: "UpstreamIds") -> RequestMap:
        """What the answer is read with."""
        return RequestMap(self.tools(), dict(self._seen), ids.back())

    def _within(self, whole: str, identity: str) -> str:
        return within(whole, self.most, self.barred, identity)


@define
class UpstreamIds:
    """Gives each call id one within an upstream's bounds, the same in the call and in its result."""

    most: int
    barred: re.Pattern[str]
    _back: dict[str, str] = field(init=False, factory=dict)

    def id(self, client: str) -> str:
        """The upstream's id for a client's."""
        given = within(client, self.most, self.barred, client)
        if given != client:
            self._back[given] = client
        return given

    def back(self) -> Mapping[str, str]:
        """The client's id by the upstream's, where they differ."""
        return dict(self._back)


def within(text: str, most: int, barred: re.Pattern[str], identity: str) -> str:
    """`text` if it keeps the bounds, else the part of it that does and a tag made of `identity`."""
    clean = barred.sub("_", text)
    if clean == text and 0 < len(text) <= most:
        return text
    tag = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:_TAG]
    return f"{clean[: most - _TAG - 1]}_{tag}"
