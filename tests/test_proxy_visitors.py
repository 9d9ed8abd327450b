"""Whom the example hosts answer: a page that is open in a browser cannot spend the operator's key."""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from examples.gateway.config import Config
from tests.upstreams import CHAT, EVERY_HOST, REQUEST, Host, Server, browser, openai_sdk, over, playing, sdk

pytestmark = [pytest.mark.anyio, EVERY_HOST]

QUESTION: dict[str, Any] = {"role": "user", "content": "hi"}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/messages": {**REQUEST, "stream": False},
    "/v1/chat/completions": {"model": "m", "messages": [QUESTION]},
    "/v1/responses": {"model": "m", "input": "hi"},
}
FOREIGN = [
    ("origin", "http://evil.example"),
    ("origin", "https://localhost.evil.example"),
    ("origin", "http://127.0.0.1.evil.example:8080"),
    ("origin", "http://[::2]"),
    ("origin", "http://["),
    ("origin", "null"),
    ("origin", "chrome-extension://abcdef"),
    ("origin", ""),
    ("host", "evil.example"),
    ("host", "evil.example:8080"),
    ("host", "localhost.evil.example"),
    ("host", "notlocalhost"),
    ("host", "192.168.0.1:8080"),
    ("host", "0.0.0.0:8080"),
    ("host", "[::2]:8080"),
    ("host", "localhost@evil.example"),
    ("host", "["),
    ("host", ""),
]
OURS = [
    {},
    {"host": "localhost"},
    {"host": "LOCALHOST:1"},
    {"host": "localhost.:8080"},
    {"host": "a.localhost:8080"},
    {"host": "127.9.9.9:8080"},
    {"host": "[::1]:8080"},
    {"host": "[::ffff:127.0.0.1]:8080"},
    {"origin": "http://localhost:3000"},
    {"origin": "https://127.0.0.1"},
    {"origin": "http://[::1]:3000", "host": "[::1]"},
]


def asked_by(headers: Mapping[str, str], path: str, address: str, *, version: str = "1.1") -> bytes:
    """A request as a browser may send it without asking first: its body is said to be plain text."""
    body = json.dumps(ASKED[path]).encode()
    named = {"host": address, "content-type": "text/plain", "content-length": str(len(body)), "connection": "close"}
    lines = [f"POST {path} HTTP/{version}", *(f"{name}: {value}" for name, value in {**named, **headers}.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def answered(url: str, request: bytes) -> tuple[int, bytes]:
    """Status and body."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    with anyio.fail_after(20):
        async with await anyio.connect_tcp(host.strip("[]"), int(port)) as stream:
            await stream.send(request)
            received = await _rest(stream)
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def _rest(stream: SocketStream) -> bytes:
    return b"".join([piece async for piece in stream])


def whole() -> Server:
    return playing(CHAT.whole, content_type="application/json")


@pytest.mark.parametrize("path", ASKED)
async def test_a_page_of_another_site_is_refused_in_the_clients_words_and_no_model_is_asked(
    host: Host, path: str
) -> None:
    server = whole()
    async with over(host, server) as url:
        for name, value in FOREIGN:
            status, answer = await answered(url, asked_by({name: value}, path, url.removeprefix("http://")))
            error = json.loads(answer)["error"]
            assert (status, name in error["message"].lower(), "--allow-host" in error["message"]) == (403, True, True)
            assert error["type"] == ("permission_error" if path == "/v1/messages" else error["type"])
    assert server.asked == []


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages/count_tokens", "/healthz", "/", "/elsewhere"])
async def test_nothing_else_is_told_to_it_either(host: Host, path: str) -> None:
    server = whole()
    async with over(host, server) as url, browser() as client:
        for method in ("GET", "POST", "HEAD", "OPTIONS"):
            for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
                assert (await client.request(method, url + path, headers=headers)).status_code == 403
    assert server.asked == []


@pytest.mark.parametrize("path", ASKED)
async def test_who_names_this_machine_is_answered(host: Host, path: str) -> None:
    server = whole()
    async with over(host, server) as url:
        for headers in OURS:
            status, _ = await answered(url, asked_by(headers, path, url.removeprefix("http://")))
            assert (status, headers) == (200, headers)
    assert len(server.asked) == len(OURS)


async def test_a_client_of_an_old_http_names_no_host(host: Host) -> None:
    async with over(host, whole()) as url:
        request = asked_by({}, "/v1/messages", "x", version="1.0").replace(b"host: x\r\n", b"")
        assert (await answered(url, request))[0] == 200


async def test_the_sdks_are_answered_by_address_and_by_name(host: Host) -> None:
    server = whole()
    async with over(host, server) as url:
        for address in (url, url.replace("127.0.0.1", "localhost")):
            async with sdk(address) as client:
                await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
            async with openai_sdk(address) as openai:
                await openai.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert len(server.asked) == 4


async def test_the_operator_may_allow_others_by_name(host: Host) -> None:
    config = Config(allow_host=frozenset({"proxy.lan", "abcdef", "null"}))
    async with over(host, whole(), config) as url:
        for headers, due in [
            ({"host": "Proxy.LAN:8080"}, 200),
            ({"origin": "https://proxy.lan"}, 200),
            ({"origin": "chrome-extension://abcdef"}, 200),
            ({"origin": "null"}, 200),
            ({"origin": "null", "host": "evil.example"}, 403),
            ({"host": "a.proxy.lan"}, 403),
        ]:
            assert ((await answered(url, asked_by(headers, "/v1/messages", "localhost")))[0], headers) == (due, headers)


async def test_a_name_to_listen_on_is_a_name_to_ask_for(host: Host) -> None:
    async with over(host, whole(), Config(host="localhost")) as url:
        assert (await answered(url, asked_by({}, "/v1/messages", "localhost")))[0] == 200
        assert (await answered(url, asked_by({}, "/v1/messages", "evil.example")))[0] == 403


async def test_on_an_address_of_the_network_any_host_is_answered_and_no_page_of_another_site(host: Host) -> None:
    async with over(host, whole(), Config(host="0.0.0.0")) as url:
        for headers, due in [
            ({"host": "anything.example"}, 200),
            ({"host": "anything.example:80", "origin": "http://anything.example"}, 200),
            ({"host": "anything.example", "origin": "http://localhost:3000"}, 200),
            ({"host": "anything.example", "origin": "http://evil.example"}, 403),
            ({"host": "127.0.0.1", "origin": "http://evil.example"}, 403),
        ]:
            assert ((await answered(url, asked_by(headers, "/v1/messages", "")))[0], headers) == (due, headers)
