"""What was changed in a chunk, written into it: every other member stays as it came."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from pipeline.change import reparted
from pipeline.dialect import RequestFacts
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    Event,
    Frame,
    MessageStart,
    ReasoningDelta,
    RefusalDelta,
    StopReason,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.freeform import Unwrapped, Wrapped
from pipeline.jsontext import loads
from pipeline.ledger import Ledger
from pipeline.logprobs import scores_in
from pipeline.unread import Unread
from stages.dialects.chat.content import REASONING, detailed_reasoning, said_of
from stages.dialects.chat.stops import FINISH, STOP_REASONS
from stages.dialects.chat.within import FIRST_CHOICE, note_part

Json = dict[str, Any]

TEXTS: Final = (TextDelta, RefusalDelta, ReasoningDelta)
PARTS: Final[dict[type[Event], tuple[str, ...]]] = {
    TextDelta: ("text", "output_text"),
    RefusalDelta: ("refusal",),
    ReasoningDelta: ("thinking", "reasoning"),
}
"""The parts of a content that is a list, by what they say."""
HELD: Final = ("text", "refusal", "thinking", "summary", "content")
"""Where a part, or a detail, may hold its text."""
WORDS: Final = {ToolKind.FUNCTION: "arguments", ToolKind.CUSTOM: "input"}

KindOf = Callable[[ToolUseBlock], ToolKind]


@frozen
class Spot:
    """Where in a chunk the first choice stands."""

    choices: Sequence[Any]
    at: int
    choice: Mapping[str, Any]
    member: str
    """Where its delta stands; whole messages come too."""
    delta: Mapping[str, Any]

    @property
    def finish(self) -> str:
        """Its finish reason; empty while there is none."""
        reason = self.choice.get("finish_reason")
        return reason if isinstance(reason, str) and reason != "null" else ""

    @property
    def places(self) -> list[int | None]:
        """The numbers of the calls that its delta tells of."""
        entries = self.delta.get("tool_calls")
        if not isinstance(entries, list):
            return [None] if self.delta.get("function_call") or entries else []
        return [_number(entry.get("index")) for entry in entries if isinstance(entry, dict)]

    def silence(self, respoken: bool, ledger: Ledger) -> Json:
        """What is said of the tokens of a text that was changed, and in the older member that some servers repeat it
        in, which would tell what it was: nothing."""
        if not respoken:
            return {}
        silent: Json = {}
        if "logprobs" in self.choice:
            silent["logprobs"] = None
            if self.choice["logprobs"]:
                ledger.record("chat.patch", "logprobs", "dropped", "the text that they tell of was changed")
        if (twin := self.choice.get("text")) and twin == self.delta.get("content"):
            silent["text"] = ""
            ledger.record("chat.patch", "choices[].text", "dropped", "the text that it repeats was changed")
        return silent

    def holding(self, delta: Mapping[str, Any], **members: Any) -> Json:
        """The chunk's choices with another delta, and other members beside it."""
        choice = {**self.choice, self.member: delta, **members}
        return {"choices": [*self.choices[: self.at], choice, *self.choices[self.at + 1 :]]}


@define
class NewCall:
    """A call that no frame brought, under its number."""

    place: int
    said: ToolKind = ToolKind.FUNCTION
    """What its arguments are."""
    kind: ToolKind = ToolKind.FUNCTION
    """What the client is told that it is."""
    older: bool = False
    """It is told in the deprecated words, which know one call and no id."""
    _form: Unwrapped | Wrapped | None = field(init=False)
    _spoken: bool = field(init=False, default=False)

    @_form.default
    def _of_kinds(self) -> Unwrapped | Wrapped | None:
        if self.kind is self.said:
            return None
        return Unwrapped() if self.kind is ToolKind.CUSTOM else Wrapped()

    def begin(self, block: ToolUseBlock) -> Json:
        """All that tells it from others, once."""
        names = {"name": block.name, WORDS[self.kind]: ""}
        return self._entry({"id": block.id, "type": self.kind.value, self.kind.value: names})

    def say(self, text: str) -> Json | None:
        """More of its arguments."""
        text = text if self._form is None else self._form.feed(text)
        self._spoken = self._spoken or bool(text)
        return self._entry({self.kind.value: {WORDS[self.kind]: text}}) if text else None

    def close(self, *, complete: bool) -> Json | None:
        """What is left to be said."""
        rest = "" if self._form is None else self._form.close(complete)
        if complete and self.kind is ToolKind.FUNCTION and not self._spoken:
            rest = rest or "{}"
        return self._entry({self.kind.value: {WORDS[self.kind]: rest}}) if rest else None

    def _entry(self, members: Json) -> Json:
        if self.older:
            return {"function_call": members["function"]}
        return {"tool_calls": [{"index": self.place, **members}]}


@define
class Told:
    """What is told of a call at once: how it begins, and some of its arguments."""

    start: ToolUseBlock | None = None
    text: str = ""


def said_in(frame: Frame) -> Json:
    """The chunk that a frame is; empty if it is none."""
    try:
        said = loads(frame.data)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def spot_of(said: Mapping[str, Any], *, whole: bool = False) -> Spot | None:
    """Where the first choice of a chunk, or of a whole answer, stands, if it has one that can be patched."""
    due, other = ("message", "delta") if whole else ("delta", "message")
    choices = said.get("choices")
    choices = choices if isinstance(choices, list) else []
    for at, choice in enumerate(choices):
        if isinstance(choice, dict) and choice.get("index") in FIRST_CHOICE:
            member = due if choice.get(due) or not isinstance(choice.get(other), dict) else other
            delta = choice.get(member)
            return Spot(choices, at, choice, member, delta if isinstance(delta, dict) else {})
    return None


def named(start: MessageStart) -> Json:
    """What every chunk names of its message."""
    return {name: value for name, value in (("id", start.id), ("model", start.model)) if value}


def patched_texts(delta: Json, made: Sequence[Event], events: Sequence[Event], ledger: Ledger) -> bool:
    """Write what texts have become, and notes, into a delta; whether a text was changed."""
    changed = False
    for kind in TEXTS:
        before, now = _spoken(made, kind), _spoken(events, kind)
        if before != now:
            changed = True
            _respeak(delta, kind, now, ledger, spoken=bool(before))
    before_, now_ = _notes(made), _notes(events)
    if before_ != now_:
        delta["annotations"] = now_
    return changed


def entries_in(delta: Mapping[str, Any]) -> list[Json]:
    """What a delta tells of calls, in whatever form."""
    legacy = delta.get("function_call")
    entries = delta.get("tool_calls") or ([{"function": legacy}] if isinstance(legacy, dict) else [])
    return [entry for entry in (entries if isinstance(entries, list) else [entries]) if isinstance(entry, dict)]


def entries_with(
    delta: Json,
    made: Sequence[Event],
    events: Sequence[Event],
    places: Mapping[int, int],
    kind_of: KindOf,
    *,
    mixed: bool = False,
) -> None:
    """Write what is left of calls into a delta, each under its number. `mixed`: a call in the deprecated words is told
    in the others, since another call was."""
    legacy, entries = delta.get("function_call"), entries_in(delta)
    before, now = _by_block(made), _by_block(events)
    if mixed and isinstance(legacy, dict) and "tool_calls" not in delta:
        delta.pop("function_call")
        new = [made_ for block, told in now.items() for made_ in _anew(told, places.get(block, 0), kind_of)]
    elif len(before) == len(entries):
        left = [(entry, block) for entry, block in zip(entries, before, strict=True) if block in now]
        new = [patched_entry(entry, before[block], now[block], places.get(block)) for entry, block in left]
    else:
        new = [made_ for block, told in now.items() for made_ in _anew(told, places.get(block, 0), kind_of)]
    if "function_call" in delta and isinstance(legacy, dict) and "tool_calls" not in delta:
        delta.pop("function_call")
        delta.update(*({"function_call": entry["function"]} for entry in new[:1]))
        return
    delta["tool_calls"] = new
    if not new:
        del delta["tool_calls"]


def patched_entry(entry: Json, before: Told, now: Told, place: int | None = None) -> Json:
    """An entry with what was changed in it."""
    word = "custom" if isinstance(entry.get("custom"), dict) else "function"
    body = dict(entry.get(word) or {})
    if now.start is not None and now.start != before.start:
        entry = {**entry, "id": now.start.id}
        body["name"] = now.start.name
    if now.text != before.text:
        body["input" if word == "custom" else "arguments"] = now.text
    index = {"index": place} if place is not None and ("index" in entry or place) else {}
    return {**entry, **index, word: body}


def declared(block: ToolUseBlock, facts: RequestFacts) -> ToolKind:
    """What the client declared the tool of a call as."""
    tools = facts.map.tools.values()
    return next((tool.kind for tool in tools if tool.name == block.name), block.kind)


def finish_word(reason: StopReason, *, older: bool = False) -> str:
    """The finish reason of a stop reason; `older`: in the deprecated words."""
    calls = b"function_call" if older else b"tool_calls"
    return FINISH.get(reason, calls if reason is StopReason.TOOL_USE else b"stop").decode()


def means(finish: str, reason: StopReason) -> bool:
    """Whether a finish, in any vendor's words, is what is written for a stop reason; a refusal that was said is a
    plain stop."""
    word = finish_word(STOP_REASONS.get(finish.strip().lower().partition(":")[0], StopReason.END_TURN))
    return word == finish_word(reason) or (reason is StopReason.REFUSAL and word == "stop")


def text_of(event: Event) -> str:
    """The text of a delta."""
    return str(getattr(event, "text", ""))


def _by_block(events: Sequence[Event]) -> dict[int, Told]:
    told: dict[int, Told] = {}
    for event in events:
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            told.setdefault(event.index, Told()).start = event.block
        elif isinstance(event, ArgumentsDelta):
            told.setdefault(event.index, Told()).text += event.text
    return told


def _anew(told: Told, place: int, kind_of: KindOf) -> list[Json]:
    call = NewCall(place)
    parts = [] if told.start is None else [NewCall(place, told.start.kind, kind_of(told.start)).begin(told.start)]
    parts += [said] if (said := call.say(told.text)) is not None else []
    return [entry for part in parts for entry in part["tool_calls"]]


def _spoken(events: Sequence[Event], kind: type[Event]) -> str:
    return "".join(text_of(event) for event in events if type(event) is kind)


def _notes(events: Sequence[Event]) -> list[Mapping[str, Any]]:
    notes = (event.annotation for event in events if isinstance(event, AnnotationDelta))
    return [note for note in notes if not scores_in(note)]


def _respeak(delta: Json, kind: type[Event], text: str, ledger: Ledger, *, spoken: bool) -> None:
    """Put a text where the delta has one of its kind, if it was `spoken` there: parts that begin or end it stay as they
    are, the first between them holds the rest. Twins of reasoning all say the same; a proof is of what it came with.
    """
    content = delta.get("content")
    if isinstance(content, list) and _in_parts(content, kind):
        delta["content"] = _reparted(content, kind, text, ledger)
        return
    if kind is TextDelta:
        delta["content"] = text
    elif kind is RefusalDelta:
        delta["refusal"] = text
    else:
        _rethink(delta, text, spoken=spoken)


def _in_parts(content: Sequence[Any], kind: type[Event]) -> bool:
    return any(_is_part(part, kind) for part in content)


def _is_part(part: Any, kind: type[Event]) -> bool:
    if isinstance(part, str):
        return kind is TextDelta
    return isinstance(part, dict) and part.get("type", "text") in PARTS[kind]


def _reparted(content: Sequence[Any], kind: type[Event], text: str, ledger: Ledger) -> list[Any]:
    places = [at for at, part in enumerate(content) if _is_part(part, kind)]
    said = {at: said_of(content[at]) for at in places}
    new = dict(zip(places, reparted([*said.values()], text), strict=True))
    parts: list[Any] = []
    unread = Unread("chat.patch", ledger, "nothing is left of its text")
    for at, part in enumerate(content):
        now = new.get(at)
        if now == said.get(at):
            parts.append(part)
        elif now is not None:
            parts.append(_holding(part, now) if isinstance(part, dict) else now)
        else:
            note_part(part, unread, "choices[].delta.content[].")
    return parts


def _holding(part: Mapping[str, Any], text: str) -> Json:
    """A part, or a detail, with another text."""
    member = next((name for name in HELD if part.get(name)), "text")
    inner = part.get(member)
    return {**part, member: text if not isinstance(inner, list) else [{"type": "text", "text": text}]}


def _rethink(delta: Json, text: str, *, spoken: bool) -> None:
    named = [name for name in REASONING if delta.get(name)]
    for name in named:
        inner = delta[name]
        delta[name] = _holding(inner, text) if isinstance(inner, dict) else text
    details = delta.get("reasoning_details")
    details = details if isinstance(details, list) else []
    said = "".join(map(_detailed, details))
    if said and text.startswith(said) and any("signature" in detail for detail in details if isinstance(detail, dict)):
        delta["reasoning_details"] = [*details, {"type": "reasoning.text", "text": text.removeprefix(said)}]
    elif said:
        delta["reasoning_details"] = new = []
        for detail in details:
            new.append(_holding(detail, text) if _detailed(detail) else detail)
            text = "" if _detailed(detail) else text
    elif not named:
        delta["content" if spoken and isinstance(delta.get("content"), str) else REASONING[0]] = text


def _detailed(detail: Any) -> str:
    return detailed_reasoning({"reasoning_details": [detail]})


def _number(index: Any) -> int | None:
    return index if isinstance(index, int) and not isinstance(index, bool) else None
