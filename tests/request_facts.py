"""What a request says, as far as more than one dialect can say it: for comparing it before and after a translation."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.ladder import Rule
from pipeline.request import (
    INSTRUCTING,
    Choosing,
    CustomTool,
    DocumentPart,
    FunctionTool,
    ImagePart,
    OutputKind,
    Part,
    RefusalPart,
    Request,
    Role,
    ServerPart,
    TextPart,
    ToolResultPart,
    ToolUsePart,
)
from pipeline.toolnames import RequestMap
from pipeline.turns import instruction

Facts = dict[str, Any]

PLAIN = ("max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "logit_bias")
ALWAYS = ("system", "said", "tools", "choice", "parallel", "stream", "output", "temperature", "top_p")
SAYS: Mapping[str, frozenset[str]] = {
    "messages": frozenset({*ALWAYS, "max_tokens", "stop", "top_k"}),
    "chat": frozenset({*ALWAYS, *PLAIN, "stop", "verbosity", "metadata", "cache_key", "store"}) - {"top_k"},
    "responses": frozenset({*ALWAYS, "max_tokens", "verbosity", "metadata", "cache_key"}),
}
"""The facts that each dialect can say."""


def facts(request: Request, names: RequestMap | None = None) -> Facts:
    """The facts of a request; `names` are those that its upstream was given."""
    names = names or RequestMap()
    first, turns = request.instructions()
    said: list[tuple[str, Facts]] = []
    for turn in turns:
        parts: Iterable[Part] = turn.parts
        role = "user" if turn.role is Role.USER else turn.role.value
        if turn.role in INSTRUCTING:
            role, parts = "user", (TextPart(instruction(_text(turn.parts))),)
        found = _said(parts, names)
        if not any(found.values()):
            continue
        if said and said[-1][0] == role:
            for name, value in found.items():
                said[-1][1][name] += value
        else:
            said.append((role, found))
    choice = request.tool_choice
    return {
        "system": _squeezed("".join(_text(turn.parts) for turn in first)),
        "said": said,
        "tools": [
            _tool(tool, names)
            for tool in request.tools
            if isinstance(tool, FunctionTool | CustomTool)
            and (choice is None or choice.allowed is None or (tool.namespace, tool.name) in choice.allowed)
        ],
        "choice": None
        if choice is None or choice.payload is not None or choice.mode is Choosing.AUTO
        else (choice.mode, names.tool(choice.name).name),
        "parallel": request.parallel,
        "stream": request.stream,
        "stop": request.stop,
        "output": None
        if request.output is None or request.output.kind is not OutputKind.SCHEMA
        else request.output.schema,
        "verbosity": request.verbosity,
        "metadata": request.metadata,
        "cache_key": request.cache_key,
        "store": request.store is True,
        **{name: getattr(request, name) for name in PLAIN},
    }


def _said(parts: Iterable[Part], names: RequestMap) -> Facts:
    parts = list(parts)
    return {
        "text": _squeezed(_text(parts)),
        "images": [part.source for part in parts if isinstance(part, ImagePart)],
        "documents": [part.source for part in parts if isinstance(part, DocumentPart)],
        "calls": [_call(part, names) for part in parts if isinstance(part, ToolUsePart)],
        "results": [
            (names.ids.get(part.id, part.id), _squeezed(_text(part.parts)), part.is_error)
            for part in parts
            if isinstance(part, ToolResultPart)
        ],
    }


def _call(part: ToolUsePart, names: RequestMap) -> tuple[str, str, Any]:
    arguments: Any = part.arguments
    if part.kind == "custom":
        arguments = {"input": arguments}
    elif isinstance(arguments, str):
        arguments = json.loads(arguments) if arguments.strip() else {}
    return names.ids.get(part.id, part.id), names.tool(part.name).name, arguments


def _tool(tool: FunctionTool | CustomTool, names: RequestMap) -> tuple[str, Any]:
    schema: Any = None
    if isinstance(tool, FunctionTool) and not names.tool(tool.name).wrapped:
        schema = {"type": "object", "properties": {}} if tool.schema is None else {**tool.schema, "type": "object"}
    return names.tool(tool.name).name, schema


def _text(parts: Iterable[Part]) -> str:
    texts = [
        part.text
        for part in parts
        if isinstance(part, TextPart | RefusalPart)
        or (isinstance(part, ServerPart) and part.loss.row.rule is Rule.DEGRADE)
    ]
    return "".join(texts)


def _squeezed(text: str) -> str:
    """Text without blanks: where pieces are joined differs from dialect to dialect."""
    return re.sub(r"\s+", "", text)
