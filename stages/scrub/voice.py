"""What is said: which blanks are written, and where reasoning that was written as text begins and ends."""

from abc import ABC, abstractmethod
from enum import Enum, auto

from attrs import define, evolve, field

from pipeline.events import ArgumentsDelta, BlockStop, Event, ReasoningDelta, TextDelta, ToolUseBlock
from pipeline.jsontext import size_of
from pipeline.ledger import Ledger

WAS_MARKUP = "the text that it belongs to was markup"
WAS_CLOSED = "the text that it belongs to ended before a call"
"""Why a citation is not written."""


class Gap(Enum):
    """What stands before the text that comes next; blanks are kept until that is certain."""

    START = auto()  # the beginning of the message
    MARKUP = auto()
    NONE = auto()  # text, or a block


@define
class Voice(ABC):
    """Says what is left of the text.

    Blanks between markup and markup, or the message's ends, are not written; nor are those between markup and the
    first text at all, nor those at both ends of reasoning, unless it goes on in another block. A block of text of which
    nothing is left is none.
    """

    ledger: Ledger
    index: int = field(init=False, default=-1)
    """Of the block that speaks, or spoke last."""
    flowing: bool = field(init=False, default=False)
    """It is one of text, which is written as it comes."""
    same: int = field(init=False, default=-1)
    """Of the last block that is no text, if what it says may be passed on as it came; -1: none is."""
    _kept: int = field(init=False, default=0)
    """Bytes of blanks that wait, and of what waits behind them."""
    _gap: Gap = field(init=False, default=Gap.START)
    _spoken: bool = field(init=False, default=False)
    """Some text was written."""
    _thought: int | None = field(init=False, default=None)
    """The block of recovered reasoning, while it is open."""
    _reasoned: bool = field(init=False, default=False)
    """Some of the reasoning was written that goes on."""
    _trail: list[str] = field(init=False, factory=list)
    """Blanks at the end of the reasoning so far, and their bytes."""
    _trailing: int = field(init=False, default=0)

    @property
    def held(self) -> int:
        """Bytes of what waits."""
        return self._kept + self._trailing

    @property
    def behind_markup(self) -> bool:
        """Nothing but blanks stands between markup and what comes next."""
        return self._gap is Gap.MARKUP

    def text(self, delta: TextDelta, out: list[Event]) -> None:
        """Text for the reader."""
        if self._gap is not Gap.NONE:
            blank = delta.text.isspace()
            if self._gap is Gap.MARKUP and not self._spoken:
                if blank:
                    return
                stripped = delta.text.lstrip()
                delta = delta if stripped == delta.text else evolve(delta, text=stripped)
            elif blank:
                self._kept += size_of(delta.text)
                self._keep(delta)
                return
        self._fill(out)
        self._spoken = True
        self._say(delta, out)

    def thought(self, text: str, out: list[Event]) -> None:
        """Reasoning that was written as text."""
        self._clear(out)
        text = text if self._reasoned else text.lstrip()
        said = text.rstrip()
        if said:
            self._think(self._take_trail() + said, out)
        self._leave_open(text[len(said) :])

    def call(self, block: ToolUseBlock, arguments: str, out: list[Event]) -> None:
        """A call that was written as text, whole."""
        index = self.open(block, out)
        out.extend((ArgumentsDelta(index, arguments), BlockStop(index)))

    def cut(self, out: list[Event]) -> None:
        """Markup was cut out here."""
        self._clear(out)
        self._take_trail()
        self._reasoned = False
        self._gap = Gap.MARKUP
        self.flowing = False

    def give_way(self, out: list[Event]) -> None:
        """No more may wait: blanks are written, whatever comes behind them."""
        if self._trail:
            self._think(self._take_trail(), out)
        self._fill(out)

    @property
    @abstractmethod
    def speaking(self) -> bool:
        """A block of text is open that what is put in closes."""

    @abstractmethod
    def open(self, block: ToolUseBlock, out: list[Event]) -> int:
        """A call that was written as text begins; its index, under which all is written up to its stop."""

    @abstractmethod
    def event(self, event: Event, out: list[Event]) -> None:
        """An event that is no text, or says none."""

    @abstractmethod
    def settle(self, out: list[Event]) -> None:
        """Nothing more is written: what waits is, if it is ever to be."""

    @abstractmethod
    def _keep(self, delta: TextDelta) -> None:
        """Blanks wait."""

    @abstractmethod
    def _fill(self, out: list[Event]) -> None:
        """Write what waits: text follows it, or stands before it."""

    @abstractmethod
    def _clear(self, out: list[Event]) -> None:
        """Blanks that wait are not written, nor is the start of their block; what came meanwhile is."""

    @abstractmethod
    def _say(self, delta: TextDelta, out: list[Event]) -> None:
        """Write text."""

    @abstractmethod
    def _begin_thought(self, out: list[Event]) -> int:
        """Open a block of reasoning; its index."""

    def _think(self, text: str, out: list[Event]) -> None:
        """Write reasoning."""
        if self._thought is None:
            self._thought = self._begin_thought(out)
        self._gap = Gap.NONE
        self._reasoned = True
        out.append(ReasoningDelta(self._thought, text))

    def _leave_open(self, blanks: str) -> None:
        """Blanks behind reasoning, which may go on."""
        if blanks:
            self._trail.append(blanks)
            self._trailing += size_of(blanks)

    def _take_trail(self) -> str:
        if not self._trail:
            return ""
        blanks = "".join(self._trail)
        self._trail.clear()
        self._trailing = 0
        return blanks

    def _end_thought(self, out: list[Event]) -> None:
        if self._thought is not None:
            out.append(BlockStop(self._thought))
            self._thought = None
