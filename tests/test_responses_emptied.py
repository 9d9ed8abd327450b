"""One dialect over itself: a message of a Responses stream of which all was markup is told nowhere."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.events import BlockStart, BlockStop, Event, TextBlock, TextDelta
from pipeline.outcome import Outcome, Verdict
from pipeline.route import AnswerOptions
from pipeline.testing import cut
from tests.lawful import GRAMMARS, check_law
from tests.responses_stream import END, START, Json, kinds, told
from tests.returning import payloads, returned, through
from tests.test_responses_returned import numbered, sse

MARKUP = '<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>'
NAMELESS = '<tool_call>{"arguments":{}}</tool_call>'
ANNOUNCING = ("response.output_item.added", "response.content_part.added")
PARTS = ("response.content_part.added", "response.content_part.done")


def server(*texts: str, without: Iterable[str] = ()) -> list[Json]:
    """A lawful stream of messages that say these texts, some characters at a time, or some of its events."""
    events: list[Event] = [START]
    for index, whole in enumerate(texts):
        pieces = [TextDelta(index, whole[at : at + 9]) for at in range(0, len(whole), 9)]
        events += [BlockStart(index, TextBlock()), *pieces, BlockStop(index)]
    return numbered(*(event for event in told(*events, *END) if event["type"] not in [*without]))


def client(items: list[Json], **options: Any) -> tuple[list[Json], Outcome]:
    """What a client gets whose calls are recovered, at any cut the same."""
    members = {"facts": RequestFacts(tools={"f": {}}), "options": AnswerOptions(**{"recover": "prompt", **options})}
    raw = sse(*items)
    out, outcome = returned("responses", [raw], **members)
    said: list[Json] = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    for chunk in (7, "frame"):
        again, _ = returned("responses", cut(raw, chunk), **members)
        assert kinds(payloads(again)) == kinds(said)
    if not [*GRAMMARS["responses"].breaches(raw)]:
        check_law("responses", out)
    return said, outcome


def output(said: list[Json]) -> list[tuple[str, int]]:
    """The items of the terminal, and the place at which each was announced."""
    places = {one["item"]["id"]: one["output_index"] for one in said if one["type"] == ANNOUNCING[0]}
    return [(item["type"], places.get(item["id"], -1)) for item in said[-1]["response"]["output"]]


@pytest.mark.parametrize("text", [MARKUP, f"\n{MARKUP}\n", f"{MARKUP}\n{MARKUP}"])
def test_a_message_that_was_all_markup_is_not_announced(text: str) -> None:
    said, outcome = client(server(text, "bye"))
    calls = text.count("<tool_call>")
    assert output(said) == [*(("function_call", place) for place in range(calls)), ("message", calls)]
    assert outcome.verdict is Verdict.COMPLETE
    behind = [("function_call", place) for place in range(1, calls + 1)]
    assert output(client(server("Hi", text.strip()))[0]) == [("message", 0), *behind]
    assert [kind for kind, _ in output(client(server(text))[0])] == ["function_call"] * calls


def test_a_message_that_begins_with_markup_is_announced_behind_it() -> None:
    said, _ = client(server("<think>why</think>Hi", "bye"))
    assert output(said) == [("reasoning", 0), ("message", 1), ("message", 2)]
    assert [item["content"][0]["text"] for item in said[-1]["response"]["output"][1:]] == ["Hi", "bye"]
    assert output(client(server(f"A{MARKUP}B"))[0]) == [("message", 0), ("function_call", 1), ("message", 2)]


def test_markup_of_which_no_call_is_made_leaves_nothing() -> None:
    assert output(client(server(NAMELESS, "bye"))[0]) == [("message", 0)]
    assert output(client(server(NAMELESS))[0]) == []
    for without in (
        ANNOUNCING,
        [kind for kind in {one["type"] for one in server("a")} if "put" in kind or "part" in kind],
    ):
        assert json.dumps(client(server(NAMELESS, without=without))[0]).count("<tool_call") == 0


@pytest.mark.parametrize("text", [MARKUP, "<think>why</think>Hi"])
@pytest.mark.parametrize(
    "without",
    [
        ANNOUNCING[:1],
        [*ANNOUNCING, PARTS[1]],
        [*ANNOUNCING, PARTS[1], "response.output_text.delta", "response.output_text.done"],
        [*PARTS, "response.output_text.delta", "response.output_text.done"],
        ["response.output_text.done", PARTS[1], "response.output_item.done", "response.output_item.added", PARTS[0]],
        ["response.output_text.done", PARTS[1], "response.output_item.done"],
    ],
    ids=str,
)
def test_a_message_that_nobody_announced_is_told_nowhere_either(text: str, without: list[str]) -> None:
    said, _ = client(server(text, "bye", without=without))
    theirs = server(text)[2:-1][-1]["item"]["id"]
    told = json.dumps([one for one in said if one["type"] != "response.output_text.delta"])
    assert (theirs in told) is (text != MARKUP)
    kind = "function_call" if text == MARKUP else "reasoning"
    assert said[-1]["response"]["output"][0]["type"] == kind
    assert len(said[-1]["response"]["output"]) == (2 if text == MARKUP else 3)
    assert [place for _, place in output(said)] == [*range(len(output(said)))] or ANNOUNCING[0] in without


def test_a_message_that_says_nothing_is_as_it_came() -> None:
    items = server("begins and goes on", "bye")
    silent = {**items[2]["item"], "id": "silent"}
    empty = [{**items[2], "item": silent}, {"type": ANNOUNCING[1], "output_index": 0, "item_id": "silent", "part": {}}]
    odd = numbered(*items[:2], *empty, {"type": "odd"}, {**items[7], "item": silent}, *items[2:])
    second = next(at for at, one in enumerate(items) if one.get("output_index") == 1)
    among = [*items[:5], items[second], *items[5:second], *items[second + 1 :]]
    for stream in (items, odd, among):
        raw = sse(*numbered(*stream))
        out, _ = returned("responses", cut(raw, "frame"), facts=RequestFacts(tools={"f": {}}))
        assert out == raw


def test_what_waits_for_its_text_comes_with_it_and_before_an_error() -> None:
    items = server("Hi")
    reads = [sse(item) for item in items]
    facts = RequestFacts(tools={"f": {}})
    out, outcome = returned("responses", reads[:4], facts=facts)
    assert kinds(payloads(out)) == [
        *kinds(items[:4]),
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "failed",
    ]
    assert outcome.verdict is Verdict.CUT
    out, _ = returned("responses", [sse(item) for item in server(MARKUP)[:-4]], facts=facts)
    assert [item["type"] for item in payloads(out)[-1]["response"]["output"]] == ["message"]


def test_a_message_whose_text_is_left_out_in_part_is_announced_with_the_rest() -> None:
    items = server("begins and goes on")
    left: list[Event] = []

    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta | BlockStart) and len(left) < 2:
            left.append(event)
        else:
            yield event

    said = payloads(through("responses", make, [sse(*items)]))
    assert kinds(said) == [*kinds(items)[:4], *kinds(items)[5:]]
    assert said[-1]["response"]["output"][0]["content"][0]["text"] == "d goes on"


def test_an_item_that_is_put_in_before_the_text_of_a_message_stands_before_it() -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, BlockStart) and event.index == 0:
            yield from (BlockStart(9, TextBlock()), TextDelta(9, "first"), BlockStop(9))
        yield event

    out = through("responses", make, [sse(*server("Hi", "bye"))])
    check_law("responses", out)
    texts = [item["content"][0]["text"] for item in payloads(out)[-1]["response"]["output"]]
    assert texts == ["first", "Hi", "bye"]
