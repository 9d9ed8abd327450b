"""pipeline.route: a request goes up, and an answer comes down in the form that was asked for, whatever form it has."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.drive import AsyncEventStage, drive
from pipeline.events import Event, TextDelta
from pipeline.limits import Limits
from pipeline.outcome import Verdict
from pipeline.reply import Form
from pipeline.request import RequestOptions
from pipeline.route import AnswerOptions, Route, UpstreamRequest
from pipeline.stage import AsyncStage, Chain, parts
from stages.recipe import default_chain
from tests.exchange import ASKED, Got, answered, calls, opened, refusal, route, sent, whole
from tests.support import (
    DONE,
    Chance,
    call,
    chat_streams,
    cuts_of,
    finish,
    reasoning,
    sse,
    text,
    usage,
)

HELLO = sse(text("hello"), finish(), usage(), DONE)
SAYS_HELLO = whole(content="hello")
FORMS = [True, False]
SLOW = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}


# A request goes up


def test_a_request_is_translated_for_its_upstream() -> None:
    exchange = opened(temperature=0.5)
    assert isinstance(exchange.request, UpstreamRequest)
    assert exchange.request.path == "chat/completions"
    assert exchange.request.headers == {"accept": "text/event-stream", "content-type": "application/json"}
    body = sent(exchange)
    assert (body["model"], body["temperature"], body["stream"]) == ("m", 0.5, True)
    assert body["messages"] == [{"role": "user", "content": "hello"}]


def test_a_whole_answer_is_asked_for_as_one() -> None:
    exchange = opened(stream=False)
    assert isinstance(exchange.request, UpstreamRequest)
    assert exchange.request.headers["accept"] == "application/json"
    assert (sent(exchange).get("stream", False), exchange.form) == (False, Form.WHOLE)


def test_a_model_is_asked_for_by_its_upstreams_name() -> None:
    on = route(models={"m": "their-m"})
    assert sent(opened(on=on))["model"] == "their-m"
    assert sent(opened(on=on, model="other"))["model"] == "other"


def test_a_route_decides_what_its_requests_are_like() -> None:
    strict = route(requests=RequestOptions(strict=True))
    assert refusal(opened(on=strict, top_k=7))[0] == 400
    assert "top_k" not in sent(opened(top_k=7))


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_an_upstream_that_gives_nothing_but_streams_is_asked_for_one_and_the_client_gets_what_it_wants(
    upstream: str,
) -> None:
    exchange = opened(stream=False, on=route(upstream=upstream, streams_only=True))
    assert isinstance(exchange.request, UpstreamRequest)
    assert exchange.request.headers["accept"] == "text/event-stream"
    assert (sent(exchange)["stream"], exchange.form) == (True, Form.WHOLE)
    if upstream == "chat":
        assert answered(exchange, HELLO).message["content"] == [{"type": "text", "text": "hello"}]


def test_members_that_an_upstream_refuses_are_left_out_and_recorded() -> None:
    without = frozenset({"max_output_tokens", "temperature", "seed"})
    exchange = opened(on=route(upstream="responses", without=without), temperature=0.5)
    assert not {"max_output_tokens", "temperature"} & sent(exchange).keys()
    lost = [(entry["stage"], entry["path"], entry["action"]) for entry in exchange.ledger]
    assert lost == [("Route", "max_output_tokens", "dropped"), ("Route", "temperature", "dropped")]


def test_the_stages_know_what_was_asked() -> None:
    facts = opened(tools=[{"name": "x" * 80, "input_schema": {"type": "object"}}]).facts
    assert (facts.model, facts.stream, facts.include_usage) == ("m", True, True)
    assert facts.usage is not None
    assert facts.usage.input > 0
    assert {tool.name for tool in facts.map.tools.values()} == {"x" * 80}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "the body is not one JSON value"),
        (b"{", "the body is not one JSON value"),
        (b"[]", "the body is not a JSON object"),
        (json.dumps({**ASKED, "max_tokens": None}).encode(), "max_tokens"),
        (json.dumps({**ASKED, "messages": [{"role": "user", "content": [{"type": "x"}]}]}).encode(), "messages[0]"),
        (json.dumps({**ASKED, "messages": [{"role": "user", "content": 7}]}).encode(), "messages[0].content"),
        (b"[" * 300 + b"]" * 300, "the body"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_naming_what_is_wrong(body: bytes, named: str) -> None:
    exchange = route().open(body)
    status, error = refusal(exchange)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert named in error["message"]
    assert exchange.outcome.verdict is Verdict.FAILED
    assert exchange.facts == RequestFacts()


def test_a_request_that_is_too_large_is_refused_as_such() -> None:
    exchange = route(limits=Limits(request_bytes=50)).open(b"{" + b" " * 60 + b"}")
    assert refusal(exchange) == (
        413,
        {"type": "request_too_large", "message": "the body has 62 bytes, the most is 50"},
    )


# An answer comes down


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("body", [HELLO, SAYS_HELLO])
def test_an_answer_comes_in_the_form_that_was_asked_for_whatever_form_it_has(stream: bool, body: bytes) -> None:
    got = answered(opened(stream), body)
    assert got.is_stream == stream
    assert got.message == answered(opened(), HELLO).message
    assert got.message["content"] == [{"type": "text", "text": "hello"}]
    assert got.message["usage"]["output_tokens"] == 5
    assert got.exchange.outcome.verdict is Verdict.COMPLETE


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("body", [HELLO, SAYS_HELLO])
@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/event-stream",
        "application/json; charset=utf-8",
        "text/html",
        "text/plain",
        "application/octet-stream",
    ],
)
def test_no_content_type_misleads(stream: bool, body: bytes, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert answered(opened(stream), body, headers=headers).message == answered(opened(stream), body).message


@pytest.mark.parametrize("status", [200, 201, 299])
def test_any_status_of_success_is_one(status: int) -> None:
    assert answered(opened(), HELLO, status=status).status == 200


def test_a_stream_for_a_stream_leaves_read_by_read() -> None:
    got = answered(opened(), sse(text("a")), sse(text("b")), sse(finish(), DONE))
    assert [b'"a"' in got.out[0], b'"b"' in got.out[1], b"message_stop" in got.out[2]] == [True, True, True]


def test_the_head_of_an_answer_tells_of_the_upstreams_request() -> None:
    told = {"X-Request-Id": "r", "x-ratelimit-remaining-requests": "7", "Content-Length": "9", "Content-Encoding": "br"}
    for body, status in ((HELLO, 200), (b"busy", 503)):
        got = answered(opened(), body, status=status, headers=told)
        assert got.head is not None
        assert got.head.headers["request-id"] == "r"
        assert got.head.headers["x-ratelimit-remaining-requests"] == "7"
        assert not {"content-length", "content-encoding"} & got.head.headers.keys()


def test_a_ping_before_the_first_byte_begins_a_stream() -> None:
    reply = opened().reply(200, {})
    assert isinstance(reply.chain, Chain)
    assert b"".join(reply.chain.idle()) == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert reply.head is not None
    assert reply.head.status == 200
    assert b"event: error" in b"".join([*reply.chain.receive([json.dumps(SLOW).encode()]), *reply.chain.receive_eof()])


def test_a_whole_answer_and_an_error_have_no_pings() -> None:
    for reply in (opened(False).reply(200, {}), opened().reply(503, {})):
        assert isinstance(reply.chain, Chain)
        assert (list(reply.chain.idle()), reply.head) == ([], None)


@given(st.data())
def test_all_four_ways_say_the_same_up_to_the_order_of_blocks(data: st.DataObject) -> None:
    stream = data.draw(chat_streams())
    body = whole(
        "tool_calls" if stream.calls else "stop",
        reasoning_content=stream.reasoning,
        content=stream.text,
        tool_calls=calls(*((f"id{n}", name, json.dumps(value)) for n, (name, value) in enumerate(said(stream)))),
    )
    ways = [answered(opened(asked), *reads(data, raw)).message for asked in FORMS for raw in (stream.raw, body)]
    streamed, through, gathered, plain = ways
    assert gathered == streamed
    assert through == plain
    assert flat(streamed) == flat(plain)


def said(stream: Chance) -> list[tuple[str, Any]]:
    """The calls of a stream by their ids."""
    return sorted(stream.calls)


def reads(data: st.DataObject, raw: bytes) -> Sequence[bytes]:
    return data.draw(cuts_of(raw))


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose blocks of a kind are one, and stand in the order of a Chat body."""
    blocks = message["content"]
    thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    words = "".join(block["text"] for block in blocks if block["type"] == "text")
    called = sorted((block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    return {**message, "content": (thinking, words, called)}


@given(st.data())
def test_no_answer_depends_on_how_its_bytes_were_cut(data: st.DataObject) -> None:
    raw = data.draw(
        st.sampled_from(
            [
                *(HELLO, SAYS_HELLO, b"\n\n" + SAYS_HELLO, HELLO[:200], SAYS_HELLO[:60]),
                *(b"", b"<html>", b"busy", json.dumps(SLOW).encode(), sse(SLOW), sse(text("a"), SLOW)),
                sse(call(0, "i", "f", "[1]"), finish(), DONE),
            ]
        )
    )
    stream, status = data.draw(st.booleans()), data.draw(st.sampled_from([200, 429, 500]))
    whole, pieces = (answered(opened(stream), *cut, status=status) for cut in ([raw], data.draw(cuts_of(raw))))
    assert (pieces.head, pieces.body) == (whole.head, whole.body)
    assert pieces.exchange.outcome == whole.exchange.outcome
    assert pieces.exchange.ledger == whole.exchange.ledger


# Numbers, names, opaque reasoning


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("number", ["1.10", "12345678901234567890123", "0.12345678901234567890", "-0.0", "1E400"])
def test_arguments_keep_every_digit(stream: bool, number: str) -> None:
    arguments = f'{{"x": {number}}}'
    one = calls(("i", "f", arguments))
    for body in (whole("tool_calls", tool_calls=one), sse(call(0, "i", "f", arguments), finish())):
        raw = answered(opened(stream), body).body
        assert (json.dumps(arguments).encode() if stream else arguments.encode()) in raw


def test_a_shortened_name_comes_back_as_it_was() -> None:
    name = "mcp__" + "x" * 80
    for stream in FORMS:
        exchange = opened(stream, tools=[{"name": name, "input_schema": {"type": "object"}}])
        given_name = sent(exchange)["tools"][0]["function"]["name"]
        assert len(given_name) <= 64
        got = answered(exchange, whole("tool_calls", tool_calls=calls(("i", given_name, "{}"))))
        assert got.message["content"][0]["name"] == name


def test_opaque_reasoning_comes_back_to_its_provider_and_to_no_other() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "S"}]
    for stream in FORMS:
        message = answered(opened(stream), whole(content="a", reasoning="hm", reasoning_details=details)).message
        assert message["content"][0]["thinking"] == "hm"
        turns = [*ASKED["messages"], {"role": "assistant", "content": message["content"]}]
        again = [*turns, {"role": "user", "content": "go on"}]
        assert sent(opened(messages=again))["messages"][1]["reasoning_details"] == details
        other = route(answers=AnswerOptions(upstream="another"))
        assert "reasoning_details" not in sent(opened(on=other, messages=again))["messages"][1]


def test_without_envelopes_no_opaque_reasoning_is_shown() -> None:
    plain = route(answers=AnswerOptions(envelope=False))
    details = [{"text": "hm", "signature": "S"}, {"type": "reasoning.encrypted", "data": "E"}]
    for stream in FORMS:
        got = answered(opened(stream, on=plain), whole(content="a", reasoning_details=details))
        assert [block["type"] for block in got.message["content"]] == ["thinking", "text"]
        assert got.message["content"][0]["signature"] == ""
        assert {entry["path"] for entry in got.exchange.ledger} == {"signature", "redacted reasoning"}


# Stages of one's own


class Shout(AsyncEventStage):
    """Awaits, and shouts."""

    async def on_event(self, event: Event) -> Sequence[Event]:
        await anyio.lowlevel.checkpoint()
        return [TextDelta(event.index, event.text.upper()) if isinstance(event, TextDelta) else event]


def shouting(*args: Any, **asked: Any) -> AsyncStage[bytes, bytes]:
    """The default recipe with a stage that awaits before the validator."""
    made = list(parts(default_chain(*args, **asked)))
    at = next(at for at, stage in enumerate(made) if type(stage).__name__ == "BlockValidator")
    return Chain(made[:at]) | Shout() | Chain(made[at:])


@pytest.mark.parametrize("stream", FORMS)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_stage_that_awaits_stands_in_any_route(backend: str, stream: bool) -> None:
    on = route()
    exchange = opened(stream, on=Route(client=on.client, upstream=on.upstream, recipe=shouting))
    reply = exchange.reply(200, {})
    out: list[bytes] = []

    async def answering() -> None:
        left = [SAYS_HELLO]

        async def receive() -> bytes:
            return left.pop() if left else b""

        async def send(data: bytes) -> None:
            out.append(data)

        await drive(receive, reply.chain, send)

    anyio.run(answering, backend=backend)
    got = Got(exchange, reply.head, out)
    assert got.message["content"] == [{"type": "text", "text": "HELLO"}]


def test_a_fragment_and_a_reasoning_that_alternate_stay_one_call() -> None:
    raw = sse(call(0, "i", "f", '{"x"'), reasoning("hm"), call(0, arguments=":1}"), finish("tool_calls"), DONE)
    for stream in FORMS:
        blocks = answered(opened(stream), raw).message["content"]
        assert [block["type"] for block in blocks] == ["tool_use", "thinking"]
        assert blocks[0]["input"] == {"x": 1}


@pytest.mark.parametrize("stream", FORMS)
def test_an_answer_repeats_what_its_dialect_repeats_of_the_request(stream: bool) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]
    asked = {"model": "m", "input": "hello", "temperature": 0.5, "tools": tools, "store": False, "stream": stream}
    exchange = route(client="responses").open(json.dumps(asked).encode())
    out = answered(exchange, HELLO).body
    lines = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: ")]
    told = [json.loads(line).get("response") for line in lines] if stream else [json.loads(out)]
    for response in filter(None, told):
        assert (response["temperature"], response["tools"], response["store"]) == (0.5, tools, False)
    assert len([*filter(None, told)]) == (3 if stream else 1)
