"""The content blocks of a message while they are told, each of which knows how it ends."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
    BlockStart,
    BlockStop,
    Event,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    ServerBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ToolUseBlock,
)
from pipeline.halves import Halves
from pipeline.ids import CallIds
from pipeline.jsontext import dumps, exact, is_object, size_of, value_of, whole_text
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.unread import Unread
from stages.dialects.messages.opaque import proof_of
from stages.dialects.messages.words import INPUT, MEMBERS, NAME

STAGE: Final = "MessagesNormalizer"


@define(eq=False)
class Writer:
    """What the blocks of a message share: indexes, ids, the ledger."""

    ledger: Ledger
    limits: Limits
    ids: CallIds
    held: int = field(init=False, default=0)
    """Bytes that wait for the end of their block."""
    spoken: bool = field(init=False, default=False)
    """Some text was said."""
    unread: Unread = field(init=False)
    _indexes: Iterator[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        self.unread = Unread(STAGE, self.ledger)

    def open(self, block: Block, out: list[Event]) -> int:
        """Begin a block; its index."""
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

    def hold(self, size: int) -> None:
        """So many bytes more wait.

        Raises `LimitExceeded` if they are too many.
        """
        self.held += size
        if self.held > self.limits.held_bytes:
            bound = self.limits.held_bytes
            raise LimitExceeded(f"more than {bound} bytes wait for the end of their block", code="held_bytes")

    def lose(self, path: str, reason: str) -> None:
        """Record what is not passed on."""
        self.ledger.record(STAGE, path, "dropped", reason)


@define(eq=False)
class Part(ABC):
    """One block of the upstream's."""

    writer: Writer
    index: int = field(init=False, default=-1)
    """Its block's, or -1 while there is none."""
    stopped: bool = field(init=False, default=False)

    @abstractmethod
    def stop(self, out: list[Event]) -> None:
        """The server said that it has ended."""

    def passed(self, out: list[Event]) -> None:  # noqa: B027  # most blocks do not care
        """Another block begins."""

    def settle(self, out: list[Event], *, complete: bool) -> None:
        """At the end of the message. `complete`: no limit cut it short."""
        if not self.stopped:
            self.stop(out)

    def cut(self, out: list[Event]) -> None:  # noqa: B027  # most blocks have nothing that waits
        """Before an error: what waits and can be written is."""

    def _end(self, out: list[Event], *, complete: bool = True) -> None:
        self.stopped = True
        out.append(BlockStop(self.index, complete))


@define(eq=False)
class WholePart(Part):
    """A block that was told whole when it began."""

    def stop(self, out: list[Event]) -> None:
        """Its end."""
        self._end(out)


@define(eq=False)
class SpokenPart(Part):
    """A block that is a text, told in pieces."""

    make: type[TextDelta] | type[ReasoningDelta] | type[ArgumentsDelta] = TextDelta
    halves: Halves = field(init=False, factory=Halves)

    @property
    def goes_on(self) -> bool:
        """Whether more may come."""
        return not self.stopped

    def say(self, text: str, out: list[Event]) -> None:
        """More of it."""
        if text := self.halves.joined("", text):
            self.go_on(text, out)

    def go_on(self, text: str, out: list[Event]) -> None:
        """More of it that needs no thought: no half of a character, now or before."""
        out.append(self.make(self.index, text))

    def cut(self, out: list[Event]) -> None:
        """Half a character whose other half never came is written."""
        if not self.stopped:
            self._flush(out)

    def stop(self, out: list[Event]) -> None:
        """Its end."""
        self._flush(out)
        self._end(out)

    def _flush(self, out: list[Event]) -> None:
        """Half a character whose other half never came."""
        for _, text in self.halves.rest():
            self.say(text, out)


@define(eq=False)
class TextPart(SpokenPart):
    """Text for the reader, and the citations on it."""

    def say(self, text: str, out: list[Event]) -> None:
        """More of it."""
        self.writer.spoken = self.writer.spoken or bool(text)
        SpokenPart.say(self, text, out)

    def cite(self, citation: Any, out: list[Event]) -> None:
        """A note on it."""
        if isinstance(citation, dict):
            out.append(AnnotationDelta(self.index, citation))
        else:
            self.writer.lose("citation", "no object")


@define(eq=False)
class ThinkingPart(SpokenPart):
    """Thinking. A signature that it begins with is told at its end, since it is of the whole."""

    signature: str = field(init=False, default="")

    def sign(self, signature: str, out: list[Event]) -> None:
        """The proof of the whole; an empty one is none."""
        if signature:
            self.signature = ""
            out.append(SignatureDelta(self.index, proof_of("thinking", signature)))

    def passed(self, out: list[Event]) -> None:
        """It ends, if its end was left out: nothing may be written before."""
        if not self.stopped:
            self.stop(out)

    def stop(self, out: list[Event]) -> None:
        """The signature that it began with, if no other came, and its end."""
        self._flush(out)
        self.sign(self.signature, out)
        self._end(out)


@define(eq=False)
class CallPart(SpokenPart):
    """A call of a tool that the client runs.

    It ends at the server's word if its input is one JSON object then. One with a part of it may have been cut by a
    limit, which only the end of the message tells; so may one without input, unless another block begins.
    """

    given: Any = None
    """The input that it began with."""
    size: int = field(init=False, default=0)
    _pieces: list[str] = field(init=False, factory=list)
    _told: bool = field(init=False, default=False)
    """The server said that it has ended."""

    @property
    def goes_on(self) -> bool:
        """Whether more may come: not behind the server's word."""
        return not self._told

    def say(self, text: str, out: list[Event]) -> None:
        """More of its input; behind its end there is none."""
        if not self._told:
            SpokenPart.say(self, text, out)
        elif text.strip():
            self.writer.lose("input", "it came after the end of its call")

    def go_on(self, text: str, out: list[Event]) -> None:
        """More of its input, within a bound."""
        self.size += size_of(text)
        if self.size > (bound := self.writer.limits.arguments_bytes):
            raise LimitExceeded(f"the input of one call is larger than {bound} bytes", code="arguments_bytes")
        self._pieces.append(text)
        SpokenPart.go_on(self, text, out)

    def stop(self, out: list[Event]) -> None:
        """It ends if it is whole; else the end of the message settles it."""
        self._flush(out)
        self._told = True
        text = "".join(self._pieces)
        if is_object(text, self.writer.limits.json_depth) if text.strip() else self.given:
            self._finish(out, complete=True)

    def passed(self, out: list[Event]) -> None:
        """It ends if it has no input and the server said so: no limit cut it short."""
        if self._told and not self.stopped and not "".join(self._pieces).strip():
            self._finish(out, complete=True)

    def settle(self, out: list[Event], *, complete: bool) -> None:
        """It ends, whole or not."""
        if not self.stopped:
            self._flush(out)
            self._finish(out, complete=complete)

    def _finish(self, out: list[Event], *, complete: bool) -> None:
        """The input that it began with is its input if no other came; `{}` is what it begins with if it has none."""
        text = "".join(self._pieces).strip()
        if text and self.given and value_of(text) != value_of(_text(self.given)):
            self.writer.lose("input", "its deltas tell another")
        if (complete or self.given) and not text:
            out.append(ArgumentsDelta(self.index, _text(self.given or {})))
        self._pieces.clear()
        self._end(out, complete=complete)


@define(eq=False)
class HostedPart(Part):
    """A block of a tool that the provider runs, or of a kind that we do not know: carried whole, once it has ended."""

    payload: dict[str, Any] = field(factory=dict)
    _input: list[str] = field(init=False, factory=list)
    _size: int = field(init=False, default=0)

    def add(self, kind: str, delta: Mapping[str, Any]) -> None:
        """More of it."""
        self._hold(sum(size_of(value) for name, value in delta.items() if name != "type" and isinstance(value, str)))
        if kind == INPUT and isinstance(piece := delta.get(MEMBERS[INPUT]), str):
            self._input.append(piece)
            return
        for name, value in delta.items():
            if name in ADDING and isinstance(value, str):
                self.payload[name] = str(self.payload.get(name) or "") + value
            elif name not in ("type", MEMBERS[INPUT]):
                self.payload[name] = value

    def stop(self, out: list[Event]) -> None:
        """It is carried, with its input."""
        self._release()
        if text := "".join(self._input).strip():
            try:
                self.payload["input"] = exact(whole_text(text))
            except ValueError:
                self.writer.lose("input", "a server tool's, which is no JSON")
        self.index = self.writer.open(ServerBlock(NAME, self.payload, _search(self.payload)), out)
        self._end(out)

    def cut(self, out: list[Event]) -> None:
        """It is not carried: nobody could read a part of it."""
        if not self.stopped:
            self.stopped = True
            self._release()
            self.writer.lose("server tool", "cut before its end")

    def _hold(self, size: int) -> None:
        self._size += size
        self.writer.hold(size)

    def _release(self) -> None:
        self.writer.hold(-self._size)
        self._size = 0


ADDING: Final = frozenset({"text", "thinking"})
"""The members of a delta that go on; the others replace."""


REDACTED: Final = "redacted_thinking"
READ: Final = {
    "text": frozenset({"type", "text", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    REDACTED: frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", "toolset_name"}),
}
"""The members of a block that are read, or noted by themselves; blocks of other types are carried whole."""


FORMS: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    "text": (("text", str), ("citations", list)),
    "thinking": (("thinking", str), ("signature", str)),
}
"""What some members of a block are."""


def begin(kind: str, block: Mapping[str, Any], writer: Writer, out: list[Event]) -> Part:
    """The block that begins, with what it brings already.

    Raises `UpstreamError` for a call without a name.
    """
    if (read := READ.get(kind)) is not None and (kind != REDACTED or block.get("data")):
        writer.unread.note(block, read, "content[].")
    for member, form in FORMS.get(kind, ()):
        if (told := block.get(member)) and not isinstance(told, form):
            writer.lose(f"content[].{member}", "of another kind")
    if kind == "text":
        text = open_text(writer, out)
        text.say(_string(block, "text"), out)
        citations = block.get("citations")
        for citation in citations if isinstance(citations, list) else ():
            text.cite(citation, out)
        return text
    if kind == "thinking":
        thinking = open_thinking(writer, out, splittable=False)
        thinking.say(_string(block, "thinking"), out)
        thinking.signature = _string(block, "signature")
        return thinking
    if kind == "tool_use":
        return _call(block, writer, out)
    if kind == REDACTED and (data := _string(block, "data")):
        redacted = WholePart(writer)
        redacted.index = writer.open(RedactedReasoningBlock(proof_of(kind, data)), out)
        return redacted
    return HostedPart(writer, dict(block))


def open_text(writer: Writer, out: list[Event]) -> TextPart:
    """A text begins."""
    part = TextPart(writer)
    part.index = writer.open(TextBlock(), out)
    return part


def open_thinking(writer: Writer, out: list[Event], *, splittable: bool) -> ThinkingPart:
    """Thinking begins."""
    part = ThinkingPart(writer, ReasoningDelta)
    part.index = writer.open(ReasoningBlock(splittable), out)
    return part


def _call(block: Mapping[str, Any], writer: Writer, out: list[Event]) -> CallPart:
    name, call_id = _string(block, "name"), _string(block, "id")
    if not name.strip():
        raise UpstreamError("a tool call came without a name", code="nameless_tool_call")
    writer.ids.check(call_id, name)
    for member in ("caller", "toolset_name"):
        if (told := block.get(member)) and told != DIRECT:
            writer.lose(f"tool_use.{member}", "no event carries it")
    part = CallPart(writer, ArgumentsDelta, block.get("input"))
    part.index = writer.open(ToolUseBlock(writer.ids.unique(call_id if call_id.strip() else ""), name), out)
    return part


DIRECT: Final = {"type": "direct"}
"""The caller of a call that the model makes itself."""


def _search(block: Mapping[str, Any]) -> str | None:
    """What a block looks for; None if it is no search of the web."""
    if (block.get("type"), block.get("name")) != ("server_tool_use", "web_search"):
        return None
    return _string(asked, "query") if isinstance(asked := block.get("input"), dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _string(said: Mapping[str, Any], member: str) -> str:
    return value if isinstance(value := said.get(member), str) else ""
