"""What stands behind each path. A host treats all of it alike: it sends up what is to be asked, else it answers."""

import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import unquote

from attrs import evolve, field, frozen

from examples.gateway.compressed import UnknownEncoding, decoded, encoding_of
from examples.gateway.config import Config
from examples.gateway.models import ModelsExchange
from examples.gateway.visitors import Visitors
from pipeline.dialect import RequestFacts, dialect
from pipeline.errors import ClientError, ErrorKind, PipelineError
from pipeline.estimate import estimate
from pipeline.events import StreamError
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.members import read_body
from pipeline.outcome import Verdict
from pipeline.reply import JSON_HEADERS, JSON_TYPE, NAME, VALUE, Head, Refusal, refused
from pipeline.route import AnyChain, Exchange, Recipe, Route, UpstreamRequest
from pipeline.stage import cause_of
from stages.recipe import default_chain

CLIENTS = ("messages", "chat", "responses")
"""The dialects that clients may speak, in the order in which they are told apart by their paths."""
VERSION = "/v1"
"""What stands before every path; a client whose base URL lacks it is answered as well."""
PROBES = ("/", "/api/hello")
"""What clients send a HEAD to, to see whether somebody is there."""
MODELS = "/models"
ALL_MODELS = {"messages": "models?limit=1000"}
"""Where an upstream has the list of its models, if it gives only some of it unasked."""
SIGNS = ("anthropic-version", "x-api-key")
"""Headers that tell a Messages client where the path does not."""
SECRET = re.compile("auth|cookie|key|secret|token")
"""What a header that holds credentials may be named: the host has its own."""
QUERY = re.compile("[\x21-\x7e]*")
"""What may stand behind a path."""
UPGRADE_REQUIRED = 426
"""What makes Codex go on without a websocket."""
UNSUPPORTED = 415
"""What a body is answered with that is compressed in a way that nobody here knows."""
WHOLE = RequestFacts(stream=False)
COUNTED = {**JSON_HEADERS, "x-streamweir-estimate": "characters"}
"""The headers of a count of tokens: nobody was asked, it is an estimate by the number of characters."""


def passed_up(headers: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """What an upstream of the client's dialect is told of its headers: those `known`, and none that is a secret."""
    begun = tuple(name for name in known if name.endswith("-"))
    return {
        name: value
        for name, value in headers.items()
        if name in known or (begun and name.startswith(begun) and NAME.fullmatch(name) and not SECRET.search(name))
        if VALUE.fullmatch(value)
    }


def _in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@frozen(kw_only=True)
class Asked:
    """A client's request: its method, its target as it stands on the wire, its headers, by names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(factory=dict, converter=_in_lower_case)
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query and without the version of the API."""
        path = unquote(self.target.partition("?")[0])
        return path.removeprefix(VERSION) if path.startswith(f"{VERSION}/") else path

    @property
    def query(self) -> str:
        """What stands behind the path, as it came; one that no server can write is none."""
        query = self.target.partition("?")[2].partition("#")[0]
        return query if QUERY.fullmatch(query) else ""

    @property
    def client(self) -> str:
        """The dialect that its client speaks, by the path, else by the headers."""
        for name in CLIENTS:
            home = f"/{dialect(name).path}"
            if self.path == home or self.path.startswith(f"{home}/"):
                return name
        return "messages" if any(sign in self.headers for sign in SIGNS) else "chat"


@frozen
class Gateway:
    """Answers clients of every dialect over one upstream."""

    routes: Mapping[str, Route]
    """By what the client speaks."""
    visitors: Visitors

    @classmethod
    def of(cls, config: Config, recipe: Recipe[AnyChain] = default_chain) -> "Gateway":
        """The gateway that a configuration asks for."""
        return cls(
            {
                client: Route(
                    client=dialect(client),
                    upstream=dialect(config.dialect),
                    recipe=recipe,
                    streams_only=config.streams_only,
                    without=config.without,
                    requests=config.requests,
                    answers=config.answers,
                    models=config.models,
                    limits=config.limits,
                )
                for client in CLIENTS
            },
            Visitors.of(config.host, config.allow_host),
        )

    @property
    def limits(self) -> Limits:
        """The bounds of every route."""
        return self.routes[CLIENTS[0]].limits

    def open(self, asked: Asked) -> Exchange:
        """Begin an exchange with a client's request.

        A body of which more than `limits.request_bytes` were read is refused, however much of it is missing.
        """
        try:
            self.visitors.check(asked.headers)
            if asked.method == "HEAD" and asked.path in KNOWN:
                return self._answer(asked, Refusal(Head(200, JSON_HEADERS), b""))
            if asked.headers.get("upgrade", "").lower() == "websocket":
                error = StreamError(ErrorKind.INVALID_REQUEST, "there is no websocket here; ask by POST")
                return self.refuse(asked, error, UPGRADE_REQUIRED)
            asked = evolve(asked, body=decoded(asked.body, encoding_of(asked.headers), self.limits.request_bytes))
            if (begin := TABLE.get((asked.method, asked.path))) is not None:
                return begin(self, asked)
            if asked.method == "GET" and asked.path.startswith(f"{MODELS}/"):
                return self._models(asked, asked.path.removeprefix(f"{MODELS}/"))
            wanted = unquote(asked.target.partition("?")[0])
            raise ClientError(f"there is no {asked.method} {wanted}", kind=ErrorKind.NOT_FOUND)
        except UnknownEncoding as error:
            return self.refuse(asked, cause_of(error), UNSUPPORTED)
        except PipelineError as error:
            return self.refuse(asked, cause_of(error))

    def refuse(self, asked: Asked, error: StreamError, status: int = 0) -> Exchange:
        """An exchange that ends with an error before it has begun. `status`: if it is not that of the error's class."""
        exchange = self._local(asked, refused(self._route(asked).client, error, status))
        exchange.outcome.note(error)
        return exchange

    def _route(self, asked: Asked) -> Route:
        return self.routes[asked.client]

    def _generate(self, asked: Asked) -> Exchange:
        """What every dialect is there for."""
        route = self._route(asked)
        told = passed_up(asked.headers, route.client.tells)
        return route.open(asked.body, query=asked.query, headers=told)

    def _count(self, asked: Asked) -> Exchange:
        """Raises `ClientError` for what is no request."""
        body = {**read_body(asked.body, limits=self.limits), "max_tokens": 1}
        usage = estimate(self._route(asked).client.parse(body, ledger=Ledger(), limits=self.limits))
        return self._answer(asked, Refusal(Head(200, COUNTED), dumps({"input_tokens": usage.input})))

    def _models(self, asked: Asked, only: str = "") -> Exchange:
        route = self._route(asked)
        request = UpstreamRequest(ALL_MODELS.get(route.upstream.name, "models"), {"accept": JSON_TYPE}, b"")
        return ModelsExchange(route, request, Ledger(), WHOLE, only=only)

    def _healthz(self, asked: Asked) -> Exchange:
        return self._answer(asked, Refusal(Head(200, JSON_HEADERS), dumps({"status": "ok"})))

    def _answer(self, asked: Asked, answer: Refusal) -> Exchange:
        exchange = self._local(asked, answer)
        exchange.outcome.verdict = Verdict.COMPLETE
        return exchange

    def _local(self, asked: Asked, answer: Refusal) -> Exchange:
        return Exchange(self._route(asked), answer, Ledger())


TABLE: dict[tuple[str, str], Callable[[Gateway, Asked], Exchange]] = {
    **{("POST", f"/{dialect(name).path}"): Gateway._generate for name in CLIENTS},
    ("POST", "/messages/count_tokens"): Gateway._count,
    ("GET", MODELS): Gateway._models,
    ("GET", "/healthz"): Gateway._healthz,
}
KNOWN = {*PROBES, *(path for _, path in TABLE)}
"""Where a HEAD finds somebody."""
