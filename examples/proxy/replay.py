"""The embedded upstream: a Chat server that plays two recordings, paced, so that the proxy runs with nothing set up."""

import asyncio

from aiohttp import web
from attrs import define, field

from examples.gateway.recordings import frames, recording_for
from pipeline.limits import DEFAULT_LIMITS


@define
class ReplayUpstream:
    """Answers `POST /v1/chat/completions`: with two tool calls, or, if the request brings tool results, with them.

    It streams also where a whole answer is asked for, as some servers do.
    """

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
