"""pipeline.events: what a stream says, in no dialect's words."""

import pytest

from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
    moved,
)

DELTAS: list[BlockDelta] = [
    TextDelta(1, "a"),
    RefusalDelta(1, "a"),
    ReasoningDelta(1, "a"),
    SignatureDelta(1, "a"),
    AnnotationDelta(1, {"a": 1}),
    ArgumentsDelta(1, "a"),
]

MOVED: list[BlockDelta] = [
    TextDelta(2, "a"),
    RefusalDelta(2, "a"),
    ReasoningDelta(2, "a"),
    SignatureDelta(2, "a"),
    AnnotationDelta(2, {"a": 1}),
    ArgumentsDelta(2, "a"),
]


@pytest.mark.parametrize(("delta", "under_two"), list(zip(DELTAS, MOVED, strict=True)))
def test_a_delta_moves_to_another_index(delta: BlockDelta, under_two: BlockDelta) -> None:
    assert moved(delta, 2) == under_two
    assert delta.index == 1


@pytest.mark.parametrize("delta", DELTAS)
def test_a_delta_that_is_where_it_belongs_stays_the_same_object(delta: BlockDelta) -> None:
    assert moved(delta, 1) is delta


def test_where_an_event_came_from_is_no_part_of_what_it_says() -> None:
    event = TextDelta(0, "a", origin=Frame(b"{}"))
    assert event == TextDelta(0, "a")
    assert event.origin == Frame(b"{}")
    assert repr(event) == "TextDelta(index=0, text='a')"


def test_the_class_is_the_tag() -> None:
    text: Event = TextDelta(0, "a")
    assert text != ReasoningDelta(0, "a")


def test_an_event_has_room_for_its_own_fields_only() -> None:
    with pytest.raises(AttributeError):
        TextDelta(0, "a").more = 1  # type: ignore[attr-defined]  # that is the point


def test_what_is_not_said_is_at_its_plainest() -> None:
    assert MessageStart("id", "model").usage is None
    assert BlockStart(0, ReasoningBlock()) == BlockStart(0, ReasoningBlock(splittable=True))
    assert ToolUseBlock("id", "name").kind is ToolKind.FUNCTION
    assert BlockStop(0).complete
    assert MessageDelta(StopReason.END_TURN) == MessageDelta(StopReason.END_TURN, None, None)
    assert StreamError(ErrorKind.CUT, "cut") == StreamError(ErrorKind.CUT, "cut", "", False)
    assert Usage() == Usage(0, 0, 0, 0, 0)
    assert TextBlock() == TextBlock()
