"""Hostile bytes through the whole chain: a clear error in the client's words, what was held first, bounded memory."""

import time
from collections.abc import Iterable, Iterator
from itertools import chain as joined
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.limits import Limits
from pipeline.outcome import Verdict
from pipeline.testing import cut
from tests.support import (
    DONE,
    Answer,
    Run,
    call,
    chat_streams,
    chunk,
    cuts_of,
    finish,
    payload,
    read,
    reasoning,
    same_ids,
    sse,
    text,
)

HELLO = [text("Hello"), call(0, "i", "f", '{"x":1}'), reasoning("so")]
"""What comes before the blow: the call has ended, so all of it is to be shown."""
SHOWN = [["text", "Hello"], ["tool_use", '{"x":1}', "i", "f", True], ["thinking", "so"]]


def failed(reads: Iterable[bytes], **limits: int) -> tuple[Answer, Run]:
    """What a client gets of a stream that is to fail."""
    run = Run(Limits(**limits))
    answer = read(run.all(reads))
    assert answer.error is not None
    assert run.outcome.verdict is Verdict.FAILED
    assert run.chain.held == 0
    return answer, run


def message(answer: Answer) -> str:
    """What the client is told."""
    assert answer.error is not None
    return str(answer.error["message"])


# No event stream at all


@pytest.mark.parametrize(
    "body",
    [
        b"502 Bad Gateway",
        b"<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
        b"\x00" * 1000,
        b"{not json",
        "überlastet".encode("latin-1"),
    ],
)
@pytest.mark.parametrize("size", [1, None])
def test_what_is_no_event_stream_is_named_so(body: bytes, size: int | None) -> None:
    answer, run = failed(cut(body, size))
    assert message(answer).startswith("the answer is not an event stream")
    assert answer.blocks == []
    assert run.outcome.error is not None
    assert run.outcome.error.code == "not_an_event_stream"


@pytest.mark.parametrize(
    ("body", "told", "kind"),
    [
        (b'{"error":{"message":"no such key","code":"invalid_api_key"}}', "no such key", "authentication_error"),
        (b'{"error":"out of order"}\n', "out of order", "api_error"),
        (
            b'[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]',
            "slow down",
            "rate_limit_error",
        ),
        (b'{\n  "detail": "Not Found"\n}', "Not Found", "api_error"),
        (b'{"object":"error","message":"too long","code":400}', "too long", "invalid_request_error"),
    ],
)
@pytest.mark.parametrize("size", [1, None])
def test_a_bare_error_body_is_that_error(body: bytes, told: str, kind: str, size: int | None) -> None:
    answer, _ = failed(cut(body, size))
    assert answer.error == {"type": kind, "message": told}


@pytest.mark.parametrize("body", [b"", b"\n\n\n", b": comment\n\n" * 3, b"event: x\n\n", b"\xef\xbb\xbf"])
def test_nothing_at_all_is_a_cut(body: bytes) -> None:
    run = Run()
    answer = read(run.all([body]))
    assert run.outcome.verdict is Verdict.CUT
    assert message(answer) == "the upstream ended before its finish"


# Broken frames


@pytest.mark.parametrize(
    "broken",
    [
        '{"id":"c1","choices":[{"ind',
        '{"id":"c1"}}',
        "[1,",
        '{"a":"\x01"}',
        "{'id':1}",
        '{"a":1} trailing',
    ],
)
@pytest.mark.parametrize("size", [1, 7, None])
def test_a_frame_that_starts_like_json_and_is_none_fails_behind_what_came(broken: str, size: int | None) -> None:
    answer, run = failed(cut(sse(*HELLO, broken, text("never")), size))
    assert answer.blocks == SHOWN
    assert message(answer) == "a frame starts like JSON and does not parse"
    assert run.outcome.error is not None
    assert (run.outcome.error.code, run.outcome.error.retryable) == ("invalid_json", True)


def test_bytes_that_are_no_utf8_are_replaced_inside_a_text_and_refused_outside() -> None:
    good = sse(text("a*b"), finish(), DONE).replace(b"*", b"\xff\xfe")
    assert read(Run().all([good])).said("text") == "a\ufffd\ufffdb"
    answer, _ = failed([sse(*HELLO) + b'data: {\xff"id":1}\n\n'])
    assert answer.blocks == SHOWN


@pytest.mark.parametrize("size", [1, 1000, None])
def test_an_oversized_frame_fails_behind_what_came(size: int | None) -> None:
    answer, run = failed(cut(sse(*HELLO, text("x" * 5000), text("never")), size), frame_bytes=1000, line_bytes=1000)
    assert answer.blocks == SHOWN
    assert "longer than 1000 bytes" in message(answer)
    assert run.outcome.error is not None
    assert run.outcome.error.retryable is False


def test_megabytes_without_a_line_end_are_held_within_a_bound() -> None:
    limit = 1 << 20
    for beginning in (sse(*HELLO) + b"data: ", sse(*HELLO), b""):
        run = Run(Limits(line_bytes=limit, frame_bytes=limit))
        out = run.give(beginning)
        for _ in range(48):
            out += run.give(b"x" * (1 << 16))
            assert run.chain.held <= limit + (1 << 16)
        answer = read(out + run.end())
        assert answer.error is not None
        assert answer.blocks == (SHOWN if beginning else [])


def test_an_event_of_32000_lines_in_small_reads_is_read_in_linear_time() -> None:
    def seconds(lines: int) -> float:
        body = payload(chunk({"content": "word"})).replace(b'"choices"', b"\n" * lines + b'"choices"')
        raw = b"data: " + body.replace(b"\n", b"\ndata: ") + b"\n\n"
        run, begin = Run(), time.process_time()
        out = b"".join(map(run.give, cut(raw, 16)))
        assert b'"word"' in out
        return time.process_time() - begin

    seconds(1000)
    assert seconds(32_000) < 10 * seconds(8_000)  # four times the lines: linear 4, quadratic 16


# Too deep, too long, too many


def test_json_that_is_nested_too_deeply_fails_behind_what_came() -> None:
    for deep in ('{"a":' * 100_000, '{"choices":' + "[" * 500 + "]" * 500 + "}"):
        answer, _ = failed([sse(*HELLO, deep)])
        assert answer.blocks == SHOWN
        assert message(answer) == "JSON is nested deeper than 200 levels"


def test_arguments_that_are_nested_too_deeply_fail() -> None:
    answer, _ = failed([sse(text("t"), call(0, "i", "f", '{"a":' + "[" * 300 + "]" * 300 + "}"), finish(), DONE)])
    assert answer.said("text") == "t"
    assert "deeper than 200" in message(answer)
    assert answer.calls == []


@pytest.mark.parametrize("huge", [{"id": "x" * 100_000}, {"name": "x" * 100_000}])
def test_a_call_with_a_huge_id_or_name_fails_behind_what_came(huge: dict[str, str]) -> None:
    members: dict[str, Any] = {"index": 1, "id": "j", "name": "g", "arguments": "{}", **huge}
    answer, _ = failed([sse(*HELLO, call(**members))])
    assert answer.blocks == SHOWN
    assert "longer than 1000 characters" in message(answer)


def test_a_huge_id_of_the_message_is_not_passed_on() -> None:
    run = Run()
    out = run.all([sse({**text("a"), "id": "x" * 100_000, "model": "x" * 100_000}, finish(), DONE)])
    assert read(out).ended
    assert len(out) < 2000
    assert ("id, model", "ignored") in run.lost


def alternating(pairs: int) -> Iterator[bytes]:
    """So many changes of kind."""
    for n in range(pairs):
        yield sse(reasoning(f"r{n} "), text(f"t{n} "))


def test_twenty_thousand_blocks_fail_at_the_bound() -> None:
    answer, _ = failed(alternating(10_000))
    assert len(answer.blocks) == 10_000
    assert message(answer) == "the message has more than 10000 blocks"
    assert answer.said("text") == "".join(f"t{n} " for n in range(5000))


def test_twenty_thousand_calls_fail_at_the_bound() -> None:
    answer, _ = failed(
        sse(*(call(n + at, f"i{n + at}", "f", '{"x":1}') for at in range(100))) for n in range(0, 20_000, 100)
    )
    assert len(answer.calls) == 10_000
    assert message(answer) == "the message has more than 10000 calls"


# What is held is bounded


def test_gigantic_text_behind_a_call_that_never_ends_fails_at_the_bound() -> None:
    run = Run(Limits(held_bytes=10_000))
    out = run.give(sse(text("before"), call(0, "i", "f", '{"x":"')))
    for _ in range(1000):
        out += run.give(sse(text("y" * 99)))
        assert run.chain.held <= 10_000 + 99
    answer = read(out + run.end())
    assert answer.blocks == [["text", "before"], ["tool_use", '{"x":"', "i", "f", False]]
    assert "more than 10000 bytes" in message(answer)
    assert ("text", "dropped") in run.lost


def test_a_second_call_that_waits_behind_a_first_that_never_ends_fails_at_the_bound() -> None:
    reads = joined(
        [sse(call(0, "i", "f", "{"), call(1, "j", "g", '"'))], (sse(call(1, arguments="z" * 100)) for _ in range(200))
    )
    answer, run = failed(reads, held_bytes=10_000)
    assert answer.blocks == [["tool_use", "{", "i", "f", False]]
    assert ("tool use", "dropped") in run.lost


def test_arguments_without_an_end_fail_at_the_bound() -> None:
    reads = joined([sse(call(0, "i", "f", '{"x":"'))], (sse(call(0, arguments="z" * 100)) for _ in range(200)))
    answer, _ = failed(reads, arguments_bytes=10_000)
    assert "larger than 10000 bytes" in message(answer)
    assert answer.blocks[0][4] is False


def test_a_blank_beginning_without_an_end_fails_at_the_bound() -> None:
    answer, _ = failed((sse(text(" " * 100)) for _ in range(200)), held_bytes=10_000)
    assert answer.blocks == []
    assert "more than 10000 bytes" in message(answer)


def test_endless_frames_that_say_nothing_are_not_kept() -> None:
    run = Run()
    out = run.give(sse(text("a")))
    for n in range(2000):
        assert run.give(b": keep-alive\n\n" + sse("ping", {"object": f"ping {n}"}, chunk({f"odd{n}": 1}))) == b""
        assert run.chain.held == 0
    assert len(run.ledger) <= run.limits.ledger_entries + 1
    assert read(out + run.all([sse(finish(), DONE)])).said("text") == "a"


# Whatever comes


@given(st.binary(max_size=200))
def test_any_bytes_make_a_legal_stream(raw: bytes) -> None:
    assert not read(Run().all([raw])).ended


@given(st.data())
def test_a_stream_with_bytes_changed_is_a_legal_stream_and_the_same_at_any_cut(data: st.DataObject) -> None:
    raw = bytearray(data.draw(chat_streams()).raw)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    out = Run().all([bytes(raw)])
    read(out)
    assert same_ids(Run().all(data.draw(cuts_of(bytes(raw))))) == same_ids(out)
