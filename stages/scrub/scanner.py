"""One pass over the visible text: what of it is text, reasoning and markup."""

from collections import deque
from collections.abc import Collection, Generator
from enum import Enum, auto

from attrs import define, field, frozen

from pipeline.errors import LimitExceeded
from pipeline.jsontext import size_of
from pipeline.limits import DEFAULT_LIMITS, Limits
from stages.scrub.code import FENCES, Code
from stages.scrub.grammar import (
    Call,
    Family,
    Found,
    Lost,
    Part,
    Place,
    Plain,
    Refused,
    Source,
    Thinking,
    Tools,
    Unfinished,
    beginnings,
)
from stages.scrub.openers import Openers, closers_of, openers, openers_in_reasoning, openings


class Kind(Enum):
    """What a piece of the text is."""

    TEXT = auto()
    THOUGHT = auto()
    TAG = auto()  # a tag of reasoning
    STRAY = auto()  # a token that makes nothing
    CALLS = auto()  # markup of calls
    UNFINISHED = auto()  # the same, and the message ended in the middle of it


@frozen
class Piece:
    """A piece of the visible text, as it was written, and what it says. In order, pieces are the text."""

    kind: Kind
    raw: str
    found: Call | Lost | Part | None = None
    weak: bool = False
    inside: bool = False
    """It stands in reasoning."""


@define
class _Attempt:
    """Markup under way: the families that its opener may open, and what was written since the last thing found."""

    candidates: list[tuple[str, Family]]
    raw: deque[str]
    """What came, from `at` of the first on: it is copied only when it is told."""
    at: int
    place: Place
    source: Source
    size: int | None = None
    """Its bytes, told or not; None: they were not counted since something whole was found, or since it began."""
    found: bool = False
    """It has made something: it is this family's."""
    told: int = 0
    """Bytes of the body of a call that was told, and is not whole."""
    parser: Generator[Found | None, None, None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.parser = self.family.parse(self.source, self.place)

    @property
    def family(self) -> Family:
        """The family that reads it."""
        return self.candidates[0][1]

    def take(self) -> str:
        """What was read since the last thing found."""
        count = sum(map(len, self.raw)) - self.at - self.source.left
        parts: list[str] = []
        while count > 0:
            part = self.raw[0][self.at : self.at + count]
            parts.append(part)
            count -= len(part)
            self.at += len(part)
            if self.at == len(self.raw[0]):
                self.raw.popleft()
                self.at = 0
        return "".join(parts)

    def rest(self) -> tuple[str, int]:
        """All that came since the last thing found, read or not: a text, and where in it that begins."""
        if len(self.raw) == 1:
            return self.raw[0], self.at
        return "".join(self.raw)[self.at :], 0

    def count(self) -> int:
        """Count its bytes."""
        if self.size is None:
            text, at = self.rest()
            self.size = self.told + size_of(text[at:])
        return self.size


@define
class Scanner:
    """Tells apart what a text is made of, as it comes: fed fragments, it returns the pieces that are certain.

    What is held back is the longest suffix that can still become markup, and markup under way. `reasoning_open`: the
    text begins in reasoning. Markup that grows beyond `limits.held_bytes` is text.
    """

    families: tuple[Family, ...]
    tools: Tools = field(factory=dict, kw_only=True)
    freeform: Collection[str] = field(default=(), kw_only=True)
    early: bool = field(default=False, kw_only=True)
    """Calls are told before their body is whole, where they stand in no reasoning."""
    reasoning_open: bool = field(default=False, kw_only=True)
    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    quiet: bool = field(init=False, default=False)
    """Text stands before what comes next, if nothing is held back."""
    _shown: int = field(init=False, default=0)
    """Openers that were told as text, less closers."""
    _behind: bool = field(init=False, default=True)
    """Nothing but blanks was told since markup, or since the beginning."""
    _openers: Openers = field(init=False)
    _closers: tuple[str, ...] = field(init=False, default=())
    """What ends the reasoning that the text is in; empty: it is in none."""
    _text: str = field(init=False, default="")
    """What has come and was not told, from `_at` on, while no markup is under way."""
    _at: int = field(init=False, default=0)
    _over: bool = field(init=False, default=False)
    _attempt: _Attempt | None = field(init=False, default=None)
    _code: Code = field(init=False, factory=Code)
    _last: str = field(init=False, default="")
    """The end of what was told as text."""

    def __attrs_post_init__(self) -> None:
        self._closers = closers_of(self.families) if self.reasoning_open else ()
        self._set_openers()

    @property
    def held(self) -> int:
        """Bytes of what is held back."""
        return self._attempt.count() if self._attempt is not None else size_of(self._text[self._at :])

    def passes(self, text: str) -> bool:
        """Whether this is text and nothing else; then it has been told. Asked while it is `quiet` and holds nothing."""
        if self._openers.search(text) is not None:
            return False
        code = self._code
        if code.before is not None or code.run or "\n" in text:
            code.passed(text)
        self._last = text
        return True

    def feed(self, text: str) -> list[Piece]:
        """What is certain, now that this has come."""
        out: list[Piece] = []
        if self._attempt is None:
            self._text, self._at = self._text[self._at :] + text, 0
        else:
            self._grow(self._attempt, text, out)
        self._scan(out)
        return out

    def close(self) -> list[Piece]:
        """What was held back; nothing more will come."""
        out: list[Piece] = []
        self._over = True
        if self._attempt is not None:
            self._attempt.source.over = True
        self._scan(out)
        return out

    def reduce(self, families: tuple[Family, ...]) -> list[Piece]:
        """From here on only these families are read; what is held back for others is text."""
        out: list[Piece] = []
        self.families = families
        self._set_openers()
        if self._attempt is not None and self._attempt.family not in families:
            self._give_up(self._attempt, out)
        self._scan(out)
        return out

    def let_go(self) -> list[Piece]:
        """What is held back, which is text from now on: no more may wait behind it.

        Raises `LimitExceeded` if a call was told of it already.
        """
        out: list[Piece] = []
        if self._attempt is not None:
            self._outgrown(self._attempt, out)
        else:
            text, self._text = self._text, ""
            self._code.passed(text)
            self._tell(text, out)
        self._scan(out)
        return out

    def _grow(self, attempt: _Attempt, text: str, out: list[Piece]) -> None:
        """More of the markup under way."""
        attempt.size = attempt.count() + size_of(text)
        attempt.raw.append(text)
        attempt.source.feed(text)
        if attempt.size > self.limits.held_bytes:
            self._outgrown(attempt, out)

    def _outgrown(self, attempt: _Attempt, out: list[Piece]) -> None:
        """The markup under way may not wait any longer."""
        if attempt.told:
            bound = f"a call that was written as text is larger than {self.limits.held_bytes} bytes"
            raise LimitExceeded(f"{bound}, with what waits behind it", code="held_bytes")
        self._give_up(attempt, out)

    def _give_up(self, attempt: _Attempt, out: list[Piece]) -> None:
        """The markup under way is text."""
        text, at = attempt.rest()
        self._attempt = None
        found = beginnings(self._closers).search(text, at) if self._closers else None
        end = found.start() if found else len(text)
        self._read(text[at:end])
        self._tell(text[at:end], out)
        self._text, self._at = text, end

    def _scan(self, out: list[Piece]) -> None:
        goes_on = True
        while goes_on and (self._attempt is not None or self._at < len(self._text)):
            goes_on = self._find(out) if self._attempt is None else self._pursue(self._attempt, out)
        self.quiet = not (self._behind or self._closers)

    def _find(self, out: list[Piece]) -> bool:
        """Tell the text up to the next markup; whether there is more to do. What may become markup is held back."""
        text, opening, code, told = self._text, self._openers, self._code, self._at
        at = told
        while found := opening.search(text, at):
            begin = found.start()
            if self._closers and self._behind and text[told:begin].strip():  # its own opener may not come any more
                self._tell(text[told:begin], out)
                self._at = begin
                return True
            code.passed(text[at:begin])
            if text[begin] in FENCES and not self._closers:
                code.marks(text[begin])
                at = begin + 1
                continue
            code.settle(text[begin])
            if not code.inside or self._closers:
                if not self._over and text[begin : begin + opening.longest] in opening.prefixes:
                    self._tell(text[told:begin], out)
                    self._text, self._at = text[begin:], 0
                    return False
                if candidates := opening.at(text, begin):
                    self._tell(text[told:begin], out)
                    self._begin(candidates, text, begin)
                    return True
            at = begin + 1
            code.passed(text[begin])
        code.passed(text[at:])
        self._tell(text[told:], out)
        self._text, self._at = "", 0
        return False

    def _begin(self, candidates: list[tuple[str, Family]], text: str, at: int) -> None:
        """Try to read what stands there as markup of the first of some families."""
        self._text, self._at = "", 0
        opener = candidates[0][0]
        place = Place(
            opener=opener,
            line=self._code.blank,
            glued=bool(self._last[-1:].strip()),
            shown=self._shown > 0,
            behind=self._behind,
            tools=self.tools,
            freeform=self.freeform,
            limits=self.limits,
            openings=openings(self.families, self._closers),
            weak=candidates[0][1].weak,
            early=self.early and not self._closers,
        )
        source = Source(text, at + len(opener), self._over)
        self._attempt = _Attempt(candidates, deque([text]), at, place, source)

    def _pursue(self, attempt: _Attempt, out: list[Piece]) -> bool:
        """Read on; whether it has come to an end."""
        try:
            while (found := next(attempt.parser)) is not None:
                attempt.found = True
                self._made(attempt, found, out)
            attempt.count()
            return False
        except StopIteration:
            if raw := attempt.take():
                self._cut(Piece(_kind(attempt.family), raw, inside=bool(self._closers)), out)
            self._attempt, self._text, self._at = None, attempt.source.text, attempt.source.at
        except Unfinished:
            text, at = attempt.rest()
            self._cut(Piece(Kind.UNFINISHED, text[at:], inside=bool(self._closers)), out)
            self._attempt = None
        except Refused:
            self._refused(attempt, out)
        return True

    def _made(self, attempt: _Attempt, found: Found, out: list[Piece]) -> None:
        """Something was found."""
        inside, raw = bool(self._closers), attempt.take()
        attempt.size = None
        attempt.told = attempt.told + size_of(raw) if isinstance(found, Part) else 0  # a body is kept until it is whole
        if isinstance(found, Plain):
            self._read(raw)
            self._tell(raw, out)
            return
        call = found if isinstance(found, Call | Lost | Part) else None
        if not isinstance(found, Call | Lost | Part):
            self._closers = found.closers if isinstance(found, Thinking) else ()
        self._cut(Piece(_kind(attempt.family), raw, call, attempt.family.weak, inside), out)

    def _cut(self, piece: Piece, out: list[Piece]) -> None:
        """Markup is cut out of the text."""
        out.append(piece)
        self._behind = True
        self._code.cut()
        self._set_openers()

    def _refused(self, attempt: _Attempt, out: list[Piece]) -> None:
        """It is another family's, or else its first character is text, and what follows is read anew."""
        text, at = attempt.rest()
        self._attempt = None
        if not attempt.found and len(attempt.candidates) > 1:
            self._begin(attempt.candidates[1:], text, at)
            return
        if not self._closers and attempt.family.closes:
            self._shown = max(0, self._shown + (-1 if attempt.family.stray else 1))
        self._text, self._at = text, at + 1
        first = text[at : at + 1]
        self._code.passed(first)
        self._tell(first, out)

    def _read(self, text: str) -> None:
        """This is text after all; what it quotes goes on behind it."""
        (self._code.passed if self._closers else self._code.read)(text)

    def _tell(self, text: str, out: list[Piece]) -> None:
        """This is text, or reasoning."""
        if not text:
            return
        if self._closers:
            out.append(Piece(Kind.THOUGHT, text))
        else:
            out.append(Piece(Kind.TEXT, text))
            self._last = text
        if self._behind and not text.isspace():
            self._behind = False
            self._set_openers()

    def _set_openers(self) -> None:
        if self._closers:
            self._openers = openers_in_reasoning(self.families, self._closers, not self._behind)
        else:
            self._openers = openers(self.families)


def _kind(family: Family) -> Kind:
    if family.stray:
        return Kind.STRAY
    return Kind.TAG if family.reasoning else Kind.CALLS
