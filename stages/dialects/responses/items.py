"""The items of an output, each of which knows what of it was passed on."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.events import (
    Block,
    BlockStart,
    BlockStop,
    Event,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    TextBlock,
    TextDelta,
)
from pipeline.halves import Halves
from pipeline.ids import CallIds
from pipeline.jsontext import size_of
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.toolnames import NO_MAP, RequestMap
from pipeline.unread import Unread
from pipeline.word import word
from stages.dialects.responses.announced import INSTEAD, Announced
from stages.dialects.responses.opaque import JOINT, parts_of, proof_of
from stages.dialects.responses.voice import Said, Voice
from stages.dialects.responses.within import COMMON, OF_REASONING, note_odd, note_part

NAME: Final = "responses"
STAGE: Final = "ResponsesNormalizer"
NOTHING: Final[Mapping[str, Any]] = {}
CUT_STATUSES: Final = ("incomplete", "failed", "cancelled")
"""The statuses of an item that is not whole."""


@define(eq=False)
class Text:
    """One part of a message, text or a refusal, and its block."""

    make: type[TextDelta] | type[RefusalDelta]
    index: int = -1
    """Its block's, or -1 while there is none."""
    stopped: bool = False
    done: bool = False
    """The server said that it is whole."""
    halves: Halves = field(init=False, factory=Halves)


@define(eq=False)
class Writer:
    """What the items of a message share: block indexes, ids, the ledger."""

    ledger: Ledger
    limits: Limits
    ids: CallIds
    map: RequestMap = NO_MAP
    """The tools that the model may call."""
    held: int = field(init=False, default=0)
    """Bytes that wait for their call's identity."""
    called: bool = field(init=False, default=False)
    """A call was begun."""
    refused: bool = field(init=False, default=False)
    """A refusal was said."""
    speaking: dict[Text, None] = field(init=False, factory=dict)
    """The texts for the reader that have said something and have not ended, in the order in which they began to."""
    unread: Unread = field(init=False)
    _indexes: Iterator[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        self.unread = Unread(STAGE, self.ledger)

    def open(self, block: Block, out: list[Event]) -> int:
        """Begin a block; its index."""
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

    def speak(self, text: Text, out: list[Event]) -> None:
        """A text says something: one before it that is whole ends now."""
        if text in self.speaking:
            return
        if self.speaking and (last := next(reversed(self.speaking))).done:
            self.stop(last, out)
        self.speaking[text] = None

    def finish(self, text: Text, out: list[Event]) -> None:
        """A text is whole. It ends before the next one speaks, since more may be noted on it; now, if one waits."""
        text.done = True
        if text in self.speaking and next(reversed(self.speaking)) is not text:
            self.stop(text, out)

    def stop(self, text: Text, out: list[Event], *, complete: bool = True) -> None:
        """The block of a text ends."""
        self.speaking.pop(text, None)
        if text.index >= 0 and not text.stopped:
            text.stopped = True
            out.append(BlockStop(text.index, complete))

    def hold(self, size: int) -> None:
        """Text waits, within a bound."""
        self.held += size
        if self.held > (bound := self.limits.held_bytes):
            raise LimitExceeded(f"more than {bound} bytes of announced text wait", code="held_bytes")

    def lose(self, path: str, reason: str) -> None:
        """Record what is not passed on."""
        self.ledger.record(STAGE, path, "dropped", reason)


@define(eq=False)
class Item(ABC):
    """One item. `place` is its output index, `id` its own id, where the server tells them."""

    writer: Writer
    place: int | None = None
    id: str = ""
    announcement: Mapping[str, Any] = NOTHING
    """The item as it was announced; empty if it never was."""
    ended: bool = False
    """The server said that it is done."""
    waiting: dict[tuple[object, int], Announced] = field(init=False, factory=dict)
    """What announcements tell of its texts, each of a kind and a part, of which nothing was said yet."""

    read: ClassVar[frozenset[str] | None] = None
    """The members that are read; None: it is carried whole."""
    holds: ClassVar[Mapping[str, frozenset[str]]] = {}
    """The members that are lists of parts, and what of such a part is read."""

    def note(self, item: Mapping[str, Any]) -> None:
        """Record what of it is not read, as it is told here."""
        if self.read is not None:
            self.writer.unread.note(item, self.read, "output[].")
        for member, read in self.holds.items():
            told = item.get(member)
            if isinstance(told, list):
                note_odd(
                    [part for part in told if not isinstance(part, dict)], self.writer.unread, f"output[].{member}[]"
                )
            elif not isinstance(told, str):
                note_odd(told, self.writer.unread, f"output[].{member}")
            for part in parts_in(told):
                note_part(part, self.writer.unread, f"output[].{member}[].", read)

    @abstractmethod
    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """Say what the item, as it is told here, has more than was said."""

    @abstractmethod
    def end(self, out: list[Event], *, complete: bool) -> None:
        """At its end, or the message's: its blocks end. `complete`: nothing cut it short."""

    def done(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """The server said that it is done."""
        self.ended = True
        self.end(out, complete=word(item.get("status")) not in CUT_STATUSES)

    def expect(self, kind: object, part: int | None, text: str, *, whole: bool = False) -> None:
        """An announcement tells the text of a part, or how it begins."""
        if text and not self.ended:
            self.forget(kind, part)
            self.waiting[kind, part or 0] = Announced(text, whole)
            self.writer.hold(size_of(text))

    def forget(self, kind: object, part: int | None) -> Announced | None:
        """A text is told: what its announcement told of it, if that was not said."""
        if self.waiting and (first := self.waiting.pop((kind, part or 0), None)) is not None:
            self.writer.held -= size_of(first.text)
            return first
        return None

    def forget_all(self, kind: object) -> None:
        """All texts of a kind are told."""
        for of, part in [*self.waiting]:
            if of == kind:
                self.forget(of, part)

    @abstractmethod
    def foretold(self, item: Mapping[str, Any]) -> None:
        """What of its texts its announcement tells."""

    def behind(self, kind: object, part: int | None, delta: str) -> str | None:
        """A delta, with what stands before it in its announcement; None while that may be told again."""
        if not self.waiting or (first := self.waiting.get((kind, part or 0))) is None:
            return delta
        if (told := first.behind(delta)) is not None:
            self.forget(kind, part)
            if first.lost:
                self.writer.lose(*INSTEAD)
        return told

    def settle(self, out: list[Event], *, complete: bool) -> None:
        """At the end of the message: what nothing more was told of is as it was announced."""
        if self._silent():
            self.snapshot(self.announcement, out)
        self.end(out, complete=complete)

    @abstractmethod
    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether `item` may be this one, told later under another id."""

    @abstractmethod
    def voices(self) -> Iterable[Voice]:
        """Its texts."""

    def flush(self, out: list[Event]) -> None:
        """Halves of characters whose other half never came."""
        for voice in self.voices():
            for _, text in voice.halves.rest():
                if voice.index >= 0 and not voice.stopped:
                    out.append(voice.make(voice.index, text))

    def _silent(self) -> bool:
        return not any(self.voices())

    def _rest(self, voice: Voice, more: str | None, out: list[Event]) -> None:
        """Write what a snapshot has more; None is a snapshot that says something else."""
        if more is None:
            self.writer.lose("snapshot", "it differs from what was streamed")
        elif more:
            self._write(voice, more, out)

    def _write(self, voice: Voice, text: str, out: list[Event]) -> None:
        """More of one of its texts, in its block; the block ends with the item."""
        if voice.stopped:
            self.writer.lose("snapshot", "it tells more than the item had at its end")
            return
        if voice.index < 0:
            voice.index = self.writer.open(self._block(), out)
        out.append(voice.make(voice.index, text))

    def _block(self) -> Block:
        """The block that its text is written to."""
        return TextBlock()

    def _stop(self, voice: Voice, out: list[Event], complete: bool) -> None:
        if voice.index >= 0 and not voice.stopped:
            voice.stopped = True
            out.append(BlockStop(voice.index, complete))


@define(eq=False)
class ReasoningItem(Item):
    """Reasoning: its summary or its raw text, never both, the parts joined by a blank line; its blob comes last.

    Of a whole item the raw text is shown if there is any; while it streams, the one that comes first. The item is not
    splittable, since the blob belongs to the whole of it. An item that has a blob and no text is redacted reasoning.
    Where a target merges blocks of reasoning, a blank line stands between two items too.
    """

    read: ClassVar[frozenset[str] | None] = COMMON | {"summary", "content", "encrypted_content"}
    holds: ClassVar[Mapping[str, frozenset[str]]] = {"summary": OF_REASONING, "content": OF_REASONING}
    voice: Voice = field(init=False, factory=lambda: Voice(ReasoningDelta, JOINT))
    _member: str = field(init=False, default="")
    """Where the text that is shown stands: `summary` or `content`."""
    _proof: str = field(init=False, default="")
    """What brings it back to its provider."""

    def note(self, item: Mapping[str, Any]) -> None:
        """Record what of it is not read; with its blob it goes back to its provider as it is."""
        if not proof_of(item):
            super().note(item)

    def add(self, member: str, part: int | None, text: str, out: list[Event]) -> Said | None:
        """More of its summary or of its raw text."""
        if self.ended:
            self.writer.lose("reasoning delta", "it came after the end of its item")
            return None
        if not text or not self._shows(member) or (text := self.behind(member, part, text) or "") == "":
            return None
        if shown := self.voice.add(part, text):
            self._write(self.voice, shown, out)
        return self.voice.said(part) if self.voice.index >= 0 else None

    def part_done(self, member: str, part: int | None, whole: str, out: list[Event]) -> None:
        """A part of its summary or of its raw text is whole."""
        if whole and not self.ended and self._shows(member):
            self.forget(member, part)
            self._rest(self.voice, self.voice.rest(part, whole), out)

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """What of its text was not said, and its blob."""
        texts = parts_of(item)
        for member in ("content", "summary"):
            if any(texts[member]) and self._shows(member):
                self.forget_all(member)
                for more in self.voice.rest_of(texts[member]):
                    self._rest(self.voice, more, out)
        self._proof = proof_of(item) or self._proof

    def end(self, out: list[Event], *, complete: bool) -> None:
        """The blob, and the end of its block."""
        self.flush(out)
        if self.voice.stopped:
            return
        if self._proof and self.voice.index >= 0:
            out.append(SignatureDelta(self.voice.index, self._proof))
        elif self._proof:
            self.voice.index = self.writer.open(RedactedReasoningBlock(self._proof), out)
        self._stop(self.voice, out, complete)

    def flush(self, out: list[Event]) -> None:
        """What was announced and not told again, and halves of characters."""
        for member, part in sorted(self.waiting, key=str):
            first = self.forget(member, part)
            if first is not None and self._shows(str(member)):
                self._write(self.voice, self.voice.add(part, first.text), out)
        super().flush(out)

    def foretold(self, item: Mapping[str, Any]) -> None:
        """The text of each of its parts."""
        for member, texts in parts_of(item).items():
            for part, text in enumerate(texts):
                self.part_begun(member, part, text)

    def part_begun(self, member: str, part: int | None, text: str) -> None:
        """The announcement of a part tells its text; unless something was said of it."""
        if not self.voice.spoke(part):
            self.expect(member, part, text)

    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether the text may be the same."""
        return self.voice.agrees(parts_of(item)[self._member or "summary"])

    def voices(self) -> Iterable[Voice]:
        """Its text."""
        return (self.voice,)

    def _shows(self, member: str) -> bool:
        """Whether this is the text that is shown; the first one is."""
        self._member = self._member or member
        if member != self._member:
            self.writer.lose(member, "an item's summary and its raw text are not both shown")
        return member == self._member

    def _silent(self) -> bool:
        return False  # what an announcement has of the blob is not the whole of it

    def _block(self) -> Block:
        return ReasoningBlock(splittable=False)


@define(eq=False)
class HostedItem(Item):
    """An item of a tool that the provider runs, or of a kind that we do not know: carried whole, once it is done."""

    _whole: Mapping[str, Any] = field(init=False, default=NOTHING)
    _written: bool = field(init=False, default=False)

    def foretold(self, item: Mapping[str, Any]) -> None:
        """Nothing: it is carried as it ends."""

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """The item as it is now."""
        self._whole = item

    def end(self, out: list[Event], *, complete: bool) -> None:
        """It is carried, once."""
        if self._whole and not self._written:
            self._written = True
            out.append(BlockStop(self.writer.open(ServerBlock(NAME, self._whole), out), complete))

    def _silent(self) -> bool:
        return not self._whole

    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether it is of the same type."""
        return item.get("type") == (self._whole or self.announcement).get("type")

    def voices(self) -> Iterable[Voice]:
        """It has no text."""
        return ()


def parts_in(content: Any) -> Sequence[Mapping[str, Any]]:
    """The parts of a message's content; a plain text is one."""
    if isinstance(content, str):
        return ({"text": content},)
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else ()
