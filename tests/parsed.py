"""What a parser of markup finds in a text, by itself: nothing else takes up what it leaves."""

from collections.abc import Callable, Generator
from typing import Any

from stages.scrub.families import FAMILIES
from stages.scrub.grammar import Found, Part, Place, Source
from stages.scrub.openers import openings
from tests.scrubbing import TOOLS, at_every_size

Steps = Callable[[Source], Generator[Found | None, None, Any]]


def place(opener: str, **asked: Any) -> Place:
    """Where an opener begins a line, unless something else is `asked`."""
    at = {"line": True, "glued": False, "shown": False, "behind": False}
    given: dict[str, Any] = {"tools": TOOLS, "openings": openings(FAMILIES), **at, **asked}
    return Place(opener=opener, **given)


def together(found: list[Found], one: Found) -> None:
    """One more is found; of a call that is told as it comes all parts are one."""
    last = found[-1] if found else None
    if isinstance(one, Part) and isinstance(last, Part):
        found[-1] = Part(last.name, last.arguments + one.arguments)
    else:
        found.append(one)


def whole(text: str, steps: Steps) -> tuple[Any, str]:
    """What some steps find, and what they leave of a text, at every cut; `Refused` or `Unfinished` if they raise it."""

    def collected(source: Source) -> Generator[None, None, Any]:
        found: list[Found] = []
        for one in steps(source):
            if one is None:
                yield None
            else:
                together(found, one)
        return found

    return at_every_size(collected, text)


def so_far(text: str, steps: Steps) -> list[Found]:
    """What they have found while more may come."""
    source, found = Source("<", 1), list[Found]()
    source.feed(text)
    for one in steps(source):
        if one is None:
            break
        together(found, one)
    return found
