"""Chat over itself: the older member in which some servers repeat a text shows no markup that was cut out of it."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.testing import Chunk, cut
from tests.markup_streams import chatted, sse
from tests.returning import payloads, returned
from tests.scrubbing import MARKUP, PROMPT

FACTS = RequestFacts(tools={"f": {}})


def twinned(*pieces: str, first: bool) -> list[Any]:
    """A completion whose chunks repeat their text beside the delta; `first`: the first one speaks already."""
    chunks = chatted([("text", pieces)])
    if first:
        chunks[1]["choices"][0]["delta"]["role"] = "assistant"
        del chunks[0]
    for chunk in chunks[:-2]:
        chunk["choices"][0]["text"] = chunk["choices"][0]["delta"].get("content", "")
    return chunks


@pytest.mark.parametrize("cut_", [7, "frame", None], ids=str)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "pieces", [["<think>", "x", "</think>", "Hi"], ["<think>x</think>Hi"], [f"Hi {MARKUP}", " bye"]]
)
def test_it_shows_no_markup(pieces: list[str], first: bool, cut_: Chunk) -> None:
    out, outcome = returned("chat", cut(sse(*twinned(*pieces, first=first)), cut_), facts=FACTS, options=PROMPT)
    assert not any(word in out for word in (b"think>", b"tool_call>"))
    assert "choices[].text" in [entry.path for entry in outcome.ledger]


@pytest.mark.parametrize("first", [True, False])
def test_what_was_not_changed_stays(first: bool) -> None:
    raw = sse(*twinned("Hi ", "there", first=first))
    assert returned("chat", [raw], facts=FACTS)[0] == raw


def test_what_repeats_nothing_stays() -> None:
    chunks = twinned("<think>x</think>Hi", first=True)
    chunks[0]["choices"][0]["text"] = "other"
    out, outcome = returned("chat", [sse(*chunks)], facts=FACTS)
    assert payloads(out)[0]["choices"][0]["text"] == "other"
    assert list(outcome.ledger) == []
