"""Reading the messages of a Chat Completions request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import TWICE, Loss, Reading
from pipeline.limits import Limits
from pipeline.media import from_data, from_url
from pipeline.members import Members
from pipeline.request import (
    AudioPart,
    CacheHint,
    DocumentPart,
    ImagePart,
    Part,
    ReasoningPart,
    RefusalPart,
    ResultPart,
    Role,
    ServerPart,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.turns import marked, unmarked

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.USER,
    "function": Role.USER,
}
CACHE = ("prompt_cache_breakpoint", "cache_control")
_INNER = {
    "image_url": ("url", "detail"),
    "input_audio": ("data", "format"),
    "file": ("file_id", "file_data", "filename"),
}
"""What we know of the object that such a part holds."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_text")
_DETAILS = "reasoning_details"
_EXTRA = {"extra_content": "messages[].extra_content"}
"""What some vendors hand out with an answer and want back with it, as thought signatures."""


@define
class TurnReader:
    """Reads the messages of one request, in order."""

    reading: Reading
    limits: Limits
    _count: int = field(init=False, default=0)
    _waiting: list[tuple[str, str]] = field(init=False, factory=list)
    """The ids made for calls that came without, each with its call's name, that no result has taken."""

    def turns(self, members: Members) -> list[Turn]:
        """The turns of `messages`; a run of results is one turn.

        Raises `ClientError` naming the member that is not as it must be.
        """
        turns: list[Turn] = []
        results = False
        for message in members.objects("messages"):
            turn, is_result = self._turn(message)
            if results and is_result:
                turns[-1] = evolve(turns[-1], parts=(*turns[-1].parts, *turn.parts))
            else:
                turns.append(turn)
            results = is_result
        return turns

    def _turn(self, message: Members) -> tuple[Turn, bool]:
        message.need("role")
        role = self.reading.word(message, "role", _ROLES) or Role.USER
        if message.text("role") in ("tool", "function"):
            return Turn(Role.USER, (self._result(message),), where=message.where), True
        if role is Role.ASSISTANT:
            return self._assistant(message), False
        known = ("role", "content", "name", *CACHE)
        rest = self.reading.rest(message, known, {})
        rest["private"].update(kept(message))
        return Turn(
            role, tuple(self._content(message)), message.text("name"), cache=cache(message, self.reading), **rest
        ), False

    def _result(self, message: Members) -> ToolResultPart:
        own = {"name": "messages[].name of a tool"}
        older = message.text("role") == "function"
        rest = self.reading.rest(message, ("role", "content", "tool_call_id", *CACHE), {} if older else own)
        if older:
            rest["private"].update(role="function", name=rest["extras"].pop("name", None))
        call = self._answered(message, older)
        parts: list[ResultPart] = []
        given = message.parts("content")
        content = (
            (TextPart(given, where=message.path("content")),) if isinstance(given, str) else map(self._part, given)
        )
        for part in content:
            if not isinstance(part, ResultPart):
                raise ClientError.about(f"{part.where}.type", "cannot stand in a tool's result")
            parts.append(part)
        found = tuple(parts)
        return ToolResultPart(call, unmarked(found), marked(found), cache=cache(message, self.reading), **rest)

    def _made(self, name: str) -> str:
        """An id for a call that came without; the same every time."""
        self._count += 1
        self._waiting.append((f"call_{self._count}_{name}", name))
        return self._waiting[-1][0]

    def _called(self, call: Members, name: str) -> str:
        """The id of a call; one that is blank or absent is made."""
        return call.call_id("id", self.limits) if call.text("id").strip() else self._made(name)

    def _answered(self, message: Members, older: bool) -> str:
        """The id of the call whose result a message is: its own word, or the first that was made, for its name."""
        word, name = ("name", message.text("name")) if older else ("tool_call_id", "")
        if not older and message.text(word).strip():
            return message.call_id(word, self.limits)
        found = next((made for made in self._waiting if name in ("", made[1])), None)
        if found is None:
            return message.call_id(word, self.limits)
        self._waiting.remove(found)
        return found[0]

    def _assistant(self, message: Members) -> Turn:
        own = {"audio": "messages[].audio", "annotations": "messages[].annotations", **_EXTRA}
        known = ("role", "content", "name", "refusal", "tool_calls", "function_call", _DETAILS, *_REASONING, *CACHE)
        rest = self.reading.rest(message, known, own)
        rest["private"].update(kept(message, *_REASONING, _DETAILS))
        parts: list[Part] = [*self._reasoning(message), *self._content(message)]
        if message.text("refusal"):
            parts.append(RefusalPart(message.text("refusal"), where=message.path("refusal")))
        parts.extend(self._call(call) for call in message.objects("tool_calls"))
        if (call := message.object("function_call")) is not None:
            name = call.need("name")
            self.reading.within(call, "name", "arguments")
            parts.append(ToolUsePart(self._made(name), name, _arguments(call), where=call.where))
        return Turn(Role.ASSISTANT, tuple(parts), message.text("name"), cache=cache(message, self.reading), **rest)

    def _reasoning(self, message: Members) -> Iterator[ReasoningPart]:
        """Echoed reasoning: the details if there are any, else the first of the members that hold its text."""
        details = list(message.objects(_DETAILS))
        told = ""
        for detail in details:
            text = detail.text("text") or detail.text("summary")
            opaque = detail.text("signature") or detail.text("data")
            if text or opaque:
                told += text
                yield ReasoningPart(text, opaque, not text, where=detail.where)
        texts = [(message.path(name), said) for name in _REASONING if isinstance(said := message.value.get(name), str)]
        first = self.reading.first((message.path(_DETAILS), told), *texts)
        if first and not told and details:
            self.reading.losses.extend(Loss(where, TWICE) for where, _ in texts)
        elif first and not told:
            yield ReasoningPart(first, where=next(where for where, said in texts if said == first))

    def _call(self, call: Members) -> ToolUsePart:
        custom = call.object("custom")
        rest = self.reading.rest(call, ("id", "type", "index", "function", "custom"), _EXTRA)
        if custom is not None:
            self.reading.excluded(call, "function")
            self.reading.within(custom, "name", "input")
            name, text = custom.need("name"), custom.text("input")
            return ToolUsePart(self._called(call, name), name, text, ToolKind.CUSTOM, **rest)
        function = call.object("function")
        if function is None:
            raise ClientError.about(call.path("function"), "is required")
        name = function.need("name")
        self.reading.within(function, "name", "arguments")
        return ToolUsePart(self._called(call, name), name, _arguments(function), **rest)

    def _content(self, message: Members) -> Iterator[Part]:
        """The parts of a message's content: a string, or parts."""
        found = message.value.get("content")
        if isinstance(found, str):
            if found or message.text("role") != "assistant":
                yield TextPart(found, where=message.path("content"))
            return
        for part in message.objects("content"):
            yield self._part(part)

    def _part(self, part: Members) -> Part:
        kind = part.need("type")
        if (read := _READERS.get(kind)) is not None:
            rest = self.reading.rest(part, ("type", kind, *CACHE), {})
            rest["private"].update(kept(part))
            if kind == "thinking":
                rest["private"]["part"] = part.value
            if kind in _INNER and isinstance(inner := part.value.get(kind), Mapping):
                rest["private"][kind] = Members(inner).but(*_INNER[kind])
                self.reading.within(Members(inner, part.path(kind)), *_INNER[kind])
            return evolve(read(part), cache=cache(part, self.reading), **rest)
        unknown = evolve(self.reading.rows["messages[].content[] of unknown type"], reason=f"unknown part {kind!r}")
        return ServerPart(part.value, Loss(part.path("type"), unknown), where=part.where)


def kept(members: Members, *names: str) -> dict[str, Any]:
    """Members that have a meaning of ours and must go back into this dialect as they came."""
    return {name: members.value[name] for name in (*names, *CACHE) if members.value.get(name) is not None}


def cache(members: Members, reading: Reading) -> CacheHint | None:
    """The wish that what stands up to here be cached."""
    hints = [hint for name in CACHE if (hint := members.object(name)) is not None]
    for hint in hints:
        reading.within(hint, "type", "mode", "ttl")
    if not hints:
        return None
    reading.first(*((hint.where, (hint.text("ttl"),)) for hint in hints))
    return CacheHint(hints[0].text("ttl"), hints[0].where)


def _arguments(function: Members) -> str | Mapping[str, Any]:
    """The arguments as they came; some clients send the object itself."""
    found = function.value.get("arguments")
    if isinstance(found, Mapping):
        return found
    return function.text("arguments")


def _text(part: Members) -> TextPart:
    return TextPart(part.given("text"))


def _refusal(part: Members) -> RefusalPart:
    return RefusalPart(part.text("refusal"))


def _thinking(part: Members) -> ReasoningPart:
    found = part.value.get("thinking")
    if isinstance(found, str):
        return ReasoningPart(found)
    return ReasoningPart("".join(piece.text("text") for piece in part.objects("thinking")))


def _image(part: Members) -> ImagePart:
    if isinstance(part.value.get("image_url"), str):
        return ImagePart(from_url(part.need("image_url")))
    image = part.object("image_url")
    if image is None:
        raise ClientError.about(part.path("image_url"), "is required")
    return ImagePart(from_url(image.need("url")), image.text("detail"))


def _audio(part: Members) -> AudioPart:
    audio = part.object("input_audio")
    if audio is None:
        raise ClientError.about(part.path("input_audio"), "is required")
    return AudioPart(audio.need("data"), audio.need("format"))


def _file(part: Members) -> DocumentPart:
    file = part.object("file")
    if file is None:
        raise ClientError.about(part.path("file"), "is required")
    name = file.text("filename")
    if file.has("file_id"):
        return DocumentPart(Stored(file.need("file_id")), name)
    return DocumentPart(from_data(file.need("file_data"), name), name)


_READERS: Mapping[str, Callable[[Members], Part]] = {
    "text": _text,
    "refusal": _refusal,
    "thinking": _thinking,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
}
