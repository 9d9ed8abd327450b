"""stages.dialects.responses.voice: what a snapshot has more than was said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import ReasoningDelta, TextDelta
from stages.dialects.responses.voice import PIECES, Said, Voice


def heard(*pieces: tuple[int | None, str], joint: str = "\n\n") -> tuple[Voice, str]:
    """A voice, and what it passed on of these pieces."""
    voice = Voice(ReasoningDelta, joint)
    return voice, "".join(voice.add(part, text) for part, text in pieces)


def rest(voice: Voice, *texts: str) -> list[str | None]:
    return list(voice.rest_of(texts))


@given(st.lists(st.text(max_size=5), max_size=3 * PIECES), st.text(max_size=5))
def test_what_is_missing_stands_behind_what_was_said_however_it_was_cut(pieces: list[str], more: str) -> None:
    said = Said()
    for piece in pieces:
        said.add(piece)
    assert said.missing("".join(pieces) + more) == more


@given(st.text(min_size=1, max_size=9), st.text(max_size=9))
def test_a_text_that_does_not_begin_with_what_was_said_is_another(spoken: str, whole: str) -> None:
    said = Said()
    said.add(spoken)
    assert (said.missing(whole) is None) is not whole.startswith(spoken)


def test_many_pieces_are_summed_up() -> None:
    said = Said()
    for _ in range(2 * PIECES + 1):
        said.add("ä")
    assert said
    assert said.missing("ä" * 2 * PIECES + "äb") == "b"
    assert said.missing("ä" * 2 * PIECES) is None


def test_said_is_true_once_something_was_said() -> None:
    said = Said()
    assert not said
    said.add("a")
    assert said
    assert said.missing("ab") == "b"
    assert said


def test_parts_are_joined_where_another_one_speaks() -> None:
    voice, spoken = heard((0, "a"), (0, "b"), (1, "c"), (2, ""), (3, "d"))
    assert spoken == "ab\n\nc\n\nd"
    assert voice


def test_an_empty_delta_does_nothing_at_all() -> None:
    _, spoken = heard((0, ""), (1, "a"))
    assert spoken == "a"


def test_what_names_no_part_is_passed_on_as_it_is() -> None:
    voice, spoken = heard((None, "a"), (None, "b"))
    assert spoken == "ab"
    assert voice
    assert not Voice(TextDelta)


def test_the_rest_of_a_part_is_said_once() -> None:
    voice, _ = heard((0, "He"))
    assert voice.rest(0, "Hello") == "llo"
    assert voice.rest(0, "Hello") == ""


def test_a_part_that_only_its_end_tells_is_joined_like_any_other() -> None:
    voice, _ = heard((0, "a"))
    assert voice.rest(1, "b") == "\n\nb"


def test_an_empty_snapshot_says_nothing() -> None:
    voice, _ = heard((0, "a"))
    assert voice.rest(0, "") == ""
    assert rest(voice) == []
    assert rest(voice, "") == []
    assert voice.agrees([""])


def test_a_snapshot_of_something_else_is_told_from_one_that_has_more() -> None:
    voice, _ = heard((0, "Hello"))
    assert voice.rest(0, "Howdy, you") is None
    assert rest(voice, "Howdy, you") == [None]
    assert not voice.agrees(["Howdy, you"])
    assert voice.agrees(["Hello, you"])


def test_a_snapshot_that_names_no_part_is_of_the_one_that_spoke_last() -> None:
    voice, _ = heard((0, "a"), (1, "b"))
    assert voice.rest(None, "bc") == "c"
    assert heard()[0].rest(None, "x") == "x"


def test_the_texts_of_all_parts_tell_what_each_is_missing() -> None:
    voice, _ = heard((0, "a"))
    assert rest(voice, "ab", "", "c") == ["b", "", "\n\nc"]


def test_the_order_tells_the_parts_where_the_server_counts_otherwise() -> None:
    voice, _ = heard((1, "a"), (4, "b"))
    assert voice.agrees(["a", "bc"])
    assert rest(voice, "a", "bc", "d") == ["", "c", "\n\nd"]


@pytest.mark.parametrize(
    ("texts", "more"),
    [(("ab",), ""), (("a", "b"), ""), (("a", "b", "c"), "c"), (("abc",), "c"), (("x", "y"), None)],
)
def test_what_named_no_part_is_compared_with_the_whole(texts: tuple[str, ...], more: str | None) -> None:
    voice, _ = heard((None, "a"), (None, "b"))
    assert voice.agrees(texts) is (more is not None)
    assert rest(voice, *texts) == [more]
    assert rest(voice, *texts) == [more and ""]


def test_what_named_no_part_may_have_been_joined_by_the_server() -> None:
    voice, _ = heard((None, "a\n\n"), (None, "b"))
    assert rest(voice, "a", "b", "c") == ["\n\nc"]


def test_a_part_whose_end_is_told_adds_to_what_named_no_part() -> None:
    voice, _ = heard((None, "He"))
    assert voice.rest(0, "Hello") == "llo"
    assert voice.rest(1, "x") is None


def test_half_a_character_waits_and_a_snapshot_has_the_whole() -> None:
    voice, spoken = heard((0, "a\ud83d"))
    assert spoken == "a"
    assert voice.halves.held
    assert voice.rest(0, "a\ud83d\ude00b") == "\U0001f600b"
    assert not voice.halves.held


def test_half_a_character_in_a_snapshot_is_no_other_text() -> None:
    voice, spoken = heard((0, "a\udc00b"))
    assert spoken == "a\ufffdb"
    assert rest(voice, "a\udc00bc") == ["c"]
