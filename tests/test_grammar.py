"""The table of a wire's rules: where a breach is, by whose word; how events are framed."""

from collections.abc import Iterator

import pytest

from pipeline.events import Frame
from pipeline.grammar import Breach, Grammar, Part, Reading, Rule, blocks, framing, get, is_count, is_word


class Counting(Reading):
    """Counts frames."""

    def __init__(self) -> None:
        self.before = 0

    def parts(self, frame: Frame) -> Iterator[Part]:
        yield "word", frame.data
        self.before += 1
        yield "length", len(frame.data)


NO_B = Rule("word", "is not b", "the alphabet", lambda word, _: word == b"b")
SHORT = Rule("length", "is at most 3", "the ruler", lambda length, _: length > 3, own=True)
THREE = Rule("end", "is behind three frames", "arithmetic", lambda _, seen: seen.before != 3)
GRAMMAR = Grammar((NO_B, SHORT, THREE), Counting)


def test_a_breach_is_a_frame_an_offset_and_a_rule_with_its_source() -> None:
    stream = b": comment\n\ndata: a\n\ndata: b\n\ndata: long\n\n"
    assert [*GRAMMAR.breaches(stream)] == [Breach(1, 20, NO_B), Breach(2, 29, SHORT)]
    assert NO_B.source == "the alphabet"


def test_what_binds_us_alone_is_not_asked_of_another() -> None:
    assert [*GRAMMAR.breaches(b"data: long\n\n" * 3, own=False)] == []


def test_the_end_is_behind_the_last_frame() -> None:
    assert [*GRAMMAR.breaches(b"data: a\n\n")] == [Breach(1, 9, THREE)]
    assert [*GRAMMAR.breaches(b"")] == [Breach(0, 0, THREE)]


def test_a_stream_is_taken_apart_at_its_blank_lines() -> None:
    found = [
        (block.offset, block.frame, block.whole) for block in blocks(b"event: x\ndata: a\n\n: c\n\ndata: b\ndata: c")
    ]
    assert found == [(0, Frame(b"a", b"x"), True), (18, Frame(b""), True), (23, Frame(b"b\nc"), False)]


@pytest.mark.parametrize(
    ("stream", "broken"),
    [
        (b"data: a\n\n: comment\n\n", []),
        (b"data: a\n", ["ends with a blank line", "is comments, or a name at most and one line of data"]),
        (b"data: \xff\n\n", ["is UTF-8"]),
        (
            b"\xef\xbb\xbfdata: a\n\n",
            ["has no byte order mark", "is comments, or a name at most and one line of data"],
        ),
        (b"data: a\r\n\n", ["has LF at the end of every line"]),
        (b"data: a\ndata: b\n\n", ["is comments, or a name at most and one line of data"]),
        (b"data:a\n\n", ["is comments, or a name at most and one line of data"]),
        (b"id: 1\ndata: a\n\n", ["is comments, or a name at most and one line of data"]),
        (b"data: \n\n", ["has no empty data"]),
        (b"event: x\ndata: a\n\n", ["has no name"]),
        (b"event: x\n\n", ["is comments, or a name at most and one line of data", "has no name"]),
    ],
)
def test_the_framing_of_nameless_events(stream: bytes, broken: list[str]) -> None:
    grammar = Grammar(framing(named=False), Counting)
    assert [breach.rule.says for breach in grammar.breaches(stream)] == broken
    assert [*grammar.breaches(stream, own=False)] == []


@pytest.mark.parametrize(
    ("stream", "broken"),
    [
        (b"event: x\ndata: a\n\n: comment\n\n", []),
        (b"data: a\n\n", ["is named"]),
        (b"event: \ndata: a\n\n", ["is named"]),
        (b"event: x\nevent: y\ndata: a\n\n", ["is comments, or a name at most and one line of data"]),
    ],
)
def test_the_framing_of_named_events(stream: bytes, broken: list[str]) -> None:
    grammar = Grammar(framing(named=True), Counting)
    assert [breach.rule.says for breach in grammar.breaches(stream)] == broken


def test_what_rules_ask_of_values() -> None:
    assert [is_count(value) for value in (0, 5, -1, True, 1.0, "1", None)] == [True, True, *[False] * 5]
    assert [is_word(value) for value in ("a", "", 1, None)] == [True, False, False, False]
    assert get({"a": {"b": 1}}, "a", "b") == 1
    assert get({"a": 5}, "a", "b") is get(None, "a") is get([], "a") is None
