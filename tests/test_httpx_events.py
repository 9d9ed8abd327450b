"""httpx-sse's events as frames, and the example that reads a stream with it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from httpx_sse import EventSource, ServerSentEvent
from hypothesis import given

from examples.httpx_client import main
from pipeline.errors import ErrorKind
from pipeline.events import Frame, StreamError
from pipeline.testing import EOF, play
from stages.httpx_events import ServerSentEvents
from stages.sse import SSEDecoder
from tests.test_sse import BOM, soup

LOST = StreamError(ErrorKind.CUT, "the connection was lost")


def read(stream: bytes) -> list[ServerSentEvent]:
    """What httpx-sse reads of an answer."""
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    return list(EventSource(answer).iter_sse())


def test_an_event_is_a_frame() -> None:
    events = read(b"data: a\n\nevent: x\ndata: b\ndata: c\n\n")
    assert play(ServerSentEvents(), events, EOF) == [[Frame(b"a"), Frame(b"b\nc", b"x")], []]


def test_the_name_that_httpx_sse_gives_to_nameless_events_is_none() -> None:
    event = ServerSentEvent(event="message", data="a")
    assert play(ServerSentEvents(), event) == [[Frame(b"a")]]


def test_an_event_without_data_brings_nothing() -> None:
    events = read(b"event: x\n\nid: 1\n\n\ndata:\n\nretry: 1\n\ndata: a\n\n")
    assert len(events) == 6
    assert play(ServerSentEvents(), events) == [[Frame(b"a")]]


def test_half_a_character_is_replaced() -> None:
    event = ServerSentEvent(event="\udc00", data="\ud83d\ude00\ud800")
    assert play(ServerSentEvents(), event) == [[Frame("😀\ufffd".encode(), "\ufffd".encode())]]


def test_it_holds_nothing_and_leaves_the_cause_to_the_next_stage() -> None:
    stage = ServerSentEvents()
    assert stage.receive(read(b"data: a\n\n")) == [Frame(b"a")]
    assert (stage.held, stage.receive_eof(LOST), stage.ended) == (0, (), True)
    assert stage.receive([ServerSentEvent(data="late")]) == ()


@given(soup)
def test_frames_are_those_that_the_decoder_makes_of_the_same_bytes(stream: bytes) -> None:
    text = stream.removeprefix(BOM).decode(errors="replace").encode()
    assert ServerSentEvents().receive(read(text)) == list(SSEDecoder().receive([text]))


def chunk(delta: str, finish: str = "null") -> bytes:
    return b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n' % (
        delta.encode(),
        finish.encode(),
    )


def call(index: int, arguments: str, name: str = "") -> str:
    identity = f'"id":"call_{index}","type":"function",' if name else ""
    said = f'"name":"{name}",' if name else ""
    return f'{{"tool_calls":[{{"index":{index},{identity}"function":{{{said}"arguments":{arguments}}}}}]}}'


TURN = [
    chunk('{"role":"assistant","content":"Let me "}'),
    chunk('{"content":"see."}'),
    chunk(call(0, '"{\\"a\\":"', "look")),
    chunk(call(1, '"{\\"b\\""', "find")),
    chunk(call(0, '"1}"')),
    chunk(call(1, '":2}"')),
    chunk("{}", '"tool_calls"'),
    b"data: [DONE]\n\n",
]


@asynccontextmanager
async def served(*parts: bytes, status: str = "200 OK") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on loopback that gives this answer to all; its address, and the requests it was sent."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        requests.append(head + await reader.readexactly(int(length.partition(b":")[2])))
        writer.write(f"HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".encode())
        for part in parts:
            writer.write(part)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}/v1", requests


def example(parts: Sequence[bytes], status: str = "200 OK") -> tuple[int, bytes]:
    """What the example returns, and the request it sent."""

    async def run() -> tuple[int, bytes]:
        async with served(*parts, status=status) as (base_url, requests):
            failed = await main(base_url, "tiny", "Look!")
            return failed, requests[0]

    return asyncio.run(run())


def test_the_example_prints_text_and_whole_calls(capsys: pytest.CaptureFixture[str]) -> None:
    failed, request = example(TURN)
    assert request.startswith(b"POST /v1/chat/completions ")
    assert b'"model":"tiny","stream":true' in request
    assert capsys.readouterr().out == 'Let me see.\ncall look {"a":1}\ncall find {"b":2}\n'
    assert failed == 0


def test_the_example_says_that_an_answer_was_cut(capsys: pytest.CaptureFixture[str]) -> None:
    failed, _ = example(TURN[:4])
    assert capsys.readouterr().out.startswith('Let me see.\ncall look {"a":\nfailed: ')
    assert failed == 1


def test_the_example_does_not_read_an_error_as_an_answer() -> None:
    with pytest.raises(httpx.HTTPStatusError):
        example([b"{}"], "500 Oops")
