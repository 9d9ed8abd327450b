"""pipeline.freeform: the text of a freeform call that came as a function's one string."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.freeform import Unwrapped, Wrapped


def unwrapped(*fragments: str) -> list[str]:
    """What each fragment, and then the end, gives."""
    text = Unwrapped()
    return [*map(text.feed, fragments), text.close(whole=True)]


def test_the_text_is_given_out_as_far_as_it_is_certain() -> None:
    assert unwrapped('{"in', 'put": "*** ', "Begin\\", 'n+a \\"q', "\\u00", 'e9"', "}") == [
        "",
        "*** ",
        "Begin",
        '\n+a "q',
        "",
        "é",
        "",
        "",
    ]


@given(st.text(max_size=12), st.booleans(), st.integers(1, 9))
def test_every_text_comes_back_however_it_is_written_and_cut(text: str, escaped: bool, size: int) -> None:
    written = json.dumps({"input": text}, ensure_ascii=escaped)
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    assert "".join(unwrapped(*pieces)) == text


def test_blanks_between_its_tokens_are_nothing() -> None:
    assert "".join(unwrapped(' {\n "input"\t', ' : "a" } \n')) == "a"


def test_half_a_character_waits_for_the_other() -> None:
    assert unwrapped('{"input":"\\ud83d', '\\ude00"}') == ["", "\U0001f600", ""]
    assert unwrapped('{"input":"a\\ud83d"}') == ["a\ufffd", ""]


def test_what_stands_behind_the_text_is_nothing() -> None:
    assert unwrapped('{"input":"a","more":1}', "x") == ["a", "", ""]


@pytest.mark.parametrize(
    "written",
    ['{"patch":"a"}', '{"input":1}', '{"input" "a"}', "*** Begin Patch", '["a"]', '{"inputs":"a"}', '{"input', "{"],
)
def test_something_else_is_given_out_as_it_was_written(written: str) -> None:
    assert "".join(unwrapped(*written)) == written


def test_something_else_is_given_out_as_soon_as_it_is_certain() -> None:
    assert unwrapped("{ p", "a", "b") == ["{ p", "a", "b", ""]
    assert unwrapped('{"p', "a", "b") == ["", "", "", '{"pab']  # it may hold the text to its end


@pytest.mark.parametrize("fragments", [("{}",), ("{", " }"), (" {} ", "\n"), ("",), ()])
def test_an_empty_object_is_an_empty_text(fragments: tuple[str, ...]) -> None:
    assert "".join(unwrapped(*fragments)) == ""


def test_text_behind_an_empty_object_is_not_lost() -> None:
    assert "".join(unwrapped("{}", "x")) == "{}x"


def test_what_is_no_escape_is_given_out_as_it_came() -> None:
    assert unwrapped('{"input":"a\\x', "b") == ["a\\x", "b", ""]
    assert unwrapped('{"input":"a\nb"}') == ["a\nb", ""]


@given(st.lists(st.text(max_size=5), max_size=4))
def test_a_text_comes_back_out_of_what_it_was_put_into(pieces: list[str]) -> None:
    wrapped = Wrapped()
    written = "".join(map(wrapped.feed, pieces)) + wrapped.close(whole=True)
    assert json.loads(written) == {"input": "".join(pieces)}


def test_what_was_cut_stays_open() -> None:
    wrapped = Wrapped()
    assert [wrapped.feed('a"'), wrapped.feed("b"), wrapped.close(whole=False)] == ['{"input":"a\\"', "b", ""]
    assert Wrapped().close(whole=False) == '{"input":"'
