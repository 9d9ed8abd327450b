"""Opaque reasoning of a Chat upstream: proofs and blobs, as its servers send them beside the text."""

import json
from typing import Any

import pytest

from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Event,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
)
from pipeline.testing import play
from stages.dialects.chat.normalize import ChatNormalizer
from tests.exchange import ASKED, answered, calls, opened, sent, whole
from tests.support import DONE, chunk, converted, finish, frame, read, reasoning, text

SIGNED = {"type": "reasoning.text", "signature": "S", "format": "anthropic-claude-v1", "index": 0}
HIDDEN = {"type": "reasoning.encrypted", "data": "E", "index": 0}


def detail(*details: Any, **said: Any) -> dict[str, Any]:
    """A chunk with reasoning details."""
    return chunk({"reasoning_details": [*details], **said})


def blob(detail: dict[str, Any]) -> str:
    """What goes back of a detail."""
    return json.dumps({"reasoning_details": [detail]}, separators=(",", ":"))


def made(*items: Any) -> list[Event]:
    """All events behind the start and before the finish."""
    stage = ChatNormalizer()
    _, *rest = [event for step in play(stage, *map(frame, items)) for event in step]
    return [event for event in rest if not isinstance(event, Carry)]


def test_a_signature_ends_the_reasoning_that_it_proves() -> None:
    assert made(reasoning("A"), detail(SIGNED), text("b"), reasoning("C")) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        SignatureDelta(0, blob(SIGNED)),
        BlockStop(0),
        BlockStart(1, TextBlock()),
        TextDelta(1, "b"),
        BlockStart(2, ReasoningBlock()),
        ReasoningDelta(2, "C"),
    ]


def test_a_signature_of_reasoning_that_is_not_shown_has_a_block_of_its_own() -> None:
    assert made(detail(SIGNED)) == [
        BlockStart(0, ReasoningBlock(splittable=False)),
        SignatureDelta(0, blob(SIGNED)),
        BlockStop(0),
    ]
    answer = read(converted(detail(SIGNED), text("b"), finish(), DONE))
    assert [block[:2] for block in answer.blocks] == [["thinking", ""], ["text", "b"]]
    assert len(answer.signatures) == 1


def test_an_empty_signature_is_none() -> None:
    assert made(detail({"text": "A", "signature": ""}), detail({"text": "B", "signature": ""})) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        ReasoningDelta(0, "B"),
    ]


def test_a_blob_is_a_redacted_block() -> None:
    assert made(detail(HIDDEN), text("b"))[:2] == [BlockStart(0, RedactedReasoningBlock(blob(HIDDEN))), BlockStop(0)]


def test_reasoning_told_beside_a_blob_comes_first() -> None:
    assert made(detail(HIDDEN, reasoning="A")) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        BlockStart(1, RedactedReasoningBlock(blob(HIDDEN))),
        BlockStop(1),
    ]


def test_each_signature_of_a_whole_answer_is_bound_to_its_own_text() -> None:
    one, other = {"text": "A", "signature": "S"}, {"text": "B", "signature": "T"}
    message = {"reasoning": "A\nB", "reasoning_details": [one, other], "content": "c"}
    stage = ChatNormalizer(whole=True)
    answer = {"id": "c", "choices": [{"message": message, "finish_reason": "stop"}]}
    events = [event for step in play(stage, frame(answer), frame(DONE)) for event in step]
    assert events[1:9] == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        SignatureDelta(0, blob({"signature": "S"})),
        BlockStop(0),
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, "B"),
        SignatureDelta(1, blob({"signature": "T"})),
        BlockStop(1),
    ]


def test_a_block_that_its_signature_ended_is_not_ended_again() -> None:
    stops = [event for event in made(reasoning("A"), detail(SIGNED), finish(), DONE) if isinstance(event, BlockStop)]
    assert stops == [BlockStop(0)]


PROOF = {"google": {"thought_signature": "S+/="}}


@pytest.mark.parametrize("stream", [True, False])
def test_a_proof_that_belongs_to_a_call_goes_back_with_that_call(stream: bool) -> None:
    named = [{**one, "extra_content": PROOF} for one in calls(("i", "f", '{"x": 1}'))]
    content = answered(opened(stream), whole("tool_calls", tool_calls=named)).message["content"]
    assert [block["type"] for block in content] == ["redacted_thinking", "tool_use"]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": "go on"}]
    exchange = opened(messages=[*ASKED["messages"], *turns])
    (again,) = sent(exchange)["messages"][1]["tool_calls"]
    assert (again["id"], again["extra_content"]) == ("i", PROOF)


def test_items_of_reasoning_that_we_wrote_a_blank_line_apart_are_read_apart() -> None:
    def item(said: str, text: str, at: int) -> dict[str, Any]:
        return chunk(
            {"reasoning_content": said, "reasoning_details": [{"type": "reasoning.text", "text": text, "index": at}]}
        )

    assert made(item("A", "A", 0), item("\n\nB", "B", 1), item("b", "b", 1), item("\n\nc", "\n\nc", 1)) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        BlockStop(0),
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, "B"),
        ReasoningDelta(1, "b"),
        ReasoningDelta(1, "\n\nc"),
    ]
    assert made(item("\n\nB", "B", 0))[:2] == [BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "B")]


def test_items_of_reasoning_in_one_chunk_are_read_apart() -> None:
    both = {"reasoning_content": "A\n\nB", "reasoning_details": [{"text": "A"}, {"text": "B"}]}
    assert [event for event in made(chunk(both)) if isinstance(event, ReasoningDelta)] == [
        ReasoningDelta(0, "A"),
        ReasoningDelta(1, "B"),
    ]


@pytest.mark.parametrize("details", [None, [], {}, [{"text": "c"}], [{"text": "B"}, {"text": ""}], [5], [{"text": 5}]])
def test_reasoning_that_begins_with_blanks_of_its_own_keeps_them(details: Any) -> None:
    said = chunk({"reasoning_content": "\n\nB", "reasoning_details": details})
    assert made(said)[1:] == [ReasoningDelta(0, "\n\nB")]
