"""How the example hosts ask their upstream: where, and what of its head they read."""

import anyio
import pytest

from examples.gateway.config import Config
from examples.gateway.run import serve
from tests.upstreams import CHAT, EVERY_HOST, MESSAGES, REQUEST, Host, browser, listening, over, playing, posted
from tests.upstreams import refusing as answering

pytestmark = [pytest.mark.anyio, EVERY_HOST]


@pytest.mark.parametrize("path", ["/v1", "/openai/deployments/x"])
async def test_the_query_of_the_base_url_goes_with_each_request_behind_its_path(host: Host, path: str) -> None:
    server = playing(MESSAGES.whole, content_type="application/json")
    async with listening(server) as upstream:
        base = upstream.removesuffix("/v1") + path + "?api-version=2&a=%20/b"
        async with host(Config(port=0, dialect="messages", upstream=base)) as url, browser() as client:
            for query in ("", "?beta=true"):
                reply = await client.post(f"{url}/v1/messages{query}", json={**REQUEST, "stream": False})
                assert reply.status_code == 200
            await client.get(f"{url}/v1/models")
    always = "?api-version=2&a=%20/b"
    targets = [f"POST {path}/messages{always}", f"POST {path}/messages{always}&beta=true"]
    assert server.targets == [*targets, f"GET {path}/models{always}&limit=1000"]


async def test_a_query_which_may_hold_a_key_is_not_printed(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with anyio.move_on_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, Config(port=0, upstream="http://h/v1?key=SECRET"), host)
            printed = ""
            while not printed:
                await anyio.lowlevel.checkpoint()
                printed = capsys.readouterr().out
            tasks.cancel_scope.cancel()
    assert printed.endswith(" over http://h/v1\n")


async def test_a_long_line_in_the_upstreams_head_is_read(host: Host) -> None:
    server = answering(200, CHAT.whole.decode(), x_cookie="a" * 40_000)
    async with over(host, server) as url, posted(url, {**REQUEST, "stream": False}) as reply:
        assert reply.status_code == 200
