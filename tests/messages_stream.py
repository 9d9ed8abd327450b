"""Messages streams for the tests, as a server writes them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.events import Carry, Event, Frame
from pipeline.testing import EOF, play
from stages.dialects.messages.normalize import MessagesNormalizer

Json = dict[str, Any]


def event(kind: str, **members: Any) -> Json:
    """One event."""
    return {"type": kind, **members}


def frame(item: Any, name: bytes = b"") -> Frame:
    """A frame with that payload: JSON for what is no bytes."""
    return Frame(item if isinstance(item, bytes) else json.dumps(item).encode(), name)


def message(*content: Json, **members: Any) -> Json:
    """A message object, as it begins if nothing is said of its end."""
    fixed: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    return {**fixed, "stop_reason": None, "stop_sequence": None, **members}


def begin(**members: Any) -> Json:
    """The first event."""
    return event("message_start", message=message(**members))


def start(block: Any, index: Any = 0) -> Json:
    """A block begins."""
    return event("content_block_start", index=index, content_block=block)


def delta(kind: str, index: Any = 0, **members: Any) -> Json:
    """A delta."""
    return event("content_block_delta", index=index, delta={"type": kind, **members})


def text(said: Any, index: Any = 0) -> Json:
    """More text."""
    return delta("text_delta", index, text=said)


def thinking(said: Any, index: Any = 0) -> Json:
    """More thinking."""
    return delta("thinking_delta", index, thinking=said)


def signature(blob: Any, index: Any = 0) -> Json:
    """The signature of thinking."""
    return delta("signature_delta", index, signature=blob)


def given(said: Any, index: Any = 0) -> Json:
    """More of a call's input."""
    return delta("input_json_delta", index, partial_json=said)


def citation(note: Any, index: Any = 0) -> Json:
    """A citation."""
    return delta("citations_delta", index, citation=note)


def stop(index: Any = 0) -> Json:
    """A block ends."""
    return event("content_block_stop", index=index)


def told(reason: Any = "end_turn", usage: Any = None, **members: Any) -> Json:
    """How the message ends."""
    said = {"stop_reason": reason, "stop_sequence": None, **members}
    return event("message_delta", delta=said, **({} if usage is None else {"usage": usage}))


END = event("message_stop")

TEXT: Json = {"type": "text", "text": ""}
THINKING: Json = {"type": "thinking", "thinking": "", "signature": ""}


def call(id: Any = "a", name: Any = "f", input: Any = None, **members: Any) -> Json:  # noqa: A002
    """A call as it begins."""
    return {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input, **members}


def search(id: str = "s", input: Any = None) -> Json:  # noqa: A002
    """A search that the provider runs, as it begins."""
    return {"type": "server_tool_use", "id": id, "name": "web_search", "input": {} if input is None else input}


def normalized(*items: Any, stage: MessagesNormalizer | None = None) -> list[list[Event]]:
    """What each of several frames brings, and the end of the stream."""
    frames = [item if isinstance(item, Frame) else frame(item) for item in items]
    return play(stage or MessagesNormalizer(), *frames, EOF)


def events(*items: Any, stage: MessagesNormalizer | None = None) -> list[Event]:
    """All of them in one list, without the frames that bring nothing."""
    return [one for step in normalized(*items, stage=stage) for one in step if not isinstance(one, Carry)]


def sse(items: Iterable[Json]) -> bytes:
    """The bytes of a stream."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (item["type"].encode(), json.dumps(item).encode()) for item in items)


def told_in_deltas(block: Json, index: int, cuts: Sequence[int] = ()) -> list[Json]:
    """The events that a server tells a whole block in; its text is cut at these places."""
    kind = block["type"]
    if kind == "text":
        notes = [citation(note, index) for note in block.get("citations", ())]
        return [start(TEXT, index), *(text(piece, index) for piece in pieces(block["text"], cuts)), *notes, stop(index)]
    if kind == "thinking":
        said = [thinking(piece, index) for piece in pieces(block["thinking"], cuts)]
        signed = [signature(block["signature"], index)] if block["signature"] else []
        return [start(THINKING, index), *said, *signed, stop(index)]
    if kind in ("tool_use", "server_tool_use"):
        whole = json.dumps(block["input"]) if block["input"] else ""
        inputs = [given(piece, index) for piece in pieces(whole, cuts)]
        return [start({**block, "input": {}}, index), *inputs, stop(index)]
    return [start(block, index), stop(index)]


def pieces(whole: str, cuts: Sequence[int]) -> list[str]:
    """A text cut at these places."""
    places = sorted(min(place, len(whole)) for place in cuts)
    return [whole[begin:end] for begin, end in zip([0, *places], [*places, len(whole)], strict=True)]
