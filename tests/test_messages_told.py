"""One dialect over itself: however often a Messages stream tells how it ended, it says that a call was recovered."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Verdict
from pipeline.route import AnswerOptions
from pipeline.testing import Chunk, cut
from tests.markup_streams import messaged, sse
from tests.returning import payloads, returned

MARKUP = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
ITEMS = messaged([("text", ["a ", MARKUP])])
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


def client(*items: Any, cut_: Chunk) -> tuple[list[Any], Verdict]:
    """What a client gets."""
    members: Any = {"facts": RequestFacts(tools={"f": {}}), "options": AnswerOptions(recover="prompt")}
    out, outcome = returned("messages", cut(sse(*items), cut_), **members)
    assert outcome.verdict is not None
    return payloads(out), outcome.verdict


def reasons(said: list[Any]) -> list[str]:
    return [one["delta"]["stop_reason"] for one in said if one["type"] == "message_delta"]


@pytest.mark.parametrize("cut_", [1, "frame", None], ids=str)
def test_each_that_tells_the_end_says_so(cut_: Chunk) -> None:
    end = {**ITEMS[-2], "usage": {"output_tokens": 9}}
    said, verdict = client(*ITEMS[:-1], end, ITEMS[-1], cut_=cut_)
    assert (reasons(said), verdict) == (["tool_use", "tool_use"], Verdict.COMPLETE)
    assert [one["usage"] for one in said if one["type"] == "message_delta"] == [ITEMS[-2]["usage"], end["usage"]]
    silent = {**ITEMS[-2], "delta": {"stop_reason": None}}
    assert reasons(client(*ITEMS[:-2], silent, *ITEMS[-2:], cut_=cut_)[0]) == [None, "tool_use"]


@pytest.mark.parametrize("cut_", [1, "frame", None], ids=str)
@pytest.mark.parametrize("last", [[], [ERROR]], ids=["cut", "failed"])
def test_so_does_one_behind_which_the_stream_is_broken_off(last: list[Any], cut_: Chunk) -> None:
    said, verdict = client(*ITEMS[:-1], *last, cut_=cut_)
    assert (reasons(said), said[-1]["type"]) == (["tool_use"], "error")
    assert verdict is (Verdict.FAILED if last else Verdict.CUT)
    limit = {**ITEMS[-2], "delta": {"stop_reason": "max_tokens"}}
    assert reasons(client(*ITEMS[:-2], limit, *last, cut_=cut_)[0]) == ["max_tokens"]
