"""stages.scrub: of prose in what looks like a tag little is held, of what a call may say as much as it needs."""

import pytest

from tests.scrubbing import CALL, MARKUP, F, at_every_cut, cuts, scrubbed

PROSE = "it is a long story of many words " * 40


@pytest.mark.parametrize(
    "opening", ['<think about="', "<thinking of='", '<tool_call id="', "<tool_call name='", '<toolcall n="1" type="']
)
def test_of_words_in_an_attribute_at_most_64_characters_are_held(opening: str) -> None:
    for size in (1, 7):
        out = scrubbed(*cuts(opening + PROSE, size))
        assert out.content == [opening + PROSE]
        assert out.most <= len(opening) + 64 + size
    for behind in ('">', "'>"):
        assert at_every_cut(f"{opening}{PROSE[:80]}{behind}a").content == [f"{opening}{PROSE[:80]}{behind}a"]


def test_what_a_call_says_there_may_be_long() -> None:
    for attribute in (f'note="{PROSE}"', f'id="{"i" * 300}"', f'id="{"i b" * 20}"', f"type='{'t' * 4000}'"):
        assert scrubbed(*cuts(f"<tool_call {attribute}>{CALL}</tool_call>", 7)).content == [F]
    arguments = f'{{"x": "{PROSE}"}}'
    out = scrubbed(*cuts(f"<tool_call name='f' arguments='{arguments}'/>", 7))
    assert out.content == [("f", arguments)]


def test_reasoning_with_attributes_is_reasoning() -> None:
    for value in ('"deep"', "'64" + "a" * 61 + "'", "bare"):
        assert at_every_cut(f"<think type={value}>a</think>{MARKUP}").content == [["a"], F]
