"""Streams of named events with one thing wrong, for the tests of grammars."""

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

from hypothesis import strategies as st

from pipeline.grammar import Rule, get

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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "type", "text"]), inner),
    max_leaves=5,
)


def spoilt(whole: list[Json], data: st.DataObject) -> list[Any]:
    """The events, up to three members of them, at any depth, set to anything."""
    events: list[Any] = json.loads(json.dumps(whole))
    for _ in range(data.draw(st.integers(1, 3))):
        found: Any = events[data.draw(st.integers(0, len(events) - 1))]
        while isinstance(found, dict) and found:
            name = data.draw(st.sampled_from(sorted(found)))
            if data.draw(st.booleans()) or not isinstance(found[name], dict):
                found[name] = data.draw(VALUES)
                break
            found = found[name]
    return events


def check_table(rules: Collection[Rule], broken: set[tuple[str, str]]) -> None:
    """Exactly the rules of the table are broken by a test, but for those of blocks; each stands once, with a source."""
    assert {(rule.part, rule.says) for rule in rules if rule.part != "block"} == broken
    assert len({(rule.part, rule.says) for rule in rules}) == len(rules)
    assert all(rule.source for rule in rules)
