"""A whole message, from its events and back: so whole answers go through the same stages as streams."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from pipeline.errors import StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    Block,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    Served,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)


@frozen
class Text:
    """Text for the reader, with what is noted on it."""

    text: str
    annotations: tuple[Mapping[str, Any], ...] = ()


@frozen
class Refusal:
    """Why the model will not answer."""

    text: str


@frozen
class Reasoning:
    """Reasoning; `signature` is its provider's opaque proof, empty if there is none."""

    text: str
    signature: str = ""
    splittable: bool = True


@frozen
class RedactedReasoning:
    """Reasoning that only its provider can read."""

    data: str


@frozen
class ToolUse:
    """A tool call. `arguments` is the JSON text (or free text) as the model wrote it; `complete` as in `BlockStop`."""

    id: str
    name: str
    arguments: str
    kind: ToolKind = ToolKind.FUNCTION
    complete: bool = True
    namespace: str = ""


@frozen
class ServerItem:
    """An item of a tool that the provider runs itself, in the words of `dialect`; `search` as in `ServerBlock`."""

    dialect: str
    payload: Mapping[str, Any]
    search: str | None = None


Content = Text | Refusal | Reasoning | RedactedReasoning | ToolUse | ServerItem


@frozen
class Message:
    """An answer. `error` is set if it did not end well; what came before it is kept."""

    id: str
    model: str
    content: tuple[Content, ...] = ()
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    error: StreamError | None = None
    served: Served | None = None


@define
class _Growing:
    """One block while its deltas come."""

    block: Block
    text: list[str] = field(factory=list)
    refusal: list[str] = field(factory=list)
    annotations: list[Mapping[str, Any]] = field(factory=list)
    signature: str = ""
    complete: bool = False

    def take(self, event: Event) -> None:
        if isinstance(event, RefusalDelta):
            self.refusal.append(event.text)
        elif isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta):
            self.text.append(event.text)
        elif isinstance(event, AnnotationDelta):
            self.annotations.append(event.annotation)
        elif isinstance(event, SignatureDelta):
            self.signature = event.signature
        elif isinstance(event, BlockStop):
            self.complete = event.complete

    def content(self) -> Iterator[Content]:
        block, text = self.block, "".join(self.text)
        if isinstance(block, ToolUseBlock):
            yield ToolUse(block.id, block.name, text, block.kind, self.complete, block.namespace)
        elif isinstance(block, ReasoningBlock):
            yield Reasoning(text, self.signature, block.splittable)
        elif isinstance(block, RedactedReasoningBlock):
            yield RedactedReasoning(block.data)
        elif isinstance(block, ServerBlock):
            yield ServerItem(block.dialect, block.payload, block.search)
        else:
            if text or self.annotations or not self.refusal:
                yield Text(text, tuple(self.annotations))
            if self.refusal:
                yield Refusal("".join(self.refusal))


def assemble(events: Iterable[Event], estimate: Usage | None = None) -> Message:
    """The message that events make: a block's deltas joined, blocks in the order in which they opened.

    `estimate` is our own count of the request's tokens, which is none of the message's.

    Raises `StageError` for a delta or a stop of a block that was never opened.
    """
    start = MessageStart("", "")
    end: MessageDelta | None = None
    error: StreamError | None = None
    blocks: dict[int, _Growing] = {}
    for event in events:
        if isinstance(event, MessageStart):
            start = event
        elif isinstance(event, MessageDelta):
            end = event
        elif isinstance(event, StreamError):
            error = event
        elif isinstance(event, BlockStart):
            blocks[event.index] = _Growing(event.block)
        elif (index := getattr(event, "index", None)) is not None:
            if index not in blocks:
                raise StageError(f"{type(event).__name__} for block {index}, which was never opened")
            blocks[index].take(event)
    return Message(
        id=start.id,
        model=start.model,
        content=tuple(content for block in blocks.values() for content in block.content()),
        stop_reason=end.stop_reason if end else None,
        stop_sequence=end.stop_sequence if end else None,
        usage=final_usage(start.usage, end.usage if end else None, estimate),
        error=error,
        served=end.served if end and end.served else start.served,
    )


def final_usage(first: Usage | None, last: Usage | None, estimate: Usage | None = None) -> Usage | None:
    """The counts that stand of a message that began with `first` and ended with `last`.

    What went in is told by `first` if `last` does not say. An estimate is nothing to be told; None if there is no more.
    """
    if last is None or last is estimate:
        return None if first is estimate else first
    if first is None or first is estimate or tells_input(last):
        return last
    return evolve(last, input=first.input, cache_read=first.cache_read, cache_write=first.cache_write)


def tells_input(usage: Usage) -> bool:
    """Whether counts tell what went in."""
    return bool(usage.input or usage.cache_read or usage.cache_write)


def disassemble(message: Message, estimate: Usage | None = None) -> Iterator[Event]:
    """The events that make a message: each block opened, written at one stroke and closed; then how it ended.

    A call that is not complete is left open if the message ends in an error, else closed as such. Where its counts do
    not tell what went in, the message begins with the estimate of that, if there is one, as a stream does.
    """
    begun = message.usage
    if estimate is not None and (begun is None or not tells_input(begun)):
        begun = estimate
    yield MessageStart(message.id, message.model, begun, message.served)
    for index, content in enumerate(message.content):
        yield from _block(index, content, message.error is not None)
    if message.error is not None:
        yield message.error
        return
    yield MessageDelta(message.stop_reason or StopReason.END_TURN, message.stop_sequence, message.usage, message.served)
    yield MessageStop()


def _block(index: int, content: Content, failed: bool) -> Iterator[Event]:
    complete = True
    if isinstance(content, Text):
        yield BlockStart(index, TextBlock())
        if content.text:
            yield TextDelta(index, content.text)
        for annotation in content.annotations:
            yield AnnotationDelta(index, annotation)
    elif isinstance(content, Refusal):
        yield BlockStart(index, TextBlock())
        yield RefusalDelta(index, content.text)
    elif isinstance(content, Reasoning):
        yield BlockStart(index, ReasoningBlock(content.splittable))
        if content.text:
            yield ReasoningDelta(index, content.text)
        if content.signature:
            yield SignatureDelta(index, content.signature)
    elif isinstance(content, RedactedReasoning):
        yield BlockStart(index, RedactedReasoningBlock(content.data))
    elif isinstance(content, ServerItem):
        yield BlockStart(index, ServerBlock(content.dialect, content.payload, content.search))
    else:
        yield BlockStart(index, ToolUseBlock(content.id, content.name, content.kind, content.namespace))
        if content.arguments:
            yield ArgumentsDelta(index, content.arguments)
        complete = content.complete
    if complete or not failed:
        yield BlockStop(index, complete)
