"""pipeline.message: events to a whole message and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ErrorKind, StageError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
)

words = st.text(min_size=1, max_size=6)
contents = st.one_of(
    st.builds(Text, words, st.tuples(st.fixed_dictionaries({"url": words}))),
    st.builds(Text, st.text(max_size=6)),
    st.builds(Refusal, words),
    st.builds(Reasoning, st.text(max_size=6), st.text(max_size=3), st.booleans()),
    st.builds(RedactedReasoning, words),
    st.builds(ToolUse, words, words, st.text(max_size=6), st.sampled_from(ToolKind), st.booleans()),
    st.builds(ServerItem, words, st.just({"type": "x"})),
)
counts = st.integers(0, 9)
errors = st.builds(StreamError, st.sampled_from(ErrorKind), words, words, st.booleans())
usages = st.none() | st.builds(Usage, counts, counts, counts, counts, counts)
whole = st.builds(
    Message,
    words,
    words,
    st.lists(contents, max_size=5).map(tuple),
    st.sampled_from(StopReason),
    st.none() | words,
    usages,
)
failed = st.builds(Message, words, words, st.lists(contents, max_size=5).map(tuple), usage=usages, error=errors)


@given(whole | failed)
def test_a_message_taken_apart_and_put_together_is_the_same(message: Message) -> None:
    assert assemble(disassemble(message)) == message


def test_deltas_of_overlapping_blocks_are_joined_block_by_block_in_order_of_opening() -> None:
    message = assemble(
        [
            MessageStart("m1", "model", Usage(input=3)),
            BlockStart(0, ReasoningBlock()),
            BlockStart(1, ToolUseBlock("a", "f")),
            ReasoningDelta(0, "th"),
            ArgumentsDelta(1, '{"x"'),
            ReasoningDelta(0, "ink"),
            ArgumentsDelta(1, ":1}"),
            BlockStop(1),
            BlockStop(0),
            MessageDelta(StopReason.TOOL_USE, None, Usage(input=3, output=4)),
            MessageStop(),
        ]
    )
    assert message.content == (Reasoning("think"), ToolUse("a", "f", '{"x":1}'))
    assert message.usage == Usage(input=3, output=4)


def test_text_and_refusal_in_one_block_come_apart() -> None:
    message = assemble([BlockStart(0, TextBlock()), TextDelta(0, "well, "), RefusalDelta(0, "no"), BlockStop(0)])
    assert message.content == (Text("well, "), Refusal("no"))


NOTE = {"type": "url_citation"}


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ([RefusalDelta(0, "NO"), TextDelta(0, "because")], [Refusal("NO"), Text("because")]),
        (
            [TextDelta(0, "o"), TextDelta(0, "ne"), RefusalDelta(0, "N"), RefusalDelta(0, "O"), TextDelta(0, "two")],
            [Text("one"), Refusal("NO"), Text("two")],
        ),
        (
            [TextDelta(0, "one"), RefusalDelta(0, "NO"), AnnotationDelta(0, NOTE)],
            [Text("one", (NOTE,)), Refusal("NO")],
        ),
        ([RefusalDelta(0, "NO"), AnnotationDelta(0, NOTE)], [Refusal("NO"), Text("", (NOTE,))]),
        ([], [Text("")]),
    ],
)
def test_what_is_said_in_one_block_stands_in_the_order_in_which_it_was_said(
    said: list[Event], content: list[Content]
) -> None:
    assert assemble([BlockStart(0, TextBlock()), *said, BlockStop(0)]).content == tuple(content)


def test_a_refusal_alone_is_no_text() -> None:
    assert assemble([BlockStart(0, TextBlock()), RefusalDelta(0, "no")]).content == (Refusal("no"),)


def test_notes_belong_to_their_text() -> None:
    note = {"type": "url_citation"}
    assert assemble([BlockStart(0, TextBlock()), AnnotationDelta(0, note)]).content == (Text("", (note,)),)


def test_the_usage_of_the_start_stands_until_another_comes() -> None:
    assert assemble([MessageStart("", "", Usage(input=3)), MessageDelta(StopReason.END_TURN)]).usage == Usage(input=3)


@pytest.mark.parametrize(
    ("last", "due"),
    [
        (Usage(output=4), Usage(3, 2, 1, 4)),
        (Usage(output=4, reasoning=2), Usage(3, 2, 1, 4, 2)),
        (Usage(input=9, output=4), Usage(9, output=4)),
        (Usage(cache_read=9), Usage(cache_read=9)),
        (Usage(cache_write=9), Usage(cache_write=9)),
        (Usage(), Usage(3, 2, 1)),
        (None, Usage(3, 2, 1)),
    ],
)
def test_counts_of_what_went_in_stand_until_others_come(last: Usage | None, due: Usage) -> None:
    events: list[Event] = [MessageStart("", "", Usage(3, 2, 1)), MessageDelta(StopReason.END_TURN, None, last)]
    assert assemble(events).usage == due
    assert assemble(events[1:]).usage == last


def test_a_call_that_was_not_stopped_is_not_complete() -> None:
    error = StreamError(ErrorKind.CUT, "gone")
    message = assemble([BlockStart(0, ToolUseBlock("a", "f")), ArgumentsDelta(0, "{"), error])
    assert message == Message("", "", (ToolUse("a", "f", "{", complete=False),), error=error)


def test_what_belongs_to_no_block_is_no_content() -> None:
    assert assemble([Ping(), Carry("chat", Frame(b"{}"))]).content == ()


def test_a_delta_for_a_block_that_was_never_opened_is_our_fault() -> None:
    with pytest.raises(StageError, match="TextDelta for block 7, which was never opened"):
        assemble([TextDelta(7, "x")])


def test_a_message_without_a_stop_reason_ends_its_turn() -> None:
    assert list(disassemble(Message("m", "model")))[1:] == [MessageDelta(StopReason.END_TURN), MessageStop()]


def test_a_call_cut_by_an_error_is_left_open() -> None:
    cut = (ToolUse("a", "f", "{", complete=False),)
    error = StreamError(ErrorKind.CUT, "gone")
    assert list(disassemble(Message("m", "x", cut, error=error)))[1:] == [
        BlockStart(0, ToolUseBlock("a", "f")),
        ArgumentsDelta(0, "{"),
        error,
    ]
    assert BlockStop(0, False) in list(disassemble(Message("m", "x", cut, StopReason.MAX_TOKENS)))


def test_citations_of_a_text_that_was_only_refused_are_kept() -> None:
    note = {"url": "u"}
    events = [BlockStart(0, TextBlock()), AnnotationDelta(0, note), RefusalDelta(0, "no"), BlockStop(0)]
    message = assemble([MessageStart("m", "m"), *events, MessageDelta(StopReason.REFUSAL), MessageStop()])
    assert message.content == (Text("", (note,)), Refusal("no"))
