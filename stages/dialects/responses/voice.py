"""What has been said of an item, so that a snapshot of it adds only what is missing."""

from collections.abc import Iterator, Sequence
from zlib import crc32

from attrs import define, field

from pipeline.events import ArgumentsDelta, ReasoningDelta, RefusalDelta, TextDelta
from pipeline.halves import Halves
from pipeline.jsontext import whole_text

PIECES = 32
"""So many pieces are kept before they are summed up."""


@define(eq=False)
class Said:
    """A text that was passed on. Its length and a checksum are kept, the text only in `kept`, if that is a list."""

    kept: list[str] | None = None
    _chars: int = field(init=False, default=0)
    _sum: int = field(init=False, default=0)
    _pieces: list[str] = field(init=False, factory=list)

    def __bool__(self) -> bool:
        return bool(self._chars or self._pieces)

    def add(self, text: str) -> None:
        """Take note of a piece."""
        self._pieces.append(text)
        if len(self._pieces) >= PIECES:
            self._sum_up()

    def missing(self, whole: str) -> str | None:
        """What `whole` has behind it, or None if it does not begin with it."""
        self._sum_up()
        if len(whole) < self._chars or crc32(_bytes(whole[: self._chars])) != self._sum:
            return None
        return whole[self._chars :]

    def text(self) -> str:
        """The text, as far as it was kept."""
        self._sum_up()
        return "".join(self.kept or ())

    def _sum_up(self) -> None:
        text = "".join(self._pieces)
        self._chars += len(text)
        self._sum = crc32(_bytes(text), self._sum)
        if self.kept is not None:
            self.kept.append(text)
        self._pieces.clear()


@define(eq=False)
class Voice:
    """One text of an item and the block it is written to.

    It has parts, told apart by their index; those that say something are joined. What names no part is passed on as it
    is.
    """

    make: type[TextDelta] | type[RefusalDelta] | type[ReasoningDelta] | type[ArgumentsDelta]
    joint: str = ""
    """What stands between two parts."""
    index: int = -1
    """Its block's, or -1 while there is none."""
    stopped: bool = False
    keeps: bool = False
    """What is said is kept, so that a snapshot that says something else can be compared with it."""
    halves: Halves = field(init=False, factory=Halves)
    _parts: dict[int, Said] = field(init=False, factory=dict)
    _loose: Said | None = field(init=False, default=None)
    """What named no part."""
    _last: int | None = field(init=False, default=None)
    """The part that spoke last."""

    def __bool__(self) -> bool:
        """Whether anything was said."""
        return self._loose is not None or self._last is not None

    def spoke(self, part: int | None) -> bool:
        """Whether anything was said of a part, or of none in particular."""
        return self._loose is not None or bool(self._parts.get(part or 0))

    def said(self, part: int | None) -> Said:
        """What was said of a part, or of none in particular."""
        if part is None:
            self._loose = self._loose or Said()
            return self._loose
        if (said := self._parts.get(part)) is None:
            said = self._parts[part] = Said([] if self.keeps else None)
        return said

    def add(self, part: int | None, text: str) -> str:
        """A delta, as it is passed on."""
        text = self.halves.joined("", text)
        if not text:
            return ""
        self.said(part).add(text)
        return text if part is None else self._joined(part, text)

    def rest(self, part: int | None, whole: str) -> str | None:
        """What the whole text of a part has more than was said, as it is passed on; None if it says something else."""
        if not whole:
            return ""
        self.halves.rest()  # the whole has the character
        whole = whole_text(whole)
        if self._loose is not None:
            more = self._loose.missing(whole)
            if more:
                self._loose.add(more)
            return more
        part = (self._last or 0) if part is None else part
        said = self.said(part)
        more = said.missing(whole)
        if not more:
            return more
        said.add(more)
        return self._joined(part, more)

    def rest_of(self, texts: Sequence[str]) -> Iterator[str | None]:
        """The same for the whole texts of all parts, told in order."""
        if not any(texts):
            return
        if (told := self.places(texts)) is None:
            yield None
            return
        for part, whole in told.values():
            yield self.rest(part, whole)

    def behind(self, text: str) -> str | None:
        """What a text has behind all that was said, part by part; None if it does not begin with that."""
        rest: str | None = text
        for _, said in sorted(self._parts.items()):
            rest = None if rest is None else said.missing(rest)
        return rest if rest is None or self._loose is None else self._loose.missing(rest)

    def forget(self) -> None:
        """Keep no text any more."""
        self.keeps = False
        for said in self._parts.values():
            said.kept = None

    def agrees(self, texts: Sequence[str]) -> bool:
        """Whether what was said is the beginning of these texts, as far as they are told."""
        return not any(texts) or self.places(texts) is not None

    def places(self, texts: Sequence[str]) -> dict[int, tuple[int | None, str]] | None:
        """The part that the text at each place tells, and that text; None if they tell something else than was said.

        Their places are the parts' indexes, but for servers that count otherwise (vLLM); there the order tells.
        """
        texts = [whole_text(text) for text in texts]
        spoken = [at for at, text in enumerate(texts) if text]
        if self._loose is not None:
            for joint in (self.joint, ""):
                whole = joint.join(texts[at] for at in spoken)
                if self._loose.missing(whole) is not None:
                    return {0: (None, whole)}
            return None
        heard = [part for part, said in self._parts.items() if said]
        unheard = range(max(heard, default=-1) + 1, max(heard, default=-1) + 1 + len(spoken))
        by_index: dict[int, tuple[int | None, str]] = {at: (at, text) for at, text in enumerate(texts)}
        in_order = {at: (part, texts[at]) for at, part in zip(spoken, [*heard, *unheard], strict=False)}
        for told in (by_index, in_order):
            wholes = dict(told.values())
            if all(self._parts[part].missing(wholes.get(part, "")) is not None for part in heard):
                return told
        return None

    def _joined(self, part: int, text: str) -> str:
        before, self._last = self._last, part
        return text if before is None or before == part else self.joint + text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
