"""The items of an output, each of which knows what of it was passed on."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.events import (
    AnnotationDelta,
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
from pipeline.ids import CallIds
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.logprobs import note_of, scores_in
from pipeline.toolnames import NO_MAP, RequestMap
from pipeline.unread import Unread
from pipeline.word import word
from stages.dialects.responses.opaque import JOINT, parts_of, proof_of
from stages.dialects.responses.voice import Said, Voice
from stages.dialects.responses.within import COMMON, OF_REASONING, OF_TEXT, note_part

NAME: Final = "responses"
STAGE: Final = "ResponsesNormalizer"
NOTHING: Final[Mapping[str, Any]] = {}
CUT_STATUSES: Final = ("incomplete", "failed", "cancelled")
"""The statuses of an item that is not whole."""


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
    unread: Unread = field(init=False)
    _indexes: Iterator[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        self.unread = Unread(STAGE, self.ledger)

    def open(self, block: Block, out: list[Event]) -> int:
        """Begin a block; its index."""
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

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

    read: ClassVar[frozenset[str] | None] = None
    """The members that are read; None: it is carried whole."""
    holds: ClassVar[Mapping[str, frozenset[str]]] = {}
    """The members that are lists of parts, and what of such a part is read."""

    def note(self, item: Mapping[str, Any]) -> None:
        """Record what of it is not read, as it is told here."""
        if self.read is not None:
            self.writer.unread.note(item, self.read, "output[].")
        for member, read in self.holds.items():
            for part in _parts(item.get(member)):
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
class MessageItem(Item):
    """Text for the reader, and a refusal in a block of its own; the parts of each are one text."""

    read: ClassVar[frozenset[str] | None] = COMMON | {"role", "content", "phase"}
    holds: ClassVar[Mapping[str, frozenset[str]]] = {"content": OF_TEXT}
    text: Voice = field(init=False, factory=lambda: Voice(TextDelta))
    refusal: Voice = field(init=False, factory=lambda: Voice(RefusalDelta))
    _noted: dict[int, int] = field(init=False, factory=dict)
    """How many annotations each part has had."""
    _scored: dict[int, int] = field(init=False, factory=dict)
    """Of how many tokens of each part it was told how likely they were."""

    def add(self, voice: Voice, part: int | None, text: str, out: list[Event]) -> Said | None:
        """More of one of its texts. Where what comes next for this part is noted, or None if it cannot be written."""
        if self.ended:
            self.writer.lose("output_text.delta", "it came after the end of its item")
            return None
        if shown := voice.add(part, text):
            self._write(voice, shown, out)
        return voice.said(part) if voice.index >= 0 else None

    def part_done(self, part: int | None, whole: Mapping[str, Any], out: list[Event]) -> None:
        """A part, or a text of it, is whole."""
        if self.ended:
            return
        self._rest(self.text, self.text.rest(part, _text(whole.get("text"))), out)
        self._rest(self.refusal, self.refusal.rest(part, _text(whole.get("refusal"))), out)

    def annotate(self, part: int | None, note: Mapping[str, Any], out: list[Event]) -> None:
        """A note on its text."""
        place = part or 0
        self._noted[place] = self._noted.get(place, 0) + 1
        self._note(note, out)

    def score(self, part: int | None, scores: Any, out: list[Event]) -> None:
        """How likely the next tokens of a part were."""
        place = part or 0
        note = note_of(scores)
        if note is None or self.text.index < 0 or self.text.stopped:
            self.writer.lose("logprobs", "no text that they could belong to")
            return
        if len(scores_in(note)) < len(scores):
            self.writer.lose("logprobs[]", "no token")
        self._scored[place] = self._scored.get(place, 0) + len(scores)
        out.append(AnnotationDelta(self.text.index, note))

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """What of its texts, and of the notes on them, was not said."""
        parts = _parts(item.get("content"))
        for more in self.text.rest_of([_text(part.get("text")) for part in parts]):
            self._rest(self.text, more, out)
        for more in self.refusal.rest_of([_text(part.get("refusal")) for part in parts]):
            self._rest(self.refusal, more, out)
        for place, part in enumerate(parts):
            notes = part.get("annotations")
            for note in notes[self._noted.get(place, 0) :] if isinstance(notes, list) else ():
                if isinstance(note, dict):
                    self.annotate(place, note, out)
            if not ("text" in part or "refusal" in part):
                self.writer.lose("content[]", "a part that is no text")
            if isinstance(scores := part.get("logprobs"), list) and scores[self._scored.get(place, 0) :]:
                self.score(place, scores[self._scored.get(place, 0) :], out)
        if item.get("phase"):
            self.writer.lose("phase", "no event carries it")

    def end(self, out: list[Event], *, complete: bool) -> None:
        """Both of its blocks end."""
        self.flush(out)
        for voice in self.voices():
            self._stop(voice, out, complete)

    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether both texts may be the same."""
        parts = _parts(item.get("content"))
        return self.text.agrees([_text(part.get("text")) for part in parts]) and self.refusal.agrees(
            [_text(part.get("refusal")) for part in parts]
        )

    def voices(self) -> Iterable[Voice]:
        """Its text and its refusal."""
        return (self.text, self.refusal)

    def _note(self, note: Mapping[str, Any], out: list[Event]) -> None:
        if self.text.stopped:
            self.writer.lose("annotation", "it came after the end of its text")
            return
        self._open(self.text, out)
        out.append(AnnotationDelta(self.text.index, note))

    def _write(self, voice: Voice, text: str, out: list[Event]) -> None:
        if voice is self.refusal:
            self.writer.refused = True
        self._open(voice, out)
        super()._write(voice, text, out)

    def _open(self, voice: Voice, out: list[Event]) -> None:
        """Text that only the end of the message told, behind the end of its block, has a block of its own."""
        if voice.index < 0 or voice.stopped:
            voice.index, voice.stopped = self.writer.open(self._block(), out), False


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
        if not text or not self._shows(member):
            return None
        if shown := self.voice.add(part, text):
            self._write(self.voice, shown, out)
        return self.voice.said(part) if self.voice.index >= 0 else None

    def part_done(self, member: str, part: int | None, whole: str, out: list[Event]) -> None:
        """A part of its summary or of its raw text is whole."""
        if whole and not self.ended and self._shows(member):
            self._rest(self.voice, self.voice.rest(part, whole), out)

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """What of its text was not said, and its blob."""
        texts = parts_of(item)
        for member in ("content", "summary"):
            if any(texts[member]) and self._shows(member):
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


def _parts(content: Any) -> Sequence[Mapping[str, Any]]:
    """The parts of a message's content; a plain text is one."""
    if isinstance(content, str):
        return ({"text": content},)
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
