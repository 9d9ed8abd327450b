"""Two stages of one's own between a Chat upstream and a Messages client: `python -m examples.custom_stage`."""

import re
from collections.abc import AsyncIterator, Iterable

import anyio

from pipeline.dialect import dialect
from pipeline.drive import AsyncEventStage, drive
from pipeline.events import Event, TextDelta
from pipeline.stage import EventStage
from stages.recipe import default_halves


class MaskDigits(EventStage):
    """No digit is left in the text."""

    def on_event(self, event: Event) -> Iterable[Event]:
        return [TextDelta(event.index, re.sub(r"\d", "#", event.text))] if isinstance(event, TextDelta) else [event]


class Moderate(AsyncEventStage):
    """No text is passed on before somebody has looked at it."""

    async def on_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta) and not await is_harmless(event.text):
            return [TextDelta(event.index, "(withheld)")]
        return [event]


async def is_harmless(text: str) -> bool:
    await anyio.sleep(0.01)  # a service that takes its time
    return "dynamite" not in text


async def upstream() -> AsyncIterator[bytes]:
    for text in (b"Your PIN is 12", b"34. ", b"Bring dynamite", b" to gate 5."):
        yield b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % text
    yield b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def send(data: bytes) -> None:
    print(data.decode(), end="")


async def main() -> None:
    before, after = default_halves(dialect("chat"), dialect("messages"))
    await drive(upstream(), before | MaskDigits() | Moderate() | after, send)


if __name__ == "__main__":
    anyio.run(main)
