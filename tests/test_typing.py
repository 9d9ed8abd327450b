"""A wrongly wired chain does not type-check; a rightly wired one does."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parent.parent

SETUP = """
from collections.abc import AsyncIterator, Iterable

from pipeline.drive import AsyncEventStage, drive, through
from pipeline.events import Event, Frame
from pipeline.stage import AsyncStage, EventStage, Stage
from stages.sse import SSEDecoder, SSEEncoder


class Mine(EventStage):
    def on_event(self, event: Event) -> Iterable[Event]:
        return (event,)


class Slow(AsyncEventStage):
    async def on_event(self, event: Event) -> Iterable[Event]:
        return (event,)


class Wire:
    normalizer: Stage[Frame, Event]
    encoder: Stage[Event, Frame]
    slow: AsyncStage[Frame, Frame]
    frames: AsyncIterator[Frame]

    async def receive(self) -> bytes:
        return b""

    async def send(self, data: bytes) -> None: ...
"""

RIGHT = {
    "sync": "chain: Stage[bytes, bytes] = SSEDecoder() | w.normalizer | Mine() | w.encoder | SSEEncoder()",
    "grouped": "chain: Stage[bytes, bytes] = (SSEDecoder() | w.normalizer) | (Mine() | (w.encoder | SSEEncoder()))",
    "async": "chain: AsyncStage[bytes, Frame] = SSEDecoder() | w.slow | w.normalizer | Slow() | w.encoder",
    "two hops": "chain: Stage[Event, Event] = w.encoder | SSEEncoder() | SSEDecoder() | w.normalizer",
    "drive": "await drive(w.receive, SSEDecoder() | w.normalizer | Slow() | w.encoder | SSEEncoder(), w.send)",
    "through": "events: AsyncIterator[Event] = through(w.frames, w.normalizer | Mine())",
}

WRONG = {
    "frames after frames": ("SSEDecoder() | SSEDecoder()", "SSEDecoder", "SSEDecoder"),
    "bytes after bytes": ("SSEEncoder() | SSEEncoder()", "SSEEncoder", "SSEEncoder"),
    "events after frames": ("SSEDecoder() | Mine()", "SSEDecoder", "Mine"),
    "events after bytes": ("w.encoder | SSEEncoder() | Mine()", "Stage[Event, bytes]", "Mine"),
    "async events after bytes": ("SSEEncoder() | Slow()", "SSEEncoder", "Slow"),
    "async frames after events": ("w.normalizer | w.slow", "Stage[Frame, Event]", "AsyncStage[Frame, Frame]"),
    "frames after async events": ("Slow() | SSEEncoder()", "Slow", "SSEEncoder"),
    "events after async frames": ("w.slow | Mine()", "AsyncStage[Frame, Frame]", "Mine"),
    "async events after async frames": ("w.slow | Slow()", "AsyncStage[Frame, Frame]", "Slow"),
    "behind a pipeline": ("w.slow | w.normalizer | w.slow", "AsyncStage[Frame, Event]", "AsyncStage[Frame, Frame]"),
    "in the middle": ("SSEDecoder() | w.normalizer | SSEEncoder() | SSEDecoder()", "Stage[bytes, Event]", "SSEEncoder"),
    "within a group": ("SSEDecoder() | (w.normalizer | (Mine() | SSEEncoder()))", "Mine", "SSEEncoder"),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy says of each line, by the name of the line."""
    lines = {**RIGHT, **{name: line for name, (line, _, _) in WRONG.items()}}
    body = [f"async def wire_{at}(w: Wire) -> None:\n    {line}\n" for at, line in enumerate(lines.values())]
    source = tmp_path_factory.mktemp("wiring") / "wiring.py"
    source.write_text(f"{SETUP}\n\n" + "\n\n".join(body))
    offsets = {line: name for name, line in lines.items()}
    numbered = source.read_text().splitlines()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        shown, failed, _ = api.run(["--strict", "--no-error-summary", "--hide-error-context", str(source)])
    assert not failed, failed
    found: dict[str, str] = {}
    for number, message in re.findall(r"wiring\.py:(\d+): error: (.*)", shown):
        name = offsets.get(numbered[int(number) - 1].strip(), f"line {number}")
        found[name] = found.get(name, "") + message
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_a_rightly_wired_chain_type_checks(errors: dict[str, str], name: str) -> None:
    assert errors.get(name, "") == ""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrongly_wired_chain_is_refused_where_it_is_joined(errors: dict[str, str], name: str) -> None:
    _, before, after = WRONG[name]
    assert errors.get(name) == f'Unsupported operand types for | ("{before}" and "{after}")  [operator]'
