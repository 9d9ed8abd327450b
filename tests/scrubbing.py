"""What becomes of an answer whose text holds markup: short names for it, at any cut."""

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from attrs import define, field
from hypothesis import settings

from pipeline.events import BlockDelta, BlockStart, BlockStop, Event, StreamError, TextDelta
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.message import Message, Reasoning, Refusal, Text, ToolUse, assemble
from pipeline.outcome import Outcome
from pipeline.route import AnswerOptions
from stages.scrub import TagScrubber
from stages.scrub.grammar import Refused, Source, Unfinished
from tests.canonical import BEGIN, END, TEXT, losses, start, stop, text

PROMPT = AnswerOptions(recover="prompt")
HIDING = AnswerOptions(recover="prompt", residue="hide", unfinished="hide")
NATIVE = AnswerOptions()
NATIVE_HIDING = AnswerOptions(residue="hide", unfinished="hide")

TOOLS: dict[str, Any] = {"f": {}, "g": {}}
CALL = '{"name": "f", "arguments": {"x": 1}}'
MARKUP = f"<tool_call>{CALL}</tool_call>"
F = ("f", '{"x": 1}')

PATHS = {"two calls have the same id": "tool use", "the text that it belongs to was markup": "annotation"}
"""Where a loss is said to be, by its reason; any other is in the text."""

SIZES = (1, 2, 3, 4, 7, 23)
EVERYWHERE = 80
"""So long is a short text."""
CUTTING: dict[object, tuple[int, tuple[int, ...]]] = {True: (1, SIZES), False: (5, (1, 3, 23)), "brief": (999, (1,))}
"""At every how many places a text is cut in two, and the sizes of its pieces: of a short one, a long one, or any."""


@define
class Scrubbed:
    """What came of an answer. The law of a message is asserted on the way: dense indexes, one block at a time."""

    options: AnswerOptions = PROMPT
    tools: dict[str, Any] = field(factory=lambda: TOOLS)
    limits: Limits = DEFAULT_LIMITS
    freeform: Sequence[str] = ()
    in_place: bool = False
    ledger: Ledger = field(init=False, factory=Ledger)
    outcome: Outcome = field(init=False, factory=Outcome)
    steps: list[list[Event]] = field(init=False, factory=list)
    most: int = field(init=False, default=0)
    """The most bytes that were held."""

    def stage(self) -> TagScrubber:
        """A fresh scrubber."""
        return TagScrubber(
            options=self.options,
            tools=self.tools,
            freeform=self.freeform,
            ledger=self.ledger,
            limits=self.limits,
            outcome=self.outcome,
            in_place=self.in_place,
        )

    def give(self, *events: Event) -> "Scrubbed":
        """A whole answer, one event a read, and its end."""
        stage = self.stage()
        for event in events:
            self.steps.append([*stage.receive([event])])
            self.most = max(self.most, stage.held)
        self.steps.append([*stage.receive_eof()])
        assert stage.held == 0
        assert stage.ended
        obeys(self.events, dense=not self.in_place)
        return self

    @property
    def events(self) -> list[Event]:
        return [event for step in self.steps for event in step]

    @property
    def message(self) -> Message:
        return assemble(self.events)

    @property
    def content(self) -> list[Any]:
        """Text as a string, reasoning as `[text]`, a call as `(name, arguments)`."""
        out: list[Any] = []
        for part in self.message.content:
            if isinstance(part, ToolUse):
                assert part.complete
                out.append((part.name, part.arguments))
            elif isinstance(part, Reasoning):
                out.append([part.text])
            else:
                assert isinstance(part, Text | Refusal)
                out.append(part.text)
        return out

    @property
    def deltas(self) -> list[str]:
        """The text of each delta for the reader."""
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def ids(self) -> list[str]:
        return [part.id for part in self.message.content if isinstance(part, ToolUse)]

    @property
    def lost(self) -> list[tuple[str, str]]:
        """Action and reason of each entry of the ledger; whose it is and where is asserted."""
        for entry in self.ledger:
            assert (entry.stage, entry.path) == ("TagScrubber", PATHS.get(entry.reason, "text"))
        return [(action, reason) for _, action, reason in losses(self.ledger)]


def obeys(events: Iterable[Event], *, dense: bool = True) -> None:
    """One block at a time, dense indexes, no empty text, nothing behind the end."""
    opened: int | None = None
    blocks, said = 0, True
    for event in events:
        if isinstance(event, BlockStart):
            assert opened is None, event
            assert event.index == blocks or not dense, event
            opened, blocks, said = event.index, blocks + 1, event.block != TEXT
        elif isinstance(event, BlockStop):
            assert opened == event.index, event
            assert said, "an empty text block"
            opened = None
        elif isinstance(event, BlockDelta):
            assert opened == event.index, event
            said = True
        elif isinstance(event, StreamError) or event is END:
            assert opened is None, event


def said(*parts: str, end: Event = END) -> list[Event]:
    """An answer of one text block in these deltas."""
    return [BEGIN, start(0, TEXT), *(text(0, part) for part in parts), stop(0), end]


def cuts(whole: str, size: int) -> list[str]:
    """A text in pieces of that size."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def scrubbed(*parts: str, options: AnswerOptions = PROMPT, **asked: Any) -> Scrubbed:
    """What becomes of a text in these deltas."""
    return Scrubbed(options, **asked).give(*said(*parts))


def at_every_cut(whole: str, *, end: Event = END, **asked: Any) -> Scrubbed:
    """What becomes of a text, which must be the same in one delta, cut in two, and in pieces of any size.

    A long one is cut in two at every fifth place only, and in pieces of fewer sizes; where mutation testing runs this
    some thousand times, at few.
    """
    first = Scrubbed(**asked).give(*said(whole, end=end))
    brief = settings.get_current_profile_name() == "brief"
    stride, sizes = CUTTING["brief" if brief else len(whole) <= EVERYWHERE]
    halves: Sequence[list[str]] = [[whole[:at], whole[at:]] for at in range(1, len(whole), stride)]
    for parts in (*halves, *(cuts(whole, size) for size in sizes)):
        other = Scrubbed(**asked).give(*said(*parts, end=end))
        assert other.content == first.content, parts
        assert other.lost == first.lost, parts
        assert other.message.stop_reason == first.message.stop_reason
    return first


Step = Callable[[Source], Generator[Any, None, Any]]


def stepped(step: Step, text: str, size: int = 1000) -> tuple[Any, str]:
    """What a step gives, or raises, and what it leaves of a text that comes in pieces."""
    source, parts = Source("<", 1), cuts(text, size)
    steps = step(source)
    try:
        while True:
            next(steps)
            if parts:
                source.feed(parts.pop(0))
            source.over = not parts
    except StopIteration as end:
        return end.value, source.text[source.at :] + "".join(parts)
    except (Refused, Unfinished) as error:
        return type(error), ""


def at_every_size(step: Step, text: str) -> tuple[Any, str]:
    """The same at every cut."""
    first = stepped(step, text)
    for size in SIZES:
        assert stepped(step, text, size) == first
    return first


def calls_made(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile: work that does not depend on the machine."""
    made = 0

    def count(frame: object, kind: str, _: object) -> None:
        nonlocal made
        made += kind in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made
