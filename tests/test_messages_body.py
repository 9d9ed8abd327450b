"""A whole Messages answer: what a client makes of its stream, in one piece."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import STATUS, ErrorKind
from pipeline.events import Event, StopReason, StreamError, ToolKind, Usage
from pipeline.jsontext import dumps
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.message import (
    Content,
    Message,
    Reasoning,
    RedactedReasoning,
    Refusal,
    ServerItem,
    Text,
    ToolUse,
    assemble,
    disassemble,
)
from pipeline.stage import Stage
from pipeline.testing import EOF, play
from stages.dialects.messages import body
from stages.dialects.messages.encode import MessagesEncoder
from stages.dialects.messages.errors import TYPES, status_of
from stages.interleave import InterleaveBuffer
from stages.validate import BlockValidator
from tests.canonical import Stream, losses, streams
from tests.exchange import answered, opened, route
from tests.messages_client import folded


def written(*content: Content, ledger: Ledger | None = None, **members: Any) -> dict[str, Any]:
    """The body of a message with this content, as it is on the wire."""
    message = Message("msg_1", "m", content, **{"stop_reason": StopReason.END_TURN, "usage": Usage(1), **members})
    parsed: dict[str, Any] = json.loads(dumps(body.write(message, Ledger() if ledger is None else ledger)))
    return parsed


def test_an_answer_is_a_message() -> None:
    assert written(Text("hi"), usage=Usage(1, 2, 3, 4, 1)) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 3,
            "output_tokens": 4,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }


def test_an_answer_without_words_of_its_end_ends_its_turn_and_cost_nothing_that_is_known() -> None:
    ledger = Ledger()
    said = written(stop_reason=None, usage=None, ledger=ledger)
    assert [(entry.path, entry.action) for entry in ledger] == [("usage", "made")]
    assert (said["stop_reason"], said["content"]) == ("end_turn", [])
    assert said["usage"]["input_tokens"] == said["usage"]["output_tokens"] == 0


def test_a_stop_sequence_is_told() -> None:
    said = written(Text("hi"), stop_reason=StopReason.STOP_SEQUENCE, stop_sequence="END")
    assert (said["stop_reason"], said["stop_sequence"]) == ("stop_sequence", "END")


def test_another_apis_id_is_made_one_of_this() -> None:
    assert body.write(Message("chatcmpl-1", "m"), Ledger())["id"] == "msg_chatcmpl-1"
    assert len(body.write(Message("", "m"), Ledger())["id"]) == len("msg_") + 24


@pytest.mark.parametrize(
    ("content", "block"),
    [
        (Text("a"), {"type": "text", "text": "a"}),
        (
            Text("a", ({"type": "char_location"},)),
            {"type": "text", "text": "a", "citations": [{"type": "char_location"}]},
        ),
        (Refusal("no"), {"type": "text", "text": "no"}),
        (Reasoning("hm"), {"type": "thinking", "thinking": "hm", "signature": ""}),
        (Reasoning("hm", "sig"), {"type": "thinking", "thinking": "hm", "signature": "sig"}),
        (
            Reasoning("hm", '{"type":"thinking","signature":"sig"}'),
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
        ),
        (RedactedReasoning("E"), {"type": "redacted_thinking", "data": "E"}),
        (
            RedactedReasoning('{"type":"redacted_thinking","data":"E"}'),
            {"type": "redacted_thinking", "data": "E"},
        ),
        (ToolUse("i", "f", '{"x": 1}'), {"type": "tool_use", "id": "i", "name": "f", "input": {"x": 1}}),
        (
            ToolUse("i", "f", 'a"b', ToolKind.CUSTOM),
            {"type": "tool_use", "id": "i", "name": "f", "input": {"input": 'a"b'}},
        ),
        (ServerItem("messages", {"type": "server_tool_use", "id": "s"}), {"type": "server_tool_use", "id": "s"}),
    ],
)
def test_each_content_is_a_block(content: Content, block: dict[str, Any]) -> None:
    ledger = Ledger()
    assert written(content, ledger=ledger)["content"] == [block]
    assert len(ledger) == 0


def test_what_messages_cannot_show_is_left_out_and_recorded() -> None:
    ledger = Ledger()
    said = written(Text("a", ({"type": "url_citation"},)), ServerItem("responses", {}), Text("b"), ledger=ledger)
    assert said["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [entry[:2] for entry in losses(ledger)] == [("ServerBlock[1]", "dropped"), ("annotation", "dropped")]


def test_the_page_that_another_api_cites_is_a_citation() -> None:
    ledger = Ledger()
    notes = ({"type": "file_path", "file_id": "f"}, {"type": "url_citation", "url": "u"})
    (block,) = written(Text("a", notes), ledger=ledger)["content"]
    cited = {"type": "web_search_result_location", "url": "u", "title": "u", "cited_text": "", "encrypted_index": ""}
    assert block == {"type": "text", "text": "a", "citations": [cited]}
    assert [entry[:2] for entry in losses(ledger)] == [("annotation", "dropped"), ("annotation", "translated")]


@pytest.mark.parametrize("kind", ToolKind)
def test_the_input_of_a_call_that_the_limit_cut_is_empty_and_recorded(kind: ToolKind) -> None:
    ledger = Ledger()
    said = written(ToolUse("i", "f", '{"x": "a', kind, complete=False), ledger=ledger)
    assert said["content"][0]["input"] == {}
    assert [entry[:2] for entry in losses(ledger)] == [("arguments", "dropped")]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": 1.10}',
        '{"x": 12345678901234567890123}',
        '{"x": 0.12345678901234567890}',
        '{"x": 1E5, "y": -0.0}',
        '{ "b" : 1, "a" : 2 }',
        '{"é": "\\u00e9\\/"}',
    ],
)
def test_the_input_stands_as_the_model_wrote_it(arguments: str) -> None:
    raw = dumps(body.write(Message("m", "m", (ToolUse("i", "f", arguments),)), Ledger()))
    assert f'"input":{arguments}'.encode() in raw
    json.loads(raw)


def test_half_a_character_in_the_input_breaks_no_reader() -> None:
    big = ToolUse("j", "g", '{"n": 12345678901234567890123}')
    raw = dumps(body.write(Message("m", "m", (ToolUse("i", "f", '{"x": "\\ud83d"}'), big)), Ledger()))
    inputs = [block["input"] for block in json.loads(raw.decode())["content"]]
    assert inputs == [{"x": "\ufffd"}, {"n": 12345678901234567890123}]


# What is streamed is what is whole


@given(streams())
def test_an_assembled_stream_is_the_whole_answer(stream: Stream) -> None:
    events = lawful(stream.whole)
    ledger = Ledger()
    frames = [frame for step in play(MessagesEncoder(ledger=ledger), events, EOF) for frame in step]
    whole = json.loads(dumps(body.write(assemble(events), ledger)))
    assert folded(b"".join(b"event: %b\ndata: %b\n\n" % (frame.name, frame.data) for frame in frames)) == whole


@given(streams())
def test_a_message_taken_apart_again_is_the_same_answer(stream: Stream) -> None:
    message = assemble(lawful(stream.whole))
    again = assemble(lawful(list(disassemble(message))))
    assert body.write(again, Ledger()) == body.write(message, Ledger())


def lawful(events: list[Event]) -> list[Event]:
    """The events behind the neutral stages."""
    chain: Stage[Event, Event] = InterleaveBuffer() | BlockValidator()
    return [event for step in play(chain, events, EOF) for event in step]


# Errors


@pytest.mark.parametrize("kind", ErrorKind)
def test_an_error_of_ours_has_the_status_of_its_class(kind: ErrorKind) -> None:
    assert status_of(StreamError(kind, ""), 0) == (402 if kind is ErrorKind.QUOTA else STATUS[kind])


@pytest.mark.parametrize("status", [302, 600, 1, -1])
def test_what_is_no_errors_status_is_not_passed_on(status: int) -> None:
    assert status_of(StreamError(ErrorKind.API, ""), status) == 500


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 429, 500, 502, 520, 599])
def test_the_upstreams_status_stands(status: int) -> None:
    assert status_of(StreamError(ErrorKind.API, ""), status) == status


def test_an_overloaded_upstream_is_told_in_this_apis_way() -> None:
    assert status_of(StreamError(ErrorKind.OVERLOADED, ""), 503) == 529


def test_every_class_of_error_has_a_type() -> None:
    assert set(TYPES) == set(ErrorKind)


@given(st.sampled_from(list(ErrorKind)))
def test_a_client_always_gets_a_status_that_is_an_error(kind: ErrorKind) -> None:
    assert 400 <= status_of(StreamError(kind, ""), 200) < 600


@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_the_input_of_a_call_may_be_as_deep_as_the_route_allows(upstream: str) -> None:
    deep = '{"x":' + "[" * 300 + "]" * 300 + "}"
    call = {"id": "i", "type": "function", "function": {"name": "f", "arguments": deep}}
    item = {"id": "fc_i", "type": "function_call", "call_id": "i", "name": "f", "arguments": deep}
    said = {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}]}
    answer = said if upstream == "chat" else {"object": "response", "status": "completed", "output": [item]}
    on = route("messages", upstream, limits=Limits(json_depth=400))
    got = answered(opened(stream=False, on=on), dumps(answer))
    assert f'"input":{deep}' in got.body.decode()
