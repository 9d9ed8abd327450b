"""stages.whole: a body becomes events at its end, events become a body at theirs."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.change import Change
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    Carry,
    Event,
    Frame,
    MessageStop,
    Ping,
    RedactedReasoningBlock,
    ServerBlock,
    SignatureDelta,
    StreamError,
    ToolKind,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import Message, Text, ToolUse, disassemble
from pipeline.outcome import Outcome
from pipeline.stage import Chain
from pipeline.testing import EOF, check_stage, cut, play
from stages.scrub import meant_object
from stages.verdict import VerdictStage
from stages.whole import OVERHEAD, AnswerBound, BodyReader, BodyWriter, remembering
from tests.canonical import BEGIN, BOOM, CUT, END, REASONING, TEXT, start, stop, text

ANSWER = Message("m1", "model", (Text("hello"), ToolUse("a", "f", "{}")))


def reading(body: bytes) -> Message:
    """A dialect's reader: `{"say": ...}` is an answer, `{"error": ...}` is an error behind what was said."""
    try:
        said = json.loads(body)
    except ValueError as error:
        raise UpstreamError("no JSON") from error
    if not isinstance(said, dict) or not {"say", "error"} & said.keys():
        raise UpstreamError("no answer")
    content = (Text(said["say"]),) if "say" in said else ()
    return Message("m1", "model", content, error=StreamError(ErrorKind.API, said["error"]) if "error" in said else None)


def read(body: bytes, cause: StreamError | None = None) -> list[Event]:
    """What comes of a body at its end."""
    return play(BodyReader(reading), body, EOF(cause) if cause else EOF)[1]


def writing(message: Message) -> Any:
    """A dialect's writer."""
    return {"id": message.id, "said": [content.text for content in message.content if isinstance(content, Text)]}


def patching(change: Change) -> Any:
    """A dialect's patch."""
    return {"came": change.body.decode(), "was": writing(change.was), "now": writing(change.now)}


def test_a_body_that_nobody_changed_goes_back_as_it_came_and_one_that_was_is_patched() -> None:
    body = b'{ "say": "hello" }'

    def made(events: list[Event]) -> bytes:
        return b"".join(piece for step in play(BodyWriter(writing, patch=patching), events) for piece in step)

    kept = play(BodyReader(reading, tell=remembering), body, EOF)[1]
    assert made([*kept]) == body
    assert made([*kept[:2], text(0, "hel"), text(0, "lo"), *kept[3:]]) == body
    told = {"came": body.decode(), "was": {"id": "m1", "said": ["hello"]}}
    assert json.loads(made([*kept[:2], text(0, "bye"), *kept[3:]])) == {**told, "now": {"id": "m1", "said": ["bye"]}}
    assert json.loads(made([BEGIN, *kept[1:]])) == {**told, "now": {"id": "id", "said": ["hello"]}}
    assert json.loads(made(read(body))) == {"id": "m1", "said": ["hello"]}
    assert json.loads(b"".join(play(BodyWriter(writing), kept)[0])) == {"id": "m1", "said": ["hello"]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{'x': 1,}", '{"x":1}'),
        ('{"x": 1', '{"x":1}'),
        (r'{"x":"\ud83d"}', '{"x":"\ufffd"}'),
        ('{"x": 1}', '{"x": 1}'),
        ("", ""),
        ("null", "null"),
        ("no JSON", "no JSON"),
        ("[1", "[1"),
    ],
)
def test_arguments_of_a_whole_answer_are_mended_if_they_mean_an_object(written: str, meant: str) -> None:
    def read(_: bytes) -> Message:
        cut, free = ToolUse("b", "f", written, complete=False), ToolUse("c", "f", written, ToolKind.CUSTOM)
        return Message("m", "m", (ToolUse("a", "f", written), cut, free))

    ledger = Ledger()
    events = play(BodyReader(read, mend=partial(meant_object, depth=200), ledger=ledger), b"{}", EOF)[1]
    assert [event.text for event in events if isinstance(event, ArgumentsDelta)] == [
        text for text in (meant, written, written) if text
    ]
    assert [(entry.path, entry.action) for entry in ledger] == ([("arguments", "mended")] if meant != written else [])


# Reading


def test_nothing_comes_of_a_body_before_its_end() -> None:
    stage = BodyReader(reading)
    assert play(stage, b'{"say"', b': "hello"}') == [[], []]
    assert (stage.held, stage.ended) == (16, False)
    assert stage.receive_eof() == list(disassemble(Message("m1", "model", (Text("hello"),))))
    assert (stage.held, stage.ended) == (0, True)


@given(st.integers(1, 20))
def test_any_cut_of_a_body_gives_the_same_events(size: int) -> None:
    body = b'{"say": "hello"}'
    assert [event for step in play(BodyReader(reading), *cut(body, size), EOF) for event in step] == read(body)


def test_an_error_that_is_all_of_a_body_comes_alone() -> None:
    assert read(b'{"error": "boom"}') == [StreamError(ErrorKind.API, "boom")]


def test_an_error_comes_behind_what_was_said_before_it() -> None:
    made = read(b'{"say": "hel", "error": "boom"}')
    assert made == [BEGIN_M1, start(0, TEXT), text(0, "hel"), stop(0), StreamError(ErrorKind.API, "boom")]


BEGIN_M1 = next(disassemble(ANSWER))


@pytest.mark.parametrize("body", [b"<html>", b'{"other": 1}', b'"say"', b'{"say": "x"}}'])
def test_a_body_that_is_no_answer_is_the_upstreams_fault(body: bytes) -> None:
    with pytest.raises(UpstreamError):
        read(body)


@pytest.mark.parametrize("body", [b"", b" \r\n\n"])
def test_an_empty_body_was_cut(body: bytes) -> None:
    (error,) = read(body)
    assert error == StreamError(ErrorKind.CUT, "the upstream's answer is empty", "empty_answer", retryable=True)


@pytest.mark.parametrize("end", range(1, 15))
def test_a_body_without_its_end_was_cut(end: int) -> None:
    (error,) = read(b'{"say": "h{]o"}'[:end])
    assert error == StreamError(ErrorKind.CUT, "the upstream's answer lacks its end", "answer_cut", retryable=True)


def test_a_connection_that_breaks_inside_a_body_is_why_it_was_cut() -> None:
    assert read(b'{"say": "hel', CUT) == [CUT]
    assert read(b"", CUT) == [CUT]
    assert read(b"<html>", CUT) == [CUT]


def test_a_connection_that_breaks_behind_a_whole_body_takes_nothing_from_it() -> None:
    assert read(b'{"say": "hello"}', CUT) == read(b'{"say": "hello"}')


def test_a_body_is_bounded() -> None:
    stage = BodyReader(reading, limits=Limits(answer_bytes=16))
    play(stage, b'{"say": "hello"}')
    with pytest.raises(LimitExceeded, match="larger than 16 bytes"):
        stage.receive([b" "])
    assert stage.held == 0


def test_the_reader_keeps_the_rules_of_every_stage() -> None:
    check_stage(lambda: BodyReader(reading), [b'{"say"', b': "hel', b'lo"}'])


# Writing


def written(*steps: Any) -> list[list[bytes]]:
    """What comes of events, step by step."""
    return play(BodyWriter(writing), *steps)


def test_a_body_comes_with_the_messages_stop_and_not_before() -> None:
    events = list(disassemble(ANSWER))
    steps = written(*events, EOF)
    assert steps[:-2] == [[]] * (len(events) - 1)
    assert steps[-2:] == [[b'{"id":"m1","said":["hello"]}'], []]


@pytest.mark.parametrize("end", [BOOM, EOF(BOOM), EOF])
def test_a_message_that_failed_has_no_body(end: Any) -> None:
    assert written(BEGIN, start(0, TEXT), text(0, "a"), stop(0), end) == [[]] * 5


def test_nothing_comes_behind_the_terminal() -> None:
    stage = BodyWriter(writing)
    assert play(stage, [BEGIN, END, MessageStop(), MessageStop()], MessageStop(), EOF)[1:] == [[], []]
    failed = BodyWriter(writing)
    assert play(failed, [BEGIN, BOOM, MessageStop()], MessageStop()) == [[], []]
    assert stage.ended
    assert failed.ended


def test_what_is_held_is_counted_and_let_go() -> None:
    stage = BodyWriter(writing)
    play(stage, BEGIN, start(0, REASONING), SignatureDelta(0, "s" * 1000))
    assert 1000 < stage.held < 2000
    play(stage, [stop(0), END, MessageStop()])
    assert stage.held == 0


def test_what_says_nothing_is_not_held() -> None:
    stage = BodyWriter(writing)
    play(stage, [Ping(), Carry("chat", Frame(b"{}"))] * 100)
    assert stage.held == 0


def test_the_writer_keeps_the_rules_of_every_stage() -> None:
    check_stage(lambda: BodyWriter(writing), list(disassemble(ANSWER)))


def test_a_body_goes_through_as_it_came() -> None:
    chain = Chain([BodyReader(reading), BodyWriter(writing)])
    assert play(chain, b'{"say": "hello"}', EOF) == [[], [b'{"id":"m1","said":["hello"]}']]


# The bound


def bound() -> AnswerBound:
    return AnswerBound(limits=Limits(answer_bytes=2_000))


@pytest.mark.parametrize("letters", ["a", "a" * 400])
@pytest.mark.parametrize("batch", [1, 30])
def test_an_answer_is_bounded_however_small_its_pieces_are(letters: str, batch: int) -> None:
    events = [BEGIN, start(0, TEXT), *[text(0, letters)] * 30]
    reads = [events[at : at + batch] for at in range(0, len(events), batch)]
    made = [event for step in play(bound() | VerdictStage(Outcome()), *reads) for event in step]
    fit = (2_000 - 2 * OVERHEAD) // (OVERHEAD + len(letters))
    assert made[:-1] == events[: 2 + fit]
    assert made[-1] == StreamError(ErrorKind.LIMIT, "the answer is larger than 2000 bytes", "answer_bytes")


@pytest.mark.parametrize(
    "large",
    [
        text(0, "é" * 1_000),
        SignatureDelta(0, "s" * 2_000),
        AnnotationDelta(0, {"cited": ["é" * 1_000]}),
        BlockStart(1, ServerBlock("d", {"found": [{"text": "x" * 2_000}]})),
        BlockStart(1, RedactedReasoningBlock("x" * 2_000)),
    ],
    ids=lambda event: type(getattr(event, "block", event)).__name__,
)
def test_whatever_is_large_counts_with_its_size(large: Event) -> None:
    stage = bound()
    with pytest.raises(LimitExceeded) as raised:
        stage.receive([BEGIN, start(0, TEXT), large])
    assert raised.value.take() == [BEGIN, start(0, TEXT)]


def test_an_answer_within_its_bound_goes_on_as_it_came() -> None:
    events = [BEGIN, start(0, TEXT), text(0, "a"), SignatureDelta(0, "s"), Ping(), stop(0), END, MessageStop()]
    stage = bound()
    assert stage.receive(events) is events
    assert play(stage, [Ping()] * 100, EOF) == [[Ping()] * 100, []]
    assert stage.ended
    assert play(bound(), EOF(BOOM)) == [[BOOM]]


def test_the_bound_keeps_the_rules_of_every_stage() -> None:
    check_stage(bound, list(disassemble(ANSWER)))
