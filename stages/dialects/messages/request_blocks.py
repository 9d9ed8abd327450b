"""Writing the messages and blocks of a Messages request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from pipeline import envelope
from pipeline.events import ToolKind
from pipeline.jsontext import exact
from pipeline.ladder import Ladder, Rule
from pipeline.media import plain_text
from pipeline.request import (
    INSTRUCTING,
    AudioPart,
    CacheHint,
    DocumentPart,
    ImagePart,
    Inline,
    Node,
    Part,
    ReasoningPart,
    RefusalPart,
    Remote,
    RequestOptions,
    ResultPart,
    Role,
    ServerPart,
    Source,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import OfferedTool, ToolNames, UpstreamIds
from pipeline.turns import SOMETHING, instruction, nodes_of, only_text
from stages.dialects.messages.opaque import block_of
from stages.dialects.messages.request_tables import CACHE_MARKS, IMAGES, PDF

JSON = dict[str, Any]


@define
class BlockWriter:
    """Writes turns as messages; `native`: the request came in this dialect, so what is private goes back."""

    ladder: Ladder
    names: ToolNames
    ids: UpstreamIds
    options: RequestOptions
    native: bool
    _marks: int = field(init=False, default=0)

    def system(self, turns: Iterable[Turn]) -> list[JSON]:
        """The blocks of the instructions that stand before everything."""
        return [block for turn in turns for block in self._instructing(turn)]

    def messages(self, turns: Iterable[Turn]) -> list[JSON]:
        """The messages for the turns: no two of one role behind the other, but in this dialect as they came."""
        out: list[JSON] = []
        for turn in turns:
            self._unnamed(turn)
            role, blocks = self._message(turn)
            self._mark_last(turn, blocks)
            if not blocks and (not self.native or turn.parts):
                continue
            if out and out[-1]["role"] == role and role != "system" and not self.native:
                out[-1]["content"].extend(blocks)
            else:
                if not out and role != "user" and not self.native:
                    self.ladder.lose("turns.first", turn.where)
                    out.append({"role": "user", "content": [{"type": "text", "text": SOMETHING}]})
                out.append(self.own(evolve(turn, cache=None), {"role": role, "content": blocks}))
        for message in out:
            message["content"] = content_of(message["content"])
        return out

    def is_foreign(self, turn: Turn) -> bool:
        """Whether thinking or a citation stands in a turn that no provider of this dialect made."""
        return any(
            not _is_own(part) if isinstance(part, ReasoningPart) else _own_citations(part) != _citations(part)
            for part in turn.parts
        )

    def again(self, turn: Turn, given: JSON) -> list[JSON]:
        """A message of this dialect's as it came, but for what no provider of it made; none, if nothing is left."""
        blocks: list[JSON] = []
        for part, block in zip(turn.parts, given["content"], strict=True):
            if isinstance(part, ReasoningPart) and not _is_own(part):
                blocks.extend(self._reasoning(part))
            elif (kept := _own_citations(part)) == _citations(part):
                blocks.append(block)
            else:
                self.ladder.lose("part citation", part.where)
                rest = {name: value for name, value in block.items() if name != "citations"}
                blocks.append({**rest, "citations": kept} if kept else rest)
        return [{**given, "content": content_of(blocks)}] if blocks else []

    def own(self, node: Node, written: JSON) -> JSON:
        """`written`, and what its piece of the request keeps besides."""
        kept = {**(node.private if self.native else {}), **node.extras, **written}
        if node.extras:
            self.ladder.carry(node.where)
        if node.cache is not None and (mark := self.mark(node.cache)) is not None:
            kept["cache_control"] = mark
        return kept

    def mark(self, hint: CacheHint) -> JSON | None:
        """A cache hint in this dialect's words; None: there are too many."""
        if not self.native:
            self._marks += 1
            if self._marks > CACHE_MARKS:
                self.ladder.lose("part cache beyond four", hint.where)
                return None
        ttl = hint.ttl if self.native or hint.ttl in ("", "5m") else "1h"
        return {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}

    def _message(self, turn: Turn) -> tuple[str, list[JSON]]:
        if turn.role is Role.ASSISTANT:
            return "assistant", [block for part in turn.parts for block in self._said(part)]
        if turn.role not in INSTRUCTING:
            return "user", [block for part in turn.parts for block in self._given(part)]
        if self.native or self.options.later_instructions:
            return "system", list(self._texts(turn))
        blocks = list(self._texts(turn))
        text = "\n\n".join(block["text"] for block in blocks)
        if not text:
            return "user", []
        self.ladder.lose("turns.later instructions", turn.where)
        self.ladder.one_text(part.where for part in nodes_of(turn.parts))
        marks = [block["cache_control"] for block in blocks if "cache_control" in block]
        for part in [part for part in nodes_of(turn.parts) if part.cache is not None][:-1]:
            self.ladder.lose("part cache within an instruction", part.where)
        mark = {"cache_control": marks[-1]} if marks else {}
        return "user", [{"type": "text", "text": instruction(text), **mark}]

    def _instructing(self, turn: Turn) -> list[JSON]:
        """The blocks of an instruction before everything."""
        self._unnamed(turn)
        blocks = list(self._texts(turn))
        self._mark_last(turn, blocks)
        return blocks

    def _unnamed(self, turn: Turn) -> None:
        if turn.name and not self.native:
            self.ladder.lose("turns.name", f"{turn.where}.name")

    def _mark_last(self, turn: Turn, blocks: list[JSON]) -> None:
        """A whole turn is cached where its last block is."""
        if turn.cache is not None and blocks and "cache_control" not in blocks[-1]:
            mark = self.mark(turn.cache)
            blocks[-1].update({} if mark is None else {"cache_control": mark})

    def _texts(self, turn: Turn) -> Iterator[JSON]:
        for part in turn.parts if self.native else only_text(turn.parts, self.ladder):
            for block in self._given(part):
                if block["type"] == "text" or self.native:
                    yield block

    def _given(self, part: Part) -> Iterator[JSON]:
        """The blocks of a part that is not the assistant's."""
        if isinstance(part, TextPart | RefusalPart):
            yield from self._text(part)
        elif isinstance(part, ImagePart):
            yield self._image(part)
        elif isinstance(part, DocumentPart):
            yield self._document(part)
        elif isinstance(part, ToolResultPart):
            yield self._result(part)
        elif isinstance(part, ServerPart):
            yield from self._server(part)
        elif isinstance(part, AudioPart):
            self.ladder.lose("part audio", part.where)
        else:
            yield from self._said(part)

    def _said(self, part: Part) -> Iterator[JSON]:
        """The blocks of a part of the assistant's."""
        if isinstance(part, TextPart | RefusalPart):
            yield from self._text(part)
        elif isinstance(part, ToolUsePart):
            yield self._call(part)
        elif isinstance(part, ReasoningPart):
            yield from self._reasoning(part)
        elif isinstance(part, ServerPart):
            yield from self._server(part)
        elif self.native:
            yield from self._given(part)
        else:
            self.ladder.lose("part out of place", part.where)

    def _text(self, part: TextPart | RefusalPart) -> Iterator[JSON]:
        if part.text.strip() or self.native:
            block = self.own(part, {"type": "text", "text": part.text})
            if self.native and (kept := _own_citations(part)) != _citations(part):
                self.ladder.lose("part citation", part.where)
                block = {name: value for name, value in block.items() if name != "citations"}
                block |= {"citations": kept} if kept else {}
            yield block
        else:
            self.ladder.lose("part empty text", part.where)

    def _server(self, part: ServerPart) -> Iterator[JSON]:
        if self.native:
            yield dict(part.payload)
        elif self.ladder.follow(part.loss.row, part.loss.where) is Rule.DEGRADE and part.text:
            yield {"type": "text", "text": part.text}

    def _image(self, part: ImagePart) -> JSON:
        if part.detail and part.detail != "auto":
            self.ladder.lose("part image detail", part.where)
        if isinstance(part.source, Inline) and part.source.media_type not in IMAGES and not self.native:
            self.ladder.lose("part image of another type", part.where)
        return self.own(part, {"type": "image", "source": self._source(part.source, "part image stored", part.where)})

    def _source(self, source: Source, row: str, where: str) -> JSON:
        if isinstance(source, Inline):
            return {"type": "base64", "media_type": source.media_type, "data": source.data}
        if isinstance(source, Remote):
            return {"type": "url", "url": source.url}
        if not self.native:
            self.ladder.lose(row, where)
        return {"type": "file", "file_id": source.id}

    def _document(self, part: DocumentPart) -> JSON:
        block: JSON = {"type": "document", "source": self._document_source(part)}
        if part.name:
            block["title"] = part.name
        if part.context:
            block["context"] = part.context
        if part.citations:
            block["citations"] = {"enabled": True}
        return self.own(part, block)

    def _document_source(self, part: DocumentPart) -> JSON:
        source = part.source
        if isinstance(source, tuple):
            return {"type": "content", "content": [block for piece in source for block in self._given(piece)]}
        text = source if isinstance(source, str) else None
        if isinstance(source, Inline) and source.media_type != PDF and not self.native:
            text = plain_text(source)
            if text is None:
                self.ladder.lose("part document of another type", part.where)
        if text is not None:
            return {"type": "text", "media_type": "text/plain", "data": text}
        return {} if isinstance(source, str) else self._source(source, "part document stored", part.where)

    def _result(self, part: ToolResultPart) -> JSON:
        blocks = [block for piece in part.parts for block in self._found(piece)]
        result: JSON = {"type": "tool_result", "tool_use_id": self.ids.id(part.id)}
        if blocks or not self.native:
            result["content"] = content_of(blocks)
        if part.is_error:
            result["is_error"] = True
        return self.own(part, result)

    def _found(self, piece: ResultPart) -> Iterator[JSON]:
        """The blocks of a piece of a result; it may be blank, and nothing is lost with an empty text."""
        if not isinstance(piece, TextPart):
            yield from self._given(piece)
        elif piece.text or self.native:
            yield self.own(piece, {"type": "text", "text": piece.text})

    def _call(self, part: ToolUsePart) -> JSON:
        tool = OfferedTool(part.name, part.namespace, part.kind, wrapped=part.kind is ToolKind.CUSTOM)
        name = self.names.see(tool)
        call = {"type": "tool_use", "id": self.ids.id(part.id), "name": name, "input": self._arguments(part)}
        return self.own(part, call)

    def _arguments(self, part: ToolUsePart) -> Mapping[str, Any]:
        if isinstance(part.arguments, Mapping):
            return part.arguments
        if part.kind is ToolKind.CUSTOM:
            return {"input": part.arguments}
        if not part.arguments.strip():
            return {}
        try:
            found = exact(part.arguments)
        except ValueError:
            found = None
        if isinstance(found, Mapping):
            return found
        self.ladder.lose("part arguments", part.where)
        return {"_raw": part.arguments}

    def _reasoning(self, part: ReasoningPart) -> Iterator[JSON]:
        """Reasoning goes back to the provider that sealed it, in this dialect as it came, else nowhere."""
        if self.native and _is_own(part):
            if part.redacted:
                yield self.own(part, {"type": "redacted_thinking", "data": part.opaque})
            else:
                yield self.own(part, {"type": "thinking", "thinking": part.text, "signature": part.opaque})
            return
        sealed = envelope.open(part.opaque, upstream=self.options.upstream, text=part.text)
        piece = None if sealed is None else block_of(sealed.blob, part.text)
        if piece is not None:
            yield piece
        else:
            self.ladder.lose("part reasoning", part.where)


def _is_own(part: ReasoningPart) -> bool:
    """Whether it is as a provider of this dialect made it: not in an envelope of ours, nor without a signature."""
    return not envelope.is_sealed(part.opaque) and bool(part.redacted or part.opaque)


def _citations(part: Part) -> Sequence[Any]:
    """The citations of a part that came in this dialect."""
    told = part.private.get("citations") if isinstance(part, TextPart) else None
    return told if isinstance(told, list) else ()


def _own_citations(part: Part) -> Sequence[Any]:
    """Those that a provider of this dialect made: one that was another API's page has no index."""
    told = _citations(part)
    own = [one for one in told if not (isinstance(one, dict) and one.get("encrypted_index") == "")]
    return told if len(own) == len(told) else own


def content_of(blocks: list[JSON]) -> str | list[JSON]:
    """One plain text as a string; else the blocks."""
    if not blocks:
        return ""
    if len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks
