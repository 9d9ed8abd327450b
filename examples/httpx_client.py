"""A Chat stream read with httpx and httpx-sse, printed as blocks in order: one at a time, every call in one piece.

python -m examples.httpx_client [BASE_URL [MODEL [PROMPT]]]; a key, if the server wants one, stands in OPENAI_API_KEY.
"""

import asyncio
import os
import sys

import httpx
from httpx_sse import ServerSentEvent, aconnect_sse

from pipeline.dialect import RequestFacts, dialect
from pipeline.drive import through
from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, Event, StreamError, TextDelta, ToolUseBlock
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.stage import Stage
from stages.httpx_events import ServerSentEvents
from stages.interleave import InterleaveBuffer
from stages.validate import BlockValidator


def blocks(model: str) -> Stage[ServerSentEvent, Event]:
    """Fresh stages for one answer."""
    ledger = Ledger()
    normalizer = dialect("chat").normalizer(facts=RequestFacts(model=model), ledger=ledger, limits=DEFAULT_LIMITS)
    return ServerSentEvents() | normalizer | InterleaveBuffer(ledger=ledger) | BlockValidator(ledger=ledger)


def shown(event: Event) -> str:
    """What is printed of an event."""
    match event:
        case BlockStart(block=ToolUseBlock(name=name)):
            return f"call {name} "
        case TextDelta(text=text) | ArgumentsDelta(text=text):
            return text
        case BlockStop():
            return "\n"
        case StreamError(message=message):
            return f"\nfailed: {message}\n"
    return ""


async def main(base_url: str = "http://127.0.0.1:8000/v1", model: str = "default", prompt: str = "Hello!") -> int:
    """Ask once, and print the answer as it comes; 1 if it failed."""
    request = {"model": model, "stream": True, "messages": [{"role": "user", "content": prompt}]}
    key = os.environ.get("OPENAI_API_KEY", "none")
    async with (
        httpx.AsyncClient(base_url=base_url, headers={"authorization": f"Bearer {key}"}, timeout=300) as client,
        aconnect_sse(client, "POST", "chat/completions", json=request) as answer,
    ):
        answer.response.raise_for_status()
        async for event in through(answer.aiter_sse(), blocks(model)):
            print(shown(event), end="", flush=True)
    return int(isinstance(event, StreamError))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:4])))
