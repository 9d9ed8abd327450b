"""The embedded upstream: a Chat server that plays two recordings, paced, so that the proxy runs with nothing set up."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from attrs import define, field

from pipeline.jsontext import dumps
from pipeline.limits import DEFAULT_LIMITS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "demo"
RESULT = b"{result}"
"""Where the second recording names what the tools said."""


@define
class ReplayUpstream:
    """Answers `POST /v1/chat/completions`: with two tool calls, or, if the request brings tool results, with them."""

    pace: float = 0.03
    """Seconds between two frames."""
    left: asyncio.Event = field(factory=asyncio.Event, init=False)
    """Somebody left before the end."""

    def application(self) -> web.Application:
        """The server, for one port."""
        application = web.Application(client_max_size=2 * DEFAULT_LIMITS.request_bytes)
        application.router.add_post("/v1/chat/completions", self._complete)
        return application

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        recording = recording_for(await request.json())
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        try:
            await response.prepare(request)
            for frame in frames(recording):
                await response.write(frame)
                await asyncio.sleep(self.pace)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise
        return response


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
            results.append(message["content"])
        elif message["role"] == "assistant":
            results.clear()
    return results
