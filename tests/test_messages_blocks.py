"""The blocks of a Messages answer that end in their own way: calls, redacted thinking, what the provider runs."""

from typing import Any

import pytest

from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    RedactedReasoningBlock,
    ServerBlock,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
)
from pipeline.jsontext import exact
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.testing import play
from stages.dialects.messages.normalize import MessagesNormalizer
from stages.dialects.messages.opaque import proof_of
from tests.messages_stream import (
    END,
    TEXT,
    Json,
    begin,
    call,
    delta,
    events,
    frame,
    given,
    normalized,
    search,
    start,
    stop,
    text,
    told,
)

OPENED = BlockStart(0, ToolUseBlock("a", "f"))
CUT = StreamError(ErrorKind.CUT, "the upstream ended before its terminal event", "stream_cut", retryable=True)


def said(*items: Any, limits: Limits | None = None) -> list[Event]:
    """The events between the start of the message and its last three."""
    return events(begin(), *items, stage=MessagesNormalizer(limits=limits) if limits else None)[1:]


def losses(*items: Any) -> list[tuple[str, str, str]]:
    ledger = Ledger()
    events(*items, stage=MessagesNormalizer(ledger=ledger))
    return [(entry.path, entry.action, entry.reason) for entry in ledger]


def ended(reason: StopReason) -> list[Event]:
    return [MessageDelta(reason), MessageStop()]


# calls


def test_a_call_ends_at_the_servers_word() -> None:
    assert normalized(begin(), start(call()), given(""), given('{"x"'), given(":1}"), stop())[1:-1] == [
        [OPENED],
        [Carry("messages", frame(given("")))],
        [ArgumentsDelta(0, '{"x"')],
        [ArgumentsDelta(0, ":1}")],
        [BlockStop(0)],
    ]


@pytest.mark.parametrize("nothing", [[], [given("")], [given("  ")]])
@pytest.mark.parametrize("input_", [None, {}, "", []])
def test_a_call_without_input_ends_when_no_limit_can_have_cut_it(nothing: list[Json], input_: Any) -> None:
    begun = [start(call(input=input_)), *nothing, stop()]
    blank = [ArgumentsDelta(0, "  ")] if nothing == [given("  ")] else []
    empty = [OPENED, *blank, ArgumentsDelta(0, "{}"), BlockStop(0)]
    assert said(*begun, told("tool_use"), END) == [*empty, *ended(StopReason.TOOL_USE)]
    assert said(*begun, start(TEXT, 1))[:-1] == [*empty, BlockStart(1, TextBlock())]
    assert said(*begun, told("max_tokens"), END) == [
        OPENED,
        *blank,
        BlockStop(0, complete=False),
        *ended(StopReason.MAX_TOKENS),
    ]
    assert said(*begun) == [OPENED, *blank, CUT]


@pytest.mark.parametrize("reason", [StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL])
@pytest.mark.parametrize("stopped", [[stop()], []])
def test_a_call_that_the_limit_cut_is_not_whole(reason: StopReason, stopped: list[Json]) -> None:
    assert said(start(call()), given('{"x":'), *stopped, told(reason), END) == [
        OPENED,
        ArgumentsDelta(0, '{"x":'),
        BlockStop(0, complete=False),
        *ended(reason),
    ]


@pytest.mark.parametrize(("reason", "complete"), [(StopReason.MAX_TOKENS, False), (StopReason.END_TURN, True)])
def test_a_call_that_is_not_whole_waits_for_the_end_also_if_more_blocks_follow(
    reason: StopReason, complete: bool
) -> None:
    assert said(start(call()), given('{"x":'), stop(), start(TEXT, 1), text("t", 1), stop(1), told(reason), END) == [
        OPENED,
        ArgumentsDelta(0, '{"x":'),
        BlockStart(1, TextBlock()),
        TextDelta(1, "t"),
        BlockStop(1),
        BlockStop(0, complete),
        *ended(reason),
    ]


def test_a_call_that_an_error_cut_is_left_open() -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "boom"}}
    failed = StreamError(ErrorKind.API, "boom", "api_error", retryable=True)
    assert said(start(call()), given('{"x":'), error) == [OPENED, ArgumentsDelta(0, '{"x":'), failed]
    assert said(start(call()), given('{"x":'), stop()) == [OPENED, ArgumentsDelta(0, '{"x":'), CUT]


def test_a_call_whose_end_was_left_out_ends_with_the_message() -> None:
    assert said(start(call()), given('{"x":1}'), told("tool_use"), END) == [
        OPENED,
        ArgumentsDelta(0, '{"x":1}'),
        BlockStop(0),
        *ended(StopReason.TOOL_USE),
    ]


@pytest.mark.parametrize("input_", [{"x": 1}, '{"x":1}'])
def test_input_that_a_call_begins_with_is_its_input_unless_more_comes(input_: Any) -> None:
    whole = [OPENED, ArgumentsDelta(0, '{"x":1}'), BlockStop(0)]
    assert said(start(call(input=input_)), stop())[:-1] == whole
    assert said(start(call(input=input_)), given(""), stop())[:-1] == whole
    assert said(start(call(input=input_)), given('{"x":1}'), stop())[:-1] == whole
    assert said(start(call(input=input_)), told("max_tokens"), END)[2] == BlockStop(0, complete=False)


def test_input_that_was_cut_is_not_whole_though_the_call_began_with_some() -> None:
    assert said(start(call(input={"x": 1})), given('{"x"'), stop(), told("max_tokens"), END)[2] == BlockStop(
        0, complete=False
    )


@pytest.mark.parametrize("number", ["123456789012345678901234567890", "0.1", "-0.0", "1e5"])
def test_no_digit_of_the_input_that_a_call_begins_with_is_lost(number: str) -> None:
    begun = frame(start(call(input={"x": "N"}))).data.replace(b'"N"', number.encode())
    made = said(begun, stop())
    assert isinstance(arguments := made[1], ArgumentsDelta)
    assert repr(exact(arguments.text)) == repr(exact('{"x": ' + number + "}"))
    assert events(b'{"type":"ping"}' + begun, stop())[-2] == BlockStop(0)


def test_halves_of_a_character_in_an_input_are_joined() -> None:
    assert said(start(call()), given('{"x":"\ud83d'), given('\udc4d"}'), stop())[1:-1] == [
        ArgumentsDelta(0, '{"x":"'),
        ArgumentsDelta(0, '👍"}'),
        BlockStop(0),
    ]
    assert said(start(call()), given("\ud83d"), told("max_tokens"), END)[1] == ArgumentsDelta(0, "\ufffd")
    assert said(start(call()), given("\ud83d"))[1] == ArgumentsDelta(0, "\ufffd")


def test_a_call_without_an_id_is_given_one_and_two_never_share_it() -> None:
    ids = [
        one.block.id
        for one in said(*(start(call(id=name), at) for at, name in enumerate(["a", "a", None, " "])))
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock)
    ]
    assert ids[:2] == ["a", "a_2"]
    assert len(set(ids)) == 4
    assert all(ids)
    assert losses(start(call()), start(call(), 1), told(), END) == [
        ("tool_use.id", "renamed", "two calls have the same id")
    ]


@pytest.mark.parametrize("name", [None, "", " ", 3])
def test_a_call_without_a_name_fails_the_stream(name: Any) -> None:
    with pytest.raises(UpstreamError, match="without a name") as raised:
        play(MessagesNormalizer(), [frame(begin()), frame(start(call(name=name)))])
    assert raised.value.code == "nameless_tool_call"
    assert raised.value.made == [MessageStart("msg_1", "m")]


def test_input_for_a_call_that_never_began_fails_the_stream() -> None:
    for before in ([], [start(TEXT)], [start(TEXT), stop(), start(call(), 1)]):  # a call may lack what came here
        with pytest.raises(UpstreamError, match="no call") as raised:
            play(MessagesNormalizer(), frame(begin()), *map(frame, before), frame(given("{}")))
        assert raised.value.code == "nameless_tool_call"
    assert said(given(""), told(), END) == ended(StopReason.END_TURN)


def test_input_behind_the_end_of_its_call_is_recorded() -> None:
    lost = [("input", "dropped", "it came after the end of its call")]
    assert losses(start(call()), given("{}"), stop(), given(" "), given("x"), told(), END) == lost
    waiting = losses(start(call()), stop(), given(" "), given("x"), told(), END)
    assert waiting == lost


def test_text_inside_a_call_is_text_beside_it() -> None:
    assert said(start(call()), given('{"x":'), text("Hi"), given("1}"), stop())[1:-1] == [
        ArgumentsDelta(0, '{"x":'),
        BlockStart(1, TextBlock()),
        TextDelta(1, "Hi"),
        ArgumentsDelta(0, "1}"),
        BlockStop(0),
        BlockStop(1),
    ]


def test_who_calls_is_recorded_if_it_is_not_the_model() -> None:
    direct = call(caller={"type": "direct"}, toolset_name=None)
    assert losses(start(direct), given("{}"), stop(), told(), END) == []
    code = call(caller={"type": "code_execution_20250825", "tool_id": "s"}, toolset_name="t")
    assert losses(start(code), given("{}"), stop(), told(), END) == [
        ("tool_use.caller", "dropped", "no event carries it"),
        ("tool_use.toolset_name", "dropped", "no event carries it"),
    ]


@pytest.mark.parametrize("sizes", [[60, 60], [101]])
def test_the_input_of_a_call_is_bounded(sizes: list[int]) -> None:
    with pytest.raises(LimitExceeded, match="larger than 100 bytes") as raised:
        said(start(call()), *(given("x" * size) for size in sizes), limits=Limits(arguments_bytes=100))
    assert raised.value.code == "arguments_bytes"


def test_long_ids_and_names_fail_the_stream() -> None:
    for odd in (call(id="x" * 1001), call(name="x" * 1001)):
        with pytest.raises(LimitExceeded, match="longer than 1000"):
            said(start(odd))


# redacted thinking


def test_redacted_thinking_is_its_blob() -> None:
    block = {"type": "redacted_thinking", "data": "BLOB"}
    assert said(start(block), stop())[:-1] == [
        BlockStart(0, RedactedReasoningBlock(proof_of("redacted_thinking", "BLOB"))),
        BlockStop(0),
    ]


def test_redacted_thinking_without_a_blob_is_carried_as_what_nobody_knows() -> None:
    assert said(start({"type": "redacted_thinking"}), stop())[0] == BlockStart(
        0, ServerBlock("messages", {"type": "redacted_thinking"})
    )


# what the provider runs, and what nobody knows


def test_a_server_tool_is_carried_whole_at_its_end() -> None:
    items = [begin(), start(search()), given('{"que'), given('ry":"q"}'), stop()]
    assert normalized(*items)[1:-1] == [
        *([Carry("messages", frame(item), opens=item is items[1])] for item in items[1:-1]),
        [BlockStart(0, ServerBlock("messages", search(input={"query": "q"}), "q")), BlockStop(0)],
    ]


def test_a_server_tool_may_begin_with_its_input_or_have_none() -> None:
    for block, asked in ((search(input={"query": "q"}), "q"), (search(), ""), (search(input={"query": ["q"]}), "")):
        assert said(start(block), stop())[0] == BlockStart(0, ServerBlock("messages", block, asked))
    fetch = {**search(input={"query": "q"}), "name": "web_fetch"}
    assert said(start(fetch), stop())[0] == BlockStart(0, ServerBlock("messages", fetch))


def test_the_input_of_a_server_tool_that_is_no_json_is_recorded() -> None:
    assert said(start(search()), given('{"que'), stop())[0] == BlockStart(0, ServerBlock("messages", search(), ""))
    assert losses(start(search()), given('{"que'), stop(), told(), END) == [
        ("input", "dropped", "a server tool's, which is no JSON")
    ]


@pytest.mark.parametrize(
    ("block", "deltas", "whole"),
    [
        ({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"a": 1}]}, [], {}),
        ({"type": "weird", "x": 1}, [], {}),
        ({"type": "weird", "text": "a"}, [text("b"), text("c")], {"text": "abc"}),
        ({"type": "weird"}, [text("b")], {"text": "b"}),
        ({"type": "compaction", "content": None}, [delta("compaction_delta", content="sum")], {"content": "sum"}),
        ({"type": "weird"}, [delta("weird_delta", y=2), given(3)], {"y": 2}),
    ],
)
def test_a_block_that_no_event_carries_is_carried_whole(block: Json, deltas: list[Json], whole: Json) -> None:
    assert said(start(block), *deltas, stop(), told(), END) == [
        BlockStart(0, ServerBlock("messages", {**block, **whole})),
        BlockStop(0),
        *ended(StopReason.END_TURN),
    ]


def test_a_server_tool_that_nobody_stopped_ends_with_the_message_and_one_that_was_cut_is_recorded() -> None:
    assert said(start(search()), told("pause_turn"), END)[0] == BlockStart(0, ServerBlock("messages", search(), ""))
    assert said(start(search()), given('{"que')) == [CUT]
    assert losses(start(search())) == [("server tool", "dropped", "cut before its end")]


def test_what_waits_for_the_end_of_its_block_is_counted_and_bounded() -> None:
    stage = MessagesNormalizer(limits=Limits(held_bytes=20))
    play(stage, frame(begin()), frame(start(search())), frame(given("x" * 8)), frame(given("")))
    assert stage.held == 8
    play(stage, frame(stop()))
    assert stage.held == 0
    with pytest.raises(LimitExceeded, match="more than 20 bytes"):
        play(stage, frame(start(search(), 1)), *(frame(given("x" * 8, 1)) for _ in range(3)))
    stage = MessagesNormalizer()
    play(stage, frame(start(search())), frame(given("x" * 8)))
    stage.receive_eof()
    assert stage.held == 0
