"""A Chat stream as the SDKs need it: calls by dense index, identity first, one finish.

The finish ends it, with the sentinel behind it or without. Calls have no end of their own: at a finish they count as
whole, before an error they do not.
"""

from typing import Any

from attrs import define, field

from benchmarks.compared.answer import Answer, Block, count, mapping, mappings, message_of
from benchmarks.compared.frames import frames

REASONING = ("reasoning_content", "reasoning", "reasoning_text")
STOPS = {
    "stop": "end",
    "tool_calls": "tool",
    "function_call": "tool",
    "length": "limit",
    "content_filter": "refusal",
}


@define
class Reader:
    """Reads chunk by chunk."""

    answer: Answer = field(factory=Answer)
    calls: dict[Any, Block] = field(factory=dict)
    refused: bool = False

    def chunk(self, chunk: dict[str, Any]) -> None:
        """Take one chunk."""
        if self.answer.ended:
            self.answer.fault("a chunk behind the end")
        if chunk.get("error"):
            self.answer.error = message_of(chunk["error"])
            return
        choices = chunk.get("choices")
        if not isinstance(chunk.get("id"), str) or not isinstance(choices, list):
            self.answer.fault("a chunk without id or choices")
        for choice in mappings(choices):
            if choice.get("index", 0) == 0:
                self._choice(choice)
        if isinstance(usage := chunk.get("usage"), dict):
            self.answer.tokens = (count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")))

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = mapping(choice.get("delta"))
        text = delta.get("content") or delta.get("refusal")
        reasoning = next((delta[key] for key in REASONING if delta.get(key)), None)
        if self.answer.stop and (text or reasoning or delta.get("tool_calls")):
            self.answer.fault("content behind the finish")
        self.refused |= bool(delta.get("refusal"))
        if isinstance(reasoning, str):
            self._said("reasoning", reasoning)
        if isinstance(text, str):
            self._said("text", text)
        for fragment in mappings(delta.get("tool_calls")):
            self._fragment(fragment)
        if (reason := choice.get("finish_reason")) is not None:
            if self.answer.stop:
                self.answer.fault("a second finish")
            self.answer.stop = STOPS.get(str(reason), str(reason))

    def _said(self, kind: str, text: str) -> None:
        blocks = self.answer.blocks
        if not blocks or blocks[-1].kind != kind:
            blocks.append(Block(kind, closed=True))
        blocks[-1].text += text

    def _fragment(self, fragment: dict[str, Any]) -> None:
        index, function = fragment.get("index"), mapping(fragment.get("function") or fragment.get("custom"))
        if not isinstance(index, int):
            self.answer.fault("a fragment without an index")
        if index not in self.calls:
            if index != len(self.calls):
                self.answer.fault("an index out of turn")
            if not fragment.get("id") or not function.get("name"):
                self.answer.fault("a call without name or id")
            made = Block("call", "", str(function.get("name") or ""), str(fragment.get("id") or ""))
            made.freeform = "custom" in fragment
            self.answer.blocks.append(made)
            self.calls[index] = made
        elif function.get("name"):
            self.answer.fault("a name given twice")
        self.calls[index].text += str(function.get("arguments") or function.get("input") or "")

    def end(self) -> None:
        """The end of the stream: a finish closes the calls, unless an error took it back."""
        if self.refused and self.answer.stop == "end":
            self.answer.stop = "refusal"
        for block in self.calls.values():
            block.closed = bool(self.answer.stop) and not self.answer.error
        if self.answer.ended and not self.answer.stop and not self.answer.error:
            self.answer.fault("an end without a finish")
        self.answer.ended |= bool(self.answer.stop) and not self.answer.error


def read(body: bytes) -> Answer:
    """A Chat stream, read."""
    reader = Reader()
    for _, data in frames(body):
        if data.strip() == b"[DONE]":
            reader.answer.ended = True
        elif (chunk := reader.answer.read_json(data)) is not None:
            reader.chunk(chunk)
    reader.end()
    return reader.answer
