"""How many tokens a request holds, without asking anybody."""

from collections.abc import Iterable, Iterator

from pipeline.events import Usage
from pipeline.jsontext import dumps
from pipeline.request import (
    DocumentPart,
    FunctionTool,
    ImagePart,
    Part,
    RefusalPart,
    Request,
    ServerPart,
    ServerTool,
    TextPart,
    Tool,
    ToolResultPart,
    ToolUsePart,
)

CHARS_A_TOKEN = 4
"""English and code, roughly."""
TOKENS_AN_IMAGE = 1_500
TOKENS_A_DOCUMENT = 3_000
TOKENS_A_TURN = 4


def estimate(request: Request) -> Usage:
    """A request's tokens by its characters: right within a factor of two for most text, and no more than that.

    Echoed reasoning does not count: it is not sent up.
    """
    turns = (*request.system, *request.turns)
    parts = list(_flat(request.parts()))
    chars = sum(len(text) for part in parts for text in _said(part))
    chars += sum(len(text) for tool in request.tools for text in _told(tool))
    images = sum(isinstance(part, ImagePart) for part in parts)
    files = sum(isinstance(part, DocumentPart) and not isinstance(part.source, str | tuple) for part in parts)
    fixed = images * TOKENS_AN_IMAGE + files * TOKENS_A_DOCUMENT + len(turns) * TOKENS_A_TURN
    return Usage(input=fixed + chars // CHARS_A_TOKEN)


def _flat(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, and those inside them."""
    for part in parts:
        yield part
        if isinstance(part, ToolResultPart):
            yield from _flat(part.parts)
        elif isinstance(part, DocumentPart) and isinstance(part.source, tuple):
            yield from part.source


def _said(part: Part) -> Iterator[str]:
    """The texts of a part."""
    if isinstance(part, TextPart | RefusalPart | ServerPart):
        yield part.text
    elif isinstance(part, ToolUsePart):
        yield part.name
        yield part.arguments if isinstance(part.arguments, str) else dumps(dict(part.arguments)).decode()
    elif isinstance(part, DocumentPart):
        yield part.name + part.context
        if isinstance(part.source, str):
            yield part.source


def _told(tool: Tool) -> Iterator[str]:
    """What is told of a tool."""
    yield tool.name
    if isinstance(tool, ServerTool):
        return
    yield tool.description
    if isinstance(tool, FunctionTool):
        yield dumps(dict(tool.schema or {})).decode()
    elif tool.grammar is not None:
        yield tool.grammar.definition
