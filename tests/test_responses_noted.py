"""A Responses stream over itself: what was told of an item, and once, is what every later event repeats."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Verdict
from pipeline.testing import Chunk, cut
from tests.lawful import check_law
from tests.markup_streams import Json, responded, sse
from tests.returning import payloads, returned
from tests.scrubbing import MARKUP, NATIVE, PROMPT

FACTS = RequestFacts(tools={"f": {}})
THOUGHT = "<think>x</think>"
NOTE: Json = {"type": "url_citation", "start_index": 0, "end_index": 2, "url": "u", "title": "t"}
ADDED = "response.output_text.annotation.added"
CUTS: list[Chunk] = [7, "frame", None]


def noted(*said: str | Json) -> list[Json]:
    """A response of one message, in these deltas and citations."""
    events = responded([("text", [one for one in said if isinstance(one, str)])])
    notes = [one for one in said if isinstance(one, dict)]
    for event in events:
        items = [event["item"]] if event["type"].endswith("item.done") else event.get("response", {}).get("output", ())
        parts = [part for item in items for part in item["content"]]
        for part in [*parts, *([event["part"]] if event["type"].endswith("part.done") else [])]:
            part["annotations"] = notes
    at, place = 4, 0
    for one in said:
        if isinstance(one, dict):
            where = {"item_id": "m0", "output_index": 0, "content_index": 0, "annotation_index": place}
            events.insert(at, {"type": ADDED, **where, "annotation": one})
            place += 1
        at += 1
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def restated(said: list[Any]) -> list[tuple[str, list[Any]]]:
    """The citations of each message, wherever it is told whole; each place must tell the same."""
    items = [one["item"] for one in said if one["type"] == "response.output_item.done"]
    told = {item["id"]: item["content"] for item in items if item["type"] == "message"}
    for one in said:
        if one["type"] == "response.content_part.done":
            assert one["part"] == told[one["item_id"]][0]
    output = said[-1]["response"]["output"]
    assert {item["id"]: item["content"] for item in output if item["type"] == "message"} == told
    return [(part["text"], part["annotations"]) for parts in told.values() for part in parts]


@pytest.mark.parametrize("cut_", CUTS, ids=str)
@pytest.mark.parametrize("options", [NATIVE, PROMPT], ids=["native", "prompt"])
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["Hi ", NOTE, MARKUP], [("Hi ", [NOTE])]),
        (["Hi ", NOTE, f"{THOUGHT} there"], [("Hi ", [NOTE]), (" there", [])]),
        (
            ["Hi ", NOTE, f"{THOUGHT} there", {**NOTE, "url": "v"}],
            [("Hi ", [NOTE]), (" there", [{**NOTE, "url": "v"}])],
        ),
        (["Hi ", NOTE, {**NOTE, "url": "v"}, THOUGHT], [("Hi ", [NOTE, {**NOTE, "url": "v"}])]),
    ],
    ids=["call", "thought", "both", "two"],
)
def test_a_citation_that_was_told_is_repeated(said: list[Any], told: list[Any], options: Any, cut_: Chunk) -> None:
    out, outcome = returned("responses", cut(sse(*noted(*said)), cut_), facts=FACTS, options=options)
    check_law("responses", out)
    assert restated(payloads(out)) == told
    assert len(outcome.ledger) == 0
    assert [one["annotation"] for one in payloads(out) if one["type"] == ADDED] == [
        n for _, notes in told for n in notes
    ]


@pytest.mark.parametrize("cut_", CUTS, ids=str)
def test_so_is_one_behind_a_call_that_waited_with_it(cut_: Chunk) -> None:
    out, outcome = returned("responses", cut(sse(*noted(f"Hi {MARKUP}", NOTE)), cut_), facts=FACTS)
    assert restated(payloads(out)) == [("Hi ", [NOTE])]
    assert len(outcome.ledger) == 0


@pytest.mark.parametrize("cut_", CUTS, ids=str)
@pytest.mark.parametrize(
    "said", [["Hi ", "there"], ["Hi ", NOTE], ["Hi ", NOTE, f"{THOUGHT} there"]], ids=["text", "note", "mixed"]
)
def test_where_the_stream_is_cut_every_end_is_told_once(said: list[Any], cut_: Chunk) -> None:
    events = noted(*said)
    for at in range(3, len(events)):
        out, outcome = returned("responses", cut(sse(*events[:at]), cut_), facts=FACTS)
        assert outcome.verdict is Verdict.CUT
        told = payloads(out)
        ends = [(one["type"], one.get("item_id") or one["item"]["id"]) for one in told if one["type"].endswith(".done")]
        assert len(ends) == len(set(ends)), at
        done = {one["item_id"]: one["part"] for one in told if one["type"] == "response.content_part.done"}
        for item in told[-1]["response"]["output"]:
            if item["type"] == "message" and item["content"]:
                assert item["content"] == [done[item["id"]]]
        notes = [note for part in done.values() for note in part["annotations"]]
        assert notes == [one["annotation"] for one in told if one["type"] == ADDED]
