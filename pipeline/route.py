"""One client dialect over one upstream: a request goes up, a streamed, a whole or a failed answer comes down."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from attrs import define, evolve, field, frozen

from pipeline.dialect import Dialect, RequestFacts
from pipeline.errors import ClientError, ErrorKind, PipelineError
from pipeline.estimate import estimate
from pipeline.events import StreamError
from pipeline.jsontext import dumps, loads
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome
from pipeline.request import DEFAULT_OPTIONS, Request, RequestOptions
from pipeline.stage import Stage, cause_of

JSON_HEADERS = {"content-type": "application/json"}
STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}

PASSED_ON = frozenset({"request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry"})
PASSED_ON_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
"""The upstream's headers that a client is told. Never its length or encoding."""


class Form(StrEnum):
    """How an answer comes, or goes: as a stream, or whole."""

    STREAM = "stream"
    WHOLE = "whole"


class Recipe(Protocol):
    """Fresh stages for one answer: the composition root, which knows all stages."""

    def __call__(
        self,
        upstream: Dialect,
        client: Dialect,
        *,
        arriving: Form,
        leaving: Form,
        facts: RequestFacts,
        ledger: Ledger,
        limits: Limits,
        outcome: Outcome,
        options: "AnswerOptions",
    ) -> Stage[bytes, bytes]: ...


@frozen(kw_only=True)
class AnswerOptions:
    """What a route decides about the answers it brings down."""

    envelope: bool = True
    """Carry another provider's opaque reasoning in an envelope, so that it can go back; else leave it out."""
    upstream: str = ""
    """The provider's name in envelopes; empty: its dialect's."""


DEFAULT_ANSWERS = AnswerOptions()


@frozen
class Head:
    """What stands before an answer's body."""

    status: int
    headers: Mapping[str, str]


@frozen
class UpstreamRequest:
    """What to send up: a path behind the base URL, headers to add, the body."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@frozen
class Refusal:
    """An answer of our own to a request that cannot be sent up."""

    head: Head
    body: bytes


@frozen(kw_only=True)
class Route:
    """Requests in the words of `client` become requests of `upstream`, its answers become the client's."""

    client: Dialect
    upstream: Dialect
    recipe: Recipe
    requests: RequestOptions = DEFAULT_OPTIONS
    answers: AnswerOptions = DEFAULT_ANSWERS
    models: Mapping[str, str] = field(factory=dict)
    """The upstream's model for a client's; one that is not named goes up as it is."""
    limits: Limits = DEFAULT_LIMITS

    def open(self, body: bytes) -> "Exchange":
        """Begin an exchange with a client's request body. A request that cannot be sent up makes `refusal` of it."""
        ledger = Ledger("request")
        try:
            request = self._parsed(body, ledger)
            model = self.models.get(request.model, request.model)
            options = evolve(self.requests, model=model, upstream=self.provider)
            built = self.upstream.build(request, ledger=ledger, limits=self.limits, options=options)
        except PipelineError as error:
            return Exchange(self, ledger, refusal=self._refused(error))
        facts = RequestFacts(
            model=request.model,
            usage=estimate(request),
            stream=request.stream,
            include_usage=request.include_usage is not False,
            map=built.map,
        )
        headers = {"accept": "text/event-stream" if request.stream else "application/json", **JSON_HEADERS}
        up = UpstreamRequest(self.upstream.path, headers, dumps(built.body))
        return Exchange(self, ledger, facts=facts, request=up)

    @property
    def provider(self) -> str:
        """The upstream's name in envelopes."""
        return self.answers.upstream or self.upstream.name

    def _parsed(self, body: bytes, ledger: Ledger) -> Request:
        if len(body) > self.limits.request_bytes:
            raise ClientError(
                f"the request is larger than {self.limits.request_bytes} bytes", kind=ErrorKind.REQUEST_TOO_LARGE
            )
        try:
            parsed = loads(body, self.limits.json_depth)
        except ValueError as error:
            raise ClientError("the request body is no JSON") from error
        if not isinstance(parsed, dict):
            raise ClientError("the request body is no JSON object")
        return self.client.parse(parsed, ledger=ledger, limits=self.limits)

    def _refused(self, error: PipelineError) -> Refusal:
        status, body = self.client.write_error(cause_of(error), error.status)
        return Refusal(Head(status, JSON_HEADERS), dumps(body))


@define
class Exchange:
    """One request and its answer. `request` is what to send up, or `refusal` what to answer instead."""

    route: Route
    _requests: Ledger
    facts: RequestFacts = field(factory=RequestFacts, kw_only=True)
    request: UpstreamRequest | None = field(default=None, kw_only=True)
    refusal: Refusal | None = field(default=None, kw_only=True)
    outcome: Outcome = field(init=False, factory=Outcome)
    _answers: Ledger = field(init=False, factory=Ledger)

    @property
    def ledger(self) -> list[dict[str, str]]:
        """Every loss so far, both ways."""
        return [*self._requests.as_dicts(), *self._answers.as_dicts()]

    def reply(self, status: int, headers: Mapping[str, str]) -> "Reply":
        """The chain for what follows the head of the upstream's reply."""
        told = {name.lower(): value for name, value in headers.items()}
        passed = {n: v for n, v in told.items() if n in PASSED_ON or n.startswith(PASSED_ON_PREFIXES)}
        return Reply(self, status, told.get("content-type", "").partition(";")[0].strip().lower(), passed)

    def failed(self, error: StreamError, status: int = 502) -> Refusal:
        """The answer where no reply came from upstream at all."""
        self.outcome.note(error)
        found, body = self.route.client.write_error(error, status)
        return Refusal(Head(found, JSON_HEADERS), dumps(body))

    def chain(self, arriving: Form) -> Stage[bytes, bytes]:
        """Fresh stages for the answer."""
        route = self.route
        return route.recipe(
            route.upstream,
            route.client,
            arriving=arriving,
            leaving=Form.STREAM if self.facts.stream else Form.WHOLE,
            facts=self.facts,
            ledger=self._answers,
            limits=route.limits,
            outcome=self.outcome,
            options=evolve(route.answers, upstream=route.provider),
        )


@define
class Reply(Stage[bytes, bytes]):
    """An upstream's reply becomes the client's, whatever it is: streamed, whole or an error; as asked for, or not.

    `head` is what to send before the first bytes that come out. It is None while that is open: until the first byte
    where the content type does not tell, and to the end for a whole answer and for an error.
    """

    exchange: Exchange
    status: int
    content_type: str
    headers: Mapping[str, str]
    head: Head | None = field(init=False, default=None)
    ended: bool = field(init=False, default=False)
    _chain: Stage[bytes, bytes] | None = field(init=False, default=None)
    _error: bytearray | None = field(init=False, default=None)
    """The body of an error."""

    def __attrs_post_init__(self) -> None:
        if self.status >= 400:
            self._error = bytearray()
        elif self.content_type == "text/event-stream":
            self._decide(Form.STREAM)
        elif self.content_type.endswith("json") and "ndjson" not in self.content_type:
            self._decide(Form.WHOLE)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return (0 if self._chain is None else self._chain.held) + len(self._error or b"")

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        if self._error is not None:
            room = self.exchange.route.limits.line_bytes - len(self._error)
            self._error += b"".join(items)[: max(0, room)]
            return ()
        if self._chain is None and (first := b"".join(items).lstrip()[:1]):
            self._decide(Form.WHOLE if first in b"{[<" else Form.STREAM)
        if self._chain is None:
            return ()
        out = self._chain.receive(items)
        return self._made(out)

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        if self._error is not None:
            self.ended = True
            return self._failed(self._error)
        if self._chain is None:
            self._decide(Form.STREAM if self.exchange.facts.stream else Form.WHOLE)
        out = self._chain.receive_eof(cause) if self._chain is not None else ()
        out = self._made(out)
        self.ended = True
        return out

    def idle(self) -> Sequence[bytes]:
        return () if self.head is None or self._chain is None else self._chain.idle()

    def _decide(self, arriving: Form) -> None:
        self._chain = self.exchange.chain(arriving)
        if arriving is Form.STREAM and self.exchange.facts.stream:
            self.head = Head(200, {**self.headers, **STREAM_HEADERS})

    def _made(self, out: Sequence[bytes]) -> Sequence[bytes]:
        """Whole answers come out at one stroke, and only then is it known how they went."""
        self.ended = self._chain is not None and self._chain.ended
        if out and self.head is None:
            error = self.exchange.outcome.error
            if error is not None:
                status, body = self.exchange.route.client.write_error(error, 0)
                self.head = Head(status, {**self.headers, **JSON_HEADERS})
                return (dumps(body),)
            streams = self.exchange.facts.stream
            self.head = Head(200, {**self.headers, **(STREAM_HEADERS if streams else JSON_HEADERS)})
        return out

    def _failed(self, body: bytearray) -> Sequence[bytes]:
        """The upstream's error in the client's words."""
        text = bytes(body)
        try:
            parsed: Any = loads(text)
        except (ValueError, PipelineError):
            parsed = None
        error = self.exchange.route.upstream.read_error(self.status, parsed)
        self.exchange.outcome.note(error)
        status, written = self.exchange.route.client.write_error(error, self.status)
        self.head = Head(status, {**self.headers, **JSON_HEADERS})
        return (dumps(written),)
