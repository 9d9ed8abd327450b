"""stages.answer: the first byte tells in which form an answer comes."""

from collections.abc import Sequence
from itertools import chain

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Event, StreamError, TextDelta
from pipeline.stage import Stage
from pipeline.testing import EOF, End, check_stage, play
from stages.answer import KEPT, AnswerReader
from tests.canonical import CUT

BOM = b"\xef\xbb\xbf"


@define
class Named(Stage[bytes, Event]):
    """Says its name with each byte, and at the end; a full stop ends it."""

    name: str
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[bytes]) -> Sequence[Event]:
        data = b"".join(items)
        self.held += len(data)
        self.ended = data.endswith(b".")
        return [TextDelta(0, f"{self.name} {byte:c}") for byte in data]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        self.held = 0
        return [TextDelta(0, f"{self.name} ends")] if cause is None else [cause]


def reader() -> AnswerReader:
    return AnswerReader(Named("stream"), Named("whole"))


def said(*steps: bytes | End) -> list[list[str]]:
    """What is said at each step."""
    return [[getattr(event, "text", "cause") for event in made] for made in play(reader(), *steps)]


@pytest.mark.parametrize("first", [b"{", b"[", b"<"])
def test_json_and_a_page_are_read_as_a_whole_body(first: bytes) -> None:
    assert said(first, b"cd", EOF) == [[f"whole {first.decode()}"], ["whole c", "whole d"], ["whole ends"]]


@pytest.mark.parametrize("first", [b"d", b"e", b":", b"i", b"r", b"N", b'"', b"1", b"-", b"\xc3"])
def test_everything_else_is_read_as_a_stream(first: bytes) -> None:
    assert said(first, b"c{", EOF) == [[f"stream {first[0]:c}"], ["stream c", "stream {"], ["stream ends"]]


@pytest.mark.parametrize("blank", [b"\n", b" \r\n\t", b"\n" * 1000])
def test_blanks_tell_nothing(blank: bytes) -> None:
    assert said(blank, b"{", EOF) == [[], [f"whole {byte:c}" for byte in blank + b"{"], ["whole ends"]]
    assert said(blank, b"d", EOF) == [[], [f"stream {byte:c}" for byte in blank + b"d"], ["stream ends"]]


def test_a_byte_order_mark_tells_nothing() -> None:
    assert said(BOM[:1], BOM[1:2], BOM[2:], b" ", b"{") == [[], [], [], [], ["whole  ", "whole {"]]
    assert said(BOM + b" {") == [["whole  ", "whole {"]]
    assert said(BOM + b"d") == [[f"stream {byte:c}" for byte in BOM + b"d"]]
    assert said(b"\n" + BOM[:2], BOM[2:] + b"[") == [[], ["whole ["]]


@given(st.lists(st.sampled_from([b" ", b"\n", *(BOM[at : at + 1] for at in range(3)), b"{", b"d"]), max_size=8))
def test_any_cut_says_the_same(letters: list[bytes]) -> None:
    whole = b"".join(letters)
    assert [*chain.from_iterable(said(*letters, EOF))] == [*chain.from_iterable(said(whole, EOF))]


@pytest.mark.parametrize("blank", [b"", b" \n", BOM])
def test_an_empty_answer_is_read_as_a_whole_body(blank: bytes) -> None:
    assert said(blank, EOF) == [[], ["whole ends"]]
    assert said(blank, EOF(CUT)) == [[], ["cause"]]


def test_what_is_kept_is_counted_and_bounded() -> None:
    stage = reader()
    play(stage, b"\n" * 10)
    assert stage.held == 10
    play(stage, b" " * KEPT)
    assert stage.held == KEPT
    play(stage, b"{..")
    assert stage.held == KEPT + 3


@pytest.mark.parametrize("first", [b"{", b"d"])
@pytest.mark.parametrize("before", [b"", BOM])
def test_of_blanks_beyond_the_bound_as_many_are_read_at_any_cut(first: bytes, before: bytes) -> None:
    data = before + b" " * (KEPT + 9) + first
    told = [*chain.from_iterable(said(data))]
    assert len(told) == KEPT + 1
    for at in (1, 2, 10, KEPT, KEPT + 9, KEPT + 10):
        assert [*chain.from_iterable(said(data[:at], data[at:]))] == told


def test_it_has_ended_when_the_chosen_one_has() -> None:
    stage = reader()
    play(stage, b"d")
    assert not stage.ended
    play(stage, b"d.")
    assert stage.ended


@pytest.mark.parametrize("items", [[b"\n", b"{", b"a"], [b" ", b"d", b"a"]])
def test_the_rules_of_every_stage_are_kept(items: list[bytes]) -> None:
    check_stage(reader, items)
