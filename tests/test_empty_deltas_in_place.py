"""One dialect over itself: empty deltas beside markup are told nowhere that is not open, and change nothing else."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.events import AnnotationDelta, Event
from pipeline.route import AnswerOptions
from pipeline.testing import Chunk, cut
from stages.scrub.inplace import OWN
from tests import messages_stream as messages
from tests.canonical import REASONING, TEXT, losses, start, stop, text, think
from tests.lawful import check_law
from tests.markup_streams import Part, chatted, messaged, responded, sse
from tests.returning import payloads, returned
from tests.scrubbing import MARKUP, NATIVE, NATIVE_HIDING, PROMPT
from tests.test_scrub_placed import call as called
from tests.test_scrub_placed import said, steps, without_ids

FACTS = RequestFacts(tools={"f": {}})
STREAMS: dict[str, Callable[[Sequence[Part]], list[Any]]] = {
    "chat": chatted,
    "messages": messaged,
    "responses": responded,
}
OPTIONS = {"native": NATIVE, "prompt": PROMPT, "hide": NATIVE_HIDING}
THOUGHT = "<think>x</think>"

TEXTS: list[list[list[str]]] = [
    [[f"Hi {MARKUP}"]],
    [[MARKUP]],
    [["Hi", MARKUP[:30], MARKUP[30:]]],
    [["Hi", MARKUP, MARKUP, " bye"]],
    [[THOUGHT]],
    [[THOUGHT, "Hi"]],
    [["<thi", "nk>x</think>Hi"]],
    [["<think>x", "y</think>\n", "\nHi"]],
    [["Hi <tool_", "b>"], [THOUGHT]],
    [["\n", MARKUP]],
    [[f"Hi {MARKUP}"], ["bye"]],
    [[MARKUP], []],
    [["Hi"], [MARKUP], [], ["bye"]],
    [[THOUGHT], []],
]
"""The pieces of the texts of an answer; in each an empty one stands at every place."""


def at_every_place(texts: list[list[str]]) -> list[list[list[str]]]:
    """The texts with an empty piece at each place, and at all."""
    out = [
        [pieces if other != at else [*pieces[:to], "", *pieces[to:]] for other, pieces in enumerate(texts)]
        for at, some in enumerate(texts)
        for to in range(len(some) + 1)
    ]
    return [*out, [["", *(one for piece in pieces for one in (piece, ""))] for pieces in texts]]


def answer(name: str, texts: list[list[str]], options: AnswerOptions, cut_: Chunk) -> bytes:
    """What a client gets of it."""
    raw = sse(*STREAMS[name]([("text", pieces) for pieces in texts]))
    out, _ = returned(name, cut(raw, cut_), facts=FACTS, options=options)
    check_law(name, out)
    return out


def spoken(name: str, raw: bytes) -> list[Any]:
    """What its deltas say that is not empty, and of which block, and what blocks there are."""
    told: list[Any] = []
    for one in payloads(raw):
        if name == "chat" and one != "[DONE]":
            told += [choice["delta"].get("content") for choice in one["choices"] if choice["delta"].get("content")]
        elif name == "messages" and one["type"] == "content_block_start":
            told.append((one["index"], one["content_block"]["type"]))
        elif name == "messages" and one["type"] == "content_block_delta":
            told += [(one["index"], one["delta"]["text"])] if one["delta"].get("text") else []
        elif name == "responses" and one["type"] == "response.output_text.delta":
            told += [(one["output_index"], one["delta"])] if one["delta"] else []
    return told


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("options", ["native", "prompt"])
@pytest.mark.parametrize("texts", TEXTS, ids=str)
def test_they_break_no_law_and_say_nothing(name: str, options: str, texts: list[list[str]]) -> None:
    plain = answer(name, texts, OPTIONS[options], "frame")
    for other in at_every_place(texts):
        for cut_ in ("frame", None):
            assert spoken(name, answer(name, other, OPTIONS[options], cut_)) == spoken(name, plain), other


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("cut_", [1, "frame", None], ids=str)
def test_where_no_markup_is_they_pass(name: str, cut_: Chunk) -> None:
    for texts in ([["", "Hi ", "", "there", ""]], [[""]], [["", ""], ["Hi", ""]], [["a <tool_", "", "b>", ""]]):
        raw = sse(*STREAMS[name]([("text", pieces) for pieces in texts]))
        assert returned(name, cut(raw, cut_), facts=FACTS)[0] == raw


@pytest.mark.parametrize("cut_", ["frame", None], ids=str)
def test_what_stands_beside_one_that_is_left_out_is_recorded(cut_: Chunk) -> None:
    items = messaged([("text", [f"Hi {MARKUP}", ""])])
    items[3]["delta"]["odd"] = 1
    out, outcome = returned("messages", cut(sse(*items), cut_), facts=FACTS)
    check_law("messages", out)
    assert b"odd" not in out
    assert losses(outcome.ledger) == [("delta.odd", "dropped", "nothing is left of its frame")]
    del items[3]["delta"]["odd"]
    assert losses(returned("messages", cut(sse(*items), cut_), facts=FACTS)[1].ledger) == []


# the writer


def test_one_of_a_block_that_is_open_leaves_as_it_came() -> None:
    empty = text(0, "")
    assert said(text(0, "a"), empty, text(0, "b"))[2] is empty
    assert said(empty, text(0, "b")) == [start(0, TEXT), empty, text(0, "b")]
    assert said(empty, stop(0)) == [start(0, TEXT), empty, stop(0)]


@pytest.mark.parametrize("before", [[], [""], ["a"], ["a", ""], ["\n"]], ids=str)
def test_one_of_a_block_that_was_closed_or_never_began_is_left_out(before: list[str]) -> None:
    made = said(*(text(0, one) for one in before), text(0, MARKUP), text(0, ""), stop(0))
    shown = [start(0, TEXT), *(text(0, one) for one in before), stop(0)] if "a" in before else []
    assert without_ids(made) == [*shown, *called(OWN)]


def test_one_behind_text_that_has_a_block_of_ours_is_left_out() -> None:
    made = said(text(0, f"{THOUGHT}a"), text(0, ""), text(0, "b"), stop(0))
    assert made[-4:] == [start(OWN + 1, TEXT), text(OWN + 1, "a"), text(OWN + 1, "b"), stop(OWN + 1)]


def test_one_in_the_middle_of_reasoning_that_was_written_as_text_is_left_out() -> None:
    made = said(text(0, "<think>a"), text(0, ""), text(0, "b</think>"), text(0, ""), stop(0))
    assert made == [start(OWN, REASONING), think(OWN, "a"), think(OWN, "b")]
    assert steps(text(0, "a"), text(0, THOUGHT), text(0, ""))[-1] == []


def test_one_is_no_text_that_blanks_behind_markup_could_belong_to() -> None:
    for empty in ([], [text(0, "")]):
        made = said(*empty, start(1, REASONING), stop(1), text(0, MARKUP), text(0, " b"))
        assert made[-1].text == "b", empty  # type: ignore[attr-defined]  # it is a delta


def test_one_of_a_block_that_was_closed_opens_none_though_another_waits() -> None:
    begun: list[Event] = [text(0, "a"), stop(0), start(1, TEXT), text(0, ""), AnnotationDelta(1, {}), stop(1)]
    made = said(*begun)
    assert made == [start(0, TEXT), *begun[:3], *begun[4:]]


# what else a server says of a block


ODD = messages.delta("odd_delta", odd=1)
SPLIT = [*pairwise([0, 5, 30, len(MARKUP)])]


@pytest.mark.parametrize("cut_", ["frame", None], ids=str)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("pieces", [["Hi ", *(MARKUP[a:b] for a, b in SPLIT)], [*(MARKUP[a:b] for a, b in SPLIT)]])
@pytest.mark.parametrize("behind", [[], [""], ["bye"]])
def test_a_delta_of_an_unknown_kind_goes_to_no_block_that_is_not_open(
    pieces: list[str], behind: list[str], options: str, cut_: Chunk
) -> None:
    plain = messaged([("text", [*pieces, *behind])])
    for at in range(2, len(plain) - 2):
        out, outcome = returned(
            "messages", cut(sse(*plain[:at], ODD, *plain[at:]), cut_), facts=FACTS, options=OPTIONS[options]
        )
        said = payloads(out)
        odd = [place for place, one in enumerate(said) if one.get("delta", {}).get("type") == "odd_delta"]
        check_law("messages", sse(*(one for place, one in enumerate(said) if place not in odd)))
        assert len(odd) + len([entry for entry in outcome.ledger if entry.path == "delta"]) == 1, at
        for place in odd:
            before = [one for one in said[:place] if "index" in one][-1]
            assert before["type"] != "content_block_stop"
            assert said[place] == {**ODD, "index": before["index"]}


def test_where_nothing_is_changed_it_passes() -> None:
    plain = messaged([("text", ["Hi ", "there"])])
    for at in range(1, len(plain)):
        raw = sse(*plain[:at], ODD, *plain[at:])
        assert returned("messages", [raw], facts=FACTS)[0] == raw
