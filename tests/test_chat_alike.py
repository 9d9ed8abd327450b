"""Chat frames that differ in one text alone, and whole messages in place of deltas."""

import json
from typing import Any

import pytest

from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    StreamError,
    TextDelta,
)
from pipeline.testing import play
from stages.dialects.chat.normalize import ChatNormalizer
from tests.chat_read import events, normalized, said
from tests.support import (
    DONE,
    call,
    chunk,
    finish,
    fragment,
    frame,
    reasoning,
    text,
    usage,
)

# Frames that differ in one text alone


def like(name: str, *texts: str, **more: Any) -> list[Any]:
    """Frames as a server sends them one after the other."""
    return [chunk({name: said}, **more) for said in texts]


def test_frames_that_differ_in_one_text_alone_say_what_they_would_say_alone() -> None:
    words = ["a", "b", " ", "é\n", '"', "\ud83d", "\ude00", "", "c", "d"]
    for name, made in (("content", TextDelta), ("reasoning_content", ReasoningDelta)):
        frames = [json.dumps(one) for one in like(name, *words)]
        texts = [event.text for event in said(*frames) if isinstance(event, made)]
        assert "".join(texts) == 'ab é\n"😀cd'


BESIDE: list[dict[str, Any]] = [
    {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]},
    {"error": {"message": "boom"}},
    {"x_groq": {"error": "boom"}},
    {"base_resp": {"status_code": 1002}},
    {"citations": ["u"]},
    {"weird": {"k": "v"}},
    {"usage": usage()["usage"]},
    {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]},
    {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None, "logprobs": {"content": []}}]},
    {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None, "stop_reason": "x"}]},
    {"choices": [{"index": 0, "delta": {"content": "a", "refusal": "no"}, "finish_reason": None}]},
]


@pytest.mark.parametrize("more", BESIDE)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_frame_says_the_same_whatever_came_before_it(more: dict[str, Any], before: int) -> None:
    """The short ways behind open text are no other ways."""
    alone, behind = ChatNormalizer(), ChatNormalizer()
    odd = {**text("a"), **more}
    begun = text("")  # what the first frame counts is told with the beginning
    first = [event for event in events(begun, odd, stage=alone) if not isinstance(event, MessageStart | BlockStart)]
    said = events(*[text("p")] * (before + 1), odd, stage=behind)
    rest = [event for event in said if event != TextDelta(0, "p")]
    assert [event for event in rest if not isinstance(event, MessageStart | BlockStart | BlockStop)] == [
        event for event in first if not isinstance(event, BlockStop)
    ]
    assert [*alone.ledger] == [*behind.ledger]


def test_an_error_by_its_events_name_is_one_behind_text_too() -> None:
    failed = Frame(frame({**text("a"), "object": "error", "message": "boom"}).data, b"error")
    for before in ([], like("content", "a"), like("content", "a", "b", "c")):
        (made,) = play(ChatNormalizer(), *map(frame, before), failed)[-1:]
        assert isinstance(made[-1], StreamError)


def test_what_comes_between_such_frames_is_read() -> None:
    frames = [*like("content", "a", "b", "c"), reasoning("R"), *like("content", "d", "e"), call(0, "i", "f", "")]
    more = [fragment(0, arguments=text) for text in ('{"x"', ":", "1}")]
    made = said(*frames, *(chunk({"tool_calls": [one]}) for one in more), *like("content", "f", "g"))
    assert [event for event in made if not isinstance(event, BlockStart | BlockStop)] == [
        TextDelta(0, "a"),
        TextDelta(0, "b"),
        TextDelta(0, "c"),
        ReasoningDelta(1, "R"),
        TextDelta(0, "d"),
        TextDelta(0, "e"),
        ArgumentsDelta(2, '{"x"'),
        ArgumentsDelta(2, ":"),
        ArgumentsDelta(2, "1}"),
        TextDelta(0, "f"),
        TextDelta(0, "g"),
    ]


# A whole message in place of deltas


@pytest.mark.parametrize("delta", [{}, {"delta": None}, {"delta": {}}])
def test_a_whole_message_is_read_if_nothing_came_before(delta: dict[str, Any]) -> None:
    message = {"reasoning": "R", "content": "t", "tool_calls": [fragment(None, "i", "f", "{}")]}
    choice = {**delta, "message": message, "finish_reason": "stop"}
    assert [type(event) for event in events({"choices": [choice]})] == [
        MessageStart,
        BlockStart,
        ReasoningDelta,
        BlockStart,
        TextDelta,
        BlockStart,
        ArgumentsDelta,
        BlockStop,
        BlockStop,
        BlockStop,
        MessageDelta,
        MessageStop,
    ]


@pytest.mark.parametrize(
    "before", [text("t"), reasoning("R"), chunk({"refusal": "no"}), call(0, "i", "f", '{"x":1}'), call(0, "i")]
)
def test_a_message_that_repeats_what_came_is_not_read_again(before: dict[str, Any]) -> None:
    name = "n" if before == call(0, "i") else ""
    last = [call(0, None, name, "{}")] if name else []
    message = {"content": "T", "reasoning": "R", "tool_calls": [fragment(None, "other", "g", "{}")]}
    repeated = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert events(before, *last, repeated, DONE) == events(before, *last, finish(), DONE)


def test_a_message_beside_the_delta_is_not_read() -> None:
    choice = {"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}, "finish_reason": None}
    first = {"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "finish_reason": None}
    assert said({"choices": [first]}, {"choices": [choice]})[1:3] == [TextDelta(0, "a"), TextDelta(0, "b")]


# Characters in halves


def test_the_halves_of_a_character_are_joined_over_two_deltas() -> None:
    halves = [
        r'{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}',
        r'{"choices":[{"delta":{"content":"\ude00b"}}]}',
    ]
    stage = ChatNormalizer()
    steps = normalized(*halves, stage=stage)
    assert steps[0][-1] == TextDelta(0, "a")
    assert steps[1] == [TextDelta(0, "😀b")]


def test_half_a_character_waits_while_other_text_passes() -> None:
    stage = ChatNormalizer()
    half = r'{"id":"c1","choices":[{"index":0,"delta":{"content":"\ud83d"},"finish_reason":null}]}'
    assert play(stage, frame(text("a")), frame(half))[1] == [Carry("chat", frame(half))]
    assert stage.held == 1
    (made,) = play(stage, [frame(reasoning("R")), frame(text("b"))])
    assert made == [BlockStart(1, ReasoningBlock()), ReasoningDelta(1, "R"), TextDelta(0, "\ufffdb")]
    assert stage.held == 0


@pytest.mark.parametrize(
    ("name", "kind"), [("content", TextDelta), ("reasoning", ReasoningDelta), ("refusal", RefusalDelta)]
)
def test_half_a_character_alone_is_replaced_at_the_end(name: str, kind: type[Event]) -> None:
    half = f'{{"choices":[{{"index":0,"delta":{{"{name}":"\\ud83d"}}}}]}}'
    for ending in ([finish()], [DONE], []):
        deltas = [event for event in events(half, *ending) if isinstance(event, kind)]
        assert deltas == [kind(0, "\ufffd")]  # type: ignore[arg-type, call-arg]  # each takes an index and text
