"""One dialect over itself: whichever frames markup takes with it, the rest is lawful and says what a whole answer says."""

import json
import random

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.testing import cut
from tests.lawful import check_law
from tests.markup_streams import Json, Part, chatted, messaged, responded, sse, told, whole
from tests.returning import payloads, returned

CALL = '<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'
NAMELESS = '<tool_call>{"arguments":{}}</tool_call>'
STREAMS = {"messages": messaged, "chat": chatted, "responses": responded}

every_dialect = pytest.mark.parametrize("name", STREAMS)


def client(name: str, raw: bytes, recover: str = "prompt") -> tuple[bytes, Outcome]:
    """What a client of the dialect gets, which is lawful."""
    out, outcome = returned(name, [raw], facts=facts(Form.STREAM), options=AnswerOptions(recover=recover))
    check_law(name, out)
    return out, outcome


def facts(form: Form) -> RequestFacts:
    return RequestFacts(stream=form is Form.STREAM, tools={"f": {}}, include_usage=True)


def streamed(name: str, out: bytes) -> list[tuple[str, str]]:
    """What a stream says, in its order."""
    if name == "responses":
        return told(name, payloads(out)[-1]["response"])
    rolled, _ = returned(name, [out], leaving=Form.WHOLE, facts=facts(Form.WHOLE), options=AnswerOptions(recover="off"))
    return told(name, json.loads(rolled))


def answered(name: str, parts: list[Part], recover: str) -> list[tuple[str, str]]:
    """What the whole answer says, in its order."""
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE, "facts": facts(Form.WHOLE)}
    body = json.dumps(whole(name, parts)).encode()
    out, _ = returned(name, [body], **forms, options=AnswerOptions(recover=recover))
    return told(name, json.loads(out))


@every_dialect
@pytest.mark.parametrize("recover", ["prompt", "native"])
@pytest.mark.parametrize("first", ["<think>deep</think>", "<think/>", CALL, NAMELESS, "<tool_call></tool_call>"])
def test_a_first_delta_that_is_all_markup_is_told_nowhere(name: str, recover: str, first: str) -> None:
    out, _ = client(name, sse(*STREAMS[name]([("text", [first, "Hello"])])), recover)
    said = [text for kind, text in streamed(name, out) if kind == "text"]
    if recover == "prompt" or "think" in first:
        assert said == ["Hello"]
        assert b"<t" not in out
    for piece in ([first, "Hello", " you"], ["\n", first, "Hello"], [first, first, "Hello"]):
        client(name, sse(*STREAMS[name]([("text", piece)])), recover)
