"""A Responses stream as its whole answer: what the response says at its end counts, whatever was streamed."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.jsontext import value_of
from pipeline.message import Text
from stages.bridge import restated
from tests.alike import Json, heard
from tests.exchange import answered, route
from tests.patching import response, scrubbed
from tests.test_bridged import body_of
from tests.test_bridged_arguments import named
from tests.test_bridged_output import CALL, PART, SPOKEN, THOUGHT, deltas, done, gathered

FIXTURES = Path(__file__).parents[1] / "fixtures" / "responses"
SEALED: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [],
    "encrypted_content": "A",
    "status": "completed",
}


def output(frames: list[Json], *last: Json) -> list[Json]:
    """The items of the whole answer of a stream, of which nothing is lost."""
    body, lost = gathered(frames, *last)
    assert lost == []
    return [*body["output"]]


def pairs(answer: Json) -> list[tuple[Any, Any]]:
    """The id and the blob of each reasoning item."""
    items = [item for item in answer["output"] if item["type"] == "reasoning"]
    return [(item.get("id"), item.get("encrypted_content")) for item in items]


@pytest.mark.parametrize("summary", [[], THOUGHT["summary"]])
@pytest.mark.parametrize("end", [{}, {"id": "rs_2"}, {"status": "incomplete"}], ids=str)
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_reasoning_that_is_sealed_anew_at_the_end_is_as_it_is_there(summary: Any, end: Json, status: str) -> None:
    first = {**SEALED, "summary": summary}
    last = {**first, "encrypted_content": "B", **end}
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    for frames in (done(0, first), [*deltas(0, THOUGHT)[: 3 if summary else 1], *done(0, first)]):
        body, lost = gathered([*frames, *deltas(1, CALL), *done(1, CALL)], last, CALL, status=status, **why)
        assert (body["output"], lost) == ([last, CALL], [])


@pytest.mark.parametrize("blob", [None, ""])
@pytest.mark.parametrize("name", ["rs_1", "rs_2"])
def test_a_blob_that_the_end_leaves_out_stands_with_the_id_that_it_came_under(blob: Any, name: str) -> None:
    last = {**SEALED, "id": name, "encrypted_content": blob, "odd": 1}
    assert output(done(0, SEALED), last) == [{**SEALED, "odd": 1}]


def test_a_blob_that_the_end_alone_tells_is_told() -> None:
    assert gathered(done(0, {**SEALED, "encrypted_content": None}), SEALED)[0]["output"] == [SEALED]


def test_an_item_of_the_providers_own_is_as_it_is_at_the_end() -> None:
    first, last = ({"type": "compaction", "id": "c", "encrypted_content": blob} for blob in "AB")
    assert output(done(0, first), last) == [last]


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.sse")), ids=lambda file: file.stem)
def test_no_reasoning_of_a_whole_answer_has_an_id_or_a_blob_that_its_stream_does_not_pair(file: Path) -> None:
    raw = file.read_bytes()
    own = route("responses", "responses", streams_only=True)
    exchange = own.open(json.dumps({"model": "m", "stream": False, "input": "hi"}).encode())
    got = answered(exchange, raw)
    told: list[Json] = []
    for line in raw.decode().splitlines():
        said = value_of(line.removeprefix("data:"))
        if isinstance(said, dict):
            told += [said["item"]] if "item" in said else (said.get("response") or {}).get("output") or []
    known = {pair for item in told for pair in pairs({"output": [item]})}
    if got.status == 200:
        assert [pair for pair in pairs(json.loads(got.body)) if pair[1] and pair not in known] == []


OTHERS: dict[str, tuple[Json, Json]] = {
    "text": (SPOKEN, {**SPOKEN, "content": [{**PART, "text": "hello."}]}),
    "longer text": (SPOKEN, {**SPOKEN, "content": [{**PART, "text": "hello you"}]}),
    "shorter text": (SPOKEN, {**SPOKEN, "content": [{**PART, "text": "hell"}]}),
    "more parts": (SPOKEN, {**SPOKEN, "content": [PART, {**PART, "text": "you"}]}),
    "a refusal": (SPOKEN, {**SPOKEN, "content": [{"type": "refusal", "refusal": "no"}]}),
    "arguments": (CALL, {**CALL, "arguments": '{"x":2}'}),
    "summary": (THOUGHT, {**THOUGHT, "summary": [{"type": "summary_text", "text": "more"}]}),
    "longer summary": (THOUGHT, {**THOUGHT, "summary": [{"type": "summary_text", "text": "R more"}]}),
}


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(("first", "last"), OTHERS.values(), ids=OTHERS)
def test_what_the_end_says_otherwise_than_the_stream_counts(first: Json, last: Json, ends: bool) -> None:
    frames = [*deltas(0, first), *(done(0, first) if ends else [])]
    if first is CALL and not ends:
        frames += [{"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"x":1}'}]
    assert output(frames, last) == [last]


@pytest.mark.parametrize("first", [SPOKEN, CALL, THOUGHT], ids=lambda item: item["type"])
@pytest.mark.parametrize("ends", [True, False])
def test_what_the_end_does_not_say_of_an_item_is_as_it_was_streamed(first: Json, ends: bool) -> None:
    empty: Json = {"content": [], "summary": [], "arguments": ""}
    last = {name: empty.get(name, value) for name, value in first.items()}
    frames = [*deltas(0, first), *(done(0, first) if ends else [])]
    assert output(frames, last) == [first]
    if first is SPOKEN:
        silent = {**first, "content": [{**PART, "text": ""}]}
        assert output(frames, silent) == [first]


def test_a_text_stands_beside_parts_that_nobody_knows() -> None:
    last = {**SPOKEN, "content": [{"type": "odd"}]}
    first, second = output([*deltas(0, SPOKEN), *done(0, SPOKEN)], last)
    assert (first["content"][0]["text"], second) == ("hello", last)


def test_what_was_told_of_no_item_is_put_in() -> None:
    frames = [frame for frame in deltas(0, CALL) if frame["type"] != "response.output_item.added"]
    text = [frame for frame in deltas(1, SPOKEN) if frame["type"].endswith("delta")]
    body, _ = gathered([*text, *done(0, CALL), *frames], CALL)
    assert [item["type"] for item in body["output"]] == ["function_call", "message"]
    assert body["output"][1]["content"][0]["text"] == "hello"
    assert restated([Text("a")], [Text("b"), Text("c")]) == (Text("a"),)


def test_a_call_is_recovered_of_the_text_at_the_end() -> None:
    markup = '<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>'
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    spoken = {**SPOKEN, "content": [{**PART, "text": f"Well. {markup}"}]}
    sealed = {**SEALED, "encrypted_content": "B"}
    own = {**spoken, "content": [{**PART, "text": f"Well {markup}"}]}
    answer = response(sealed, spoken)
    frames = [*done(0, SEALED), *done(1, own), {"type": "response.completed", "response": answer}]
    said = heard("responses", "responses", [named(frames)], stream=False, tools=tools)
    assert ("Well." in said.text, said.calls) == (True, [("f", {"x": 1})])
    out, _ = body_of("responses", named(frames))
    assert pairs(json.loads(out)) == [("rs_1", "B")]
    assert pairs(scrubbed("responses", answer)) == [("rs_1", "B")]


def calls(*names: str, ids: str = "") -> list[Json]:
    """A call of each tool."""
    return [{**CALL, "id": f"fc_{ids}{name}", "call_id": f"call_{ids}{name}", "name": name} for name in names]


def told_as(items: list[Json]) -> list[Json]:
    """The frames of a stream of them."""
    return [frame for at, item in enumerate(items) for frame in (*deltas(at, item), *done(at, item))]


@pytest.mark.parametrize("names", ["f", "fg", "ff"])
def test_calls_that_have_other_ids_at_the_end_are_the_same_calls(names: str) -> None:
    streamed = [{**one, "id": f"fc_{at}", "call_id": f"c_{at}"} for at, one in enumerate(calls(*names))]
    last = [{**one, "id": f"fc_new{at}", "call_id": f"new_{at}"} for at, one in enumerate(calls(*names))]
    assert output(told_as(streamed), *last) == last


@pytest.mark.parametrize("listed", ["g", "fh", "h", "gh", "fgh"])
def test_of_items_of_one_kind_each_stands_once_though_the_end_lists_some(listed: str) -> None:
    streamed = calls("f", "g", "h")
    assert output(told_as(streamed), *(one for one in streamed if one["name"] in listed)) == streamed


def test_a_message_that_the_end_leaves_out_stands_before_the_one_that_it_lists() -> None:
    first = {**SPOKEN, "id": "msg_0", "content": [{**PART, "text": "Let me look."}]}
    for between in ([], [CALL]):
        streamed: list[Json] = [first, *between, SPOKEN]
        frames = [frame for at, item in enumerate(streamed) for frame in done(at, item)]
        assert output(frames, SPOKEN) == streamed


def test_another_tool_is_another_call_whatever_its_place() -> None:
    (first,), (last,) = calls("f"), calls("g", ids="new")
    assert output(told_as([first]), last) == [first, last]
