"""The calls of an output."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import define, field

from pipeline.arguments import Arguments
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import ArgumentsDelta, Event, ToolKind, ToolUseBlock
from pipeline.jsontext import dumps, exact, is_object, size_of
from pipeline.word import word
from stages.dialects.responses.items import CUT_STATUSES, Item
from stages.dialects.responses.voice import Said, Voice
from stages.dialects.responses.within import COMMON

CALL_KINDS = {"function_call": ToolKind.FUNCTION, "custom_tool_call": ToolKind.CUSTOM}
MEMBERS = {ToolKind.FUNCTION: "arguments", ToolKind.CUSTOM: "input"}
"""Where the text of a call stands."""
READ = {kind: COMMON | {"call_id", "name", "namespace", "caller", member} for kind, member in MEMBERS.items()}
"""The members of a call that are read."""
ARGUMENTS: Final = "arguments"
"""What an announcement tells of a call's text, whatever it is called there."""
DIRECT: Final = {"type": "direct"}
"""The caller of a call that the model makes itself."""


@define(eq=False)
class CallItem(Item):
    """A call of a tool that the client runs.

    It begins when its name is known; what came before waits, within a bound. It ends as soon as the server says that
    it is whole, and it is. Until the end of the message nothing is said of a call that was cut: an error may follow,
    and then the call stays open.
    """

    kind: ToolKind = ToolKind.FUNCTION
    voice: Voice = field(init=False, factory=lambda: Voice(ArgumentsDelta, keeps=True))
    call_id: str = field(init=False, default="")
    """What its result will name."""
    _name: str = field(init=False, default="")
    _namespace: str = field(init=False, default="")
    _waiting: list[str] = field(init=False, factory=list)
    _cut: bool = field(init=False, default=False)
    """The server said that it is not whole."""

    def note(self, item: Mapping[str, Any]) -> None:
        """Record what of it is not read; that the model made it is no news."""
        told = CALL_KINDS.get(word(item.get("type")), self.kind)
        self.writer.unread.note(item, READ[told], "output[].")
        if (caller := item.get("caller")) and caller != DIRECT:
            self.writer.lose("output[].caller", "no event carries it")

    def add(self, text: str, out: list[Event]) -> Said | None:
        """More of its arguments."""
        if self.voice.stopped:
            if text.strip():
                self.writer.lose("arguments", "they came after the end of their call")
            return None
        if shown := self.voice.add(0, self.behind(ARGUMENTS, 0, text) or ""):
            self._write(self.voice, shown, out)
        return self.voice.said(0) if self.voice.index >= 0 and not self.waiting else None

    def arguments_done(self, event: Mapping[str, Any], out: list[Event]) -> None:
        """Its arguments are whole."""
        self._learn(event)
        whole = self._text(event)
        self._rest(self.voice, self.voice.rest(0, whole), out, whole)
        if self.voice.index >= 0 and self.kind is ToolKind.FUNCTION and is_object(whole, self.writer.limits.json_depth):
            self._stop(self.voice, out, True)

    def announce(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """Its name, and its id."""
        self._learn(item)
        if self._name:
            self._open(out)

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """Its name, and what of its arguments was not said."""
        if self.voice.index < 0:
            self.kind = CALL_KINDS.get(str(item.get("type")), self.kind)
        self.announce(item, out)
        whole = self._text(item)
        self._rest(self.voice, self.voice.rest(0, whole), out, whole)

    def done(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """It ends if it is whole, and told to be; else the end of the message settles it."""
        self.ended = True
        status, whole = word(item.get("status")), self._text(item)
        self._cut = status in CUT_STATUSES
        if self._cut or self.voice.index < 0 or not whole:
            return  # what was cut, or is not told whole, may still be told more
        said_whole = self.kind is ToolKind.CUSTOM or status == "completed"
        if said_whole or is_object(whole, self.writer.limits.json_depth):
            self._stop(self.voice, out, True)

    def foretold(self, item: Mapping[str, Any]) -> None:
        """Its arguments, if nothing was said of them; behind an object nothing can stand."""
        if not self.voice.spoke(0):
            text = self._text(item)
            whole = self.kind is ToolKind.FUNCTION and is_object(text, self.writer.limits.json_depth)
            self.expect(ARGUMENTS, 0, text, whole=whole)

    def flush(self, out: list[Event]) -> None:
        """What was announced and not told again, and halves of characters."""
        if self.voice.index >= 0 and (first := self.forget(ARGUMENTS, 0)) is not None:
            self._write(self.voice, self.voice.add(0, first.text), out)
        super().flush(out)

    def check(self) -> None:
        """Without a name it cannot have ended, and what waits for it may be another call's."""
        if self.voice.index < 0 and not self._name:
            raise UpstreamError("a tool call came without a name", code="nameless_tool_call")

    def end(self, out: list[Event], *, complete: bool) -> None:
        """It ends, whole or not; without a name it never began."""
        if self.voice.index < 0:
            if not self._name:
                self.drop()
                return
            self._open(out)
        self.flush(out)
        self._stop(self.voice, out, complete and not self._cut)

    def drop(self) -> None:
        """What waited for an identity that did not come."""
        if self.voice.index < 0 and not self.voice.stopped:
            self.voice.stopped = True
            self.writer.lose("call", "cut before its name came")
            self._release()

    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether the name and the arguments may be the same."""
        told = item.get("name")
        return (not self._name or told in (self._name, None, "")) and self.voice.agrees([self._text(item)])

    def voices(self) -> Iterable[Voice]:
        """Its arguments."""
        return (self.voice,)

    def _learn(self, said: Mapping[str, Any]) -> None:
        """An id and a name, once they are told; an empty one says nothing."""
        self.call_id = self.call_id or _word(said.get("call_id"))
        self._name = self._name or _word(said.get("name"))
        self._namespace = self._namespace or _word(said.get("namespace"))
        self.writer.ids.check(self.call_id, self._name)

    def _open(self, out: list[Event]) -> None:
        if self.voice.index >= 0:
            return
        name = self.call_id or self.id
        self.writer.ids.check(name)
        name = self.writer.ids.unique(name)
        kind = self.writer.map.kind(self._name, self.kind)
        self.voice.index = self.writer.open(ToolUseBlock(name, self._name, kind, self._namespace), out)
        self.writer.called = True
        out.extend(ArgumentsDelta(self.voice.index, text) for text in self._waiting)
        self._release()

    def _rest(self, voice: Voice, more: str | None, out: list[Event], whole: str = "") -> None:
        """Nobody may run a call whose arguments are not those that it ended with."""
        if whole:
            self.forget_all(ARGUMENTS)
        if more is None and not voice.stopped and self._differs(voice.said(0).text(), whole):
            raise UpstreamError(
                f"the arguments that came for the call of {self._name!r} are not those that it ended with",
                kind=ErrorKind.INVALID_TOOL_ARGUMENTS,
                code="invalid_tool_arguments",
            )
        super()._rest(voice, more, out)

    def _differs(self, said: str, whole: str) -> bool:
        """Whether whole arguments are others than those said, and not only written in another way."""
        if self.kind is ToolKind.CUSTOM:
            return not said.startswith(whole)
        told = self._meant(whole)
        return told is not None and self._meant(said) != told

    def _meant(self, text: str) -> Any:
        """The object that is made of arguments on their way to a client; None if none is."""
        arguments = Arguments(self.writer.limits)
        written = arguments.feed(text)
        rest, is_object = arguments.close()
        return exact(written + rest) if is_object else None

    def _stop(self, voice: Voice, out: list[Event], complete: bool) -> None:
        super()._stop(voice, out, complete)
        voice.forget()

    def _write(self, voice: Voice, text: str, out: list[Event]) -> None:
        if voice.index < 0:
            self._wait(text)
        elif text.strip() or not voice.stopped:
            super()._write(voice, text, out)

    def _wait(self, text: str) -> None:
        self._waiting.append(text)
        self.writer.held += size_of(text)
        bound = self.writer.limits.held_bytes
        if self.writer.held > bound:
            raise LimitExceeded(f"more than {bound} bytes of arguments wait for their call's name", code="held_bytes")

    def _release(self) -> None:
        self.writer.held -= sum(map(size_of, self._waiting))
        self._waiting.clear()

    def _text(self, said: Mapping[str, Any]) -> str:
        """The arguments that a snapshot tells, as text."""
        value = said.get(MEMBERS[self.kind])
        return dumps(value).decode() if isinstance(value, dict | list) else value if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) and not value.isspace() else ""
