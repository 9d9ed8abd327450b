"""stages.dialects.responses: what is of another kind than what stands there is in the ledger, once."""

import json
from typing import Any

import pytest

from pipeline.events import Frame
from pipeline.ledger import Ledger
from stages.dialects.responses.normalize import ResponsesNormalizer
from tests import responses_stream as rs

Json = dict[str, Any]
PART: Json = {"type": "output_text", "text": "abc", "annotations": []}
MESSAGE: Json = {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [PART]}
THOUGHT: Json = {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "t"}]}

ODD: list[tuple[Json, list[str]]] = [
    ({"output": "abc"}, ["output"]),
    ({"output": [MESSAGE, "abc", 7]}, ["output[]"]),
    ({"output": [{**MESSAGE, "content": [PART, "abc", ["x"]]}]}, ["output[].content[]"]),
    ({"output": [{**MESSAGE, "content": {"text": "abc"}}]}, ["output[].content"]),
    ({"output": [{**THOUGHT, "summary": [*THOUGHT["summary"], "abc"]}]}, ["output[].summary[]"]),
    ({"output": [{**MESSAGE, "content": [{**PART, "annotations": "abc"}]}]}, ["output[].content[].annotations"]),
    ({"output": [{**MESSAGE, "content": [{**PART, "logprobs": "abc"}]}]}, ["output[].content[].logprobs"]),
    (
        {"output": [MESSAGE], "status": "incomplete", "incomplete_details": {"reason": "max_tokens", "zz": 1}},
        ["incomplete_details.zz"],
    ),
    ({"output": [MESSAGE, None, {}], "incomplete_details": None}, []),
    ({"output": [{**MESSAGE, "content": [PART, None]}]}, []),
    ({"output": None}, []),
]


@pytest.mark.parametrize(("members", "lost"), ODD)
def test_what_is_of_an_odd_kind_in_a_whole_response_is_recorded_once(members: Json, lost: list[str]) -> None:
    normalizer = ResponsesNormalizer(ledger=(ledger := Ledger()))
    normalizer.whole({**rs.response("completed"), **members})
    assert [entry.path for entry in ledger] == lost


@pytest.mark.parametrize(("members", "lost"), ODD)
def test_what_is_of_an_odd_kind_in_a_stream_is_recorded_once(members: Json, lost: list[str]) -> None:
    response = {**rs.response("completed"), **members}
    items = response["output"] if isinstance(response["output"], list) else []
    frames: list[Json] = [{"type": "response.created", "response": rs.response("in_progress")}]
    for at, item in enumerate(items):
        frames += [
            {"type": f"response.output_item.{word}", "output_index": at, "item": item} for word in ("added", "done")
        ]
    frames.append({"type": f"response.{response['status']}", "response": response})
    normalizer = ResponsesNormalizer(ledger=(ledger := Ledger()))
    normalizer.receive([Frame(json.dumps(frame).encode()) for frame in frames])
    assert [entry.path for entry in ledger] == lost
