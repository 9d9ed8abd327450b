"""A route behind a port, and the real `anthropic` SDK in front of it: what a user of the SDK sees."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from aiohttp import web
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam
from attrs import define, field

from examples.proxy.listen import listening
from pipeline.drive import drive
from pipeline.limits import Limits
from pipeline.outcome import Verdict
from pipeline.reply import Refusal
from pipeline.route import Exchange, Route
from tests.exchange import calls, route, whole
from tests.support import DONE, call, finish, reasoning, sse, text, usage
from tests.upstreams import sdk

pytestmark = pytest.mark.anyio

QUESTION: MessageParam = {"role": "user", "content": "hello"}
HELLO = sse(text("hello"), finish(), usage(), DONE)
SAYS_HELLO = whole(content="hello")
FORMS = [True, False]


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp runs on asyncio only."""
    return "asyncio"


@define
class Upstream:
    """An upstream's reply to every request: its head, then reads, the last of which may be an error."""

    reads: Sequence[bytes | Exception]
    status: int = 200
    headers: dict[str, str] = field(factory=dict)


@define
class Host:
    """The least that a host does: it moves bytes, and decides nothing."""

    upstream: Upstream
    route: Route
    exchanges: list[Exchange] = field(init=False, factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        exchange = self.route.open(await request.read())
        self.exchanges.append(exchange)
        if isinstance(exchange.request, Refusal):
            head = exchange.request.head
            return web.Response(status=head.status, headers=head.headers, body=exchange.request.body)
        reply = exchange.reply(self.upstream.status, self.upstream.headers)
        left = list(self.upstream.reads)
        response: web.StreamResponse | None = None

        async def receive() -> bytes:
            read = left.pop(0) if left else b""
            if isinstance(read, Exception):
                raise read
            return read

        async def send(data: bytes) -> None:
            nonlocal response
            if response is None:
                assert reply.head is not None
                response = web.StreamResponse(status=reply.head.status, headers=reply.head.headers)
                await response.prepare(request)
            await response.write(data)

        await drive(receive, reply.chain, send)
        assert response is not None
        await response.write_eof()
        return response


@asynccontextmanager
async def served(
    *reads: bytes | Exception, on: Route | None = None, **members: Any
) -> AsyncIterator[tuple[Host, AsyncAnthropic]]:
    """A host before that upstream, and a client of it that does not try again."""
    host = Host(Upstream(reads, **members), on or route())
    application = web.Application()
    application.router.add_post("/v1/messages", host.answer)
    async with listening(application) as url, sdk(url) as client:
        yield host, client


async def asked(client: AsyncAnthropic, stream: bool, **members: Any) -> Message:
    """The answer to a question, streamed or not."""
    members = {"model": "m", "max_tokens": 64, "messages": [QUESTION], **members}
    if not stream:
        made: Message = await client.messages.create(**members)
        return made
    async with client.messages.stream(**members) as answer:
        return await answer.get_final_message()


async def heard(client: AsyncAnthropic, seen: list[str]) -> None:
    """Note each piece of text as it comes."""
    async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
        async for piece in stream.text_stream:
            seen.append(piece)


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("body", [HELLO, SAYS_HELLO])
async def test_the_sdk_reads_every_answer_in_the_form_it_asked_for(stream: bool, body: bytes) -> None:
    async with served(body, headers={"x-request-id": "req-7", "content-type": "text/html"}) as (host, client):
        message = await asked(client, stream)
    assert [block.model_dump(exclude_none=True) for block in message.content] == [{"type": "text", "text": "hello"}]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 10, 5)
    assert host.exchanges[0].outcome.verdict is Verdict.COMPLETE


@pytest.mark.parametrize("body", [HELLO, SAYS_HELLO])
async def test_the_sdk_is_told_the_upstreams_id_of_its_request(body: bytes) -> None:
    async with served(body, headers={"x-request-id": "req-7"}) as (_, client):
        message = await asked(client, stream=False)
    assert message._request_id == "req-7"


@pytest.mark.parametrize("stream", FORMS)
async def test_the_sdk_reads_reasoning_text_and_calls(stream: bool) -> None:
    events = [reasoning("hm"), text("a"), call(0, "i", "f", '{"x"'), call(0, arguments=": 1}"), finish("tool_calls")]
    body = whole("tool_calls", reasoning="hm", content="a", tool_calls=calls(("i", "f", '{"x": 1}')))
    for raw in (sse(*events, DONE), body):
        async with served(raw) as (_, client):
            message = await asked(client, stream)
        thinking, said, called = message.content
        assert (thinking.type, said.type, called.type) == ("thinking", "text", "tool_use")
        assert called.type == "tool_use"
        assert (called.id, called.name, called.input) == ("i", "f", {"x": 1})


def error(**members: Any) -> bytes:
    return json.dumps({"error": members}).encode()


BUSY = error(message="busy")


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, error(message="bad"), anthropic.BadRequestError),
        (401, error(message="key", code="invalid_api_key"), anthropic.AuthenticationError),
        (402, BUSY, anthropic.PaymentRequiredError),
        (403, BUSY, anthropic.PermissionDeniedError),
        (404, error(message="no such model", code="model_not_found"), anthropic.NotFoundError),
        (413, b"", anthropic.ContentTooLargeError),
        (422, BUSY, anthropic.UnprocessableEntityError),
        (429, error(message="slow", code="rate_limit_exceeded"), anthropic.RateLimitError),
        (500, b"<html>", anthropic.InternalServerError),
        (503, b"busy", anthropic.OverloadedError),
        (529, BUSY, anthropic.OverloadedError),
        (504, b"", anthropic.GatewayTimeoutError),
        (200, error(message="slow", code="rate_limit_exceeded"), anthropic.RateLimitError),
        (200, b"data: " + error(message="slow", code=429) + b"\n\n", anthropic.RateLimitError),
        (200, b"<html>busy</html>", anthropic.InternalServerError),
        (200, b"", anthropic.InternalServerError),
        (200, SAYS_HELLO[:40], anthropic.InternalServerError),
        (200, whole("tool_calls", tool_calls=calls(("i", "f", "[1"))), None),
    ],
)
async def test_the_sdk_raises_what_its_user_expects(
    stream: bool, status: int, body: bytes, kind: type[anthropic.APIStatusError] | None
) -> None:
    async with served(body, status=status, headers={"retry-after": "7", "x-request-id": "req-7"}) as (_, client):
        with pytest.raises(kind or anthropic.APIStatusError) as raised:
            await asked(client, stream)
    assert raised.value.request_id == "req-7"
    assert raised.value.response.headers["retry-after"] == "7"
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["type"] == "error"


@pytest.mark.parametrize("stream", FORMS)
async def test_a_reset_before_the_first_byte_is_an_error_that_may_go_better(stream: bool) -> None:
    async with served(ConnectionResetError()) as (host, client):
        with pytest.raises(anthropic.InternalServerError) as raised:
            await asked(client, stream)
    assert raised.value.status_code == 502
    assert host.exchanges[0].outcome.verdict is Verdict.CUT


async def test_a_reset_behind_the_first_byte_is_an_error_in_the_stream() -> None:
    seen: list[str] = []
    async with served(sse(text("half")), ConnectionResetError()) as (host, client):
        with pytest.raises(anthropic.APIStatusError) as raised:
            await heard(client, seen)
    assert (seen, raised.value.status_code, raised.value.type) == (["half"], 200, "api_error")
    assert host.exchanges[0].outcome.verdict is Verdict.CUT


async def test_a_reset_inside_a_whole_answer_is_an_error_with_a_status() -> None:
    for reads in ((SAYS_HELLO[:60],), (sse(text("half")),)):
        async with served(*reads, ConnectionResetError()) as (_, client):
            with pytest.raises(anthropic.InternalServerError):
                await asked(client, stream=False)


async def test_an_upstream_that_falls_silent_is_an_error() -> None:
    async with served(TimeoutError()) as (_, client):
        with pytest.raises(anthropic.InternalServerError):
            await asked(client, stream=True)


@pytest.mark.parametrize(
    ("members", "kind", "named"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, anthropic.BadRequestError, "hologram"),
        ({"temperature": "warm"}, anthropic.BadRequestError, "temperature"),
        ({"messages": [{"role": "user", "content": "x" * 5_000}]}, anthropic.ContentTooLargeError, "the most is 4000"),
    ],
)
async def test_a_request_that_cannot_be_sent_up_is_the_users_error(
    members: dict[str, Any], kind: type[anthropic.APIStatusError], named: str
) -> None:
    small = route(limits=Limits(request_bytes=4_000))
    async with served(HELLO, on=small) as (_, client):
        with pytest.raises(kind, match=named):
            await asked(client, stream=False, extra_body=members)
