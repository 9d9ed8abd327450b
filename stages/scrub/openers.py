"""What may begin markup: the literal beginnings of families, indexed so that plain text is one search."""

import re
from collections.abc import Callable, Generator
from functools import cache

from attrs import frozen

from stages.scrub.code import FENCES
from stages.scrub.grammar import Answering, Family, Found, Openings, Place, Source, longest, prefixes


@frozen
class Openers:
    """The openers of some families."""

    families: tuple[Family, ...]
    tokens: frozenset[str]
    lengths: tuple[int, ...]
    longest: int
    prefixes: frozenset[str]
    """What can still become one of them, or a longer one."""
    search: "Callable[..., re.Match[str] | None]"
    """Finds a character that one begins with, or a mark of a code fence."""

    def at(self, text: str, at: int) -> list[tuple[str, Family]]:
        """The openers that stand there, each with a family that it may open.

        They are in the families' order, those of one family the longest first.
        """
        here = {token for length in self.lengths if (token := text[at : at + length]) in self.tokens}
        if not here:
            return []
        first = sorted(here, key=len, reverse=True)
        return [(token, family) for family in self.families for token in first if token in family.openers]


@cache
def openers(families: tuple[Family, ...], marks: bool = True) -> Openers:
    """The openers of families. `marks`: the marks of code fences and spans are looked for too."""
    tokens = tuple(token for family in families for token in family.openers)
    first = {token[0] for token in tokens}
    sought = "".join(sorted(first.union(FENCES) if first and marks else first))
    return Openers(
        families=families,
        tokens=frozenset(tokens),
        lengths=tuple(sorted({len(token) for token in tokens})),
        longest=longest(tokens),
        prefixes=prefixes(tokens) - {""},
        search=re.compile(f"[{re.escape(sought)}]" if sought else "(?!)").search,
    )


@cache
def openers_in_reasoning(families: tuple[Family, ...], closers: tuple[str, ...], begun: bool) -> Openers:
    """What may come in reasoning: what closes it, markup of calls, and, before it has `begun`, its own opener again."""
    inside = [family for family in families if not (family.stray or family.weak or (family.reasoning and begun))]
    return openers((Family(name="end of reasoning", openers=closers, parse=_end, reasoning=True), *inside), False)


@cache
def openings(families: tuple[Family, ...], closers: tuple[str, ...] = ()) -> Openings:
    """What surely begins strong markup of calls, and the closers of the reasoning that it stands in."""
    strong = [family for family in families if not (family.reasoning or family.stray or family.weak)]
    tokens = tuple(dict.fromkeys((*closers, *(token for family in strong for token in family.openers))))
    alone = [token for family in strong if not family.opening for token in family.openers]
    patterns = [*(family.opening for family in strong if family.opening), *map(re.escape, (*alone, *closers))]
    return Openings(tokens, re.compile("|".join(patterns)) if patterns else None, closers)


@cache
def closers_of(families: tuple[Family, ...]) -> tuple[str, ...]:
    """All that may end reasoning which the prompt has opened."""
    return tuple(closer for family in families for closer in family.closers)


def _end(source: Source, place: Place) -> Generator[Found | None, None, None]:
    yield Answering()
