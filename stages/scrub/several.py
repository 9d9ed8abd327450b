"""The calls of a body, and of those that stand behind it before its closer."""

from collections.abc import Generator

from stages.scrub.calls import beside, calls_in, framed
from stages.scrub.early import Beginning
from stages.scrub.fence import Fence
from stages.scrub.grammar import Found, Lost, Place, Plain, Source
from stages.scrub.json_body import Behind, body, end
from stages.scrub.outside import Outside


def bodies(
    source: Source, place: Place, closers: tuple[str, ...], outside: Outside, around: Fence | None
) -> Generator[Found | None, None, Behind]:
    """The calls of the body that begins here, and of those behind it, up to the closer, which is taken; what is behind.

    Another body that makes no call, or that words stand before, is one only if the closer comes behind it, or a call of
    which that is not so; else it is the reader's, with those. `outside` is the first one's, but for the name, which is
    every one's.
    """
    depth, name, before, another = place.limits.json_depth, outside.name, Behind(), False
    doubtful: list[Found] = []
    while True:
        between = [*beside(before)]
        early = Beginning(place, name) if place.early and not (outside.given or between or doubtful) else None
        read = yield from body(source, closers, depth, early, openings=place.openings)
        calls = [*calls_in(read, depth, name, tools=place.tools, freeform=place.freeform)]
        calls = framed(outside.beside(calls, depth, place.freeform), around)
        opened = early is not None and early.opened
        doubtful += [*between, *calls]
        if not another or opened or not (before.apart or all(isinstance(call, Lost) for call in calls)):
            yield from doubtful
            doubtful.clear()
        behind = yield from end(source, closers, place.openings, several=True, around=around)
        if behind.token != "{":
            if doubtful:
                yield from doubtful if behind.token else (Plain(),)
            return behind
        outside, around, before, another = Outside(), behind.around, behind, True
