"""What may be written of a function call's arguments while they arrive, and whether they are whole."""

import re
from enum import Enum, auto

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.jsontext import BLANK, JSONScanner, is_object, loads
from pipeline.limits import DEFAULT_LIMITS, Limits

_NOTHING = re.compile(r"[ \t\n\r]*(?:n(?:u(?:l(?:l[ \t\n\r]*)?)?)?)?\Z")
"""Blanks, or what may become `null`."""
_NULL_FIRST = re.compile(r"[ \t\n\r]*null[ \t\n\r]*(?=\{)")
"""`null`, and then the arguments after all."""


class _State(Enum):
    HEAD = auto()  # nothing that decides what they are
    BRACE = auto()  # "{" and blanks: written
    EMPTY = auto()  # "{}": its "}" is withheld, since real servers send "{}" and then the arguments
    BODY = auto()  # inside an object or array that is not empty
    STRING = auto()  # a JSON string: an object that was encoded twice, withheld to its end
    RAW = auto()  # no object: passed on as it comes
    WHOLE = auto()  # a whole value: nothing may follow


@define
class Arguments:
    """The arguments of one function call, fed as fragments.

    `feed` returns what may be written now, never parsed and dumped again. A beginning that may turn out to be nothing
    (blanks, `null`, `{}`) or an object that was encoded twice is withheld. `complete` says that a non-empty object or
    array is visibly whole; non-blank text behind it is not written, and `excess` says that there was some.
    """

    limits: Limits = DEFAULT_LIMITS
    complete: bool = field(init=False, default=False)
    excess: bool = field(init=False, default=False)
    unwrapped: bool = field(init=False, default=False)
    """They were an object encoded twice."""
    withheld: str = field(init=False, default="")
    _state: _State = field(init=False, default=_State.HEAD)
    _text: list[str] = field(init=False, factory=list)
    _chars: int = field(init=False, default=0)
    _unscanned: int = field(init=False, default=0)
    _scanner: JSONScanner | None = field(init=False, default=None)

    def feed(self, text: str) -> str:
        """What of `text`, and of what was withheld, may be written now.

        Raises `LimitExceeded` when they grow beyond their bound or are nested too deeply.
        """
        self._chars += len(text)
        if self._chars > self.limits.arguments_bytes:
            raise LimitExceeded(
                f"the arguments of one call are larger than {self.limits.arguments_bytes} bytes", code="arguments_bytes"
            )
        if self._state is _State.BODY:
            return self._body(text)
        if self._state is _State.RAW:
            return text
        return self._beginning(text)

    def close(self) -> tuple[str, bool]:
        """At the end: what is still to be written, and whether the arguments are a whole object."""
        if self._state is _State.HEAD:
            if self.withheld.strip(BLANK) in ("", "null"):
                return "{}", True
            return self.withheld, False
        if self._state is _State.EMPTY:
            return self.withheld, True
        if self._state is _State.STRING:
            inner = self._inner()
            if inner is not None:
                self.unwrapped = True
                return inner, True
            return self.withheld, False
        if self._state is _State.WHOLE:
            return "", self._text == ["{"]
        return "", False

    def _beginning(self, text: str) -> str:
        """Before it is known what they are, or once `{}` or a whole value stands there."""
        if self._state is _State.WHOLE:
            self.excess = self.excess or bool(text.strip(BLANK))
            return ""
        if self._state is _State.STRING:
            self.withheld += text
            return ""
        if self._state is _State.BRACE:
            return self._brace(text)
        if self._state is _State.EMPTY:
            return self._again(text)
        head = self.withheld + text
        if _NOTHING.match(head):
            self.withheld = head
            return ""
        head = _NULL_FIRST.sub("", head, count=1)
        self.withheld = ""
        first = head.lstrip(BLANK)[0]
        if first == "{":
            opened = head.index("{") + 1
            self._state = _State.BRACE
            self._text = [head[:opened]]
            return head[:opened] + self._brace(head[opened:])
        if first == '"':
            self._state = _State.STRING
            self.withheld = head
            return ""
        if first == "[":
            return self._enter("", head)
        self._state = _State.RAW
        return head

    def _brace(self, text: str) -> str:
        """Behind `{` and blanks."""
        rest = text.lstrip(BLANK)
        if not rest:
            self._text.append(text)
            return text
        blanks = text[: len(text) - len(rest)]
        if rest[0] != "}":
            return self._enter("".join(self._text), text)
        self._state = _State.EMPTY
        self.withheld = "}"
        self._text.append(blanks)
        return blanks + self._again(rest[1:])

    def _again(self, text: str) -> str:
        """Behind `{}`: if an object begins again, the first one was none; its `{`, which is written, serves it."""
        rest = text.lstrip(BLANK)
        if not rest:
            return ""
        if rest[0] != "{" or self.excess:
            self.excess = True
            return ""
        self._state = _State.BRACE
        self.withheld = ""
        return self._brace(rest[1:])

    def _enter(self, before: str, text: str) -> str:
        """The body begins; `before` is what was written of it."""
        self._state = _State.BODY
        self._text = [before]
        self._scanner = JSONScanner(self.limits.json_depth)
        self._scanner.feed(before)
        self._unscanned = 1
        return self._body(text)

    def _body(self, text: str) -> str:
        """Inside: fragments are kept, and looked through only when one holds a closing bracket."""
        self._text.append(text)
        if self._scanner is None or not ("}" in text or "]" in text):
            return text
        piece = "".join(self._text[self._unscanned :])
        self._unscanned = len(self._text)
        end = self._scanner.feed(piece)
        if end < 0:
            return text
        self._scanner = None
        cut = len(text) - (len(piece) - end)
        value = "".join(self._text[:-1]) + text[:cut]
        if not self._readable(value):
            self._text = []
            self._state = _State.RAW
            return text
        self._text = [value.lstrip(BLANK)[0]]
        self._state = _State.WHOLE
        self.complete = True
        self.excess = bool(text[cut:].strip(BLANK))
        return text[:cut]

    def _readable(self, value: str) -> bool:
        """Whether a value whose brackets match is JSON, and not empty."""
        try:
            return bool(loads(value, self.limits.json_depth))
        except ValueError:
            return False

    def _inner(self) -> str | None:
        """The object inside a JSON string, `{}` for one that holds nothing; None for any other."""
        try:
            inner = loads(self.withheld, self.limits.json_depth)
        except ValueError:
            return None
        if inner.strip(BLANK) in ("", "null"):
            return "{}"
        return inner if is_object(inner, self.limits.json_depth) else None
