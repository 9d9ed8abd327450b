"""A Chat stream, of any vendor, as canonical events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Final

from attrs import define, field

from pipeline.errors import ErrorKind, PipelineError
from pipeline.events import (
    CUTTING,
    AnnotationDelta,
    Block,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
)
from pipeline.failure import note_untold
from pipeline.halves import Halves
from pipeline.jsontext import is_whole
from pipeline.logprobs import note_of
from pipeline.normalizer import Normalizer
from pipeline.served import Serving
from pipeline.template import Template
from pipeline.unread import Unread, brings
from stages.dialects.chat.calls import Call, Calls
from stages.dialects.chat.content import (
    APART,
    OF_GROQ,
    PLAIN,
    SERVING,
    SPELLINGS,
    STANDARD,
    Repeats,
    detailed_reasoning,
    details_of,
    items_of,
    pieces_of,
    reasoning_of,
    said_alone,
    text_alone,
    word_of,
)
from stages.dialects.chat.errors import error_beside, error_in, failed_finish, may_fail, note_late, note_unfinished
from stages.dialects.chat.fragments import LEGACY, Fragment, exact_entries, fragments_of
from stages.dialects.chat.stops import UNFINISHED, finish_of, sequence_of, stop_of
from stages.dialects.chat.usage import Counting
from stages.dialects.chat.within import FIRST_CHOICE, note_choice, note_delta, note_scores, note_second, note_tokenless

DONE: Final = b"[DONE]"
NAME: Final = "chat"


@define
class ChatNormalizer(Normalizer):
    """A Chat stream in canonical events: one text and one reasoning block, left open to the end, and a block a call.

    It reads the union of what vendors send, member by member: one odd member never drops a chunk. The finish ends the
    calls; the message ends with `[DONE]`, or with EOF behind a finish. EOF before that is a cut. Only the first choice
    is read.
    """

    dialect: ClassVar[str] = NAME
    stage: ClassVar[str] = "ChatNormalizer"
    sentinel: ClassVar[bytes] = DONE
    terminal: ClassVar[str] = "finish"

    whole: bool = field(default=False, kw_only=True)
    """The stream is one whole answer, whose message is all that it says."""
    _started: bool = field(init=False, default=False)
    _indexes: Iterator[int] = field(init=False, factory=count)
    _text: int = field(init=False, default=-1)
    _reasoning: int = field(init=False, default=-1)
    _refusal: int = field(init=False, default=-1)
    _made: Calls | None = field(init=False, default=None)
    _halves: Halves = field(init=False, factory=Halves)
    _template: Template = field(init=False, factory=Template)
    """The frame before, if it was nothing but more of a block."""
    _say: Callable[[Any, str], Event] = field(init=False, default=TextDelta)
    """What makes the event of what a frame like it says, and the block or call that it says more of."""
    _of: int | Call = field(init=False, default=-1)
    _repeats: Repeats = field(init=False, factory=Repeats)
    _stop: StopReason | None = field(init=False, default=None)
    _stop_sequence: str | None = field(init=False, default=None)
    _counting: Counting = field(init=False)
    _serving: Serving = field(init=False)
    _unread: Unread = field(init=False)
    _known: frozenset[str] = field(init=False, default=PLAIN)
    """Members of a chunk that bring no news."""

    def __attrs_post_init__(self) -> None:
        self._serving, self._unread = Serving(self.limits, self.ledger, self.stage), Unread(self.stage, self.ledger)
        self._counting = Counting(self.ledger, self._unread)

    @property
    def _calls(self) -> Calls:
        """The calls: made when the first comes, because most streams have none."""
        if self._made is None:
            self._made = Calls(self.ledger, self.limits, self._indexes, self.facts.map, self.facts.calls)
        return self._made

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return self._halves.held + (0 if self._made is None else self._made.held)

    def receive(self, items: Sequence[Frame]) -> Sequence[Event]:
        """The base's, but a frame like the one before costs no call of its own: nearly all are."""
        out: list[Event] = []
        template = self._template
        try:
            for frame in items:
                if self.ended:
                    break
                if (text := template.text(frame.data)) and not frame.name:
                    out.append(self._say(self._of, text))
                else:
                    template.forget()
                    self._frame(frame, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _goes_on(self, chunk: Any, frame: Frame, out: list[Event]) -> bool:
        """Say what is plainly more of what has begun, and learn the frame, for those that are like it."""
        name, value = said_alone(chunk)
        known = self._known
        if not name or frame.name or brings(chunk, known) or (known is not PLAIN and self._serving.differs(chunk)):
            return False
        if not self._is_more(name, value):
            return False
        out.append(self._say(self._of, text := text_alone(chunk)))
        self._template.learn(frame.data, text, text_alone)
        return True

    def _is_more(self, name: str, value: Any) -> bool:
        """Whether the member that is all a frame brings is plainly more of what has begun: `_say` and `_of` tell it."""
        if name == "tool_calls":
            call = self._calls.going_on(value)
            self._say, self._of = Call.more, -1 if call is None else call
        elif name == "content" and self._is_plain(value):
            self._say, self._of = TextDelta, self._text
        elif name in SPELLINGS and self._is_plain(value):
            self._say, self._of = ReasoningDelta, self._reasoning
        else:
            return False
        return self._of != -1

    def _is_plain(self, text: Any) -> bool:
        """Whether this can be passed on as it is: text, with no half of a character, now or before."""
        return type(text) is str and (text.isascii() or is_whole(text)) and not self._halves.odd

    def _error_in(self, payload: Any, name: bytes) -> StreamError | None:
        return error_in(payload, name)

    def _read(self, chunk: Any, frame: Frame, out: list[Event]) -> None:
        if type(chunk) is not dict or not chunk.get("choices") or frame.name or may_fail(chunk):
            if (error := error_in(chunk, frame.name)) is not None:
                self._failed(chunk, frame, error, out)
                return
            if not isinstance(chunk, dict):
                self.ledger.record("ChatNormalizer", "frame", "ignored", "JSON that is no object")
                return
            if isinstance(beside := chunk.get("x_groq"), dict):
                self._counting.hear(beside.get("usage"))
                self._unread.note(beside, OF_GROQ, "x_groq.")
        self._counting.hear(chunk.get("usage"))
        self._begin(chunk, out)
        self._choices(chunk, frame, out)

    def _failed(self, chunk: Any, frame: Frame, error: StreamError, out: list[Event]) -> None:
        """A frame tells an error, and maybe more beside it."""
        beside = chunk if isinstance(chunk, dict) else {}
        if beside.get("choices"):
            self._begin(chunk, out)
            self._choices(chunk, frame, out, failing=True)
        self._counting.hear(beside.get("usage"))
        note_untold(chunk, error, self.stage, self.ledger, answered=not beside.get("choices"), apart=PLAIN)
        self._fail(error, out)

    def _begin(self, chunk: Mapping[str, Any], out: list[Event]) -> None:
        """The message begins at the first chunk that says something of it: Azure's filter results do not."""
        self._serving.hear(chunk, "created")
        if self._started:
            return
        names = chunk.get("id"), chunk.get("model")
        if any(names) or chunk.get("choices"):
            self._started = True
            out.append(self._start(*(word_of(name, self.ledger, self.limits) for name in names)))

    def _start(self, name: str, model: str) -> MessageStart:
        usage = self._counting.begun() or self.facts.usage
        return MessageStart(name, model or self.facts.model, usage, self._serving.begun())

    def _choices(self, chunk: Mapping[str, Any], frame: Frame, out: list[Event], failing: bool = False) -> None:
        choices, silent = chunk.get("choices"), self._text == self._reasoning == self._refusal == -1 and not self._made
        if choices and not isinstance(choices, list):
            self.ledger.record("ChatNormalizer", "choices", "ignored", "no list")
        for at, choice in enumerate(choices if isinstance(choices, list) else ()):
            if self.ended:
                break
            if not isinstance(choice, dict):
                self.ledger.record("ChatNormalizer", "choices[]", "ignored", "no object")
            elif choice.get("index") not in FIRST_CHOICE:
                self.ledger.record("ChatNormalizer", "choices[]", "dropped", "only the first choice is read")
                if not (out and isinstance(out[-1], Carry) and out[-1].frame is frame):
                    out.append(Carry(NAME, frame))  # whatever becomes of the first, the others go back
            else:
                self._choice(choice, at, silent, frame, out)
                reason = finish_of(choice, self.ledger)
                error = None if failing else error_beside(choice) or failed_finish(reason)
                if failing or error is not None:
                    note_unfinished(reason, self.ledger)
                elif reason:
                    self._finish(reason, out)
                if error is not None:
                    note_untold(choice, error, self.stage, self.ledger, answered=False)
                    self._fail(error, out)
        if not chunk.keys() <= self._known:
            self._unread.note(chunk, PLAIN, apart=APART)
            self._unread.learn(filter(chunk.get, SERVING), PLAIN)
            self._known = self._unread.known(PLAIN)

    def _choice(self, choice: Mapping[str, Any], at: int, silent: bool, frame: Frame, out: list[Event]) -> None:
        due, other = ("message", "delta") if self.whole else ("delta", "message")
        if not (delta := choice.get(due)) and silent:
            delta = choice.get(other)  # servers answer in the form that was not asked for
        if isinstance(delta, dict):
            self._delta(delta, at, frame, out)
            if scores := choice.get("logprobs"):
                self._score(scores, delta, out)
        elif delta:
            self.ledger.record("ChatNormalizer", "choices[].delta", "ignored", "no object")
        if choice.keys() != STANDARD:
            self._beside(choice)

    def _score(self, scores: Any, delta: Mapping[str, Any], out: list[Event]) -> None:
        """How likely its tokens were: a note on the text, where the delta has some, or the tokens make none yet."""
        told = scores if isinstance(scores, dict) else {}
        note_scores(told, self._unread)
        note = note_of(told.get("content")) if isinstance(delta.get("content"), str | list) else None
        if note is not None and self._text >= 0:
            out.append(AnnotationDelta(self._text, note))
            note_tokenless(note, told["content"], self._unread)
        elif told.get("content") or not told:
            self.ledger.record("ChatNormalizer", "choices[].logprobs", "dropped", "no text that they could belong to")

    def _beside(self, choice: Mapping[str, Any]) -> None:
        """What stands beside the delta."""
        self._counting.hear(choice.get("usage"))
        self._stop_sequence = sequence_of(choice) or self._stop_sequence
        note_choice(choice, self._unread, whole=self.whole)

    def _delta(self, delta: Mapping[str, Any], at: int, frame: Frame, out: list[Event]) -> None:
        """One delta in the order that holds within it: reasoning, text, refusal, calls."""
        pieces = pieces_of(delta, self.ledger, whole=self.whole)
        details = details_of(delta)
        if not details and (items := items_of(delta)):
            self._write_items(items, out)
        elif not any(kind == "reasoning" for kind, _ in (*details, *pieces)):
            self._write_reasoning(reasoning_of(delta) or self._repeats.new(detailed_reasoning(delta)), out)
        else:
            note_second(reasoning_of(delta), (*details, *pieces), self._unread)
        for kind, text in (*details, *pieces):
            _WRITE[kind](self, text, out)
        if isinstance(refusal := delta.get("refusal"), str):
            self._write_refusal(refusal, out)
        elif refusal:
            self.ledger.record("ChatNormalizer", "refusal", "ignored", "no text")
        if entries := delta.get("tool_calls"):
            self._tool_calls(entries if isinstance(entries, list) else [entries], at, frame, out)
        elif isinstance(legacy := delta.get("function_call"), dict):
            self._calls.add(Fragment.of({"function": legacy}, LEGACY), out)
        if isinstance(notes := delta.get("annotations"), list):
            self._annotations(notes, out)
        if isinstance(sequence := delta.get("stop_sequence"), str) and sequence:
            self._stop_sequence = sequence
        note_delta(delta, self._unread)

    def _write_text(self, text: str, out: list[Event]) -> None:
        if text := self._halves.joined("text", text):
            if self._text < 0:
                self._text = self._open(TextBlock(), out)
            out.append(TextDelta(self._text, text))

    def _write_reasoning(self, text: str, out: list[Event]) -> None:
        if text := self._halves.joined("reasoning", text):
            if self._reasoning < 0:
                self._reasoning = self._open(ReasoningBlock(), out)
            out.append(ReasoningDelta(self._reasoning, text))

    def _write_items(self, items: Sequence[str], out: list[Event]) -> None:
        """Reasoning of several items, each in a block of its own; the first goes on with what was said last."""
        for at, text in enumerate(items):
            if at and self._reasoning >= 0:
                out.append(BlockStop(self._reasoning))
                self._reasoning = -1
            self._write_reasoning(text, out)

    def _write_signature(self, proof: str, out: list[Event]) -> None:
        """The proof of the reasoning said last, which is whole now."""
        if self._reasoning < 0:
            self._reasoning = self._open(ReasoningBlock(splittable=False), out)
        out += (SignatureDelta(self._reasoning, proof), BlockStop(self._reasoning))
        self._reasoning = -1

    def _write_redacted(self, blob: str, out: list[Event]) -> None:
        out.append(BlockStop(self._open(RedactedReasoningBlock(blob), out)))

    def _write_refusal(self, text: str, out: list[Event]) -> None:
        if text := self._halves.joined("refusal", text):
            if self._refusal < 0:
                self._refusal = self._open(TextBlock(), out)
            out.append(RefusalDelta(self._refusal, text))

    def _open(self, block: Block, out: list[Event]) -> int:
        index = next(self._indexes)
        out.append(BlockStart(index, block))
        return index

    def _tool_calls(self, entries: Sequence[Any], at: int, frame: Frame, out: list[Event]) -> None:
        fragments = fragments_of(entries, self.ledger)
        if any(fragment.value for fragment in fragments):
            fragments = fragments_of(exact_entries(frame.data, at) or entries, self.ledger)
        for fragment in fragments:
            self._calls.add(fragment, out)

    def _annotations(self, notes: list[Any], out: list[Event]) -> None:
        for note in notes:
            if isinstance(note, dict) and self._text >= 0:
                out.append(AnnotationDelta(self._text, note))
            else:
                self.ledger.record("ChatNormalizer", "annotations[]", "dropped", "no text that it could belong to")

    def _finish(self, reason: str, out: list[Event]) -> None:
        stop = stop_of(reason, self.ledger)
        self._stop = stop if self._stop in (None, StopReason.END_TURN) else self._stop
        self._flush(out)
        self._calls.end(out, complete=self._stop not in CUTTING)

    def _done(self, out: list[Event]) -> None:
        if self._stop is None:
            self.ledger.record("ChatNormalizer", "finish_reason", "supplied", UNFINISHED[self.whole])
        self._end(out)

    def _eof(self, cause: StreamError, out: list[Event]) -> None:
        """EOF behind the finish is the end."""
        if self._stop is not None and cause.kind is ErrorKind.CUT:
            self._end(out)
        else:
            self._fail(cause, out)

    def _end(self, out: list[Event]) -> None:
        stop = self._stop or StopReason.END_TURN
        if not self._started:
            out.append(self._start("", ""))
        self._flush(out)
        self._calls.end(out, complete=stop not in CUTTING)
        out.extend(BlockStop(index) for index in (self._reasoning, self._text, self._refusal) if index >= 0)
        if stop is StopReason.END_TURN and self._stop_sequence is not None:
            stop = StopReason.STOP_SEQUENCE
        elif self._refusal >= 0 and (stop is StopReason.END_TURN or (stop is StopReason.TOOL_USE and not self._calls)):
            stop = StopReason.REFUSAL
        sequence = self._stop_sequence if stop is StopReason.STOP_SEQUENCE else None
        out += (MessageDelta(stop, sequence, self._counting.usage, self._serving.ended()), MessageStop())
        self.ended = True

    def _flush(self, out: list[Event]) -> None:
        """Halves of characters whose other half never came."""
        for kind, text in self._halves.rest():
            _WRITE[kind](self, text, out)

    def _fail(self, error: StreamError, out: list[Event]) -> None:
        self._flush(out)
        self._calls.cut()
        note_late((*self._counting.news(), *self._serving.news()), self.ledger)
        out.append(error)
        self.ended = True


_WRITE: dict[str, Callable[[ChatNormalizer, str, list[Event]], None]] = {
    "text": ChatNormalizer._write_text,
    "reasoning": ChatNormalizer._write_reasoning,
    "refusal": ChatNormalizer._write_refusal,
    "signature": ChatNormalizer._write_signature,
    "redacted": ChatNormalizer._write_redacted,
}
