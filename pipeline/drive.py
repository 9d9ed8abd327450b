"""The one place that awaits: pipelines with async stages in them, and moving a stream through a chain."""

import math
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
from attrs import define, field

from pipeline.errors import ErrorKind, PipelineError
from pipeline.events import Event, StreamError
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import AsyncStage, Chain, Done, Joint, Stage, Steps, joined, resume, told_at_end

In = TypeVar("In")
Out = TypeVar("Out")
Result = TypeVar("Result")

SOURCE_ERRORS: tuple[type[Exception], ...] = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What a source raises when its connection is lost; hosts add their library's."""


class Pipeline(Joint, AsyncStage[Any, Any]):  # type: ignore[override]  # `held`, `ended`: computed here, stored elsewhere
    """Stages of both kinds run one behind the other; only the async ones are awaited. Failure is as `Joint` says."""

    __slots__ = ("_receives",)

    def __init__(self, stages: Sequence[Stage[Any, Any] | AsyncStage[Any, Any]]) -> None:
        super().__init__(stages)
        self._receives = tuple((stage.receive, isinstance(stage, AsyncStage)) for stage in stages)

    @classmethod
    def of(cls, *joints: Stage[Any, Any] | AsyncStage[Any, Any]) -> "Pipeline":
        """The stages of chains, of pipelines and of single stages, as one pipeline."""
        return cls([stage for one in joints for stage in (one.stages if isinstance(one, Chain | Pipeline) else (one,))])

    async def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        if self._done:
            return ()
        at = 0
        try:
            for receive, waits in self._receives:
                answer: Any = receive(items)
                items = await answer if waits else answer
                if not items:
                    return ()
                at += 1
        except PipelineError as error:
            return await arun(self._failing(at, error))
        return items

    async def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        return () if self._done else await arun(self._finishing(cause))

    async def idle(self) -> Sequence[Any]:
        return () if self._done else await arun(self._idling())


class AsyncEventStage(AsyncStage[Event, Event]):
    """The simple door for people's own stages that await: `on_event` is awaited per event, `on_end` at the end."""

    __slots__ = ()

    @abstractmethod
    async def on_event(self, event: Event) -> Iterable[Event]:
        """What to pass on for this event."""

    async def on_end(self) -> Iterable[Event]:
        """What was held back, at the end of the stream."""
        return ()

    async def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        return await arun(joined(partial(self.on_event, item) for item in items))

    async def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return await arun(told_at_end(self.on_end, cause))


async def arun(steps: Steps[Result]) -> Result:
    """Make the calls of a rule, awaiting what is to be awaited; what the rule returns."""
    step = resume(steps, None)
    while not isinstance(step, Done):
        try:
            answer = step()
            if isinstance(answer, Awaitable):
                answer = await answer
        except PipelineError as error:
            answer = error
        step = resume(steps, answer)
    return step.result


@define
class Driven:
    """What was moved: reads that brought something, bytes, and the longest time, in seconds, that nothing was sent."""

    reads: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    longest_silence: float = 0.0


async def drive(
    receive: Callable[[], Awaitable[bytes]] | AsyncIterable[bytes],
    chain: Stage[bytes, bytes] | AsyncStage[bytes, bytes],
    send: Callable[[bytes], Awaitable[object]],
    *,
    limits: Limits = DEFAULT_LIMITS,
    source_errors: tuple[type[Exception], ...] = SOURCE_ERRORS,
    driven: Driven | None = None,
) -> Driven:
    """Move a stream through a chain: one read, what came of it in one write, and only then the next read.

    `receive` is cancel-safe; at the end it returns nothing or raises `anyio.EndOfStream`. An async iterator in its
    place is read, and closed, by one task. Once the chain has ended, nothing more is read.

    The source's `source_errors`, and `limits.idle_seconds` of waiting for it, are told to the chain as the cause of
    the end. What `send` raises goes to the caller, and so does an error of ours that no stage made an event, when
    what the chain had made is sent; then nothing more is read or asked of the chain. When nothing has been sent for
    `limits.ping_seconds`, the chain is asked for its ping; not while one of its stages is awaited. Zero turns off
    either clock.

    What was moved is counted in `driven`, for those who want to know it although they are cancelled.
    """
    pipeline = Pipeline((chain,))
    driven = Driven() if driven is None else driven
    if not isinstance(receive, AsyncIterable):
        return await _Drive(receive, pipeline, send, limits, source_errors, driven).run()
    reader = _Reader(receive, (anyio.EndOfStream, *source_errors))
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.read)
            await _Drive(reader.receive, pipeline, send, limits, source_errors, driven).run()
            reader.stop()
    except ExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__
    return driven


async def through(source: AsyncIterable[In], chain: Stage[In, Out] | AsyncStage[In, Out]) -> AsyncGenerator[Out, None]:
    """What a chain makes of a source, item by item. The source is closed at the end, if it has `aclose`.

    Whoever stops iterating early closes what this returns (`contextlib.aclosing`), and with it the source.

    What the source raises goes to whoever iterates, and so does an error of ours that no stage made an event, behind
    what the chain had made.
    """
    pipeline = Pipeline((chain,))
    items = aiter(source)
    try:
        async for item in items:
            out, error = await _made(pipeline.receive([item]))
            for one in out:
                yield one
            if error is not None:
                raise error
            if pipeline.ended:
                break
        out, error = await _made(pipeline.receive_eof())
        for one in out:
            yield one
        if error is not None:
            raise error
    finally:
        await _close(items, source)


@define
class _Drive:
    """One stream on its way, and its two clocks: how long the source is waited for, and how long nothing was sent."""

    receive: Callable[[], Awaitable[bytes]]
    pipeline: Pipeline
    send: Callable[[bytes], Awaitable[object]]
    limits: Limits
    source_errors: tuple[type[Exception], ...]
    driven: Driven
    _sent: float = field(init=False, factory=anyio.current_time)
    _asked: float = field(init=False, factory=anyio.current_time)
    """When something was sent, or the chain was asked for a ping."""

    async def run(self) -> Driven:
        try:
            while (brought := await self._read()) and not isinstance(brought, StreamError):
                self.driven.reads += 1
                self.driven.bytes_in += len(brought)
                await self._pass_on(self.pipeline.receive([brought]))
            await self._pass_on(self.pipeline.receive_eof(brought if isinstance(brought, StreamError) else None))
        finally:
            self._note_silence(anyio.current_time())
        return self.driven

    async def _read(self) -> bytes | StreamError:
        """The next bytes, none once either side has ended, or why none will come. Meanwhile the client is pinged."""
        patience = self.limits.idle_seconds or math.inf
        ping = self.limits.ping_seconds or math.inf
        while not self.pipeline.ended:
            now = anyio.current_time()
            due = self._asked + ping - now
            if due <= 0:
                await self._pass_on(self.pipeline.idle())
                self._asked = anyio.current_time()
                continue
            wait = min(patience, due)
            with anyio.CancelScope(deadline=now + wait):
                return await self._receive()
            patience -= max(wait, anyio.current_time() - now)
            if patience <= 0:
                message = f"the upstream sent nothing for {self.limits.idle_seconds:g} seconds"
                return StreamError(ErrorKind.CUT, message, code="idle_timeout", retryable=True)
        return b""

    async def _receive(self) -> bytes | StreamError:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            return b""
        except self.source_errors as error:
            message = f"the connection to the upstream was lost: {type(error).__name__}"
            return StreamError(ErrorKind.CUT, message, code="connection_lost", retryable=True)

    async def _pass_on(self, answer: Awaitable[Sequence[bytes]]) -> None:
        """Send what the chain made, in one write."""
        out, error = await _made(answer)
        if data := b"".join(out):
            self._note_silence(anyio.current_time())
            await self.send(data)
            self.driven.bytes_out += len(data)
            self._sent = self._asked = anyio.current_time()
        if error is not None:
            raise error

    def _note_silence(self, now: float) -> None:
        self.driven.longest_silence = max(self.driven.longest_silence, now - self._sent)


@define
class _Reader:
    """Reads an async iterator in a task of its own, one item when asked for it, so that waiting for one is cancel-safe.

    An async generator that is cancelled while it waits is finished; here only the wait for it is cancelled.
    """

    source: AsyncIterable[bytes]
    source_errors: tuple[type[Exception], ...]
    _wanted: anyio.Event = field(init=False, factory=anyio.Event)
    _there: anyio.Event = field(init=False, factory=anyio.Event)
    _brought: bytes | Exception = field(init=False, default=b"")
    _reading: anyio.CancelScope = field(init=False, factory=anyio.CancelScope)

    async def receive(self) -> bytes:
        """The next bytes, none at the end. What is read while nobody waits is kept for the next call."""
        if not self._there.is_set():
            self._wanted.set()
        await self._there.wait()
        self._there = anyio.Event()
        if isinstance(self._brought, Exception):
            raise self._brought
        return self._brought

    async def read(self) -> None:
        """The task: bring one item whenever one is wanted, until stopped."""
        items = aiter(self.source)
        try:
            with self._reading:
                while True:
                    await self._wanted.wait()
                    self._brought = await self._next(items)
                    self._wanted = anyio.Event()
                    self._there.set()
        finally:
            await _close(items, self.source)

    def stop(self) -> None:
        """Read no more; the source is closed."""
        self._reading.cancel()

    async def _next(self, items: AsyncIterator[bytes]) -> bytes | Exception:
        try:
            async for item in items:
                if item:
                    return item
        except self.source_errors as error:
            return error
        return b""


async def _made(answer: Awaitable[Sequence[Out]]) -> tuple[Sequence[Out], PipelineError | None]:
    """What a chain made, and the error of ours it raised."""
    try:
        return await answer, None
    except PipelineError as error:
        return error.made, error


async def _close(items: object, source: object) -> None:
    """Close an iterator, and what it iterates over, as far as they can be closed."""
    for one in (items,) if items is source else (items, source):
        if (aclose := getattr(one, "aclose", None)) is not None:
            await aclose()
