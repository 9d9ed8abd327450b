"""The loopback upstream: replays a fixture, a frame a write. The key or the model's name says which."""

import json
import re
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any

from attrs import define, field

FRAME = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r)", re.DOTALL)
ENDINGS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
"""How the path ends that a dialect is asked at."""


def frames_of(recording: bytes) -> list[bytes]:
    """A recording in pieces of one frame."""
    frames = FRAME.findall(recording)
    rest = recording[sum(map(len, frames)) :]
    return [*frames, rest] if rest else frames


def media_type(recording: bytes) -> str:
    """What a server says that it is sending."""
    return {b"{": "application/json", b"<": "text/html"}.get(recording.lstrip()[:1], "text/event-stream")


class Server(ThreadingHTTPServer):
    """One thread a connection; a client that leaves is no news."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@define
class Upstream:
    """A server for as long as it is entered; `recordings` are by name: the dialect and the bytes."""

    recordings: Mapping[str, tuple[str, bytes]]
    server: Server = field(init=False)

    def __enter__(self) -> "Upstream":
        recordings = self.recordings

        class Handler(Replay):
            known = recordings

        self.server = Server(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"


class Replay(BaseHTTPRequestHandler):
    """Answers one request with the recording of its model."""

    protocol_version = "HTTP/1.1"
    known: Mapping[str, tuple[str, bytes]] = {}

    def do_POST(self) -> None:
        """Write the recording in chunks of a frame; at another dialect's path there is nothing."""
        asked: Any = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        name = key if key in self.known else str(asked.get("model"))
        dialect, recording = self.known.get(name, ("", b""))
        if not dialect or not self.path.partition("?")[0].endswith(ENDINGS[dialect]):
            self.send_error(404, f"{self.path} of {name}")
            return
        self.send_response(200)
        self.send_header("content-type", media_type(recording))
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames_of(recording):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        """A list of no models, for those who ask before they start."""
        body = b'{"object":"list","data":[]}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the library's name
        """Say nothing."""
