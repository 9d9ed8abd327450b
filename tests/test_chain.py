"""The whole default chain, from a Chat stream's bytes to a Messages stream's."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.drive import Pipeline, drive
from pipeline.events import Event, StopReason, TextDelta
from pipeline.outcome import Verdict
from pipeline.stage import AsyncStage, Chain, EventStage, parts
from pipeline.testing import cut
from stages.recipe import default_chain
from tests.support import (
    CHAT,
    DONE,
    MESSAGES,
    Chance,
    Run,
    call,
    chat_streams,
    chunk,
    converted,
    cuts_of,
    finish,
    fragment,
    read,
    reasoning,
    sse,
    text,
    usage,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "chat"
CUT_EVERYWHERE = ("two-calls-alternate", "think-call-think-call", "error-frame", "mistral")


# Any cut of the bytes


@given(chat_streams())
def test_all_that_a_stream_says_comes_through(stream: Chance) -> None:
    answer = read(Run().all([stream.raw]))
    assert answer.ended
    assert answer.said("text") == stream.text
    assert answer.said("thinking") == stream.reasoning
    assert answer.calls == stream.calls
    assert answer.stop == ("tool_use" if stream.calls else "end_turn")
    assert (answer.usage["input_tokens"], answer.usage["output_tokens"]) == (10, 5)


@given(st.data())
def test_any_cut_of_the_bytes_gives_the_same_bytes(data: st.DataObject) -> None:
    raw = data.draw(chat_streams()).raw
    whole, pieces = Run(), Run()
    assert pieces.all(data.draw(cuts_of(raw))) == whole.all([raw])
    assert pieces.ledger.as_dicts() == whole.ledger.as_dicts()
    assert pieces.outcome == whole.outcome


@given(st.data())
def test_a_stream_that_ends_anywhere_ends_as_an_error_with_all_that_came(data: st.DataObject) -> None:
    stream = data.draw(chat_streams())
    seen = data.draw(st.integers(0, len(stream.items) - 3))
    run = Run()
    answer = read(run.all(cut(sse(*stream.items[:seen]), data.draw(st.sampled_from([1, 7, None])))))
    assert run.outcome.verdict is Verdict.CUT
    assert answer.error is not None
    assert not answer.ended
    held_behind_a_cut_call = bool(answer.blocks) and answer.blocks[-1][0] == "tool_use" and not answer.blocks[-1][4]
    deltas = [item["choices"][0]["delta"] for item in stream.items[:seen]]
    said = "".join(delta.get("content", "") for delta in deltas)
    assert answer.said("text") == said or (held_behind_a_cut_call and said.startswith(answer.said("text")))


# The end at every byte


@pytest.mark.parametrize("name", CUT_EVERYWHERE)
def test_the_end_at_any_byte_is_a_legal_stream(name: str) -> None:
    raw = (FIXTURES / f"{name}.sse").read_bytes()
    whole = read(Run().all([raw]))
    behind_finish = re.search(rb'"finish_reason": ?"\w+".*\n\n', raw)
    for end in range(len(raw)):
        run = Run()
        answer = read(run.all([raw[:end]]))
        assert answer.ended == (run.outcome.verdict is Verdict.COMPLETE)
        if answer.error is not None and whole.ended:
            assert behind_finish is None or end < behind_finish.end(), f"an error though the finish came, at {end}"
        for came, due in zip(answer.blocks, whole.blocks, strict=False):
            assert came[0] == due[0]
            assert due[1].startswith(came[1].removesuffix("\ufffd")), f"at byte {end}"
        assert len(answer.blocks) <= len(whole.blocks)


def test_what_came_whole_is_there_when_the_end_comes_in_the_next_frame() -> None:
    raw = sse(reasoning("A"), text("b"), call(0, "i", "f", '{"x":1}'), text("c")) + b'data: {"id":"c1","cho'
    answer = read(Run().all([raw]))
    assert [block[:2] for block in answer.blocks] == [
        ["thinking", "A"],
        ["text", "b"],
        ["tool_use", '{"x":1}'],
        ["text", "c"],
    ]
    assert answer.error == {"type": "api_error", "message": "the upstream ended before its finish"}


# Nothing is held that need not be


def test_every_delta_of_a_plain_stream_leaves_in_the_read_it_came_in() -> None:
    run = Run()
    run.give(sse(chunk({"role": "assistant", "content": ""})))
    for said in (reasoning("A"), reasoning("B"), text("c"), text(" "), text("d"), reasoning("E")):
        delta = said["choices"][0]["delta"]
        word = next(iter(delta.values()))
        assert f'"{word}"'.encode() in run.give(sse(said)), f"{word!r} was held back"
        assert run.chain.held == 0


def test_every_fragment_of_a_call_leaves_in_the_read_it_came_in() -> None:
    run = Run()
    assert b'"name":"f"' in run.give(sse(call(0, "i", "f", "")))
    for part in ('{"x"', ':"', "y", '"', "}"):
        assert b"input_json_delta" in run.give(sse(call(0, arguments=part))), f"{part!r} was held back"
        assert run.chain.held == 0


def test_a_blank_beginning_waits_for_its_first_word() -> None:
    run = Run()
    assert b"content_block" not in run.give(sse(text("\n")))
    assert run.chain.held == 1
    assert run.give(sse(text("a"))).count(b"content_block_delta") == 4
    assert run.chain.held == 0


def test_what_waits_behind_a_call_is_let_go_as_soon_as_it_has_ended() -> None:
    run = Run()
    run.give(sse(call(0, "i", "f", '{"x":')))
    assert run.give(sse(text("behind"), call(1, "j", "g", '{"y":'))) == b""
    assert run.chain.held > 0
    out = run.give(sse(call(0, arguments="1}")))
    assert out.index(b'"1}"') < out.index(b"behind") < out.index(b'"name":"g"') < out.index(rb"{\"y\":")
    assert run.chain.held == 0
    assert b'"2}"' in run.give(sse(call(1, arguments="2}")))


def test_the_next_call_ends_the_one_before_it() -> None:
    run = Run()
    run.give(sse(call(0, "i", "f", '{"x":1}')))
    assert b"content_block_stop" in run.give(sse(call(1, "j", "g", "")))


# How it ends


def test_a_call_that_the_upstream_cut_is_left_open_before_the_error() -> None:
    answer = read(converted(call(0, "i", "f", '{"x":'), text("lost")))
    assert answer.blocks == [["tool_use", '{"x":', "i", "f", False]]
    assert answer.error is not None


def test_a_call_that_the_limit_cut_is_closed() -> None:
    answer = read(converted(call(0, "i", "f", '{"x":'), text("t"), finish("length"), DONE))
    assert answer.blocks == [["tool_use", '{"x":', "i", "f", True], ["text", "t"]]
    assert answer.stop == "max_tokens"


@pytest.mark.parametrize("arguments", ['{"x":', "nonsense", "[1]", '"text"', "1"])
def test_arguments_that_are_no_object_at_a_normal_finish_fail(arguments: str) -> None:
    run = Run()
    answer = read(run.all([sse(call(0, "i", "f", arguments), finish("tool_calls"), DONE)]))
    assert answer.error == {"type": "api_error", "message": "the arguments of the call of 'f' are no JSON object"}
    assert answer.blocks[0][4] is False
    assert run.outcome.error is not None
    assert (run.outcome.error.code, run.outcome.error.retryable) == ("invalid_tool_arguments", True)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ([], "{}"),
        (["null"], "{}"),
        (["nu", "ll"], "{}"),
        ([" "], "{}"),
        (["{}"], "{}"),
        (["{}", '{"x":1}'], '{"x":1}'),
        (['"{\\"x\\":1}"'], '{"x":1}'),
        (['"{\\"x', '\\":1}"'], '{"x":1}'),
        (['{"x":1}', " ", '{"y":2}'], '{"x":1}'),
    ],
)
def test_arguments_become_one_object(arguments: Sequence[str], written: str) -> None:
    answer = read(converted(call(0, "i", "f"), *(call(0, arguments=part) for part in arguments), finish(), DONE))
    assert answer.blocks == [["tool_use", written, "i", "f", True]]
    assert answer.stop == "tool_use"


def test_a_nameless_call_fails_the_stream_and_the_text_stays() -> None:
    answer = read(converted(text("t"), call(0, "i", arguments='{"x":1}'), finish("tool_calls"), DONE))
    assert answer.blocks == [["text", "t"]]
    assert answer.error == {"type": "api_error", "message": "a tool call came without a name"}


def test_content_behind_the_finish_comes_before_the_end() -> None:
    answer = read(converted(text("a"), finish(), text("b"), usage(), DONE, text("c")))
    assert answer.said("text") == "ab"
    assert (answer.stop, answer.usage["output_tokens"]) == ("end_turn", 5)


def test_a_finish_and_then_the_end_is_complete() -> None:
    run = Run()
    assert read(run.all([sse(text("a"), finish())])).stop == "end_turn"
    assert run.outcome.verdict is Verdict.COMPLETE
    assert run.outcome.stop_reason is StopReason.END_TURN


def test_the_end_without_a_finish_is_complete_if_the_upstream_said_done() -> None:
    run = Run()
    assert read(run.all([sse(text("a"), DONE)])).stop == "end_turn"
    assert ("finish_reason", "supplied") in run.lost


def test_a_whole_answer_in_place_of_a_stream_is_read_all_the_same() -> None:
    message = {
        "role": "assistant",
        "reasoning_content": "R",
        "content": "T",
        "tool_calls": [fragment(None, "i", "f", '{"x":1}'), fragment(None, "j", "g", "{}")],
    }
    body = {**usage(), "object": "chat.completion", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    run = Run()
    answer = read(run.all([sse(body)[6:-2]]))
    assert [block[:2] for block in answer.blocks] == [
        ["thinking", "R"],
        ["text", "T"],
        ["tool_use", '{"x":1}'],
        ["tool_use", "{}"],
    ]
    assert (answer.stop, answer.usage["input_tokens"]) == ("tool_use", 10)


def test_a_ping_while_nothing_comes_is_the_dialects_own() -> None:
    run = Run()
    run.give(sse(text("a")))
    assert b"".join(run.chain.idle()) == b'event: ping\ndata: {"type":"ping"}\n\n'
    run.give(sse(finish(), DONE))
    assert not run.chain.idle()


# A stage of somebody's own in the middle


class Shout(EventStage):
    """Text in capitals."""

    def on_event(self, event: Event) -> Sequence[Event]:
        return [TextDelta(event.index, event.text.upper()) if isinstance(event, TextDelta) else event]


class AwaitingShout(AsyncStage[Event, Event]):
    """The same, with something to wait for."""

    async def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        await anyio.lowlevel.checkpoint()
        return Shout().receive(items)


STREAM = [reasoning("a"), text("b"), call(0, "i", "f", '{"x":'), text("c"), call(0, arguments="1}"), finish(), DONE]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("size", [1, 7, None])
def test_an_awaiting_stage_in_the_middle_gives_the_same_bytes(backend: str, size: int | None) -> None:
    stages = parts(default_chain(CHAT, MESSAGES))
    wanted = b"".join([*Chain([*stages[:2], Shout(), *stages[2:]]).receive([sse(*STREAM)])])
    stages = parts(default_chain(CHAT, MESSAGES))
    pipeline = Pipeline([*stages[:2], AwaitingShout(), *stages[2:]])
    reads, sent = iter(cut(sse(*STREAM), size)), bytearray()

    async def receive() -> bytes:
        return next(reads, b"")

    async def send(out: bytes) -> None:
        sent.extend(out)

    anyio.run(partial(drive, receive, pipeline, send), backend=backend)
    assert bytes(sent) == wanted
    assert b'"B"' in sent
    assert read(bytes(sent)).said("text") == "BC"


def test_two_streams_at_once_do_not_know_of_each_other() -> None:
    one, other = Run(), Run()
    outs = [bytearray(), bytearray()]
    for a, b in pairwise([*STREAM, STREAM[-1]]):
        outs[0] += one.give(sse(a))
        outs[1] += other.give(sse(b))
    assert bytes(outs[0]) == Run().all([sse(*STREAM)])
    assert b'"a"' not in outs[1]
