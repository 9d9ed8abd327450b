"""One dialect over itself, in the other form: a whole answer leaves as its stream, a stream as its whole answer."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field, frozen

from pipeline.change import Change
from pipeline.errors import LimitExceeded, PipelineError, StageError, UpstreamError
from pipeline.events import (
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Origin,
    StopReason,
    StreamError,
    Usage,
)
from pipeline.failure import LOST_COUNTS, UNTOLD
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger, LedgerEntry
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
    tells_input,
)
from pipeline.stage import Stage, cause_of

NOTHING: Final = ("", "null")
"""What stands for no arguments."""
LATE: Final = LOST_COUNTS[2]
"""Why what only the end would tell is lost with it."""
ENDS: Final = (MessageDelta, MessageStop, StreamError)
"""What tells how an answer ended."""
UNTOLD_STOPS: Final = (None, StopReason.END_TURN)
"""Why an answer ends whose stream does not say it; its whole answer knows better."""
ALIKE: Final = ((Text, Refusal), (Reasoning, RedactedReasoning))
"""The kinds of contents that are one kind of item."""
OVERHEAD: Final = 100
"""What a frame takes besides its bytes, or more."""


@frozen
class Unroller:
    """The events of the stream that a whole answer is told as, which remember its frames.

    If the stream does not say what the answer does, the answer is told by `encoder`; if it does not say that it failed,
    the error is told behind it. Both are recorded.
    """

    unroll: Callable[[bytes], Sequence[Frame]]
    keeper: Callable[[], Stage[Frame, Event]]
    """Fresh: events of frames, which remember them."""
    encoder: Callable[[], Stage[Event, Frame]]
    framing: Callable[[Sequence[Frame]], Sequence[bytes]]
    ledger: Ledger
    estimate: Usage | None = None
    """Our own count of the request's tokens, which a stream may have to begin with."""
    patch: Callable[[Change], Mapping[str, Any]] = field(kw_only=True)
    """A whole answer with what was changed in it."""
    meant: Callable[[Content], Content] = field(kw_only=True)
    """A call with the arguments that any other client would be told. Raises `UpstreamError` if it has none."""

    def __call__(self, body: bytes, message: Message) -> Sequence[Event]:
        mended, message = self._mended(body, message)
        error, alike = message.error, mended is not None
        if mended is not None:
            events = self._read(self.unroll(mended))
            told = assemble(events)
            alike = _gist(told, error) == _gist(message, error) and (told.error is None or error is not None)
        if not alike:
            events = self._read(self.encoder().receive([*disassemble(message, self.estimate)]))
            told = assemble(events)
        if error is not None and not _is_said(error, told.error):
            alike = False
            events = [*(event for event in events if not isinstance(event, ENDS)), error]
        if not alike:
            self.ledger.record("Unroller", "body", "rewritten", "it is told in a form that no stream has")
        if not told.content:  # nothing but an error, which is the body's
            events = [
                evolve(event, origin=Frame(body)) if isinstance(event, StreamError) else event for event in events
            ]
        if message.usage is None or not tells_input(message.usage):
            for event in events:
                if isinstance(event, MessageStart | MessageDelta):
                    begun = isinstance(event, MessageStart) and self.estimate is not None
                    event.usage = self.estimate if begun else message.usage  # type: ignore[misc]  # it was made just now
        return events

    def _mended(self, body: bytes, message: Message) -> tuple[bytes | None, Message]:
        """The same answer with the arguments that its calls are meant to have; one with a call that has none failed
        there, and no body says that."""
        if message.error is not None:
            return body, message
        content: list[Content] = []
        for one in message.content:
            try:
                content.append(self.meant(one))
            except UpstreamError as error:
                return None, self._failed(message, content, one, cause_of(error))
        if (now := evolve(message, content=tuple(content))) == message:
            return body, message
        return dumps(self.patch(Change(body, [*disassemble(message)], [*disassemble(now)]))), now

    def _failed(self, message: Message, told: Sequence[Content], call: Content, error: StreamError) -> Message:
        """An answer as far as the call that cannot be told."""
        cut = evolve(call, complete=False) if isinstance(call, ToolUse) else call
        if len(message.content) > len(told) + 1:
            self.ledger.record("Unroller", "content", "dropped", "it stands behind a call that was cut")
        return evolve(message, content=(*told, cut), stop_reason=None, error=error)

    def _read(self, frames: Sequence[Frame]) -> list[Event]:
        raws = (b"".join(self.framing((frame,))) for frame in frames)
        whole = [Frame(frame.data, frame.name, raw) for frame, raw in zip(frames, raws, strict=True)]
        return [*self.keeper().receive(whole)]


@define
class StreamGatherer(Stage[Event, Event]):
    """At the end of a stream, the events of the whole answer that its frames make, which remember that.

    Where that answer does not say what the stream did, it is what the events say of it now: a change; but where the
    stream tells its answer once more at its end, that counts, and only what it leaves out is put in. Of a stream that
    fails, the events leave as they are; if its frames make an answer that says both what was told and that it failed,
    the error remembers that one, else what was told is lost.

    Raises `LimitExceeded` at `limits.answer_bytes`.
    """

    roll: Callable[[Sequence[Frame], Ledger], Mapping[str, Any]]
    read: Callable[[bytes], Message]
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    kept: Ledger = field(factory=Ledger, kw_only=True)
    """What is lost of the stream unless it goes back."""
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    answers: Callable[[Mapping[str, Any]], bool] = field(default=bool, kw_only=True)
    """Whether an answer that says that it failed is one all the same, which a client reads."""
    meant: Callable[[Content], Content] = field(kw_only=True)
    """As in `Unroller`."""
    restated: bool = field(default=False, kw_only=True)
    """Whether a stream tells its answer once more at its end."""
    estimate: Usage | None = field(default=None, kw_only=True)
    """Our own count of the request's tokens, which stands only where the upstream tells none at all."""
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _events: list[Event] = field(init=False, factory=list)
    _frames: list[Frame] = field(init=False, factory=list)
    _last: Origin | None = field(init=False, default=None)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        for event in () if self.ended else items:
            self._events.append(event)
            if isinstance(origin := event.origin, Origin) and origin is not self._last:
                self._keep(origin)
            if isinstance(event, MessageStop):
                return self._gathered()
            if isinstance(event, StreamError):
                return self._failed(event)
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        if not self.ended:
            self._note_lost(self.kept)
        return self._given_up() if cause is None else [*self._given_up(), cause]

    def _keep(self, origin: Origin) -> None:
        self._last = origin
        if origin.data:
            self._frames.append(Frame(origin.data, origin.name))
            origin.made = ()  # type: ignore[misc]  # given up: it and its events refer to each other
            self.held += OVERHEAD + len(origin.data)
            if self.held > self.limits.answer_bytes:
                bound = f"the answer is larger than {self.limits.answer_bytes} bytes"
                raise LimitExceeded(bound, code="answer_bytes").after(self._given_up())

    def _given_up(self) -> list[Event]:
        """All events, as they are."""
        events, self._events, self._last = self._events, [], None
        self._frames.clear()
        self.held, self.ended = 0, True
        return events

    def _failed(self, error: StreamError) -> Sequence[Event]:
        """The stream failed, and said so."""
        lost = [*self.kept]  # and nothing of what the whole answer says that is made here
        answer = self.roll(self._frames, Ledger())
        body = dumps(answer)
        told = self._read(body)
        if told is not None and told.error is not None and told.content and self.answers(answer):
            self._note_untold(told.content)
            error = evolve(error, origin=Frame(body))
        else:
            self._note_lost(lost)
        return [*self._given_up()[:-1], error]

    def _note_lost(self, lost: Iterable[LedgerEntry]) -> None:
        """Of an answer that failed, only the error is told, and nothing of what came late."""
        self._note_untold(())
        for entry in lost:
            if entry.reason == LATE:
                self.ledger.record(entry.stage, entry.path, entry.action, entry.reason)

    def _note_untold(self, told: Sequence[Content]) -> None:
        """Of an answer that failed, only what is `told` beside its error is told."""
        try:
            lost = [*map(type, assemble(self._events).content)] != [*map(type, told)]
        except StageError:
            lost = True
        if lost:
            self.ledger.record("StreamGatherer", *UNTOLD)

    def _gathered(self) -> Sequence[Event]:
        frames = [*self._frames]
        message = assemble(self._given_up(), self.estimate)
        body = dumps(self.roll(frames, self.ledger))
        told = self._told(body)
        own = message.content
        if told is not None and self.restated:
            message = evolve(message, content=restated(told.content, own))
        message = evolve(message, content=self._meant(message))
        if told is None:
            self.ledger.record("StreamGatherer", "body", "rewritten", "it is told in a form that no whole answer has")
            return [*disassemble(message, self.estimate)]
        if message.usage is None:
            told = evolve(told, usage=None)  # counts of nothing, where there must be some
        if message.stop_reason in UNTOLD_STOPS:
            message = evolve(message, stop_reason=told.stop_reason)
        content = in_order_of(told.content, message.content)
        content = tuple(map(_with_all, content, told.content)) if len(content) == len(told.content) else content
        if _is_reordered(content, own):
            self.ledger.record("StreamGatherer", "content", "reordered", "a whole answer has its own order")
        made = [*disassemble(told, self.estimate)]
        events = [*disassemble(evolve(message, id=told.id, model=told.model, content=content), self.estimate)]
        origin = Origin(body, raw=body, made=tuple(made))
        for event in events:
            event.origin = origin  # type: ignore[misc]  # it was made just now, and nobody has seen it
        return events

    def _meant(self, message: Message) -> tuple[Content, ...]:
        """The contents of a message with the arguments that its calls are meant to have."""
        try:
            return tuple(map(self.meant, message.content))
        except PipelineError as error:
            self.ledger.record("StreamGatherer", *UNTOLD)
            raise error.after([*disassemble(message, self.estimate)][:-2]) from error.__cause__

    def _told(self, body: bytes) -> Message | None:
        """What an answer of ours says; None if that is no answer."""
        told = self._read(body)
        return told if told is not None and told.error is None else None

    def _read(self, body: bytes) -> Message | None:
        try:
            return self.read(body)
        except UpstreamError:
            return None


def in_order_of(told: Sequence[Content], contents: Sequence[Content]) -> tuple[Content, ...]:
    """Contents in the order in which others are told: calls are known by their ids, the rest by what they are."""
    waiting: dict[object, deque[Content]] = {}
    for content in contents:
        waiting.setdefault(_known_by(content), deque()).append(content)
    first = [found.popleft() for one in told if (found := waiting.get(_known_by(one)))]
    return (*first, *(content for rest in waiting.values() for content in rest))


def restated(told: Sequence[Content], own: Sequence[Content]) -> tuple[Content, ...]:
    """What an answer is `told` to hold at the end of its stream, and what of the stream's `own` contents is none of
    that: calls more than are told under other ids, and what is of a kind of which nothing is told."""
    calls, ours = ({one.id: one.name for one in some if isinstance(one, ToolUse)} for some in (told, own))
    renamed = Counter(name for one, name in calls.items() if one not in ours)
    kinds = {_kind_of(one) for one in told if not isinstance(one, ToolUse)}
    lacking: list[Content] = []
    for one in own:
        if not isinstance(one, ToolUse):
            lacking += () if _kind_of(one) in kinds else (one,)
        elif one.id not in calls:
            renamed[one.name] -= 1
            lacking += () if renamed[one.name] >= 0 else (one,)
    return (*told, *lacking)


def _is_reordered(content: Sequence[Content], own: Sequence[Content]) -> bool:
    """Whether these are the same contents in another order."""
    now, was = [*map(_known_by, content)], [*map(_known_by, own)]
    return now != was and Counter(now) == Counter(was)


def _kind_of(content: Content) -> object:
    return next((kinds for kinds in ALIKE if isinstance(content, kinds)), type(content))


def _with_all(content: Content, told: Content) -> Content:
    """An item of a provider's own tool with all that its frames say of it, if that is all that was read, and more."""
    if isinstance(content, ServerItem) and isinstance(told, ServerItem):
        return told if content.payload.items() <= told.payload.items() else content
    return content


def _known_by(content: Content) -> object:
    return content.id if isinstance(content, ToolUse) else type(content)


def _arguments(call: ToolUse) -> str:
    return call.arguments if call.arguments.strip() not in NOTHING else "{}"


def _gist(message: Message, error: StreamError | None) -> tuple[object, ...]:
    """What a message says: its texts, whatever each is called, its calls, and how many other things it holds. If it
    failed, no call of it counts as whole."""
    texts, calls, others = "", [], 0
    for content in message.content:
        if isinstance(content, ToolUse):
            calls.append((content.name, _arguments(content), content.complete and error is None))
        elif isinstance(content, Text | Refusal | Reasoning):
            texts += content.text
        else:
            others += 1
    return texts, calls, others


def _is_said(error: StreamError, told: StreamError | None) -> bool:
    return told is not None and (told.kind, told.message) == (error.kind, error.message)
