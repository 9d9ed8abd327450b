"""What stands behind each path. A host treats all of it alike: it sends up what is to be asked, else it answers."""

from collections.abc import Callable
from urllib.parse import unquote

from attrs import frozen

from examples.gateway.config import Config
from examples.gateway.models import ModelsExchange
from pipeline.dialect import RequestFacts, dialect
from pipeline.errors import ClientError, ErrorKind, PipelineError
from pipeline.estimate import estimate
from pipeline.events import StreamError
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.members import read_body
from pipeline.outcome import Verdict
from pipeline.reply import JSON_HEADERS, JSON_TYPE, Head, Refusal, refused
from pipeline.route import AnyChain, Exchange, Recipe, Route, UpstreamRequest
from pipeline.stage import cause_of
from stages.recipe import default_chain

PROBES = ("/", "/api/hello")
"""What clients send a HEAD to, to see whether somebody is there."""
MODELS = "/v1/models"
WHOLE = RequestFacts(stream=False)
COUNTED = {**JSON_HEADERS, "x-streamweir-estimate": "characters"}
"""The headers of a count of tokens: nobody was asked, it is an estimate by the number of characters."""


@frozen
class Gateway:
    """Answers Messages clients over one upstream."""

    route: Route

    @classmethod
    def of(cls, config: Config, recipe: Recipe[AnyChain] = default_chain) -> "Gateway":
        """The gateway that a configuration asks for."""
        return cls(
            Route(
                client=dialect("messages"),
                upstream=dialect(config.dialect),
                recipe=recipe,
                streams_only=config.streams_only,
                without=config.without,
                requests=config.requests,
                answers=config.answers,
                models=config.models,
                limits=config.limits,
            )
        )

    def open(self, method: str, target: str, body: bytes) -> Exchange:
        """Begin an exchange with a client's request: its target as it stands on the wire, its body.

        A body of which more than `limits.request_bytes` were read is refused, however much of it is missing.
        """
        path = unquote(target.partition("?")[0])
        if method == "HEAD" and path in KNOWN:
            return self._answer(Refusal(Head(200, JSON_HEADERS), b""))
        try:
            if (begin := TABLE.get((method, path))) is not None:
                return begin(self, body)
            if method == "GET" and path.startswith(f"{MODELS}/"):
                return self._models(body, path.removeprefix(f"{MODELS}/"))
            raise ClientError(f"there is no {method} {path}", kind=ErrorKind.NOT_FOUND)
        except PipelineError as error:
            return self.refuse(cause_of(error))

    def refuse(self, error: StreamError) -> Exchange:
        """An exchange that ends with an error before it has begun."""
        exchange = self._local(refused(self.route.client, error))
        exchange.outcome.note(error)
        return exchange

    def _messages(self, body: bytes) -> Exchange:
        return self.route.open(body)

    def _count(self, body: bytes) -> Exchange:
        """Raises `ClientError` for what is no request."""
        limits = self.route.limits
        asked = {**read_body(body, limits=limits), "max_tokens": 1}
        usage = estimate(self.route.client.parse(asked, ledger=Ledger(), limits=limits))
        return self._answer(Refusal(Head(200, COUNTED), dumps({"input_tokens": usage.input})))

    def _models(self, body: bytes, only: str = "") -> Exchange:
        request = UpstreamRequest("models", {"accept": JSON_TYPE}, b"")
        return ModelsExchange(self.route, request, Ledger(), WHOLE, only=only)

    def _healthz(self, body: bytes) -> Exchange:
        return self._answer(Refusal(Head(200, JSON_HEADERS), dumps({"status": "ok"})))

    def _answer(self, answer: Refusal) -> Exchange:
        exchange = self._local(answer)
        exchange.outcome.verdict = Verdict.COMPLETE
        return exchange

    def _local(self, answer: Refusal) -> Exchange:
        return Exchange(self.route, answer, Ledger())


TABLE: dict[tuple[str, str], Callable[[Gateway, bytes], Exchange]] = {
    ("POST", "/v1/messages"): Gateway._messages,
    ("POST", "/v1/messages/count_tokens"): Gateway._count,
    ("GET", MODELS): Gateway._models,
    ("GET", "/healthz"): Gateway._healthz,
}
KNOWN = {*PROBES, *(path for _, path in TABLE)}
"""Where a HEAD finds somebody."""
