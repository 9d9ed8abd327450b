"""One dialect over itself: a Chat stream in which a call is recovered has one finish, then its counts, and one kind of
call."""

import json
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.ledger import Ledger
from pipeline.route import AnswerOptions
from pipeline.testing import Chunk, cut
from stages.dialects.chat.forms import unroll
from tests.lawful import check_law
from tests.returning import payloads, returned
from tests.support import DONE, sse

Json = dict[str, Any]

MARKUP = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
ABOUT: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
USAGE: Json = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
CUTS: list[Chunk] = [1, "frame", None]
ROLE: Json = {"role": "assistant", "content": ""}
OLDER: Json = {"function_call": {"name": "g", "arguments": "{}"}}


def chunk(delta: Json, finish: str | None = None, **members: Any) -> Json:
    return {**ABOUT, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **members}


COUNTED: Json = {**ABOUT, "choices": [], "usage": USAGE}


def client(*items: Any, cut_: Chunk = None, older: bool = False) -> tuple[list[Any], Any]:
    """What a client gets of a stream, which is lawful."""
    facts = RequestFacts(tools={"f": {}, "g": {}}, one_call=older)
    out, outcome = returned("chat", cut(sse(*items, DONE), cut_), facts=facts, options=AnswerOptions(recover="prompt"))
    check_law("chat", out)
    return payloads(out), outcome


def finish_of(said: list[Any]) -> list[str]:
    choices = [choice for one in said[:-1] for choice in one["choices"]]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


@pytest.mark.parametrize("cut_", CUTS, ids=str)
@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([chunk(ROLE), chunk({"content": MARKUP}, "stop")], ""),
        ([chunk(ROLE), chunk({"content": MARKUP}, "stop"), chunk({"content": "z"})], "z"),
        ([chunk(ROLE), chunk({"content": MARKUP[:20]}, "stop"), chunk({"content": MARKUP[20:]})], ""),
        ([chunk({**ROLE, "content": f"a {MARKUP}"}, "stop")], "a "),
        ([chunk({**ROLE, "content": MARKUP}, "stop")], ""),
        ([chunk(ROLE), chunk({"content": f"a {MARKUP[:9]}"}), chunk({"content": MARKUP[9:]}, "stop")], "a "),
        ([chunk(ROLE), chunk({"content": MARKUP}), chunk({}, "stop"), chunk({"content": "z"})], "z"),
    ],
    ids=str,
)
def test_the_counts_come_once_behind_the_finish_and_as_they_came(chunks: list[Json], text: str, cut_: Chunk) -> None:
    said, _ = client(*chunks, COUNTED, cut_=cut_)
    assert finish_of(said) == ["tool_calls"]
    assert [one.get("usage") for one in said[-3:-1]] == [None, USAGE]
    assert not any(one.get("usage") for one in said[:-2])
    assert "".join(one["choices"][0]["delta"].get("content") or "" for one in said[:-2]) == text


def test_the_counts_of_a_chunk_of_which_nothing_is_left_are_told_as_they_came() -> None:
    said, outcome = client(chunk(ROLE), chunk({"content": MARKUP}, "stop", usage={**USAGE, "x_own": 1}))
    assert said[-2]["usage"] == {**USAGE, "x_own": 1}
    assert not [entry for entry in outcome.ledger if "x_own" in entry.path]


def test_calls_in_the_deprecated_words_are_told_in_the_others_behind_one_that_was_recovered() -> None:
    said, _ = client(chunk(ROLE), chunk({"content": MARKUP}), chunk(OLDER), chunk({}, "function_call"), COUNTED)
    assert "function_call" not in json.dumps(said)
    entries = [entry for one in said[:-1] for c in one["choices"] for entry in c["delta"].get("tool_calls", ())]
    assert [(entry["index"], entry["function"]["name"]) for entry in entries if "id" in entry] == [(0, "f"), (1, "g")]
    assert "".join(entry["function"].get("arguments", "") for entry in entries if entry["index"] == 1) == "{}"
    assert finish_of(said) == ["tool_calls"]


def test_a_recovered_call_behind_one_in_the_deprecated_words_is_in_the_ledger() -> None:
    said, outcome = client(chunk(ROLE), chunk(OLDER), chunk({"content": MARKUP}), chunk({}, "function_call"), COUNTED)
    assert "tool_calls" not in json.dumps(said)
    assert finish_of(said) == ["function_call"]
    assert [entry.path for entry in outcome.ledger].count("tool use") == 1


@pytest.mark.parametrize(
    ("places", "told"), [((0, 0), [0, 1]), ((None, None), [0, 1]), ((1, None), [0, 1]), ((1, 1, 0), [0, 1, 2])]
)
def test_choices_of_a_whole_answer_each_have_a_place(places: tuple[Any, ...], told: list[int]) -> None:
    choices = [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"} for _ in places]
    for choice, place in zip(choices, places, strict=True):
        choice |= {} if place is None else {"index": place}
    ledger = Ledger()
    frames = unroll(json.dumps({"id": "c", "choices": choices}).encode(), facts=RequestFacts(), ledger=ledger)
    said = [json.loads(frame.data)["choices"][0] for frame in frames[:-1]]
    assert sorted({choice["index"] for choice in said}) == told
    assert [choice["index"] for choice in said if choice["finish_reason"]].count(0) == 1
    assert len([entry for entry in ledger if entry.path == "choices[].index"]) == (places != (1, None))


def test_an_answer_whose_choices_are_none_has_a_stream_that_ends() -> None:
    ledger = Ledger()
    frames = unroll(json.dumps({"id": "c", "choices": [7]}).encode(), facts=RequestFacts(), ledger=ledger)
    check_law("chat", b"".join(b"data: %b\n\n" % frame.data for frame in frames))
    assert json.loads(frames[-2].data)["choices"][0]["finish_reason"] == "stop"
    assert [entry.path for entry in ledger] == ["choices[]", "finish_reason"]
