"""A Responses stream, of any server, as canonical events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.events import (
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    RefusalDelta,
    StopReason,
    StreamError,
    TextDelta,
)
from pipeline.failure import note_untold
from pipeline.ids import CallIds
from pipeline.jsontext import is_whole
from pipeline.logprobs import note_unread
from pipeline.normalizer import Normalizer
from pipeline.served import Serving
from pipeline.unread import Unread, says
from stages.dialects.responses.calls import CALL_KINDS, CallItem
from stages.dialects.responses.errors import error_in, failed, unfinished
from stages.dialects.responses.items import NAME, STAGE, ReasoningItem, Text, Writer
from stages.dialects.responses.output import Output
from stages.dialects.responses.texts import MessageItem, note_repeat
from stages.dialects.responses.usage import counted
from stages.dialects.responses.voice import Said, Voice
from stages.dialects.responses.within import NAMING, OF_EVENT, OF_WHOLE_CALL, note_citation, note_odd, note_part

DONE: Final = b"[DONE]"
"""No part of the dialect, but some servers send it behind the terminal."""

TERMINALS: dict[str, str] = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end a stream, and the status that each stands for where the response tells no end."""

FAILED: Final = frozenset({"failed", "cancelled"})

STOP_REASONS: dict[str, StopReason] = {
    "max_output_tokens": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "length": StopReason.MAX_TOKENS,
    "context_length_exceeded": StopReason.CONTEXT_WINDOW,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
    "content_filter": StopReason.REFUSAL,
}
"""Why a response is incomplete. A reason that is not here is a limit too, and is recorded."""

ECHOED: Final = frozenset(
    {
        *("instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "reasoning", "store", "text"),
        *("temperature", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "prompt_cache_retention"),
        *("frequency_penalty", "presence_penalty", "prompt_cache_key"),
    }
)
"""What a response repeats of its request, or of the defaults that this has, whether the client asked for it or not."""

READ: Final = ECHOED | {
    *("id", "object", "created_at", "model", "output", "output_text", "usage", "service_tier", "provider"),
    *("status", "error", "incomplete_details", "background"),
}
"""The members of a response that are read, or say nothing of the answer."""

OF_DETAILS: Final = frozenset({"reason"})
"""The members of what tells why a response is incomplete."""

TOLD: Final = frozenset(TERMINALS.values())
UNFINISHED: Final = frozenset({"queued", "in_progress"})


@define
class ResponsesNormalizer(Normalizer):
    """A Responses stream in canonical events: every item its own blocks, which may overlap.

    Events are told by the `type` in their JSON alone. What deltas have not said is taken from whatever tells it later
    (`*.done`, the item when it is done, the response at the end), once. The stream ends with a terminal event; EOF
    before one is a cut.
    """

    dialect: ClassVar[str] = NAME
    stage: ClassVar[str] = STAGE
    sentinel: ClassVar[bytes] = DONE
    openers: ClassVar[tuple[str, ...]] = ("response.output_item.added",)

    _started: bool = field(init=False, default=False)
    _writer: Writer = field(init=False)
    _output: Output = field(init=False)
    _key: tuple[Any, ...] | None = field(init=False, default=None)
    """What the last delta named; the next one mostly names the same."""
    _voice: Voice | Text | None = field(init=False, default=None)
    _said: Said | None = field(init=False, default=None)
    _serving: Serving = field(init=False)
    _unread: Unread = field(init=False)

    def __attrs_post_init__(self) -> None:
        ids = CallIds(STAGE, "call_id", self.ledger, self.limits, self.facts.calls)
        self._writer = Writer(self.ledger, self.limits, ids, self.facts.map)
        self._output = Output(self._writer)
        self._serving = Serving(self.limits, self.ledger, STAGE)
        self._unread = self._writer.unread

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return self._writer.held

    def whole(self, response: Mapping[str, Any]) -> Sequence[Event]:
        """The events of a response that came as a whole, by the same rules."""
        out: list[Event] = []
        self._alone(response, out)
        return out

    def _goes_on(self, event: Any, frame: Frame, out: list[Event]) -> bool:
        """More of the text that the last delta was of."""
        voice, said = self._voice, self._said
        if self._key is None or voice is None or said is None:
            return False
        try:
            text = event["delta"]
            if _key(event) != self._key or event.get("logprobs"):
                return False
            if not text or not (text.isascii() or is_whole(text)) or voice.halves.odd:
                return False
        except (LookupError, TypeError, AttributeError):
            return False
        said.add(text)
        out.append(voice.make(voice.index, text))
        return True

    def _error_in(self, payload: Any, name: bytes) -> StreamError | None:
        return error_in(payload, name)

    def _read(self, event: Any, frame: Frame, out: list[Event]) -> None:
        self._key = None
        kind = _string(event, "type") if isinstance(event, dict) else ""
        if kind in NOTED:
            self._note(event)
        if (step := _STEPS.get(kind)) is not None:
            self._begin({}, out)
            step(self, event, out)
        elif kind in LIFE:
            self._begin(_object(event.get("response")), out)
            self._serving.hear(_object(event.get("response")), "created_at")
        elif kind in TERMINALS:
            self._terminal(_object(event.get("response")), TERMINALS[kind], out)
        elif kind in PINGS:
            out.append(Ping())
        elif (error := error_in(event, frame.name)) is not None:
            note_untold(event, error, STAGE, self.ledger, answered=True, apart=NAMING)
            self._fail(error, out)
        elif isinstance(event, dict) and event.get("object") == "response":
            self._alone(event, out)
        elif not kind:
            self.ledger.record(STAGE, "frame", "ignored", "JSON that is no event")

    def _note(self, event: Mapping[str, Any]) -> None:
        """Record what of an event is not read, but for an item, which tells it itself."""
        self._unread.note(event, OF_WHOLE_CALL.get(event["type"], OF_EVENT), "event.")
        note_unread(event.get("logprobs"), self._unread, "logprobs")
        note_part(event.get("part"), self._unread)
        note_citation(event.get("annotation"), self._unread)
        if self._started:
            self._unread.note(event.get("response"), READ)

    def _begin(self, response: Mapping[str, Any], out: list[Event]) -> None:
        if self._started:
            return
        self._started = True
        self._serving.hear(response, "created_at")
        self._unread.note(response, READ)
        name, model = response.get("id"), response.get("model")
        out.append(
            MessageStart(
                name if isinstance(name, str) else "",
                model if isinstance(model, str) and model else self.facts.model,
                counted(response.get("usage"), self.ledger, self._unread) or self.facts.usage,
                self._serving.begun(),
            )
        )

    def _remember(self, event: Mapping[str, Any], voice: Voice | Text, said: Said | None) -> None:
        """What this delta was of, if what comes next for it needs no thought."""
        if said is not None:
            self._key, self._voice, self._said = _key(event), voice, said

    def _announced(self, event: Mapping[str, Any], out: list[Event]) -> None:
        if isinstance(item := event.get("item"), dict):
            known = self._output.told(event, item, announced=True)
            if isinstance(known, CallItem):
                known.kind = CALL_KINDS[item["type"]]
                known.announce(item, out)
            known.foretold(item)

    def _part_begun(self, event: Mapping[str, Any], out: list[Event]) -> None:
        part = _object(event.get("part"))
        if part.get("type") == REASONING_PART or event["type"] != CONTENT_PART:
            if text := _string(part, "text"):
                self._output.about(ReasoningItem, event).part_begun(_member(event), _part(event), text)
        elif part.get("text") or part.get("refusal"):
            self._output.about(MessageItem, event).part_begun(_part(event), part)

    def _item_done(self, event: Mapping[str, Any], out: list[Event]) -> None:
        if isinstance(item := event.get("item"), dict):
            known = self._output.told(event, item, announced=False)
            known.snapshot(item, out)
            known.done(item, out)
        else:
            note_odd(item, self._unread, "output[]")

    def _text(self, event: Mapping[str, Any], out: list[Event]) -> None:
        item = self._output.about(MessageItem, event)
        kind = RefusalDelta if event["type"] == REFUSAL_DELTA else TextDelta
        known = item.add(kind, _part(event), self._delta(event), out)
        if scores := event.get("logprobs"):
            item.score(_part(event), scores, out)
        if known is not None:
            self._remember(event, *known)

    def _part_done(self, event: Mapping[str, Any], out: list[Event]) -> None:
        part = event.get("part", event)
        if not isinstance(part, dict):
            return
        if part.get("type") == REASONING_PART:
            item = self._output.about(ReasoningItem, event)
            item.part_done("content", _part(event), _string(part, "text"), out)
        else:
            self._output.about(MessageItem, event).part_done(_part(event), part, out)

    def _annotation(self, event: Mapping[str, Any], out: list[Event]) -> None:
        if isinstance(note := event.get("annotation"), dict):
            self._output.about(MessageItem, event).annotate(_part(event), note, out)

    def _reasoning(self, event: Mapping[str, Any], out: list[Event]) -> None:
        item = self._output.about(ReasoningItem, event)
        self._remember(event, item.voice, item.add(_member(event), _part(event), self._delta(event), out))

    def _reasoning_done(self, event: Mapping[str, Any], out: list[Event]) -> None:
        part = event.get("part", event)
        item = self._output.about(ReasoningItem, event)
        item.part_done(_member(event), _part(event), _string(_object(part), "text"), out)

    def _arguments(self, event: Mapping[str, Any], out: list[Event]) -> None:
        item = self._call(event)
        self._remember(event, item.voice, item.add(self._delta(event), out))

    def _delta(self, event: Mapping[str, Any]) -> str:
        if not isinstance(event.get("delta"), str):
            self._writer.lose("delta", "no text")
        return _string(event, "delta")

    def _arguments_done(self, event: Mapping[str, Any], out: list[Event]) -> None:
        self._call(event).arguments_done(event, out)

    def _call(self, event: Mapping[str, Any]) -> CallItem:
        item = self._output.about(CallItem, event)
        if not item.announcement and event["type"].startswith(CUSTOM_EVENTS):
            item.kind = CALL_KINDS["custom_tool_call"]
        return item

    def _alone(self, response: Mapping[str, Any], out: list[Event]) -> None:
        """A response with no event around it: nothing else says whether it has ended.

        One that was to run in the background is what was asked for: an answer that comes later, elsewhere.
        """
        status = _string(response, "status")
        unfinished = status in UNFINISHED and response.get("background") is not True
        self._terminal(response, status if unfinished else "completed", out)

    def _terminal(self, response: Mapping[str, Any], stands_for: str, out: list[Event]) -> None:
        """The end: what the response tells and no event told, and how it ended."""
        late = self._started
        self._begin(response, out)
        stated = _string(response, "status")
        status = stated if stated in TOLD else stands_for
        output = response.get("output")
        if isinstance(output, list):
            note_odd([one for one in output if not isinstance(one, dict)], self._unread, "output[]")
        else:
            note_odd(output, self._unread, "output")
        self._unread.note(response.get("incomplete_details"), OF_DETAILS, "incomplete_details.")
        for item, told in self._output.match(output if isinstance(output, list) else ()):
            item.snapshot(told, out)
            if status not in UNFINISHED or told.get("status") == "completed":
                item.done(told, out)
        note_repeat(response.get("output_text"), self._output.items, self._writer)
        self._serving.hear(response, "created_at")
        self._unread.note(response, READ)
        failing = status in FAILED or says(response.get("error"))
        if failing or status in UNFINISHED:
            told_late = ("usage",) if late and says(response.get("usage")) else ()
            for name in (*told_late, *self._serving.news()):
                self._writer.lose(name, "the answer failed")
            error = failed(response) if failing else unfinished(status)
            note_untold(response, error, STAGE, self.ledger, answered=False)
            self._fail(error, out)
            return
        if stated in UNFINISHED:
            self.ledger.record(STAGE, "status", "translated", f"an answer that is {stated} ends the turn")
        if status != "incomplete":
            self._output.check()
        for item in self._output.items:
            item.settle(out, complete=status != "incomplete")
        counts = counted(response.get("usage"), self.ledger, self._unread)
        out.append(MessageDelta(self._stop_reason(response, status), usage=counts, served=self._serving.ended()))
        out.append(MessageStop())
        self.ended = True

    def _stop_reason(self, response: Mapping[str, Any], status: str) -> StopReason:
        if status == "incomplete":
            reason = STOP_REASONS.get(str(_object(response.get("incomplete_details")).get("reason")))
            if reason is None:
                self.ledger.record(STAGE, "incomplete_details.reason", "translated", "an unknown one is a limit")
            return reason or StopReason.MAX_TOKENS
        if self._writer.called:
            return StopReason.TOOL_USE
        return StopReason.REFUSAL if self._writer.refused else StopReason.END_TURN

    def _fail(self, error: StreamError, out: list[Event]) -> None:
        self._output.flush(out)
        out.append(error)
        self.ended = True


def _key(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """All that a delta says of what it is of; with it, how many members it has, since a new one is to be noted."""
    get = event.get
    return (len(event), get("type"), get("output_index"), get("item_id"), get("content_index"), get("summary_index"))


def _part(event: Mapping[str, Any]) -> int | None:
    """The part that an event is of, or None if it names none."""
    part = event.get("summary_index" if event["type"].startswith(SUMMARY_EVENTS) else "content_index")
    return part if isinstance(part, int) and not isinstance(part, bool) else None


def _member(event: Mapping[str, Any]) -> str:
    return "summary" if event["type"].startswith(SUMMARY_EVENTS) else "content"


def _string(said: Mapping[str, Any], member: str) -> str:
    value = said.get(member)
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


LIFE: Final = frozenset({"response.created", "response.queued", "response.in_progress"})
PINGS: Final = frozenset({"keepalive", "ping"})
REFUSAL_DELTA: Final = "response.refusal.delta"
SUMMARY_EVENTS: Final = "response.reasoning_summary_"
CUSTOM_EVENTS: Final = "response.custom_tool_call_input."
REASONING_PART: Final = "reasoning_text"
CONTENT_PART: Final = "response.content_part.added"
BEGINNINGS: Final = (CONTENT_PART, "response.reasoning_summary_part.added", "response.reasoning_part.added")

_STEPS: dict[str, Callable[[ResponsesNormalizer, Mapping[str, Any], list[Event]], None]] = {
    "response.output_item.added": ResponsesNormalizer._announced,
    "response.output_item.done": ResponsesNormalizer._item_done,
    **dict.fromkeys(BEGINNINGS, ResponsesNormalizer._part_begun),
    "response.output_text.delta": ResponsesNormalizer._text,
    REFUSAL_DELTA: ResponsesNormalizer._text,
    "response.output_text.done": ResponsesNormalizer._part_done,
    "response.refusal.done": ResponsesNormalizer._part_done,
    "response.content_part.done": ResponsesNormalizer._part_done,
    "response.output_text.annotation.added": ResponsesNormalizer._annotation,
    "response.reasoning_summary_text.delta": ResponsesNormalizer._reasoning,
    "response.reasoning_text.delta": ResponsesNormalizer._reasoning,
    "response.reasoning_summary_text.done": ResponsesNormalizer._reasoning_done,
    "response.reasoning_text.done": ResponsesNormalizer._reasoning_done,
    "response.reasoning_summary_part.done": ResponsesNormalizer._reasoning_done,
    "response.reasoning_part.done": ResponsesNormalizer._reasoning_done,
    "response.function_call_arguments.delta": ResponsesNormalizer._arguments,
    "response.custom_tool_call_input.delta": ResponsesNormalizer._arguments,
    "response.function_call_arguments.done": ResponsesNormalizer._arguments_done,
    "response.custom_tool_call_input.done": ResponsesNormalizer._arguments_done,
}

NOTED: Final = _STEPS.keys() | TERMINALS.keys() | LIFE
"""The events of which it is noted what is not read."""
