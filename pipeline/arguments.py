"""What may be written of a function call's arguments while they arrive, and whether they are whole."""

import re
from enum import Enum, auto

from attrs import define, field

from pipeline.errors import LimitExceeded
from pipeline.freeform import beginning
from pipeline.jsontext import BLANK, JSONScanner, is_object, loads, size_of, strictly
from pipeline.limits import DEFAULT_LIMITS, Limits

_NOTHING = re.compile(r"[ \t\n\r]*(?:n(?:u(?:l(?:l[ \t\n\r]*)?)?)?)?\Z")
"""Blanks, or what may become `null`."""
_NONE = ("", "null")
_NULL_FIRST = re.compile(r"\A[ \t\n\r]*null[ \t\n\r]*(?=\{)")
"""`null`, and then the arguments after all."""


class _State(Enum):
    HEAD = auto()  # nothing that decides what they are: withheld
    STRING = auto()  # a JSON string: an object that was encoded twice, withheld to its end
    BRACE = auto()  # "{" and blanks: written
    EMPTY = auto()  # "{}": its "}" is withheld, since real servers send "{}" and then the arguments
    BODY = auto()  # inside an object or array that is not empty
    RAW = auto()  # no object: passed on as it comes
    OBJECT = auto()  # a whole object that is not empty: nothing may follow
    ARRAY = auto()  # the same of an array


_HEAD, _STRING, _BRACE, _EMPTY, _BODY, _RAW, _OBJECT, _ARRAY = (
    _State  # looked up once: finding a member on its class costs as much as a call
)


_WHOLE = (_OBJECT, _ARRAY)


@define
class Arguments:
    """The arguments of one function call, fed as fragments.

    `feed` returns what may be written now, never parsed and dumped again. A beginning that may turn out to be nothing
    (blanks, `null`, `{}`) or an object that was encoded twice is withheld. Non-blank text behind a whole value is not
    written, and `excess` says that there was some.
    """

    limits: Limits = DEFAULT_LIMITS
    excess: bool = field(init=False, default=False)
    unwrapped: bool = field(init=False, default=False)
    """They were an object encoded twice."""
    held: int = field(init=False, default=0)
    """Bytes of what is withheld."""
    _state: _State = field(init=False, default=_HEAD)
    _withheld: list[str] = field(init=False, factory=list)
    _none: bool = field(init=False, default=True)
    """Nothing but blanks has come, or `null`."""
    _written: list[str] = field(init=False, factory=list)
    """What was written of a value that is not whole, and how many of its fragments were looked through."""
    _scanned: int = field(init=False, default=0)
    _scanner: JSONScanner = field(init=False)
    _size: int = field(init=False, default=0)

    @_scanner.default
    def _new_scanner(self) -> JSONScanner:
        return JSONScanner(self.limits.json_depth)

    @property
    def complete(self) -> bool:
        """An object or array that is not empty is visibly whole."""
        return self._state in _WHOLE

    @property
    def withheld(self) -> str:
        """What has come and was not written, as it came."""
        return "".join(self._withheld)

    def feed(self, text: str) -> str:
        """What of `text`, and of what was withheld, may be written now.

        Raises `LimitExceeded` when they grow beyond their bound or are nested too deeply.
        """
        if not text:
            return ""
        self._size += size_of(text)
        if self._size > self.limits.arguments_bytes:
            raise LimitExceeded(
                f"the arguments of one call are larger than {self.limits.arguments_bytes} bytes", code="arguments_bytes"
            )
        if self._state is _BODY:
            return self._body(text)
        if self._state is _RAW:
            return text
        if self._state is _BRACE:
            return self._brace(text)
        if self._state is _EMPTY:
            return self._again(text)
        if self._state in _WHOLE:
            return self._behind(text)
        return self._beginning(text)

    def close(self, *, cut: bool = False) -> tuple[str, bool]:
        """At the end: what is still to be written, and whether the arguments are a whole object.

        `cut`: they may lack their end, so only what is visibly whole is.
        """
        if self._state in _WHOLE:
            return "", self._state is _OBJECT
        if self._state is _EMPTY:
            return "}", not cut
        if cut:
            return self.withheld, False
        if self._state is _HEAD and self._none:
            return "{}", True
        if self._state is _STRING and (inner := self._inner()) is not None:
            self.unwrapped = True
            return inner, True
        return self.withheld, False

    def _beginning(self, text: str) -> str:
        """Before it is known what they are, and inside a string. Blanks that decide nothing are not looked through."""
        self._withheld.append(text)
        self.held += size_of(text)
        if self._state is _STRING or (self._none and not text.strip(BLANK)):
            return ""
        head = self.withheld
        if _NOTHING.match(head):
            self._none = head.strip(BLANK) in _NONE
            return ""
        head = _NULL_FIRST.sub("", head)
        first = head.lstrip(BLANK)[0]
        if first == '"':
            self._state = _STRING
            return ""
        self._release()
        if first == "[":
            return self._enter(head)
        if first != "{":
            self._state = _RAW
            return head
        opened = head.index("{") + 1
        self._state = _BRACE
        self._written = [head[:opened]]
        return head[:opened] + self._brace(head[opened:])

    def _brace(self, text: str) -> str:
        """Behind `{` and blanks."""
        rest = text.lstrip(BLANK)
        if rest and rest[0] != "}":
            return self._enter(text)
        blanks = text[: len(text) - len(rest)]
        self._written.append(blanks)
        if not rest:
            return blanks
        self._state = _EMPTY
        self._withheld = ["}"]
        self.held = 1
        return blanks + self._again(rest[1:])

    def _again(self, text: str) -> str:
        """Behind `{}`: if an object begins again, the first one was none; its `{`, which is written, serves it."""
        rest = text.lstrip(BLANK)
        if not rest.startswith("{") or self.excess:
            return self._behind(rest)
        self._state = _BRACE
        self._release()
        return self._brace(rest[1:])

    def _behind(self, text: str) -> str:
        """Behind a value: nothing is written."""
        self.excess = self.excess or bool(text.strip(BLANK))
        return ""

    def _enter(self, text: str) -> str:
        """The body begins."""
        self._state = _BODY
        return self._body(text)

    def _body(self, text: str) -> str:
        """Inside: fragments are kept, and looked through only when one holds a closing bracket."""
        self._written.append(text)
        if not ("}" in text or "]" in text):
            return text
        end = [self._scanner.feed(fragment) for fragment in self._written[self._scanned :]][-1]
        self._scanned = len(self._written)
        if end == -1:
            return text
        self._written[-1] = text[:end]
        self._state = self._read("".join(self._written))
        self._written.clear()
        if self._state is _RAW:
            return text
        self._behind(text[end:])
        return text[:end]

    def _read(self, value: str) -> _State:
        """What a value whose brackets match turns out to be; an empty array is nothing that is visibly whole."""
        try:
            read = strictly(value, self.limits.json_depth)
        except ValueError:
            return _RAW
        if not read:
            return _RAW
        return _OBJECT if isinstance(read, dict) else _ARRAY

    def _inner(self) -> str | None:
        """The object inside a JSON string, `{}` for one that holds nothing; None for any other."""
        try:
            inner: str = loads(self.withheld)
            if inner.strip(BLANK) in _NONE:
                return "{}"
            return inner if is_object(inner, self.limits.json_depth) else None
        except (ValueError, LimitExceeded):
            return None

    def _release(self) -> None:
        """What was withheld is written."""
        self._withheld = []
        self.held = 0


_NONE_FIRST = re.compile(r"\A[ \t\n\r]*(?:null|\{[ \t\n\r]*\})[ \t\n\r]*")
"""`null` or `{}`: for none, or before the arguments after all."""


class _Bare(Enum):
    HEAD = auto()  # what may become the object that holds the text: withheld
    OBJECT = auto()  # inside it
    WHOLE = auto()  # behind it: nothing may follow
    TEXT = auto()  # the text itself, passed on as it comes


@define
class FreeformArguments:
    """The same for a call of a freeform tool that came as a function's: an object with one string, or the bare text.

    The object is visibly whole at its end, as any other. Bare text ends by the upstream's word, and is never wrong.
    """

    limits: Limits = DEFAULT_LIMITS
    excess: bool = field(init=False, default=False)
    unwrapped: bool = field(init=False, default=False)
    held: int = field(init=False, default=0)
    _state: _Bare = field(init=False, default=_Bare.HEAD)
    _withheld: list[str] = field(init=False, factory=list)
    _scanner: JSONScanner = field(init=False)
    _size: int = field(init=False, default=0)

    @_scanner.default
    def _new_scanner(self) -> JSONScanner:
        return JSONScanner(self.limits.json_depth)

    @property
    def complete(self) -> bool:
        """The object is visibly whole."""
        return self._state is _Bare.WHOLE

    @property
    def withheld(self) -> str:
        """What has come and was not written, as it came."""
        return "".join(self._withheld)

    def feed(self, text: str) -> str:
        """What of `text`, and of what was withheld, may be written now.

        Raises `LimitExceeded` when they grow beyond their bound.
        """
        self._size += size_of(text)
        if self._size > self.limits.arguments_bytes:
            raise LimitExceeded(
                f"the arguments of one call are larger than {self.limits.arguments_bytes} bytes", code="arguments_bytes"
            )
        if self._state is _Bare.HEAD:
            return self._head(text)
        if self._state is _Bare.OBJECT:
            return self._inside(text)
        if self._state is _Bare.WHOLE:
            self.excess = self.excess or bool(text.strip(BLANK))
            return ""
        return text

    def close(self, *, cut: bool = False) -> tuple[str, bool]:
        """At the end: what is still to be written, and whether the call is whole; nothing is an empty text.

        `cut`: it may lack its end, so only the object that is visibly whole is.
        """
        if self._state is _Bare.WHOLE:
            return "", True
        if self._state is not _Bare.HEAD:
            return "", self._state is _Bare.TEXT and not cut
        head = self.withheld
        rest = _NONE_FIRST.sub("", head)
        if not rest.strip(BLANK):
            return head if cut else "", not cut
        return head, not cut and beginning(rest) != 0  # an object that broke off before its string is no text

    def _head(self, text: str) -> str:
        """Before it is known what it is. Blanks decide nothing, and are not looked through."""
        self._withheld.append(text)
        self.held += size_of(text)
        if not text.strip(BLANK):
            return ""
        head = self.withheld
        rest = _NONE_FIRST.sub("", head)
        begun = beginning(rest)
        if begun == 0 or (begun < 0 and _NOTHING.match(head)):
            return ""
        self._withheld, self.held = [], 0
        if begun < 0:
            self._state = _Bare.TEXT
            return head
        self._state = _Bare.OBJECT
        return self._inside(rest)

    def _inside(self, text: str) -> str:
        end = self._scanner.feed(text)
        if end == -1:
            return text
        self._state = _Bare.WHOLE
        self.excess = bool(text[end:].strip(BLANK))
        return text[:end]
