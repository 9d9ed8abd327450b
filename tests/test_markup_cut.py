"""One dialect over itself: whatever frames markup takes with it, what is left is lawful and loses no text."""

import itertools
import json
import random
from typing import Literal

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.lawful import GRAMMARS
from tests.markup_streams import Part, chatted, messaged, responded, sse, told, whole
from tests.returning import payloads, returned

CALL = '<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'
NAMELESS = '<tool_call>{"arguments":{}}</tool_call>'
MARKUP = [CALL, NAMELESS, "<think>deep</think>", "<think/>", "<tool_call></tool_call>"]
STREAMS = {"messages": messaged, "chat": chatted, "responses": responded}

Recover = Literal["prompt", "native"]

GUIDED = AnswerOptions(recover="prompt")

assert 1
every_dialect = pytest.mark.parametrize("name", STREAMS)


def client(name: str, raw: bytes, recover: Recover = "prompt") -> tuple[bytes, Outcome]:
    """What a client of the dialect gets, which breaks no law that the server keeps."""
    out, outcome = returned(name, [raw], facts=facts(Form.STREAM), options=AnswerOptions(recover=recover))
    theirs = [breach.rule for breach in GRAMMARS[name].breaches(raw)]
    assert [str(breach) for breach in GRAMMARS[name].breaches(out) if breach.rule not in theirs] == []
    return out, outcome


def facts(form: Form) -> RequestFacts:
    return RequestFacts(stream=form is Form.STREAM, tools={"f": {}}, include_usage=True)


def streamed(name: str, out: bytes) -> list[tuple[str, str]]:
    """What a stream says, in its order."""
    if name == "responses":
        return told(name, payloads(out)[-1]["response"])
    rolled, _ = returned(name, [out], leaving=Form.WHOLE, facts=facts(Form.WHOLE), options=AnswerOptions(recover="off"))
    return told(name, json.loads(rolled))


def answered(name: str, parts: list[Part], recover: Recover) -> list[tuple[str, str]]:
    """What the whole answer says, in its order."""
    forms = {"arriving": Form.WHOLE, "leaving": Form.WHOLE, "facts": facts(Form.WHOLE)}
    body = json.dumps(whole(name, parts)).encode()
    out, _ = returned(name, [body], **forms, options=AnswerOptions(recover=recover))
    return told(name, json.loads(out))


@every_dialect
@pytest.mark.parametrize("recover", ["prompt", "native"])
@pytest.mark.parametrize("first", MARKUP)
def test_a_first_delta_that_is_all_markup_is_told_nowhere(name: str, recover: Recover, first: str) -> None:
    out, _ = client(name, sse(*STREAMS[name]([("text", [first, "Hello"])])), recover)
    said = [text for kind, text in streamed(name, out) if kind == "text"]
    if recover == "prompt" or "think" in first:
        assert said == ["Hello"]
        assert b"<t" not in out
    for piece in ([first, "Hello", " you"], ["\n", first, "Hello"], [first, first, "Hello"]):
        client(name, sse(*STREAMS[name]([("text", piece)])), recover)


ORDER = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
"""A message is announced, and its part; another item stands there whole before it speaks."""


@pytest.mark.parametrize("markup", [CALL, NAMELESS, "<think>q</think>"])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    "other", [("reasoning", ["why"]), ("search", []), ("text", ["bye"]), ("call", ["{}"])], ids=lambda part: part[0]
)
def test_a_message_that_was_announced_and_says_nothing_ends(markup: str, told: bool, other: Part) -> None:
    events = responded([("text", [markup]), other], ORDER, told=told)
    said = payloads(client("responses", sse(*events))[0])
    ends = [one["item"]["id"] for one in said if one["type"] == "response.output_item.done"]
    assert "m0" in ends
    assert len(ends) == len({*ends})
    if told:
        (item,) = (item for item in said[-1]["response"]["output"] if item["id"] == "m0")
        assert item["content"][0]["text"] == ""
    bare = [event for event in events if "_text.done" not in event["type"] and "part.done" not in event["type"]]
    assert b"<t" not in returned("responses", [sse(*bare)], facts=facts(Form.STREAM), options=GUIDED)[0]


@pytest.mark.parametrize("told", [True, False])
def test_messages_that_take_turns_both_end(told: bool) -> None:
    for pieces in (["<think>q", "</think>"], [CALL[:20], CALL[20:]], ["x", CALL]):
        for order in ([0, 0, 1, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 1]):
            out, _ = client("responses", sse(*responded([("text", pieces), ("text", ["y", "z"])], order, told=told)))
            assert b"<t" not in out


def pieces(chance: random.Random) -> list[str]:
    """Markup and text, cut anywhere."""
    whole = [*MARKUP, "hello ", "world.\n", " ", "a < b "]
    text = "".join(chance.choice(whole) for _ in range(chance.randint(1, 4)))
    if chance.random() < 0.4:
        return [text]
    ends = sorted([*chance.choices(range(1, len(text) + 1), k=chance.randint(0, 4)), 0, len(text)])
    return [text[at:to] for at, to in itertools.pairwise(ends) if at < to]


def some_parts(chance: random.Random, name: str) -> list[Part]:
    others: list[Part] = [("reasoning", ["why ", "so"]), ("call", ['{"n":', "1}"])]
    others += [("search", [])] if name == "responses" else []
    kinds = range(chance.randint(1, 4))
    return [("text", pieces(chance)) if chance.random() < 0.6 else chance.choice(others) for _ in kinds]


@every_dialect
@pytest.mark.parametrize("recover", ["prompt", "native"])
@pytest.mark.parametrize("seed", range(20))
def test_a_stream_is_lawful_and_says_what_the_whole_answer_says(name: str, recover: Recover, seed: int) -> None:
    chance = random.Random(f"{name} {recover} {seed}")
    for _ in range(5):
        parts = some_parts(chance, name)
        out, _ = client(name, sse(*STREAMS[name](parts)), recover)
        assert alike(name, streamed(name, out)) == alike(name, answered(name, parts, recover)), parts


def alike(name: str, said: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is said, but for the order of what a whole answer of Chat has in places of their own."""
    if name != "chat":
        return said
    return sorted((kind, text if kind == "call" else "".join(sorted(text))) for kind, text in said)


@pytest.mark.parametrize("recover", ["prompt", "native"])
@pytest.mark.parametrize("seed", range(20))
def test_items_that_take_turns_are_lawful_and_lose_no_text(recover: Recover, seed: int) -> None:
    chance = random.Random(f"{recover} {seed}")
    for _ in range(5):
        parts = some_parts(chance, "responses")
        order = begun(chance.choices(range(len(parts)), k=40))
        client("responses", sse(*responded(parts, order)), recover)
        parts = [(kind, ["".join(told)] if kind == "text" else told) for kind, told in parts]
        out, _ = client("responses", sse(*responded(parts, order)), recover)
        due = answered("responses", parts, recover)
        assert letters(streamed("responses", out)) == letters(due), (parts, order)


def begun(order: list[int]) -> list[int]:
    """The same, but each item begins behind those before it."""
    out: list[int] = []
    for place in order:
        out.append(min(place, len({*out})))
    return out


def letters(said: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All texts of each kind, in no order."""
    kinds = sorted({kind for kind, _ in said})
    return [(kind, "".join(sorted("".join(text for one, text in said if one == kind)))) for kind in kinds]


def test_a_message_that_speaks_late_is_told_though_another_before_it_was_markup() -> None:
    parts: list[Part] = [("text", [CALL]), ("text", ["later"]), ("text", ["now"])]
    out, outcome = client("responses", sse(*responded(parts, [0, 0, 0, 0, 0, 1, 0, 2, 2, 2, 2])))
    said = payloads(out)[-1]["response"]["output"]
    assert sorted(item["content"][0]["text"] for item in said if item["type"] == "message") == ["later", "now"]
    assert list(outcome.ledger) == []


def test_what_stands_beside_a_text_that_is_told_nowhere_is_recorded() -> None:
    """But for frames of which nothing is left: those are never seen."""
    parts: list[Part] = [("text", [CALL]), ("text", ["hi ", CALL]), ("text", ["a", CALL, "b"])]
    events = responded(parts)
    ends = [at for at, event in enumerate(events) if event["type"] == "response.output_item.done"]
    for at, event in enumerate(events):
        if "output_index" in event and "delta" not in event["type"] and at not in ends[:2]:
            event[f"beside_{at}"] = 1
    events[2]["item"]["odd"] = events[3]["part"]["strange"] = 1
    out, outcome = client("responses", sse(*events))
    names = ["odd", "strange", *(f"beside_{at}" for at, event in enumerate(events) if f"beside_{at}" in event)]
    lost = {name for name in names if f'"{name}"'.encode() not in out}
    assert {"odd", "strange", f"beside_{ends[2]}"} < lost
    assert {entry.path for entry in outcome.ledger} == lost
    assert not [*client("responses", sse(*responded(parts)))[1].ledger]
