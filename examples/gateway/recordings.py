"""What the embedded upstreams play: two recordings of a Chat server, so that a host runs with nothing set up."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.jsontext import dumps

FIXTURES = Path(__file__).parents[2] / "fixtures" / "demo"
RESULT = b"{result}"
"""Where the second recording names what the tools said."""


def recording_for(request: Mapping[str, Any]) -> bytes:
    """The first turn, or, if the request brings tool results, the second with them in it."""
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
