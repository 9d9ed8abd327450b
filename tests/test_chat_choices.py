"""Chat over itself: the further choices of an answer."""

import json
from typing import Literal

import pytest

from pipeline.dialect import RequestFacts
from pipeline.route import AnswerOptions
from tests.returning import payloads, returned


def choices_of(stream: bytes) -> dict[int, str]:
    """The texts of each choice."""
    told: dict[int, str] = {}
    for chunk in payloads(stream):
        for choice in chunk["choices"] if chunk != "[DONE]" else ():
            told[choice["index"]] = told.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return told


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("recover", ["prompt", "native"])
def test_other_choices_pass_as_they_came_whatever_becomes_of_the_first(
    turned: bool, recover: Literal["prompt", "native"]
) -> None:
    markup = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    pieces = ["A", markup[:6], markup[6:30], markup[30:], "", "B"]
    others = [f"other {at} " for at in range(len(pieces))]
    chunks = []
    for piece, other in zip(pieces, others, strict=True):
        told = [{"index": at, "delta": {"content": text}} for at, text in enumerate((piece, other))]
        chunks.append({"id": "c", "choices": told[::-1] if turned else told})
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    stream = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    facts, options = RequestFacts(tools={"f": {}}), AnswerOptions(recover=recover)
    for reads in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        out, outcome = returned("chat", reads, facts=facts, options=options)
        assert choices_of(out) == {0: "AB", 1: "".join(others)}
        assert b'"name":"f"' in out
        assert outcome.verdict == "complete"
