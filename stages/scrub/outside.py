"""What the tag of a call says itself, in its attributes, besides its body."""

import html
import re
from collections.abc import Collection, Iterator, Mapping

from attrs import evolve, field, frozen

from stages.scrub.calls import ARGUMENTS, BESIDE, LEFT, NO_ARGUMENTS, NO_BODY, NO_NAME, given_call
from stages.scrub.grammar import Call, Lost
from stages.scrub.strings import name_of
from stages.scrub.tag import Tag

_ESCAPED = re.compile(r"\\([\"'\\])")
_IDENTITY = frozenset({"id", "type"})
_NOTHING = re.compile(r"\s*\{\s*\}\s*")


@frozen
class Outside:
    """A call as far as it is said outside of its body."""

    attributes: Mapping[str, str] = field(factory=dict)
    repeated: bool = False
    """Something was said again, and otherwise: it does not count."""

    def inside(self, opening: Tag) -> "Outside":
        """The same with what a tag says that stands in this one, and counts before it."""
        hidden = {key for key, value in opening.attributes.items() if self.attributes.get(key, value) != value}
        repeated = self.repeated or opening.repeated or bool(hidden - _IDENTITY)
        return Outside({**self.attributes, **opening.attributes}, repeated)

    @property
    def name(self) -> str:
        """The tool; empty: it is not named, or by what is no name."""
        return name_of(self.attributes.get("name", ""))

    @property
    def given(self) -> bool:
        """Arguments are given."""
        return self._key != ""

    @property
    def whole(self) -> bool:
        """It says a tool and its arguments."""
        return self.given and self.name != ""

    @property
    def left(self) -> bool:
        """Something else stands beside the name and the arguments."""
        return self.repeated or bool(self.attributes.keys() - BESIDE - {self._key})

    @property
    def _key(self) -> str:
        return next((key for key in ARGUMENTS if key in self.attributes), "")

    def alone(self, depth: int, freeform: Collection[str]) -> Iterator[Call | Lost]:
        """The call that this is without a body."""
        if not self.given:
            yield NO_BODY
        elif not self.name:
            yield NO_NAME
        elif (call := self._call(self.name, depth, freeform)) is None:
            yield NO_ARGUMENTS
        else:
            yield evolve(call, left=self.left)
            return
        if self.left:
            yield LEFT

    def beside(self, calls: list[Call | Lost], depth: int, freeform: Collection[str]) -> list[Call | Lost]:
        """The calls of a body: what they lack stands here, what they do not is left. If it makes none, and this is one,
        that is left."""
        if not (self.given or self.left):
            return calls
        call = next((call for call in calls if isinstance(call, Call)), None)
        if call is None:
            only = self._call(self.name, depth, freeform) if self.whole else None
            return [*calls, LEFT] if only is None else [evolve(only, left=True)]
        lacks = self.given and len(calls) == 1 and _NOTHING.fullmatch(call.arguments) is not None
        made = self._call(call.name, depth, freeform) if lacks else None
        left = call.left or self.left or (self.given and made is None)
        whole = call if made is None else evolve(call, arguments=made.arguments, mended=call.mended or made.mended)
        return [evolve(whole, left=left) if one is call else one for one in calls]

    def _call(self, name: str, depth: int, freeform: Collection[str]) -> Call | None:
        """A tool's call with these arguments, read as they are written, or as in a string, or as HTML; None if they are
        none."""
        text = self.attributes[self._key]
        for said in (text, _ESCAPED.sub(r"\1", text), html.unescape(text)):
            call = given_call(name, said, depth, freeform)
            if isinstance(call, Call):
                return call
        return None
