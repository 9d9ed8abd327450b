"""Which fragment belongs to which call, and when a call may begin."""

from collections.abc import Collection, Iterator
from typing import Any

from attrs import define, field

from pipeline.arguments import Arguments
from pipeline.errors import LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    RedactedReasoningBlock,
    ToolKind,
    ToolUseBlock,
)
from pipeline.halves import Halves
from pipeline.ids import CallIds
from pipeline.jsontext import size_of
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.toolnames import NO_MAP, RequestMap
from stages.dialects.chat.fragments import Fragment, more_alone

FUNCTION = ToolKind.FUNCTION  # looked up once
UNSEEN = 1 << 16
"""So many characters are kept, and no more, before it is seen whether the arguments are whole."""


@define(eq=False)
class Call:
    """One call as far as it has come. `index` is its block's, or -1 while its name has not come."""

    kind: ToolKind
    place: int | str | None
    number: str
    """Which of the message's calls it is."""
    limits: Limits
    id: str = ""
    name: str = ""
    index: int = -1
    stopped: bool = False
    proof: str = ""
    waiting: list[str] = field(factory=list)
    spoken: bool = False
    """Some of its arguments have come."""
    said: list[str] = field(factory=list)
    """A function's arguments while they are not known to be whole."""
    arguments: Arguments | None = None
    """The same, as far as they were looked through: only when asked, and once."""
    looked: int = 0
    unseen: int = 0
    """Characters of it that were not looked through."""
    sum: int | None = None
    """Of arguments that are whole: what tells others from the same again."""

    def is_whole(self) -> bool:
        """Whether its arguments are visibly whole.

        Raises `LimitExceeded` if they are too long, or nested too deeply.
        """
        if self.sum is not None or not self.said:
            return self.sum is not None
        if self.arguments is None:
            self.arguments = Arguments(self.limits)
        for text in self.said[self.looked :]:
            self.arguments.feed(text)
        self.looked, self.unseen = len(self.said), 0
        if self.arguments.complete:
            self.sum = hash("".join(self.said))
            self.said.clear()
            self.arguments = None
        return self.sum is not None

    def keep(self, text: str) -> None:
        """Some of its arguments have come."""
        self.spoken = True
        if self.sum is None and self.kind is FUNCTION and not self.stopped:
            self.said.append(text)
            self.unseen += len(text)
            if self.unseen > UNSEEN:
                self.is_whole()

    def more(self, text: str) -> ArgumentsDelta:
        """More arguments of a call that has begun."""
        self.keep(text)
        return ArgumentsDelta(self.index, text)


@define
class Calls:
    """Every fragment goes to its call; a call begins when its name is known, under an id that no other has.

    Fragments are told apart by their place (`index`), else by id. On a used place a new id with a name is another
    call, unless the name is the same and the text goes on with arguments that are not whole; a new id alone is nothing.
    What names no call belongs to the only one that is not whole; if there are several, the stream fails.
    """

    ledger: Ledger
    limits: Limits
    indexes: Iterator[int]
    """Where the message's block indexes come from."""
    map: RequestMap = NO_MAP
    """The tools that the model may call: they tell a name that comes in pieces, and a function's call."""
    earlier: Collection[str] = ()
    """The ids of the calls that the conversation holds already."""
    _held: int = field(init=False, default=0)
    _order: list[Call] = field(init=False, factory=list)
    _by_place: dict[int | str, Call] = field(init=False, factory=dict)
    _by_id: dict[tuple[str, str], Call] = field(init=False, factory=dict)
    """The last call of an id and a name, or of an id alone."""
    _ended: int = field(init=False, default=0)
    """So many calls were ended by a finish."""
    _unfinished: list[Call] = field(init=False, factory=list)
    """The calls that may not be whole."""
    _halves: Halves = field(init=False, factory=Halves)
    _ids: CallIds = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._ids = CallIds("ChatNormalizer", "tool_calls[].id", self.ledger, self.limits, self.earlier)

    @property
    def held(self) -> int:
        """Bytes that wait for a name."""
        return self._held + self._halves.held

    def __len__(self) -> int:
        return len(self._order)

    def add(self, fragment: Fragment, out: list[Event]) -> Call | None:
        """Take one fragment: the call that it belongs to, or None if it says nothing.

        Raises `UpstreamError` if it could belong to several calls, `LimitExceeded` at a bound.
        """
        self._ids.check(fragment.id, fragment.name)
        call = self._call_of(fragment)
        if call is None:
            return None
        if fragment.id and not call.id:
            call.id = fragment.id
            self._by_id[call.id, ""] = call
        elif fragment.id not in ("", call.id):
            self.ledger.record("ChatNormalizer", "tool_calls[].id", "ignored", "the call has another id")
        if fragment.name and (not call.name or self._goes_on(call, fragment.name)):
            call.name += fragment.name
        elif fragment.name not in ("", call.name):
            self.ledger.record("ChatNormalizer", "tool_calls[].function.name", "ignored", "the call has another name")
        if call.id and call.name:
            self._by_id[call.id, call.name] = call
        if fragment.proof not in ("", call.proof):
            self._prove(call, fragment.proof)
        text = self._halves.joined(call.number, fragment.text)
        if fragment.text:
            call.spoken = True
        if text:
            self._speak(call, text, out)
        elif call.index < 0 and call.name and not self._is_part(call.name):
            self._begin(call, out)
        return call

    def going_on(self, entries: Any) -> Call | None:
        """The call that entries are nothing but more text for, as nearly all are; else None."""
        place, text = more_alone(entries)
        call = self._by_place.get(place) if text and not self._halves.odd else None
        return None if call is None or call.index < 0 else call

    def end(self, out: list[Event], *, complete: bool) -> None:
        """At the finish: every call ends. `complete`: nothing cut them short.

        Raises `UpstreamError` if a call's name never came; then none ends: what waits for a name may be another's.
        """
        if complete and not all(call.name for call in self._order):
            raise UpstreamError("a tool call came without a name", code="nameless_tool_call")
        halves = dict(self._halves.rest())
        ending, self._ended = self._order[self._ended :], len(self._order)
        for call in ending:
            if call.index < 0 and call.name:
                self._begin(call, out)
            if call.index < 0:
                self._lose(call)
            elif not call.stopped:
                if half := halves.get(call.number):
                    out.append(ArgumentsDelta(call.index, half))
                call.stopped = True
                out.append(BlockStop(call.index, complete))
        self._held = 0

    def cut(self) -> None:
        """At an error: what still waits can never be written."""
        for call in self._order:
            if call.index < 0:
                self._lose(call)
        self._halves.rest()
        self._held = 0

    def _lose(self, call: Call) -> None:
        call.waiting = []
        self.ledger.record("ChatNormalizer", "tool_calls[]", "dropped", "cut before its name came")

    def _call_of(self, fragment: Fragment) -> Call | None:
        """The call that a fragment belongs to, a new one if need be; None for a fragment that says nothing."""
        if fragment.place is not None:
            call = self._by_place.get(fragment.place) or self._placeless(fragment)
            if call is None or self._is_other(call, fragment):
                return self._known(fragment) or self._new(fragment)
            return call
        if fragment.id:
            same = self._known(fragment)
            if same is None and not fragment.name and self._order:
                return self._only(fragment)
            return same or self._new(fragment)
        if fragment.name:
            last = self._order[-1] if self._order else None
            goes_on = last is not None and last.name == fragment.name and fragment.text and not fragment.begins
            return last if goes_on else self._new(fragment)
        return self._only(fragment)

    def _placeless(self, fragment: Fragment) -> Call | None:
        """The only call, if it came without a place, which text alone tells now."""
        if fragment.id or fragment.name or fragment.place != 0 or len(self._order) != 1:
            return None
        (call,) = self._order
        if call.place is not None or call.is_whole():
            return None
        call.place = fragment.place
        self._by_place[fragment.place] = call
        return call

    def _is_other(self, call: Call, fragment: Fragment) -> bool:
        """Whether a fragment on the place of `call` is another call's."""
        if not fragment.name or not call.name:
            return False
        if fragment.id and fragment.id != call.id:
            begins = fragment.begins and (call.spoken or bool(call.id))
            return fragment.name != call.name or begins or (bool(call.id) and call.is_whole())
        if fragment.name == call.name:  # again what has come, unless nothing tells the calls apart
            return not fragment.id and not call.id and fragment.begins and call.is_whole()
        return call.spoken and fragment.begins

    def _known(self, fragment: Fragment) -> Call | None:
        """An earlier call of the same id, if it may have the fragment's name and place; it takes a place it lacked."""
        call = self._by_id.get((fragment.id, fragment.name))
        if call is None and fragment.name:  # a call whose name has not come
            call = self._by_id.get((fragment.id, ""))
        if not fragment.id or call is None or fragment.name not in ("", call.name or fragment.name):
            return None
        if fragment.place is None:
            repeated = not (fragment.begins and call.is_whole()) or hash(fragment.text) == call.sum
            return call if repeated else None  # its id is no id: other arguments of the same function
        if call.place is None:
            call.place = fragment.place
            self._by_place[fragment.place] = call
        return call if fragment.place == call.place else None

    def _only(self, fragment: Fragment) -> Call | None:
        """The call that text without any name belongs to."""
        if not fragment.text:
            return None
        self._unfinished = [call for call in self._unfinished if not call.is_whole()]
        if len(self._unfinished) > 1:
            raise UpstreamError(
                "arguments came without index, known id or name while several calls were unfinished",
                code="ambiguous_tool_call",
            )
        if self._unfinished:
            return self._unfinished[0]
        return self._order[-1] if self._order else self._new(fragment)

    def _new(self, fragment: Fragment) -> Call | None:
        if not (fragment.id or fragment.name or fragment.text):
            return None
        if len(self._order) >= self.limits.blocks:
            raise LimitExceeded(f"the message has more than {self.limits.blocks} calls", code="blocks")
        if self._order:
            self._order[-1].is_whole()  # then its arguments need not be kept
        call = Call(fragment.kind, fragment.place, str(len(self._order)), self.limits)
        self._order.append(call)
        self._unfinished.append(call)
        if fragment.place is not None:
            self._by_place[fragment.place] = call
        return call

    def _is_part(self, name: str) -> bool:
        """Whether this can only be the beginning of a tool's name."""
        return name not in self.map.tools and any(one.startswith(name) for one in self.map.tools)

    def _goes_on(self, call: Call, name: str) -> bool:
        """Whether this is the next piece of the name of a call that has not begun."""
        whole = call.name + name
        return call.index < 0 and (whole in self.map.tools or self._is_part(whole))

    def _speak(self, call: Call, text: str, out: list[Event]) -> None:
        """More arguments of a call: written once it has begun, kept before."""
        call.keep(text)
        if call.index < 0 and call.name:
            self._begin(call, out)
        if call.index >= 0:
            out.append(ArgumentsDelta(call.index, text))
            return
        call.waiting.append(text)
        self._hold(size_of(text))

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > self.limits.held_bytes:
            raise LimitExceeded(
                f"more than {self.limits.held_bytes} bytes of arguments wait for their call's name", code="held_bytes"
            )

    def _prove(self, call: Call, proof: str) -> None:
        if call.index < 0 and not call.proof:
            call.proof = proof
            self._hold(size_of(proof))
        else:
            self.ledger.record("ChatNormalizer", "tool_calls[].extra_content", "dropped", "its call had begun")

    def _begin(self, call: Call, out: list[Event]) -> None:
        """Open the call. What the provider must get back with it is in a block before it, as the client echoes both."""
        if call.proof:
            self._held -= size_of(call.proof)
            before = next(self.indexes)
            out += (BlockStart(before, RedactedReasoningBlock(call.proof)), BlockStop(before))
        call.index = next(self.indexes)
        kind = self.map.kind(call.name, call.kind)
        out.append(BlockStart(call.index, ToolUseBlock(self._ids.unique(call.id), call.name, kind)))
        out.extend(ArgumentsDelta(call.index, earlier) for earlier in call.waiting)
        self._held -= sum(map(size_of, call.waiting))
        call.waiting = []
