"""Responses streams for the tests, as a server writes them."""

import json
from collections.abc import Sequence
from typing import Any

from pipeline.events import Event, Frame, MessageDelta, MessageStart, MessageStop, StopReason
from pipeline.testing import EOF, play
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.normalize import ResponsesNormalizer

Json = dict[str, Any]


def event(kind: str, **members: Any) -> Json:
    """One event; what is None is left out."""
    return {"type": kind, **{name: value for name, value in members.items() if value is not None}}


def frame(item: Any, name: bytes = b"") -> Frame:
    """A frame with that payload: JSON for what is no bytes."""
    return Frame(item if isinstance(item, bytes) else json.dumps(item).encode(), name)


def response(status: str = "completed", output: Sequence[Json] = (), **members: Any) -> Json:
    """The response object."""
    return {"id": "resp_1", "object": "response", "model": "m", "status": status, "output": list(output), **members}


def created() -> Json:
    """The first event."""
    return event("response.created", response=response("in_progress"))


def terminal(status: str = "completed", output: Sequence[Json] = (), **members: Any) -> Json:
    """The last event."""
    return event(f"response.{status}", response=response(status, output, **members))


def message(*texts: str, id: str = "m1", **members: Any) -> Json:  # noqa: A002
    """A message item with a part for each text."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content, **members}


def refusal(text: str, id: str = "m1") -> Json:  # noqa: A002
    """A message item that refuses."""
    return {**message(id=id), "content": [{"type": "refusal", "refusal": text}]}


def reasoning(*texts: str, id: str = "rs1", blob: str = "", content: Sequence[str] = ()) -> Json:  # noqa: A002
    """A reasoning item: its summary, its raw text, its blob."""
    item: Json = {"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": text} for text in texts]}
    if content:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
    return {**item, "encrypted_content": blob} if blob else item


def call(arguments: Any = "", name: str = "f", call_id: str = "a", id: str = "fc1", **members: Any) -> Json:  # noqa: A002
    """A function call."""
    item = {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments}
    return {**item, "status": "completed", **members}


def custom(text: str = "", name: str = "f", call_id: str = "a", id: str = "ctc1", **members: Any) -> Json:  # noqa: A002
    """A call of a freeform tool."""
    return {"type": "custom_tool_call", "id": id, "call_id": call_id, "name": name, "input": text, **members}


def added(item: Json, place: int | None = 0) -> Json:
    """The announcement of an item."""
    return event("response.output_item.added", output_index=place, item=item)


def done(item: Json, place: int | None = 0) -> Json:
    """An item as it is at its end."""
    return event("response.output_item.done", output_index=place, item=item)


def text(delta: Any, place: int | None = 0, part: int | None = 0, id: str | None = "m1") -> Json:  # noqa: A002
    """More visible text."""
    return event("response.output_text.delta", output_index=place, item_id=id, content_index=part, delta=delta)


def summary(delta: str, place: int | None = 0, part: int | None = 0, id: str | None = "rs1") -> Json:  # noqa: A002
    """More of a reasoning summary."""
    kind = "response.reasoning_summary_text.delta"
    return event(kind, output_index=place, item_id=id, summary_index=part, delta=delta)


def raw(delta: str, place: int | None = 0, part: int | None = 0, id: str | None = "rs1") -> Json:  # noqa: A002
    """More of raw reasoning."""
    return event("response.reasoning_text.delta", output_index=place, item_id=id, content_index=part, delta=delta)


def arguments(delta: str, place: int | None = 0, id: str | None = "fc1") -> Json:  # noqa: A002
    """More of a function call's arguments."""
    return event("response.function_call_arguments.delta", output_index=place, item_id=id, delta=delta)


def arguments_done(whole: Any, place: int | None = 0, id: str | None = "fc1", **members: Any) -> Json:  # noqa: A002
    """A function call's arguments, whole."""
    kind = "response.function_call_arguments.done"
    return event(kind, output_index=place, item_id=id, arguments=whole, **members)


def normalized(*items: Any, stage: ResponsesNormalizer | None = None) -> list[list[Event]]:
    """What each frame, and then the end, makes."""
    return play(stage or ResponsesNormalizer(), *(frame(item) for item in items), EOF)


def events(*items: Any, stage: ResponsesNormalizer | None = None) -> list[Event]:
    """All that these frames, and then the end, make."""
    return [made for step in normalized(*items, stage=stage) for made in step]


# What the encoder writes

START = MessageStart("c1", "m")
END: list[Event] = [MessageDelta(StopReason.END_TURN), MessageStop()]


def encoder(**options: Any) -> ResponsesEncoder:
    """An encoder whose clock stands still."""
    return ResponsesEncoder(clock=lambda: 7.9, **options)


def told(*events: Event, stage: ResponsesEncoder | None = None) -> list[Json]:
    """The events that these are written as; their names are their types, and their numbers have no gap."""
    frames = [frame for step in play(stage or encoder(), *events, EOF) for frame in step]
    written: list[Json] = [json.loads(frame.data) for frame in frames]
    assert [frame.name.decode() for frame in frames] == [event["type"] for event in written]
    assert [event.pop("sequence_number") for event in written] == list(range(len(written)))
    return written


def between(*events: Event, stage: ResponsesEncoder | None = None) -> list[Json]:
    """What is written between the start and the end of a message."""
    return told(START, *events, *END, stage=stage)[2:-1]


def kinds(written: list[Json]) -> list[str]:
    """Their types, without what all of them begin with."""
    return [event["type"].removeprefix("response.") for event in written]


def ended(*events: Event, stage: ResponsesEncoder | None = None) -> Json:
    """The response of the terminal."""
    whole: Json = told(START, *events, stage=stage)[-1]["response"]
    return whole
