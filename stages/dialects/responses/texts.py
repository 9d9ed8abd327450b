"""A message of an output: its parts, each of which is a block."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.events import AnnotationDelta, Event, RefusalDelta, TextBlock, TextDelta
from pipeline.jsontext import whole_text
from pipeline.logprobs import note_of, scores_in
from pipeline.unread import says
from stages.dialects.responses.items import Item, Text, Writer, parts_in
from stages.dialects.responses.voice import Said, Voice
from stages.dialects.responses.within import COMMON, OF_TEXT

Kind = type[TextDelta] | type[RefusalDelta]

MEMBERS: Final[dict[Kind, str]] = {TextDelta: "text", RefusalDelta: "refusal"}
"""Where the text of a part stands."""


@define(eq=False)
class MessageItem(Item):
    """Text for the reader, and refusals: every part a block of its own, with what is noted on it.

    Parts may be told at once; their blocks overlap then. A part that is said to be whole ends before the next one
    speaks, at the latest with the item.
    """

    read: ClassVar[frozenset[str] | None] = COMMON | {"role", "content", "phase"}
    holds: ClassVar[Mapping[str, frozenset[str]]] = {"content": OF_TEXT}
    _heard: dict[Kind, Voice] = field(init=False, factory=lambda: {kind: Voice(kind) for kind in MEMBERS})
    """What was said of all parts of a kind."""
    _texts: dict[Kind, dict[int | None, Text]] = field(init=False, factory=lambda: {kind: {} for kind in MEMBERS})
    """The parts of each kind, in order of first appearance. None is what named no part."""
    _noted: dict[int, int] = field(init=False, factory=dict)
    """How many annotations each part has had."""
    _scored: dict[int, int] = field(init=False, factory=dict)
    """Of how many tokens of each part it was told how likely they were."""

    def add(self, kind: Kind, part: int | None, delta: str, out: list[Event]) -> tuple[Text, Said] | None:
        """More of one of its texts. That text, and where what comes next for it is noted, if that needs no thought."""
        if self.ended:
            self.writer.lose("output_text.delta", "it came after the end of its item")
            return None
        if (delta := self.behind(kind, part, delta) or "") == "":
            return None
        text, heard = self._text(kind, part), self._heard[kind]
        if shown := heard.add(part, text.halves.joined("", delta)):
            self._say(text, shown, out)
        return (text, heard.said(part)) if text in self.writer.speaking else None

    def part_done(self, part: int | None, whole: Mapping[str, Any], out: list[Event]) -> None:
        """A part, or a text of it, is whole."""
        if self.ended:
            return
        for kind, member in MEMBERS.items():
            if isinstance(told := whole.get(member), str):
                if told:
                    self.forget(kind, part)
                self._more(kind, part, self._heard[kind].rest(part, told), out)
                if kind is TextDelta:
                    self._beside(part, part, whole, out)
                self._finish(kind, part, out)

    def annotate(self, part: int | None, note: Mapping[str, Any], out: list[Event]) -> None:
        """A note on one of its texts."""
        self._annotate(part, part, note, out)

    def score(self, part: int | None, scores: Sequence[Any], out: list[Event]) -> None:
        """How likely the next tokens of a part were."""
        self._score(part, part, scores, out)

    def foretold(self, item: Mapping[str, Any]) -> None:
        """The text of each of its parts."""
        for place, part in enumerate(parts_in(item.get("content"))):
            self.part_begun(place, part)

    def part_begun(self, part: int | None, told: Mapping[str, Any]) -> None:
        """The announcement of a part tells its text; unless something was said of it."""
        for kind, member in MEMBERS.items():
            if not self._heard[kind].spoke(part) and isinstance(text := told.get(member), str):
                self.expect(kind, part, text)

    def snapshot(self, item: Mapping[str, Any], out: list[Event]) -> None:
        """What of its texts, and of the notes on them, was not said."""
        parts = parts_in(item.get("content"))
        told = {kind: self._told(kind, parts) for kind in MEMBERS}
        for kind in MEMBERS:
            if any(_texts(parts, kind)):
                self.forget_all(kind)
        for place, part in enumerate(parts):
            for kind in MEMBERS:
                at, whole = told[kind].get(place, (place if place in self._texts[kind] else None, ""))
                self._more(kind, at, self._heard[kind].rest(at, whole), out)
                if kind is TextDelta:
                    self._beside(at, place, part, out)
                if whole:
                    self._finish(kind, at, out)
            if not any(member in part for member in MEMBERS.values()):
                self.writer.lose("content[]", "a part that is no text")
        if item.get("phase"):
            self.writer.lose("phase", "no event carries it")

    def end(self, out: list[Event], *, complete: bool) -> None:
        """All of its blocks end."""
        self.flush(out)
        for text in self._in_order():
            self.writer.stop(text, out, complete=complete)

    def agrees(self, item: Mapping[str, Any]) -> bool:
        """Whether all texts may be the same."""
        parts = parts_in(item.get("content"))
        return all(self._heard[kind].agrees(_texts(parts, kind)) for kind in MEMBERS)

    def beyond(self, text: str) -> str | None:
        """What a text has behind this message's; None if it does not begin with it."""
        return self._heard[TextDelta].behind(text)

    def voices(self) -> Iterable[Voice]:
        """Its texts and its refusals."""
        return self._heard.values()

    def flush(self, out: list[Event]) -> None:
        """What was announced and not told again, and halves of characters whose other half never came."""
        for kind, part in sorted(self.waiting, key=lambda key: key[1]):
            first = self.forget(kind, part)
            if first is not None and (kind is TextDelta or kind is RefusalDelta):
                self._more(kind, part, self._heard[kind].rest(part, first.text), out)
        for text in self._in_order():
            self._flush(text, out)

    def _flush(self, text: Text, out: list[Event]) -> None:
        for _, half in text.halves.rest():
            if text.index >= 0 and not text.stopped:
                out.append(text.make(text.index, half))

    def _in_order(self) -> list[Text]:
        return sorted((text for texts in self._texts.values() for text in texts.values()), key=lambda text: text.index)

    def _text(self, kind: Kind, part: int | None) -> Text:
        """The text of a part. What names no part is the last one's, or, if nothing ever named one, of its own."""
        if (found := self._found(kind, part)) is not None:
            return found
        texts = self._texts[kind]
        if len(texts) >= self.writer.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.writer.limits.blocks} parts", code="blocks")
        text = texts[part] = Text(kind)
        return text

    def _found(self, kind: Kind, part: int | None) -> Text | None:
        texts = self._texts[kind]
        if (found := texts.get(part)) is None and texts:
            found = texts[next(reversed(texts))] if part is None else texts.get(None)
        return found

    def _told(self, kind: Kind, parts: Sequence[Mapping[str, Any]]) -> Mapping[int, tuple[int | None, str]]:
        """The part that each place tells of a kind, and its whole text."""
        texts = _texts(parts, kind)
        told = self._heard[kind].places(texts) if any(texts) else {}
        if told is None:
            self.writer.lose("snapshot", "it differs from what was streamed")
        return told or {}

    def _more(self, kind: Kind, part: int | None, more: str | None, out: list[Event]) -> None:
        """Write what a snapshot has more; None is a snapshot that says something else."""
        if more is None:
            self.writer.lose("snapshot", "it differs from what was streamed")
        elif more:
            text = self._text(kind, part)
            text.halves.rest()  # the whole has the character
            self._say(text, more, out)

    def _say(self, text: Text, more: str, out: list[Event]) -> None:
        if text.make is RefusalDelta:
            self.writer.refused = True
        if not more.isspace():
            self.writer.speak(text, out)
        self._open(text, out)
        out.append(text.make(text.index, more))

    def _open(self, text: Text, out: list[Event]) -> None:
        """Text that was told behind the end of its block has a block of its own."""
        if text.index < 0 or text.stopped:
            text.index, text.stopped = self.writer.open(TextBlock(), out), False

    def _finish(self, kind: Kind, part: int | None, out: list[Event]) -> None:
        if (text := self._found(kind, part)) is not None:
            self._flush(text, out)
            self.writer.finish(text, out)

    def _beside(self, part: int | None, place: int | None, told: Mapping[str, Any], out: list[Event]) -> None:
        """What stands beside a text, as far as it was not told before. `place`: what its notes are counted by."""
        at = (place if part is None else part) or 0
        notes, scores = told.get("annotations"), told.get("logprobs")
        for note in notes[self._noted.get(at, 0) :] if isinstance(notes, list) else ():
            if isinstance(note, dict):
                self._annotate(part, at, note, out)
        if isinstance(scores, list) and scores[self._scored.get(at, 0) :]:
            self._score(part, at, scores[self._scored.get(at, 0) :], out)

    def _annotate(self, part: int | None, place: int | None, note: Mapping[str, Any], out: list[Event]) -> None:
        self._noted[place or 0] = self._noted.get(place or 0, 0) + 1
        text = self._text(TextDelta, part)
        if text.stopped:
            self.writer.lose("annotation", "it came after the end of its text")
            return
        self._open(text, out)
        out.append(AnnotationDelta(text.index, note))

    def _score(self, part: int | None, place: int | None, scores: Sequence[Any], out: list[Event]) -> None:
        note, text = note_of(scores), self._found(TextDelta, part)
        if note is None or text is None or text.index < 0 or text.stopped:
            self.writer.lose("logprobs", "no text that they could belong to")
            return
        if len(scores_in(note)) < len(scores):
            self.writer.lose("logprobs[]", "no token")
        self._scored[place or 0] = self._scored.get(place or 0, 0) + len(scores)
        out.append(AnnotationDelta(text.index, note))


def note_repeat(told: Any, items: Iterable[Item], writer: Writer) -> None:
    """Record a text that a response tells of all its messages once more, and that is another than theirs."""
    rest: str | None = whole_text(told) if isinstance(told, str) else ""
    for item in items if rest else ():
        if isinstance(item, MessageItem) and rest is not None:
            rest = item.beyond(rest)
    if rest != "" or (says(told) and not isinstance(told, str)):
        writer.lose("output_text", "it differs from what the parts say")


def _texts(parts: Sequence[Mapping[str, Any]], kind: Kind) -> list[str]:
    told = (part.get(MEMBERS[kind]) for part in parts)
    return [text if isinstance(text, str) else "" for text in told]
