"""How many tokens a request holds, without asking anybody."""

from collections.abc import Iterable
from typing import Any

from pipeline.events import Usage
from pipeline.jsontext import dumps
from pipeline.request import DocumentPart, FunctionTool, ImagePart, Request, TextPart, ToolResultPart, ToolUsePart

CHARS_A_TOKEN = 4
"""English and code, roughly."""
TOKENS_AN_IMAGE = 1_500
TOKENS_A_TURN = 4


def estimate(request: Request) -> Usage:
    """A request's tokens by its characters: right within a factor of two for most text, and no more than that."""
    chars = sum(map(_chars, request.parts()))
    for tool in request.tools:
        if isinstance(tool, FunctionTool):
            chars += len(tool.name) + len(tool.description or "") + len(dumps(dict(tool.schema or {})))
    images = sum(isinstance(part, ImagePart) for part in _all(request.parts()))
    turns = len(request.system) + len(request.turns)
    return Usage(input=max(1, chars // CHARS_A_TOKEN + images * TOKENS_AN_IMAGE + turns * TOKENS_A_TURN))


def _chars(part: Any) -> int:
    if isinstance(part, ToolResultPart):
        return sum(map(_chars, part.parts))
    if isinstance(part, ToolUsePart):
        return len(part.name) + len(part.arguments if isinstance(part.arguments, str) else dumps(part.arguments))
    if isinstance(part, DocumentPart):
        return len(part.source) if isinstance(part.source, str) else 0
    return len(part.text) if isinstance(part, TextPart) else 0


def _all(parts: Iterable[Any]) -> Iterable[Any]:
    for part in parts:
        yield part
        if isinstance(part, ToolResultPart):
            yield from part.parts
