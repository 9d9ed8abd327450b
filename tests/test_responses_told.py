"""One dialect over itself: a Responses server may tell a text by deltas, or by what ends it alone; a client reads the
same of it, and no markup."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pipeline.dialect import RequestFacts, dialect
from pipeline.outcome import Outcome, Verdict
from pipeline.route import AnswerOptions
from pipeline.testing import cut
from stages.recipe import default_chain
from tests.lawful import GRAMMARS, check_law
from tests.markup_streams import ABOUT, COUNTS, Json, sse, told
from tests.messages_client import folded
from tests.returning import payloads, replacing, returned, through

MARKUP = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
NAMELESS = '<tool_call>{"x":1}</tool_call>'
TEXTS = {
    "behind": f"a {MARKUP}",
    "before": f"{MARKUP} b",
    "between": f"a {MARKUP} b",
    "alone": MARKUP,
    "two": f"a {MARKUP} b {MARKUP} c",
    "hopeless": f"a {NAMELESS} b",
    "hopeless alone": NAMELESS,
    "unfinished": f"a {MARKUP[:30]}",
    "reasoning": "<think>x</think>y",
    "plain": "hello",
}
STEPS = ("deltas", "text.done", "part.done", "item.done", "terminal")
ANNOUNCED = {"with its part": (True, True), "alone": (True, False)}
ALL = {**ANNOUNCED, "by its part": (False, True), "never": (False, False)}


def server(texts: Sequence[str], first: str, added: bool, part: bool, **beside: Any) -> list[Json]:
    """A stream of messages that are told from that step on. `beside`: what stands in each item that is done."""
    begun = {**ABOUT, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]
    output = []
    for place, text in enumerate(texts):
        said = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        item = {"id": f"m{place}", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
        output.append(item)
        if added:
            bare = {**item, "status": "in_progress", "content": []}
            events.append({"type": "response.output_item.added", "output_index": place, "item": bare})
        events += steps({**item, **beside}, place, STEPS[STEPS.index(first) :], part=part)
    whole = {**ABOUT, "status": "completed", "output": [{**item, **beside} for item in output], "usage": COUNTS}
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": at} for at, event in enumerate(events)]


def steps(item: Json, place: int, due: Sequence[str], *, part: bool) -> Iterator[Json]:
    """The events of a message behind its announcement."""
    (said,) = item["content"]
    where = {"item_id": item["id"], "output_index": place, "content_index": 0}
    if part:
        yield {"type": "response.content_part.added", **where, "part": {**said, "text": ""}}
    if "deltas" in due:
        pieces = [said["text"][at : at + 9] for at in range(0, len(said["text"]), 9)]
        yield from ({"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []} for piece in pieces)
    if "text.done" in due:
        yield {"type": "response.output_text.done", **where, "text": said["text"], "logprobs": []}
    if "part.done" in due:
        yield {"type": "response.content_part.done", **where, "part": said}
    if "item.done" in due:
        yield {"type": "response.output_item.done", "output_index": place, "item": item}


def client(items: list[Json], *, tools: bool = True, **options: Any) -> tuple[list[Json], Outcome]:
    """What a client gets, who reads the same as one of another dialect does."""
    facts = RequestFacts(tools={"f": {}} if tools else {})
    members: Any = {"facts": facts, "options": AnswerOptions(**{"recover": "prompt", **options})}
    raw = sse(*items)
    out, outcome = returned("responses", [raw], **members)
    chain = default_chain(dialect("responses"), dialect("messages"), **members)
    body = folded(b"".join([*chain.receive([raw]), *chain.receive_eof()]))
    said: list[Json] = payloads(out)
    assert told("responses", said[-1]["response"]) == told("messages", body)
    shown = json.dumps(body["content"])
    assert ("tool_call>" in out.decode(), "think>" in out.decode()) == ("tool_call>" in shown, "think>" in shown)
    again, _ = returned("responses", cut(raw, 7), **members)
    assert [one["type"] for one in payloads(again)] == [one["type"] for one in said]
    return said, outcome


def broken(items: list[Json]) -> set[str]:
    """The rules that a stream breaks."""
    return {breach.rule.says for breach in GRAMMARS["responses"].breaches(sse(*items))}


def check_told_once(said: list[Json]) -> None:
    """Each item was done as the terminal has it, and its deltas, if there are any, were its text."""
    done = {one["output_index"]: one["item"] for one in said if one["type"] == "response.output_item.done"}
    output = said[-1]["response"]["output"]
    assert [done[place] for place in sorted(done)] == output
    for place, item in enumerate(output):
        deltas = [one["delta"] for one in said if one["type"].endswith(".delta") and one["output_index"] == place]
        text = item.get("arguments") or "".join(part["text"] for part in item.get("content") or item["summary"])
        assert "".join(deltas) == text


@pytest.mark.parametrize("announced", ANNOUNCED)
@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("text", TEXTS)
def test_an_announced_message_is_read_alike_however_it_is_told(text: str, first: str, announced: str) -> None:
    items = server([TEXTS[text]], first, *ANNOUNCED[announced])
    said, outcome = client(items)
    assert outcome.verdict is Verdict.COMPLETE
    if said == items:
        assert text in ("plain", "unfinished")
        return
    if not broken(items) or first != "deltas":
        check_law("responses", sse(*said))
    check_told_once(said)


@pytest.mark.parametrize("announced", ALL)
@pytest.mark.parametrize("first", STEPS)
def test_what_comes_behind_it_is_told_behind_it(first: str, announced: str) -> None:
    for text in ("between", "alone", "reasoning"):
        items = server([TEXTS[text], "bye"], first, *ALL[announced])
        said, _ = client(items)
        assert [one["sequence_number"] for one in said] == [*range(len(said))]
        assert broken(said) <= broken(items) or announced not in ANNOUNCED


@pytest.mark.parametrize("announced", ANNOUNCED)
@pytest.mark.parametrize("first", STEPS[1:])
def test_an_unfinished_call_that_is_hidden_leaves_the_text_before_it(first: str, announced: str) -> None:
    said, _ = client(server([TEXTS["unfinished"]], first, *ANNOUNCED[announced]), unfinished="hide")
    check_law("responses", sse(*said))
    check_told_once(said)


@pytest.mark.parametrize("first", STEPS[1:])
def test_reasoning_is_recovered_where_no_tools_are_offered(first: str) -> None:
    said, _ = client(server([TEXTS["reasoning"]], first, added=True, part=False), tools=False)
    check_law("responses", sse(*said))
    check_told_once(said)


@pytest.mark.parametrize("first", STEPS[1:])
@pytest.mark.parametrize("announced", ANNOUNCED)
def test_what_a_stage_makes_of_such_a_text_is_told_as_deltas(first: str, announced: str) -> None:
    out = through("responses", replacing("old", "new"), [sse(*server(["an old text"], first, *ANNOUNCED[announced]))])
    check_law("responses", out)
    check_told_once(payloads(out))
    assert payloads(out)[-1]["response"]["output"][0]["content"][0]["text"] == "an new text"


@pytest.mark.parametrize("first", ["item.done", "terminal"])
def test_what_stands_beside_such_a_text_is_kept(first: str) -> None:
    said, outcome = client(server([TEXTS["between"]], first, added=True, part=False, x_own="kept"))
    assert next(item.get("x_own") for item in said[-1]["response"]["output"] if item["type"] == "message") == "kept"
    assert not [entry for entry in outcome.ledger if "x_own" in entry.path]


def test_a_text_that_stands_in_the_announcement_is_told_once() -> None:
    for first in ("item.done", "terminal"):
        items = server([TEXTS["between"]], first, added=True, part=False)
        items[2]["item"]["content"] = items[-1]["response"]["output"][0]["content"]
        said, _ = client(items)
        check_law("responses", sse(*said))
        check_told_once(said)


@pytest.mark.parametrize("first", STEPS)
def test_a_refusal_behind_a_call_has_a_message_of_its_own(first: str) -> None:
    items = server([TEXTS["behind"]], first, added=True, part=first in ("deltas", "text.done"))
    no: Json = {"type": "refusal", "refusal": "no"}
    for one in items:
        for item in (one.get("item"), *one.get("response", {}).get("output", ())):
            if item and item["content"] and no not in item["content"]:
                item["content"].append(no)
    if first != "terminal":
        where = {"item_id": "m0", "output_index": 0, "content_index": 1}
        told_: list[Json] = [
            {"type": "response.content_part.added", "part": {**no, "refusal": ""}},
            {"type": "response.refusal.delta", "delta": "n"},
            {"type": "response.refusal.delta", "delta": "o"},
            {"type": "response.refusal.done", "refusal": "no"},
            {"type": "response.content_part.done", "part": no},
        ]
        at = next(at for at, one in enumerate(items) if one["type"] == "response.output_item.done")
        items[at:at] = [{**one, **where} for one in told_] if first == "deltas" else []
    items = [{**one, "sequence_number": at} for at, one in enumerate(items)]
    members: Any = {"facts": RequestFacts(tools={"f": {}}), "options": AnswerOptions(recover="prompt")}
    out, outcome = returned("responses", [sse(*items)], **members)
    said = payloads(out)
    check_law("responses", out)
    content = [item.get("content", item["type"]) for item in said[-1]["response"]["output"]]
    assert [
        parts if isinstance(parts, str) else [part.get("text", part.get("refusal")) for part in parts]
        for parts in content
    ] == [["a "], "function_call", ["no"]]
    assert not [entry for entry in outcome.ledger if "text" in entry.path]
