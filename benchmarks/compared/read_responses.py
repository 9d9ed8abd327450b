"""A Responses stream as the SDKs and Codex need it: each item added, filled while it is open, done, and in the end."""

from typing import Any

from attrs import define, field

from benchmarks.compared.answer import Answer, Block, count, mapping, mappings, message_of
from benchmarks.compared.frames import frames

KINDS = {"message": "text", "reasoning": "reasoning", "function_call": "call", "custom_tool_call": "call"}
DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "call",
}
TERMINALS = {"response.completed", "response.incomplete", "response.failed"}
PART_DELTAS = {"response.output_text.delta", "response.refusal.delta"}
LIMITS = {"max_output_tokens": "limit", "content_filter": "refusal"}


@define
class Item:
    """One output item under way."""

    block: Block | None
    """None for a kind that is not read."""
    parts: set[Any] = field(factory=set)


@define
class Reader:
    """Reads event by event."""

    answer: Answer = field(factory=Answer)
    created: bool = False
    number: int | None = None
    open: dict[Any, Item] = field(factory=dict)
    seen: set[Any] = field(factory=set)
    refused: bool = False

    def event(self, name: str, event: dict[str, Any]) -> None:
        """Take one event."""
        kind = str(event.get("type"))
        if name and name != kind:
            self.answer.fault("an event under another name")
        if self.answer.ended or self.answer.error:
            self.answer.fault("an event behind the end")
        self._numbered(event.get("sequence_number"))
        if kind == "error":
            self.answer.error = message_of(event.get("error") or event)
        elif kind == "response.created":
            self.created = True
        elif not self.created and kind != "response.failed":
            self.answer.fault("an event before the start")
        if kind == "response.output_item.added":
            self._added(event)
        elif kind == "response.content_part.added":
            self._part(event)
        elif kind in DELTAS:
            self._delta(kind, event)
        elif kind == "response.output_item.done":
            self._done(event)
        elif kind in TERMINALS:
            self._terminal(kind, mapping(event.get("response")))

    def _numbered(self, number: Any) -> None:
        if not isinstance(number, int):
            return
        if self.number is not None and number <= self.number:
            self.answer.fault("sequence numbers that do not rise")
        self.number = number

    def _added(self, event: dict[str, Any]) -> None:
        index, item = event.get("output_index"), mapping(event.get("item"))
        if index in self.seen:
            self.answer.fault("an index used twice")
        self.seen.add(index)
        kind = KINDS.get(str(item.get("type")))
        made = Block(kind) if kind else None
        if made is not None:
            if kind == "call":
                made.name, made.id = str(item.get("name") or ""), str(item.get("call_id") or "")
                made.freeform = item.get("type") == "custom_tool_call"
                if not made.name or not made.id:
                    self.answer.fault("a call without name or id")
            self.answer.blocks.append(made)
        self.open[index] = Item(made)

    def _part(self, event: dict[str, Any]) -> None:
        if (item := self.open.get(event.get("output_index"))) is None:
            self.answer.fault("a part of no open item")
        else:
            item.parts.add(event.get("content_index"))

    def _delta(self, kind: str, event: dict[str, Any]) -> None:
        index = event.get("output_index")
        if (item := self.open.get(index)) is None:
            self.answer.fault("a delta to a closed item" if index in self.seen else "a delta to no item")
            return
        if kind in PART_DELTAS and event.get("content_index") not in item.parts:
            self.answer.fault("a delta to no part")
        self.refused |= kind == "response.refusal.delta"
        if item.block is None:
            return
        if item.block.kind != DELTAS[kind]:
            self.answer.fault("a delta that does not fit its item")
            return
        item.block.text += str(event.get("delta") or "")

    def _done(self, event: dict[str, Any]) -> None:
        index, item = event.get("output_index"), mapping(event.get("item"))
        known = self.open.pop(index, None)
        if known is None:
            self.answer.fault("an item done that is not open")
            return
        if (block := known.block) is None:
            return
        block.closed = item.get("status") != "incomplete"
        whole = content(item)
        if block.text and whole != block.text:
            self.answer.fault("an item done with other content than its deltas")
        block.text = block.text or whole

    def _terminal(self, kind: str, response: dict[str, Any]) -> None:
        answer = self.answer
        if kind == "response.failed":
            answer.error = message_of(response.get("error"))
            return
        answer.ended = True
        if self.open:
            answer.fault("an open item at the end")
        output = response.get("output")
        if not response.get("id"):
            answer.fault("an end without the response")
        written = [block.text for block in answer.blocks if block.kind != "reasoning" and block.text]
        if isinstance(output, list) and output and written:
            kinds = [item for item in mappings(output) if KINDS.get(str(item.get("type"))) in ("text", "call")]
            if [text for text in map(content, kinds) if text] != written:
                answer.fault("an end with other content than its items")
        if kind == "response.incomplete":
            reason = str(mapping(response.get("incomplete_details")).get("reason"))
            answer.stop = LIMITS.get(reason, reason)
        else:
            answer.stop = "refusal" if self.refused else "tool" if answer.runnable else "end"
        if isinstance(usage := response.get("usage"), dict):
            answer.tokens = (count(usage.get("input_tokens")), count(usage.get("output_tokens")))


def content(item: dict[str, Any]) -> str:
    """The text of an item, or the arguments of a call."""
    kind = KINDS.get(str(item.get("type")))
    if kind == "call":
        return str(item.get("arguments") or item.get("input") or "")
    members = ("summary", "content") if kind == "reasoning" else ("content",)
    parts = [part for member in members for part in mappings(item.get(member))]
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def read(body: bytes) -> Answer:
    """A Responses stream, read."""
    reader = Reader()
    for name, data in frames(body):
        if data.strip() != b"[DONE]" and (event := reader.answer.read_json(data)) is not None:
            reader.event(name, event)
    return reader.answer
