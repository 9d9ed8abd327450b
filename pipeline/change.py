"""A whole answer that goes back to the dialect that it came in: what of it was changed, written into what came."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Final

from attrs import field, frozen

from pipeline.events import Event
from pipeline.message import Content, Message, Text, assemble

LOOKED_AT: Final = 8
SEARCHED: Final = 1 << 26
"""So many texts are searched for one that is new, and so many characters for all of them."""


@frozen
class Piece:
    """A part of the answer as it is now: one of the body's, or what nobody sent."""

    at: int | None
    """Which one of the body's it is; None: it is new."""
    was: tuple[Content, ...] = ()
    """What was read of it."""
    now: tuple[Content, ...] = ()
    of: int | None = None
    """Which one of the body's it holds text of, if it is new."""


@frozen
class Change:
    """A whole answer as it came, and as it is now. A block that has the index of one that came is that one.

    A text that is new, where one that held it was left out, is that one too.
    """

    body: bytes
    made: Sequence[Event]
    """What was read of it."""
    events: Sequence[Event]
    """What is left of that, and what was put in."""
    was: Message = field(init=False)
    now: Message = field(init=False)
    places: tuple[int | None, ...] = field(init=False)
    """Which content that came each one of now is; None: it is new."""
    sources: tuple[int | None, ...] = field(init=False)
    """Which text that came held each one of now that is new; None: none before it."""

    @was.default
    def _read(self) -> Message:
        return assemble(self.made)

    @now.default
    def _told(self) -> Message:
        return assemble(self.events)

    @places.default
    def _placed(self) -> tuple[int | None, ...]:
        came = dict(enumerate(self.was.content))
        places: list[int | None] = []
        for index, content in _indexed(self.events):
            known = index in came and type(came[index]) is type(content)
            places.append(index if known else None)
            if known:
                del came[index]
        last, room = -1, SEARCHED
        known_behind = _behind(places, len(self.was.content))
        for at, (place, content) in enumerate(zip(places, self.now.content, strict=True)):
            if place is None and isinstance(content, Text) and (said := content.text.strip()):
                texts = ((old, came[old]) for old in range(last + 1, known_behind[at]) if old in came)
                for old, left in islice(texts, LOOKED_AT if room > 0 else 0):
                    if isinstance(left, Text):
                        room -= len(left.text)
                        if said in left.text:
                            places[at] = place = old
                            break
            last = last if place is None else place
        return tuple(places)

    @sources.default
    def _found(self) -> tuple[int | None, ...]:
        sources: list[int | None] = []
        last, room = None, SEARCHED
        for place, content in zip(self.places, self.now.content, strict=True):
            source = None
            if place is not None:
                last = place
            elif last is not None and room > 0 and isinstance(content, Text):
                old = self.was.content[last]
                if isinstance(old, Text) and (said := content.text.strip()):
                    room -= len(old.text)
                    source = last if said in old.text else None
            sources.append(source)
        return tuple(sources)

    def __bool__(self) -> bool:
        """Whether anything was changed."""
        return self.now != self.was or self.places != tuple(range(len(self.was.content)))

    def pieces(self, counts: Sequence[int]) -> Iterator[Piece]:
        """The parts of the answer in their order, where so many contents were read of each part of the body.

        A part of which nothing is left is left out; one of which nothing was read stands behind what it stood behind.
        """
        ends = [*accumulate(counts)]
        parts = [at for at, count in enumerate(counts) for _ in range(count)]
        left: dict[int, list[Content]] = {}
        for content, place in zip(self.now.content, self.places, strict=True):
            if place is not None and place < len(parts):
                left.setdefault(parts[place], []).append(content)
        order = [None if place is None or place >= len(parts) else parts[place] for place in self.places]
        known_behind = _behind(order, len(counts))
        read_behind = _behind([at if count else None for at, count in enumerate(counts)], len(counts))
        due = 0
        for at, (part, content) in enumerate(zip(order, self.now.content, strict=True)):
            if (place := self.places[at]) is not None and part is None and content == self.was.content[place]:
                continue  # it was read of something beside the parts, which stays
            until = read_behind[due] if part is None else part
            if part is not None or until < known_behind[at]:  # new parts stand where the first that was left out did
                yield from (Piece(silent) for silent in range(due, until) if not counts[silent])
                due = max(due, until + 1)
            if part is None:
                source = self.sources[at]
                if source is None or source >= len(parts):
                    yield Piece(None, now=(content,))
                else:
                    yield Piece(None, (self.was.content[source],), (content,), parts[source])
            elif part in left:
                was = self.was.content[ends[part] - counts[part] : ends[part]]
                yield Piece(part, was, tuple(left.pop(part)))
        yield from (Piece(silent) for silent in range(due, len(counts)) if not counts[silent])


def patched(theirs: Mapping[str, Any], was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What came, with what differs between our two writings of it: as it was read, and as it is now."""
    out = {name: value for name, value in theirs.items() if name in now or name not in was}
    for name, value in now.items():
        before, came = was.get(name), theirs.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and isinstance(came, Mapping):
            out[name] = patched(came, before, value)
        elif name not in was or value != before:
            out[name] = value
    return out


def reparted(parts: Sequence[str], text: str, joint: str = "") -> list[str | None]:
    """A text that came in parts, in them again; a part that says nothing any more is None.

    The parts that it still begins and ends with are as they were, the first between them holds the rest.
    """
    spoken = [at for at, part in enumerate(parts) if part] or [*range(len(parts))][:1]
    begin, end = 0, len(spoken)
    while begin < end - 1 and text.startswith(head := parts[spoken[begin]] + joint):
        text, begin = text.removeprefix(head), begin + 1
    while begin < end - 1 and text.endswith(tail := joint + parts[spoken[end - 1]]):
        text, end = text.removesuffix(tail), end - 1
    out: list[str | None] = [*parts]
    for at in spoken[begin:end]:
        out[at], text = text or (None if parts[at] else ""), ""
    return out


def _indexed(events: Iterable[Event]) -> Iterator[tuple[int, Content]]:
    """The contents of a message, each with the index of its block."""
    blocks: dict[int, list[Event]] = {}
    for event in events:
        if (index := getattr(event, "index", None)) is not None:
            blocks.setdefault(index, []).append(event)
    for index, told in blocks.items():
        for content in assemble(told).content:
            yield index, content


def _behind(places: Sequence[int | None], end: int) -> list[int]:
    """For each place the next that is known, at it or behind it."""
    out = [end]
    for place in reversed(places):
        out.append(out[-1] if place is None else place)
    return out[::-1]
