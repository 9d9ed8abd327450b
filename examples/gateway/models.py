"""`/v1/models` for clients of every dialect: those that the configuration names, and those that the upstream has."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, field, frozen

from pipeline.errors import ErrorKind, LimitExceeded
from pipeline.events import StreamError
from pipeline.jsontext import dumps, loads
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form, Heading, Reply, passed_on
from pipeline.route import Exchange
from pipeline.stage import Stage

JSONObject = dict[str, Any]

ABSENT = (404, 405, 501)
"""An upstream that answers so has no list of its models."""
EPOCH = datetime.fromtimestamp(0, UTC)


@frozen
class Model:
    """A model; one of unknown age is as old as the epoch."""

    name: str
    since: datetime = EPOCH


class Words:
    """How OpenAI's clients are told of models."""

    def model(self, model: Model) -> JSONObject:
        """One."""
        return {
            "id": model.name,
            "object": "model",
            "created": int(model.since.timestamp()),
            "owned_by": "upstream",
        }

    def page(self, models: Sequence[JSONObject]) -> JSONObject:
        """The one page of a list."""
        return {"object": "list", "data": models}


class MessagesWords(Words):
    """How Messages clients are."""

    def model(self, model: Model) -> JSONObject:
        return {
            "type": "model",
            "id": model.name,
            "display_name": model.name,
            "created_at": f"{model.since:%Y-%m-%dT%H:%M:%SZ}",
        }

    def page(self, models: Sequence[JSONObject]) -> JSONObject:
        ends = (models[0]["id"], models[-1]["id"]) if models else (None, None)
        return {"data": models, "has_more": False, "first_id": ends[0], "last_id": ends[1]}


@define(kw_only=True)
class ModelsExchange(Exchange):
    """The upstream's models are asked for; where it has no list, the configured ones are all there are."""

    only: str = ""
    """The one model that was asked for."""

    def reply(self, status: int, headers: Mapping[str, str]) -> Reply:
        if not 200 <= status < 300 and status not in ABSENT:
            return super().reply(status, headers)
        heading = Heading(
            self.route.client, Form.WHOLE, self.outcome, passed_on(headers, self.route.client, self.route.upstream)
        )
        words = MessagesWords() if self.route.client.name == "messages" else Words()
        writer = ModelsWriter(words, tuple(self.route.models), self.only, self.outcome, self.route.limits)
        return Reply(writer | heading, heading)


@define
class ModelsWriter(Stage[bytes, bytes]):
    """At the end, the list of models, or the one asked for, in the client's words."""

    words: Words
    names: Sequence[str]
    only: str
    outcome: Outcome
    limits: Limits = DEFAULT_LIMITS
    ended: bool = field(init=False, default=False)
    _body: bytearray = field(init=False, factory=bytearray)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._body)

    def receive(self, items: Sequence[bytes]) -> Sequence[bytes]:
        self._body += b"".join(items)
        if len(self._body) > self.limits.answer_bytes:
            bound = f"the list of models is larger than {self.limits.answer_bytes} bytes"
            self.outcome.note(StreamError(ErrorKind.LIMIT, bound, "answer_bytes"))
            self._body.clear()
            self.ended = True
        return ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        if cause is not None:
            self.outcome.note(cause)
        if self.outcome.error is not None:
            return ()
        models = {name: Model(name) for name in self.names}
        for model in listed(self._body):
            models.setdefault(model.name, model)
        if self.only and self.only not in models:
            self.outcome.note(StreamError(ErrorKind.NOT_FOUND, f"there is no model {self.only}"))
            return ()
        self.outcome.verdict = Verdict.COMPLETE
        told = {name: self.words.model(model) for name, model in models.items()}
        return (dumps(told[self.only] if self.only else self.words.page([*told.values()])),)


def listed(body: bytes | bytearray) -> Iterator[Model]:
    """The models that an upstream's body names, in any of the forms that servers write; none if it is no list."""
    try:
        said = loads(bytes(body))
    except (ValueError, LimitExceeded):
        return
    if isinstance(said, dict):
        said = said.get("data") or said.get("models")
    for entry in said if isinstance(said, list) else ():
        named = entry if isinstance(entry, dict) else {"id": entry}
        name = named.get("id") or named.get("name")
        if isinstance(name, str) and name:
            yield Model(name, since(named.get("created_at") or named.get("created")))


def since(said: Any) -> datetime:
    """When a model was made, said in seconds or in ISO's words."""
    try:
        when = datetime.fromisoformat(said) if isinstance(said, str) else datetime.fromtimestamp(said, UTC)
        return when.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return EPOCH
