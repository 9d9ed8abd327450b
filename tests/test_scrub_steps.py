"""stages.scrub: marks in a source, the bounds of steps, and the line of a fence, each alone."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pipeline.limits import Limits
from stages.scrub.ends import NEAR
from stages.scrub.fence import Fence, another, fence
from stages.scrub.grammar import LOOK, Openings, Refused, Source, until
from tests.parsed import place
from tests.scrubbing import at_every_size


def take(source: Source, text: str) -> None:
    """Take what comes next, which is this."""
    assert source.text.startswith(text, source.at)
    source.at += len(text)


@pytest.mark.parametrize("fed", [False, True])
def test_what_was_taken_since_a_mark_is_told_wherever_more_came(fed: bool) -> None:
    more: Callable[[Source, str], None] = (lambda source, text: source.feed(text)) if fed else lambda source, text: None
    source = Source("0abcdef" if not fed else "0a", 1)
    source.mark()
    take(source, "a")
    more(source, "b")
    source.mark()
    take(source, "b")
    more(source, "c")
    source.mark()
    take(source, "c")
    assert source.taken() == "c"
    more(source, "d")
    take(source, "d")
    assert source.taken() == "bcd"
    more(source, "ef")
    take(source, "e")
    assert source.taken() == "abcde"
    assert (source.past, source.left) == (6, 1)


def test_of_what_was_taken_nothing_is_kept_for_the_next_mark() -> None:
    source = Source("ab")
    source.mark()
    take(source, "a")
    source.feed("c")
    take(source, "b")
    assert source.taken() == "ab"
    source.mark()
    take(source, "c")
    source.feed("d")
    take(source, "d")
    source.back()
    assert source.text[source.at :] == "cd"
    assert source.past == 2
    source.mark()
    take(source, "cd")
    assert source.taken() == "cd"


def test_one_goes_back_to_the_last_mark_and_then_to_the_one_before_it() -> None:
    source = Source("ab")
    source.mark()
    take(source, "a")
    source.feed("c")
    for _ in range(2):
        source.mark()
        source.back()
        assert (source.text[source.at :], source.past) == ("bc", 1)
    source.mark()
    take(source, "b")
    source.feed("d")
    source.back()
    assert (source.text[source.at :], source.past) == ("bcd", 1)
    take(source, "bc")
    source.feed("e")
    source.back()
    assert (source.text[source.at :], source.past) == ("abcde", 0)


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [(";b", ("", ";"), "b"), ("aaa;b", ("aaa", ";"), "b"), ("aaaa;b", Refused, ""), ("aaaa", Refused, "")],
)
def test_text_up_to_a_token_may_be_as_long_as_its_bound(text: str, given: Any, left: str) -> None:
    assert at_every_size(partial(until, tokens=(";",), most=3), text) == (given, left)


@pytest.mark.parametrize("count", [0, 1, LOOK - 1, LOOK, LOOK + 1])
def test_so_many_characters_say_whether_markup_begins(count: int) -> None:
    openings = Openings(("<o",), re.compile(r"<o\s*!"))
    source = Source("b" + "<o".ljust(LOOK + 1)[:count], 1)
    waits = [*zip(openings.here(source), range(1), strict=False)]
    assert bool(waits) == (count < LOOK)


@pytest.mark.parametrize("count", [0, LOOK - 3, LOOK - 2])
def test_an_opening_is_no_longer_than_that(count: int) -> None:
    step = Openings(("<o",), re.compile(r"<o\s*!")).here
    text = f"<o{' ' * count}!b"
    assert at_every_size(step, text) == (count < LOOK - 2, text)


@pytest.mark.parametrize("weak", [False, True])
def test_a_call_may_be_told_early_if_its_name_is_as_long_as_an_id(weak: bool) -> None:
    at = place("<o", early=True, weak=weak, limits=Limits(id_chars=3), tools={"abc": {}, "abcd": {}})
    assert at.opens("abc")
    assert not at.opens("abcd")
    assert not at.opens("")
    assert at.opens("xyz") is not weak
    assert not place("<o", weak=weak, tools={"abc": {}}).opens("abc")


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("``` \tjson \n {", Fence("```"), "{"),
        ("```{", Fence("```"), "{"),
        ("~~~~Json\r\n{", Fence("~~~~"), "{"),
        (f"{'`' * 600}json\n{{", Fence("`" * 600), "{"),
        ("```X {", Fence("```", left=True), "{"),
        (f"```{'a' * NEAR}\n{{", Fence("```", left=True), "{"),
        (f"```{'a' * (NEAR + 1)}\n{{", None, f"{'a' * (NEAR + 1)}\n{{"),
        ("```\njson\n{", None, "\njson\n{"),
        ("``` two words {", None, " two words {"),
        ("```json\n[", None, "json\n["),
        ("```", None, ""),
        ("~~~`{", None, "`{"),
    ],
)
def test_marks_behind_a_body_open_a_fence_only_round_another(text: str, given: Any, left: str) -> None:
    assert at_every_size(another, text) == (given, left)


@pytest.mark.parametrize("text", ["```two words [", "```two words {", "```a b\t["])
def test_of_words_before_a_body_in_the_line_of_its_fence_there_is_one(text: str) -> None:
    assert at_every_size(fence, text) == (Refused, "")
    assert at_every_size(fence, text.replace(" ", "", 1).replace("\t", ""))[0] == Fence("```", left=True)
