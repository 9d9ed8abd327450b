"""Two hops of ours, both over Responses itself, that both put items in: no two items of an answer have one id."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.events import BlockStart, BlockStop, Event, ReasoningBlock, ReasoningDelta, TextBlock, TextDelta
from pipeline.reply import Form
from stages.recipe import default_halves
from tests.lawful import check_law
from tests.patching import MARKUP
from tests.returning import Each, payloads
from tests.test_bridged import bodies, stream_of
from tests.test_split_texts import answer

RESPONSES = dialect("responses")


def put_in(event: Event) -> Iterable[Event]:
    """A stage that puts a text and some reasoning before each text, and another text behind it."""
    if isinstance(event, BlockStart) and isinstance(event.block, TextBlock):
        at = 1000 + event.index
        yield from (BlockStart(at, TextBlock()), TextDelta(at, "first"), BlockStop(at))
        yield from (BlockStart(at + 100, ReasoningBlock()), ReasoningDelta(at + 100, "hm"), BlockStop(at + 100))
    yield event


def hop(form: Form) -> Any:
    before, after = default_halves(RESPONSES, RESPONSES, arriving=form, leaving=form)
    return before | Each(put_in) | after


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_ids_of_items_that_several_hops_put_in_are_unique(form: Form, hops: int) -> None:
    for body in (bodies()["responses"], answer("responses", f"A {MARKUP} B")):
        raw = json.dumps(body).encode() if form is Form.WHOLE else stream_of("responses", body)[0]
        for _ in range(hops):
            chain = hop(form)
            raw = b"".join([*chain.receive([raw]), *chain.receive_eof()])
        if form is Form.STREAM:
            check_law("responses", raw)
        items = json.loads(raw)["output"] if form is Form.WHOLE else payloads(raw)[-1]["response"]["output"]
        assert len({item["id"] for item in items}) == len(items)
        assert sum(item.get("content", [{}])[0].get("text") == "first" for item in items) == 2**hops - 1
        assert [item["id"] for item in items].count("msg_1") == 1
