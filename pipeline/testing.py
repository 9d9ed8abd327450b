"""For people who write stages: play one by hand, check that it keeps the rules, show what it makes of a recording."""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from enum import Enum
from functools import partial
from operator import is_
from typing import Any, Final, Literal, TypeVar

from attrs import NOTHING, Attribute, asdict, define, field, fields, frozen, has

from pipeline.drive import Pipeline, arun
from pipeline.errors import PipelineError
from pipeline.events import Event, Frame, StreamError
from pipeline.stage import AsyncStage, Call, Chain, Stage, Steps, cause_of, run

In = TypeVar("In")
Out = TypeVar("Out")

Chunk = int | Literal["frame"] | None
"""How a recording is cut: every so many bytes, behind each blank line, or not at all."""

Equal = Callable[[Sequence[Any], Sequence[Any]], bool]

SIZES = (2, 3, 7)
"""Items a read, in `check_stage`, besides one and all of them."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|$)")


@frozen
class End:
    """A step of `play`: the end of the stream, for a cause if it is not a clean one."""

    cause: StreamError | None = None

    def __call__(self, cause: StreamError) -> "End":
        return End(cause)


EOF: Final = End()
"""The clean end; `EOF(cause)` is another."""


@define
class UnknownEvent(Event):
    """An event that no stage knows: a later version's, or somebody's own."""


def play(stage: Stage[Any, Out], *steps: object) -> list[list[Out]]:
    """What a stage returns at each step: an item, a list of items that one read brought, or `EOF`.

    What it raises is raised.
    """
    return run(_playing(stage, steps))


def aplay(stage: AsyncStage[Any, Out], *steps: object) -> Awaitable[list[list[Out]]]:
    """`play` for a stage that awaits."""
    return arun(_playing(stage, steps))


def check_stage(make: Callable[[], Stage[In, Out]], items: Sequence[In], *, equal: Equal | None = None) -> None:
    """Check that the stages which `make` returns keep the rules of every stage, on a stream of `items`.

    However the items are batched, what comes out is the same (to `equal`, given two whole outputs; by default the
    same list, or the same bytes). Nothing comes once the stage has ended, nothing is held after the end, no item and
    no list of items is changed, two streams at once do not know of each other, and an event that nobody knows is
    passed on or dropped. Raises `AssertionError` naming the broken rule; an error that is none of ours is raised.
    """
    run(_checking(make, list(items), equal or _same))


def acheck_stage(
    make: Callable[[], AsyncStage[In, Out]], items: Sequence[In], *, equal: Equal | None = None
) -> Awaitable[None]:
    """`check_stage` for stages that await."""
    return arun(_checking(make, list(items), equal or _same))


def replay(data: bytes, stage: Stage[Any, Any], after: Sequence[Stage[Any, Any]] = (), chunk: Chunk = None) -> str:
    """A recording through a stage, as a transcript: a line for each item that went in (`>>`) and came out (`<<`).

    The stages of `after` come before it: what they make of the recording is what goes in. It is read as `cut` cuts
    it, up to where the stages have ended. An error of ours that the stage raises is a line too (`!!`), and the last
    line (`==`) says what it still holds and whether it has ended.
    """
    watched = _Watched(stage)
    return run(_replaying(Chain((*after, watched)), watched, cut(data, chunk)))


def areplay(
    data: bytes,
    stage: Stage[Any, Any] | AsyncStage[Any, Any],
    after: Sequence[Stage[Any, Any] | AsyncStage[Any, Any]] = (),
    chunk: Chunk = None,
) -> Awaitable[str]:
    """`replay` for stages of which some await."""
    watched = _AsyncWatched(stage)
    return arun(_replaying(Pipeline((*after, watched)), watched, cut(data, chunk)))


def cut(data: bytes, chunk: Chunk) -> list[bytes]:
    """A recording as reads.

    Raises `ValueError` if `chunk` is a number below one.
    """
    if chunk is None:
        return [data] if data else []
    if chunk == "frame":
        return list(_frames(data))
    if chunk < 1:
        raise ValueError(f"a read of {chunk} bytes brings nothing")
    return [data[at : at + chunk] for at in range(0, len(data), chunk)]


def show(item: object) -> str:
    """An item on one line: `TextDelta(0, 'Hello')`, `frame NAME DATA`, `b'...'`. What is at its default is left out."""
    if isinstance(item, Frame):
        return f"frame {_readable(item.name) or '-'} {_readable(item.data)}"
    if isinstance(item, Enum):
        return repr(item.value)
    kind = type(item)
    if not has(kind):
        return repr(item)
    return f"{kind.__name__}({', '.join(_members(item, fields(kind)))})"


def _readable(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if text.isprintable() and text.encode() == data else repr(data)


def _frames(data: bytes) -> Iterator[bytes]:
    begin = 0
    for line in _LINE.finditer(data):
        if line.group() in (b"\r\n", b"\n", b"\r"):
            yield data[begin : line.end()]
            begin = line.end()
    if begin < len(data):
        yield data[begin:]


def _members(item: object, attributes: "Iterable[Attribute[Any]]") -> Iterator[str]:
    for attribute in attributes:
        value = getattr(item, attribute.name)
        if attribute.repr and attribute.default is NOTHING:
            yield show(value)
        elif attribute.repr and value != attribute.default:
            yield f"{attribute.name}={show(value)}"


def _playing(stage: Any, steps: Sequence[Any]) -> Steps[list[list[Any]]]:
    outputs = []
    for step in steps:
        if isinstance(step, End):
            made = yield partial(stage.receive_eof, step.cause)
        else:
            made = yield partial(stage.receive, step if isinstance(step, list) else [step])
        outputs.append(list(made))
    return outputs


@define
class _Watch:
    """Notes what goes into a stage, and what comes out."""

    stage: Any
    lines: list[str] = field(init=False, factory=list)

    def _receiving(self, items: Sequence[Any]) -> Steps[Sequence[Any]]:
        self.lines.extend(f">> {show(item)}" for item in items)
        return self._noting(partial(self.stage.receive, items))

    def _ending(self, cause: StreamError | None) -> Steps[Sequence[Any]]:
        self.lines.append(">> EOF" if cause is None else f">> EOF {show(cause)}")
        return self._noting(partial(self.stage.receive_eof, cause))

    def _noting(self, call: Call) -> Steps[Sequence[Any]]:
        try:
            made = yield call
        except PipelineError as error:
            self.lines.extend(f"<< {show(item)}" for item in error.made)
            self.lines.append(f"!! {_raised(error)}")
            raise
        self.lines.extend(f"<< {show(item)}" for item in made)
        return made


class _Watched(_Watch, Stage[Any, Any]):
    def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        return run(self._receiving(items))

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        return run(self._ending(cause))


class _AsyncWatched(_Watch, AsyncStage[Any, Any]):
    def receive(self, items: Sequence[Any]) -> Coroutine[Any, Any, Sequence[Any]]:
        return arun(self._receiving(items))

    def receive_eof(self, cause: StreamError | None = None) -> Coroutine[Any, Any, Sequence[Any]]:
        return arun(self._ending(cause))


def _replaying(chain: Chain | Pipeline, watched: _Watch, reads: Sequence[bytes]) -> Steps[str]:
    with suppress(PipelineError):  # it is among the lines: as what the stage raised, or as the cause of its end
        for read in reads:
            if chain.ended or watched.stage.ended:
                break
            yield partial(chain.receive, [read])
        yield chain.receive_eof
    watched.lines.append(f"== held {watched.stage.held}, {'ended' if watched.stage.ended else 'not ended'}")
    return "".join(f"{line}\n" for line in watched.lines)


def _checking(make: Callable[[], Any], items: list[Any], equal: Equal) -> Steps[None]:
    before = _plain(deepcopy(items))
    wanted = _Trial(make())
    for item in items:
        yield from wanted.give(item)
    yield from wanted.end()

    def check(trial: _Trial, where: str) -> None:
        _demand(_plain(items) == before, f"an item was changed, {where}")
        _demand(trial.failure == wanted.failure, f"{where}: {trial.failure or 'no error'}; else {wanted.failure}")
        _demand(equal(trial.out, wanted.out), f"{where}: {trial.out}\nelse: {wanted.out}")

    check(wanted, "one item a read")
    for size in (*SIZES, len(items) or 1):
        trial = _Trial(make())
        for at in range(0, len(items), size):
            yield from trial.give(*items[at : at + size])
        yield from trial.end()
        check(trial, f"{size} items a read")
    ahead, behind = _Trial(make()), _Trial(make())
    for at, item in enumerate(items):
        yield from ahead.give(item)
        yield from behind.give(*items[at - 1 : at])
    yield from ahead.end()
    yield from behind.give(*items[-1:])
    yield from behind.end()
    check(ahead, "beside another stream")
    check(behind, "beside another stream")
    if any(isinstance(item, Event) for item in items):
        trial = _Trial(make())
        for item in items:
            yield from trial.give(UnknownEvent(), item)
        yield from trial.give(UnknownEvent())
        yield from trial.end()
        _demand(trial.failure == wanted.failure, f"an unknown event: {trial.failure}")


@define
class _Trial:
    """One stream through a stage under check: what came of it, and what was raised."""

    stage: Any
    out: list[Any] = field(init=False, factory=list)
    failure: str = field(init=False, default="")

    def give(self, *items: Any) -> Steps[None]:
        """One read; nothing if it is empty or the stage has failed."""
        if self.failure or not items:
            return
        batch, ended, cause = list(items), self.stage.ended, None
        try:
            made = yield partial(self.stage.receive, batch)
        except PipelineError as error:
            made, cause = error.made, self._failed(error)
        self.out.extend(made)
        unchanged = len(batch) == len(items) and all(map(is_, batch, items))
        _demand(unchanged, "the list that a read brought was changed")
        _demand(not (ended and made), f"the stage had ended, and made {made}")
        if cause is not None:
            yield from self._close(cause)

    def end(self) -> Steps[None]:
        """The end, which a failure has brought already."""
        if not self.failure:
            yield from self._close(None)
        _demand(self.stage.held == 0, f"{self.stage.held} bytes are held after the end")

    def _close(self, cause: StreamError | None) -> Steps[None]:
        try:
            held = yield partial(self.stage.receive_eof, cause)
        except PipelineError as error:
            held = error.made
            self._failed(error)
        self.out.extend(held)

    def _failed(self, error: PipelineError) -> StreamError:
        self.failure = self.failure or _raised(error)
        return cause_of(error)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two outputs are the same: bytes however they are parted, else the same items."""
    if all(isinstance(item, bytes) for item in (*one, *other)):
        return b"".join(one) == b"".join(other)
    return list(one) == list(other)


def _plain(items: Sequence[Any]) -> list[Any]:
    """Items as plain values, to be compared whole: events leave out where they came from."""
    return [(type(item), asdict(item) if has(type(item)) else item) for item in items]


def _raised(error: PipelineError) -> str:
    return f"{type(error).__name__}({str(error)!r})"


def _demand(kept: bool, broken: str) -> None:
    if not kept:
        raise AssertionError(broken)
