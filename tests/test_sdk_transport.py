"""The anthropic SDK with the pipeline as its transport, over scripted upstreams."""

import zlib

import anthropic
import anyio
import httpx2
import pytest
from anthropic import AsyncAnthropic
from attrs import evolve

from examples import sdk_transport
from examples.gateway.config import Config
from examples.raw_socket.connection import Connection
from examples.sdk_transport import client_of
from pipeline.limits import DEFAULT_LIMITS
from pipeline.reply import Head
from tests.test_proxy_errors import REFUSALS
from tests.upstreams import (
    CHAT,
    MESSAGES,
    QUESTION,
    SCRIPTS,
    Script,
    Server,
    cutting,
    listening,
    never,
    pausing,
    playing,
    refusing,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),  # the SDK's, left to the collector
]
EVERY_DIALECT = pytest.mark.parametrize("script", SCRIPTS)


def over(url: str, script: Script = CHAT, **more: object) -> AsyncAnthropic:
    config = evolve(Config(dialect=script.dialect, upstream=url, api_key="upstream-key"), **more)  # type: ignore[arg-type]  # any member
    return client_of(config).with_options(max_retries=0)


@EVERY_DIALECT
async def test_the_sdk_reads_a_stream_and_a_whole_answer(script: Script) -> None:
    turns = iter([playing(script.hello, script.finish), playing(script.whole, content_type="application/json")])
    server = Server(lambda _, client: next(turns).answer(server, client))
    async with listening(server) as url, over(url, script) as client:
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
            texts = [text async for text in stream.text_stream]
            streamed = await stream.get_final_message()
        whole = await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
    assert texts == ["Hello"]
    for message in (streamed, whole):
        assert [block.text for block in message.content if block.type == "text"] == ["Hello"]
        assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 9, 4)
    assert server.targets == [f"POST {script.path}"] * 2
    key = {"x-api-key": "upstream-key"} if script is MESSAGES else {"authorization": "Bearer upstream-key"}
    for headers in server.headers:
        assert {name: headers[name] for name in ("authorization", "x-api-key") if name in headers} == key


async def test_what_the_upstream_sends_is_read_before_it_sends_more() -> None:
    server = pausing(CHAT.hello)
    async with listening(server) as url, over(url) as client:
        with anyio.fail_after(20):
            async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
                async for text in stream.text_stream:
                    assert text == "Hello"
                    server.go_on.set()
                assert (await stream.get_final_message()).stop_reason == "end_turn"


async def test_a_stream_that_is_left_closes_the_upstream() -> None:
    server = pausing(CHAT.hello)
    async with listening(server) as url, over(url) as client:
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
            async for _ in stream.text_stream:
                break
        with anyio.fail_after(20):
            await server.left.wait()


@EVERY_DIALECT
async def test_an_answer_that_is_cut_is_an_error(script: Script) -> None:
    async with listening(cutting(script.hello, script.call)) as url, over(url, script) as client:
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
            with pytest.raises(anthropic.APIStatusError):
                await stream.get_final_message()
        with pytest.raises(anthropic.InternalServerError):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])


@EVERY_DIALECT
@pytest.mark.parametrize("streams", [True, False])
async def test_a_compressed_answer_that_is_corrupt_is_one_that_was_cut(script: Script, streams: bool) -> None:
    packed = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    said = packed.compress(script.hello if streams else script.whole[:30]) + packed.flush(zlib.Z_SYNC_FLUSH)

    async def answer(server: Server, client: Connection) -> None:
        kind = "text/event-stream" if streams else "application/json"
        await client.begin(Head(200, {"content-type": kind, "content-encoding": "gzip"}))
        await client.write(said)
        await client.write(b"\xff" * 100)
        await client.end()

    async with listening(Server(answer)) as url, over(url, script) as client:
        if streams:
            async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
                with pytest.raises(anthropic.APIStatusError):
                    await stream.get_final_message()
        else:
            with pytest.raises(anthropic.InternalServerError) as caught:
                await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
            assert caught.value.status_code == 502


async def test_errors_have_the_class_that_a_user_expects() -> None:
    server = refusing(429, '{"error":{"message":"slow down"}}', retry_after="7")
    async with listening(server) as url, over(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])
        assert caught.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
            await client.messages.create(model="m", max_tokens=-1, messages=[QUESTION])
    async with over(url) as client:
        with pytest.raises(anthropic.APIConnectionError):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])


@EVERY_DIALECT
async def test_an_upstream_error_keeps_its_class_without_a_proxy_too(script: Script) -> None:
    for at, (status, body, expected, named, raised) in enumerate(REFUSALS):
        async with listening(refusing(status, body)) as url, over(url, script) as client:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=at % 2 == 0)
        told = caught.value.body
        assert isinstance(told, dict)
        assert (caught.value.status_code, told["error"]["type"]) == (expected, named), status
        assert type(caught.value).__name__ == f"{raised}Error"


async def test_a_bound_of_ours_is_an_error_too() -> None:
    config = Config(limits=evolve(DEFAULT_LIMITS, answer_bytes=20))
    async with listening(playing(CHAT.whole)) as url, over(url, limits=config.limits) as client:
        with pytest.raises(anthropic.InternalServerError, match="20 bytes"):
            await client.messages.create(model="m", max_tokens=64, messages=[QUESTION])


async def test_the_sdks_own_clock_holds() -> None:
    server = Server(never)
    async with listening(server) as url, over(url) as client:
        with pytest.raises(anthropic.APITimeoutError):
            await client.with_options(timeout=httpx2.Timeout(5, read=0.2)).messages.create(
                model="m", max_tokens=64, messages=[QUESTION]
            )


async def test_models_and_counts_are_answered_too() -> None:
    async with listening(refusing(200, '{"data":[{"id":"b"}]}')) as url, over(url, models={"a": "b"}) as client:
        assert [model.id for model in (await client.models.list()).data] == ["a", "b"]
        assert (await client.messages.count_tokens(model="m", messages=[QUESTION])).input_tokens > 0


async def test_the_example_prints_what_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with listening(playing(CHAT.hello, CHAT.finish)) as url:
        await sdk_transport.main(url)
    assert capsys.readouterr().out == "Hello\n(end_turn)\n"
