"""Both ends of a stream, and a small chain between them, for tests of hosts."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
from attrs import define, field

from pipeline.drive import Driven, drive
from pipeline.errors import UpstreamError
from pipeline.events import Event, StreamError, TextDelta
from pipeline.stage import AsyncStage, Stage

Step = bytes | float | Exception


@define
class Decoder(Stage[bytes, Event]):
    """Each read is a text; a `!` breaks it."""

    def receive(self, items: Sequence[bytes]) -> Sequence[Event]:
        if b"!" in items:
            raise UpstreamError("a ! came")
        return [TextDelta(0, item.decode()) for item in items]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return () if cause is None else (cause,)


@define
class Encoder(Stage[Event, bytes]):
    """Writes texts but dashes; a full stop ends it."""

    word: bytes = b"ping "
    ended: bool = field(init=False, default=False)
    ends: int = field(init=False, default=0)

    def receive(self, items: Sequence[Event]) -> Sequence[bytes]:
        out = []
        for item in items:
            if isinstance(item, TextDelta):
                self.ended = item.text == "."
                out += [letter.encode() for letter in item.text.replace("-", "")]
            elif isinstance(item, StreamError):
                out.append(f"[{item.code}|{item.message}|{item.retryable}]".encode())
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ends += 1
        return (b"end",)

    def idle(self) -> Sequence[bytes]:
        return (self.word,) if self.word else ()


@define
class Peer:
    """Both ends of a stream: brings its steps, which are bytes, waits in seconds and errors; notes what happens."""

    steps: list[Step]
    kind: str
    slow: float = 0.0
    """How long sending takes."""
    leaves_at: bytes | None = None
    """What cannot be sent any more."""
    log: list[str] = field(init=False, factory=list)
    sent: list[tuple[float, bytes]] = field(init=False, factory=list)
    closed: int = field(init=False, default=0)
    began: float = field(init=False, factory=anyio.current_time)
    _until: float | None = field(init=False, default=None)

    @property
    def source(self) -> Callable[[], Awaitable[bytes]] | AsyncIterable[bytes]:
        return self.receive if self.kind == "receive" else self.items()

    async def receive(self) -> bytes:
        self.log.append("read")
        await anyio.lowlevel.checkpoint()
        while self.steps:
            step = self.steps[0]
            if isinstance(step, float):
                self._until = self._until or anyio.current_time() + step
                await anyio.sleep_until(self._until)
                self._until = None
            del self.steps[0]
            if isinstance(step, bytes):
                return step
            if isinstance(step, Exception):
                raise step
        return b""

    async def items(self) -> AsyncIterator[bytes]:
        try:
            while self.steps:
                yield await self.receive()
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            self.closed += 1

    async def send(self, data: bytes) -> None:
        await anyio.sleep(self.slow)
        if data == self.leaves_at:
            raise anyio.BrokenResourceError
        self.log.append(data.decode())
        self.sent.append((anyio.current_time() - self.began, data))

    @property
    def text(self) -> str:
        return b"".join(data for _, data in self.sent).decode()


async def driven(
    peer: Peer, chain: Stage[bytes, bytes] | AsyncStage[bytes, bytes] | None = None, **more: Any
) -> Driven:
    """Drive a chain. What hangs fails, and an iterator that was begun must be closed."""
    try:
        with anyio.fail_after(1e6):
            return await drive(peer.source, Decoder() | Encoder() if chain is None else chain, peer.send, **more)
    finally:
        assert peer.closed == (peer.kind == "iterator" and "read" in peer.log)
