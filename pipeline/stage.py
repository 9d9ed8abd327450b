"""A stage turns what one read brought into what can be passed on now: no I/O, no clock, no event loop.

Stages join with `|`. A chain of them is a stage again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, overload

from attrs import define, field

from pipeline.errors import PipelineError
from pipeline.events import Event, StreamError

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Next = TypeVar("Next")
Result = TypeVar("Result")

Call = Callable[[], Any]
Steps = Generator[Call, Sequence[Any], Result]
"""A rule as the calls to be made, one after the other: each one's answer is sent back, its error of ours thrown in.

So a rule is written once; `run` makes the calls, `pipeline.drive.arun` awaits what they return.
"""


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
        """What was held back; nothing more will come. Called once, but not if a stage behind this one has ended.

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
    """The simple door for people's own stages: `on_event` is called per event, `on_end` at the end."""

    __slots__ = ()

    @abstractmethod
    def on_event(self, event: Event) -> Iterable[Event]:
        """What to pass on for this event."""

    def on_end(self) -> Iterable[Event]:
        """What was held back, at the end of the stream.

        Of a stream that is whole this is behind its end: what belongs to a message must leave at the latest when its
        `MessageDelta` comes.
        """
        return ()

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        return run(joined(partial(self.on_event, item) for item in items))

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return run(told_at_end(self.on_end, cause))


class Joint:
    """What a chain of sync stages and a pipeline with async ones share: all but the waiting.

    Failure travels down. When a stage raises an error of ours, what lies before it is dropped; the rest is given what
    the stage had already made, what it held, and the cause. The first stage that makes events turns the cause into an
    event; behind it stands a plain end. The first cause wins, in the order of the stream: a stage that breaks at what
    the failed one had already made has failed first. Afterwards the chain has ended. An error that no stage made an
    event is raised, with what came of the end, so that none is lost.
    """

    __slots__ = ("_done", "stages")

    def __init__(self, stages: Sequence[Any]) -> None:
        self.stages = tuple(stages)
        self._done = False

    @property
    def held(self) -> int:
        return 0 if self._done else sum(stage.held for stage in self.stages)

    @property
    def ended(self) -> bool:
        return self._done or any(stage.ended for stage in self.stages)

    def _place(self, stage: Any) -> int:
        """Which of the stages this one is: asked when it has failed, so that nobody counts while all is well."""
        return next(at for at, one in enumerate(self.stages) if one is stage)

    def _failing(self, at: int, error: PipelineError) -> Steps[Sequence[Any]]:
        """The end, because stage `at` has raised `error`."""
        self._done = True
        return self._ending(at, _Cause(), error)

    def _finishing(self, why: StreamError | None) -> Steps[Sequence[Any]]:
        """The end, because nothing more will come. Nobody wants what stands before a stage that has ended."""
        self._done = True
        ended = next((at for at, stage in enumerate(self.stages) if stage.ended), 0)
        return self._ending(ended, _Cause(why, untold=why))

    def _ending(self, at: int, cause: "_Cause", error: PipelineError | None = None) -> Steps[Sequence[Any]]:
        """The end of the stages from `at` on, of which the first may have raised `error`."""
        out: list[Any] = []
        items: Sequence[Any] = ()
        while at < len(self.stages):
            made: Sequence[Any] = ()
            try:
                if items:
                    made = yield partial(self.stages[at].receive, items)
            except PipelineError as raised:
                error = raised
            if error is not None:
                passed, at, error = yield from self._passing(at, error)
                out.extend(passed)
                cause.failed(error)
                error = None
            items = yield from _closing(self.stages[at], made, cause)
            at += 1
        return cause.settled([*out, *items])

    def _passing(self, at: int, error: PipelineError) -> Steps[tuple[Sequence[Any], int, PipelineError]]:
        """What stage `at` had made before its error goes on as ever; a later stage that breaks at it failed first.

        What came of it, and which stage failed first with which error.
        """
        items = error.made
        for later in range(at + 1, len(self.stages)):
            if not items:
                break
            try:
                items = yield partial(self.stages[later].receive, items)
            except PipelineError as earlier:
                return (yield from self._passing(later, earlier))
        return items, at, error

    def _idling(self) -> Steps[Sequence[Any]]:
        """What the stages say while nothing comes, each one's word given to those behind it."""
        items: Sequence[Any] = ()
        for at, stage in enumerate(self.stages):
            calls = [partial(stage.receive, items), stage.idle] if items else [stage.idle]
            try:
                items = yield from joined(calls)
            except PipelineError as error:
                return (yield from self._failing(at, error))
        return items


class Chain(Joint, Stage[Any, Any]):  # type: ignore[override]  # `held` and `ended` are computed here, stored elsewhere
    """Stages run one behind the other, each given what the one before it made. Failure is as `Joint` says."""

    __slots__ = ()

    def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        if self._done:
            return ()
        stage: Any = None
        try:
            for stage in self.stages:
                items = stage.receive(items)
                if not items:
                    return ()
        except PipelineError as error:
            return run(self._failing(self._place(stage), error))
        return items

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        return () if self._done else run(self._finishing(cause))

    def idle(self) -> Sequence[Any]:
        return () if self._done else run(self._idling())


def parts(stage: Stage[Any, Any]) -> tuple[Stage[Any, Any], ...]:
    """A chain's stages, or the stage alone."""
    return stage.stages if isinstance(stage, Chain) else (stage,)


def join_async(before: Any, after: Any) -> AsyncStage[Any, Any]:
    """A pipeline with an async stage in it: it runs in `pipeline.drive`, the one place that awaits."""
    from pipeline.drive import Pipeline  # drive builds on this module

    return Pipeline.of(before, after)


def cause_of(error: PipelineError) -> StreamError:
    """An error of ours as the event that the client is told."""
    return StreamError(error.kind, str(error), error.code, error.retryable, param=error.param)


def run(steps: Steps[Result]) -> Result:
    """Make the calls of a rule; what the rule returns."""
    step = resume(steps, None)
    while not isinstance(step, Done):
        try:
            answer = step()
        except PipelineError as error:
            answer = error
        step = resume(steps, answer)
    return step.result


@define
class Done(Generic[Result]):
    """A rule has made its last call."""

    result: Result


def resume(steps: Steps[Result], answer: Any) -> Call | Done[Result]:
    """A rule's next call, given what came of the last one: its answer, or the error of ours it raised."""
    try:
        if isinstance(answer, PipelineError):
            return steps.throw(answer)
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as end:
        return Done(end.value)


def joined(calls: Iterable[Call]) -> Steps[Sequence[Any]]:
    """The answers of several calls in one list. An error of ours says what had been made before it."""
    out: list[Any] = []
    try:
        for call in calls:
            out.extend((yield call))
    except PipelineError as error:
        error.after([*out, *error.take()])
        raise
    return out


def told_at_end(on_end: Call, cause: StreamError | None) -> Steps[Sequence[Event]]:
    """What a stage of events still held, and the cause, if there is one: the one given, else what `on_end` raised."""
    try:
        held = yield from joined((on_end,))
    except PipelineError as error:
        held, cause = error.take(), cause or cause_of(error)
    return held if cause is None else [*held, cause]


@define
class _Cause:
    """Why a chain ends: the first cause, if there is one."""

    first: StreamError | None = None
    error: PipelineError | None = None
    """What was raised in the chain; None if the cause was given from outside."""
    untold: StreamError | None = field(default=None, kw_only=True)
    """The first cause, while no event tells of it."""

    def failed(self, error: PipelineError) -> None:
        """A stage raised an error. Unless the stage had passed the first cause on, it is to be told (again)."""
        if self.first is None:
            self.first, self.error = cause_of(error), error
        self.untold = self.first
        self.seen_in(error.take())

    def seen_in(self, items: Sequence[Any]) -> None:
        """Note whether an event tells of the cause."""
        if any(item is self.untold for item in items):
            self.untold = None

    def settled(self, items: Sequence[Any]) -> Sequence[Any]:
        """What came of the end. Raises an error of the chain that no event tells of."""
        if self.untold is not None and self.error is not None:
            raise self.error.after(items)
        return items


def _closing(stage: Any, made: Sequence[Any], cause: _Cause) -> Steps[Sequence[Any]]:
    """The end of one stage: what it made last, and what it held, which is passed over if that fails too."""
    try:
        held = yield partial(stage.receive_eof, cause.untold)
    except PipelineError as error:
        held = error.made
        cause.failed(error)
    cause.seen_in(held)
    return [*made, *held]
