"""Tool calls and reasoning that a model wrote as text become blocks, while they are still arriving."""

from collections.abc import Callable, Collection, Iterable, Sequence

from attrs import define, evolve, field

from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    Event,
    MessageDelta,
    ReasoningDelta,
    StopReason,
    StreamError,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.ids import CallIds
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.route import DEFAULT_ANSWERS, AnswerOptions
from pipeline.stage import Stage
from stages.scrub import gate
from stages.scrub.calls import input_of
from stages.scrub.families import FAMILIES
from stages.scrub.gate import Fate, Progress
from stages.scrub.grammar import Call, Family, Lost, Tools
from stages.scrub.inplace import PlacedWriter
from stages.scrub.scanner import Kind, Piece, Scanner
from stages.scrub.tape import Tape
from stages.scrub.writer import Writer

NAME = "TagScrubber"
BESIDE = frozenset({ArgumentsDelta, ReasoningDelta})
"""What most that is no text is."""


@define
class TagScrubber(Stage[Event, Event]):
    """Calls and reasoning that were written as text are blocks of their own, and their markup is not shown.

    Its state belongs to the visible text, not to a block: what comes between two parts of markup waits behind it. What
    becomes of calls, the gate decides; where it cannot yet, they and all behind them wait, up to `limits.held_bytes`.
    It opens no block while another of its own is open; given one block at a time, it gives one at a time.
    """

    options: AnswerOptions = field(default=DEFAULT_ANSWERS, kw_only=True)
    tools: Tools = field(factory=dict, kw_only=True)
    """The tools that the model may call."""
    freeform: Collection[str] = field(default=(), kw_only=True)
    """Those of them whose input is free text; as text, a model writes it as arguments that are one string."""
    families: tuple[Family, ...] = field(default=FAMILIES, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    outcome: Outcome = field(factory=Outcome, kw_only=True)
    in_place: bool = field(default=False, kw_only=True)
    """What holds no markup passes as it came, event by event: blocks overlap, no delta is split."""
    ended: bool = field(init=False, default=False)
    _scanner: Scanner = field(init=False)
    _writer: Writer | PlacedWriter = field(init=False)
    _ids: CallIds = field(init=False)
    _tape: Tape | None = field(init=False, default=None)
    """What came and was not passed on; mostly nothing."""
    _from: int = field(init=False, default=0)
    _to: int = field(init=False, default=0)
    """Where in the visible text its pieces begin and end."""
    _answered: int = field(init=False, default=0)
    """Up to where the model is known to have gone on from reasoning, by text or by a call in the upstream's form."""
    _structured: bool = field(init=False, default=False)
    _recovered: bool = field(init=False, default=False)
    _flow: int = field(init=False, default=-1)
    """Of the block in which plain text is passed on as it comes; -1: it is not."""
    _passes: Callable[[str], bool] = field(init=False)
    _progress: Progress = field(init=False, default=Progress.OPEN)
    _failed: bool = field(init=False, default=False)
    """The upstream told of its failure: what comes behind is the upstream's own affair."""

    def __attrs_post_init__(self) -> None:
        options = self.options
        families = gate.read(self.families, calls=bool(self.tools) and options.recover != "off", weak=options.weak)
        self._scanner = Scanner(families, tools=self.tools, reasoning_open=options.reasoning_open, limits=self.limits)
        self._passes = self._scanner.passes
        self._writer = PlacedWriter(self.ledger) if self.in_place else Writer(self.ledger)
        self._ids = CallIds(NAME, "tool use", self.ledger, self.limits)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        if self.ended:
            return 0
        return self._scanner.held + self._writer.held + (0 if self._tape is None else self._tape.size)

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        if len(items) == 1:
            event = items[0]
            if type(event) is TextDelta and event.index == self._flow and self._passes(event.text):
                return items
            if type(event) in BESIDE and event.index == self._writer.same and self._tape is None:  # type: ignore[attr-defined]  # it has one
                return items
        if self._failed:
            return items
        out: list[Event] = []
        writer, anywhere = self._writer, not self.in_place
        for event in items:
            if self.ended:
                break
            flow = self._flow
            if (
                type(event) is TextDelta
                and (event.index == flow or (anywhere and flow >= 0))
                and self._passes(event.text)
            ):
                out.append(event if event.index == self._flow else TextDelta(self._flow, event.text))
                continue
            if type(event) in BESIDE and event.index == writer.same and self._tape is None:  # type: ignore[attr-defined]  # it has one
                out.append(event)
                continue
            if isinstance(event, TextDelta) and (event.text or not self.in_place):
                if event.text:
                    self._waiting().events.append(event)
                    self._told(self._scanner.feed(event.text), out)
            elif isinstance(event, MessageDelta):
                self._over(Progress.OVER, out)
                writer.event(self._fitting(event), out)
            elif isinstance(event, StreamError):
                self._over(Progress.CUT, out)
                writer.event(event, out)
                self.ended, self._failed = not self.in_place, self.in_place
            else:
                self._beside(event, out)
            self._flow = writer.index if writer.flowing and self._scanner.quiet and self._tape is None else -1
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if not self.ended:
            if not self._failed:
                self._over(Progress.CUT, out)
                self._writer.settle(out)
            self.ended = True
            if cause is not None:
                out.append(cause)
        return out

    def _beside(self, event: Event, out: list[Event]) -> None:
        """An event that is no text: it waits behind what is held back."""
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            self._ids.unique(event.block.id)
            self._called(out)
        if self._tape is not None:
            self._tape.events.append(event)
        else:
            self._writer.event(event, out)

    def _waiting(self) -> Tape:
        """The tape."""
        self._tape = self._tape or Tape()
        return self._tape

    def _called(self, out: list[Event]) -> None:
        """The model made a call that is no text."""
        first, self._structured = not self._structured, True
        self._answered = self._to
        pieces: list[Piece] = []
        if first and self._gate() is Fate.TEXT:  # markup of calls is text from now on
            pieces = self._scanner.reduce(gate.read(self.families, calls=False))
        self._told(pieces, out)

    def _told(self, pieces: list[Piece], out: list[Event]) -> None:
        """More of the text is certain."""
        for piece in pieces:
            self._waiting().tell(piece)
            self._to += len(piece.raw)
            if piece.kind is Kind.TEXT and not piece.raw.isspace():
                self._answered = self._to
        tape = self._tape
        if tape is None:
            return
        self._drain(tape, out)
        if tape.size > self.limits.held_bytes and self._progress is Progress.OPEN:
            self._progress = Progress.OVER
            self._drain(tape, out)
        if not tape.events:
            self._tape = None

    def _over(self, progress: Progress, out: list[Event]) -> None:
        """The text ends."""
        self._progress, self._flow = progress, -1
        self._told(self._scanner.close(), out)

    def _drain(self, tape: Tape, out: list[Event]) -> None:
        """Pass on what is decided."""
        while tape.pieces:
            piece = tape.pieces[0]
            fate = self._fate(piece)
            if fate is Fate.UNDECIDED:
                return
            left = 0
            if fate is Fate.TEXT:
                run = self._run(tape)
                length = sum(len(one.raw) for one in run)
                left = self._split(tape, length) if self.in_place else 0
                self._put_back(tape, run, left)
                self._show(tape.take(length - left, shown=True), _is_thought(piece), out)
            else:
                self._decided(tape)
                self._cut(piece, fate, tape.take(len(piece.raw)), out)
            while tape.events and not tape.speaks:
                self._writer.event(tape.events.popleft(), out)
            if left:
                return

    def _run(self, tape: Tape) -> list[Piece]:
        """The first piece, and those that are shown with it, so that a delta stays one; they are decided."""
        run = [self._decided(tape)]
        while tape.pieces and _goes_with(tape.pieces[0], run[0], strays=self.in_place):
            if self._fate(tape.pieces[0]) is not Fate.TEXT:
                break
            run.append(self._decided(tape))
        return run

    def _split(self, tape: Tape, length: int) -> int:
        """How many of so many characters are of a delta of which the rest is not decided."""
        if tape.pieces and self._fate(tape.pieces[0]) is not Fate.UNDECIDED:
            return 0
        return length - tape.whole(length)

    def _put_back(self, tape: Tape, run: list[Piece], count: int) -> None:
        """The last characters of a run are not decided after all."""
        while count > 0:
            piece = run.pop()
            piece = evolve(piece, raw=piece.raw[-count:])
            tape.put_back(piece)
            self._from -= len(piece.raw)
            count -= len(piece.raw)

    def _fate(self, piece: Piece) -> Fate:
        if piece.kind in (Kind.TEXT, Kind.THOUGHT):
            return Fate.TEXT
        if piece.kind is Kind.TAG:
            return Fate.HIDDEN
        if piece.kind is Kind.STRAY:
            hidden = self._writer.behind_markup or self.options.residue == "hide"
            return Fate.HIDDEN if hidden else Fate.TEXT
        if piece.kind is Kind.UNFINISHED:
            return Fate.HIDDEN if self.options.unfinished == "hide" else Fate.TEXT
        if piece.weak and isinstance(piece.found, Call) and piece.found.name not in self.tools:
            return Fate.TEXT
        fate = self._gate()
        if not piece.inside or fate is not Fate.CALL:
            return fate
        if self._answered > self._from:  # it went on to answer: what it weighed was a thought
            return Fate.TEXT
        return {Progress.OPEN: Fate.UNDECIDED, Progress.OVER: Fate.CALL, Progress.CUT: Fate.TEXT}[self._progress]

    def _gate(self) -> Fate:
        """What becomes of markup of calls, as things stand."""
        return gate.fate(
            self.options.recover,
            self.options.residue,
            tools=bool(self.tools),
            structured=self._structured,
            progress=self._progress,
        )

    def _decided(self, tape: Tape) -> Piece:
        """The first piece, which is decided."""
        piece = tape.next()
        self._from += len(piece.raw)
        return piece

    def _show(self, events: Iterable[Event], thought: bool, out: list[Event]) -> None:
        """This is text, or reasoning; in it stays what came in the middle of it."""
        for event in events:
            if not isinstance(event, TextDelta):
                self._writer.event(event, out)
            elif thought:
                self._writer.thought(event.text, out)
            else:
                self._writer.text(event, out)

    def _cut(self, piece: Piece, fate: Fate, events: Iterable[Event], out: list[Event]) -> None:
        """A piece that is not shown; behind it comes what came in the middle of it."""
        writer = self._writer
        between = [event for event in events if not isinstance(event, TextDelta)]
        writer.cut(out)
        if fate is Fate.CALL:
            self._recover(piece.found, out)
        elif piece.kind is Kind.UNFINISHED:
            self.ledger.record(NAME, "text", "dropped", "markup of a call that the end of the answer cut")
        for event in between:
            writer.event(event, out)

    def _recover(self, found: Call | Lost | None, out: list[Event]) -> None:
        """A call becomes one; one that cannot be read is recorded."""
        if isinstance(found, Lost):
            self.ledger.record(NAME, "text", "dropped", found.reason)
        elif found is not None and max(len(found.name), len(found.id)) > self.limits.id_chars:
            self.ledger.record(NAME, "text", "dropped", "a call whose name or id is too long")
        elif found is not None:
            if found.mended:
                self.ledger.record(NAME, "text", "mended", "the JSON of a call")
            kind = ToolKind.CUSTOM if found.name in self.freeform else ToolKind.FUNCTION
            arguments = input_of(found.arguments) if kind is ToolKind.CUSTOM else found.arguments
            self._writer.call(ToolUseBlock(self._ids.unique(found.id), found.name, kind), arguments, out)
            self._recovered = True
            self.outcome.recovered += 1

    def _fitting(self, event: MessageDelta) -> MessageDelta:
        """The message's end, which says that tools are to be called if that was written as text."""
        if self._recovered and event.stop_reason is StopReason.END_TURN:
            return evolve(event, stop_reason=StopReason.TOOL_USE)
        return event


def _is_thought(piece: Piece) -> bool:
    """What it is where it is shown: reasoning, not text."""
    return piece.inside or piece.kind is Kind.THOUGHT


def _goes_with(piece: Piece, before: Piece, *, strays: bool) -> bool:
    """Whether it may be shown in one with the piece before it."""
    return (strays or piece.kind is not Kind.STRAY) and _is_thought(piece) == _is_thought(before)
