"""Writing the messages of a Chat Completions request."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

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
    Node,
    Part,
    ReasoningPart,
    RefusalPart,
    Remote,
    RequestOptions,
    Role,
    ServerPart,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import OfferedTool, ToolNames, UpstreamIds, wrapped_input
from pipeline.turns import ERROR_PREFIX, contiguous, document_text, instruction, nodes_of, only_text

JSON = dict[str, Any]

_CALLS, _PROOF = "tool_calls", "extra_content"
_OLDER = ".function_call"
"""Where a call in the older words stands: the last of its message."""


@frozen
class MessageWriter:
    """Writes turns as messages; `native`: the request came in this dialect, so what is private goes back."""

    ladder: Ladder
    names: ToolNames
    ids: UpstreamIds
    options: RequestOptions
    native: bool

    def messages(self, system: Iterable[Turn], turns: Iterable[Turn]) -> list[JSON]:
        """The messages for the instructions and the turns."""
        out: list[JSON] = []
        began = False
        for turn in (*system, *turns):
            if turn.role in INSTRUCTING:
                for message in self._instructions(turn, began):
                    if not began and out and not self._apart:
                        out[0]["content"] += f"\n\n{message['content']}"
                        self.ladder.one_text((turn.where,))
                    else:
                        out.append(message)
                continue
            began = True
            out.extend(self._assistant(turn) if turn.role is Role.ASSISTANT else self._user(turn))
        return out

    def is_sealed(self, turn: Turn) -> bool:
        """Whether reasoning in an envelope of ours stands in a turn."""
        return any(isinstance(part, ReasoningPart) and envelope.is_sealed(part.opaque) for part in turn.parts)

    def own(self, node: Node, written: JSON) -> JSON:
        """`written`, and what its piece of the request keeps besides."""
        self._uncached(node)
        if node.extras:
            self.ladder.carry(node.where)
        return {**(node.private if self.native else {}), **node.extras, **written}

    def _uncached(self, node: Node) -> None:
        if node.cache is not None and not self.native:
            self.ladder.lose("part cache", node.cache.where)

    def _instructions(self, turn: Turn, later: bool) -> Iterator[JSON]:
        role = "developer" if turn.role is Role.DEVELOPER and self._apart else "system"
        parts = list(self._parts(turn.parts if self.native else only_text(turn.parts, self.ladder)))
        if self.native:
            yield self.own(turn, {"role": role, "content": _content(parts), **_name(turn)})
            return
        self.ladder.one_text(part.where for part in nodes_of(turn.parts))
        text = "\n\n".join(part["text"] for part in parts if part["text"])
        if text and later and self.options.later_instructions is False:
            self.ladder.lose("turns.later instructions", turn.where)
            yield self.own(turn, {"role": "user", "content": instruction(text)})
        elif text:
            yield self.own(turn, {"role": role, "content": text, **_name(turn)})

    @property
    def _apart(self) -> bool:
        """Whether each instruction stays a message of its own, with its own role; else the first ones are one."""
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
        if self.native and not result.is_error:
            content = _content(list(self._parts(result.parts)))
            if "role" in result.private:  # in the older words, which have no ids
                return self.own(result, {"content": content}), files
            return self.own(result, {"role": "tool", "tool_call_id": call, "content": content}), files
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
        self.ladder.one_text(part.where for part in nodes_of(result.parts) if _is_text(part))
        if result.is_error:
            if not self.native:
                self.ladder.lose("part is_error", f"{result.where}.is_error")
            text = ERROR_PREFIX + text
        return self.own(result, {"role": "tool", "tool_call_id": call, "content": text}), files

    def _parts(self, parts: Iterable[Part]) -> Iterator[JSON]:
        """The parts of a user's message."""
        for part in parts:
            if isinstance(part, TextPart | RefusalPart):
                yield self.own(part, {"type": "text", "text": part.text})
            elif isinstance(part, ImagePart):
                yield from self._image(part)
            elif isinstance(part, DocumentPart):
                yield from self._document(part)
            elif isinstance(part, AudioPart):
                audio = {**self._inner(part, "input_audio"), "data": part.data, "format": part.format}
                yield self.own(part, {"type": "input_audio", "input_audio": audio})
            elif isinstance(part, ServerPart):
                yield from self._server(part)
            else:
                row = "part reasoning" if isinstance(part, ReasoningPart) else "part out of place"
                self.ladder.lose(row, part.where)

    def _server(self, part: ServerPart) -> Iterator[JSON]:
        if self.native:
            yield dict(part.payload)
        elif self.ladder.follow(part.loss.row, part.loss.where) is Rule.DEGRADE and part.text:
            yield {"type": "text", "text": part.text}

    def _image(self, part: ImagePart) -> Iterator[JSON]:
        if isinstance(part.source, Stored):
            self.ladder.lose("part image stored", part.where)
        else:
            image: JSON = {**self._inner(part, "image_url"), "url": to_url(part.source)}
            if part.detail:
                image["detail"] = part.detail
            yield self.own(part, {"type": "image_url", "image_url": image})

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
        file = self._inner(part, "file")
        if isinstance(source, Remote) and not self.native:
            self.ladder.lose("part document by url", part.where)
        elif isinstance(source, Stored) and not self.native:
            self.ladder.lose("part document stored", part.where)
        elif isinstance(source, Stored):
            name = {"filename": part.name} if part.name else {}
            yield self.own(part, {"type": "file", "file": {**file, "file_id": source.id, **name}})
        else:
            data = {"file_data": to_url(source), "filename": part.name or "document.pdf"}
            yield self.own(part, {"type": "file", "file": {**file, **data}})

    def _inner(self, part: Part, name: str) -> JSON:
        """What an object within a part holds besides what we know of it."""
        return part.private.get(name, {}) if self.native else {}

    def _assistant(self, turn: Turn) -> Iterator[JSON]:
        message: JSON = {"role": "assistant", "content": self._text(turn) or None, **_name(turn)}
        calls = self._calls(turn)
        refusals = [part.text for part in turn.parts if isinstance(part, RefusalPart)]
        sealed = self.is_sealed(turn)
        for part in turn.parts:
            self._other(part, message, sealed)
        if self.native and any(isinstance(part, ToolUsePart) and part.where.endswith(_OLDER) for part in turn.parts):
            message["function_call"] = calls.pop()["function"]
        if calls:
            message["tool_calls"] = calls
        if refusals:
            message["refusal"] = "\n\n".join(refusals)
        if "function_call" in message or calls or refusals or message["content"] is not None or self.native:
            yield self.own(evolve(turn, private={}) if sealed else turn, message)

    def _text(self, turn: Turn) -> str | list[JSON]:
        """An assistant's text: one string, but as it came where it came in this dialect."""
        if not self.native:
            return contiguous(self._shown(part) for part in turn.parts)
        content: list[JSON] = []
        for part in turn.parts:
            if "part" in part.private:
                content.append(part.private["part"])
            elif isinstance(part, TextPart | ServerPart):
                content.extend(self._parts((part,)))
        return _content(content)

    def _shown(self, part: Part) -> Part:
        """The part; one that only the client's dialect has without its text, unless it is degraded to it."""
        if not isinstance(part, ServerPart) or self.ladder.follow(part.loss.row, part.loss.where) is Rule.DEGRADE:
            return part
        return evolve(part, text="")

    def _other(self, part: Part, message: JSON, sealed: bool) -> None:
        """What of an assistant's turn is neither text nor call nor refusal; `sealed`: an envelope is among it."""
        if isinstance(part, ReasoningPart):
            if sealed or not self.native:  # else it goes back as it came, with what else is private
                self._reasoning(part, message)
        elif isinstance(part, TextPart):
            self._uncached(part)
        elif not isinstance(part, ToolUsePart | RefusalPart | ServerPart):
            self.ladder.lose("part out of place", part.where)

    def _calls(self, turn: Turn) -> list[JSON]:
        """The calls of a turn, each with what its provider sent to come back with it."""
        calls: list[JSON] = []
        proofs: list[ReasoningPart] = []
        for part in turn.parts:
            if isinstance(part, ToolUsePart):
                proof = _proof(self._opened(proofs.pop())) if proofs else {}
                calls.append({**proof, **self._call(part)})
            elif isinstance(part, ReasoningPart) and _proof(self._opened(part)):
                proofs.append(part)
        for part in proofs:
            self.ladder.lose("part reasoning", part.where)  # its call is gone
        return calls

    def _opened(self, part: ReasoningPart) -> Mapping[str, Any] | None:
        """What of an assistant's message is in an envelope that this provider sealed."""
        sealed = envelope.open(part.opaque, upstream=self.options.upstream, text=part.text)
        piece = None if sealed is None else value_of(sealed.blob)
        return piece if isinstance(piece, Mapping) else None

    def _reasoning(self, part: ReasoningPart, message: JSON) -> None:
        """Reasoning goes back to the provider that sealed it, as text to one that demands it, else nowhere."""
        piece = self._opened(part)
        if piece is not None:
            for name, value in piece.items():
                if name == _CALLS:
                    continue  # it stands with its call
                before = message.get(name)
                if isinstance(value, list) and (isinstance(before, list) or name not in message):
                    message[name] = [*(before or ()), *_told(value, part.text)]
                elif name not in message:
                    message[name] = value
        elif part.text and self.options.replay_reasoning:
            if part.opaque or part.private:
                self.ladder.lose("part reasoning replayed", part.where)
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n\n{part.text}" if before else part.text
        else:
            self.ladder.lose("part reasoning", part.where)

    def _call(self, part: ToolUsePart) -> JSON:
        wrapped = part.kind is ToolKind.CUSTOM and not (self.options.custom_tools or self.native)
        name = self.names.see(OfferedTool(part.name, part.namespace, part.kind, wrapped))
        call = self.ids.id(part.id)
        text = part.arguments if isinstance(part.arguments, str) else dumps(part.arguments).decode()
        if part.kind is ToolKind.FUNCTION:
            function = {"name": name, "arguments": text if text.strip() else "{}"}
            return self.own(part, {"id": call, "type": "function", "function": function})
        if not wrapped:
            return self.own(part, {"id": call, "type": "custom", "custom": {"name": name, "input": text}})
        function = {"name": name, "arguments": wrapped_input(text)}
        return self.own(part, {"id": call, "type": "function", "function": function})


def _proof(piece: Mapping[str, Any] | None) -> JSON:
    """What goes back with the call that follows."""
    calls = None if piece is None else piece.get(_CALLS)
    first = calls[0] if isinstance(calls, list) and calls else None
    return {_PROOF: first[_PROOF]} if isinstance(first, Mapping) and _PROOF in first else {}


def _told(details: list[Any], text: str) -> list[Any]:
    """Details of reasoning as they go back: a signature stands with the text that it signs."""
    return [
        {**detail, "text": text} if isinstance(detail, dict) and "signature" in detail and text else detail
        for detail in details
    ]


def _is_text(part: Part) -> bool:
    """Whether a part is written as text alone."""
    return isinstance(part, TextPart) or (isinstance(part, DocumentPart) and isinstance(part.source, str | tuple))


def _name(turn: Turn) -> JSON:
    return {"name": turn.name} if turn.name else {}


def _content(parts: list[JSON]) -> str | list[JSON]:
    """One plain text as a string, which every upstream reads; else the parts."""
    if not parts:
        return ""
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return str(parts[0]["text"])
    return parts
