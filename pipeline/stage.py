"""A stage turns what one read brought into what can be passed on now: no I/O, no clock, no event loop.

Stages join with `|`. A chain of them is a stage again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, overload

from pipeline.errors import PipelineError
from pipeline.events import Event, StreamError

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Next = TypeVar("Next")


class Stage(ABC, Generic[In, Out]):
    """One step of a pipeline, for one stream, ever.

    `receive` takes the list that one read brought and returns the list that can be passed on; with nothing to do it
    returns the list it was given. A stage raises only the errors of `pipeline.errors`, with what it had already made.
    """

    __slots__ = ()

    held: int = 0
    """Bytes held back now."""
    ended: bool = False
    """Nothing more will come."""

    @abstractmethod
    def receive(self, items: Sequence[In]) -> Sequence[Out]:
        """What can be passed on, now that `items` came."""

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Out]:
        """What was held back; nothing more will come. Called once.

        `cause` tells why, if the end is not a clean one. A stage that makes events puts it behind what it held; one
        that does not returns what it held, and the next stage is given the cause.
        """
        return ()

    def idle(self) -> Sequence[Out]:
        """What to say while nothing comes: by default nothing. Encoders answer with their ping."""
        return ()

    @overload
    def __or__(self, after: "Stage[Out, Next]") -> "Stage[In, Next]": ...
    @overload
    def __or__(self, after: "AsyncStage[Out, Next]") -> "AsyncStage[In, Next]": ...
    def __or__(self, after: Any) -> Any:
        if isinstance(after, Stage):
            return Chain((*parts(self), *parts(after)))
        if isinstance(after, AsyncStage):
            return join_async(self, after)
        return NotImplemented


class AsyncStage(ABC, Generic[In, Out]):
    """A step that awaits: a moderation call, a pacer, a database look-up. The same three methods, as coroutines."""

    __slots__ = ()

    held: int = 0
    ended: bool = False

    @abstractmethod
    async def receive(self, items: Sequence[In]) -> Sequence[Out]:
        """What can be passed on, now that `items` came."""

    async def receive_eof(self, cause: StreamError | None = None) -> Sequence[Out]:
        """What was held back; nothing more will come. Called once. `cause` as in `Stage.receive_eof`."""
        return ()

    async def idle(self) -> Sequence[Out]:
        """What to say while nothing comes."""
        return ()

    @overload
    def __or__(self, after: "Stage[Out, Next]") -> "AsyncStage[In, Next]": ...
    @overload
    def __or__(self, after: "AsyncStage[Out, Next]") -> "AsyncStage[In, Next]": ...
    def __or__(self, after: Any) -> Any:
        if isinstance(after, Stage | AsyncStage):
            return join_async(self, after)
        return NotImplemented


class EventStage(Stage[Event, Event]):
    """The simple door for people's own stages: `on_event` is called per event."""

    __slots__ = ()

    @abstractmethod
    def on_event(self, event: Event) -> Iterable[Event]:
        """What to pass on for this event."""

    def on_end(self) -> Iterable[Event]:
        """What was held back, at the end of the stream."""
        return ()

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for item in items:
            try:
                out.extend(self.on_event(item))
            except PipelineError as error:
                raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        held = list(self.on_end())
        return held if cause is None else [*held, cause]


class Chain(Stage[Any, Any]):
    """Stages run one behind the other, each given what the one before it made.

    Failure travels down. When a stage raises an error of ours, what lies before it is dropped; the rest is given what
    the stage had already made, what it held, and the cause. The first stage that makes events turns the cause into an
    event; behind it stands a plain end. The first cause wins, and after it the chain has ended.
    """

    __slots__ = ("_done", "_receives", "stages")

    def __init__(self, stages: Sequence[Stage[Any, Any]]) -> None:
        self.stages = tuple(stages)
        self._receives = tuple(stage.receive for stage in self.stages)
        self._done = False

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return sum(stage.held for stage in self.stages)

    @property
    def ended(self) -> bool:  # type: ignore[override]  # computed here, stored elsewhere
        if self._done:
            return True
        for stage in self.stages:
            if stage.ended:
                return True
        return False

    def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        if self._done:
            return ()
        receives = self._receives
        at = 0
        try:
            for receive in receives:
                items = receive(items)
                if not items:
                    return ()
                at += 1
        except PipelineError as error:
            return self._fail(at, error)
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        if self._done:
            return ()
        self._done = True
        return self._end(0, (), cause)

    def idle(self) -> Sequence[Any]:
        if self._done:
            return ()
        items: Sequence[Any] = ()
        for at, stage in enumerate(self.stages):
            try:
                said = stage.idle()
                items = [*stage.receive(items), *said] if items else said
            except PipelineError as error:
                return self._fail(at, error)
        return items

    def _fail(self, at: int, error: PipelineError) -> Sequence[Any]:
        self._done = True
        cause = cause_of(error)
        stage = self.stages[at]
        return self._end(at + 1, *with_held([*error.made], held_at_failure(stage, cause), cause))

    def _end(self, at: int, items: Sequence[Any], cause: StreamError | None) -> Sequence[Any]:
        """The end, from stage `at` on: `items` came last, `cause` still looks for the stage that makes it an event."""
        for stage in self.stages[at:]:
            out: list[Any] = []
            try:
                if items:
                    out.extend(stage.receive(items))
            except PipelineError as error:
                out.extend(error.made)
                cause = cause or cause_of(error)
            try:
                held = stage.receive_eof(cause)
            except PipelineError as error:
                held = error.made
                cause = cause or cause_of(error)
            items, cause = with_held(out, held, cause)
        return items


def parts(stage: Stage[Any, Any]) -> tuple[Stage[Any, Any], ...]:
    """A chain's stages, or the stage alone."""
    return stage.stages if isinstance(stage, Chain) else (stage,)


def join_async(before: Any, after: Any) -> AsyncStage[Any, Any]:
    """A pipeline with an async stage in it: it runs in `pipeline.drive`, the one place that awaits."""
    from pipeline.drive import Pipeline  # drive builds on this module

    return Pipeline.of(before, after)


def cause_of(error: PipelineError) -> StreamError:
    """An error of ours as the event that the client is told."""
    return StreamError(error.kind, str(error), error.code, error.retryable)


def held_at_failure(stage: Stage[Any, Any], cause: StreamError) -> Sequence[Any]:
    """What a stage that has just failed still held; if that fails too, it is passed over."""
    try:
        return stage.receive_eof(cause)
    except PipelineError as again:
        return again.made


def with_held(
    out: list[Any], held: Sequence[Any], cause: StreamError | None
) -> tuple[list[Any], StreamError | None]:
    """`out` and `held` joined, and the cause while it is not among them."""
    out.extend(held)
    return out, None if cause is not None and any(item is cause for item in held) else cause
