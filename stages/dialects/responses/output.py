"""Which item of the output an event is about."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.events import Event
from stages.dialects.responses.calls import CALL_KINDS, CallItem
from stages.dialects.responses.items import HostedItem, Item, ReasoningItem, Writer
from stages.dialects.responses.texts import MessageItem

ITEM_CLASSES: dict[str, type[Item]] = {
    "message": MessageItem,
    "reasoning": ReasoningItem,
    **dict.fromkeys(CALL_KINDS, CallItem),
}
"""The class of each type of item; the others are the provider's own affair."""

LOOKED_AT = 64
"""So many items are looked at for one that fits."""

AnyItem = TypeVar("AnyItem", bound=Item)


@define
class Output:
    """The items of a message, in order of first appearance.

    An item is told by its place (`output_index`) among those of its class, since some servers change its id with every
    event; by an id that is known, where there is no place or it has another; where there is neither, it is the last of
    its class.
    """

    writer: Writer
    items: list[Item] = field(init=False, factory=list)
    _by_place: dict[tuple[type[Item], int], Item] = field(init=False, factory=dict)
    _by_id: dict[tuple[type[Item], str], Item] = field(init=False, factory=dict)
    _by_call: dict[str, Item] = field(init=False, factory=dict)
    """The calls by the id that their result will name, at the end of the message."""

    def about(self, cls: type[AnyItem], event: Mapping[str, Any]) -> AnyItem:
        """The item of that class which an event is about, a new one if need be."""
        place, name = place_of(event), _word(event.get("item_id"))
        found = self._find(cls, place, name)
        if found is None and place is None and not name:
            found = self._last(cls)
        return self._known(found, cls) or self._new(cls, place, name)

    def told(self, event: Mapping[str, Any], item: Mapping[str, Any], *, announced: bool) -> Item:
        """The item that an event tells as a whole. A second announcement for a place is another item's."""
        cls = class_of(item)
        place, name = place_of(event), _word(item.get("id"))
        found = self._find(cls, place, name)
        if found is None and place is None and not name and not announced:
            found = self._last(cls)
        if found is not None and self._is_other(found, item, place, announced):
            found = None
        if found is None:
            found = self._new(cls, place, name)
        if announced:
            found.announcement = item
        if not (announced and isinstance(found, ReasoningItem)):  # what it will be sealed with is told at its end
            found.note(item)
        return found

    def match(self, output: Sequence[Any]) -> Iterator[tuple[Item, Mapping[str, Any]]]:
        """Each item of a response's output with the one that was streamed, or with a new one.

        They are told by their ids; else by their place, if what was said is the beginning of what is told; else it is
        the first of its class that fits; else by their place alone.
        """
        told = [(at, item, class_of(item)) for at, item in enumerate(output) if isinstance(item, dict)]
        free = dict.fromkeys(self.items)
        calls = (item for item in reversed(self.items) if isinstance(item, CallItem))
        self._by_call = {call.call_id: call for call in calls if call.call_id}
        pairs: dict[int, Item] = {}
        for candidates in (self._of_same_id, self._at_same_place, self._fitting, self._at_place):
            for at, item, cls in told:
                if at in pairs:
                    continue
                for known in candidates(cls, item, at, free):
                    if known in free:
                        pairs[at] = known
                        del free[known]
                        break
        for at, item, cls in told:
            known = pairs.get(at) or self._new(cls, None, _word(item.get("id")))
            known.note(item)
            yield known, item

    def check(self) -> None:
        """At a normal end, before any item ends: every call must have its name.

        Raises `UpstreamError` if one has none.
        """
        for item in self.items:
            if isinstance(item, CallItem):
                item.check()

    def flush(self, out: list[Event]) -> None:
        """Before a failure: halves of characters, and what waits for a name, are all there is."""
        for item in self.items:
            item.flush(out)
            if isinstance(item, CallItem):
                item.drop()

    def _find(self, cls: type[Item], place: int | None, name: str) -> Item | None:
        at_place = None if place is None else self._by_place.get((cls, place))
        if at_place is not None and (not name or at_place.id == name):
            return at_place
        return self._by_id.get((cls, name), at_place)

    def _of_same_id(self, cls: type[Item], item: Mapping[str, Any], at: int, free: Collection[Item]) -> Iterable[Item]:
        named = (self._by_call.get(_word(item.get("call_id"))), self._by_id.get((cls, _word(item.get("id")))))
        return filter(None, named)

    def _at_same_place(
        self, cls: type[Item], item: Mapping[str, Any], at: int, free: Collection[Item]
    ) -> Iterable[Item]:
        return (known for known in self._at_place(cls, item, at, free) if known.agrees(item))

    def _fitting(self, cls: type[Item], item: Mapping[str, Any], at: int, free: Collection[Item]) -> Iterable[Item]:
        return (known for known in islice(free, LOOKED_AT) if type(known) is cls and known.agrees(item))

    def _at_place(self, cls: type[Item], item: Mapping[str, Any], at: int, free: Collection[Item]) -> Iterable[Item]:
        known = self._by_place.get((cls, at))
        return () if known is None else (known,)

    def _is_other(self, known: Item, item: Mapping[str, Any], place: int | None, announced: bool) -> bool:
        """Whether `item` is not the one that its place or its id names."""
        if announced:
            elsewhere = None not in (place, known.place) and known.place != place
            return known.ended or elsewhere or (bool(known.announcement) and known.id != item.get("id"))
        return known.ended and isinstance(known, CallItem) and known.call_id != item.get("call_id")

    def _last(self, cls: type[Item]) -> Item | None:
        return next((item for item in reversed(self.items) if type(item) is cls and not item.ended), None)

    def _known(self, found: Item | None, cls: type[AnyItem]) -> AnyItem | None:
        return found if isinstance(found, cls) else None

    def _new(self, cls: type[AnyItem], place: int | None, name: str) -> AnyItem:
        if len(self.items) >= self.writer.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.writer.limits.blocks} items", code="blocks")
        item = cls(self.writer, place, name)
        self.items.append(item)
        if place is not None:
            self._by_place[(cls, place)] = item
        if name:
            self._by_id.setdefault((cls, name), item)
        return item


def class_of(item: Mapping[str, Any]) -> type[Item]:
    """The class of an item of that type."""
    return ITEM_CLASSES.get(str(item.get("type")), HostedItem)


def place_of(event: Mapping[str, Any]) -> int | None:
    """The output index that an event names."""
    place = event.get("output_index")
    return place if isinstance(place, int) and not isinstance(place, bool) else None


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
