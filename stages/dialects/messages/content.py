"""The content of a message while it is told: which block a delta belongs to."""

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define, field

from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import Event
from stages.dialects.messages.blocks import (
    STAGE,
    CallPart,
    HostedPart,
    Part,
    SpokenPart,
    TextPart,
    ThinkingPart,
    Writer,
    begin,
    open_text,
    open_thinking,
)
from stages.dialects.messages.words import INPUT, TEXT

Kind = TypeVar("Kind", bound=Part)


@define(eq=False)
class Content:
    """The blocks of a message by the index that the server gives them, which may be any, or none.

    A delta whose block never began, has ended or is of another kind begins one of its own.
    """

    writer: Writer
    _parts: dict[int | None, list[Part]] = field(init=False, factory=dict)
    """The blocks that were told under each index: its own first, then those that its deltas began."""
    _open: list[Part] = field(init=False, factory=list)
    """The blocks that have not ended."""
    _last: int | None = field(init=False, default=None)
    """The index under which a block began last."""

    def begin(self, key: int | None, block: Mapping[str, Any], out: list[Event]) -> None:
        """A block begins. What is open under its index ends; one that tells no kind is left to its deltas.

        Raises `LimitExceeded` if there are too many.
        """
        if len(self._parts) >= (bound := self.writer.limits.blocks):
            raise LimitExceeded(f"the message has more than {bound} blocks", code="blocks")
        self.stop(key, out)
        for part in self._open:
            part.passed(out)
        self._open = [part for part in self._open if not part.stopped]
        self._last = key
        kind = block.get("type")
        if not isinstance(kind, str):
            kind = next((name for name in ("text", "thinking") if name in block), "")
        self._parts[key] = [begin(kind, block, self.writer, out)] if kind else []
        self._open += self._parts[key]

    def hosted(self, key: int | None) -> HostedPart | None:
        """The open block of a tool that the provider runs, if that is what stands there."""
        return self._of(key, HostedPart)

    def say(self, key: int | None, kind: str, text: str, out: list[Event]) -> SpokenPart | None:
        """More of the text that a delta of that kind goes on. The block whose text may go on without thought, if any.

        Raises `UpstreamError` for the input of a call that never began.
        """
        part: SpokenPart | None
        if kind == INPUT:
            if (part := self._of(key, CallPart)) is None:
                self._lose_input(key, text)
                return None
        elif not text:
            return None
        else:
            part = self.text(key, out) if kind == TEXT else self._thinking(key, out)
        part.say(text, out)
        return part if part.goes_on else None

    def text(self, key: int | None, out: list[Event]) -> TextPart:
        """The text that a delta goes on, or begins."""
        return self._of(key, TextPart) or self._beside(key, open_text(self.writer, out))

    def sign(self, key: int | None, signature: Any, out: list[Event]) -> None:
        """The signature of the thinking that is open there."""
        thinking = self._of(key, ThinkingPart)
        if thinking is not None and isinstance(signature, str):
            thinking.sign(signature, out)
        else:
            self.writer.lose("signature", "no text, or no thinking that it could belong to")

    def stop(self, key: int | None, out: list[Event]) -> None:
        """What is open there ends."""
        for part in self._parts.get(self._key(key), ()):
            if not part.stopped:
                part.stop(out)

    def settle(self, out: list[Event], *, complete: bool) -> None:
        """At the end of the message, what is open ends. `complete`: no limit cut it short."""
        for part in self._open:
            part.settle(out, complete=complete)

    def cut(self, out: list[Event]) -> None:
        """Before an error: what waits and can be written is."""
        for part in self._open:
            part.cut(out)

    def _key(self, key: int | None) -> int | None:
        return self._last if key is None else key

    def _of(self, key: int | None, kind: type[Kind]) -> Kind | None:
        """The open block of a kind that was told under an index."""
        for part in self._parts.get(self._key(key), ()):
            if isinstance(part, kind) and not part.stopped:
                return part
        return None

    def _thinking(self, key: int | None, out: list[Event]) -> ThinkingPart:
        """The thinking that a delta goes on, or begins."""
        return self._of(key, ThinkingPart) or self._beside(key, open_thinking(self.writer, out, splittable=True))

    def _beside(self, key: int | None, part: Kind) -> Kind:
        """A block that no event began."""
        self.writer.ledger.record(STAGE, "content_block_start", "mended", "a delta came whose block was not open")
        self._parts.setdefault(self._key(key), []).append(part)
        self._open.append(part)
        return part

    def _lose_input(self, key: int | None, text: str) -> None:
        """Input that no open call has."""
        if not text.strip():
            return
        if not any(isinstance(part, CallPart | HostedPart) for part in self._parts.get(self._key(key), ())):
            raise UpstreamError("a tool call's input came, and no call", code="nameless_tool_call")
        self.writer.lose("input", "it came after the end of its call")
