"""Nothing of an answer vanishes without a word: whatever stands in it arrives, or is in the ledger."""

import copy
import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

from pipeline.events import SignatureDelta
from pipeline.ledger import Ledger
from pipeline.reply import Form
from stages.dialects.responses.normalize import ResponsesNormalizer
from tests.answer_full import WHOLE, Json, answered, frames_of, places, written
from tests.request_full import at

CROSSING = [(up, down) for up in WHOLE for down in WHOLE if up != down]

AS_ONE = {
    ("chat", "messages", r"annotations\[0\]\.url_citation$"): "annotation",
    ("messages", "chat", r"citations?(\[0\])?$"): "annotation",
    ("messages", "responses", r"citations?(\[0\])?$"): "annotation",
    ("messages", "chat", r"caller$"): "tool_use.caller",
    ("messages", "responses", r"caller$"): "tool_use.caller",
    ("messages", "chat", r"cache_creation$"): "usage.cache_creation",
    ("messages", "responses", r"cache_creation$"): "usage.cache_creation",
}
"""The objects that are lost as one, by where they go, and the entry for each."""


def is_told(upstream: str, client: str, place: str, ledger: Ledger) -> bool:
    """Whether the ledger has the member that nobody knows, or the object that it stands in."""
    paths = {entry.path for entry in ledger}
    one = [
        path
        for (up, down, where), path in AS_ONE.items()
        if (up, down) == (upstream, client) and re.search(where, place)
    ]
    return any(path.endswith("zz") for path in paths) or any(path in paths for path in one)


def is_sealed(upstream: str, frame: Json, place: str) -> bool:
    """Whether it stands in a reasoning item, which goes back to its provider whole, in what it is sealed with."""
    item = re.match(r"item|(response\.)?output\[0\]", place)
    return upstream == "responses" and item is not None and bool(at(frame, item[0])["type"] == "reasoning")


def check(upstream: str, client: str, place: str, body: bytes, arriving: Form, leaving: Form) -> None:
    out, ledger = answered(upstream, client, body, arriving, leaving)
    assert b"unheard of" in out or is_told(upstream, client, place, ledger), place


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_a_member_that_nobody_knows_of_a_whole_answer_arrives_or_is_recorded(
    upstream: str, client: str, leaving: Form
) -> None:
    for place in places(WHOLE[upstream]):
        if is_sealed(upstream, WHOLE[upstream], place):
            continue
        answer = copy.deepcopy(WHOLE[upstream])
        at(answer, place)["zz"] = "unheard of"
        check(upstream, client, place, json.dumps(answer).encode(), Form.WHOLE, leaving)


@pytest.mark.parametrize("leaving", Form)
@pytest.mark.parametrize(("upstream", "client"), CROSSING)
def test_a_member_that_nobody_knows_of_a_stream_arrives_or_is_recorded(
    upstream: str, client: str, leaving: Form
) -> None:
    whole = frames_of(upstream)
    for number, frame in enumerate(whole):
        for place in places(frame):
            if is_sealed(upstream, frame, place):
                continue
            frames = copy.deepcopy(whole)
            at(frames[number], place)["zz"] = "unheard of"
            check(upstream, client, place, written(upstream, frames), Form.STREAM, leaving)


@pytest.mark.parametrize(
    ("upstream", "kind"), [("messages", "content_block_delta"), ("responses", "response.function_call_arguments.delta")]
)
def test_a_delta_like_those_before_it_is_looked_at_if_it_has_another_member(upstream: str, kind: str) -> None:
    frames: list[Json] = []
    for frame in frames_of(upstream):
        frames.append(frame)
        text = frame.get("delta", "")
        if frame["type"] == kind and (upstream == "responses" or "text" in text):
            new = frame if upstream == "messages" else {**frame, "delta": " "}
            frames += [new, {**new, "zz": "unheard of"}]
    _, ledger = answered(upstream, "chat", written(upstream, frames), Form.STREAM, Form.STREAM)
    assert "event.zz" in [entry.path for entry in ledger]


def test_a_reasoning_item_is_sealed_with_all_that_it_has() -> None:
    answer = copy.deepcopy(WHOLE["responses"])
    answer["output"][0]["zz"] = answer["output"][0]["summary"][0]["zz"] = "unheard of"
    events = ResponsesNormalizer(ledger=(ledger := Ledger())).whole(answer)
    (proof,) = (event.signature for event in events if isinstance(event, SignatureDelta))
    assert proof.count("unheard of") == 2
    assert len(ledger) == 0


def paths(upstream: str, client: str, answer: Json) -> list[str]:
    """What is lost of a whole answer."""
    ledger = answered(upstream, client, json.dumps(answer).encode(), Form.WHOLE, Form.WHOLE)[1]
    return [entry.path for entry in ledger]


@pytest.mark.parametrize("client", ["chat", "messages"])
def test_who_made_a_call_and_what_its_tool_is_in_is_recorded(client: str) -> None:
    members: list[tuple[Any, list[str]]] = [
        ({"namespace": "ns"}, ["namespace"]),
        (
            {"caller": {"type": "program", "caller_id": "p"}, "created_by": "a"},
            ["output[].caller", "output[].created_by"],
        ),
        ({"caller": {"type": "direct"}, "created_by": None}, []),
    ]
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    for more, lost in members:
        answer = {**WHOLE["responses"], "usage": None, "output": [{**call, **more}]}
        assert set(lost) <= set(found := paths("responses", client, answer))
        assert [path for path in found if path.startswith(("output", "namespace"))] == lost


@pytest.mark.parametrize(
    ("delta", "lost"),
    [
        (
            {"tool_calls": [{"id": "a", "caller": "x", "function": {"name": "f", "thought": "t"}}]},
            ["tool_calls[].caller", "tool_calls[].function.thought"],
        ),
        ({"tool_calls": {"id": "a", "type": "custom", "custom": {"name": "f", "zz": 1}}}, ["tool_calls[].custom.zz"]),
        ({"function_call": {"name": "f", "arguments": "{}", "zz": 1}}, ["function_call.zz"]),
        ({"content": ["a", {"type": "text", "text": "b", "zz": 1}]}, ["content[].zz"]),
        (
            {"reasoning_details": [{"type": "reasoning.text", "text": "b", "zz": 1}, 7]},
            ["reasoning_details[]", "reasoning_details[].zz"],
        ),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "b", "signature": "s", "zz": 1}]}, []),
        ({"annotations": [{"type": "url_citation", "url": "u", "zz": 1}, 7], "content": "a"}, []),
    ],
)
def test_what_stands_within_a_chat_delta_is_recorded(delta: Json, lost: Iterable[str]) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **delta}, "finish_reason": "stop"}
    found = paths("chat", "messages", {"id": "c", "model": "m", "choices": [choice]})
    assert [path for path in found if path.startswith("choices[].delta.")] == [
        f"choices[].delta.{path}" for path in lost
    ]
