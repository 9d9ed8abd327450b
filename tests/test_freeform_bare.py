"""A freeform tool that the upstream knows as a function, and that the model calls with the bare text."""

import json
from typing import Any

import pytest

from pipeline.arguments import FreeformArguments
from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, Event, StreamError, ToolUseBlock
from pipeline.limits import Limits
from pipeline.outcome import Verdict
from pipeline.request import RequestOptions
from pipeline.testing import play
from stages.interleave import InterleaveBuffer
from tests.canonical import BEGIN, BOOM, END, args, start, stop
from tests.exchange import Got, answered, route
from tests.lawful import check_law
from tests.support import DONE, call, finish, sse

PATCH = "*** Begin Patch\n*** Add File: a\n+é\n*** End Patch"
TOOLS = [
    {"type": "custom", "name": "patch", "format": {"type": "text"}},
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
]
ASKED = json.dumps({"model": "m", "stream": True, "input": "go", "tools": TOOLS}).encode()
WHOLE = ASKED.replace(b'"stream": true', b'"stream": false')
SPELLINGS = {
    "bare": PATCH,
    "string": json.dumps(PATCH),
    "object": json.dumps({"input": PATCH}),
    "twice": json.dumps(json.dumps({"input": PATCH})),
    "behind none": "{}" + json.dumps({"input": PATCH}),
    "broken": '{"input": "' + PATCH + '"}',
}
EACH = pytest.mark.parametrize("text", SPELLINGS.values(), ids=list(SPELLINGS))


def stream(upstream: str, name: str, text: str, size: int) -> bytes:
    """A call in pieces of so many characters, and one of a function behind it that begins in its middle."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)] or [""]
    if upstream == "chat":
        said = [call(0, None, None, piece) for piece in pieces]
        behind = call(1, "c2", "f", '{"x":1}')
        return sse(call(0, "c1", name, ""), said[0], behind, *said[1:], finish("tool_calls"), DONE)
    blocks: list[Any] = [{"type": "message_start", "message": {"id": "msg_1", "content": []}}]
    blocks.append(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": name}}
    )
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece}
        blocks.append({"type": "content_block_delta", "index": 0, "delta": delta})
    blocks.append({"type": "content_block_stop", "index": 0})
    block = {"type": "tool_use", "id": "c2", "name": "f", "input": {"x": 1}}
    blocks.append({"type": "content_block_start", "index": 1, "content_block": block})
    blocks.append({"type": "content_block_stop", "index": 1})
    blocks.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return sse(*blocks, {"type": "message_stop"})


def output(got: Got) -> list[tuple[str, str]]:
    """The calls of an answer that is complete."""
    assert got.exchange.outcome.verdict is Verdict.COMPLETE
    if got.is_stream:
        check_law("responses", got.body)
        line = [line for line in got.body.decode().splitlines() if line.startswith("data: {")][-1]
        response = json.loads(line.removeprefix("data: "))["response"]
    else:
        response = json.loads(got.body)
    return [(item["type"], item.get("input", item.get("arguments"))) for item in response["output"]]


BOTH = [("custom_tool_call", PATCH), ("function_call", '{"x":1}')]


@EACH
@pytest.mark.parametrize("size", [1, 2, 7, 999])
@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_in_a_stream_the_text_is_the_input_whatever_the_pieces(upstream: str, size: int, text: str) -> None:
    body = stream(upstream, "patch", text, size)
    for cut in (1, 64, len(body)):
        reads = [body[at : at + cut] for at in range(0, len(body), cut)]
        got = answered(route("responses", upstream).open(ASKED), *reads)
        assert output(got) == BOTH
        taken = [entry["action"] for entry in got.exchange.ledger if entry["path"] == "arguments"]
        assert taken == (["taken as the input"] if text[0] not in "{" else [])


@EACH
@pytest.mark.parametrize("asked", [ASKED, WHOLE], ids=["stream", "whole"])
def test_in_a_whole_answer_the_text_is_the_input(asked: bytes, text: str) -> None:
    function = {"name": "patch", "arguments": text}
    calls = [{"id": "c1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
    assert output(answered(route("responses", "chat").open(asked), body)) == BOTH[:1]


@pytest.mark.parametrize("text", ["{ a: 1 }", "[1].map(String)", "{'a': 'b'}"])
@pytest.mark.parametrize("asked", [ASKED, WHOLE], ids=["stream", "whole"])
def test_bare_text_is_never_mended_nor_cut_where_it_looks_like_json(asked: bytes, text: str) -> None:
    body = sse(call(0, "c1", "patch", text), finish("tool_calls"), DONE)
    assert output(answered(route("responses", "chat").open(asked), body)) == [("custom_tool_call", text)]


@pytest.mark.parametrize("text", [PATCH, json.dumps({"input": PATCH})])
def test_so_it_is_where_the_upstream_was_offered_a_freeform_tool_and_calls_a_function(text: str) -> None:
    on = route("responses", "chat", requests=RequestOptions(custom_tools=True))
    got = answered(on.open(ASKED), sse(call(0, "c1", "patch", text), finish("tool_calls"), DONE))
    assert output(got) == BOTH[:1]


def test_other_functions_are_called_with_an_object_as_before() -> None:
    got = answered(route("responses", "chat").open(ASKED), sse(call(0, "c", "f", "bare"), finish("tool_calls"), DONE))
    assert got.exchange.outcome.error is not None
    assert got.exchange.outcome.error.code == "invalid_tool_arguments"


def test_bare_text_that_was_cut_is_left_open_and_what_the_limit_cut_is_incomplete() -> None:
    cut = answered(route("responses", "chat").open(ASKED), sse(call(0, "c1", "patch", "*** Beg")))
    assert cut.exchange.outcome.verdict is Verdict.CUT
    assert b'"response.output_item.done"' not in cut.body
    limited = answered(route("responses", "chat").open(ASKED), sse(call(0, "c1", "patch", "*** Beg"), finish("length")))
    assert b'"status":"incomplete","call_id":"c1"' in limited.body


# The stage, step by step


OPEN = start(0, ToolUseBlock("i", "patch"))
NEXT = start(1, ToolUseBlock("j", "f"))


def buffer() -> InterleaveBuffer:
    return InterleaveBuffer(freeform={"patch"})


def test_what_waits_behind_bare_text_waits_for_the_finish_and_behind_the_object_only_for_its_end() -> None:
    assert play(buffer(), BEGIN, OPEN, args(0, "ab"), NEXT, args(1, '{"x":1}'), args(0, "c"))[1:] == [
        [OPEN],
        [args(0, "ab")],
        [],
        [],
        [args(0, "c")],
    ]
    said = args(0, '{"input":"a"}')
    assert play(buffer(), BEGIN, OPEN, said, NEXT)[2:] == [[said], [stop(0), NEXT]]


def test_what_follows_the_object_is_recorded_and_not_written() -> None:
    stage = buffer()
    assert play(stage, OPEN, args(0, '{"input":"a"} '), args(0, "x"), stop(0))[1:] == [
        [args(0, '{"input":"a"}')],
        [],
        [stop(0)],
    ]
    assert [entry.reason for entry in stage.ledger] == ["text behind the end of their JSON value"]


@pytest.mark.parametrize("nothing", ["", " ", "null", "{}", " { } "])
def test_no_arguments_are_an_empty_text(nothing: str) -> None:
    events: list[Event] = [OPEN, *(args(0, letter) for letter in nothing), stop(0), END]
    made = [event for step in play(buffer(), *events) for event in step]
    assert [event for event in made if isinstance(event, ArgumentsDelta)] == []
    assert [event.complete for event in made if isinstance(event, BlockStop)] == [True]


@pytest.mark.parametrize("begun", ["{", '{"', '{"inp', '{"input"', ' {"input" : ', '{"input":"ab'])
def test_an_object_that_breaks_off_is_no_input(begun: str) -> None:
    for size in (1, 100):
        stage = buffer()
        play(stage, OPEN, *(args(0, begun[at : at + size]) for at in range(0, len(begun), size)))
        with pytest.raises(UpstreamError, match="no JSON object") as raised:
            stage.receive([END])
        made = raised.value.take()
        assert not any(isinstance(event, BlockStop) for event in made)


@pytest.mark.parametrize("begun", ['{"inp', "nul", "{", '{"input":"a'])
def test_an_error_in_the_middle_leaves_the_call_open(begun: str) -> None:
    made = [event for step in play(buffer(), OPEN, args(0, begun), BOOM) for event in step]
    assert [type(event) for event in made] == [BlockStart, ArgumentsDelta, StreamError]
    assert "".join(event.text for event in made if isinstance(event, ArgumentsDelta)) == begun


def test_the_arguments_are_bounded() -> None:
    arguments = FreeformArguments(Limits(arguments_bytes=4))
    assert arguments.feed("abcd") == "abcd"
    with pytest.raises(LimitExceeded):
        arguments.feed("e")


def test_a_beginning_that_decides_nothing_is_withheld_and_counted() -> None:
    arguments = FreeformArguments()
    assert [arguments.feed(text) for text in ("{", ' "inp', "é", "x")] == ["", "", '{ "inpé', "x"]
    assert arguments.held == 0
    arguments = FreeformArguments()
    arguments.feed(" {")
    assert (arguments.held, arguments.close(cut=True), arguments.close()) == (2, (" {", False), (" {", False))
