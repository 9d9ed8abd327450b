"""stages.scrub.grammar: the small steps that parsers are built from, at every cut."""

import re
from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from stages.scrub.families.deepseek import spellings
from stages.scrub.grammar import (
    Refused,
    Source,
    Unfinished,
    behind_blanks,
    is_cut,
    more,
    one_of,
    peek,
    second,
    skip,
    until,
    word,
)
from tests.scrubbing import at_every_size, stepped

TOKENS = ("ab", "abc", "b")
LETTERS = re.compile(r"[a-z]+")


@pytest.mark.parametrize(
    ("text", "given", "left"), [("", "", ""), ("a", "a", "a"), (" a", " ", " a"), ("\n", "\n", "\n")]
)
def test_the_next_character_is_seen_and_not_taken(text: str, given: str, left: str) -> None:
    assert at_every_size(peek, text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given", "left"), [("", "", ""), ("a", "a", "a"), (" \t\r\na b", "a", "a b"), (" \n ", "", "")]
)
def test_blanks_are_taken(text: str, given: str, left: str) -> None:
    assert at_every_size(skip, text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("", "", ""),
        ("x", "", "x"),
        ("a", "", "a"),
        ("ab", "ab", ""),
        ("abd", "ab", "d"),
        ("abcd", "abc", "d"),
        ("ba", "b", "a"),
        (" ab", "", " ab"),
    ],
)
def test_the_longest_token_is_taken_or_nothing(text: str, given: str, left: str) -> None:
    assert at_every_size(partial(one_of, tokens=TOKENS), text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("ab", "ab", ""),
        (" \n abcd", "abc", "d"),
        ("  ad", "", "  ad"),
        ("  x", "", "  x"),
        ("  ", "", "  "),
        ("", "", ""),
        ("  a", "", ""),
        ("abx", "ab", "x"),
        ("   b  a", "b", "  a"),
        ("x  a", "", "x  a"),
    ],
)
def test_a_token_is_taken_with_the_blanks_before_it_also_one_that_the_end_cut(text: str, given: str, left: str) -> None:
    assert at_every_size(partial(behind_blanks, tokens=TOKENS), text) == (given, left)


def test_a_message_may_end_within_a_token() -> None:
    assert is_cut(Source("xa", 1, over=True), TOKENS)
    assert is_cut(Source("x", 1, over=True), TOKENS)
    assert not is_cut(Source("xa", 1), TOKENS)
    assert not is_cut(Source("xd", 1, over=True), TOKENS)
    assert not is_cut(Source("xabc", 1, over=True), ("abc",))


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("abcd", ("", "abc"), "d"),
        ("dabc", ("", "d"), "abc"),
        ("xx abc d", ("xx ", "abc"), " d"),
        ("acc abc", ("acc ", "abc"), ""),
        ("ab ad", ("ab a", "d"), ""),
        ("a a", Unfinished, ""),
        ("", Unfinished, ""),
    ],
)
def test_text_is_taken_up_to_a_token(text: str, given: Any, left: str) -> None:
    assert at_every_size(partial(until, tokens=("abc", "d")), text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("", "", ""),
        ("a", "a", ""),
        ("abc ", "abc", " "),
        ("1", Refused, ""),
        (" a", Refused, ""),
        ("a" * 5, "a" * 5, ""),
        ("a" * 5 + ".", "a" * 5, "."),
        ("a" * 6, Refused, ""),
    ],
)
def test_a_word_is_of_one_kind_and_no_longer_than_its_bound(text: str, given: Any, left: str) -> None:
    assert at_every_size(partial(word, pattern=LETTERS, most=5), text) == (given, left)


def test_a_words_length_is_its_own() -> None:
    def behind(source: Source) -> Generator[Any, None, str]:
        yield from skip(source)
        return (yield from word(source, LETTERS, 5))

    assert at_every_size(behind, "    aaaa.") == ("aaaa", ".")


def test_a_word_has_at_most_256_characters() -> None:
    step = partial(word, pattern=LETTERS)
    assert stepped(step, "a" * 256) == ("a" * 256, "")
    assert stepped(step, "a" * 257) == (Refused, "")


@pytest.mark.parametrize(
    ("text", "given"), [("{a", "a"), ("{ \n a", "a"), ("{{", "{"), ("{", Unfinished), ("{  ", Unfinished)]
)
def test_the_second_character_is_seen_behind_blanks(text: str, given: Any) -> None:
    assert at_every_size(second, text) == (given, "" if given is Unfinished else text)


def test_more_is_waited_for_until_there_is_some() -> None:
    source = Source("a")
    waiting = more(source)
    assert next(waiting) is None
    source.feed("")
    assert next(waiting) is None
    source.feed("b")
    with pytest.raises(StopIteration) as end:
        next(waiting)
    assert end.value.value is True


def test_a_token_of_deepseeks_has_eight_spellings() -> None:
    bars, joints = ("｜", "|"), ("▁", "_", " ", "\\_")
    assert set(spellings("a", "b")) == {f"<{bar}a{joint}b{bar}>" for bar in bars for joint in joints}
