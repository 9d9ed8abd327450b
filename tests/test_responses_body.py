"""stages.dialects.responses.body: a whole response and a message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.events import StopReason, StreamError, ToolKind, Usage
from pipeline.ledger import Ledger
from pipeline.message import (
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
from stages.dialects.responses.body import read, write
from stages.dialects.responses.encode import ResponsesEncoder
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.dialects.responses.opaque import item_of, proof_of
from tests.responses_stream import call, message, reasoning, refusal, response


def test_a_response_is_a_message() -> None:
    search = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    output = [
        reasoning("A", "B", id="rs1", blob="E"),
        reasoning(id="rs2", blob="F"),
        search,
        message("Hel", "lo"),
        refusal("no", id="m2"),
        call('{"x":1}'),
    ]
    body = response(output=output, usage={"input_tokens": 10, "output_tokens": 5})
    assert read(body) == Message(
        "resp_1",
        "m",
        (
            Reasoning("A\n\nB", proof_of(output[0]), splittable=False),
            RedactedReasoning(proof_of(output[1])),
            ServerItem("responses", search),
            Text("Hel"),
            Text("lo"),
            Refusal("no"),
            ToolUse("a", "f", '{"x":1}'),
        ),
        StopReason.TOOL_USE,
        usage=Usage(input=10, output=5),
    )


def test_what_an_answer_lacks_comes_from_the_request() -> None:
    facts = RequestFacts(model="asked")
    assert read({"output": None}, facts=facts) == Message("", "asked", (), StopReason.END_TURN)


def test_a_response_that_failed_keeps_what_it_says() -> None:
    body = response("failed", [message("Hi")], error={"code": "server_error", "message": "boom"})
    assert read(body) == Message(
        "resp_1", "m", (Text("Hi"),), error=StreamError(ErrorKind.API, "boom", "server_error", retryable=True)
    )


def test_an_error_body_is_a_message_that_is_an_error() -> None:
    body = {"error": {"message": "no", "type": "invalid_request_error"}}
    assert read(body, facts=RequestFacts(model="asked")) == Message(
        "", "asked", error=StreamError(ErrorKind.INVALID_REQUEST, "no", "invalid_request_error")
    )


@pytest.mark.parametrize("body", [None, [], "x", {}, {"object": "list"}])
def test_what_is_neither_a_response_nor_an_error_is_refused(body: Any) -> None:
    with pytest.raises(UpstreamError, match="neither a response nor an error"):
        read(body)


def test_losses_are_recorded() -> None:
    ledger = Ledger()
    read(response(output=[message("Hi", phase="commentary")]), ledger=ledger)
    assert [entry.path for entry in ledger] == ["phase"]


def test_a_message_is_the_response_that_its_stream_would_end_with() -> None:
    content = (Reasoning("A", "SIG"), Text("Hi"), Refusal("no"), ToolUse("a", "f", '{"x":1}'))
    facts = RequestFacts(echo={"temperature": 0})
    body = write(Message("c1", "m", content, StopReason.TOOL_USE, usage=Usage(input=1)), facts=facts)
    assert [item["id"] for item in body["output"]] == ["rs_c1_0", "msg_c1_1", "msg_c1_2", "fc_a"]
    assert (body["id"], body["status"], body["temperature"]) == ("resp_c1", "completed", 0)
    assert body["usage"]["total_tokens"] == 1


def test_a_message_that_is_an_error_is_a_response_that_failed() -> None:
    ledger = Ledger()
    error = StreamError(ErrorKind.RATE_LIMIT, "slow down", retryable=True)
    content = (ServerItem("messages", {}), ToolUse("a", "f", "{", complete=False))
    body = write(Message("c1", "m", content, error=error), ledger=ledger)
    assert (body["status"], body["output"]) == ("failed", [])
    assert body["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
    assert len(ledger) == 1


words = st.text(min_size=1, max_size=4).filter(lambda text: not text.isspace())
CONTENTS = st.one_of(
    st.builds(Text, words, st.sampled_from([(), ({"type": "file_path", "index": 1},)])),
    st.builds(Refusal, words),
    st.builds(Reasoning, words, st.sampled_from(["", "SIG"]), st.just(False)),
    st.just(RedactedReasoning("SIG")),
    st.builds(ToolUse, words, words, words.map(lambda text: json.dumps({"x": text}))),
    st.builds(ToolUse, words, words, words, st.just(ToolKind.CUSTOM)),
    st.just(ServerItem("responses", {"type": "web_search_call", "id": "ws", "status": "completed"})),
)
MESSAGES = st.builds(
    Message,
    words.map(lambda name: f"resp_{name}"),
    words,
    st.lists(CONTENTS, max_size=4, unique_by=lambda one: getattr(one, "id", object())).map(tuple),
    st.just(StopReason.END_TURN),
    usage=st.builds(Usage, *[st.integers(0, 99)] * 5),
)


def known_again(content: Any) -> Any:
    """What comes back: a signature has become a proof, which holds it."""
    if isinstance(content, Reasoning) and content.signature:
        return Reasoning(content.text, opaque(content.signature), content.splittable)
    return RedactedReasoning(opaque(content.data)) if isinstance(content, RedactedReasoning) else content


def opaque(signature: str) -> str:
    item = item_of(signature)
    return signature if item is None else str(item["encrypted_content"])


@given(MESSAGES)
def test_a_message_comes_back_from_its_response_and_from_its_stream(message: Message) -> None:
    chain = ResponsesEncoder() | ResponsesNormalizer()
    streamed = assemble([*chain.receive([*disassemble(message)]), *chain.receive_eof()])
    whole = read(write(message))
    for back in (streamed, whole):
        assert tuple(map(known_again, back.content)) == tuple(map(known_again, message.content))
        assert (back.id, back.model, back.usage) == (message.id, message.model, message.usage)
        called = any(isinstance(one, ToolUse) for one in message.content)
        refused = any(isinstance(one, Refusal) for one in message.content)
        assert back.stop_reason is (
            StopReason.TOOL_USE if called else StopReason.REFUSAL if refused else StopReason.END_TURN
        )
