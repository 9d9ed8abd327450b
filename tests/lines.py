"""Small stages of lines and texts, for tests of the tools that run stages."""

from collections.abc import Iterable, Sequence

import anyio.lowlevel
from attrs import define, field

from pipeline.drive import AsyncEventStage
from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import Event, Frame, MessageStop, StreamError, TextDelta
from pipeline.stage import EventStage, Stage


@define
class Lines(Stage[bytes, Frame]):
    """A frame a line; the last one needs no line end. A line of `!` breaks it."""

    held: int = field(default=0, init=False)
    rest: bytes = field(default=b"", init=False)

    def receive(self, items: Sequence[bytes]) -> Sequence[Frame]:
        out: list[Frame] = []
        for item in items:
            *lines, self.rest = (self.rest + item).split(b"\n")
            for line in lines:
                if line == b"!":
                    self.rest, self.held = b"", 0
                    raise LimitExceeded("a line\nof !").after(out)
                out.append(Frame(line))
        self.held = len(self.rest)
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        rest, self.rest, self.held = self.rest, b"", 0
        return [Frame(rest)] if rest else []


@define
class Texts(Stage[Frame, Event]):
    """A text a frame; a frame `.` ends the message."""

    ended: bool = field(default=False, init=False)

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        out: list[Event] = []
        for item in items:
            if item.data == b"?":
                raise UpstreamError("a ? came").after(out)
            if not self.ended:
                self.ended = item.data == b"."
                out.append(MessageStop() if self.ended else TextDelta(0, item.data.decode()))
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        return () if cause is None else (cause,)


class Upper(EventStage):
    """Louder texts."""

    def on_event(self, event: Event) -> Iterable[Event]:
        return (TextDelta(event.index, event.text.upper()),) if isinstance(event, TextDelta) else (event,)


class AsyncUpper(AsyncEventStage):
    """Louder texts, after a while."""

    async def on_event(self, event: Event) -> Iterable[Event]:
        await anyio.lowlevel.checkpoint()
        return (TextDelta(event.index, event.text.upper()),) if isinstance(event, TextDelta) else (event,)
