"""Frames that differ in one string alone."""

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.template import Template


def said(value: Any) -> Any:
    return value.get("said") if isinstance(value, dict) else None


def frame(text: str, **more: Any) -> bytes:
    return json.dumps({"id": "x", "said": text, **more}).encode()


def learnt(data: bytes, text: str, reads: Callable[[Any], Any] = said) -> Template:
    template = Template()
    assert template.learn(data, text, reads)
    return template


def test_a_frame_like_the_one_learnt_is_told_by_its_string() -> None:
    template = learnt(frame("a"), "a")
    assert template.text(frame("b")) == "b"
    assert template.text(frame('a "quoted" {"said": 1}\n')) == 'a "quoted" {"said": 1}\n'
    assert template.text(frame("\u00e9\U0001f600")) == "\u00e9\U0001f600"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        frame(""),
        frame("b", more=1),
        b'{"id": "y", "said": "b"}',
        b'{"id": "x", "said": 7}',
        b'{"id": "x", "said": null}',
        b'{"id": "x", "said": {"a": "b"}}',
        b'{"id": "x", "said": "b", "said": "c"}',
        b'{"id": "x", "said": "b}',
        b'{"id": "x", "said": "\xff"}',
        b'{"id": "x", "said": "\\ud83d"}',
        b'{"id": "x", "said": }',
        b'{"id": "x", "said":}',
    ],
)
def test_every_other_frame_is_not(data: bytes) -> None:
    assert learnt(frame("a"), "a").text(data) == ""


def test_another_tail_of_the_same_length_is_another_frame() -> None:
    template = Template()
    assert template.learn(b'{"said": "a", "end": null}', "a", said)
    assert template.text(b'{"said": "b", "end": null}') == "b"
    assert template.text(b'{"said": "b", "end": "xx"}') == ""


def test_little_is_kept_of_a_frame() -> None:
    template = Template()
    assert not template.learn(frame("a", pad="x" * 5000), "a", said)
    assert template.learn(frame("a" * 5000), "a" * 5000, said)
    assert template.text(frame("b")) == "b"


def test_nothing_is_known_before_anything_is_learnt() -> None:
    assert Template().text(frame("b")) == ""
    template = learnt(frame("a"), "a")
    assert template.text(frame("b")) == "b"
    template.forget()
    assert template.text(frame("b")) == ""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"id": "a", "said": "a"}', "a"),  # which of the two it is is not looked for
        (b'{"said": "said"}', "said"),
        (b'{"said": "a", "said": "b"}', "a"),
        (b'{"said": "\\u0061"}', "a"),
        (b'{"said": "\\"a"}', "a"),
        (b'{"said": "a"', "a"),
    ],
)
def test_what_is_not_told_by_one_place_is_not_learnt(data: bytes, text: str) -> None:
    template = learnt(b'{"said": "before"}', "before")
    assert not template.learn(data, text, said)
    assert template.text(b'{"said": "b"}') == ""


def test_a_stream_whose_frames_are_never_alike_is_given_up() -> None:
    template = Template()
    assert [template.learn(frame("a", count=at), "a", said) for at in range(10)] == [True] * 8 + [False] * 2
    assert template.text(frame("b", count=9)) == ""


def test_one_that_is_alike_now_and_then_is_not() -> None:
    template = Template()
    for at in range(30):
        assert template.learn(frame("a", count=at), "a", said)
        assert template.text(frame("b", count=at)) == "b"


@given(
    st.dictionaries(st.text(), st.text() | st.integers() | st.none()),
    st.lists(st.text(min_size=1), min_size=2),
    st.booleans(),
)
def test_what_it_tells_is_what_parsing_tells(members: dict[str, Any], texts: list[str], ascii_only: bool) -> None:
    template = Template()
    for text in texts:
        data = json.dumps({**members, "said": text}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if told := template.text(data):
            assert told == said(orjson.loads(data))
        template.learn(data, text, said)
