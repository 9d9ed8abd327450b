"""What the Chat normalizer makes of frames."""

from typing import Any

from pipeline.errors import ErrorKind
from pipeline.events import (
    Carry,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    Served,
    StopReason,
    StreamError,
)
from pipeline.testing import EOF, play
from stages.dialects.chat.normalize import ChatNormalizer
from tests.support import (
    DONE,
    finish,
    frame,
)

START = MessageStart("c1", "m", served=Served(1))
CUT = StreamError(ErrorKind.CUT, "the upstream ended before its finish", "stream_cut", retryable=True)
END: list[Event] = [MessageDelta(StopReason.END_TURN), MessageStop()]


def normalized(*items: Any, stage: ChatNormalizer | None = None) -> list[list[Event]]:
    """What each frame, and then the end, makes."""
    return play(stage or ChatNormalizer(), *map(frame, items), EOF)


def events(*items: Any, stage: ChatNormalizer | None = None) -> list[Event]:
    """All that a stream makes, but for frames that bring nothing."""
    steps = normalized(*items, stage=stage)
    return [event for step in steps for event in step if not isinstance(event, Carry)]


def said(*items: Any) -> list[Event]:
    """What stands between the start and the end."""
    made = events(*items, finish(), DONE)
    assert isinstance(made[0], MessageStart)
    assert isinstance(made[-1], MessageStop)
    return made[1:-2]


def lost(*items: Any) -> set[tuple[str, str]]:
    """What is recorded of a stream: path and action."""
    stage = ChatNormalizer()
    events(*items, finish(), DONE, stage=stage)
    return {(entry.path, entry.action) for entry in stage.ledger}
