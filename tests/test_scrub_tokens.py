"""stages.scrub: whatever the tokens are and wherever a text is cut, the leftmost is read, and of those the longest."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.scrub.grammar import (
    Call,
    Family,
    Found,
    Place,
    Refused,
    Source,
    Thinking,
    Unfinished,
    behind_blanks,
    is_cut,
    one_of,
    skip,
    until,
)
from stages.scrub.scanner import Kind, Piece, Scanner

LETTERS = "ab"
BLANKS = " \n"

tokens = st.lists(st.text(LETTERS, min_size=1, max_size=4), min_size=1, max_size=5, unique=True).map(tuple)
lengths = st.lists(st.integers(min_value=1, max_value=3), max_size=24)


@st.composite
def made_of(draw: st.DrawFn, more: str = "") -> tuple[tuple[str, ...], str]:
    """Tokens, and a text in which some of them stand, and beginnings of them."""
    known = draw(tokens)
    part = st.sampled_from(known).flatmap(lambda one: st.integers(1, len(one)).map(lambda end: one[:end]))
    return known, "".join(draw(st.lists(part | st.sampled_from(LETTERS + more), max_size=10)))


Step = Callable[[Source], Generator[None, None, Any]]


def pieces(whole: str, sizes: list[int]) -> list[str]:
    """A text cut in pieces of these sizes, and the rest."""
    out = []
    for size in sizes:
        out.append(whole[:size])
        whole = whole[size:]
    return [part for part in (*out, whole) if part]


def stepped(step: Step, parts: list[str]) -> tuple[Any, str]:
    """What a step gives of a text that comes in parts, and what it leaves."""
    source, left = Source(), [*parts]
    steps = step(source)
    try:
        while True:
            next(steps)
            if left:
                source.feed(left.pop(0))
            else:
                source.over = True
    except StopIteration as end:
        return end.value, source.text[source.at :] + "".join(left)
    except Unfinished:
        return Unfinished, ""


def standing(whole: str, at: int, known: tuple[str, ...]) -> str:
    """The longest of the tokens that stands there."""
    return max((one for one in known if whole.startswith(one, at)), key=len, default="")


@pytest.mark.parametrize("sizes", [[], [1, 1], [2]])
@pytest.mark.parametrize(
    ("known", "whole", "due"),
    [
        (("abb", "b"), "abb", (("", "abb"), "")),
        (("abb", "b"), "aba", (("a", "b"), "a")),
        (("abb", "b"), "ab", (("a", "b"), "")),
        (("a", "abb"), "abb", (("", "abb"), "")),
        (("a", "abb"), "aba", (("", "a"), "ba")),
        (("a", "abb"), "ab", (("", "a"), "b")),
    ],
)
def test_a_token_that_stands_in_another_or_begins_it_waits_for_that(
    known: tuple[str, ...], whole: str, sizes: list[int], due: Any
) -> None:
    assert stepped(partial(until, tokens=known), pieces(whole, sizes)) == due


@given(made_of(), lengths)
def test_the_first_token_is_found_and_of_those_there_the_longest(
    said: tuple[tuple[str, ...], str], sizes: list[int]
) -> None:
    known, whole = said
    at = next((at for at in range(len(whole)) if standing(whole, at, known)), None)
    if at is None:
        due: Any = (Unfinished, "")
    else:
        found = standing(whole, at, known)
        due = ((whole[:at], found), whole[at + len(found) :])
    assert stepped(partial(until, tokens=known), pieces(whole, sizes)) == due


@given(made_of(), lengths)
def test_the_longest_token_that_stands_here_is_taken(said: tuple[tuple[str, ...], str], sizes: list[int]) -> None:
    known, whole = said
    found = standing(whole, 0, known)
    assert stepped(partial(one_of, tokens=known), pieces(whole, sizes)) == (found, whole[len(found) :])


@given(made_of(BLANKS), lengths)
def test_so_is_the_longest_behind_blanks_or_one_that_the_end_cuts(
    said: tuple[tuple[str, ...], str], sizes: list[int]
) -> None:
    known, whole = said
    bare = whole.lstrip()
    found = standing(bare, 0, known)
    cut = bool(bare) and any(one.startswith(bare) for one in known)
    left = bare[len(found) :] if found else "" if cut else whole
    assert stepped(partial(behind_blanks, tokens=known), pieces(whole, sizes)) == (found, left)


@given(made_of(BLANKS), lengths)
def test_whether_the_end_cut_a_token_is_one_answer(said: tuple[tuple[str, ...], str], sizes: list[int]) -> None:
    known, whole = said

    def step(source: Source) -> Generator[None, None, tuple[str, bool]]:
        yield from skip(source)
        found = yield from one_of(source, known)
        return found, is_cut(source, known)

    bare = whole.lstrip()
    found = standing(bare, 0, known)
    left = bare[len(found) :]
    cut = any(len(left) < len(one) and one.startswith(left) for one in known)
    (taken, told), _ = stepped(step, pieces(whole, sizes))
    assert taken == found
    assert told == cut or found  # behind a token it is asked of nobody


def scanned(families: tuple[Family, ...], parts: list[str]) -> list[tuple[Kind, str, Any, bool]]:
    """The pieces of a text; text and reasoning in one where they are told in several."""
    scanner = Scanner(families)
    told: list[Piece] = []
    for part in parts:
        told += scanner.feed(part)
    out: list[tuple[Kind, str, Any, bool]] = []
    for piece in (*told, *scanner.close()):
        if out and piece.kind in (Kind.TEXT, Kind.THOUGHT) and out[-1][0] is piece.kind:
            out[-1] = (piece.kind, out[-1][1] + piece.raw, None, False)
        else:
            out.append((piece.kind, piece.raw, piece.found, piece.inside))
    assert "".join(raw for _, raw, _, _ in out) == "".join(parts)
    return out


def named(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """A call by the name of its opener."""
    yield Call(place.opener, "{}")


def picky(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """The same, if an `a` follows."""
    if not (yield from one_of(source, ("a",))):
        raise Refused
    yield Call(place.opener, "{}")


def opening(closers: tuple[str, ...], source: Source, place: Place) -> Generator[Found | None, None, None]:
    """Reasoning, up to one of these."""
    yield Thinking(closers)


@given(made_of(), lengths)
def test_of_openers_of_one_family_that_begin_alike_the_longest_opens(
    said: tuple[tuple[str, ...], str], sizes: list[int]
) -> None:
    known, whole = said
    out = scanned((Family(name="one", openers=known, parse=named),), pieces(whole, sizes))
    due: list[str] = []
    at = 0
    while at < len(whole):
        if found := standing(whole, at, known):
            due.append(found)
        at += len(found) or 1
    assert [found.name for _, _, found, _ in out if isinstance(found, Call)] == due


@given(st.lists(tokens, max_size=2), made_of(), lengths)
def test_openers_of_several_families_are_told_apart_at_every_cut(
    sets: list[tuple[str, ...]], said: tuple[tuple[str, ...], str], sizes: list[int]
) -> None:
    known, whole = said
    families = tuple(
        Family(name=str(at), openers=openers, parse=picky if at % 2 == 0 else named)
        for at, openers in enumerate((known, *sets))
    )
    assert scanned(families, pieces(whole, sizes)) == scanned(families, [whole] if whole else [])


@given(made_of(), lengths)
def test_of_closers_of_reasoning_that_begin_alike_the_longest_ends_it(
    said: tuple[tuple[str, ...], str], sizes: list[int]
) -> None:
    known, whole = said
    family = Family(name="r", openers=("(",), parse=partial(opening, known), reasoning=True, closers=known)
    out = scanned((family,), pieces(f"({whole}", sizes))
    at = next((at for at in range(len(whole)) if standing(whole, at, known)), len(whole))
    closer = standing(whole, at, known)
    due = [("(", Kind.TAG), (whole[:at], Kind.THOUGHT), (closer, Kind.TAG), (whole[at + len(closer) :], Kind.TEXT)]
    assert [(raw, kind) for kind, raw, _, _ in out] == [part for part in due if part[0]]
