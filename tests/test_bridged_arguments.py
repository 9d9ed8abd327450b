"""One dialect over itself, in the other form: a call has the arguments that any other client would run it with."""

import json
from collections.abc import Sequence

import pytest

from pipeline.outcome import Verdict
from pipeline.reply import Form
from tests.alike import Json, cuts, heard
from tests.lawful import GRAMMARS
from tests.returning import returned
from tests.support import DONE, call, finish, sse

every_dialect = pytest.mark.parametrize("name", GRAMMARS)
MENT: list[tuple[tuple[str, ...], list[tuple[str, str]]]] = [
    (("{}", '{"x":1}'), []),
    (('{}{"x":1}',), []),
    (("null", '{"x":1}'), []),
    (('{"x":1} trailing',), [("arguments", "dropped")]),
    (('{"x":1}', '{"x":2}'), [("arguments", "dropped")]),
    (('"{\\"x\\"', ':1}"'), [("arguments", "unwrapped")]),
]
NONE = ("[1]", '{"x": oops}', '"x"', '{"x":')


def named(frames: Sequence[Json]) -> bytes:
    """A stream whose events have names."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in frames)


def stream_of(name: str, *pieces: str, reason: str = "tool_use") -> bytes:
    """A stream of a dialect with a text and a call of `f`, whose arguments come in pieces."""
    if name == "chat":
        began = call(0, "c", "f", "")
        began["choices"][0]["delta"]["content"] = "hello"
        more = (call(0, arguments=piece) for piece in pieces)
        return sse(began, *more, finish("tool_calls" if reason == "tool_use" else "length"), DONE)
    if name == "messages":
        start = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
        usage = {"input_tokens": 1, "output_tokens": 1}
        block: Json = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
        return named(
            [
                {"type": "message_start", "message": {**start, "usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
                {"type": "content_block_stop", "index": 0},
                {"type": "content_block_start", "index": 1, "content_block": block},
                *({"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas),
                {"type": "content_block_stop", "index": 1},
                {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}},
                {"type": "message_stop"},
            ]
        )
    *items, said = items_of("".join(pieces))
    if reason != "tool_use":
        said["status"] = "incomplete"
    ended = "completed" if reason == "tool_use" else "incomplete"
    why = None if ended == "completed" else {"reason": "max_output_tokens"}
    answer: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": ended}
    answer["output"] = [*items, said]
    begun = {**said, "arguments": "", "status": "in_progress"}
    where: Json = {"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 1}
    told = [{**where, "delta": piece} for piece in pieces]
    return named(
        [
            {"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": items[0]},
            {"type": "response.output_item.added", "output_index": 1, "item": begun},
            *told,
            {"type": "response.output_item.done", "output_index": 1, "item": said},
            {"type": f"response.{ended}", "response": {**answer, "incomplete_details": why}},
        ]
    )


def items_of(arguments: str) -> list[Json]:
    """The items of a response with a text and a call."""
    part: Json = {"type": "output_text", "text": "hello", "annotations": []}
    called: Json = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": arguments}
    return [
        {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]},
        {**called, "status": "completed", "odd": 1},
    ]


def body_of(name: str, arguments: str) -> bytes:
    """A whole answer of a dialect that holds arguments as a text, with a text before and one member nobody knows."""
    if name == "chat":
        entry = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}, "odd": 1}
        said = {"role": "assistant", "content": "hello", "tool_calls": [entry]}
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
        return json.dumps(
            {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        ).encode()
    answer: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return json.dumps({**answer, "output": items_of(arguments)}).encode()


def another(name: str) -> str:
    return "chat" if name != "chat" else "messages"


@every_dialect
@pytest.mark.parametrize(("pieces", "lost"), MENT)
def test_a_stream_becomes_an_answer_with_the_arguments_that_are_meant(
    name: str, pieces: tuple[str, ...], lost: list[tuple[str, str]]
) -> None:
    for reads in cuts(stream_of(name, *pieces)):
        told = heard(name, name, reads, stream=False)
        assert (told.calls, told.text, told.verdict) == ([("f", {"x": 1})], "hello", Verdict.COMPLETE)
        assert [entry for entry in told.ledger if entry[0] == "arguments"] == lost
        other = heard(another(name), name, reads, stream=False)
        assert (other.calls, other.text, other.verdict) == (told.calls, told.text, told.verdict)
        assert [entry for entry in other.ledger if entry[0] == "arguments"] == lost


@every_dialect
@pytest.mark.parametrize("arguments", NONE)
def test_a_stream_with_a_call_that_cannot_be_run_fails_as_a_whole(name: str, arguments: str) -> None:
    for client in (name, another(name)):
        for reads in cuts(stream_of(name, arguments)):
            told = heard(client, name, reads, stream=False)
            assert (told.status, told.verdict, told.calls) == (502, Verdict.FAILED, [])
            assert told.ledger.count(("content", "dropped")) == 1


@every_dialect
@pytest.mark.parametrize("arguments", ['{"x":1', '"{\\"x', "", "oops"])
def test_a_call_that_a_limit_cut_is_told_as_such(name: str, arguments: str) -> None:
    for reads in cuts(stream_of(name, arguments, reason="max_tokens")):
        told = heard(name, name, reads, stream=False)
        other = heard(another(name), name, reads, stream=False)
        assert (told.status, told.verdict, told.text) == (200, other.verdict, "hello")
        assert [name for name, _ in told.calls] == [name for name, _ in other.calls]


@pytest.mark.parametrize("name", ["chat", "responses"])
@pytest.mark.parametrize(("pieces", "lost"), [*MENT, (('{"x":1',), [("arguments", "mended")])])
def test_an_answer_becomes_a_stream_with_the_arguments_that_are_meant(
    name: str, pieces: tuple[str, ...], lost: list[tuple[str, str]]
) -> None:
    for reads in cuts(body_of(name, "".join(pieces))):
        told = heard(name, name, reads, stream=True)
        assert (told.calls, told.text, told.verdict) == ([("f", {"x": 1})], "hello", Verdict.COMPLETE)
        other = heard(another(name), name, reads, stream=True)
        assert (other.calls, other.text, other.verdict) == (told.calls, told.text, told.verdict)
        arguments = [entry for entry in other.ledger if entry[0] == "arguments"]
        assert [entry for entry in told.ledger if entry[0] == "arguments"] == arguments


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_what_nobody_knows_stays_with_a_call_whose_arguments_are_mended(name: str) -> None:
    told = heard(name, name, [body_of(name, '{}{"x":1}')], stream=True)
    assert (told.calls, told.ledger) == ([("f", {"x": 1})], ())
    stream, _ = returned(name, [body_of(name, '{}{"x":1}')], arriving=Form.WHOLE, leaving=Form.STREAM)
    assert b'"odd":1' in stream


@pytest.mark.parametrize("name", ["chat", "responses"])
@pytest.mark.parametrize("arguments", ["[1]", "oops", '"x"'])
def test_an_answer_with_a_call_that_cannot_be_run_becomes_a_stream_that_fails(name: str, arguments: str) -> None:
    for client in (name, another(name)):
        for reads in cuts(body_of(name, arguments)):
            told = heard(client, name, reads, stream=True)
            assert (told.verdict, told.calls, told.text) == (Verdict.FAILED, [], "hello")
