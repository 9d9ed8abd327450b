"""The embedded upstream: two recordings of a Chat server, paced, so that a host runs with nothing set up."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
from attrs import define, frozen

from examples.gateway.relay import UpstreamReply
from pipeline.jsontext import dumps, loads
from pipeline.route import UpstreamRequest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "demo"
PACE = 0.03
"""Seconds between two frames."""
RESULT = b"{result}"
"""Where the second recording names what the tools said."""
STREAM = {"content-type": "text/event-stream"}


@frozen
class ReplayUpstream:
    """Answers a Chat request: with two tool calls, or, if the request brings tool results, with them.

    It streams also where a whole answer is asked for, as some servers do. It has no list of models.
    """

    lost: ClassVar[tuple[type[Exception], ...]] = ()

    pace: float = PACE

    @asynccontextmanager
    async def ask(self, request: UpstreamRequest) -> AsyncIterator[UpstreamReply]:
        """The head of the answer; a frame follows whenever one is read."""
        if request.path == "chat/completions":
            yield UpstreamReply(200, STREAM, Paced(frames(recording_for(loads(request.body))), self.pace).receive)
        else:
            yield UpstreamReply(404, {}, Paced(iter(()), 0).receive)


@define
class Paced:
    """Frames, one a read."""

    frames: Iterator[bytes]
    pace: float

    async def receive(self) -> bytes:
        """The next one; nothing at the end."""
        await anyio.sleep(self.pace)
        return next(self.frames, b"")


def recording_for(request: Mapping[str, Any]) -> bytes:
    """The first turn, or the second with the tools' results in it."""
    if results := _results(request["messages"]):
        text = dumps("; ".join(results))[1:-1]
        return (FIXTURES / "second.sse").read_bytes().replace(RESULT, text)
    return (FIXTURES / "first.sse").read_bytes()


def frames(recording: bytes) -> Iterator[bytes]:
    """The recording cut behind each blank line."""
    for frame in recording.split(b"\n\n")[:-1]:
        yield frame + b"\n\n"


def _results(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the tools said since the assistant's last turn."""
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(str(message["content"]))
        elif message["role"] == "assistant":
            results.clear()
    return results
