"""Tool calls and reasoning that a model wrote as text become blocks, while they are still arriving."""

from collections.abc import Callable, Collection, Iterable, Sequence

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
from stages.scrub.grammar import Call, Family, Lost, Part, Tools
from stages.scrub.inplace import PlacedWriter
from stages.scrub.opened import OpenCall
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
    """What holds no markup passes as it came, event by event: blocks overlap, no delta is split, and no call begins
    before its body is whole."""
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
    _call: OpenCall | None = field(init=False, default=None)
    """The call that is being written; all that comes meanwhile waits behind it."""
    _flow: int = field(init=False, default=-1)
    """Of the block in which plain text is passed on as it comes; -1: it is not."""
    _passes: Callable[[str], bool] = field(init=False)
    _progress: Progress = field(init=False, default=Progress.OPEN)
    _failed: bool = field(init=False, default=False)
    """The upstream told of its failure: what comes behind is the upstream's own affair."""

    def __attrs_post_init__(self) -> None:
        options = self.options
        families = gate.read(self.families, calls=bool(self.tools) and options.recover != "off", weak=options.weak)
        self._scanner = Scanner(
            families,
            tools=self.tools,
            freeform=self.freeform,
            early=options.stream_calls and options.recover == "prompt" and not self.in_place,
            reasoning_open=options.reasoning_open,
            limits=self.limits,
        )
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
        try:
            self._take(items, out)
        except PipelineError as error:
            raise error.after(out) from error.__cause__
        return out

    def _take(self, items: Sequence[Event], out: list[Event]) -> None:
        """What one read brought."""
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
                self._unended(event, out)
                writer.event(self._fitting(event), out)
            elif isinstance(event, StreamError):
                self._over(Progress.CUT, out)
                writer.event(event, out)
                self.ended, self._failed = not self.in_place, self.in_place
            else:
                self._beside(event, out)
            self._flow = writer.index if writer.flowing and self._scanner.quiet and self._tape is None else -1

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
            self._pass(event, out)

    def _pass(self, event: Event, out: list[Event]) -> None:
        """An event that is no text leaves, or waits for the call that is being written."""
        if self._call is not None:
            self._call.behind.append(event)
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
        if self._call is None or progress is not Progress.CUT:
            self._told(self._scanner.close(), out)
        if self._call is not None and progress is Progress.CUT:  # left open: clients run one that was closed
            for event in (*self._call.behind, *(self._tape.events if self._tape is not None else ())):
                if isinstance(event, BlockStart):
                    self.ledger.record(NAME, "block", "dropped", "it waited behind a call that was cut")
            self._call = self._tape = None

    def _unended(self, event: MessageDelta, out: list[Event]) -> None:
        """The message ends; in the middle of a call that is being written it may do so only if it was cut short."""
        if (call := self._call) is not None:
            if event.stop_reason not in CUTTING:
                raise call.broken()
            out.append(BlockStop(call.index, False))
            self._let_go(call, out)

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
                self._pass(tape.events.popleft(), out)
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
        if self._call is not None:  # it is that call's, or ought to be
            return Fate.CALL
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
            self._recover(piece, out)
        elif piece.kind is Kind.UNFINISHED:
            self.ledger.record(NAME, "text", "dropped", "markup of a call that the end of the answer cut")
        for event in between:
            self._pass(event, out)

    def _recover(self, piece: Piece, out: list[Event]) -> None:
        """A call becomes one; one that cannot be read is recorded."""
        found = piece.found
        if self._call is not None:
            self._go_on(self._call, piece, out)
        elif isinstance(found, Part):
            block = self._block(found.name, "")
            self._call = OpenCall(block, self._writer.open(block, out))
            self._call.more(found.arguments, out)
        elif isinstance(found, Lost):
            self.ledger.record(NAME, "text", "dropped", found.reason)
        elif found is not None and max(len(found.name), len(found.id)) > self.limits.id_chars:
            self.ledger.record(NAME, "text", "dropped", "a call whose name or id is too long")
        elif found is not None:
            block = self._block(found.name, found.id)
            self._writer.call(block, self._said(found, block.kind), out)

    def _go_on(self, call: OpenCall, piece: Piece, out: list[Event]) -> None:
        """More of the call that is being written, or its end."""
        found = piece.found
        if isinstance(found, Part):
            call.more(found.arguments, out)
        elif isinstance(found, Call):
            call.end(found.name, self._said(found, call.block.kind), out)
            self._let_go(call, out)
        elif piece.kind is not Kind.UNFINISHED and self._progress is not Progress.CUT:
            raise call.broken()

    def _let_go(self, call: OpenCall, out: list[Event]) -> None:
        """What waited behind a call leaves."""
        self._call = None
        for event in call.behind:
            self._writer.event(event, out)

    def _block(self, name: str, id: str) -> ToolUseBlock:  # noqa: A002
        kind = ToolKind.CUSTOM if name in self.freeform else ToolKind.FUNCTION
        return ToolUseBlock(self._ids.unique(id), name, kind)

    def _said(self, found: Call, kind: ToolKind) -> str:
        """The arguments of a whole call, which is counted."""
        if found.mended:
            self.ledger.record(NAME, "text", "mended", "the JSON of a call")
        self._recovered = True
        self.outcome.recovered += 1
        return input_of(found.arguments) if kind is ToolKind.CUSTOM else found.arguments

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
