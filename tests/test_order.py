"""What order an answer keeps, streamed, whole and over two hops: `docs/decisions/order.md`."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.reply import Form
from pipeline.testing import cut
from stages.recipe import default_chain
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests.exchange import Got, answered, calls, opened, route, whole
from tests.interleaved import FIRST, SCRIPTS, SECOND, TIME, WEATHER
from tests.messages_client import folded
from tests.support import DONE, call, chunk, finish, fragment, reasoning, sse, text

FORMS = [True, False]
IN_ORDER = [("thinking", FIRST), ("tool_use", WEATHER[1]), ("thinking", SECOND), ("tool_use", TIME[1])]


def said(message: dict[str, Any]) -> list[tuple[str, str]]:
    """The blocks of a message, in order, each with its words or its tool's name."""
    return [
        (block["type"], block.get("thinking") or block.get("text") or block.get("name") or "")
        for block in message["content"]
    ]


def got(upstream: str, stream: bool, body: bytes) -> Got:
    """What a client that asked for this form gets of that body."""
    return answered(opened(stream, on=route(upstream=upstream)), body)


def wire(*events: rs.Json) -> bytes:
    """A Responses stream."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


# One hop, streamed


@pytest.mark.parametrize("upstream", [*SCRIPTS])
@pytest.mark.parametrize("stream", FORMS)
def test_a_stream_keeps_the_order_in_which_blocks_began_whatever_form_it_leaves_in(upstream: str, stream: bool) -> None:
    assert said(got(upstream, stream, SCRIPTS[upstream].streamed()).message) == IN_ORDER


def test_what_one_chunk_says_at_once_reads_as_reasoning_text_calls() -> None:
    delta = {"tool_calls": [fragment(0, "i", "f", "{}")], "content": "b", "reasoning_content": "a"}
    message = got("chat", True, sse(chunk(delta), finish("tool_calls"), DONE)).message
    assert said(message) == [("thinking", "a"), ("text", "b"), ("tool_use", "f")]


@pytest.mark.parametrize("stream", FORMS)
def test_text_that_is_interrupted_goes_on_in_a_block_of_its_own(stream: bool) -> None:
    spoken = sse(text("a"), reasoning("b"), text("c"), reasoning("d"), finish(), DONE)
    parts = [("text", "a"), ("thinking", "b"), ("text", "c"), ("thinking", "d")]
    assert said(got("chat", stream, spoken).message) == parts


# One hop, whole


@pytest.mark.parametrize("stream", FORMS)
def test_a_whole_chat_answer_reads_as_reasoning_text_calls_whatever_came_first(stream: bool) -> None:
    body = whole("tool_calls", tool_calls=calls(WEATHER, TIME), content="b", reasoning_content="a")
    in_order = [("thinking", "a"), ("text", "b"), ("tool_use", WEATHER[1]), ("tool_use", TIME[1])]
    assert said(got("chat", stream, body).message) == in_order


def test_a_whole_chat_answer_has_no_seam_between_thoughts_that_a_stream_had_apart() -> None:
    streamed, body = (got("chat", stream, form) for stream, form in zip(FORMS, _forms("chat"), strict=True))
    assert said(streamed.message) == IN_ORDER
    assert said(body.message) == [("thinking", FIRST + SECOND), ("tool_use", WEATHER[1]), ("tool_use", TIME[1])]


@pytest.mark.parametrize("stream", FORMS)
def test_a_whole_responses_answer_keeps_the_order_of_its_output(stream: bool) -> None:
    assert said(got("responses", stream, SCRIPTS["responses"].whole()).message) == IN_ORDER


def test_a_responses_stream_says_what_its_whole_answer_says() -> None:
    streamed, body = (got("responses", True, form).message for form in _forms("responses"))
    assert streamed == body


def test_a_message_that_its_server_interrupts_is_two_blocks_streamed_and_one_whole() -> None:
    spoken, thought = rs.message("ac"), rs.reasoning("b")
    stream = wire(
        rs.created(),
        rs.added(rs.message()),
        rs.text("a"),
        rs.added(rs.reasoning(), 1),
        rs.summary("b", 1),
        rs.done(thought, 1),
        rs.text("c"),
        rs.done(spoken),
        rs.terminal(output=[spoken, thought]),
    )
    assert said(got("responses", True, stream).message) == [("text", "a"), ("thinking", "b"), ("text", "c")]
    body = json.dumps(rs.response(output=[spoken, thought])).encode()
    assert said(got("responses", True, body).message) == [("text", "ac"), ("thinking", "b")]


def _forms(upstream: str) -> tuple[bytes, bytes]:
    return SCRIPTS[upstream].streamed(), SCRIPTS[upstream].whole()


# Two hops


@pytest.mark.parametrize("size", [None, 1, 64])
def test_over_a_hop_that_has_an_order_two_hops_keep_what_one_keeps(size: int | None) -> None:
    spoken = sse(text("a"), *_between(), text("c"), finish("tool_calls"), DONE)
    chat, responses, messages = map(dialect, ("chat", "responses", "messages"))
    direct = default_chain(chat, messages)
    over = default_chain(chat, responses) | default_chain(responses, messages)
    one, two = (
        folded(b"".join([*(out for read in cut(spoken, size) for out in chain.receive([read])), *chain.receive_eof()]))
        for chain in (direct, over)
    )
    assert said(one) == [("text", "a"), *IN_ORDER, ("text", "c")] == said(two)
    assert [block["input"] for block in one["content"] if "input" in block] == [
        block["input"] for block in two["content"] if "input" in block
    ]


def _between() -> list[dict[str, Any]]:
    """Thoughts and calls; the second thought comes inside the first call."""
    half = len(WEATHER[2]) // 2
    return [
        reasoning(FIRST),
        call(0, WEATHER[0], WEATHER[1], WEATHER[2][:half]),
        reasoning(SECOND),
        call(0, arguments=WEATHER[2][half:]),
        call(1, *TIME),
    ]


def test_over_a_hop_that_answers_whole_in_chat_two_hops_keep_the_calls_and_their_order_alone() -> None:
    """A Chat body between two processes: what any server of that API can say whole of this turn."""
    body = SCRIPTS["chat"].whole()
    message = got("chat", False, body).message
    assert [kind for kind, _ in said(message)] == ["thinking", "tool_use", "tool_use"]
    assert [block["id"] for block in message["content"][1:]] == [WEATHER[0], TIME[0]]


# Texts that are told at once, and blanks

TWO = [rs.message("Hello ", id="m1"), rs.message("world", id="m2")]
BLANK_FIRST = [rs.message("\n\nhello x", id="m1"), rs.reasoning("why", id="rs1")]
AT_ONCE = {
    "responses": wire(
        *[rs.created(), *(rs.added({**item, "content": []}, place) for place, item in enumerate(TWO))],
        *[
            rs.text("Hel", 0, id="m1"),
            rs.text("wor", 1, id="m2"),
            rs.text("lo ", 0, id="m1"),
            rs.text("ld", 1, id="m2"),
        ],
        *[rs.done(item, place) for place, item in enumerate(TWO)],
        rs.terminal(output=TWO),
    ),
    "messages": ms.sse(
        [
            *[ms.begin(), *(ms.start({"type": "text", "text": ""}, place) for place in (0, 1))],
            *[ms.text("Hel", 0), ms.text("wor", 1), ms.text("lo ", 0), ms.text("ld", 1), ms.stop(0), ms.stop(1)],
            *[ms.told(), ms.END],
        ]
    ),
}


def texts(upstream: str, client: str, body: bytes, arriving: Form, leaving: Form, size: int | None = None) -> list[str]:
    """The texts that a client is told, which a Messages client reads."""
    chain = default_chain(dialect(upstream), dialect(client), arriving=arriving, leaving=leaving)
    reads = [body] if size is None else cut(body, size)
    raw = b"".join([*(made for read in reads for made in chain.receive([read])), *chain.receive_eof()])
    if client != "messages":
        return texts(client, "messages", raw, leaving, Form.WHOLE)
    message = folded(raw) if leaving is Form.STREAM else json.loads(raw)
    return [block["text"] for block in message["content"] if block["type"] == "text"]


@pytest.mark.parametrize("size", [None, 1, 50])
@pytest.mark.parametrize("leaving", [*Form])
@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
@pytest.mark.parametrize("upstream", AT_ONCE)
def test_two_texts_that_are_told_at_once_are_one_behind_the_other(
    upstream: str, client: str, leaving: Form, size: int | None
) -> None:
    if upstream != client:
        said = texts(upstream, client, AT_ONCE[upstream], Form.STREAM, leaving, size)
        assert said == (["Hello world"] if client == "chat" else ["Hello ", "world"])


@pytest.mark.parametrize("arriving", [*Form])
@pytest.mark.parametrize("client", ["chat", "messages"])
def test_the_blanks_that_an_item_begins_with_stay_where_something_comes_between(client: str, arriving: Form) -> None:
    item, thought = BLANK_FIRST
    streamed = wire(
        *[rs.created(), rs.added({**item, "content": []}, 0), rs.text("\n\n", 0), rs.added(rs.reasoning(), 1)],
        *[rs.summary("why", 1), rs.done(thought, 1), rs.text("hello x", 0), rs.done(item, 0)],
        rs.terminal(output=BLANK_FIRST),
    )
    body = streamed if arriving is Form.STREAM else json.dumps(rs.response(output=BLANK_FIRST)).encode()
    assert texts("responses", client, body, arriving, Form.WHOLE) == ["\n\nhello x"]


@pytest.mark.parametrize("leaving", [*Form])
@pytest.mark.parametrize("size", [None, 1])
def test_blanks_between_two_reasonings_part_the_texts_around_them(leaving: Form, size: int | None) -> None:
    body = sse(text("one"), reasoning("a"), text("\n\n"), reasoning("b"), text("two"), finish(), DONE)
    assert "".join(texts("chat", "messages", body, Form.STREAM, leaving, size)) == "one\n\ntwo"
    assert "".join(texts("chat", "responses", body, Form.STREAM, leaving, size)) == "one\n\ntwo"
