"""A Responses client that makes of a stream what it says, and minds its law (dialects.md, A3.2)."""

import json
import re
from typing import Any

from attrs import define, field

Json = dict[str, Any]

TERMINALS = {"response.completed", "response.incomplete", "response.failed"}
DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "tool",
    "response.custom_tool_call_input.delta": "tool",
}

MINTED = re.compile(rb"call_[0-9a-f]{24}|(?<=resp_)[0-9a-f]{32}")
"""Ids that we make."""


@define
class Heard:
    """A Responses stream, read: items as `[kind, text]` or `["tool", name, text, id, done]`."""

    blocks: list[list[Any]] = field(factory=list)
    response: Json = field(factory=dict)
    """The response as the terminal tells it."""
    blobs: list[str] = field(factory=list)
    """The encrypted contents, in order."""

    @property
    def status(self) -> str:
        """How it ended."""
        return str(self.response["status"])


def events_of(raw: bytes) -> list[Json]:
    """The events of a stream, each checked for its framing and its number."""
    assert raw.endswith(b"\n\n"), "the stream ends inside an event"
    events = []
    for number, block in enumerate(raw[:-2].split(b"\n\n")):
        name, data = block.split(b"\n")
        event = json.loads(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        assert event["sequence_number"] == number
        events.append(event)
    return events


def heard(raw: bytes) -> Heard:
    """Read a Responses stream: what its deltas say is what its items and its terminal tell."""
    said = Heard()
    events = events_of(raw)
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] for event in events if event["type"] in TERMINALS] == [events[-1]["type"]]
    done: list[Json] = []
    open_: set[int] = set()
    for event in events:
        place = event.get("output_index", -1)
        if event["type"] == "response.output_item.added":
            assert place == len(said.blocks)
            open_.add(place)
            item = event["item"]
            call = "call_id" in item
            said.blocks.append(["tool", item["name"], "", item["call_id"], False] if call else ["", ""])
        elif event["type"] in DELTAS:
            assert place in open_
            _say(said.blocks[place], DELTAS[event["type"]], event["delta"])
        elif event["type"] == "response.output_item.done":
            open_.remove(place)
            _check(said.blocks[place], event["item"], said)
            done.append(event["item"])
    said.response = events[-1]["response"]
    assert said.response["output"] == done
    assert all(said.blocks[place][0] == "tool" for place in open_), "only a call that was cut is left open"
    return said


def _say(block: list[Any], kind: str, text: str) -> None:
    at = 2 if kind == "tool" else 1
    assert block[0] in ("", kind)
    block[0] = kind
    block[at] += text


def _check(block: list[Any], item: Json, said: Heard) -> None:
    """An item at its end says what its deltas said."""
    if block[0] == "tool":
        assert item.get("arguments", item.get("input")) == block[2]
        block[4] = item["status"] == "completed"
        return
    parts = [*item.get("summary", ()), *item.get("content", ())]
    assert "".join(part.get("text", part.get("refusal", "")) for part in parts) == block[1]
    if item["type"] == "reasoning":
        block[0] = "reasoning"
        said.blobs += [item["encrypted_content"]] if "encrypted_content" in item else []


def same_clock(raw: bytes) -> bytes:
    """A stream without the time it was made at, minted ids replaced by their number."""
    seen: dict[bytes, bytes] = {}
    raw = re.sub(rb'"created_at":[0-9]+', b'"created_at":0', raw)
    return MINTED.sub(lambda it: seen.setdefault(it.group(), b"id%d" % len(seen)), raw)
