"""A Responses message whose parts are told at once: each comes out whole, in order of beginning, with its notes."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.errors import LimitExceeded
from pipeline.events import BlockStop, RefusalDelta, StreamError, TextDelta
from pipeline.limits import DEFAULT_LIMITS, Limits
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.interleave import InterleaveBuffer
from stages.recipe import default_chain
from tests import messages_stream as ms
from tests import responses_stream as rs
from tests.exchange import answered
from tests.lawful import check_law
from tests.test_untold_usage import DIALECTS, asked

Json = dict[str, Any]
SAID = (("A1", "A2"), ("B1", "B2"))
"""What each of two parts says, in two deltas."""
NOTES = [
    {"type": "url_citation", "url": f"https://{name}", "title": name, "start_index": 0, "end_index": 2} for name in "ab"
]
MEMBER = {"output_text": "text", "refusal": "refusal"}
KINDS = [("output_text", "output_text"), ("output_text", "refusal"), ("refusal", "output_text"), ("refusal", "refusal")]
ENDS = ["text done", "part done", "both", "none"]


def told(kind: str, step: str, at: int, **members: Any) -> Json:
    return rs.event(f"response.{kind}.{step}", output_index=0, item_id="m1", content_index=at, **members)


def whole(kind: str, part: int) -> Json:
    beside: Json = {"annotations": [NOTES[part]], "logprobs": []} if kind == "output_text" else {}
    return {"type": kind, MEMBER[kind]: "".join(SAID[part]), **beside}


def spoken(kinds: tuple[str, str], ends: str) -> list[Json]:
    """A stream in which two parts of one message alternate."""
    item = {**rs.message(), "content": [whole(kind, part) for part, kind in enumerate(kinds)]}
    out = [rs.created(), rs.added({**item, "content": []})]
    for turn in range(2):
        out += [told(kind, "delta", part, delta=SAID[part][turn]) for part, kind in enumerate(kinds)]
    for part, kind in enumerate(kinds):
        if kind == "output_text":
            out.append(told(kind, "annotation.added", part, annotation=NOTES[part], annotation_index=0))
        if ends in ("text done", "both"):
            out.append(told(kind, "done", part, **{MEMBER[kind]: "".join(SAID[part])}))
        if ends in ("part done", "both"):
            out.append(told("content_part", "done", part, part=whole(kind, part)))
    return [*out, rs.done(item), rs.terminal(output=[item])]


def texts(client: str, body: bytes, *, streamed: bool) -> str:
    """All text that a client reads, refusals too, in the order in which it comes."""
    if not streamed:
        answer = json.loads(body)
        if client == "chat":
            message = answer["choices"][0]["message"]
            return (message["content"] or "") + "|" + (message.get("refusal") or "")
        blocks = answer["content"] if client == "messages" else answer["output"]
        parts = blocks if client == "messages" else [part for item in blocks for part in item["content"]]
        return "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    found = ""
    for event in (json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")):
        if client == "chat":
            delta = event["choices"][0]["delta"] if event["choices"] else {}
            found += (delta.get("content") or "") + (delta.get("refusal") or "")
        elif client == "messages":
            found += event.get("delta", {}).get("text", "")
        elif event["type"].endswith("_text.delta") or event["type"].endswith("refusal.delta"):
            found += event["delta"]
    return found


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("client", ["chat", "messages"])
def test_parts_that_are_told_at_once_come_one_behind_the_other(client: str, kinds: tuple[str, str], ends: str) -> None:
    raw = ms.sse(spoken(kinds, ends))
    got = answered(asked(client, "responses", True), raw)
    assert texts(client, got.body, streamed=True) == "A1A2B1B2"
    got = answered(asked(client, "responses", False), raw)
    due = "A1A2B1B2"
    if client == "chat":
        text = "".join("".join(SAID[part]) for part, kind in enumerate(kinds) if kind == "output_text")
        due = text + "|" + "".join("".join(SAID[part]) for part, kind in enumerate(kinds) if kind == "refusal")
    assert texts(client, got.body, streamed=False) == due


@pytest.mark.parametrize("middle", ["chat", "messages"])
@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_over_another_dialect_a_responses_client_reads_them_in_order_too(middle: str, kinds: tuple[str, str]) -> None:
    way = [dialect(name) for name in ("responses", middle, "responses")]
    chain = default_chain(way[0], way[1]) | default_chain(way[1], way[2])
    body = b"".join([*chain.receive([ms.sse(spoken(kinds, "both"))]), *chain.receive_eof()])
    check_law("responses", body)
    assert texts("responses", body, streamed=True) == "A1A2B1B2"


@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("client", ["chat", "messages"])
def test_every_cut_says_the_same(client: str, kinds: tuple[str, str], size: int) -> None:
    raw = ms.sse(spoken(kinds, "both"))
    cut = [raw[at : at + size] for at in range(0, len(raw), size)]
    whole, cut_up = (answered(asked(client, "responses", True), *reads) for reads in ([raw], cut))
    assert told_by(cut_up.body) == told_by(whole.body)


@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("ends", ENDS)
def test_over_responses_itself_not_a_byte_is_changed(kinds: tuple[str, str], ends: str) -> None:
    raw = ms.sse(spoken(kinds, ends))
    assert answered(asked("responses", "responses", True), raw).body == raw


def told_by(body: bytes) -> list[Any]:
    """The events of a stream, without the moments at which they were made."""
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    return [{name: value for name, value in event.items() if name != "created"} for event in events]


def run(*events: Json, limits: Limits = DEFAULT_LIMITS) -> list[list[Any]]:
    """What the normalizer and the buffer make of each event."""
    chain = ResponsesNormalizer() | InterleaveBuffer(limits=limits)
    return [[*chain.receive([rs.frame(one)])] for one in events]


@pytest.mark.parametrize("ends", ENDS)
def test_the_notes_on_a_part_stay_with_it(ends: str) -> None:
    made = [one for step in run(*spoken(KINDS[0], ends)) for one in step]
    noted = {one.index: one.annotation["title"] for one in made if hasattr(one, "annotation")}
    assert noted == {0: "a", 1: "b"}


@pytest.mark.parametrize("place", [0, 1], ids=["another part", "another message"])
@pytest.mark.parametrize(
    "ended",
    [
        told("output_text", "done", 0, text="A"),
        told("content_part", "done", 0, part={"type": "output_text", "text": "A", "annotations": []}),
    ],
    ids=["text done", "part done"],
)
def test_what_waits_is_let_go_by_the_end_of_the_text_before_it(place: int, ended: Json) -> None:
    other = rs.text("B", place, 1 - place, "m2" if place else "m1")
    steps = run(rs.created(), rs.text("A"), other, ended, {**other, "delta": "b"})
    assert [one.text for one in steps[1] if isinstance(one, TextDelta)] == ["A"]
    assert steps[2] == []
    assert [one.text for one in steps[3] if isinstance(one, TextDelta)] == ["B"]
    assert any(isinstance(one, BlockStop) for one in steps[3])
    assert [one.text for one in steps[4]] == ["b"]


def test_a_part_that_begins_behind_the_end_of_the_one_before_it_does_not_wait() -> None:
    steps = run(rs.created(), rs.text("A"), told("output_text", "done", 0, text="A"), rs.text("B", part=1))
    assert [one.text for one in steps[3] if isinstance(one, TextDelta)] == ["B"]


def test_text_behind_the_end_of_its_part_is_not_lost() -> None:
    end = told("output_text", "done", 0, text="A")
    steps = run(rs.created(), rs.text("A"), rs.text("B", part=1), end, rs.text("C"), rs.done(rs.message("AC", "B")))
    said = [one.text for step in steps for one in step if isinstance(one, TextDelta)]
    assert said == ["A", "B", "C"]


def test_what_a_server_says_without_naming_the_part_goes_on_in_the_last_one() -> None:
    steps = run(rs.created(), rs.text("A"), rs.text("B", part=None), rs.done(rs.message("AB")))
    assert [(one.index, one.text) for step in steps for one in step if isinstance(one, TextDelta)] == [
        (0, "A"),
        (0, "B"),
    ]


def test_a_refusal_waits_for_the_text_before_it() -> None:
    steps = run(rs.created(), rs.text("A"), told("refusal", "delta", 1, delta="no"), rs.text("a"))
    assert [type(one) for step in steps[2:] for one in step] == [TextDelta]
    steps = run(
        *[rs.created(), rs.text("A"), told("refusal", "delta", 1, delta="no")],
        told("output_text", "done", 0, text="A"),
    )
    assert [one.text for one in steps[3] if isinstance(one, RefusalDelta)] == ["no"]


def test_what_waits_is_bounded() -> None:
    waiting = [rs.text("B" * 50, part=1)] * 3
    steps = run(rs.created(), rs.text("A"), *waiting, limits=Limits(held_bytes=100))
    assert [one.code for step in steps for one in step if isinstance(one, StreamError)] == ["held_bytes"]


def test_the_parts_of_a_message_are_bounded() -> None:
    stage = ResponsesNormalizer(limits=Limits(blocks=3))
    with pytest.raises(LimitExceeded, match="more than 3 parts"):
        stage.receive([rs.frame(one) for one in (rs.created(), *(rs.text("a", part=part) for part in range(4)))])


def test_a_whole_answer_with_large_parts_holds_nothing_back() -> None:
    large = "x" * 60
    chain = InterleaveBuffer(limits=Limits(held_bytes=100))
    chain.receive(ResponsesNormalizer().whole(rs.response(output=[rs.message(large, large, large)])))
    assert chain.held == 0


@pytest.mark.parametrize("client", DIALECTS)
def test_characters_that_are_cut_in_two_are_joined_in_their_part(client: str) -> None:
    halves = [told("output_text", "delta", part, delta=half) for half in ("\ud83d", "\ude00") for part in (0, 1)]
    item = rs.message("\U0001f600", "\U0001f600")
    frames = [rs.created(), rs.added({**item, "content": []}), *halves, rs.done(item), rs.terminal(output=[item])]
    got = answered(asked(client, "responses", True), ms.sse(frames))
    if client != "responses":
        assert texts(client, got.body, streamed=True) == "\U0001f600" * 2
