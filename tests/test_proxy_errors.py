"""What goes wrong at the example proxy: upstreams that refuse, break off or talk nonsense, and wrong requests."""

import json
import logging
from typing import Any
from urllib.parse import unquote

import aiohttp
import anthropic
import anyio
import pytest
from aiohttp import web
from attrs import evolve

from examples.gateway.config import Config
from examples.proxy.app import serving
from examples.proxy.listen import listening
from pipeline.limits import DEFAULT_LIMITS
from tests.upstreams import (
    CALL,
    FINISH,
    HELLO,
    QUESTION,
    REQUEST,
    Server,
    begin,
    never,
    pausing,
    playing,
    proxy_over,
    refused,
    refusing,
    sdk,
    streamed,
    types,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp runs on asyncio only."""
    return "asyncio"


@pytest.mark.parametrize(
    ("status", "body", "expected", "named"),
    [
        (401, '{"error":{"message":"no such key","code":"invalid_api_key"}}', 401, "authentication_error"),
        (403, "no", 403, "permission_error"),
        (404, '{"error":{"message":"no such model"}}', 404, "not_found_error"),
        (400, '{"error":{"message":"too long","code":"context_length_exceeded"}}', 400, "invalid_request_error"),
        (422, '{"detail":[{"msg":"top_p is odd"}]}', 400, "invalid_request_error"),
        (429, '{"error":{"message":"slow down"}}', 429, "rate_limit_error"),
        (429, '{"error":{"message":"pay","code":"insufficient_quota"}}', 429, "billing_error"),
        (500, "[" * 5_000, 500, "api_error"),
        (502, "x" * 200_000, 500, "api_error"),
        (503, '{"error":{"message":"busy"}}', 529, "overloaded_error"),
        (302, "", 502, "api_error"),
        (201, "{}", 502, "api_error"),
    ],
)
async def test_an_upstream_error_keeps_its_class_and_gets_the_messages_shape(
    status: int, body: str, expected: int, named: str
) -> None:
    server = refusing(status, body, location="/elsewhere")
    async with proxy_over(server) as url:
        answered, error = await refused(url)
    assert (answered, error["type"]) == (expected, named)
    assert len(server.asked) == 1
    if "message" in body:
        assert error["message"] == json.loads(body)["error"]["message"]


async def test_the_sdk_raises_the_class_a_user_expects_and_sees_when_to_retry() -> None:
    server = refusing(429, '{"error":{"message":"slow down"}}', retry_after="7", x_request_id="req-9", x_secret="s")
    async with proxy_over(server) as url, sdk(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=True)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.request_id == "req-9"
    assert "x-secret" not in caught.value.response.headers


async def test_a_page_for_people_is_no_answer() -> None:
    async with proxy_over(refusing(200, "<html>Sign in</html>", "text/html")) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (502, "api_error")
    assert error["message"] == "the upstream answered with status 200, text/html"


async def test_what_is_no_event_stream_fails_inside_the_stream() -> None:
    async with proxy_over(playing(b"Sign in here", content_type="text/plain")) as url:
        (event,) = await streamed(url)
    assert event["error"]["type"] == "api_error"
    assert "not an event stream" in event["error"]["message"]


async def test_an_upstream_that_cannot_be_reached_is_a_502() -> None:
    async with listening(web.Application()) as gone:
        pass
    async with serving(Config(port=0, upstream=f"{gone}/v1")) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (502, "api_error")
    assert error["message"] == "the upstream cannot be reached: ClientConnectorError"


async def test_an_upstream_that_does_not_answer_is_a_504() -> None:
    server = Server(never)
    async with proxy_over(server, Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.05))) as url:
        status, error = await refused(url)
        with anyio.fail_after(10):
            await server.left.wait()
    assert (status, error["type"]) == (504, "timeout_error")


async def test_an_idle_time_of_zero_turns_the_clock_off() -> None:
    async with proxy_over(playing(HELLO, FINISH), Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0))) as url:
        assert types(await streamed(url))[-1] == "message_stop"


async def test_an_upstream_that_falls_silent_is_cut() -> None:
    server = pausing(HELLO)
    async with proxy_over(server, Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.05))) as url:
        stream = await streamed(url)
        with anyio.fail_after(10):
            await server.left.wait()
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert "nothing for 0.05 seconds" in stream[-1]["error"]["message"]


async def test_a_call_that_the_upstream_cuts_stays_open_before_the_error(caplog: pytest.LogCaptureFixture) -> None:
    async def reset(server: Server, request: web.Request) -> web.StreamResponse:
        response = await begin(request, HELLO, CALL)
        assert request.transport is not None
        request.transport.abort()
        return response

    caplog.set_level(logging.INFO, "streamweir")
    for server in (playing(HELLO, CALL), Server(reset)):
        async with proxy_over(server) as url:
            stream = await streamed(url)
            async with sdk(url) as client, client.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as read:
                with pytest.raises(anthropic.APIStatusError):
                    await read.get_final_message()
        assert types(stream)[-3:] == ["content_block_start", "content_block_delta", "error"]
        assert stream[-2]["delta"]["partial_json"] == '{"a'
    assert [record.getMessage().split()[3] for record in caplog.records if record.name == "streamweir.proxy"] == [
        "cut"
    ] * 4


async def test_an_error_in_the_stream_ends_it_in_the_messages_shape() -> None:
    failing = b'data: {"error":{"message":"out of memory","code":500}}\n\n'
    async with proxy_over(playing(HELLO, failing, HELLO)) as url:
        stream = await streamed(url)
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert stream[-1]["error"] == {"type": "api_error", "message": "out of memory"}


async def test_the_limits_bound_the_stream() -> None:
    async with proxy_over(playing(HELLO, FINISH), Config(limits=evolve(DEFAULT_LIMITS, frame_bytes=20))) as url:
        stream = await streamed(url)
    assert types(stream)[-1] == "error"
    assert "20 bytes" in stream[-1]["error"]["message"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": None}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"stream": False}, "stream"),
        ({"stream": None}, "stream"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
    ],
)
async def test_a_bad_request_is_a_400_that_names_the_member(change: dict[str, Any], named: str) -> None:
    body = {name: value for name, value in (REQUEST | change).items() if value is not None}
    server = playing(FINISH)
    async with proxy_over(server) as url:
        status, error = await refused(url, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(f"{named}: ")
    assert server.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 300 + b"]" * 300])
async def test_a_body_that_is_no_object_is_a_400(body: bytes) -> None:
    async with proxy_over(playing(FINISH)) as url:
        status, error = await refused(url, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("the body")


async def test_a_body_that_cannot_be_decoded_is_a_400() -> None:
    async with proxy_over(playing(FINISH)) as url:
        status, error = await refused(url, b"no gzip", headers={"content-encoding": "gzip"})
    assert (status, error["message"]) == (400, "the body cannot be read")


async def test_a_request_that_is_too_large_is_a_413() -> None:
    size = len(json.dumps(REQUEST))
    async with proxy_over(playing(HELLO, FINISH), Config(limits=evolve(DEFAULT_LIMITS, request_bytes=size))) as url:
        assert types(await streamed(url))[-1] == "message_stop"
        status, error = await refused(url, json.dumps(REQUEST).encode() + b" ")
    assert (status, error["type"]) == (413, "request_too_large")
    assert error["message"] == f"the request is larger than {size} bytes"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/nothing"), ("GET", "/v1/messages"), ("GET", "/"), ("GET", "/a%0ab")]
)
async def test_an_unknown_path_is_a_404_in_the_messages_shape(method: str, path: str) -> None:
    async with (
        proxy_over(playing(FINISH)) as url,
        aiohttp.ClientSession() as session,
        session.request(method, url + path) as reply,
    ):
        assert reply.status == 404
        error = (await reply.json())["error"]
    assert error == {"type": "not_found_error", "message": f"there is no {method} {unquote(path)}"}
