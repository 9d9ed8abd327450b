"""Moving a stream through a chain: reads and writes in turn, the two clocks, errors of either side, cancellation."""

from collections.abc import AsyncIterator, Callable, Sequence

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from pipeline.drive import Driven, drive
from pipeline.errors import StageError
from pipeline.events import StreamError
from pipeline.limits import Limits
from pipeline.stage import AsyncStage, Stage
from tests.clocks import BACKENDS, Backend
from tests.peers import Decoder, Encoder, Peer, driven

pytestmark = pytest.mark.anyio

PeerOf = Callable[..., Peer]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]()


@pytest.fixture(params=["receive", "iterator"])
def peer(request: pytest.FixtureRequest) -> PeerOf:
    return lambda *steps, **more: Peer(list(steps), request.param, **more)


# Reads and writes


async def test_what_a_read_brought_leaves_in_one_write_before_the_next_read(peer: PeerOf) -> None:
    both = peer(b"one", b"two")
    await driven(both)
    assert both.log == ["read", "one", "read", "two", *(["read"] if both.kind == "receive" else []), "end"]


async def test_nothing_is_written_when_nothing_comes_of_a_read(peer: PeerOf) -> None:
    both = peer(b"one", b"---", b"two")
    await driven(both)
    assert [data for _, data in both.sent] == [b"one", b"two", b"end"]


async def test_the_end_is_told_to_the_chain_once(peer: PeerOf) -> None:
    for steps in ((b"one",), (b"one", anyio.EndOfStream())):
        encoder = Encoder()
        both = peer(*steps)
        await driven(both, Decoder() | encoder)
        assert (both.text, encoder.ends) == ("oneend", 1)


async def test_nothing_more_is_read_once_the_chain_has_ended(peer: PeerOf) -> None:
    encoder = Encoder()
    both = peer(b"one", b".", b"two")
    await driven(both, Decoder() | encoder)
    assert both.log == ["read", "one", "read", ".", "end"]
    assert encoder.ends == 1


async def test_nothing_is_read_for_a_chain_that_has_ended_before(peer: PeerOf) -> None:
    encoder = Encoder()
    encoder.ended = True
    both = peer(b"one")
    await driven(both, Decoder() | encoder)
    assert both.log == ["end"]


async def test_it_tells_what_it_moved(peer: PeerOf) -> None:
    both = peer(b"one", 3.0, b"---", 4.0, b"four", 2.0)
    assert await driven(both) == Driven(reads=3, bytes_in=10, bytes_out=10, longest_silence=7.0)


async def test_what_it_moved_is_known_although_it_was_cancelled(peer: PeerOf) -> None:
    both, moved = peer(b"one", 100.0, b"two"), Driven()
    with anyio.move_on_after(5):
        await driven(both, driven=moved)
    assert moved == Driven(reads=1, bytes_in=3, bytes_out=3, longest_silence=5.0)


async def test_the_time_that_sending_takes_is_no_silence(peer: PeerOf) -> None:
    both = peer(b"one", 0.5, b"two", slow=5.0)
    assert (await driven(both)).longest_silence == 0.5


async def test_the_end_may_be_a_silence_too(peer: PeerOf) -> None:
    class Mute(Encoder):
        def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
            return ()

    both = peer(b"one", 3.0)
    assert (await driven(both, Decoder() | Mute())).longest_silence == 3.0


# Errors of ours


async def test_a_failure_of_a_stage_is_told_and_ends_the_stream(peer: PeerOf) -> None:
    both = peer(b"one", b"!", b"two")
    await driven(both)
    assert both.log == ["read", "one", "read", "[|a ! came|True]end"]


async def test_an_error_that_no_stage_made_an_event_is_raised_when_what_was_made_is_sent(
    peer: PeerOf,
) -> None:
    class Breaks(Stage[bytes, bytes]):
        def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            raise StageError("no").after([b"ma", b"de "])

        def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
            return (b"held",)

    both = peer(b"one", b"two")
    with pytest.raises(StageError, match="no"):
        await driven(both, Breaks())
    assert both.log == ["read", "made held"]


# Errors of the source


@pytest.mark.parametrize(
    "error", [ConnectionResetError("no"), anyio.BrokenResourceError(), anyio.ClosedResourceError()]
)
async def test_a_lost_connection_is_told_to_the_chain(peer: PeerOf, error: Exception) -> None:
    both = peer(b"one", error, b"two")
    await driven(both)
    lost = f"the connection to the upstream was lost: {type(error).__name__}"
    assert both.text == f"one[connection_lost|{lost}|True]end"


async def test_a_host_names_the_errors_of_its_own_source(peer: PeerOf) -> None:
    both = peer(LookupError())
    await driven(both, source_errors=(LookupError,))
    assert both.text == "[connection_lost|the connection to the upstream was lost: LookupError|True]end"


@pytest.mark.parametrize("error", [ConnectionResetError(), ZeroDivisionError()])
async def test_an_error_that_the_host_did_not_name_goes_to_the_caller(peer: PeerOf, error: Exception) -> None:
    both = peer(b"one", error, b"two")
    with pytest.raises(type(error)):
        await driven(both, source_errors=(LookupError,))
    assert both.text == "one"


async def test_a_source_that_brings_nothing_for_too_long_is_given_up(peer: PeerOf) -> None:
    both = peer(299.0, b"one", 299.0, b"-", 301.0, b"two")
    await driven(both, limits=Limits(ping_seconds=1e4))
    assert both.sent == [
        (299, b"one"),
        (898, b"[idle_timeout|the upstream sent nothing for 300 seconds|True]end"),
    ]


async def test_pings_do_not_lengthen_the_wait_for_the_source(peer: PeerOf) -> None:
    both = peer(26.0, b"one")
    await driven(both, limits=Limits(idle_seconds=25, ping_seconds=10))
    assert [(when, data[:5]) for when, data in both.sent] == [(10, b"ping "), (20, b"ping "), (25, b"[idle")]


async def test_the_time_that_sending_takes_is_not_the_sources(peer: PeerOf) -> None:
    both = peer(b"one", 20.0, b"two", slow=200.0)
    await driven(both, limits=Limits(idle_seconds=25, ping_seconds=10))
    assert both.text == "oneping twoend"


# Pings


async def test_a_client_that_is_sent_nothing_for_a_while_is_pinged(peer: PeerOf) -> None:
    both = peer(25.0, b"one", 12.0, b"two", 9.0)
    await driven(both)
    assert both.sent == [(10, b"ping "), (20, b"ping "), (25, b"one"), (35, b"ping "), (37, b"two"), (46, b"end")]


async def test_a_client_is_pinged_too_while_a_stage_holds_all_that_comes(peer: PeerOf) -> None:
    both = peer(b"one", *[4.0, b"-"] * 6, b"two")
    await driven(both)
    assert both.sent == [(0, b"one"), (10, b"ping "), (20, b"ping "), (24, b"two"), (24, b"end")]


async def test_a_ping_that_is_due_goes_out_before_the_next_read(peer: PeerOf) -> None:
    class Slow(AsyncStage[bytes, bytes]):
        async def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
            await anyio.sleep(11)
            return items

    both = peer(b"-", b"-", b".")
    await driven(both, Slow() | Decoder() | Encoder())
    assert both.log == ["read", "ping ", "read", "ping ", "read", ".", "end"]


async def test_a_chain_with_no_ping_is_asked_again_after_as_long(peer: PeerOf) -> None:
    asked = []

    class Silent(Encoder):
        def idle(self) -> Sequence[bytes]:
            asked.append(anyio.current_time() - both.began)
            return ()

    both = peer(25.0, b"one")
    await driven(both, Decoder() | Silent())
    assert asked == [10, 20]
    assert both.sent == [(25, b"one"), (25, b"end")]


async def test_zero_turns_off_a_clock(peer: PeerOf) -> None:
    both = peer(1000.0, b"one")
    await driven(both, limits=Limits(ping_seconds=0, idle_seconds=0))
    assert both.sent == [(1000, b"one"), (1000, b"end")]


async def test_nothing_more_is_read_once_a_ping_has_ended_the_chain(peer: PeerOf) -> None:
    class Ends(Encoder):
        def idle(self) -> Sequence[bytes]:
            self.ended = True
            return (b"bye ",)

    both = peer(b"one", 25.0, b"two")
    await driven(both, Decoder() | Ends())
    assert both.sent == [(0, b"one"), (10, b"bye "), (10, b"end")]


async def test_a_chain_that_breaks_at_its_ping_ends_the_stream(peer: PeerOf) -> None:
    class Breaks(Encoder):
        def idle(self) -> Sequence[bytes]:
            raise StageError("no ping")

    both = peer(b"one", 25.0, b"two")
    with pytest.raises(StageError, match="no ping"):
        await driven(both, Decoder() | Breaks())
    assert both.sent == [(0, b"one"), (10, b"end")]


# The client leaves


@pytest.mark.parametrize("last", [b"two", b"ping ", b"end"])
async def test_what_sending_raises_goes_to_the_caller_and_nothing_more_is_asked(peer: PeerOf, last: bytes) -> None:
    encoder = Encoder()
    both = peer(b"one", 11.0, b"two", leaves_at=last)
    with pytest.raises(anyio.BrokenResourceError):
        await driven(both, Decoder() | encoder)
    assert last.decode() not in both.log
    assert encoder.ends == (last == b"end")


async def test_a_cancelled_drive_stops_at_once(peer: PeerOf) -> None:
    encoder = Encoder()
    both = peer(b"one", 100.0, b"two")
    with anyio.move_on_after(5) as scope:
        await driven(both, Decoder() | encoder)
    assert scope.cancelled_caught
    assert anyio.current_time() - both.began == 5
    assert (both.text, encoder.ends) == ("one", 0)


# Async iterators


@pytest.fixture
def iterated() -> PeerOf:
    return lambda *steps, **more: Peer(list(steps), "iterator", **more)


async def test_an_iterator_outlives_the_pings(iterated: PeerOf) -> None:
    both = iterated(35.0, b"one", 35.0, b"two")
    await driven(both)
    assert both.text == "ping ping ping oneping ping ping twoend"
    assert both.log.count("read") == 2


async def test_an_item_that_came_while_the_client_was_pinged_is_kept(iterated: PeerOf) -> None:
    both = iterated(12.0, b"one", b"two", slow=5.0)
    await driven(both)
    assert both.log == ["read", "ping ", "one", "read", "two", "end"]


async def test_an_iterator_may_bring_nothing_now_and_then(iterated: PeerOf) -> None:
    both = iterated(b"one", b"", b"", b"two")
    assert (await driven(both)).reads == 2
    assert both.text == "onetwoend"


async def test_an_iterator_that_waits_when_the_chain_has_ended_is_closed_in_peace(
    iterated: PeerOf,
) -> None:
    class Asks(Peer):
        async def items(self) -> AsyncIterator[bytes]:
            try:
                yield b"."
            finally:
                await anyio.sleep(1)
                self.log.append("closed")

    both = Asks([], "iterator")
    await drive(both.source, Decoder() | Encoder(), both.send)
    assert both.log == [".", "end", "closed"]


async def test_an_iterable_is_closed_behind_its_iterator(iterated: PeerOf) -> None:
    class Body:
        closed = False

        def __aiter__(self) -> AsyncIterator[bytes]:
            return both.items()

        async def aclose(self) -> None:
            self.closed = both.closed == 1

    both, body = iterated(b"one"), Body()
    await drive(body, Decoder() | Encoder(), both.send)
    assert body.closed


async def test_an_iterator_without_aclose_will_do(iterated: PeerOf) -> None:
    class Two:
        left = [b"one", b"two"]

        def __aiter__(self) -> "Two":
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    both = iterated()
    await drive(Two(), Decoder() | Encoder(), both.send)
    assert both.text == "onetwoend"


async def test_errors_of_both_sides_are_raised_together(iterated: PeerOf) -> None:
    async def bad_source() -> AsyncIterator[bytes]:
        try:
            yield b"one"
        finally:
            raise ZeroDivisionError

    both = iterated(leaves_at=b"one")
    with pytest.raises(ExceptionGroup) as raised:
        await drive(bad_source(), Decoder() | Encoder(), both.send)
    assert {type(error) for error in raised.value.exceptions} == {ZeroDivisionError, anyio.BrokenResourceError}


# Sockets


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_moves_a_stream_between_sockets(backend: str) -> None:
    async def serve(stream: SocketStream) -> None:
        async with stream:
            await drive(stream.receive, Decoder() | Encoder(), stream.send)

    async def talk() -> None:
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, serve)
            async with await anyio.connect_tcp("127.0.0.1", listener.extra(SocketAttribute.local_port)) as client:
                for word in (b"one", b"two"):
                    await client.send(word)
                    assert await client.receive() == word
                await client.send_eof()
                assert b"".join([data async for data in client]) == b"end"
            tasks.cancel_scope.cancel()

    anyio.run(talk, backend=backend)
