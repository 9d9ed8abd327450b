"""Reasoning between tags: `<think>`, `<thinking>`."""

from collections.abc import Generator
from functools import partial

from stages.scrub.ends import NEAR
from stages.scrub.grammar import BLANKS, Family, Found, Place, Refused, Source, Thinking, peek, stray
from stages.scrub.tag import tag

NAMES = ("think", "thinking")
PROSE = (*BLANKS.replace("\n", ""), *".,;:!?)]}\"'", "")
"""What stands behind a tag that prose speaks of: within a line no reasoning begins with it."""


def _think(closer: str, source: Source, place: Place) -> Generator[Found | None, None, None]:
    if (yield from tag(source, NEAR)).closed:
        return
    if not place.line and (yield from peek(source)) in PROSE:
        raise Refused
    yield Thinking((closer,))


FAMILIES = (
    *(
        Family(
            name=name,
            openers=(f"<{name}",),
            parse=partial(_think, f"</{name}>"),
            reasoning=True,
            closers=(f"</{name}>",),
        )
        for name in NAMES
    ),
    Family(
        name="closers of reasoning",
        openers=tuple(f"</{name}>" for name in NAMES),
        parse=stray,
        reasoning=True,
        stray=True,
    ),
)
