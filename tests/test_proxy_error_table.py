"""Each class of upstream error at each client, over every upstream: status, shape, and what the SDKs make of it.

The table is what a client is told; the official SDKs show that it acts on it: the exception that it raises, and whether
it asks again.
"""

import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from attrs import evolve, field, frozen

from examples.gateway.config import Config
from examples.raw_socket.connection import Connection
from tests.test_proxy_openai import ASKED
from tests.upstreams import (
    EVERY_HOST,
    QUESTION,
    SCRIPTS,
    Host,
    Script,
    Server,
    listening,
    openai_sdk,
    over,
    playing,
    refusing,
    sdk,
)

pytestmark = [
    pytest.mark.anyio,
    EVERY_HOST,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),  # the SDK's, left to the collector
]
QUESTIONS: dict[str, dict[str, Any]] = {
    "messages": {"model": "m", "max_tokens": 64, "messages": [QUESTION]},
    "chat": ASKED["/chat/completions"],
    "responses": ASKED["/responses"],
}
CLIENTS = [*QUESTIONS]
Ask = Callable[[bool], Awaitable[Any]]


@frozen
class Told:
    """What a client is told: the status, the error's type and, in OpenAI's dialects, its code; the SDK's exception."""

    status: int
    type: str
    raised: str
    code: str | None = None
    theirs: bool = False
    """The code is the upstream's own; Messages has none."""


@frozen(kw_only=True)
class Row:
    """A class of error: what upstreams say, by their dialect, and what clients are told, by theirs."""

    status: int
    said: Mapping[str, Any]
    """The error object of each upstream; of all, under the empty name; a text is a body of another kind."""
    told: Mapping[str, Told]
    again: bool = False
    """Whether the SDKs ask again."""
    statuses: Mapping[str, int] = field(factory=dict)
    """The upstreams' own statuses, where they differ."""

    def tells(self, dialect: str) -> bool:
        """Whether the upstream's body is an error of its dialect, so that a client of the same gets it as it came."""
        return not isinstance(self.said.get(dialect, self.said.get("")), str)

    def body(self, dialect: str) -> str:
        error = self.said.get(dialect, self.said.get(""))
        if isinstance(error, str):
            return error
        return json.dumps({"type": "error", "error": error} if dialect == "messages" else {"error": error})


def told(messages: Told, chat: Told, responses: Told | None = None) -> dict[str, Told]:
    """By client; OpenAI's two are told alike unless it is said."""
    return {"messages": messages, "chat": chat, "responses": responses or chat}


def openai_error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"message": message, "type": kind, "param": None, "code": code}


def messages_error(message: str, kind: str) -> dict[str, Any]:
    return {"type": kind, "message": message}


SLOW = Row(
    status=429,
    said={
        "": openai_error("slow down", "requests", "rate_limit_exceeded"),
        "messages": messages_error("slow down", "rate_limit_error"),
    },
    told=told(
        Told(429, "rate_limit_error", "RateLimitError"),
        Told(429, "rate_limit_error", "RateLimitError", "rate_limit_exceeded"),
    ),
    again=True,
)

ROWS = {
    "invalid request": Row(
        status=400,
        said={
            "": openai_error("top_p is odd", "invalid_request_error"),
            "messages": messages_error("top_p is odd", "invalid_request_error"),
        },
        told=told(
            Told(400, "invalid_request_error", "BadRequestError"), Told(400, "invalid_request_error", "BadRequestError")
        ),
    ),
    "context length": Row(
        status=400,
        said={
            "": openai_error("too long", "invalid_request_error", "context_length_exceeded"),
            "messages": messages_error("prompt is too long: 9 > 8", "invalid_request_error"),
        },
        told=told(
            Told(400, "invalid_request_error", "BadRequestError"),
            Told(400, "invalid_request_error", "BadRequestError", "context_length_exceeded"),
        ),
    ),
    "unprocessable": Row(
        status=422,
        said={"": '{"detail":[{"msg":"top_p is odd"}]}'},
        told=told(
            Told(422, "invalid_request_error", "UnprocessableEntityError"),
            Told(422, "invalid_request_error", "UnprocessableEntityError"),
        ),
    ),
    "authentication": Row(
        status=401,
        said={
            "": openai_error("no such key", "invalid_request_error", "invalid_api_key"),
            "messages": messages_error("no such key", "authentication_error"),
        },
        told=told(
            Told(401, "authentication_error", "AuthenticationError"),
            Told(401, "authentication_error", "AuthenticationError", "invalid_api_key", True),
        ),
    ),
    "billing": Row(
        status=402,
        said={
            "": openai_error("no credit", "billing_error"),
            "messages": messages_error("no credit", "billing_error"),
        },
        told=told(
            Told(402, "billing_error", "PaymentRequiredError"),
            Told(402, "billing_error", "APIStatusError"),
            Told(402, "insufficient_quota", "APIStatusError", "insufficient_quota"),
        ),
    ),
    "permission": Row(
        status=403,
        said={"": "no", "messages": messages_error("no", "permission_error")},
        told=told(
            Told(403, "permission_error", "PermissionDeniedError"),
            Told(403, "permission_error", "PermissionDeniedError"),
        ),
    ),
    "not found": Row(
        status=404,
        said={
            "": openai_error("no such model", "invalid_request_error", "model_not_found"),
            "messages": messages_error("model: no such", "not_found_error"),
        },
        told=told(
            Told(404, "not_found_error", "NotFoundError"),
            Told(404, "not_found_error", "NotFoundError", "model_not_found", True),
        ),
    ),
    "too large": Row(
        status=413,
        said={
            "": openai_error("too large", "invalid_request_error"),
            "messages": messages_error("too large", "request_too_large"),
        },
        told=told(
            Told(413, "request_too_large", "ContentTooLargeError"),
            Told(413, "invalid_request_error", "APIStatusError", "request_too_large"),
        ),
    ),
    "rate limit": SLOW,
    "quota": Row(
        status=429,
        said={
            "": openai_error("pay", "insufficient_quota", "insufficient_quota"),
            "messages": messages_error("pay", "insufficient_quota"),
        },
        told=told(
            Told(429, "billing_error", "RateLimitError"),
            Told(429, "insufficient_quota", "RateLimitError", "insufficient_quota"),
        ),
        again=True,
    ),
    "the provider's fault": Row(
        status=500,
        said={"": openai_error("broken", "server_error"), "messages": messages_error("broken", "api_error")},
        told=told(Told(500, "api_error", "InternalServerError"), Told(500, "server_error", "InternalServerError")),
        again=True,
    ),
    "a bad gateway": Row(
        status=502,
        said={"": "<html>Bad gateway</html>"},
        told=told(Told(502, "api_error", "InternalServerError"), Told(502, "server_error", "InternalServerError")),
        again=True,
    ),
    "overloaded": Row(
        status=503,
        statuses={"messages": 529},
        said={
            "": openai_error("busy", "service_unavailable", "server_is_overloaded"),
            "messages": messages_error("busy", "overloaded_error"),
        },
        told=told(
            Told(529, "overloaded_error", "OverloadedError"),
            Told(503, "overloaded_error", "InternalServerError", "server_is_overloaded", True),
            Told(503, "server_error", "InternalServerError", "server_is_overloaded"),
        ),
        again=True,
    ),
    "timeout": Row(
        status=504,
        said={"": "<html>timeout</html>"},
        told=told(
            Told(504, "timeout_error", "GatewayTimeoutError"),
            Told(504, "timeout_error", "InternalServerError"),
            Told(504, "server_error", "InternalServerError"),
        ),
        again=True,
    ),
    "a redirection": Row(
        status=302,
        said={"": ""},
        told=told(
            Told(502, "api_error", "InternalServerError"),
            Told(502, "server_error", "InternalServerError", "redirected"),
        ),
        again=True,
    ),
    "no answer": Row(
        status=200,
        said={"": "<html>Sign in</html>"},
        told=told(
            Told(502, "api_error", "InternalServerError"),
            Told(502, "server_error", "InternalServerError", "invalid_json"),
        ),
        again=True,
    ),
    "an error that says it is none": evolve(SLOW, status=200),
}


async def drained(chunks: AsyncIterable[Any]) -> None:
    async for _ in chunks:
        pass


@asynccontextmanager
async def asking(client: str, url: str) -> AsyncIterator[Ask]:
    """What asks with the SDK, allowed to ask twice, and gives the exception that it raises."""
    async with sdk(url) as messages, openai_sdk(url) as openais:
        create: Any = messages.with_options(max_retries=1).messages.create
        if client == "chat":
            create = openais.with_options(max_retries=1).chat.completions.create
        elif client == "responses":
            create = openais.with_options(max_retries=1).responses.create

        async def ask(streams: bool) -> Any:
            with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as raised:
                await create(**QUESTIONS[client], stream=streams)
            return raised.value

        yield ask


def answering(dialect: str, rows: Iterator[Row]) -> Server:
    """An upstream that answers as one row after the other says; what it is asked again is answered alike."""
    said: list[Row] = []

    async def answer(server: Server, client: Connection) -> None:
        if len(server.asked) == 1:
            said.append(next(rows))
        row = said[-1]
        more = {"retry_after_ms": "1", "x_request_id": "req-9", "location": "/elsewhere"}
        refusal = refusing(row.statuses.get(dialect, row.status), row.body(dialect), **more)
        await refusal.answer(server, client)

    return Server(answer)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_class_of_error_is_told_in_the_clients_words(host: Host, script: Script, client: str) -> None:
    server = answering(script.dialect, iter(ROWS.values()))
    async with over(host, server, dialect=script.dialect) as url, asking(client, url) as ask:
        for at, (name, row) in enumerate(ROWS.items()):
            due = row.told[client]
            server.asked.clear()
            error = await ask(at % 2 == 0)
            answer = error.response.json()
            said = answer["error"]
            assert (error.status_code, type(error).__name__) == (due.status, due.raised), name
            assert error.request_id == "req-9"
            assert error.response.headers["retry-after-ms"] == "1"
            assert len(server.asked) == (2 if row.again else 1), name
            if script.dialect == client and row.tells(client):
                assert error.response.text == row.body(client), name
                continue
            assert said["type"] == due.type, name
            if client == "messages":
                assert answer["type"] == "error"
            else:
                assert said.keys() == {"message", "type", "param", "code"}
                code = None if due.theirs and script.dialect == "messages" else due.code
                assert said["code"] == code, name


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_an_error_behind_the_beginning_is_told_in_the_clients_stream(
    host: Host, script: Script, client: str
) -> None:
    """The status has gone out. The SDKs raise it, but for Responses, where it is the response's own end."""
    server = playing(script.hello, script.error)
    async with over(host, server, dialect=script.dialect) as url:
        if client == "responses":
            async with openai_sdk(url) as talking:
                events = [event async for event in await talking.responses.create(**ASKED["/responses"], stream=True)]
            assert events[-1].type == "response.failed"
            failure = events[-1].response.error
            assert failure is not None
            code = "x" if script.dialect == client else "server_error"  # its own words pass as they came
            assert (failure.code, failure.message) == (code, "out of memory")
        elif client == "chat":
            async with openai_sdk(url) as talking:
                chunks = await talking.chat.completions.create(**ASKED["/chat/completions"], stream=True)
                with pytest.raises(openai.APIError, match="out of memory") as ours:
                    await drained(chunks)
            assert ours.value.type == "server_error"
        else:
            async with sdk(url) as theirs, theirs.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as said:
                with pytest.raises(anthropic.APIStatusError, match="out of memory") as raised:
                    await said.get_final_message()
            assert isinstance(raised.value.body, dict)
            assert raised.value.body["error"]["type"] == "api_error"
    assert len(server.asked) == 1


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_an_upstream_that_cannot_be_reached_is_told_in_the_clients_words(
    host: Host, script: Script, client: str
) -> None:
    async with listening(playing()) as gone:
        pass
    async with host(Config(port=0, dialect=script.dialect, upstream=gone)) as url, asking(client, url) as ask:
        error = await ask(True)
    said = error.response.json()["error"]
    assert error.status_code == 502
    assert said["type"] == ("api_error" if client == "messages" else "server_error")
    assert said.get("code") == (None if client == "messages" else "connection_failed")
    assert type(error).__name__ == "InternalServerError"
