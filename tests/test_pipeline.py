"""Pipelines with async stages in them, and `through`."""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import define
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.drive import AsyncEventStage, Pipeline, through
from pipeline.errors import ErrorKind, PipelineError, StageError, UpstreamError
from pipeline.events import Event, MessageStop, StreamError, TextDelta
from pipeline.stage import AsyncStage, Chain, Stage
from pipeline.testing import EOF, aplay
from tests.clocks import BACKENDS, Backend
from tests.peers import Decoder, Encoder, Peer, driven
from tests.scripted import LOST, SCRIPTS, Scripted, broke


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]()


@define(eq=False)
class Awaited(AsyncStage[Any, Any]):
    """A sync stage that is waited for."""

    stage: Stage[Any, Any]

    @property
    def held(self) -> int:  # type: ignore[override]  # the stage's
        return self.stage.held

    @property
    def ended(self) -> bool:  # type: ignore[override]  # the stage's
        return self.stage.ended

    async def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        await anyio.lowlevel.checkpoint()
        return self.stage.receive(items)

    async def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        await anyio.lowlevel.checkpoint()
        return self.stage.receive_eof(cause)

    async def idle(self) -> Sequence[Any]:
        await anyio.lowlevel.checkpoint()
        return self.stage.idle()


class Moderate(AsyncEventStage):
    """Asks somebody about each text, which takes a while; breaks at a Z, and at the end if an E came last."""

    last = ""

    async def on_event(self, event: Event) -> Iterable[Event]:
        await anyio.sleep(1)
        if not isinstance(event, TextDelta):
            return (event,)
        self.last = event.text
        if event.text == "Z":
            raise StageError("Z came").after([MessageStop()])
        return (TextDelta(0, event.text.replace("damn", "****")),)

    async def on_end(self) -> Iterable[Event]:
        await anyio.sleep(1)
        if self.last == "E":
            raise UpstreamError("E was left").after([TextDelta(0, "!")])
        return (TextDelta(0, "?"),)


# Pipelines


@pytest.mark.anyio
async def test_a_stage_that_awaits_stands_in_the_middle() -> None:
    for kind in ("receive", "iterator"):
        both = Peer([b"one", b"damn", 3.0, b"two"], kind)
        await driven(both, Decoder() | Moderate() | Encoder())
        assert both.sent == [(1, b"one"), (2, b"****"), (6, b"two"), (7, b"?end")]


@pytest.mark.anyio
async def test_a_cancelled_drive_does_not_wait_for_a_stage() -> None:
    both = Peer([b"one", b"two"], "receive")
    with anyio.move_on_after(1.5):
        await driven(both, Decoder() | Moderate() | Encoder())
    assert both.sent == [(1, b"one")]
    assert anyio.current_time() - both.began == 1.5


@pytest.mark.anyio
async def test_each_stage_is_given_what_the_one_before_it_made() -> None:
    b, c = Scripted("b", holds="y"), Scripted("c")
    chain = Scripted("a", holds="x") | Awaited(b) | c
    assert await aplay(chain, ["x", "y", "z"], "w", EOF) == [["z"], ["w"], ["x", "y"]]
    assert (b.seen, c.seen) == (["y", "z", "w", "x"], ["z", "w", "x", "y"])


@pytest.mark.anyio
async def test_nothing_comes_of_a_pipeline_after_its_end() -> None:
    a = Scripted("a", holds="x", says="p")
    chain = a | Awaited(Scripted("b"))
    assert await aplay(chain, EOF, "x", EOF) == [[], [], []]
    assert chain.ended
    assert await chain.idle() == ()
    assert (a.seen, a.ends) == ([], [None])


@pytest.mark.anyio
async def test_sync_and_async_stages_say_their_words_in_turn() -> None:
    chain = Scripted("a", says="p") | Awaited(Scripted("b", says="q")) | Scripted("c", says="r")
    assert await chain.idle() == ["p", "q", "r"]


@pytest.mark.anyio
async def test_a_pipeline_holds_what_its_stages_hold_and_has_ended_when_one_has() -> None:
    b = Scripted("b", holds="y")
    chain = Scripted("a", holds="x") | Awaited(b)
    await aplay(chain, ["x", "y", "z"])
    assert (chain.held, chain.ended) == (2, False)
    b.ended = True
    assert chain.ended


@pytest.mark.anyio
async def test_an_error_that_no_stage_made_an_event_is_raised_by_a_pipeline_too() -> None:
    chain = Awaited(Scripted("a", breaks_at="!")) | Scripted("b", holds="h")
    with pytest.raises(StageError, match="a broke") as raised:
        await aplay(chain, ["x", "h", "!"])
    assert raised.value.made == ["x", "h"]


def test_pipelines_join_further_and_stay_flat() -> None:
    a, b, c = Scripted("a"), Awaited(Scripted("b")), Scripted("c")
    joined = Pipeline.of(a | b, a | c, c)
    assert joined.stages == (a, b, a, c, c)
    further = joined | (c | b)
    assert isinstance(further, Pipeline)
    assert further.stages == (a, b, a, c, c, c, b)


def test_a_run_of_sync_stages_is_one_plain_call() -> None:
    calls = Pipeline((Scripted("a"), Scripted("b"), Scripted("c"))).receive(["x"])
    with pytest.raises(StopIteration) as returned:
        calls.send(None)
    assert returned.value.value == ["x"]


@pytest.mark.parametrize("backend", BACKENDS)
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(SCRIPTS, st.booleans()), min_size=1, max_size=4),
    st.text("abcd", max_size=6),
    st.lists(st.integers(0, 6), max_size=3),
)
def test_a_pipeline_does_what_a_chain_does(
    backend: str, scripts: list[tuple[dict[str, Any], bool]], items: str, cuts: list[int]
) -> None:
    stages = [Scripted(str(at), **script) for at, (script, _) in enumerate(scripts)]
    chain = Chain([Scripted(stage.name, **script) for stage, (script, _) in zip(stages, scripts, strict=True)])
    pipeline = Pipeline([Awaited(stage) if waits else stage for stage, (_, waits) in zip(stages, scripts, strict=True)])
    bounds = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    reads = [[*items[begin:end]] for begin, end in pairwise(bounds)]

    async def in_step() -> None:
        for read in reads:
            assert await awaited(pipeline.receive(read)) == called(chain.receive, read)
            assert (pipeline.held, pipeline.ended) == (chain.held, chain.ended)
        assert await awaited(pipeline.receive_eof(LOST)) == called(chain.receive_eof, LOST)

    name, options = BACKENDS[backend]()
    anyio.run(in_step, backend=name, backend_options=options)


def called(call: Any, given: Any) -> tuple[list[Any], str]:
    """What came of a call, and what it raised."""
    try:
        return list(call(given)), ""
    except PipelineError as error:
        return list(error.made), str(error)


async def awaited(answer: Any) -> tuple[list[Any], str]:
    """What came of an awaited call, and what it raised."""
    try:
        return list(await answer), ""
    except PipelineError as error:
        return list(error.made), str(error)


# The simple door


@pytest.mark.anyio
async def test_an_async_event_stage_is_asked_event_by_event_and_at_the_end() -> None:
    outputs = await aplay(Moderate(), [TextDelta(0, "a"), TextDelta(0, "damn")], MessageStop(), EOF)
    assert outputs == [[TextDelta(0, "a"), TextDelta(0, "****")], [MessageStop()], [TextDelta(0, "?")]]
    assert anyio.current_time() % 4 == 0


@pytest.mark.anyio
async def test_an_async_event_stage_says_what_it_had_made_before_its_error() -> None:
    with pytest.raises(StageError) as raised:
        await Moderate().receive([TextDelta(0, "a"), TextDelta(0, "Z"), TextDelta(0, "b")])
    assert raised.value.made == [TextDelta(0, "a"), MessageStop()]


@pytest.mark.anyio
async def test_an_async_event_stage_tells_the_cause_behind_what_it_held() -> None:
    left = StreamError(ErrorKind.INVALID_RESPONSE, "E was left", retryable=True)
    assert await aplay(Moderate(), EOF(LOST)) == [[TextDelta(0, "?"), LOST]]
    assert (await aplay(Moderate(), TextDelta(0, "E"), EOF))[1] == [TextDelta(0, "!"), left]


@pytest.mark.anyio
async def test_an_async_event_stage_holds_nothing_back_unless_it_says_so() -> None:
    class Same(AsyncEventStage):
        async def on_event(self, event: Event) -> Iterable[Event]:
            return (event,)

    assert await aplay(Same(), MessageStop(), EOF) == [[MessageStop()], []]


# Through


class Letters:
    """A source of letters that notes when it is closed."""

    def __init__(self, letters: str) -> None:
        self.letters: list[str] = [*letters]
        self.closed = 0

    def __aiter__(self) -> "Letters":
        return self

    async def __anext__(self) -> str:
        await anyio.lowlevel.checkpoint()
        if not self.letters:
            raise StopAsyncIteration
        letter = self.letters.pop(0)
        if letter == "0":
            raise StageError("the source broke").after(["not the chain's"])
        return letter

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1


async def collected(items: AsyncIterator[Any]) -> tuple[list[Any], str]:
    """All that came of an iterator, and what it raised."""
    out = []
    try:
        async for item in items:
            out.append(item)
    except PipelineError as error:
        return out, str(error)
    return out, ""


@pytest.mark.anyio
@pytest.mark.parametrize("wrapped", [lambda stage: stage, Awaited])
async def test_a_chain_transforms_an_async_iterator(wrapped: Any) -> None:
    source = Letters("xyzw")
    assert await collected(through(source, wrapped(Scripted("a", holds="xz")))) == (["y", "w", "x", "z"], "")
    assert source.closed == 1


@pytest.mark.anyio
async def test_what_a_read_made_is_there_before_the_next_read() -> None:
    source = Letters("xyz")
    items = through(source, Scripted("a"))
    assert await anext(items) == "x"
    assert source.letters == ["y", "z"]
    assert await collected(items) == (["y", "z"], "")


@pytest.mark.anyio
async def test_through_reads_no_more_once_the_chain_has_ended() -> None:
    source = Letters("xyz")
    stage = Scripted("a", holds="x")
    items = through(source, stage)
    assert await anext(items) == "y"
    stage.ended = True
    assert await collected(items) == (["x"], "")
    assert (source.letters, source.closed) == (["z"], 1)


@pytest.mark.anyio
async def test_who_stops_iterating_early_closes_the_source() -> None:
    source = Letters("xyz")
    stage = Scripted("a")
    items = through(source, stage)
    assert await anext(items) == "x"
    await items.aclose()
    assert (source.closed, source.letters, stage.ends) == (1, ["y", "z"], [])


@pytest.mark.anyio
async def test_a_failure_that_a_stage_made_an_event_is_the_last_item() -> None:
    source = Letters("xh!y")
    chain = Scripted("a", holds="h", breaks_at="!") | Scripted("b", makes_events=True)
    assert await collected(through(source, chain)) == (["x", "h", broke("a")], "")
    assert (source.closed, source.letters) == (1, ["y"])


@pytest.mark.anyio
async def test_another_failure_is_raised_behind_what_was_made() -> None:
    source = Letters("xh!y")
    assert await collected(through(source, Scripted("a", holds="h", breaks_at="!"))) == (["x", "h"], "a broke")
    assert source.closed == 1
    end = Letters("xh")
    assert await collected(through(end, Scripted("a", holds="h", breaks_at_end=True))) == (
        ["x", "h"],
        "a broke at the end",
    )
    assert end.closed == 1


@pytest.mark.anyio
async def test_what_the_source_raises_goes_to_whoever_iterates() -> None:
    source = Letters("xh0y")
    stage = Scripted("a", holds="h")
    assert await collected(through(source, stage)) == (["x"], "the source broke")
    assert (source.closed, stage.ends) == (1, [])
