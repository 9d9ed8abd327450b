"""Tool calls and reasoning that a model wrote as text become blocks, while they are still arriving."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice, takewhile

from attrs import define, evolve, field

from pipeline.errors import PipelineError
from pipeline.events import (
    CUTTING,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolUseBlock,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.route import DEFAULT_ANSWERS, AnswerOptions
from pipeline.stage import Stage
from stages.scrub import gate
from stages.scrub.families import FAMILIES
from stages.scrub.gate import Fate, Gate, Progress
from stages.scrub.grammar import Call, Family, Lost, Tools
from stages.scrub.inplace import PlacedWriter
from stages.scrub.recover import NAME, Recovery
from stages.scrub.scanner import Kind, Piece, Scanner
from stages.scrub.tape import Tape
from stages.scrub.voice import Voice
from stages.scrub.writer import Writer

BESIDE = frozenset({ArgumentsDelta, ReasoningDelta})
"""What most that is no text is."""
BOUNDS = (BlockStart, BlockStop)
"""Behind these no more is said of a text before them."""
MARKUP = frozenset({Kind.CALLS, Kind.TAG, Kind.STRAY})


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
    wrapped: Collection[str] = field(default=(), kw_only=True)
    """Those whose input is free text for the client, and which the upstream was offered as functions of one string."""
    families: tuple[Family, ...] = field(default=FAMILIES, kw_only=True)
    ledger: Ledger = field(factory=Ledger, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    outcome: Outcome = field(factory=Outcome, kw_only=True)
    in_place: bool = field(default=False, kw_only=True)
    """What holds no markup passes as it came, event by event: blocks overlap, no delta is split, and no call begins
    before its body is whole."""
    whole: bool = field(default=False, kw_only=True)
    """Nothing is gained by a call that leaves at once: it waits while a citation may come of the text before it."""
    ended: bool = field(init=False, default=False)
    _scanner: Scanner = field(init=False)
    _gate: Gate = field(init=False)
    _voice: Voice = field(init=False)
    _calls: Recovery = field(init=False)
    _tape: Tape | None = field(init=False, default=None)
    """What came and was not passed on; mostly nothing."""
    _flow: int = field(init=False, default=-1)
    """Of the block in which plain text is passed on as it comes; -1: it is not."""
    _passes: Callable[[str], bool] = field(init=False)
    _awaiting: bool = field(init=False, default=False)
    """The first piece is a call that waits so."""

    def __attrs_post_init__(self) -> None:
        options = self.options
        families = gate.read(self.families, calls=bool(self.tools) and options.recover != "off", weak=options.weak)
        self._scanner = Scanner(
            families,
            tools=self.tools,
            freeform=(*self.freeform, *self.wrapped),
            early=options.stream_calls and options.recover == "prompt" and not self.in_place,
            reasoning_open=options.reasoning_open,
            limits=self.limits,
        )
        self._passes = self._scanner.passes
        self._gate = Gate(options, self.tools)
        self._voice = PlacedWriter(self.ledger) if self.in_place else Writer(self.ledger)
        self._calls = Recovery(self._voice, self.ledger, self.limits, self.outcome, self.freeform)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        if self.ended:
            return 0
        waiting = 0 if self._tape is None else self._tape.size
        return self._scanner.held + self._voice.held + self._calls.held + waiting

    def receive(self, items: Sequence[Event]) -> Sequence[Event]:
        if len(items) == 1:
            event = items[0]
            if type(event) is TextDelta and event.index == self._flow and self._passes(event.text):
                return items
            if type(event) in BESIDE and event.index == self._voice.same and self._tape is None:  # type: ignore[attr-defined]  # it has one
                return items
        if self._gate.progress is Progress.CUT:  # what comes behind a failure is the upstream's own affair
            return [] if self.ended else items
        out: list[Event] = []
        try:
            self._take(items, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _take(self, items: Sequence[Event], out: list[Event]) -> None:
        """What one read brought."""
        voice, anywhere = self._voice, not self.in_place
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
            if type(event) in BESIDE and event.index == voice.same and self._tape is None:  # type: ignore[attr-defined]  # it has one
                out.append(event)
                continue
            if isinstance(event, TextDelta) and (event.text or anywhere):
                if event.text:
                    self._waiting().events.append(event)
                    self._told(self._scanner.feed(event.text), out)
            elif isinstance(event, MessageDelta):
                self._gate.stopped = event.stop_reason in CUTTING
                self._over(Progress.OVER, out)
                voice.event(self._calls.end(event, out), out)
            elif isinstance(event, StreamError):
                self._over(Progress.CUT, out)
                voice.event(event, out)
                self.ended = anywhere
            else:
                self._beside(event, out)
            if self._tape is not None or voice.held or self._calls.held:
                self._bound(out)
            self._flow = voice.index if voice.flowing and self._scanner.quiet and self._tape is None else -1

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        out: list[Event] = []
        if not self.ended:
            if self._gate.progress is not Progress.CUT:
                self._over(Progress.CUT, out)
                self._voice.settle(out)
            self.ended = True
            if cause is not None:
                out.append(cause)
        return out

    def _beside(self, event: Event, out: list[Event]) -> None:
        """An event that is no text: it waits behind what is held back."""
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
            self._calls.ids.unique(event.block.id)
            texts = self._gate.called()
            self._told(self._scanner.reduce(gate.read(self.families, calls=False)) if texts else [], out)
        if self._tape is not None:
            self._tape.wait(event)
            if self._awaiting and isinstance(event, BOUNDS):
                self._awaiting = False
                self._told([], out)
        else:
            self._calls.event(event, out)

    def _waiting(self) -> Tape:
        """The tape."""
        self._tape = self._tape or Tape()
        return self._tape

    def _told(self, pieces: list[Piece], out: list[Event]) -> None:
        """More of the text is certain."""
        for piece in pieces:
            self._waiting().tell(piece)
            self._gate.told(piece)
            self._awaiting = self._awaiting and _is_hidden(piece)
        tape = self._tape
        if tape is not None:
            self._drain(tape, out)
            if not tape.events:
                self._tape = None

    def _bound(self, out: list[Event]) -> None:
        """If more waits than may, the gate decides; then blanks are written; then markup under way is text."""
        most, tape = self.limits.held_bytes, self._tape
        if self.held <= most:
            return
        if tape is not None and any(self._fate(piece) is Fate.UNDECIDED for piece in tape.pieces):
            self._gate.progress = Progress.OVER
            self._told([], out)
        if self._awaiting and self.held > most:
            self.whole = self._awaiting = False
            self._told([], out)
        if self.held > most and self._voice.held:
            self._voice.give_way(out)
        if self.held > most and self._scanner.held:
            self._told(self._scanner.let_go(), out)

    def _over(self, progress: Progress, out: list[Event]) -> None:
        """The text ends."""
        calls = self._calls
        self._gate.progress, self._flow, self._awaiting = progress, -1, False
        if calls.open is None or progress is not Progress.CUT:
            self._told(self._scanner.close(), out)
        if calls.open is not None and progress is Progress.CUT:
            calls.abandon(calls.open, () if self._tape is None else self._tape.events)
            self._tape = None

    def _drain(self, tape: Tape, out: list[Event]) -> None:
        """Pass on what is decided."""
        while tape.pieces:
            piece = tape.pieces[0]
            fate = self._fate(piece)
            if fate is Fate.UNDECIDED:
                return
            noted = fate is Fate.CALL and piece.raw != "" and self._voice.speaking
            if noted and self._awaits(tape):
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
                if noted:
                    self._note(piece, tape, out)
                self._cut(piece, fate, tape.take(len(piece.raw)), out)
            for event in tape.beside():
                self._calls.event(event, out)
            if left:
                return

    def _awaits(self, tape: Tape) -> bool:
        """Whether a citation may still come of the text that the call, which is the first piece, would close."""
        if self.whole and self._gate.progress is Progress.OPEN and not self._awaiting:
            behind = any(not _is_hidden(piece) for piece in islice(tape.pieces, 1, None))
            self._awaiting = not (behind or any(isinstance(event, BOUNDS) for event in tape.events))
        return self._awaiting

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
            self._gate.passed(-len(piece.raw))
            count -= len(piece.raw)

    def _fate(self, piece: Piece) -> Fate:
        if self._calls.open is not None:  # it is that call's, or ought to be
            return Fate.CALL
        return self._gate.fate(piece, behind_markup=self._voice.behind_markup)

    def _decided(self, tape: Tape) -> Piece:
        """The first piece, which is decided."""
        piece = tape.next()
        self._gate.passed(len(piece.raw))
        return piece

    def _show(self, events: Iterable[Event], thought: bool, out: list[Event]) -> None:
        """This is text, or reasoning; in it stays what came in the middle of it."""
        for event in events:
            if not isinstance(event, TextDelta) or not event.text:
                self._voice.event(event, out)
            elif thought:
                self._voice.thought(event.text, out)
            else:
                self._voice.text(event, out)

    def _note(self, piece: Piece, tape: Tape, out: list[Event]) -> None:
        """What waits and belongs to the text before a call is written before the call, which closes its block."""
        hidden = takewhile(_is_hidden, tape.pieces)
        for note in tape.notes(len(piece.raw), hidden):
            self._voice.event(note, out)

    def _cut(self, piece: Piece, fate: Fate, events: Iterable[Event], out: list[Event]) -> None:
        """A piece that is not shown; behind it comes what came in the middle of it."""
        between = list(events)
        alone = not self._voice.behind_markup
        self._voice.cut(out)
        if fate is Fate.CALL:
            self._calls.make(piece, out, over=self._gate.progress is not Progress.CUT)
        elif isinstance(piece.found, Call | Lost):
            self.ledger.record(NAME, "text", "dropped", "markup of a call beside calls in the upstream's own form")
        elif piece.kind is Kind.UNFINISHED:
            self.ledger.record(NAME, "text", "dropped", "markup of a call that the end of the answer cut")
        elif piece.kind is Kind.STRAY and alone:
            self.ledger.record(NAME, "text", "dropped", "a token of markup that has nothing to close")
        for event in between:
            if isinstance(event, TextDelta):
                self._calls.cut(out)
            else:
                self._calls.event(event, out)


def _is_hidden(piece: Piece) -> bool:
    """It shows nothing to the reader, behind a call."""
    return piece.kind in MARKUP or piece.raw.isspace()


def _is_thought(piece: Piece) -> bool:
    """What it is where it is shown: reasoning, not text."""
    return piece.inside or piece.kind is Kind.THOUGHT


def _goes_with(piece: Piece, before: Piece, *, strays: bool) -> bool:
    """Whether it may be shown in one with the piece before it."""
    return (strays or piece.kind is not Kind.STRAY) and _is_thought(piece) == _is_thought(before)
