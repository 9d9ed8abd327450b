"""One client dialect over one upstream: a request goes up, a streamed, a whole or a failed answer comes down."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from attrs import define, evolve, field, frozen

from pipeline.dialect import NO_REQUEST, Dialect, RequestFacts, ShownReasoning, ToldLimit
from pipeline.errors import PipelineError
from pipeline.estimate import estimate
from pipeline.events import StreamError
from pipeline.failure import redirected
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.members import read_body
from pipeline.outcome import Outcome
from pipeline.own import read_own
from pipeline.reply import JSON_TYPE, STREAM_TYPE, ErrorBody, Form, Heading, Refusal, Reply, passed_on, refused
from pipeline.request import DEFAULT_OPTIONS, Request, RequestOptions, ToolUsePart
from pipeline.stage import AsyncStage, Stage, cause_of

AnyChain = Stage[bytes, bytes] | AsyncStage[bytes, bytes]
Made = TypeVar("Made", bound=AnyChain, covariant=True)


Recover = Literal["native", "prompt", "off"]
Leftover = Literal["verbatim", "hide"]


@frozen(kw_only=True)
class AnswerOptions:
    """What a route decides about the answers it brings down."""

    envelope: bool = True
    """Carry another provider's opaque reasoning in an envelope, so that it can go back; else leave it out."""
    upstream: str = ""
    """The provider's name in envelopes; empty: its dialect's."""
    recover: Recover = "native"
    """Tool calls and reasoning written as text. `native`: the model calls tools in the upstream's own form, so calls in
    its text are taken up only if it made no other; `prompt`: it was told to write them as text; `off`: text is text."""
    residue: Leftover = "verbatim"
    """What becomes of markup that makes no call because the model made one in the upstream's own form. `hide` also
    drops a closer that has nothing to close, where it stands at a line's start or end, or right behind a word."""
    unfinished: Leftover = "verbatim"
    """What becomes of markup that the end of the answer cut."""
    reasoning_open: bool = False
    """The prompt ended inside an open reasoning tag, so the text begins as reasoning."""
    weak: tuple[str, ...] = ()
    """Families of markup that prose may hold, and that are read all the same."""
    stream_calls: bool = False
    """A call written as text begins in the stream as soon as its name is certain, not when its body is whole, and its
    arguments follow for as long as they are strict JSON. Only with `recover="prompt"`, between two dialects, and not in
    reasoning. The price: what was begun cannot be taken back. A body that turns out to be none, or that lacks its end
    leaves the call open and fails the stream (`invalid_tool_arguments`), and with it the calls behind; else it would be
    dropped, or text, and the calls behind be made. A key that comes twice in arguments stays there twice, where they
    are mended too. A call that the token limit cuts is closed where it is, as the vendors do, also with
    `unfinished="hide"`."""
    show_reasoning: ShownReasoning = "summary"
    """What another dialect's reasoning is for a Responses client: a summary, which every client shows, or the raw text
    that it is (`content`), which some do not."""
    told_limit: ToldLimit = "incomplete"
    """What a Responses client of another dialect's answer is told where a limit or a filter ended it: that it is
    `incomplete`, which it is, or `completed`: Codex asks again for what is incomplete, and gets it again. An answer
    with a call that was cut is incomplete all the same. What is not told is recorded."""


DEFAULT_ANSWERS = AnswerOptions()
NOTHING: Mapping[str, str] = {}


class Recipe(Protocol[Made]):
    """Fresh stages for one answer: the composition root, which knows all stages."""

    def __call__(
        self,
        upstream: Dialect,
        client: Dialect,
        *,
        arriving: Form | None,
        leaving: Form,
        facts: RequestFacts,
        ledger: Ledger,
        limits: Limits,
        outcome: Outcome,
        options: AnswerOptions,
    ) -> Made:
        """The chain from the upstream's bytes to the client's. `arriving` None: the first byte tells the form."""


@frozen
class UpstreamRequest:
    """What to send up: a path behind the base URL, headers to add, the body."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@frozen(kw_only=True)
class Route:
    """Requests in the words of `client` become requests of `upstream`, its answers become the client's."""

    client: Dialect
    upstream: Dialect
    recipe: Recipe[AnyChain]
    requests: RequestOptions = DEFAULT_OPTIONS
    answers: AnswerOptions = DEFAULT_ANSWERS
    models: Mapping[str, str] = field(factory=dict)
    """The upstream's model for a client's, by the empty name that for a client which names none; a model that is not
    here goes up as it is."""
    streams_only: bool = False
    """The upstream gives nothing but streams: one is asked for also where the client wants a whole answer."""
    without: frozenset[str] = frozenset()
    """Members of a body that the upstream refuses: they are left out, and that is recorded."""
    limits: Limits = DEFAULT_LIMITS

    @property
    def provider(self) -> str:
        """The upstream's name in envelopes."""
        return self.answers.upstream or self.upstream.name

    @property
    def same(self) -> bool:
        """Whether client and upstream speak one dialect."""
        return self.client.name == self.upstream.name

    def open(self, body: bytes, *, query: str = "", headers: Mapping[str, str] = NOTHING) -> "Exchange":
        """Begin an exchange with the body of a client's request.

        `query` is what its path ends with, `headers` those of the client's dialect: they say which form of it is
        spoken, so an upstream of another one is not told, and that is recorded.
        """
        asked = Ledger("request")
        try:
            facts, request = self._translated(body, asked)
            request = self._told(request, query, headers, asked)
        except PipelineError as error:
            cause = cause_of(error)
            exchange = Exchange(self, refused(self.client, cause), asked)
            exchange.outcome.note(cause)
            return exchange
        return Exchange(self, request, asked, facts)

    def _told(
        self, request: UpstreamRequest, query: str, headers: Mapping[str, str], ledger: Ledger
    ) -> UpstreamRequest:
        """What to send up with what the client says beside the body."""
        if self.same:
            path = f"{request.path}?{query}" if query else request.path
            return evolve(request, path=path, headers={**request.headers, **headers})
        for name in (*(["query"] if query else ()), *headers):
            ledger.record("Route", name, "dropped", "it is for an upstream of the client's dialect")
        return request

    def _read(self, members: Mapping[str, Any], ledger: Ledger) -> Request:
        """What the client asks; where it names no model (it may stand in the URL), the one that is asked for then."""
        if self.same:
            return read_own(self.client, members, ledger=ledger, limits=self.limits)
        if members.get("model") in (None, "") and (model := self.models.get("")):
            members = {**members, "model": model}
        return self.client.parse(members, ledger=ledger, limits=self.limits)

    def _translated(self, body: bytes, ledger: Ledger) -> tuple[RequestFacts, UpstreamRequest]:
        """What the answer's stages need to know, and what to send up."""
        members = read_body(body, limits=self.limits)
        request = self._read(members, ledger)
        model = self.models.get(request.model, request.model)
        options = evolve(self.requests, model=model, upstream=self.provider)
        asked = evolve(request, stream=True) if self.streams_only else request
        built = self.upstream.build(asked, ledger=ledger, limits=self.limits, options=options)
        calls = frozenset(part.id for part in request.parts() if isinstance(part, ToolUsePart)) | built.map.ids.keys()
        facts = evolve(self.client.facts(members).sent(built.map), usage=estimate(request), calls=calls)
        headers = {"accept": STREAM_TYPE if asked.stream else JSON_TYPE, "content-type": JSON_TYPE}
        for name in sorted(built.body.keys() & self.without):
            ledger.record("Route", name, "dropped", "the upstream refuses it")
        left = {name: value for name, value in built.body.items() if name not in self.without}
        return facts, UpstreamRequest(self.upstream.path, headers, dumps(left))


@define
class Exchange:
    """One request and its answer."""

    route: Route
    request: UpstreamRequest | Refusal
    """What to send up, or, if that cannot be done, what to answer instead."""
    _asked: Ledger
    facts: RequestFacts = NO_REQUEST
    outcome: Outcome = field(init=False, factory=Outcome)

    @property
    def ledger(self) -> list[dict[str, str]]:
        """Every loss so far, both ways."""
        return [*self._asked.as_dicts(), *self.outcome.ledger.as_dicts()]

    @property
    def form(self) -> Form:
        """The form of answer that the client asked for."""
        return Form.STREAM if self.facts.stream else Form.WHOLE

    def reply(self, status: int, headers: Mapping[str, str]) -> Reply:
        """What becomes of the upstream's reply, given its head. Called once."""
        passed = passed_on(headers, self.route.client, self.route.upstream)
        same = self.route.same
        if 200 <= status < 300:
            heading = Heading(self.route.client, self.form, self.outcome, passed, same=same)
            return Reply(self._answer() | heading, heading)
        heading = Heading(self.route.client, self.form, self.outcome, passed, status, same=same and status >= 400)
        read = partial(self.route.upstream.read_error, status)
        location = next((value for name, value in headers.items() if name.lower() == "location"), "")
        if 300 <= status < 400 and location:
            return Reply(ErrorBody(lambda said: redirected(status, location), self.outcome) | heading, heading)
        return Reply(ErrorBody(read, self.outcome, self.route.limits) | heading, heading)

    def failed(self, error: StreamError) -> Refusal:
        """The answer where there is no reply from the upstream."""
        self.outcome.note(error)
        return refused(self.route.client, error)

    def cancel(self) -> None:
        """The client left."""
        self.outcome.cancel()

    def _answer(self) -> AnyChain:
        """Fresh stages for an answer in whatever form it comes."""
        route = self.route
        return route.recipe(
            route.upstream,
            route.client,
            arriving=None,
            leaving=self.form,
            facts=self.facts,
            ledger=self.outcome.ledger,
            limits=route.limits,
            outcome=self.outcome,
            options=route.answers,
        )
