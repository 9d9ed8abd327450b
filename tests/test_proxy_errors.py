"""What goes wrong at the example hosts: upstreams that refuse, break off or talk nonsense, and wrong requests."""

import gzip
import json
import logging
from typing import Any
from urllib.parse import unquote

import anthropic
import anyio
import httpx
import pytest
from attrs import evolve

from examples.gateway.config import Config
from pipeline.limits import DEFAULT_LIMITS
from tests import responses_stream as rs
from tests.upstreams import (
    CHAT,
    EVERY_HOST,
    MESSAGES,
    QUESTION,
    REQUEST,
    RESPONSES,
    SCRIPTS,
    Host,
    Script,
    Server,
    browser,
    cutting,
    events,
    listening,
    never,
    over,
    pausing,
    playing,
    posted,
    refused,
    refusing,
    resetting,
    sdk,
    sse,
    streamed,
    types,
    until,
)

pytestmark = [
    pytest.mark.anyio,
    EVERY_HOST,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),  # the SDK's, left to the collector
]
EVERY_DIALECT = pytest.mark.parametrize("script", SCRIPTS)
EVERY_OTHER_DIALECT = pytest.mark.parametrize("script", [CHAT.mark, RESPONSES.mark])
"""A request goes up unread to an upstream of its own dialect, which is the judge of it."""
BOTH_FORMS = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])

REFUSALS: list[tuple[int, str, int, str, str]] = [
    (400, '{"error":{"message":"odd","type":"invalid_request_error"}}', 400, "invalid_request_error", "BadRequest"),
    (400, '{"error":{"message":"!","code":"context_length_exceeded"}}', 400, "invalid_request_error", "BadRequest"),
    (401, '{"error":{"message":"!","code":"invalid_api_key"}}', 401, "authentication_error", "Authentication"),
    (402, '{"error":{"message":"no credit"}}', 402, "billing_error", "PaymentRequired"),
    (403, "no", 403, "permission_error", "PermissionDenied"),
    (404, '{"error":{"message":"no such model"}}', 404, "not_found_error", "NotFound"),
    (413, '{"error":{"message":"too large"}}', 413, "request_too_large", "ContentTooLarge"),
    (422, '{"detail":[{"msg":"top_p is odd"}]}', 422, "invalid_request_error", "UnprocessableEntity"),
    (429, '{"error":{"message":"slow down"}}', 429, "rate_limit_error", "RateLimit"),
    (429, '{"error":{"message":"pay","code":"insufficient_quota"}}', 402, "billing_error", "PaymentRequired"),
    (500, "[" * 5_000, 500, "api_error", "InternalServer"),
    (502, "x" * 200_000, 502, "api_error", "InternalServer"),
    (503, '{"error":{"message":"busy"}}', 529, "overloaded_error", "Overloaded"),
    (504, "<html>timeout</html>", 504, "timeout_error", "GatewayTimeout"),
    (529, '{"error":{"message":"busy"}}', 529, "overloaded_error", "Overloaded"),
    (302, "", 502, "api_error", "InternalServer"),
    (201, "{}", 502, "api_error", "InternalServer"),
]
"""What an upstream answers, and what a client is to get: status, type, the SDK's class."""


@EVERY_DIALECT
async def test_an_upstream_error_keeps_its_class_and_the_sdk_raises_it(host: Host, script: Script) -> None:
    rows = iter(REFUSALS)
    server = Server(lambda _, client: refusing(*next(rows)[:2], location="/elsewhere").answer(server, client))
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        for at, (status, body, expected, named, raised) in enumerate(REFUSALS):
            streams = at % 2 == 0
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
            told = caught.value.body
            assert isinstance(told, dict), body
            assert (caught.value.status_code, told["type"], told["error"]["type"]) == (expected, "error", named), status
            assert type(caught.value).__name__ == f"{raised}Error"
            if status == 302:
                assert "a redirection to /elsewhere," in told["error"]["message"]
            if '"message"' in body:
                begun = "prompt is too long: " if "context_length" in body else ""  # the words that clients look for
                assert told["error"]["message"] == begun + json.loads(body)["error"]["message"]
    assert len(server.asked) == len(REFUSALS)


@EVERY_DIALECT
@BOTH_FORMS
async def test_the_sdk_sees_when_to_retry_and_which_request_it_was(host: Host, script: Script, streams: bool) -> None:
    more = {"x_request_id": "req-9", "x_ratelimit_remaining_requests": "0", "x_secret": "s", "connection": "close"}
    server = refusing(429, '{"error":{"message":"slow down"}}', retry_after="7", **more)
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    headers = caught.value.response.headers
    assert (headers["retry-after"], headers["x-ratelimit-remaining-requests"]) == ("7", "0")
    assert caught.value.request_id == "req-9"
    assert "x-secret" not in headers


@pytest.mark.parametrize("odd", [b"a\x01b", b"\xe9", b"\xc3\xa9"], ids=ascii)
async def test_a_header_that_cannot_be_written_does_not_cost_the_answer(
    host: Host, odd: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(server: Server, client: Any) -> None:
        head = b"x-request-id: %s\r\nretry-after: 7\r\nconnection: close\r\n\r\n" % odd
        if len(server.asked) == 1:
            await client.stream.send(b"HTTP/1.1 200 OK\r\n" + head + CHAT.hello + CHAT.finish)
        else:
            await client.stream.send(b"HTTP/1.1 429 No\r\n" + head + b'{"error":{"message":"slow down"}}')

    caplog.set_level(logging.INFO, "streamweir.access")
    async with over(host, Server(answer)) as url:
        async with posted(url) as reply:
            assert (reply.status_code, "x-request-id" in reply.headers) == (200, False)
            assert reply.headers["retry-after"] == "7"
            assert types(events(await reply.aread()))[-1] == "message_stop"
        assert await refused(url) == (429, {"type": "rate_limit_error", "message": "slow down"})
    assert [record.getMessage().split()[2:4] for record in caplog.records] == [
        ["200", "complete"],
        ["429", "failed:rate_limit"],
    ]


@EVERY_DIALECT
@BOTH_FORMS
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html>Sign in</html>", "text/html"),
        ("<html>Sign in</html>", "text/event-stream"),
        ('{"ok": true}', "application/json"),
        ('{"choices": [', "application/json"),
        ("", "text/event-stream"),
        ("", "application/json"),
    ],
)
async def test_what_is_no_answer_is_a_502(
    host: Host, script: Script, streams: bool, body: str, content_type: str
) -> None:
    server = refusing(200, body, content_type)
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        status, error = await refused(url, {**REQUEST, "stream": streams})
        with pytest.raises(anthropic.InternalServerError):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    assert (status, error["type"]) == (502, "api_error")
    assert "Sign in" not in error["message"]


@EVERY_DIALECT
@BOTH_FORMS
async def test_an_error_with_status_200_has_the_status_of_its_class(host: Host, script: Script, streams: bool) -> None:
    server = refusing(200, '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}')
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        status, error = await refused(url, {**REQUEST, "stream": streams})
        with pytest.raises(anthropic.RateLimitError, match="slow down"):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    assert (status, error) == (429, {"type": "rate_limit_error", "message": "slow down"})


SLOW = rs.event(
    "response.failed", response=rs.response("failed", error={"code": "rate_limit_exceeded", "message": "x"})
)


@BOTH_FORMS
@pytest.mark.parametrize("before", [[], [rs.created(), rs.event("response.in_progress"), rs.event("keepalive")]])
async def test_a_response_that_failed_before_it_said_anything_has_the_status_of_its_class(
    host: Host, streams: bool, before: list[rs.Json]
) -> None:
    server = refusing(200, sse(*before, SLOW).decode(), "text/event-stream")
    async with over(host, server, dialect="responses") as url, sdk(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="x"):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)


@BOTH_FORMS
@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_a_response_that_is_not_finished_is_a_502(host: Host, streams: bool, status: str) -> None:
    server = refusing(200, json.dumps(rs.response(status)))
    async with over(host, server, dialect="responses") as url, sdk(url) as client:
        with pytest.raises(anthropic.InternalServerError, match="not finished") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    assert caught.value.status_code == 502


@EVERY_DIALECT
@BOTH_FORMS
async def test_text_that_is_no_event_stream_is_a_502(host: Host, script: Script, streams: bool) -> None:
    server = playing(b"Sign in here", content_type="text/plain")
    async with over(host, server, dialect=script.dialect) as url:
        status, error = await refused(url, {**REQUEST, "stream": streams})
    assert (status, error["type"]) == (502, "api_error")
    assert "not an event stream" in error["message"]


@EVERY_DIALECT
@BOTH_FORMS
async def test_an_upstream_that_cannot_be_reached_is_a_502(host: Host, script: Script, streams: bool) -> None:
    async with listening(playing()) as gone:
        pass
    async with host(Config(port=0, dialect=script.dialect, upstream=gone)) as url, sdk(url) as client:
        status, error = await refused(url, {**REQUEST, "stream": streams})
        with pytest.raises(anthropic.InternalServerError, match="cannot be reached"):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    assert (status, error["type"]) == (502, "api_error")
    assert error["message"].startswith("the upstream cannot be reached: ")


@EVERY_DIALECT
@BOTH_FORMS
async def test_an_upstream_that_closes_without_an_answer_is_a_502(host: Host, script: Script, streams: bool) -> None:
    async def hang_up(server: Server, client: Any) -> None:
        await client.stream.aclose()

    async with over(host, Server(hang_up), dialect=script.dialect) as url, sdk(url) as client:
        status, error = await refused(url, {**REQUEST, "stream": streams})
        with pytest.raises(anthropic.InternalServerError):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
    assert (status, error["type"]) == (502, "api_error")


@EVERY_DIALECT
@BOTH_FORMS
async def test_an_upstream_that_does_not_answer_is_a_504(host: Host, script: Script, streams: bool) -> None:
    server = Server(never)
    config = Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.3))
    async with over(host, server, config, dialect=script.dialect) as url, sdk(url) as client:
        with pytest.raises(anthropic.InternalServerError) as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=streams)
        with anyio.fail_after(10):
            await server.left.wait()
    told = caught.value.body
    assert isinstance(told, dict)
    assert (caught.value.status_code, told["error"]["type"]) == (504, "timeout_error")


async def test_an_idle_time_of_zero_turns_the_clock_off(host: Host) -> None:
    async with over(
        host, playing(CHAT.hello, CHAT.finish), Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0))
    ) as url:
        assert types(await streamed(url))[-1] == "message_stop"


@EVERY_DIALECT
async def test_an_upstream_that_falls_silent_is_cut(host: Host, script: Script) -> None:
    server = pausing(script.hello)
    config = Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.5))
    async with over(host, server, config, dialect=script.dialect) as url, sdk(url) as client:
        stream = await streamed(url)
        with anyio.fail_after(10):
            await server.left.wait()
        async with client.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as read:
            with pytest.raises(anthropic.APIStatusError, match=r"nothing for 0\.5 seconds"):
                await read.get_final_message()
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert "nothing for 0.5 seconds" in stream[-1]["error"]["message"]


@EVERY_DIALECT
async def test_a_whole_answer_that_falls_silent_is_a_502(host: Host, script: Script) -> None:
    config = Config(limits=evolve(DEFAULT_LIMITS, idle_seconds=0.3))
    async with over(host, pausing(script.whole[:30]), config, dialect=script.dialect) as url, sdk(url) as client:
        with pytest.raises(anthropic.InternalServerError, match=r"nothing for 0\.3 seconds") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
    assert caught.value.status_code == 502


@EVERY_DIALECT
async def test_a_reset_ends_the_text_and_then_tells_the_error(host: Host, script: Script) -> None:
    server = resetting(script.hello)
    async with over(host, server, dialect=script.dialect) as url, posted(url) as reply:
        received, rest = await until(b"Hello", reply)
        server.go_on.set()
        stream = events(received + b"".join([piece async for piece in rest]))
    assert types(stream)[-2:] == ["content_block_stop", "error"]
    assert stream[-1]["error"]["type"] == "api_error"


@EVERY_DIALECT
async def test_a_reset_inside_a_whole_answer_is_a_502(host: Host, script: Script) -> None:
    server = resetting(script.whole[:30])
    server.go_on.set()
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        with pytest.raises(anthropic.InternalServerError) as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
    assert caught.value.status_code == 502


@EVERY_DIALECT
async def test_a_call_that_the_upstream_cuts_stays_open_before_the_error(
    host: Host, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamweir.access")
    for server in (playing(script.hello, script.call), cutting(script.hello, script.call)):
        async with over(host, server, dialect=script.dialect) as url:
            stream = await streamed(url)
            async with sdk(url) as client, client.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as read:
                with pytest.raises(anthropic.APIStatusError):
                    await read.get_final_message()
        assert types(stream)[-3:] == ["content_block_start", "content_block_delta", "error"]
        assert stream[-2]["delta"]["partial_json"] == '{"a'
    assert [record.getMessage().split()[3] for record in caplog.records] == ["cut:cut"] * 4


@EVERY_DIALECT
async def test_a_cut_whole_answer_is_a_502(host: Host, script: Script) -> None:
    for server in (cutting(script.whole[:-9]), cutting(script.hello, script.call), playing(script.hello)):
        async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
            with pytest.raises(anthropic.InternalServerError) as caught:
                await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
        assert caught.value.status_code == 502


@EVERY_DIALECT
async def test_an_error_in_the_stream_ends_it(host: Host, script: Script) -> None:
    async with over(host, playing(script.hello, script.error), dialect=script.dialect) as url, sdk(url) as client:
        stream = await streamed(url)
        async with client.messages.stream(model="m", max_tokens=9, messages=[QUESTION]) as read:
            with pytest.raises(anthropic.APIStatusError, match="out of memory"):
                await read.get_final_message()
        with pytest.raises(anthropic.InternalServerError, match="out of memory"):
            await client.messages.create(model="m", max_tokens=9, messages=[QUESTION])
    closed = [] if script is MESSAGES else ["content_block_stop"]  # its own stream comes as it is
    assert types(stream)[-1 - len(closed) :] == [*closed, "error"]
    assert stream[-1]["error"] == {"type": "api_error", "message": "out of memory"}


@EVERY_OTHER_DIALECT
async def test_an_error_before_everything_has_a_status(host: Host, script: Script) -> None:
    async with over(host, playing(script.refusal), dialect=script.dialect) as url:
        status, error = await refused(url)
    assert (status, error) == (500, {"type": "api_error", "message": "out of memory"})


async def test_over_its_own_dialect_an_error_before_everything_comes_as_it_came(host: Host) -> None:
    async with over(host, playing(MESSAGES.refusal), dialect=MESSAGES.dialect) as url:
        stream = await streamed(url)
    assert types(stream) == ["error"]
    assert stream[0]["error"] == {"type": "api_error", "message": "out of memory"}


async def test_the_limits_bound_the_stream(host: Host) -> None:
    limits = evolve(DEFAULT_LIMITS, frame_bytes=100)
    async with over(host, playing(CHAT.hello, CHAT.call), Config(limits=limits)) as url:
        stream = await streamed(url)
    assert types(stream)[-1] == "error"
    assert "100 bytes" in stream[-1]["error"]["message"]


@EVERY_OTHER_DIALECT
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": None}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"stream": "yes"}, "stream"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
    ],
)
async def test_a_bad_request_is_a_400_that_names_the_member(
    host: Host, script: Script, change: dict[str, Any], named: str
) -> None:
    body = {name: value for name, value in (REQUEST | change).items() if value is not None}
    server = playing(script.hello, script.finish)
    async with over(host, server, dialect=script.dialect) as url, sdk(url) as client:
        status, error = await refused(url, body)
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.post("/v1/messages", body=body, cast_to=object)
        assert named in caught.value.message
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(named)
    assert server.asked == []


@EVERY_DIALECT
async def test_what_only_the_clients_dialect_knows_goes_to_an_upstream_that_speaks_it(
    host: Host, script: Script
) -> None:
    body = REQUEST | {"messages": [{"role": "user", "content": [{"type": "hologram", "depth": 3}]}]}
    server = playing(script.hello, script.finish)
    async with over(host, server, dialect=script.dialect) as url:
        if script is MESSAGES:
            assert types(await streamed(url, body))[-1] == "message_stop"
            assert server.asked[0]["messages"] == body["messages"]
        else:
            status, error = await refused(url, body)
            assert (status, error["type"]) == (400, "invalid_request_error")
            assert error["message"].startswith("messages[0].content[0]")
            assert server.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 300 + b"]" * 300])
async def test_a_body_that_is_no_object_is_a_400(host: Host, body: bytes) -> None:
    async with over(host, playing()) as url:
        status, error = await refused(url, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("the body")


async def test_a_compressed_body_is_read(host: Host) -> None:
    body, headers = gzip.compress(json.dumps(REQUEST).encode()), {"content-encoding": "gzip"}
    async with over(host, playing(CHAT.hello, CHAT.finish)) as url:
        async with posted(url, body, headers=headers) as reply:
            assert types(events(await reply.aread()))[-1] == "message_stop"
        for broken in (b"no gzip", body[:-20]):
            status, error = await refused(url, broken, headers=headers)
            assert (status, error["type"]) == (400, "invalid_request_error")
            assert error["message"].startswith("the body ")


async def test_a_compressed_body_is_bounded_by_its_real_size(host: Host) -> None:
    body = gzip.compress(json.dumps(REQUEST).encode() + b" " * 1_000_000)
    limits = evolve(DEFAULT_LIMITS, request_bytes=100_000)
    async with over(host, playing(), Config(limits=limits)) as url:
        status, error = await refused(url, body, headers={"content-encoding": "gzip"})
    assert (status, error["type"]) == (413, "request_too_large")


@EVERY_DIALECT
async def test_a_request_that_is_too_large_is_a_413(host: Host, script: Script) -> None:
    size = len(json.dumps(REQUEST))
    config = Config(limits=evolve(DEFAULT_LIMITS, request_bytes=size))
    server = playing(script.hello, script.finish)
    async with over(host, server, config, dialect=script.dialect) as url, sdk(url) as client:
        assert types(await streamed(url))[-1] == "message_stop"
        status, error = await refused(url, json.dumps(REQUEST).encode() + b" ")
        assert (status, error["type"]) == (413, "request_too_large")
        assert str(size) in error["message"]
        with pytest.raises(anthropic.ContentTooLargeError):
            await client.messages.create(model="m" * 200_000, max_tokens=1, messages=[QUESTION])


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/nothing"), ("GET", "/v1/messages"), ("GET", "/"), ("GET", "/a%0ab")]
)
async def test_an_unknown_path_is_a_404_in_the_shape_of_the_client(host: Host, method: str, path: str) -> None:
    async with over(host, playing()) as url, browser() as client:
        reply = await client.request(method, url + path, headers={"anthropic-version": "2023-06-01"})
    assert reply.status_code == 404
    assert reply.json() == {
        "type": "error",
        "error": {"type": "not_found_error", "message": f"there is no {method} {unquote(path)}"},
    }


async def test_an_unknown_path_has_no_answer_to_a_head_either(host: Host) -> None:
    async with over(host, playing()) as url, browser() as client:
        reply = await client.head(f"{url}/v1/nothing")
    assert (reply.status_code, reply.content) == (404, b"")


async def test_an_upstream_that_does_not_speak_http_is_a_502(host: Host) -> None:
    async def talk(server: Server, client: Any) -> None:
        await client.stream.send(b"220 mail.example ESMTP\r\n\r\n")
        await client.stream.aclose()

    async with over(host, Server(talk)) as url:
        status, error = await refused(url)
    assert (status, error["type"]) == (502, "api_error")


async def test_a_client_that_breaks_off_its_request_is_nobodys_fault(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with over(host, server) as url:
        async with await anyio.connect_tcp("127.0.0.1", httpx.URL(url).port or 0) as stream:
            await stream.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
        assert types(await streamed(url))[-1] == "message_stop"
    assert server.targets == [f"POST {CHAT.path}"]
    assert not [record for record in caplog.records if record.name == "streamweir.http"]
