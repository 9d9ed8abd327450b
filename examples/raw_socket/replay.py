"""The embedded upstream as an httpx transport: two recordings, paced, and no server at all."""

from collections.abc import AsyncIterator

import anyio
import httpx
from attrs import define, field

from examples.gateway.recordings import frames, recording_for
from pipeline.jsontext import loads

URL = "http://replay/v1"


@define
class ReplayTransport(httpx.AsyncBaseTransport):
    """Answers a Chat request: with two tool calls, or, if the request brings tool results, with them."""

    pace: float = 0.03
    """Seconds between two frames."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer; the frames follow while it is read."""
        if not request.url.path.endswith("/chat/completions"):
            return httpx.Response(404)
        recording = recording_for(loads(await request.aread()))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Paced(recording, self.pace))


@define
class Paced(httpx.AsyncByteStream):
    """A recording, frame by frame."""

    recording: bytes = field(repr=False)
    pace: float

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for frame in frames(self.recording):
            yield frame
            await anyio.sleep(self.pace)
