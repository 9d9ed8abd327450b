"""Writing the messages of a Chat Completions request."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pipeline import envelope
from pipeline.events import ToolKind
from pipeline.jsontext import dumps, loads
from pipeline.ladder import Ladder, Rule
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
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import CallIds, ToolNames, wrapped_input
from pipeline.turns import ERROR_PREFIX, contiguous, document_text

JSON = dict[str, Any]


@frozen
class MessageWriter:
    """Writes turns as messages; `native`: the request came in this dialect, so what is private goes back."""

    ladder: Ladder
    names: ToolNames
    ids: CallIds
    options: RequestOptions
    native: bool

    def messages(self, system: Iterable[Turn], turns: Iterable[Turn]) -> list[JSON]:
        """The messages for the instructions and the turns."""
        out: list[JSON] = []
        for turn in (*system, *turns):
            if turn.role in INSTRUCTING:
                out.extend(self._instructions(turn))
            elif turn.role is Role.ASSISTANT:
                out.extend(self._assistant(turn))
            else:
                out.extend(self._user(turn))
        return out

    def own(self, node: Node, written: JSON) -> JSON:
        """`written`, and what its piece of the request keeps besides."""
        if node.cache is not None and not self.native:
            self.ladder.lose("part cache", node.cache.where)
        return {**(node.private if self.native else {}), **node.extras, **written}

    def _instructions(self, turn: Turn) -> Iterator[JSON]:
        role = "developer" if turn.role is Role.DEVELOPER and self._developer else "system"
        parts = [part for part in self._parts(turn.parts) if part["type"] == "text"]
        if self.native:
            yield self.own(turn, {"role": role, "content": _content(parts), **_name(turn)})
        elif text := "\n\n".join(part["text"] for part in parts if part["text"]):
            yield self.own(turn, {"role": role, "content": text, **_name(turn)})

    @property
    def _developer(self) -> bool:
        return self.native or self.options.developer_role

    def _user(self, turn: Turn) -> Iterator[JSON]:
        behind: list[JSON] = []
        rest: list[Part] = []
        for part in turn.parts:
            if isinstance(part, ToolResultPart):
                message, files = self._result(part)
                yield message
                behind.extend(files)
            else:
                rest.append(part)
        if behind:
            yield {"role": "user", "content": behind}
        content = list(self._parts(rest))
        if content or not turn.parts:
            yield self.own(turn, {"role": "user", "content": _content(content), **_name(turn)})

    def _result(self, result: ToolResultPart) -> tuple[JSON, list[JSON]]:
        """A result's message, and the files that must follow all results."""
        texts: list[str] = []
        files: list[JSON] = []
        call = self.ids.id(result.id)
        for part in self._parts(result.parts):
            if part["type"] == "text":
                texts.append(part["text"])
                continue
            if not files:
                files.append({"type": "text", "text": f"[files of the result of the tool call {call}]"})
                texts.append("[its files are in the next message]")
                self.ladder.lose("part image in a result", result.where)
            files.append(part)
        text = "\n\n".join(texts)
        if result.is_error:
            self.ladder.lose("part is_error", f"{result.where}.is_error")
            text = ERROR_PREFIX + text
        return self.own(result, {"role": "tool", "tool_call_id": call, "content": text}), files

    def _parts(self, parts: Iterable[Part]) -> Iterator[JSON]:
        """The parts of a user's message."""
        for part in parts:
            if isinstance(part, TextPart | RefusalPart):
                yield self.own(part, {"type": "text", "text": part.text})
            elif isinstance(part, ImagePart):
                yield self._image(part)
            elif isinstance(part, DocumentPart):
                yield from self._document(part)
            elif isinstance(part, AudioPart):
                audio = {"data": part.data, "format": part.format}
                yield self.own(part, {"type": "input_audio", "input_audio": audio})
            elif isinstance(part, ServerPart):
                yield from self._server(part)
            elif isinstance(part, ReasoningPart):
                self.ladder.lose("part reasoning", part.where)

    def _server(self, part: ServerPart) -> Iterator[JSON]:
        if self.native:
            yield dict(part.payload)
        elif self.ladder.follow(part.loss.row, part.loss.where) is Rule.DEGRADE and part.text:
            yield {"type": "text", "text": part.text}

    def _image(self, part: ImagePart) -> JSON:
        image: JSON = {"url": self._url(part.source, "part image stored", part.where)}
        if part.detail:
            image["detail"] = part.detail
        return self.own(part, {"type": "image_url", "image_url": image})

    def _url(self, source: Source, row: str, where: str) -> str:
        if isinstance(source, Inline):
            return f"data:{source.media_type};base64,{source.data}"
        if isinstance(source, Remote):
            return source.url
        self.ladder.lose(row, where)
        return ""

    def _document(self, part: DocumentPart) -> Iterator[JSON]:
        if part.citations:
            self.ladder.lose("part document citations", f"{part.where}.citations")
        source = part.source
        if isinstance(source, str | tuple):
            self.ladder.lose("part document text", part.where)
            if text := document_text(part):
                yield self.own(part, {"type": "text", "text": text})
            if isinstance(source, tuple):
                yield from self._parts(source)
            return
        if part.context:
            yield {"type": "text", "text": part.context}
        yield self.own(part, {"type": "file", "file": self._file(part, source)})

    def _file(self, part: DocumentPart, source: Source) -> JSON:
        if isinstance(source, Remote):
            self.ladder.lose("part document by url", part.where)
        if self.native and not isinstance(source, Inline | Remote):
            return {"file_id": source.id, **({"filename": part.name} if part.name else {})}
        data = self._url(source, "part document stored", part.where)
        return {"file_data": data, "filename": part.name or "document.pdf"}

    def _assistant(self, turn: Turn) -> Iterator[JSON]:
        message: JSON = {"role": "assistant", "content": self._text(turn) or None, **_name(turn)}
        calls = [self._call(part) for part in turn.parts if isinstance(part, ToolUsePart)]
        refusals = [part.text for part in turn.parts if isinstance(part, RefusalPart)]
        for part in turn.parts:
            self._other(part, message)
        if calls:
            message["tool_calls"] = calls
        if refusals:
            message["refusal"] = "\n\n".join(refusals)
        if calls or refusals or message["content"] is not None:
            yield self.own(turn, message)

    def _text(self, turn: Turn) -> str | list[JSON]:
        """An assistant's text: one string, but as it came where it came in this dialect."""
        if not self.native:
            return contiguous(turn.parts)
        return _content(list(self._parts(part for part in turn.parts if isinstance(part, TextPart))))

    def _other(self, part: Part, message: JSON) -> None:
        """What of an assistant's turn is neither text nor call nor refusal."""
        if isinstance(part, ReasoningPart):
            self._reasoning(part, message)
        elif isinstance(part, ServerPart):
            shown = "\n\n".join(piece["text"] for piece in self._server(part) if piece.get("type") == "text")
            if shown:
                message["content"] = f"{message['content']}\n\n{shown}" if message["content"] else shown
        elif isinstance(part, TextPart):
            self.own(part, {})
        elif not isinstance(part, ToolUsePart | RefusalPart):
            self.ladder.lose("part in an assistant's turn", part.where)

    def _reasoning(self, part: ReasoningPart, message: JSON) -> None:
        """Reasoning goes back to the provider that sealed it, as text to one that demands it, else nowhere."""
        sealed = envelope.open(part.opaque, upstream=self.options.upstream, text=part.text)
        if sealed is not None and isinstance(piece := _loads(sealed.blob), Mapping):
            _replay(piece, part.text, message)
        elif part.text and (self.native or self.options.replay_reasoning):
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n\n{part.text}" if before else part.text
        else:
            self.ladder.lose("part reasoning", part.where)

    def _call(self, part: ToolUsePart) -> JSON:
        name = self.names.name(part.namespace, part.name)
        call = self.ids.id(part.id)
        text = part.arguments if isinstance(part.arguments, str) else dumps(part.arguments).decode()
        if part.kind is ToolKind.FUNCTION:
            function = {"name": name, "arguments": text if text.strip() else "{}"}
            return self.own(part, {"id": call, "type": "function", "function": function})
        if self.options.custom_tools or self.native:
            return self.own(part, {"id": call, "type": "custom", "custom": {"name": name, "input": text}})
        function = {"name": name, "arguments": wrapped_input(text)}
        return self.own(part, {"id": call, "type": "function", "function": function})


def _replay(piece: Mapping[str, Any], text: str, message: JSON) -> None:
    """What a provider's blob brings into an assistant's message: details behind each other, a proof with its text."""
    details = piece.get("reasoning_details")
    if not isinstance(details, list):
        message.update(piece)
        return
    proven = [{**one, "text": text} if isinstance(one, dict) and "signature" in one else one for one in details]
    message["reasoning_details"] = [*message.get("reasoning_details", ()), *proven]


def _loads(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None


def _name(turn: Turn) -> JSON:
    return {"name": turn.name} if turn.name else {}


def _content(parts: list[JSON]) -> str | list[JSON]:
    """One plain text as a string, which every upstream reads; else the parts."""
    if not parts:
        return ""
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return str(parts[0]["text"])
    return parts
