"""Reading the blocks of a Messages request."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from pipeline.errors import ClientError
from pipeline.jsontext import dumps
from pipeline.ladder import Loss, Reading, Row, Rule
from pipeline.limits import Limits
from pipeline.members import Members
from pipeline.request import (
    CacheHint,
    DocumentPart,
    ImagePart,
    Inline,
    Part,
    ReasoningPart,
    Remote,
    ResultPart,
    ServerPart,
    Source,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
)
from stages.dialects.messages.request_tables import BLOCK_OWN, ROW_OF_BLOCK

_SOURCES = ("base64", "url", "file")
_OF_SOURCE = {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)}
_DOCUMENT_SOURCES = (*_SOURCES, "text", "content")


def content(members: Members, reading: Reading, limits: Limits, name: str = "content") -> tuple[Part, ...]:
    """The parts of a message's content: a string, or blocks."""
    found = members.value.get(name)
    if isinstance(found, str):
        return (TextPart(found, where=members.path(name)),)
    return tuple(block(item, reading, limits) for item in members.objects(name))


def block(members: Members, reading: Reading, limits: Limits) -> Part:
    """The part that a block is; one that nobody here knows is kept whole.

    Raises `ClientError` naming the member that is not as it must be.
    """
    kind = members.need("type")
    if (read := _READERS.get(kind)) is not None:
        return read(members, reading, limits)
    row = ROW_OF_BLOCK.get(kind)
    if row is None:
        loss = Loss(
            members.path("type"), evolve(reading.rows["block of unknown type"], reason=f"unknown block {kind!r}")
        )
        return ServerPart(members.value, loss, where=members.where)
    if kind in _SHOWN:
        reading.within(members, "type", "cache_control", *_SHOWN[kind])
        _within(kind, members, reading)
    return ServerPart(members.value, reading.loss(row, members.where), _shown(kind, members), where=members.where)


def cache(members: Members, reading: Reading) -> CacheHint | None:
    """The cache hint of a block, a tool or the body."""
    found = members.object("cache_control")
    reading.within(found, "type", "ttl")
    return None if found is None else CacheHint(found.text("ttl"), found.where)


def _text(members: Members, reading: Reading, limits: Limits) -> TextPart:
    text = members.given("text")
    rest = reading.rest(members, ("type", "text", "cache_control"), BLOCK_OWN)
    return TextPart(text, cache=cache(members, reading), **rest)


def _image(members: Members, reading: Reading, limits: Limits) -> ImagePart | ServerPart:
    rest = reading.rest(members, ("type", "source", "cache_control"), BLOCK_OWN)
    source = members.object("source")
    if source is None:
        raise ClientError.about(members.path("source"), "is required")
    if source.need("type") not in _SOURCES:
        return _unknown(members, source, _SOURCES)
    return ImagePart(_source(source, reading), cache=cache(members, reading), **rest)


def _document(members: Members, reading: Reading, limits: Limits) -> DocumentPart | ServerPart:
    rest = reading.rest(members, ("type", "source", "title", "context", "citations", "cache_control"), {})
    source = members.object("source")
    if source is None:
        raise ClientError.about(members.path("source"), "is required")
    if source.need("type") not in _DOCUMENT_SOURCES:
        return _unknown(members, source, _DOCUMENT_SOURCES)
    citations = members.object("citations")
    reading.within(citations, "enabled")
    return DocumentPart(
        _document_source(source, reading, limits),
        members.text("title"),
        members.text("context"),
        citations is not None and citations.flag("enabled") is True,
        cache=cache(members, reading),
        **rest,
    )


def _document_source(source: Members, reading: Reading, limits: Limits) -> Source | str | tuple[ResultPart, ...]:
    kind = source.need("type")
    if kind == "text":
        reading.within(source, "type", "media_type", "data")
        return source.text("data")
    if kind == "content":
        reading.within(source, "type", "content")
        return _held(source, reading, limits, "a document")
    return _source(source, reading)


def _source(source: Members, reading: Reading) -> Source:
    kind = source.need("type")
    reading.within(source, "type", *_OF_SOURCE[kind])
    if kind == "base64":
        return Inline(source.need("media_type"), source.text("data"))
    return Remote(source.need("url")) if kind == "url" else Stored(source.need("file_id"))


def _unknown(members: Members, source: Members, known: tuple[str, ...]) -> ServerPart:
    """A block whose source nobody here knows: it is kept whole."""
    row = Row("source of unknown type", Rule.REFUSE, reason=f"unknown source, must be one of {', '.join(known)}")
    return ServerPart(members.value, Loss(source.path("type"), row), where=members.where)


def _thinking(members: Members, reading: Reading, limits: Limits) -> ReasoningPart:
    rest = reading.rest(members, ("type", "thinking", "signature"), {})
    return ReasoningPart(members.text("thinking"), members.text("signature"), **rest)


def _redacted(members: Members, reading: Reading, limits: Limits) -> ReasoningPart:
    rest = reading.rest(members, ("type", "data"), {})
    return ReasoningPart("", members.text("data"), True, **rest)


def _tool_use(members: Members, reading: Reading, limits: Limits) -> ToolUsePart:
    rest = reading.rest(members, ("type", "id", "name", "input", "cache_control"), BLOCK_OWN)
    given = members.value.get("input")
    if given is not None and not isinstance(given, Mapping):
        raise ClientError.about(members.path("input"), "must be an object")
    return ToolUsePart(
        members.call_id("id", limits),
        members.need("name"),
        {} if given is None else given,
        cache=cache(members, reading),
        **rest,
    )


def _tool_result(members: Members, reading: Reading, limits: Limits) -> ToolResultPart:
    rest = reading.rest(members, ("type", "tool_use_id", "content", "is_error", "cache_control"), BLOCK_OWN)
    return ToolResultPart(
        members.call_id("tool_use_id", limits),
        _found(members, reading, limits),
        members.flag("is_error") is True,
        cache=cache(members, reading),
        **rest,
    )


def _found(members: Members, reading: Reading, limits: Limits) -> tuple[ResultPart, ...]:
    """The parts of a result; JSON that is none of this dialect's is its text."""
    given = members.parts("content")
    if isinstance(given, str):
        return (TextPart(given, where=members.path("content")),)
    return _held(members, reading, limits, "a tool's result")


def _held(members: Members, reading: Reading, limits: Limits, holder: str) -> tuple[ResultPart, ...]:
    """The parts of what holds neither turns nor calls."""
    parts: list[ResultPart] = []
    for part in content(members, reading, limits):
        if not isinstance(part, ResultPart):
            raise ClientError.about(f"{part.where}.type", f"cannot stand in {holder}")
        parts.append(part)
    return tuple(parts)


def _shown(kind: str, members: Members) -> str:
    """What a block that only this dialect has reads as elsewhere."""
    if kind == "search_result":
        text = "\n".join(item.text("text") for item in members.objects("content"))
        return f"{members.text('title')}\n{members.text('source')}\n\n{text}".strip()
    if kind == "tool_reference":
        return f"The tool {members.text('tool_name')} is loaded."
    if kind == "browser_state":
        return f"[browser: {dumps(members.value.get('tabs')).decode()}]"
    if kind == "container_upload":
        return "[a file was uploaded for a tool that is not available]"
    if kind == "compaction":
        return members.text("content")
    return ""


def _within(kind: str, members: Members, reading: Reading) -> None:
    """What nobody here knows of the objects within a block of which only a text is shown."""
    cache(members, reading)
    if kind == "search_result":
        for item in members.objects("content"):
            reading.within(item, "type", "text", "cache_control")
            cache(item, reading)
        reading.within(members.object("citations"), "enabled")


_SHOWN: Mapping[str, tuple[str, ...]] = {
    "search_result": ("source", "title", "content", "citations"),
    "tool_reference": ("tool_name",),
    "browser_state": ("tabs", "state_changes"),
    "container_upload": ("file_id",),
    "compaction": ("content", "encrypted_content"),
}
"""What we know of a block that is shown as text."""

_READERS: Mapping[str, Callable[[Members, Reading, Limits], Part]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}


def tool_of_addition(payload: Mapping[str, Any]) -> Any:
    """The definition of a tool that a block adds to those offered; None if it only names one."""
    tool = payload.get("tool")
    return tool.get("definition") if isinstance(tool, Mapping) and tool.get("type") == "tool_definition" else None
