"""OpenAI's clients at the example hosts, in Chat and in Responses, over every upstream."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from examples.gateway.config import Config
from tests.upstreams import (
    CHAT,
    EVERY_HOST,
    MESSAGES,
    RESPONSES,
    SCRIPTS,
    Host,
    Script,
    browser,
    events,
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
EVERY_DIALECT = pytest.mark.parametrize("script", SCRIPTS)

ANSWER = ("Hello", 9, 4)
ASKED: dict[str, dict[str, Any]] = {
    "/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "/responses": {"model": "m", "input": "Hi"},
}
BOTH = pytest.mark.parametrize("path", [*ASKED])
WEBSOCKET = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "a2V5",
}


async def chat(client: AsyncOpenAI, streams: bool) -> tuple[Any, ...]:
    asked = ASKED["/chat/completions"]
    if streams:
        async with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            said: Any = await stream.get_final_completion()
    else:
        said = await client.chat.completions.create(**asked)
    assert said.choices[0].finish_reason == "stop"
    return said.choices[0].message.content, said.usage.prompt_tokens, said.usage.completion_tokens


async def responses(client: AsyncOpenAI, streams: bool) -> tuple[Any, ...]:
    asked = ASKED["/responses"]
    if streams:
        async with client.responses.stream(**asked) as stream:
            said: Any = await stream.get_final_response()
    else:
        said = await client.responses.create(**asked)
    assert said.status == "completed"
    return said.output_text, said.usage.input_tokens, said.usage.output_tokens


@EVERY_DIALECT
@pytest.mark.parametrize("ask", [chat, responses])
async def test_the_sdk_reads_a_stream_and_a_whole_answer(host: Host, script: Script, ask: Any) -> None:
    own = script.dialect == ask.__name__  # a stream passes as it came, and the script leaves out what this SDK needs
    streaming = playing(script.hello, script.finish)
    async with over(host, streaming, dialect=script.dialect) as url, openai_sdk(url) as client:
        if not own:
            assert await ask(client, True) == ANSWER
        assert await ask(client, False) == ANSWER
    whole = playing(script.whole, content_type="application/json")
    async with over(host, whole, dialect=script.dialect) as url, openai_sdk(url) as client:
        assert await ask(client, False) == ANSWER
        if not own:
            assert await ask(client, True) == ANSWER
    assert whole.targets == [f"POST {script.path}"] * (1 if own else 2)


@BOTH
async def test_a_base_url_may_lack_the_version(host: Host, path: str) -> None:
    server = playing(CHAT.hello, CHAT.finish)
    async with over(host, server) as url, browser() as client:
        replies = [await client.post(base + path, json=ASKED[path]) for base in (url, f"{url}/v1")]
        streamed = await client.post(url + path, json={**ASKED[path], "stream": True})
    assert [reply.status_code for reply in replies] == [200, 200]
    assert {reply.json()["object"] for reply in replies} <= {"chat.completion", "response"}
    assert streamed.headers["content-type"].startswith("text/event-stream")


@EVERY_DIALECT
async def test_the_upstreams_models_are_listed_in_the_words_of_the_client(host: Host, script: Script) -> None:
    listed = {"data": [{"id": "b", "created": 1_790_000_000}, {"id": "c", "created_at": "2026-02-03T04:05:06Z"}]}
    server = refusing(200, json.dumps(listed))
    config = Config(models={"a": "b"}, api_key="key")
    async with over(host, server, config, dialect=script.dialect) as url:
        async with openai_sdk(url) as client:
            models = (await client.models.list()).data
            one = await client.models.retrieve("c")
            with pytest.raises(openai.NotFoundError, match="there is no model d"):
                await client.models.retrieve("d")
        async with sdk(url) as anthropic:
            theirs = (await anthropic.models.list()).data
    assert [(model.object, model.id, model.created) for model in models] == [
        ("model", "a", 0),
        ("model", "b", 1_790_000_000),
        ("model", "c", 1_770_091_506),
    ]
    assert one == models[2]
    assert [model.id for model in theirs] == ["a", "b", "c"]
    assert int(theirs[2].created_at.timestamp()) == 1_770_091_506


@BOTH
async def test_it_says_that_it_is_there(host: Host, path: str) -> None:
    server = playing()
    async with over(host, server) as url, browser() as client:
        heads = [await client.head(base + path) for base in (url, f"{url}/v1")]
    assert [(head.status_code, head.content) for head in heads] == [(200, b"")] * 2
    assert server.asked == []


async def test_a_websocket_is_refused_so_that_codex_goes_on_without(host: Host) -> None:
    server = playing(RESPONSES.hello, RESPONSES.finish)
    async with over(host, server, dialect="responses") as url, browser() as client:
        refusal = await client.get(f"{url}/v1/responses", headers=WEBSOCKET)
        again = await client.post(f"{url}/v1/responses", json={**ASKED["/responses"], "stream": True})
    assert refusal.status_code == 426
    assert refusal.json()["error"]["type"] == "invalid_request_error"
    assert [event["type"] for event in events(again.content)][-1] == "response.completed"


@BOTH
async def test_errors_are_told_in_the_words_of_the_path(host: Host, path: str) -> None:
    async with over(host, playing()) as url, browser() as client:
        odd = await client.post(f"{url}/v1{path}", json=[7])
        lost = await client.get(f"{url}/v1{path}/1")
        broken = await client.post(f"{url}/v1{path}", content=b"{}", headers={"content-encoding": "gzip"})
        nowhere = await client.post(f"{url}/v1/embeddings", json={})
        theirs = await client.post(f"{url}/v1/nowhere", headers={"x-api-key": "k"})
    assert [reply.status_code for reply in (odd, lost, broken, nowhere, theirs)] == [400, 404, 400, 404, 404]
    for reply in (odd, lost, broken, nowhere):
        assert reply.json().keys() == {"error"}
        assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
    assert theirs.json()["type"] == "error"


async def test_a_messages_upstream_gets_its_key_and_the_version_of_its_dialect(host: Host) -> None:
    server = playing(MESSAGES.hello, MESSAGES.finish)
    async with over(host, server, Config(api_key="key"), dialect="messages") as url, openai_sdk(url) as client:
        await chat(client, True)
    assert server.headers[0]["x-api-key"] == "key"
    assert server.headers[0]["anthropic-version"] == "2023-06-01"
    assert "authorization" not in server.headers[0]


async def test_an_upstream_of_the_clients_dialect_is_told_which_form_of_it_it_speaks(host: Host) -> None:
    told = {"anthropic-version": "2026-10-21", "anthropic-beta": "a-1,b-2", "x-api-key": "client-key"}
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    for script in (MESSAGES, CHAT):
        server = playing(script.hello, script.finish)
        async with over(host, server, dialect=script.dialect) as url, browser() as client:
            await client.post(f"{url}/v1/messages", json=asked, headers=told)
        got = {name: server.headers[0][name] for name in told if name in server.headers[0]}
        assert got == ({name: told[name] for name in told if name != "x-api-key"} if script is MESSAGES else {})


async def test_a_responses_upstream_is_told_what_codex_says_in_headers_and_no_secret(host: Host) -> None:
    told = {"x-codex-turn-state": "state", "session-id": "s", "thread-id": "t", "openai-beta": "b"}
    secret = {"authorization": "Bearer x", "cookie": "c", "x-codex-auth": "a", "chatgpt-account-id": "i"}
    asked = {"model": "m", "input": "Hi", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    for script in (RESPONSES, CHAT):
        server = playing(script.hello, script.finish)
        async with over(host, server, dialect=script.dialect) as url, browser() as client:
            await client.post(f"{url}/v1/responses", json=asked, headers={**told, **secret})
        got = {name: server.headers[0][name] for name in (*told, *secret) if name in server.headers[0]}
        assert got == (told if script is RESPONSES else {})
