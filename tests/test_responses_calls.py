"""stages.dialects.responses.calls: calls, as events."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStop,
    StopReason,
    StreamError,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.testing import play
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.responses.normalize import ResponsesNormalizer
from tests.responses_stream import (
    Json,
    added,
    arguments,
    arguments_done,
    call,
    created,
    custom,
    done,
    event,
    events,
    frame,
    normalized,
    terminal,
)

WHOLE = '{"x":1}'
BEGIN = BlockStart(0, ToolUseBlock("a", "f"))


def made_of(*items: Any, stage: ResponsesNormalizer | None = None) -> list[Event]:
    """What belongs to a block, of what these frames make behind the start."""
    return [one for one in events(created(), *items, stage=stage) if hasattr(one, "index")]


def said(made: list[Event]) -> str:
    return "".join(one.text for one in made if isinstance(one, ArgumentsDelta))


def losses(*items: Any) -> list[tuple[str, str]]:
    ledger = Ledger()
    events(created(), *items, stage=ResponsesNormalizer(ledger=ledger))
    return [(entry.path, entry.reason) for entry in ledger]


def test_a_call_begins_when_it_is_announced_and_ends_when_it_is_whole() -> None:
    made = normalized(
        created(),
        added(call()),
        arguments('{"x"'),
        arguments(":1}"),
        arguments_done(WHOLE),
        done(call(WHOLE)),
        terminal(),
    )
    assert made[1] == [BEGIN]
    assert made[2] == [ArgumentsDelta(0, '{"x"')]
    assert made[3] == [ArgumentsDelta(0, ":1}")]
    assert made[4] == [BlockStop(0)]
    assert len(made[5]) == 1
    assert made[6][0] == MessageDelta(StopReason.TOOL_USE)


@pytest.mark.parametrize(
    "told",
    [
        [arguments_done(WHOLE)],
        [done(call(WHOLE))],
        [done(call({"x": 1}))],
        [terminal(output=[call(WHOLE)])],
        [arguments_done(""), done(call("")), terminal(output=[call(WHOLE)])],
        [arguments(WHOLE), done(call(""))],
    ],
)
@pytest.mark.parametrize("streamed", [[], [arguments('{"x"')], [arguments(WHOLE)]])
def test_arguments_are_said_once_whoever_tells_them(streamed: list[Json], told: list[Json]) -> None:
    if streamed and told[0] == arguments(WHOLE):
        streamed = []
    made = made_of(added(call()), *streamed, *told, terminal())
    assert (made[0], said(made), made[-1]) == (BEGIN, WHOLE, BlockStop(0))


@pytest.mark.parametrize("told", [done(call(WHOLE)), terminal(output=[call(WHOLE)])])
def test_a_call_that_was_never_announced_is_one_all_the_same(told: Json) -> None:
    assert made_of(told, terminal()) == [BEGIN, ArgumentsDelta(0, WHOLE), BlockStop(0)]


def test_a_call_with_its_arguments_in_the_announcement_alone_has_them() -> None:
    assert said(made_of(added(call(WHOLE)), done(call("")), terminal())) == WHOLE


def test_an_announcement_does_not_repeat_the_deltas() -> None:
    assert said(made_of(added(call(WHOLE)), arguments(WHOLE), terminal())) == WHOLE


def test_arguments_that_come_before_their_call_wait_for_it() -> None:
    stage = ResponsesNormalizer()
    made = normalized(created(), arguments('{"x"'), arguments(":1}"), added(call()), terminal(), stage=stage)
    assert not any(isinstance(one, BlockStart) for one in made[1] + made[2])
    assert made[3] == [BEGIN, ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}")]
    assert stage.held == 0


def test_what_waits_is_counted_and_bounded() -> None:
    stage = ResponsesNormalizer(limits=Limits(held_bytes=5))
    stage.receive([frame(created()), frame(arguments("12345"))])
    assert stage.held == 5
    with pytest.raises(LimitExceeded, match="more than 5 bytes of arguments wait"):
        stage.receive([frame(arguments("6"))])


def test_the_end_of_the_arguments_may_tell_the_name() -> None:
    told = arguments_done(WHOLE, name="f")
    assert not any(isinstance(one, BlockStart) for one in normalized(created(), told)[1])
    assert made_of(told, terminal()) == [
        BlockStart(0, ToolUseBlock("fc1", "f")),
        ArgumentsDelta(0, WHOLE),
        BlockStop(0),
    ]
    assert made_of(told, done(call(WHOLE)), terminal())[0] == BEGIN


def test_a_call_whose_name_never_comes_fails_the_stream() -> None:
    stage = ResponsesNormalizer()
    stage.receive([frame(created()), frame(arguments(WHOLE))])
    with pytest.raises(UpstreamError, match="a tool call came without a name"):
        stage.receive([frame(terminal())])


def test_no_call_ends_as_whole_while_arguments_wait_for_a_name_that_never_came() -> None:
    stage = ResponsesNormalizer()
    stage.receive([frame(created()), frame(added(call())), frame(arguments(WHOLE, 3, "fc9"))])
    with pytest.raises(UpstreamError, match="a tool call came without a name") as caught:
        stage.receive([frame(terminal())])
    assert not any(isinstance(event, BlockStop) for event in caught.value.made)


@pytest.mark.parametrize("end", [[terminal("incomplete")], [terminal("failed")], []])
def test_a_call_without_a_name_that_was_cut_is_recorded(end: list[Json]) -> None:
    assert made_of(arguments(WHOLE), *end) == []
    assert ("call", "cut before its name came") in losses(arguments(WHOLE), *end)
    stage = ResponsesNormalizer()
    events(arguments(WHOLE), *end, stage=stage)
    assert stage.held == 0


def test_a_call_that_the_token_limit_cut_is_not_whole() -> None:
    cut = [added(call()), arguments('{"x"'), arguments_done('{"x"'), done(call('{"x"', status="incomplete"))]
    assert not any(isinstance(one, BlockStop) for one in made_of(*cut))
    assert made_of(*cut, terminal("incomplete"))[-1] == BlockStop(0, complete=False)
    assert made_of(*cut, terminal("completed"))[-1] == BlockStop(0, complete=False)
    assert not any(isinstance(one, BlockStop) for one in made_of(*cut, terminal("failed")))


def test_a_call_that_was_begun_at_the_token_limit_is_not_whole() -> None:
    cut = [added(call()), arguments('{"x"'), terminal("incomplete")]
    assert made_of(*cut)[-1] == BlockStop(0, complete=False)


def test_a_whole_call_stays_whole_at_the_token_limit() -> None:
    made = made_of(added(call()), arguments(WHOLE), done(call(WHOLE)), terminal("incomplete"))
    assert made[-1] == BlockStop(0)


def test_a_failure_leaves_a_cut_call_open_and_a_whole_one_closed() -> None:
    cut = made_of(added(call()), arguments('{"x"'), terminal("failed", [call('{"x"', status="incomplete")]))
    assert cut == [BEGIN, ArgumentsDelta(0, '{"x"')]
    whole = made_of(added(call()), arguments('{"x"'), terminal("failed", [call(WHOLE)]))
    assert whole[1:] == [ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}"), BlockStop(0)]


@pytest.mark.parametrize("status", ["in_progress", None])
def test_a_call_that_is_visibly_whole_ends_whatever_its_status(status: str | None) -> None:
    made = made_of(added(call()), arguments(WHOLE), done(call(WHOLE, status=status)))
    assert made[-1] == BlockStop(0)


def test_a_call_without_a_status_that_is_not_whole_is_settled_at_the_end() -> None:
    stream = [added(call()), arguments('{"x"'), done(call('{"x"', status=None))]
    assert not any(isinstance(one, BlockStop) for one in made_of(*stream))
    assert made_of(*stream, terminal("incomplete"))[-1] == BlockStop(0, complete=False)


def test_arguments_behind_the_end_of_their_call_are_recorded() -> None:
    stream = [
        added(call()),
        arguments(WHOLE),
        arguments_done(WHOLE),
        arguments(" "),
        arguments("x"),
        done(call(WHOLE + " ")),
    ]
    assert said(made_of(*stream, terminal())) == WHOLE
    assert losses(*stream) == [("arguments", "they came after the end of their call")]


PIECES = ('{"path": "a', '/b/c"}')
"""What is left of some arguments when a delta was lost."""


@pytest.mark.parametrize(
    "ends",
    [
        [arguments_done('{"path": "a/lost/b/c"}')],
        [done(call('{"path": "a/lost/b/c"}'))],
        [terminal(output=[call('{"path": "a/lost/b/c"}')])],
    ],
)
def test_a_call_whose_arguments_ended_as_others_than_those_that_came_fails_and_stays_open(ends: list[Json]) -> None:
    stage = ResponsesNormalizer()
    play(stage, *map(frame, (created(), added(call()), *map(arguments, PIECES))))
    with pytest.raises(UpstreamError, match="the call of 'f' are not those that it ended with") as caught:
        play(stage, *map(frame, ends))
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_TOOL_ARGUMENTS, "invalid_tool_arguments")
    assert not any(isinstance(event, BlockStop) for event in caught.value.made)


def test_freeform_input_that_ended_as_another_than_came_fails() -> None:
    begun = (created(), added(custom()), event("response.custom_tool_call_input.delta", delta="ab"))
    with pytest.raises(UpstreamError, match="not those that it ended with"):
        events(*begun, done(custom("a lost b", status="completed")))
    made = events(*begun, done(custom("a", status="completed")), terminal())
    assert BlockStop(0) in made


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (('{"a":"é"}',), '{"a": "\\u00e9"}'),
        (("{}", '{"a":1}'), '{"a":1}'),
        (('{"a":1}', '{"a":1}'), '{"a":1}'),
        (('{"a":1}',), '"{\\"a\\":1}"'),
        (('{"a":1}',), '{"a":1'),
        (('{"a":1}',), "null and void"),
    ],
)
def test_arguments_that_are_told_again_in_other_words_are_the_same(pieces: tuple[str, ...], whole: str) -> None:
    stream = (created(), added(call()), *map(arguments, pieces), done(call(whole)), terminal())
    assert BlockStop(0) in events(*stream)


def test_what_was_said_of_a_call_is_kept_no_longer_than_the_call() -> None:
    stage = ResponsesNormalizer()
    play(stage, *map(frame, (created(), added(call()), arguments('{"a":1}'), done(call('{"a":1}')))))
    other = terminal(output=[call('{"a":2}')])
    assert MessageStop() in [event for step in play(stage, frame(other)) for event in step]


def test_more_arguments_at_the_end_of_an_ended_call_are_recorded() -> None:
    stream = [added(call()), arguments(WHOLE), arguments_done(WHOLE), done(call(WHOLE + "x"))]
    assert losses(*stream) == [("snapshot", "it tells more than the item had at its end")]


def test_freeform_input_is_no_json_and_ends_with_its_item() -> None:
    delta = event("response.custom_tool_call_input.delta", output_index=0, item_id="ctc1", delta="*** Begin")
    told = event("response.custom_tool_call_input.done", output_index=0, item_id="ctc1", input="*** Begin Patch")
    made = normalized(created(), added(custom()), delta, told, done(custom("*** Begin Patch")), terminal())
    assert made[1] == [BlockStart(0, ToolUseBlock("a", "f", ToolKind.CUSTOM))]
    assert made[3] == [ArgumentsDelta(0, " Patch")]
    assert made[4] == [BlockStop(0)]


def test_a_freeform_call_of_a_function_is_a_functions() -> None:
    stream = (added(custom()), done(custom('{"x":1}', status="completed")), terminal())
    told = event("response.custom_tool_call_input.delta", delta='{"x":1}')
    for frames in (stream, (stream[0], told, *stream[1:])):
        facts = RequestFacts(map=RequestMap({"f": OfferedTool("f")}))
        made = events(created(), *frames, stage=ResponsesNormalizer(facts=facts))
        assert made[1:4] == [BEGIN, ArgumentsDelta(0, '{"x":1}'), BlockStop(0)]
        freeform = RequestFacts(map=RequestMap({"f": OfferedTool("f", kind=ToolKind.CUSTOM)}))
        made = events(created(), *frames, stage=ResponsesNormalizer(facts=freeform))
        assert made[1] == BlockStart(0, ToolUseBlock("a", "f", ToolKind.CUSTOM))


def test_freeform_input_before_its_call_waits_for_it() -> None:
    delta = event("response.custom_tool_call_input.delta", output_index=0, item_id="ctc1", delta="x")
    told = event("response.custom_tool_call_input.done", output_index=0, item_id="ctc1", input="xy")
    assert made_of(delta, told, done(custom("xyz")), terminal()) == [
        BlockStart(0, ToolUseBlock("a", "f", ToolKind.CUSTOM)),
        ArgumentsDelta(0, "x"),
        ArgumentsDelta(0, "y"),
        ArgumentsDelta(0, "z"),
        BlockStop(0),
    ]


def test_interleaved_calls_are_told_apart() -> None:
    made = made_of(
        added(call()),
        added(call(name="g", call_id="b", id="fc2"), 1),
        arguments("1", 1, "fc2"),
        arguments("2"),
        arguments("3", 1, "fc2"),
        arguments("4"),
        terminal(),
    )
    assert [(one.index, one.text) for one in made if isinstance(one, ArgumentsDelta)] == [
        (1, "1"),
        (0, "2"),
        (1, "3"),
        (0, "4"),
    ]
    assert made[-2:] == [BlockStop(0), BlockStop(1)]


def test_two_calls_with_the_same_id_get_different_ones() -> None:
    again = call(WHOLE, id="fc2")
    made = made_of(done(call(WHOLE)), done(again, 1), terminal())
    assert [one.block for one in made if isinstance(one, BlockStart)] == [
        ToolUseBlock("a", "f"),
        ToolUseBlock("a_2", "f"),
    ]


def test_a_call_without_a_call_id_has_its_items_or_a_new_one() -> None:
    made = made_of(done(call(WHOLE, call_id="")), done(call(WHOLE, call_id=" ", id=""), 1), terminal())
    first, second = (one.block for one in made if isinstance(one, BlockStart))
    assert first == ToolUseBlock("fc1", "f")
    assert isinstance(second, ToolUseBlock)
    assert second.id.startswith("call_")


@pytest.mark.parametrize("odd", [{"call_id": "x" * 11}, {"name": "x" * 11}, {"call_id": "", "id": "x" * 11}])
def test_an_endless_id_or_name_fails_the_stream(odd: Json) -> None:
    stage = ResponsesNormalizer(limits=Limits(id_chars=10))
    with pytest.raises(LimitExceeded, match="longer than 10 characters"):
        stage.receive([frame(added(call(**odd)))])


def test_an_empty_name_later_changes_nothing() -> None:
    made = made_of(added(call()), done(call(WHOLE, name="", call_id="")), terminal())
    assert made == [BEGIN, ArgumentsDelta(0, WHOLE), BlockStop(0)]


def test_a_call_that_has_begun_stays_what_it_is() -> None:
    stream = [added(call()), arguments(WHOLE), done(custom("x", id="fc1"))]
    assert losses(*stream, terminal()) == []
    assert made_of(*stream, terminal()) == [BEGIN, ArgumentsDelta(0, WHOLE), BlockStop(0)]


def test_a_namespace_is_the_calls() -> None:
    begun = BlockStart(0, ToolUseBlock("a", "f", namespace="collab"))
    for stream in ([done(call(WHOLE, namespace="collab"))], [added(call(namespace="collab")), arguments(WHOLE)]):
        assert made_of(*stream, terminal())[0] == begun
    assert losses(done(call(WHOLE, namespace="collab"))) == []


@pytest.mark.parametrize(
    ("told", "same"),
    [
        (call(WHOLE, id="x"), True),
        (call(WHOLE, id="x", call_id="z"), True),
        (call(WHOLE, id="x", call_id="z") | {"name": None}, True),
        (call('{"y":2}', id="x", call_id="z"), False),
        (call(WHOLE, id="x", call_id="z", name="g"), False),
    ],
)
def test_a_call_is_known_again_by_its_id_or_by_what_it_says(told: Json, same: bool) -> None:
    made = made_of(added(call(), 5), arguments('{"x"', 5), terminal(output=[told]))
    assert sum(isinstance(one, BlockStart) for one in made) == (1 if same else 2)


def test_an_announcement_without_a_name_opens_nothing() -> None:
    made = normalized(created(), added(call(name="")), arguments('{"x"'), done(call(WHOLE)), terminal())
    assert not any(isinstance(one, BlockStart) for one in made[1] + made[2])
    assert made[3] == [BEGIN, ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}"), BlockStop(0)]


def test_a_character_cut_in_two_is_joined() -> None:
    half = rb'{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc1","delta":"%s"}'
    assert said(made_of(added(call()), half % rb"\ud83d", half % rb"\ude00", terminal())) == "\U0001f600"
    assert said(made_of(added(call()), half % rb"\ud83d", terminal("incomplete"))) == "\ufffd"


def test_a_cut_stream_says_so_behind_a_call() -> None:
    assert isinstance(events(created(), added(call()), arguments('{"x"'))[-1], StreamError)
