"""pipeline.halves: characters that a server cut in two."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.halves import Halves


def test_a_leading_half_waits_for_the_other() -> None:
    halves = Halves()
    assert halves.joined("k", "a\ud83d") == "a"
    assert (halves.odd, halves.held) == (True, 1)
    assert halves.joined("k", "\ude00b") == "\U0001f600b"
    assert (halves.odd, halves.held) == (False, 0)


def test_each_key_has_its_own_half() -> None:
    halves = Halves()
    halves.joined("k", "\ud83d")
    assert halves.joined("other", "x") == "x"
    assert halves.joined("k", "") == ""
    assert halves.joined("k", "\ude00") == "\U0001f600"


def test_halves_of_many_keys_wait_in_linear_time() -> None:
    halves = Halves()
    for key in range(20_000):
        halves.joined(str(key), "\ud83d")
    assert halves.held == 20_000


def test_half_a_character_alone_becomes_a_mark() -> None:
    halves = Halves()
    assert halves.joined("k", "\ude00a") == "\ufffda"
    halves.joined("k", "\ud83d")
    assert halves.joined("k", "x") == "\ufffdx"


def test_what_never_came_is_told_at_the_end_by_key() -> None:
    halves = Halves()
    halves.joined("k", "a\ud83d")
    assert list(halves.rest()) == [("k", "\ufffd")]
    assert (halves.odd, list(halves.rest())) == (False, [])


@given(st.text(max_size=8), st.lists(st.integers(0, 16)))
def test_a_text_is_the_same_however_its_utf_16_was_cut(text: str, cuts: list[int]) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    places = sorted({0, len(units), *(2 * at for at in cuts if 2 * at <= len(units))})
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in pairwise(places)]
    halves = Halves()
    assert "".join(halves.joined("k", piece) for piece in pieces) == text
