"""The items of a response while they are written: each event of them once, and the item as a whole at its end."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

from pipeline.events import Frame, RefusalDelta, TextDelta
from pipeline.freeform import Unwrapped, Wrapped
from pipeline.jsontext import dumps
from pipeline.logprobs import Scores
from pipeline.toolnames import OfferedTool

Json = dict[str, Any]


@define
class Wire:
    """Makes frames of events and numbers them without a gap."""

    sequence: int = field(init=False, default=0)

    def write(self, kind: str, members: Mapping[str, Any], out: list[Frame]) -> None:
        """One event."""
        out.append(Frame(dumps({"type": kind, "sequence_number": self.sequence, **members}), kind.encode()))
        self.sequence += 1

    def write_text(self, name: bytes, middle: bytes, text: str, end: bytes, out: list[Frame]) -> None:
        """A delta. `middle` and `end` are what stands round its text behind the number."""
        number = b'{"type":"%s","sequence_number":%d' % (name, self.sequence)
        out.append(Frame(number + middle + dumps(text) + end, name))
        self.sequence += 1


@frozen
class Words:
    """The events of one kind of part or text."""

    type: str
    member: str
    event: str
    """Its events but for `.delta` and `.done`."""
    part: str = ""
    """The events of its part but for `.added` and `.done`; empty for what has no parts."""
    index: str = "content_index"
    beside: Mapping[str, Any] = field(factory=dict)
    """What its text events have beside the text."""
    empty: Mapping[str, Any] = field(factory=dict)
    """What a part has beside its text."""


OUTPUT_TEXT = Words(
    "output_text",
    "text",
    "response.output_text",
    "response.content_part",
    beside={"logprobs": []},
    empty={"annotations": [], "logprobs": []},
)
REFUSAL = Words("refusal", "refusal", "response.refusal", "response.content_part")
SUMMARY = Words(
    "summary_text",
    "text",
    "response.reasoning_summary_text",
    "response.reasoning_summary_part",
    index="summary_index",
)
RAW = Words("reasoning_text", "text", "response.reasoning_text", "response.content_part")
ARGUMENTS = Words("function_call", "arguments", "response.function_call_arguments")
INPUT = Words("custom_tool_call", "input", "response.custom_tool_call_input")

URL_CITATION = "url_citation"

BY_DELTA = {TextDelta: OUTPUT_TEXT, RefusalDelta: REFUSAL}
"""What a delta of a message is written as."""


@define(eq=False)
class Written(ABC):
    """An item while it is written. `place` is its output index."""

    wire: Wire
    place: int
    id: str
    final: Json | None = field(init=False, default=None)
    """The item as it was at its end; None while it has none."""
    _pieces: list[str] = field(init=False, factory=list)
    """The text that is being written."""
    _name: bytes = field(init=False, default=b"")
    _middle: bytes = field(init=False, default=b"")
    _end: bytes = field(init=False, default=b"")

    @property
    def where(self) -> Json:
        """What tells its events from another's."""
        return {"item_id": self.id, "output_index": self.place}

    def more(self, text: str, out: list[Frame]) -> None:
        """More of the text that is being written."""
        self._pieces.append(text)
        self.wire.write_text(self._name, self._middle, text, self._end, out)

    @abstractmethod
    def close(self, out: list[Frame], *, complete: bool) -> None:
        """Its end."""

    def _announce(self, item: Json, out: list[Frame]) -> None:
        self.wire.write("response.output_item.added", {"output_index": self.place, "item": item}, out)

    def _finish(self, item: Json, out: list[Frame]) -> None:
        self.final = item
        self.wire.write("response.output_item.done", {"output_index": self.place, "item": item}, out)

    def _speak(self, words: Words, where: Json) -> None:
        """From now on its text is of that kind."""
        self._name = f"{words.event}.delta".encode()
        self._middle = b"," + dumps(where)[1:-1] + b',"delta":'
        self._end = b"," + dumps(words.beside)[1:] if words.beside else b"}"
        self._pieces = []


@define(eq=False)
class WrittenParts(Written):
    """A message, or reasoning: an item of parts, of which one is written at a time."""

    item: Json
    """What it has beside its parts and its status."""
    member: str
    """Where its parts stand."""
    beside: Json = field(factory=dict)
    """What else its texts have."""
    _words: Words | None = field(init=False, default=None)
    _parts: list[Json] = field(init=False, factory=list)
    _notes: list[Mapping[str, Any]] = field(init=False, factory=list)
    _pages: list[Mapping[str, Any]] = field(init=False, factory=list)
    """Pages that are cited for the whole of the part, whose end is not known yet."""
    _scores: list[Mapping[str, Any]] = field(init=False, factory=list)
    """How likely the tokens of the part were, as far as that was told."""
    _proof: Json = field(init=False, factory=dict)

    def say(self, words: Words, text: str, out: list[Frame]) -> None:
        """More of its text, in a part of that kind."""
        self._part(words, out)
        self.more(text, out)

    def note(self, annotation: Mapping[str, Any], out: list[Frame]) -> None:
        """A note on its text."""
        self._part(OUTPUT_TEXT, out)
        if annotation.get("type") == URL_CITATION and "start_index" not in annotation:
            self._pages.append(annotation)
        else:
            self._note(annotation, out)

    def _note(self, annotation: Mapping[str, Any], out: list[Frame]) -> None:
        where = {**self.where, "content_index": len(self._parts), "annotation_index": len(self._notes)}
        self._notes.append(annotation)
        self.wire.write("response.output_text.annotation.added", {**where, "annotation": annotation}, out)

    def score(self, scores: Scores, out: list[Frame]) -> None:
        """How likely the tokens of its text were: in the delta of it, if nothing was written since."""
        self._part(OUTPUT_TEXT, out)
        self._scores += scores
        end = b',"logprobs":' + dumps(scores) + b"}"
        if out and self._middle in (data := out[-1].data) and data.endswith(self._end):
            out[-1] = Frame(data.removesuffix(self._end) + end, self._name)
        else:
            self.wire.write_text(self._name, self._middle, "", end, out)

    def prove(self, members: Json) -> None:
        """What its provider needs to know it again."""
        self._proof = members

    def close(self, out: list[Frame], *, complete: bool) -> None:
        """Its last part ends, and it is told whole."""
        self._begin(out)
        self._end_part(out)
        status = self._status("completed" if complete else "incomplete")
        self._finish({**self.item, **status, self.member: self._parts, **self._proof}, out)

    def _begin(self, out: list[Frame]) -> None:
        if self._words is None and not self._parts:
            self._announce({**self.item, **self._status("in_progress"), self.member: []}, out)

    @property
    def has_status(self) -> bool:
        """Only a message has one."""
        return bool(self.item["type"] == "message")

    def _status(self, word: str) -> Json:
        return {"status": word} if self.has_status else {}

    def _part(self, words: Words, out: list[Frame]) -> None:
        if words is self._words:
            return
        self._begin(out)
        self._end_part(out)
        self._words = words
        where = {**self.where, words.index: len(self._parts)}
        self._speak(words, where)
        self.wire.write(f"{words.part}.added", {**where, "part": self._told(words, "")}, out)

    def _told(self, words: Words, text: str) -> Json:
        part = {"type": words.type, words.member: text, **words.empty}
        return part | self.beside if words is OUTPUT_TEXT else part

    def _end_part(self, out: list[Frame]) -> None:
        if (words := self._words) is None:
            return
        text = "".join(self._pieces)
        where = {**self.where, words.index: len(self._parts)}
        part = self._told(words, text)
        pages, self._pages = self._pages, []
        for page in pages:
            self._note({**page, "start_index": 0, "end_index": len(text)}, out)
        if self._notes:
            part["annotations"], self._notes = self._notes, []
        beside = {**words.beside}
        if self._scores:
            part["logprobs"] = beside["logprobs"] = self._scores
            self._scores = []
        self.wire.write(f"{words.event}.done", {**where, words.member: text, **beside}, out)
        self.wire.write(f"{words.part}.done", {**where, "part": part}, out)
        self._parts.append(part)
        self._words = None


@define(eq=False)
class WrittenCall(Written):
    """A call of a tool that the client runs, as the client declared it."""

    call_id: str
    tool: OfferedTool
    words: Words
    form: Unwrapped | Wrapped | None = None
    """What makes freeform text of the function's arguments that it came as, or the other way round."""

    def begin(self, out: list[Frame]) -> None:
        """It is announced."""
        self._speak(self.words, self.where)
        self._announce(self._item("", "in_progress"), out)

    def say(self, text: str, out: list[Frame]) -> None:
        """More of its arguments."""
        if self.form is not None:
            text = self.form.feed(text)
        if text:
            self.more(text, out)

    def close(self, out: list[Frame], *, complete: bool) -> None:
        """It is told whole; its arguments are called done only if nothing cut them short."""
        if self.form is not None and (rest := self.form.close(complete)):
            self.more(rest, out)
        text = "".join(self._pieces)
        if complete:
            self.wire.write(f"{self.words.event}.done", {**self.where, self.words.member: text}, out)
        self._finish(self._item(text, "completed" if complete else "incomplete"), out)

    def _item(self, text: str, status: str) -> Json:
        item = {"id": self.id, "type": self.words.type, "status": status, "call_id": self.call_id}
        if self.tool.namespace:
            item["namespace"] = self.tool.namespace
        return {**item, "name": self.tool.name, self.words.member: text}


@define(eq=False)
class WrittenWhole(Written):
    """An item that came whole."""

    item: Json

    def close(self, out: list[Frame], *, complete: bool) -> None:
        """It is announced and told whole at one stroke."""
        self._announce(self.item, out)
        self._finish(self.item, out)


@define(eq=False)
class WrittenSearch(Written):
    """A search of the web that another API's provider made: its query. Its results are the provider's own."""

    item: Json

    def close(self, out: list[Frame], *, complete: bool) -> None:
        """It is told at one stroke, in all of its steps."""
        self._announce({**self.item, "status": "in_progress"}, out)
        for step in SEARCHING if complete else SEARCHING[:-1]:
            self.wire.write(f"response.web_search_call.{step}", self.where, out)
        self._finish({**self.item, "status": "completed" if complete else "incomplete"}, out)


SEARCHING: Final = ("in_progress", "searching", "completed")
