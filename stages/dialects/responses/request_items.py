"""Writing the input items of a Responses request."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pipeline import envelope
from pipeline.events import ToolKind
from pipeline.jsontext import dumps, value_of
from pipeline.ladder import Ladder, Rule
from pipeline.media import to_url
from pipeline.request import (
    INSTRUCTING,
    AudioPart,
    DocumentPart,
    ImagePart,
    Inline,
    Node,
    Part,
    ReasoningPart,
    RefusalPart,
    Remote,
    RequestOptions,
    Role,
    ServerPart,
    Source,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import OfferedTool, ToolNames, UpstreamIds
from pipeline.turns import ERROR_PREFIX, document_text, nodes_of, only_text
from stages.dialects.responses.opaque import OURS

JSON = dict[str, Any]


@frozen
class ItemWriter:
    """Writes turns as input items; `native`: the request came in this dialect, so what is private goes back."""

    ladder: Ladder
    names: ToolNames
    ids: UpstreamIds
    options: RequestOptions
    native: bool
    kinds: Mapping[str, ToolKind]
    """What the calls of the conversation are, by id."""

    def items(self, turns: Iterable[Turn]) -> list[JSON]:
        """The items for the turns."""
        out: list[JSON] = []
        for turn in turns:
            self._unnamed(turn)
            if turn.role is Role.ASSISTANT:
                out.extend(self._assistant(turn, len(out)))
            else:
                out.extend(self._speaker(turn))
        return out

    def instructions(self, turn: Turn) -> str:
        """The text of a turn that instructs before everything."""
        self._unnamed(turn)
        self._uncached(turn)
        text = "\n\n".join(part["text"] for part in self._parts(only_text(turn.parts, self.ladder)) if part["text"])
        self.ladder.one_text(part.where for part in nodes_of(turn.parts))
        return text

    def own(self, node: Node, written: JSON) -> JSON:
        """`written`, and what its piece of the request keeps besides."""
        self._uncached(node)
        if node.extras:
            self.ladder.carry(node.where)
        private = {name: value for name, value in node.private.items() if name != "item"} if self.native else {}
        private.pop("is_item", None)
        return {**private, **node.extras, **written}

    def _uncached(self, node: Node) -> None:
        if node.cache is not None and not self.native:
            self.ladder.lose("part cache", node.cache.where)

    def _unnamed(self, turn: Turn) -> None:
        if turn.name:
            self.ladder.lose("turns.name", f"{turn.where}.name")

    def _speaker(self, turn: Turn) -> Iterator[JSON]:
        """The items of a turn that is not the assistant's: results first, then what it says."""
        rest: list[Part] = []
        for part in turn.parts:
            if isinstance(part, ToolResultPart):
                yield self._result(part)
            elif isinstance(part, ServerPart) and self._is_item(part):
                yield dict(part.payload)
            else:
                rest.append(part)
        role = "system" if turn.role is Role.SYSTEM else turn.role.value
        texts = turn.role in INSTRUCTING and not self.native
        content = list(self._parts(only_text(rest, self.ladder) if texts else rest))
        if content:
            yield self.own(turn, {"type": "message", "role": role, "content": content})

    def _result(self, result: ToolResultPart) -> JSON:
        content = list(self._parts(result.parts))
        if result.is_error:
            self.ladder.lose("part is_error", f"{result.where}.is_error")
            content = _marked(content)
        custom = self.kinds.get(result.id, result.kind) is ToolKind.CUSTOM
        return self.own(
            result,
            {
                "type": "custom_tool_call_output" if custom else "function_call_output",
                "call_id": self.ids.id(result.id),
                "output": _output(content),
            },
        )

    def _parts(self, parts: Iterable[Part]) -> Iterator[JSON]:
        """The content parts of a message that is not the assistant's."""
        for part in parts:
            if isinstance(part, TextPart | RefusalPart):
                yield self.own(part, {"type": "input_text", "text": part.text})
            elif isinstance(part, ImagePart):
                yield self._image(part)
            elif isinstance(part, DocumentPart):
                yield from self._document(part)
            elif isinstance(part, AudioPart):
                yield self._audio(part)
            elif isinstance(part, ServerPart):
                yield from self._server(part, "input_text")
            else:
                row = "part reasoning" if isinstance(part, ReasoningPart) else "part out of place"
                self.ladder.lose(row, part.where)

    def _server(self, part: ServerPart, kind: str) -> Iterator[JSON]:
        if self.native:
            yield dict(part.payload)
        elif self.ladder.follow(part.loss.row, part.loss.where) is Rule.DEGRADE and part.text:
            yield {"type": kind, "text": part.text}

    def _audio(self, part: AudioPart) -> JSON:
        if not self.native:
            self.ladder.lose("part audio", part.where)
        return self.own(part, {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}})

    def _image(self, part: ImagePart) -> JSON:
        image: JSON = {"type": "input_image", "detail": part.detail or "auto"}
        image.update(self._source(part.source, "image_url", "part image stored", part.where))
        return self.own(part, image)

    def _document(self, part: DocumentPart) -> Iterator[JSON]:
        if part.citations:
            self.ladder.lose("part document citations", f"{part.where}.citations")
        source = part.source
        if isinstance(source, str | tuple):
            self.ladder.lose("part document text", part.where)
            if text := document_text(part):
                yield self.own(part, {"type": "input_text", "text": text})
            if isinstance(source, tuple):
                yield from self._parts(source)
            return
        if part.context:
            yield {"type": "input_text", "text": part.context}
        file: JSON = {"type": "input_file"}
        if isinstance(source, Remote):
            file["file_url"] = source.url
        else:
            file.update(self._source(source, "file_data", "part document stored", part.where))
        if part.name or isinstance(source, Inline):
            file["filename"] = part.name or "document.pdf"
        yield self.own(part, file)

    def _source(self, source: Source, member: str, row: str, where: str) -> JSON:
        if not isinstance(source, Stored):
            return {member: to_url(source)}
        if not self.native:
            self.ladder.lose(row, where)
        return {"file_id": source.id}

    def _assistant(self, turn: Turn, before: int) -> list[JSON]:
        out: list[JSON] = []
        said: list[JSON] = []
        item: object = None
        for part in (*turn.parts, None):
            reasoned = list(self._reasoning(part)) if isinstance(part, ReasoningPart) else []
            if isinstance(part, ReasoningPart) and not reasoned:
                continue  # what it parted is together
            mine = part.private.get("item") if part is not None else None
            if said and (not self._is_said(part) or mine is not item):
                out.append(self._message(said, item, before + len(out)))
                said = []
            item = mine
            if isinstance(part, TextPart):
                said.append({"annotations": [], **self.own(part, {"type": "output_text", "text": part.text})})
            elif isinstance(part, RefusalPart):
                said.append(self.own(part, {"type": "refusal", "refusal": part.text}))
            elif isinstance(part, ToolUsePart):
                out.append(self._call(part))
            elif isinstance(part, ReasoningPart):
                out.extend(reasoned)
            elif isinstance(part, ServerPart):
                (out if self._is_item(part) else said).extend(self._beside(part))
            elif part is not None:
                self.ladder.lose("part out of place", part.where)
        while out and out[-1]["type"] == "reasoning" and not self.native:
            out.pop()  # it must not stand without the item that it led to
            self.ladder.lose("part reasoning", turn.where)
        return out

    def _is_item(self, part: Part) -> bool:
        """Whether it was an item of its own and goes back as one."""
        return self.native and part.private.get("is_item") is True

    def _is_said(self, part: Part | None) -> bool:
        """Whether it goes into a message."""
        return isinstance(part, TextPart | RefusalPart | ServerPart) and not self._is_item(part)

    def _beside(self, part: ServerPart) -> Iterator[JSON]:
        for piece in self._server(part, "output_text"):
            yield piece if self.native else {**piece, "annotations": []}

    def _message(self, said: list[JSON], item: object, at: int) -> JSON:
        if isinstance(item, Mapping):
            if "id" in item or any(set(part) - {"type", "text", "annotations"} for part in said):
                return {"type": "message", "role": "assistant", "content": said, **item}
            return {"type": "message", "role": "assistant", "content": "".join(part["text"] for part in said), **item}
        digest = hashlib.sha256(f"{at}:{dumps(said)!r}".encode()).hexdigest()[:32]
        message = {"type": "message", "id": f"msg_{digest}", "role": "assistant", "status": "completed"}
        return {**message, "content": said}

    def _reasoning(self, part: ReasoningPart) -> Iterator[JSON]:
        """Reasoning goes back to the provider that sealed it, in this dialect as it came, else nowhere."""
        if self.native and not is_anew(part):
            yield {"type": "reasoning", **part.private.get("item", {})}
            return
        sealed = envelope.open(part.opaque, upstream=self.options.upstream, text=part.text)
        piece = None if sealed is None else value_of(sealed.blob)
        if isinstance(piece, Mapping):
            yield {"type": "reasoning", "summary": [], **piece}
        else:
            self.ladder.lose("part reasoning", part.where)

    def _call(self, part: ToolUsePart) -> JSON:
        text = part.arguments if isinstance(part.arguments, str) else dumps(part.arguments).decode()
        tool = OfferedTool(part.name, part.namespace, part.kind)
        name = part.name if self.native else self.names.see(tool)
        call: JSON = {"call_id": self.ids.id(part.id), "name": name}
        if self.native and part.namespace:
            call["namespace"] = part.namespace
        if part.kind is ToolKind.CUSTOM:
            return self.own(part, {"type": "custom_tool_call", **call, "input": text})
        return self.own(part, {"type": "function_call", **call, "arguments": text if text.strip() else "{}"})


def is_anew(part: ReasoningPart) -> bool:
    """Whether reasoning is not the upstream's as it came: another provider sealed it, or it was read out of a text of
    the upstream's and has an id of ours, which no upstream knows."""
    name = part.private.get("item", {}).get("id")
    ours = isinstance(name, str) and name.startswith(f"rs_{OURS}")
    return envelope.is_sealed(part.opaque) or (ours and not part.opaque)


def _marked(content: list[JSON]) -> list[JSON]:
    """The parts of a failed tool's result, with the mark in front."""
    if content and content[0]["type"] == "input_text":
        return [{**content[0], "text": ERROR_PREFIX + content[0]["text"]}, *content[1:]]
    return [{"type": "input_text", "text": ERROR_PREFIX.rstrip()}, *content]


def _output(content: list[JSON]) -> str | list[JSON]:
    """One plain text as a string, which every upstream reads; else the parts."""
    if not content:
        return ""
    if len(content) == 1 and set(content[0]) == {"type", "text"}:
        return str(content[0]["text"])
    return content
