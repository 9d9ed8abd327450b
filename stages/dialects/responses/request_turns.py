"""Reading the input items of a Responses request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field

from pipeline.errors import ClientError
from pipeline.events import ToolKind
from pipeline.ladder import Loss, Reading
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
    Source,
    Stored,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.turns import marked, unmarked
from stages.dialects.responses.request_tables import (
    ASSISTANT_ITEMS,
    DEFAULT_NAMESPACE,
    HOSTED_ITEMS,
    INSTRUCTING_ITEMS,
    OWN_ITEMS,
)

_ROLES = {role.value: role for role in Role}
_BREAK = "prompt_cache_breakpoint"
_CALL_OWN = {"caller": "input[].caller", "async": "input[].async"}
_OF_TOOLS = ("type", "id", "status", "role", "tools", "content")
_RESULT_KIND = {"function_call_output": ToolKind.FUNCTION, "custom_tool_call_output": ToolKind.CUSTOM}


@define
class ItemReader:
    """Reads the input items of one request, in order."""

    reading: Reading
    limits: Limits
    late_tools: list[tuple[Any, str]] = field(init=False, factory=list)
    """The definitions of tools that stand among the items, and where."""
    _turns: list[Turn] = field(init=False, factory=list)
    _open: Role | None = field(init=False, default=None)
    """Whose items still go into the last turn: the assistant's, or a user's results."""

    def turns(self, members: Members) -> list[Turn]:
        """The turns of `input`: what the assistant said and called in one go is one, and so are results in a run.

        Raises `ClientError` naming the member that is not as it must be.
        """
        found = members.value.get("input")
        if isinstance(found, str):
            return [Turn(Role.USER, (TextPart(found, where="input"),), where="input")]
        for item in members.objects("input"):
            self._item(item)
        return self._turns

    def _item(self, item: Members) -> None:
        kind = item.text("type", "message" if item.has("role") or not item.has("id") else "item_reference")
        if kind == "message":
            self._message(item)
        elif kind in _RESULT_KIND:
            self._add(Role.USER, self._result(item, _RESULT_KIND[kind]))
        elif kind == "function_call":
            self._add(Role.ASSISTANT, self._call(item, ToolKind.FUNCTION, "arguments"))
        elif kind == "custom_tool_call":
            self._add(Role.ASSISTANT, self._call(item, ToolKind.CUSTOM, "input"))
        elif kind == "reasoning":
            self._add(Role.ASSISTANT, self._reasoning(item))
        else:
            self._add(_role_of(kind), evolve(self._own(item, kind), private={"is_item": True}))

    def _add(self, role: Role, part: Part) -> None:
        """Put a part into the turn that is open for its role, or into a new one."""
        if self._open is role:
            self._turns[-1] = evolve(self._turns[-1], parts=(*self._turns[-1].parts, part))
        else:
            self._turns.append(Turn(role, (part,), where=part.where))
            self._open = role

    def _message(self, item: Members) -> None:
        item.need("role")
        role = self.reading.word(item, "role", _ROLES) or Role.USER
        known = ("type", "role", "content", "id", "status", "phase")
        rest = self.reading.rest(item, known, {})
        item_own = item.but("type", "role", "content")
        self._bare(item)
        if role is not Role.ASSISTANT:
            rest["private"].update(item_own)
            self._turns.append(Turn(role, tuple(self._content(item)), **rest))
            self._open = None
            return
        self.reading.within(item, *known)
        if item.has("phase"):
            self.reading.lose("input[].phase", item.path("phase"))
        whose = {**item_own}
        for part in self._content(item):
            self._add(role, evolve(part, private={**part.private, "item": whose}))

    def _bare(self, item: Members) -> None:
        """What an item is called and how it stands goes up to no other dialect."""
        if item.has("id"):
            self.reading.lose("input[].id", "input[].id")  # one entry for all: every item may have one
        if item.text("status", "completed") != "completed":
            self.reading.lose("input[].status", item.path("status"))

    def _content(self, item: Members) -> Iterator[Part]:
        found = item.value.get("content")
        if isinstance(found, str):
            yield TextPart(found, where=item.path("content"))
            return
        for part in item.objects("content"):
            yield self._part(part)

    def _part(self, part: Members) -> Part:
        kind = part.need("type")
        if (read := _READERS.get(kind)) is None:
            unknown = evolve(self.reading.rows["input[].content[] of unknown type"], reason=f"unknown part {kind!r}")
            return ServerPart(part.value, Loss(part.path("type"), unknown), where=part.where)
        rest = self.reading.rest(part, ("type", "annotations", "logprobs", _BREAK, *_MEMBERS[kind]), {})
        for name in ("annotations", "logprobs"):
            if part.list(name):
                self.reading.lose(f"content[].{name}", part.path(name))
        if kind == "input_file" and part.has("detail"):
            self.reading.lose("content[].detail of a file", part.path("detail"))
        kept = ("annotations", "logprobs", _BREAK, *(("detail",) if kind == "input_file" else ()))
        rest["private"].update({name: part.value[name] for name in kept if part.value.get(name)})
        if kind == "input_file" and part.text("file_url"):
            self.reading.excluded(part, "file_data")
        if kind == "input_audio":
            self.reading.within(part.object("input_audio"), "data", "format")
        hint = part.object(_BREAK)
        self.reading.within(hint, "type", "mode", "ttl")
        cache = None if hint is None else CacheHint(hint.text("ttl"), hint.where)
        return evolve(read(part), cache=cache, **rest)

    def _result(self, item: Members, kind: ToolKind) -> ToolResultPart:
        rest = self.reading.rest(item, ("type", "call_id", "output", "id", "status", "name", "namespace"), _CALL_OWN)
        rest["private"].update(item.but("type", "call_id", "output", *rest["extras"]))
        self._bare(item)
        for name in ("name", "namespace"):
            if item.has(name):
                self.reading.lose("input[].name of a result", item.path(name))
        parts: list[ResultPart] = []
        given = item.parts("output")
        content = (TextPart(given, where=item.path("output")),) if isinstance(given, str) else map(self._part, given)
        for part in content:
            if not isinstance(part, ResultPart):
                raise ClientError.about(f"{part.where}.type", "cannot stand in a tool's result")
            parts.append(part)
        found = tuple(parts)
        return ToolResultPart(item.call_id("call_id", self.limits), unmarked(found), marked(found), kind, **rest)

    def _call(self, item: Members, kind: ToolKind, member: str) -> ToolUsePart:
        known = ("type", "call_id", "name", "namespace", "id", "status", member)
        rest = self.reading.rest(item, known, _CALL_OWN)
        rest["private"].update({name: item.value[name] for name in ("id", "status") if item.has(name)})
        self._bare(item)
        namespace = item.text("namespace")
        if namespace == DEFAULT_NAMESPACE:
            rest["private"]["namespace"], namespace = namespace, ""
        found = item.value.get(member)
        arguments = found if isinstance(found, Mapping) else item.text(member)
        return ToolUsePart(item.call_id("call_id", self.limits), item.need("name"), arguments, kind, namespace, **rest)

    def _reasoning(self, item: Members) -> ReasoningPart:
        self.reading.within(item, "type", "id", "status", "summary", "content", "encrypted_content")
        for part in (*item.objects("summary"), *item.objects("content")):
            self.reading.within(part, "type", "text")
        summary = [part.text("text") for part in item.objects("summary")]
        content = [part.text("text") for part in item.objects("content")]
        text = "\n\n".join(piece for piece in (summary if any(summary) else content) if piece)
        opaque = item.text("encrypted_content")
        private = {"item": dict(item.value)}
        return ReasoningPart(text, opaque, bool(opaque and not text), where=item.where, private=private)

    def _own(self, item: Members, kind: str) -> ServerPart:
        """An item that only this dialect has, or that nobody here knows."""
        if kind in HOSTED_ITEMS:
            return ServerPart(item.value, self.reading.loss("input[] of a hosted tool", item.where), where=item.where)
        if kind not in OWN_ITEMS:
            unknown = evolve(self.reading.rows["input[] of unknown type"], reason=f"unknown item {kind!r}")
            return ServerPart(item.value, Loss(item.path("type"), unknown), where=item.where)
        if kind == "additional_tools":
            self.reading.within(item, *_OF_TOOLS)
            self.reading.excluded(item, "content")
        if kind in ("additional_tools", "tool_search_output"):
            self.late_tools.extend((tool, f"{item.path('tools')}[{at}]") for at, tool in enumerate(item.list("tools")))
        return ServerPart(item.value, self.reading.loss(f"input[] {kind}", item.where), where=item.where)


def _role_of(kind: str) -> Role:
    """Whose item it is that only this dialect has."""
    if kind in INSTRUCTING_ITEMS:
        return Role.DEVELOPER
    return Role.ASSISTANT if kind in ASSISTANT_ITEMS else Role.USER


def _text(part: Members) -> TextPart:
    return TextPart(part.given("text"))


def _refusal(part: Members) -> RefusalPart:
    return RefusalPart(part.text("refusal"))


def _image(part: Members) -> ImagePart:
    source: Source = Stored(part.need("file_id")) if part.has("file_id") else from_url(part.need("image_url"))
    return ImagePart(source, part.text("detail"))


def _file(part: Members) -> DocumentPart:
    name = part.text("filename")
    if part.has("file_id"):
        return DocumentPart(Stored(part.need("file_id")), name)
    url = part.text("file_url")  # it counts, also beside bytes
    return DocumentPart(from_url(url) if url else from_data(part.need("file_data"), name), name)


def _audio(part: Members) -> AudioPart:
    audio = part.object("input_audio")
    if audio is None:
        raise ClientError.about(part.path("input_audio"), "is required")
    return AudioPart(audio.need("data"), audio.need("format"))


_READERS: Mapping[str, Callable[[Members], Part]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "input_text": ("text",),
    "output_text": ("text",),
    "text": ("text",),
    "refusal": ("refusal",),
    "input_image": ("image_url", "file_id", "detail"),
    "input_file": ("file_data", "file_id", "file_url", "filename", "detail"),
    "input_audio": ("input_audio",),
}
"""What we know of each part."""
