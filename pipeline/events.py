"""The canonical events: what a stream says, in no dialect's words.

One small class per fact; the class is the tag. An event is never changed after it is made: the type checker sees it
frozen, at run time it is a plain object with slots, because a frozen one costs twice as much to construct.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pipeline.errors import ErrorKind

if TYPE_CHECKING:
    from attrs import field
    from attrs import frozen as event

    from pipeline.flight import Flight
else:
    from functools import partial

    from attrs import define, field

    event = partial(define, slots=True, weakref_slot=False)


class StopReason(StrEnum):
    """Why a message ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    REFUSAL = "refusal"
    PAUSE_TURN = "pause_turn"
    CONTEXT_WINDOW = "model_context_window_exceeded"


CUTTING: Final = frozenset({StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL})
"""The stop reasons that may cut a call short: it is closed as it stands."""


class ToolKind(StrEnum):
    """What the arguments of a tool are: one JSON object, or free text."""

    FUNCTION = "function"
    CUSTOM = "custom"


@event
class Usage:
    """Token counts, each exclusive of the others but for `reasoning`, which is a part of `output`."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@event
class Served:
    """How an answer was made: when (in seconds since 1970), how fast, by whom. None: nobody said."""

    created: int | None = None
    service_tier: str | None = None
    provider: str | None = None


@event
class Frame:
    """One server-sent event or one NDJSON line.

    `data` is its payload, `name` its event name (empty: none), `raw` the bytes it came as, comments and line ends
    included (kept only where a stream may be written back byte for byte).
    """

    data: bytes
    name: bytes = b""
    raw: bytes = b""


@event
class Origin(Frame):
    """A frame that may be written back: which one of the stream it is, and the events that were made of it.

    `flight`: those of its stream that are on their way.
    """

    number: int = 0
    made: "tuple[Event, ...]" = field(default=(), eq=False, repr=False)
    flight: "Flight | None" = field(default=None, eq=False, repr=False)


@event
class TextBlock:
    """Text for the reader; also a refusal's, whose deltas are `RefusalDelta`."""


@event
class ReasoningBlock:
    """Reasoning. `splittable`: it may be closed and go on in another block; nothing opaque belongs to its whole."""

    splittable: bool = True


@event
class RedactedReasoningBlock:
    """Reasoning that only its provider can read."""

    data: str


@event
class ToolUseBlock:
    """A tool call; its arguments follow as `ArgumentsDelta`. `namespace`: what its tool is in, where APIs have such."""

    id: str
    name: str
    kind: ToolKind = ToolKind.FUNCTION
    namespace: str = ""


@event
class ServerBlock:
    """An item of a tool that the provider runs itself: `payload` in the words of `dialect`.

    `search`: what it looks for, if it is a search of the web.
    """

    dialect: str
    payload: Mapping[str, Any]
    search: str | None = None


Block = TextBlock | ReasoningBlock | RedactedReasoningBlock | ToolUseBlock | ServerBlock


@event
class Event:
    """What all events have: the frame they came from, where it may be written back byte for byte.

    An event that is evolved from another one keeps its origin, so that the frame is patched; one that is made anew has
    none, and is written anew.
    """

    origin: Frame | None = field(default=None, kw_only=True, eq=False, repr=False)


@event
class MessageStart(Event):
    """The answer begins. `usage` is what is known of it by then: the upstream's, or an estimate."""

    id: str
    model: str
    usage: Usage | None = None
    served: Served | None = None


@event
class BlockStart(Event):
    """A content block opens. `index` names it within the message; it is ours, never an upstream's."""

    index: int
    block: Block


@event
class TextDelta(Event):
    """More of a text block."""

    index: int
    text: str


@event
class ReasoningDelta(Event):
    """More of a reasoning block."""

    index: int
    text: str


@event
class SignatureDelta(Event):
    """The opaque proof of a reasoning block, whole."""

    index: int
    signature: str


@event
class ArgumentsDelta(Event):
    """More of a tool call's arguments, as written by the model: never parsed and dumped again."""

    index: int
    text: str


@event
class RefusalDelta(Event):
    """More of a refusal's text, in a text block."""

    index: int
    text: str


@event
class AnnotationDelta(Event):
    """A citation or another note on a text block, in the upstream's words."""

    index: int
    annotation: Mapping[str, Any]


BlockDelta = TextDelta | RefusalDelta | ReasoningDelta | SignatureDelta | AnnotationDelta | ArgumentsDelta


@event
class BlockStop(Event):
    """A content block ends. `complete`: the word that it is whole; a tool call that is not must not be run."""

    index: int
    complete: bool = True


@event
class MessageDelta(Event):
    """How the message ended. `usage` holds final counts, `served` final words; they replace earlier ones."""

    stop_reason: StopReason
    stop_sequence: str | None = None
    usage: Usage | None = None
    served: Served | None = None


@event
class MessageStop(Event):
    """The message is whole: the terminal of success."""


@event
class StreamError(Event):
    """The stream failed or was cut: the other terminal. `code` is the provider's or ours; `retryable`: it may go
    better another time; `param`: the member of the request that it is about, in the provider's words.

    Its origin is the frame of a stream that told of it (an `Origin`), or a frame of the body that did.
    """

    kind: ErrorKind
    message: str
    code: str = ""
    retryable: bool = False
    param: str = field(default="", kw_only=True)


@event
class Ping(Event):
    """The upstream says that it is alive."""


@event
class Carry(Event):
    """A frame that brings nothing canonical, or that we do not know, in the words of `dialect`.

    `opens`: it begins something that has a place among the blocks.
    """

    dialect: str
    frame: Frame
    opens: bool = field(default=False, kw_only=True)


def moved(delta: BlockDelta, index: int) -> BlockDelta:
    """The delta under another index."""
    if delta.index == index:
        return delta
    if isinstance(delta, SignatureDelta):
        return SignatureDelta(index, delta.signature)
    if isinstance(delta, AnnotationDelta):
        return AnnotationDelta(index, delta.annotation)
    return type(delta)(index, delta.text)
