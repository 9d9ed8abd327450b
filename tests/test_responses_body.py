"""stages.dialects.responses.body: a whole response and a message."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, UpstreamError
from pipeline.events import StopReason, StreamError, Usage
from pipeline.ledger import Ledger
from pipeline.message import Message, Reasoning, RedactedReasoning, Refusal, ServerItem, Text, ToolUse
from stages.dialects.responses.body import read
from stages.dialects.responses.opaque import proof_of
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
            Text("Hello"),
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
