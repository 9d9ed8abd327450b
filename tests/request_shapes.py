"""Small canonical requests, and the three dialects' parse and build by name."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.ledger import Ledger
from pipeline.request import Part, Request, RequestOptions, Role, TextPart, ToolUsePart, Turn
from pipeline.toolnames import BuiltRequest
from stages.dialects.chat import request as chat
from stages.dialects.messages import request as messages
from stages.dialects.responses import request as responses

JSON = dict[str, Any]

PARSES: Mapping[str, Callable[..., Request]] = {
    "messages": messages.parse,
    "chat": chat.parse,
    "responses": responses.parse,
}
BUILDS: Mapping[str, Callable[..., BuiltRequest]] = {
    "messages": messages.build,
    "chat": chat.build,
    "responses": responses.build,
}

GO = Turn(Role.USER, (TextPart("go"),))
AT = "messages[0].content[0]"
CALL = ToolUsePart("1", "f", {}, where=AT)
SCHEMA = {"type": "object", "properties": {"b": {}, "a": {}}}
CLOSED = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": False}
"""A schema that every strict mode takes."""

NAMESPACES = [
    {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [
            {"type": "custom", "name": "exec", "format": {"type": "grammar", "syntax": "lark", "definition": "g"}}
        ],
    },
    {
        "type": "namespace",
        "name": "clock",
        "description": "Time.",
        "tools": [
            {"type": "function", "name": "sleep", "parameters": SCHEMA, "strict": False},
            {"type": "function", "name": "now", "parameters": SCHEMA, "strict": False},
        ],
    },
]

"""Tools in namespaces, as one client of Responses sends them."""


def others(dialect: str) -> dict[str, Callable[..., BuiltRequest]]:
    """How the other dialects build."""
    return {name: build for name, build in BUILDS.items() if name != dialect}


def user(*parts: Part) -> Turn:
    """A user's turn."""
    return Turn(Role.USER, parts, where="messages[0]")


def assistant(*parts: Part) -> Turn:
    """An assistant's turn."""
    return Turn(Role.ASSISTANT, parts, where="messages[0]")


def request(*turns: Turn, **members: Any) -> Request:
    """A request of a dialect that is none of ours."""
    return Request(**{"dialect": "elsewhere", "model": "m", "turns": turns or (GO,), **members})


def written(dialect: str, given: Request, **options: Any) -> JSON:
    """The body that a dialect builds."""
    return BUILDS[dialect](given, ledger=Ledger(direction="request"), options=RequestOptions(**options)).body


def read(dialect: str, body: Mapping[str, Any]) -> Request:
    """What a dialect reads."""
    return PARSES[dialect](body, ledger=Ledger(direction="request"))
