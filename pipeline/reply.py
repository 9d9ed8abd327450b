"""What stands in front of an answer: a status and headers, which must be known with its first byte and no earlier."""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import define, evolve, field, frozen

from pipeline.dialect import Dialect
from pipeline.errors import LimitExceeded
from pipeline.events import Frame, Origin, StreamError
from pipeline.failure import UNTOLD, note_untold
from pipeline.jsontext import dumps, loads, strictly, value_of
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.stage import AsyncStage, Stage

JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"
JSON_HEADERS = {"content-type": JSON_TYPE}
STREAM_HEADERS = {
    "content-type": f"{STREAM_TYPE}; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}

REQUEST_IDS = ("request-id", "x-request-id")
"""The names of the upstream's id for a request; a client is told it under both, since each reads one."""
PASSED_ON = frozenset({*REQUEST_IDS, "retry-after", "retry-after-ms", "x-should-retry"})
PASSED_ON_PREFIXES = ("x-ratelimit-",)
"""The upstream's headers that every client is told. Never its length or encoding."""

NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
VALUE = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
"""Names and values that every server writes and every client reads (RFC 9110, 5.1 and 5.5). Bytes outside ASCII, which
that still allows, do not come back as they were: libraries differ in what text they make of them."""

SHOWN = 500
"""So many characters are shown of an error that is plain text."""
MARKUP = ("<", "{", "[")
"""What a text begins with that is not for people to read."""
FIELDS = ("event:", "data:", "id:", "retry:", ":")
"""What a text begins with that is a stream of events."""


ANNOUNCED = 1 << 20
"""Where more waits, it leaves, whatever it says."""


class Form(StrEnum):
    """How an answer comes, or goes: as a stream, or whole."""

    STREAM = "stream"
    WHOLE = "whole"


@frozen
class Head:
    """What stands in front of an answer's body."""

    status: int
    headers: Mapping[str, str]


@frozen
class Refusal:
    """An answer of our own, where the upstream was not asked or did not answer."""

    head: Head
    body: bytes


def passed_on(headers: Mapping[str, str], *dialects: Dialect) -> dict[str, str]:
    """What a client is told of the headers of the upstream's reply: what everybody is, and what the `dialects` of the
    two know. No header may cost it the answer."""
    told = {name.lower(): value for name, value in headers.items() if VALUE.fullmatch(value)}
    known = {*PASSED_ON, *(name for dialect in dialects for name in dialect.told)}
    begun = (*PASSED_ON_PREFIXES, *(name for name in known if name.endswith("-")))
    passed = {
        name: value
        for name, value in told.items()
        if name in known or (name.startswith(begun) and NAME.fullmatch(name) is not None)
    }
    ids = [told[name] for name in REQUEST_IDS if name in told]
    return {**passed, **dict.fromkeys(REQUEST_IDS, ids[0])} if ids else passed


def refused(client: Dialect, error: StreamError, status: int = 0) -> Refusal:
    """An error in the client's dialect. `status` is the upstream's, if it answered with an error."""
    status, body = client.write_error(error, status)
    return Refusal(Head(status, JSON_HEADERS), dumps(body))


def kept(client: Dialect, error: StreamError, status: int, form: Form) -> Refusal | None:
    """The body that told of an error, as it came, where that is one of the client's dialect; else None.

    `status` is the upstream's, if it answered with an error; else it is that of the error's class.
    """
    body = b"" if error.origin is None else error.origin.data
    try:
        told = strictly(body.decode())
    except (ValueError, LimitExceeded):
        return None
    due = client.keeps_error(told, status if 400 <= status < 600 else client.write_error(error, 0)[0])
    if not due or (due < 400 and (status or form is Form.STREAM)):
        return None  # a success only as one: for a client that waits for a body, from an upstream that said so
    return Refusal(Head(due, JSON_HEADERS), body)


@define
class Heading(Stage[bytes, bytes]):
    """The answer in its bytes; `head` is what stands in front of them, known with the first of them.

    Stands last in the chain. An error that comes alone has the status of its class, so that a client acts on it; one
    that comes behind the beginning of a stream is told in the stream, of which nothing can be taken back. So is one
    that the upstream told in a stream, if it speaks the client's dialect, or the client acts on that alone. If the
    upstream speaks the client's dialect, a body that is an error of this dialect goes as it came.

    What only announces a stream decides nothing, and waits: for the first that says something of the answer, the error,
    or the host's keep-alive. Else the status would depend on how the bytes were cut.
    """

    client: Dialect
    form: Form
    outcome: Outcome
    headers: Mapping[str, str] = field(factory=dict)
    status: int = 0
    """The upstream's, if it answered with an error."""
    same: bool = False
    """The upstream speaks the client's dialect."""
    head: Head | None = field(init=False, default=None)
    held: int = field(init=False, default=0)
    ended: bool = field(init=False, default=False)
    _waiting: list[bytes] = field(init=False, factory=list)
    """What announces the stream."""
    _refused: bool = field(init=False, default=False)
    """The answer is an error, which is whole."""

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        if self.head is not None:
            return () if self._refused else items
        error = self.outcome.error
        if error is not None and not self._is_streamed(error):
            return self._refuse(error)
        if error is None and self.form is Form.STREAM and not self.outcome.begun and self.held <= ANNOUNCED:
            self._waiting += items
            self.held += sum(map(len, items))
            return ()
        return self._begun(items)

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        return self.receive(()) or self.idle()

    def idle(self) -> Sequence[bytes]:
        return () if self.head is not None else self._begun(())

    def _is_streamed(self, error: StreamError) -> bool:
        """Whether an error is told in a stream."""
        if self.form is not Form.STREAM or self.outcome.begun:
            return self.form is Form.STREAM
        return isinstance(error.origin, Origin) and (self.same or self.client.fails_in_stream)

    def _refuse(self, error: StreamError) -> Sequence[bytes]:
        """The body of an error, which is all that is answered. What it does not tell is recorded."""
        answer = kept(self.client, error, self.status, self.form) if self.same else None
        if answer is None and self.outcome.begun:
            self._note_untold()
        elif answer is None and self.outcome.announced:
            self.outcome.ledger.record("Heading", "message", *UNTOLD[1:])
        if answer is None and error.origin is not None and self.status:
            note_untold(said(error.origin.data), error, "Heading", self.outcome.ledger, answered=True)
        if answer is None:
            self.outcome.give_up()
        answer = answer or refused(self.client, error, self.status)
        self.head = Head(answer.head.status, {**self.headers, **answer.head.headers})
        self.ended = self._refused = True
        self._let_go()
        return (answer.body,)

    def _note_untold(self) -> None:
        """Record that the content is not told, if nobody did before."""
        ledger = self.outcome.ledger
        if not ledger.knows(*UNTOLD):
            ledger.record("Heading", *UNTOLD)

    def _begun(self, items: Sequence[bytes]) -> Sequence[bytes]:
        """What waits and comes now leaves, if that is anything."""
        items = [*self._let_go(), *items]
        if items:
            own = STREAM_HEADERS if self.form is Form.STREAM else JSON_HEADERS
            self.head = Head(200, {**self.headers, **own})
        return items

    def _let_go(self) -> list[bytes]:
        waiting, self._waiting, self.held = self._waiting, [], 0
        return waiting


@define
class ErrorBody(Stage[bytes, bytes]):
    """Nothing comes out of the body of the upstream's error; at its end, `outcome` knows the error.

    No more than `limits.error_bytes` of it are read.
    """

    read: Callable[[Any], StreamError]
    outcome: Outcome
    limits: Limits = DEFAULT_LIMITS
    ended: bool = field(init=False, default=False)
    _body: bytearray = field(init=False, factory=bytearray)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._body)

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        room = self.limits.error_bytes - len(self._body)
        self._body += b"".join(items)[:room]
        self.ended = len(self._body) >= self.limits.error_bytes
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        body = bytes(self._body)
        self.outcome.note(evolve(self.read(said(body, self.limits.json_depth)), origin=Frame(body)))
        self._body.clear()
        return ()


def said(body: bytes, depth: int = DEFAULT_LIMITS.json_depth) -> Any:
    """What an error's body says: its JSON, or its text if that is for people to read, else None.

    A stream of events that came instead of a body says what its payloads do: a list, if there are several.
    """
    try:
        return loads(body, depth)
    except (ValueError, LimitExceeded):
        text = body.decode("utf-8", "replace").strip()
    payloads = _payloads(text)
    if told := [payload for data in payloads if (payload := value_of(data, depth)) is not None]:
        return told if len(told) > 1 else told[0]
    if payloads and text.startswith(FIELDS):
        text = "".join(payloads).strip()
    return None if not text or text.startswith(MARKUP) else text[:SHOWN]


def _payloads(text: str) -> list[str]:
    """The data of each event, where a text is a stream of events; and the lines of one that is a JSON text a line."""
    payloads = [""]
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "data":
            payloads[-1] += value.removeprefix(" ") + "\n"
        elif not line:
            payloads.append("")
        elif line.startswith("{"):
            payloads.append(line)
    return [payload for payload in payloads if payload.strip()]


@frozen
class Reply:
    """What becomes of the upstream's reply: `chain` is given its body, `head` stands in front of what comes out."""

    chain: Stage[bytes, bytes] | AsyncStage[bytes, bytes]
    _heading: Heading

    @property
    def head(self) -> Head | None:
        """Status and headers; None until the first byte comes out."""
        return self._heading.head
