"""Reasoning in tags over one dialect itself: what has no text between its parts leaves it one, streamed as whole."""

import json
from typing import Any

import pytest

from pipeline.dialect import NO_REQUEST, dialect
from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    StopReason,
    TextBlock,
    TextDelta,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from stages.recipe import default_chain
from stages.sse import SSEEncoder

DIALECTS = ("chat", "messages", "responses")
UNKNOWN = b'event: odd\ndata: {"type":"odd","object":"odd"}\n\n'


def upstream(name: str, *texts: list[str]) -> list[bytes]:
    """The frames of an answer with these blocks of text, each in its deltas."""
    events: list[Event] = [MessageStart("id1", "m", Usage(3))]
    for index, parts in enumerate(texts):
        events += [BlockStart(index, TextBlock()), *(TextDelta(index, part) for part in parts), BlockStop(index)]
    events += [MessageDelta(StopReason.END_TURN, None, Usage(3, output=5)), MessageStop()]
    encoder = dialect(name).encoder(facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS)
    frames = [frame for event in events for frame in encoder.receive([event])]
    return [b"".join(SSEEncoder().receive([frame])) for frame in [*frames, *encoder.receive_eof()]]


def read(name: str, frames: list[bytes]) -> list[tuple[str, str]]:
    """What a client of the same dialect reads: the blocks of reasoning and of text."""
    chain = default_chain(dialect(name), dialect(name))
    raw = b"".join([*(made for frame in frames for made in chain.receive([frame])), *chain.receive_eof()])
    again = default_chain(dialect(name), dialect("messages"))
    shown = b"".join([*again.receive([raw]), *again.receive_eof()])
    found: dict[int, tuple[str, str]] = {}
    for line in shown.decode().splitlines():
        event: dict[str, Any] = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "content_block_start":
            found[event["index"]] = (event["content_block"]["type"], "")
        elif event.get("type") == "content_block_delta" and "signature" not in event["delta"]:
            kind, text = found[event["index"]]
            delta = event["delta"]
            found[event["index"]] = (kind, text + (delta.get("thinking") or delta.get("text") or ""))
    return [*found.values()]


@pytest.mark.parametrize("name", DIALECTS)
def test_an_event_that_nobody_knows_leaves_reasoning_one_block(name: str) -> None:
    frames = upstream(name, ["<think>one ", "two", " three</think>", "Hi"])
    plain = read(name, frames)
    assert plain == [("thinking", "one two three"), ("text", "Hi")]
    for at in range(1, len(frames)):
        assert read(name, [*frames[:at], UNKNOWN, *frames[at:]]) == plain


def test_a_chat_chunk_without_text_takes_no_blank_of_the_reasoning() -> None:
    frames = upstream("chat", ["<think>one ", "two</think>Hi"])
    chunk = json.loads(next(frame for frame in frames if b"one" in frame).removeprefix(b"data: "))
    choice = chunk["choices"][0]
    for choices in ([], [{**choice, "delta": {}}], [{**choice, "delta": {"content": ""}}]):
        empty = b"data: " + json.dumps({**chunk, "choices": choices}).encode() + b"\n\n"
        at = next(at for at, frame in enumerate(frames) if b"two" in frame)
        assert read("chat", [*frames[:at], empty, *frames[at:]]) == [("thinking", "one two"), ("text", "Hi")]


@pytest.mark.parametrize("name", ["messages", "responses"])
def test_between_two_blocks_of_text_the_blanks_of_reasoning_stay(name: str) -> None:
    for first, second in (("a", "\nb"), ("a\n", "b"), ("a ", " b")):
        made = read(name, upstream(name, [f"<think>{first}"], [second, "</think>c"]))
        assert "".join(text for kind, text in made if kind == "thinking") == first + second
        assert made[-1] == ("text", "c")


@pytest.mark.parametrize(
    ("name", "data", "opens"),
    [
        ("messages", {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}}, True),
        ("messages", {"type": "content_block_stop", "index": 9}, False),
        ("messages", {"type": "odd"}, False),
        ("responses", {"type": "response.output_item.added", "item": {"type": "web_search_call"}}, True),
        ("responses", {"type": "response.web_search_call.searching"}, False),
        ("responses", {"type": "odd"}, False),
        ("chat", {"object": "odd"}, False),
        ("chat", {"choices": []}, False),
    ],
)
def test_a_frame_that_begins_what_has_a_place_says_so(name: str, data: dict[str, Any], opens: bool) -> None:
    reader = dialect(name).normalizer(facts=NO_REQUEST, ledger=Ledger(), limits=DEFAULT_LIMITS)
    begun = {"type": "message_start", "message": {}} if name == "messages" else {"type": "response.created"}
    reader.receive([Frame(json.dumps(begun).encode())])
    (made,) = reader.receive([Frame(json.dumps(data).encode())])
    assert isinstance(made, Carry)
    assert made.opens is opens
