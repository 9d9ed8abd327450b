"""A Responses stream taken apart: what each event is of, and what was told of it before."""

from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field, frozen

from pipeline.events import Frame
from pipeline.grammar import Part, Reading, get, is_count
from pipeline.jsontext import loads

BEGINNINGS: Final = ("response.created", "response.queued", "response.in_progress")
TERMINALS: Final = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}
CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that are calls of the client's tools, and where their text stands."""
HOSTED: Final = (
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_call",
    "response.mcp_list_tools.",
    "response.shell_call_",
    "response.apply_patch_call_",
    "response.audio",
    "response.compaction",
)
"""How the events of tools begin that the provider runs. They are of an item, and nothing more is asked of them."""


@frozen
class _Told:
    """What an event tells of a text."""

    step: str
    part: str = ""
    """The type of the part it is of; empty: it is a call's."""
    member: str = "text"


EVENTS: Final[dict[str, _Told]] = {
    "response.content_part.added": _Told("part", "content"),
    "response.content_part.done": _Told("part done", "content"),
    "response.reasoning_summary_part.added": _Told("part", "summary"),
    "response.reasoning_summary_part.done": _Told("part done", "summary"),
    **{
        f"response.{words}.{step}": _Told(step, part, member)
        for words, part, member in (
            ("output_text", "output_text", "text"),
            ("refusal", "refusal", "refusal"),
            ("reasoning_text", "reasoning_text", "text"),
            ("reasoning_summary_text", "summary_text", "text"),
            ("function_call_arguments", "", "arguments"),
            ("custom_tool_call_input", "", "input"),
        )
        for step in ("delta", "done")
    },
    "response.output_text.annotation.added": _Told("note", "output_text"),
}


@define(eq=False)
class _Text:
    """A part, or the text of a call, as far as it was told."""

    type: str
    text: str = ""
    whole: Any = None
    closed: bool = False


@define(eq=False)
class _Item:
    begun: dict[str, Any]
    final: dict[str, Any] | None = None
    parts: dict[str, list[_Text]] = field(factory=lambda: {"content": [], "summary": []})
    call: _Text = field(factory=lambda: _Text(""))


@define(eq=False)
class ResponsesReading(Reading):
    """One Responses stream as far as it was read."""

    number: int = field(init=False, default=0)
    created: dict[str, Any] | None = field(init=False, default=None)
    """The response as the first event told it."""
    items: list[_Item] = field(init=False, factory=list)
    ids: set[str] = field(init=False, factory=set)
    """The ids of items and calls."""
    ended: str = field(init=False, default="")
    """The type of the terminal."""

    def parts(self, frame: Frame) -> Iterator[Part]:
        """A frame, the event that it is, and what it tells."""
        try:
            event = loads(frame.data)
        except ValueError:
            event = None
        kind = get(event, "type")
        yield "frame", (frame.name.decode(errors="replace"), event)
        if not isinstance(event, dict) or not isinstance(kind, str):
            return
        yield "event", event
        self.number += 1
        if kind in BEGINNINGS:
            yield "beginning", event
            yield "response", event.get("response")
            if isinstance(response := event.get("response"), dict):
                self.created = self.created or response
        elif kind in TERMINALS:
            yield "terminal", event
            yield "response", event.get("response")
        elif kind == "response.output_item.added":
            yield "item", event
            self._add(event)
        elif kind == "response.output_item.done":
            yield "item done", event
            if (item := self.item_of(event)) is not None and isinstance(event.get("item"), dict):
                item.final = event["item"]
        elif kind in EVENTS or kind.startswith(HOSTED):
            yield "of an item", event
            yield from self._text(event, EVENTS.get(kind))
        elif kind == "error":
            yield "error", event
        if kind in TERMINALS or kind == "error":
            self.ended = kind

    def _add(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self.items.append(_Item(item))
            self.ids.update(str(item[name]) for name in ("id", "call_id") if name in item)

    def _text(self, event: dict[str, Any], told: _Told | None) -> Iterator[Part]:
        """What an event tells of a text, of which note is taken."""
        item = self.item_of(event)
        if told is None or item is None:
            return
        yield told.step, event
        text = self.text_of(event)
        if told.step == "part" and isinstance(event.get("part"), dict):
            item.parts[told.part].append(_Text(str(event["part"].get("type"))))
        elif text is not None and told.step == "delta" and isinstance(event.get("delta"), str):
            text.text += event["delta"]
        elif text is not None and told.step == "done":
            text.whole = event.get(told.member)
        elif text is not None and told.step == "part done":
            text.closed = True

    def item_of(self, event: Any) -> _Item | None:
        """The open item that an event is of."""
        place = get(event, "output_index")
        item = self.items[place] if is_count(place) and place < len(self.items) else None
        return None if item is None or item.final is not None else item

    def text_of(self, event: Any) -> _Text | None:
        """The open text that an event tells of: a call's, or a part's."""
        item, told = self.item_of(event), EVENTS.get(get(event, "type"))
        if item is None or told is None:
            return None
        if not told.part:
            return item.call if CALLS.get(str(item.begun.get("type"))) == told.member else None
        summary = told.part.startswith("summary")
        place = get(event, "summary_index" if summary else "content_index")
        texts = item.parts["summary" if summary else "content"]
        text = texts[place] if is_count(place) and place < len(texts) else None
        fits = text is not None and told.part in ("content", "summary", text.type)
        return text if fits and text is not None and not text.closed else None
