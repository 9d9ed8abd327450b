"""`python -m tests.markup_upstream PORT`: a Chat server whose model writes its reasoning and its calls as text.

It does one task: told to read a file and tell the NUMBER in it, it calls a tool that the client offers, and answers
with the number that the tool's result holds. All of it stands in the content, token by token, and no answer says that
tools are to be called: so writes a server that has no parser for its model's markup.
"""

import asyncio
import json
import re
import sys
from collections.abc import Collection, Iterator
from typing import Any

from aiohttp import web

from tests.support import DONE, finish, sse, text

Request = dict[str, Any]

THOUGHT = "The number stands in the file."
BEFORE = "I will read the file."
KNOWN = "Now I know it."
PACE = 0.002
"""Seconds between two tokens."""

_FILE = re.compile(r"Read the file (\S+)")
_NUMBER = re.compile(r"NUMBER=(\d+)")
_TOKEN = re.compile(r"\w{1,5}|\W")


def call(path: str, offered: Collection[str]) -> str:
    """The markup of a call that reads a file with one of the tools that are offered."""
    command = {"command": f"cat {path}", "description": "Read the file"}
    name, arguments = ("Read", {"file_path": path}) if "Read" in offered else ("Bash", command)
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def final(number: str) -> str:
    """The answer to the task."""
    return f"The number is {number}. FINAL-ANSWER-MARK"


def said(request: Request) -> str:
    """What the model writes."""
    offered = {tool["function"]["name"] for tool in request.get("tools", ()) if tool["type"] == "function"}
    results = [words(message) for message in request["messages"] if message["role"] == "tool"]
    if number := _NUMBER.search("\n".join(results)):
        return f"<think>\n{KNOWN}\n</think>\n\n{final(number[1])}"
    asked = _FILE.search("\n".join(map(words, request["messages"])))
    if asked and offered & {"Read", "Bash"}:
        return f"<think>\n{THOUGHT}\n</think>\n\n{BEFORE}\n{call(asked[1], offered)}"
    return "A title"


def words(message: Request) -> str:
    """The text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def answer(request: Request) -> Iterator[bytes]:
    """The events of an answer."""
    for token in _TOKEN.findall(said(request)):
        yield sse(text(token))
    yield sse(finish("stop"), DONE)


async def _answered(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    if not asked.get("stream"):
        message = {"role": "assistant", "content": said(asked)}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in answer(asked):
        await response.write(event)
        await asyncio.sleep(PACE)
    return response


def main(port: int) -> None:
    """Serve until interrupted."""
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", _answered)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
