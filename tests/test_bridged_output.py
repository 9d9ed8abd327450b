"""A Responses stream and a whole response, each as the other: every item as it was told, and what each must have."""

import json
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from tests.alike import Json, heard
from tests.lawful import check_law
from tests.patching import response
from tests.returning import payloads
from tests.test_bridged import body_of, stream_of
from tests.test_bridged_arguments import named

PART: Json = {"type": "output_text", "text": "hello", "annotations": [], "odd": 1}
SPOKEN: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [PART]}
CALLED: Json = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": '{"x":1}', "odd": 2}
CALL: Json = {**CALLED, "status": "completed"}
THOUGHT: Json = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "R"}]}
ITEMS = [THOUGHT, SPOKEN, CALL]


def deltas(at: int, item: Json) -> list[Json]:
    """An item announced and told piece by piece, with no end."""
    where = {"output_index": at, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        words = "response.function_call_arguments"
        told = [{"type": f"{words}.delta", **where, "delta": piece} for piece in ('{"x"', ":1}")]
        return [{"type": "response.output_item.added", "output_index": at, "item": begun}, *told]
    if item["type"] == "reasoning":
        spot = {**where, "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        return [
            {"type": "response.output_item.added", "output_index": at, "item": {**item, "summary": []}},
            {"type": "response.reasoning_summary_part.added", **spot, "part": part},
            {"type": "response.reasoning_summary_text.delta", **spot, "delta": "R"},
        ]
    spot, begun = {**where, "content_index": 0}, {**item, "content": [], "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        {"type": "response.content_part.added", **spot, "part": {**PART, "text": ""}},
        {"type": "response.output_text.delta", **spot, "delta": "hel"},
        {"type": "response.output_text.delta", **spot, "delta": "lo"},
    ]


def done(at: int, item: Json) -> list[Json]:
    return [{"type": "response.output_item.done", "output_index": at, "item": item}]


def gathered(frames: list[Json], *output: Json, **members: Any) -> tuple[Json, list[tuple[str, str]]]:
    """The whole answer of a stream, and the ledger."""
    answer: Json = {**response(*output), **members}
    last: Json = {"type": "response.completed", "response": answer}
    begun = {**answer, "status": "in_progress", "output": []}
    out, outcome = body_of("responses", named([{"type": "response.created", "response": begun}, *frames, last]))
    return json.loads(out), [(entry.path, entry.action) for entry in outcome.ledger]


@pytest.mark.parametrize("tell", [deltas, done])
@pytest.mark.parametrize("listed", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_items_that_the_end_leaves_out_stand_where_they_were_told(tell: Any, listed: tuple[int, ...]) -> None:
    frames = [frame for at, item in enumerate(ITEMS) for frame in tell(at, item)]
    body, lost = gathered(frames, *(ITEMS[at] for at in listed))
    assert (body["output"], lost) == (ITEMS, [])


def test_items_under_other_names_at_the_end_are_the_same_items() -> None:
    frames = [frame for at, item in enumerate(ITEMS) for frame in deltas(at, item)]
    renamed = [{**item, "id": f"other_{at}"} for at, item in enumerate(ITEMS)]
    assert gathered(frames, *renamed)[0]["output"] == renamed
    assert gathered(frames, renamed[1])[0]["output"] == [THOUGHT, renamed[1], CALL]
    longer = {**renamed[1], "content": [{**PART, "text": "hello you"}]}
    assert [item["type"] for item in gathered(frames, renamed[0], longer, renamed[2])[0]["output"]] == [
        *("reasoning", "message", "function_call")
    ]


def test_an_item_is_known_by_its_id_where_its_events_have_no_place() -> None:
    frames = [frame for at, item in enumerate(ITEMS) for frame in deltas(at, item)]
    for frame in frames:
        del frame["output_index"]
    assert gathered(frames)[0]["output"] == ITEMS
    for frame in frames:
        frame.pop("item_id", None)
    assert gathered(frames)[0]["output"] == ITEMS


def test_a_second_item_at_a_place_is_another() -> None:
    other = {**SPOKEN, "id": "msg_2"}
    body, _ = gathered([*deltas(0, SPOKEN), *done(0, SPOKEN), *deltas(0, other), *done(0, other)])
    assert body["output"] == [SPOKEN, other]


def test_a_response_of_which_nothing_is_told_has_all_that_every_one_must_have() -> None:
    for end in ("completed", "incomplete"):
        out, _ = body_of("responses", named([*done(0, SPOKEN), {"type": f"response.{end}"}]), RequestFacts(model="m"))
        body = json.loads(out)
        assert (body["status"], body["object"], body["model"], body["output"]) == (end, "response", "m", [SPOKEN])
        assert {"id", "created_at", "tools", "tool_choice", "parallel_tool_calls"} <= body.keys()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("said", [{}, {"tools": None, "tool_choice": None}])
def test_what_a_response_leaves_out_of_its_request_is_what_was_asked(stream: bool, said: Json) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    answer = {"id": "r", "object": "response", "status": "completed", "output": [], **said}
    raw = json.dumps(answer).encode() if stream else named([{"type": "response.completed", "response": answer}])
    facts = RequestFacts(stream=stream, echo={"tools": tools, "tool_choice": "required"})
    out, _ = (stream_of if stream else body_of)("responses", raw, facts)
    told = payloads(out)[-1]["response"] if stream else json.loads(out)
    assert (told["tools"], told["tool_choice"]) == (tools, "required")
    assert heard("responses", "responses", [raw], stream=stream, tools=tools).status == 200


@pytest.mark.parametrize(
    ("status", "details", "due", "lost"),
    [
        ("incomplete", None, {"reason": "max_output_tokens"}, [("incomplete_details", "mended")]),
        ("incomplete", {}, {"reason": "max_output_tokens"}, [("incomplete_details", "mended")]),
        ("incomplete", "odd", {"reason": "max_output_tokens"}, [("incomplete_details", "mended")]),
        ("incomplete", {"reason": 7}, {"reason": "max_output_tokens"}, [("incomplete_details", "translated")]),
        ("incomplete", {"reason": "length", "odd": 1}, {"reason": "max_output_tokens", "odd": 1}, None),
        ("incomplete", {"reason": "content_filter", "odd": 1}, {"reason": "content_filter", "odd": 1}, []),
        ("incomplete", {"reason": "steered"}, {"reason": "steered"}, []),
        ("completed", {"reason": "length"}, None, [("incomplete_details", "dropped")]),
        ("completed", None, None, []),
    ],
)
def test_an_incomplete_response_has_a_reason_in_its_stream_and_no_other_has(
    status: str, details: Any, due: Any, lost: list[tuple[str, str]] | None
) -> None:
    body = {**response(SPOKEN), "status": status, "incomplete_details": details, "error": None, "created_at": 1}
    body |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    stream, outcome = stream_of("responses", body)
    check_law("responses", stream)
    assert payloads(stream)[-1]["response"]["incomplete_details"] == due
    entries = [(entry.path, entry.action) for entry in outcome.ledger]
    assert entries == ([("incomplete_details", "translated")] if lost is None else lost)
