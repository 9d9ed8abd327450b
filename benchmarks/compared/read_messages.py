"""A Messages stream as the SDKs and Claude Code need it: one block open, indexes without a gap, everything closed."""

from typing import Any

from attrs import define, field

from benchmarks.compared.answer import Answer, Block, count, mapping, message_of
from benchmarks.compared.frames import frames

KINDS = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("reasoning", "thinking"),
    "input_json_delta": ("call", "partial_json"),
}
PASSED = {"signature_delta", "citations_delta", "compaction_delta"}
STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool",
    "max_tokens": "limit",
    "model_context_window_exceeded": "limit",
    "refusal": "refusal",
}


@define
class Reader:
    """Reads event by event."""

    answer: Answer = field(factory=Answer)
    started: bool = False
    open: dict[Any, Block | None] = field(factory=dict)
    """The open blocks by index; None is a block of another kind."""
    seen: set[Any] = field(factory=set)

    def event(self, name: str, event: dict[str, Any]) -> None:
        """Take one event."""
        kind = str(event.get("type"))
        if name != kind:
            self.answer.fault("an event without its name")
        if kind == "ping":
            return
        if self.answer.ended or self.answer.error:
            self.answer.fault("an event behind the end")
        if kind == "error":
            self.answer.error = message_of(event.get("error"))
        elif kind == "message_start":
            self._start(event)
        elif kind in (table := self._table()):
            if not self.started:
                self.answer.fault("an event before the start")
            table[kind](event)

    def _table(self) -> dict[str, Any]:
        return {
            "content_block_start": self._block,
            "content_block_delta": self._delta,
            "content_block_stop": self._stop,
            "message_delta": self._message,
            "message_stop": self._end,
        }

    def _start(self, event: dict[str, Any]) -> None:
        if self.started:
            self.answer.fault("a second start")
        self.started = True
        message = event.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
            self.answer.fault("a start without message or usage")

    def _block(self, event: dict[str, Any]) -> None:
        index, block = event.get("index"), mapping(event.get("content_block"))
        if self.open:
            self.answer.fault("two blocks open")
        if index in self.seen:
            self.answer.fault("an index used twice")
        if index != len(self.seen):
            self.answer.fault("an index out of turn")
        self.seen.add(index)
        kind = KINDS.get(str(block.get("type")))
        self.open[index] = made = Block(kind) if kind else None
        if made is None:
            return
        made.text = str(block.get("text") or block.get("thinking") or "")
        if kind == "call":
            made.name, made.id = str(block.get("name") or ""), str(block.get("id") or "")
            if not made.name or not made.id:
                self.answer.fault("a call without name or id")
        self.answer.blocks.append(made)

    def _delta(self, event: dict[str, Any]) -> None:
        index, delta = event.get("index"), mapping(event.get("delta"))
        if index not in self.open:
            self.answer.fault("a delta to a closed block" if index in self.seen else "a delta to no block")
            return
        block, kind = self.open[index], str(delta.get("type"))
        if block is None or kind in PASSED:
            return
        wanted, member = DELTAS.get(kind, ("", ""))
        if wanted != block.kind:
            self.answer.fault("a delta that does not fit its block")
            return
        block.text += str(delta.get(member) or "")

    def _stop(self, event: dict[str, Any]) -> None:
        index = event.get("index")
        if index not in self.open:
            self.answer.fault("a stop of no open block")
            return
        if (block := self.open.pop(index)) is not None:
            block.closed = True

    def _message(self, event: dict[str, Any]) -> None:
        if self.open:
            self.answer.fault("an open block at the end")
        reason = mapping(event.get("delta")).get("stop_reason")
        if reason is not None:
            self.answer.stop = STOPS.get(str(reason), str(reason))
        usage = mapping(event.get("usage"))
        into = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        self.answer.tokens = (sum(count(usage.get(key)) for key in into), count(usage.get("output_tokens")))

    def _end(self, event: dict[str, Any]) -> None:
        if self.open:
            self.answer.fault("an open block at the end")
        if not self.answer.stop:
            self.answer.fault("an end without a stop reason")
        self.answer.ended = True


def read(body: bytes) -> Answer:
    """A Messages stream, read."""
    reader = Reader()
    for name, data in frames(body):
        if data.strip() == b"[DONE]":
            reader.answer.fault("Chat's terminal")
        elif (event := reader.answer.read_json(data)) is not None:
            reader.event(name, event)
    return reader.answer
