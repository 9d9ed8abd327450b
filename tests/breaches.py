"""Streams of named events with one thing wrong, for the tests of grammars."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from pipeline.grammar import get

Json = dict[str, Any]


def sse(events: Iterable[Any]) -> bytes:
    """Named events."""
    rows = [b"event: %s\ndata: %s\n\n" % (str(one["type"]).encode(), json.dumps(one).encode()) for one in events]
    return b"".join(rows)


def is_of(kind: str) -> Callable[[Json], bool]:
    """Whether an event is of a kind, with what its block, delta or item is behind a colon."""
    name, _, inner = kind.partition(":")

    def check(event: Json) -> bool:
        inside = [get(event, part, "type") for part in ("content_block", "delta", "item")]
        return event["type"].removeprefix("response.") == name and (not inner or inner in inside)

    return check


def place_of(kind: str, events: list[Json]) -> int:
    """Where the first event of a kind stands."""
    return next(at for at, event in enumerate(events) if is_of(kind)(event))


def change(events: list[Json], kind: str, value: Any, *path: str) -> list[Json]:
    """The events, one member of the first of a kind set to a value."""
    out: list[Json] = json.loads(json.dumps(events))
    found: Any = out[place_of(kind, out)]
    for name in path[:-1]:
        found = found[int(name) if isinstance(found, list) else name]
    found[path[-1]] = value
    return out


def without(events: list[Json], kind: str) -> list[Json]:
    """The events but for the first of a kind."""
    at = place_of(kind, events)
    return [*events[:at], *events[at + 1 :]]


def again(events: list[Json], kind: str) -> list[Json]:
    """The events, the first of a kind told twice."""
    at = place_of(kind, events)
    return [*events[: at + 1], *events[at:]]


def later(events: list[Json], kind: str, behind: str) -> list[Json]:
    """The events, the first of a kind moved behind the first of another."""
    moved, rest = events[place_of(kind, events)], without(events, kind)
    at = place_of(behind, rest) + 1
    return [*rest[:at], moved, *rest[at:]]
