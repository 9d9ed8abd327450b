"""stages.scrub: words that stand behind a body, or in place of one: how far they go, and what in them is code."""

import re
from functools import partial
from typing import Any

import pytest

from stages.scrub.ends import NEAR, Ended, Ends, Loose, within
from stages.scrub.grammar import Openings, Refused, Source, word
from tests.scrubbing import at_every_size

OPENINGS = Openings(("<o",), re.compile("<o!"))
ENDS = Ends(("</x>",), OPENINGS)
BOTH = Ends(("</x>", "<o"), OPENINGS)
"""A token that closes may open too."""
NAMED = '{"name": "f"}'


def words(text: str, ends: Ends = ENDS, several: bool = False) -> Any:
    """Which token ends the words, and what stands behind it."""
    return at_every_size(partial(ends.words, several=several), text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a</x>b", "b"),
        (f"{'a' * NEAR}</x>b", "b"),
        (f"{'a ' * NEAR}\n</x>b", "b"),
        (f"{'<' * NEAR}</x>b", "b"),
        ("a <</x>b", "b"),
        (f"a {NAMED}</x>b", "b"),
        ("a `</x>` </x>b", "b"),
        ("a `</x> b` </x>c", "c"),
        ("a `b </x>` </x>c", "c"),
        ("a `b` `</x>` </x>c", "c"),
        ("a `b` </x> `c", " `c"),
        ("a `b\n</x> `c", " `c"),
        ("a `</x>`</x>` b\n</x>c", "` b\n</x>c"),
        ("`</x>` </x>b", "b"),
        ("`</x>b` </x>c", "b` </x>c"),
        ("``a`b</x> c``</x>d", " c``</x>d"),
        ("``a`b</x>``</x>d", "d"),
        ("```\n</x>\n``` </x>b", "b"),
        ("```\n</x> b\n``` </x>c", " b\n``` </x>c"),
    ],
)
def test_words_go_to_the_closer_that_stands_in_no_code(text: str, left: str) -> None:
    assert words(text) == ("</x>", left)


@pytest.mark.parametrize(
    "text",
    [
        f"{'a' * (NEAR + 1)}</x>b",
        f"{'a ' * (NEAR + 1)}</x>b",
        f"{'<' * (NEAR + 1)}</x>b",
        f"{'`' * (NEAR + 1)}</x>b",
        "a <o!</x>b",
        "a <o</x>b",
        "a",
        "",
    ],
)
def test_where_no_closer_is_near_nothing_is_taken(text: str) -> None:
    assert words(text) == ("", text)


def test_another_call_ends_words_only_where_there_may_be_several() -> None:
    for before in ("", "a ", "a" * NEAR):
        assert words(f"{before}{NAMED}</x>b", several=True) == ("{", f"{NAMED}</x>b")
    far = f"{'a' * (NEAR + 1)}{NAMED}"
    assert words(far, several=True) == ("", far)
    assert words("a {b}</x>c", several=True) == ("</x>", "c")


def test_a_closer_that_opens_other_markup_ends_no_words() -> None:
    assert words("a <o b", BOTH) == ("<o", " b")
    assert words("a <o! b", BOTH) == ("", "a <o! b")


@pytest.mark.parametrize(
    ("text", "ended", "left"),
    [
        ("a' b", Ended.WHOLE, " b"),
        ("}</x>' x", Ended.CLOSED, "</x>' x"),
        ("}</x>} x", Ended.CLOSED, "</x>} x"),
        ("}</x>', x", Ended.WHOLE, ", x"),
        ("} \n</x>b", Ended.CLOSED, "</x>b"),
        ("}X</x>b' c", Ended.WHOLE, " c"),
    ],
)
def test_a_closer_behind_all_brackets_ends_a_string_that_does_not_end_right_behind_it(
    text: str, ended: Ended, left: str
) -> None:

    def step(source: Source) -> Any:
        return (yield from Loose(source, ENDS, ("'",), 1).read(escapes=True))

    assert at_every_size(step, text) == (ended, left)


@pytest.mark.parametrize("begin", [0, 5])
def test_steps_may_take_so_many_characters_and_no_more(begin: int) -> None:
    letters = re.compile("a*")
    for most in (3, 4):
        source = Source("b" * begin + "aaa c", begin)
        assert [*within(source, word(source, letters), most)] == []
        assert source.at == begin + 3
    source = Source("b" * begin + "aaa c", begin)
    with pytest.raises(Refused):
        [*within(source, word(source, letters), 2)]
