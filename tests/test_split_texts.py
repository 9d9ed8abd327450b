"""One dialect over itself: a text that a recovered call was cut out of keeps all that stands beside it, in any form."""

import json
from collections.abc import Iterator

import pytest

from pipeline.dialect import RequestFacts
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.testing import cut
from tests.lawful import check_law
from tests.patching import MARKUP, Json, chat, messages, response, spoken
from tests.returning import payloads, returned
from tests.support import DONE
from tests.test_bridged import stream_of

GUIDED = AnswerOptions(recover="prompt")
TOLD = [{"token": "x", "logprob": -1, "bytes": [120], "top_logprobs": []}]
FORMS = [(arriving, leaving) for arriving in Form for leaving in Form]

every_form = pytest.mark.parametrize(("arriving", "leaving"), FORMS, ids=lambda form: str(form))


def answer(name: str, text: str) -> Json:
    """An answer that says that, with members that nobody knows at its block."""
    if name == "messages":
        return messages({"type": "text", "text": text, "odd": 1})
    return response(spoken(text), created_at=7, parallel_tool_calls=True, tool_choice="auto", tools=[])


def sent(name: str, body: Json, form: Form) -> bytes:
    """The answer as an upstream sends it: what is told of a block beside its text, and of the frames themselves."""
    if form is Form.WHOLE:
        return json.dumps(body).encode()
    frames = []
    for frame in stream_of(name, body, options=AnswerOptions(recover="off"))[0].split(b"\n\n"):
        head, found, data = frame.rpartition(b"data: ")
        if found and data != DONE.encode():
            said = json.loads(data)
            for piece in pieces_of(said):
                frames.append(head + found + json.dumps({**piece, "strange": 1}).encode())
        elif found:
            frames.append(frame)
    return b"\n\n".join([*frames, b""])


def pieces_of(said: Json) -> Iterator[Json]:
    """A delta of text in several, so that the markup is cut."""
    delta = said.get("delta")
    inner = delta.get("text") if isinstance(delta, dict) else delta
    if not isinstance(inner, str):
        yield said
        return
    for at in range(0, len(inner), 7):
        piece = inner[at : at + 7]
        yield {**said, "delta": {**delta, "text": piece} if isinstance(delta, dict) else piece}


def told(name: str, body: Json, arriving: Form, leaving: Form) -> tuple[list[Json], Outcome]:
    """The blocks, or items, of what a client gets."""
    facts = RequestFacts(stream=leaving is Form.STREAM, tools={"f": {}})
    raw = sent(name, body, arriving)
    out, outcome = returned(name, [raw], arriving=arriving, leaving=leaving, facts=facts, options=GUIDED)
    if leaving is Form.WHOLE:
        whole: Json = json.loads(out)
        return whole["output" if name == "responses" else "content"], outcome
    check_law(name, out)
    if name == "responses":
        items: list[Json] = payloads(out)[-1]["response"]["output"]
        assert [one["item"] for one in payloads(out) if one["type"] == "response.output_item.done"] == items
        return items, outcome
    return [one["content_block"] for one in payloads(out) if one["type"] == "content_block_start"], outcome


@every_form
@pytest.mark.parametrize(
    "text", [f"A {MARKUP} B", f"{MARKUP}B", f"A{MARKUP}", f"{MARKUP}A{MARKUP}B", "<think>t</think>A"]
)
def test_every_part_of_a_text_keeps_what_stands_beside_it(arriving: Form, leaving: Form, text: str) -> None:
    blocks, _ = told("messages", answer("messages", text), arriving, leaving)
    texts = [block for block in blocks if block["type"] == "text"]
    assert [block.get("odd") for block in texts] == [1] * len(texts)
    items, _ = told("responses", answer("responses", text), arriving, leaving)
    said = [item for item in items if item["type"] == "message"]
    assert [(item["phase"], item["content"][0]["odd"]) for item in said] == [("final", 1)] * len(texts)
    assert len({item["id"] for item in items}) == len(items)
    assert [item["id"] for item in said][:1] == ["msg_1"]


@pytest.mark.parametrize("text", [f"A {MARKUP} B", f"{MARKUP}B", f"A{MARKUP}", "<think>t</think>A"])
def test_the_frames_of_a_text_that_was_cut_keep_their_members(text: str) -> None:
    for name in ("messages", "responses"):
        raw = sent(name, answer(name, text), Form.STREAM)
        facts = RequestFacts(tools={"f": {}})
        out, _ = returned(name, [raw], facts=facts, options=GUIDED)
        spoke = [one for one in payloads(out) if isinstance(one.get("delta"), str) or "text" in one.get("delta", {})]
        spoke = [one for one in spoke if "arguments" not in one["type"] and "reasoning" not in one["type"]]
        assert spoke
        assert all(one["strange"] == 1 for one in spoke)
        ends = [one for one in payloads(out) if one["type"] == "content_block_stop" and "strange" in one]
        assert len(ends) == (name == "messages" and not text.endswith(MARKUP))
        for size in (1, 7, 64, "frame"):
            again, _ = returned(name, cut(raw, size), facts=facts, options=GUIDED)
            assert [one["type"] for one in payloads(again)] == [one["type"] for one in payloads(out)]


@every_form
def test_what_is_said_of_the_tokens_of_a_text_that_was_cut_is_dropped_and_recorded(
    arriving: Form, leaving: Form
) -> None:
    body = response(spoken(f"A {MARKUP} B"), created_at=7, parallel_tool_calls=True, tool_choice="auto", tools=[])
    body["output"][0]["content"][0]["logprobs"] = TOLD
    items, outcome = told("responses", body, arriving, leaving)
    assert json.dumps(items).count('"x"') == 0
    assert "logprobs" in [entry.path for entry in outcome.ledger]
    body = chat(f"A {MARKUP} B")
    body["choices"].pop()
    body["choices"][0]["logprobs"] = {"content": TOLD}
    facts = RequestFacts(stream=leaving is Form.STREAM, tools={"f": {}})
    raw = sent("chat", body, arriving)
    out, outcome = returned("chat", [raw], arriving=arriving, leaving=leaving, facts=facts, options=GUIDED)
    assert b'"token"' not in out
    assert "logprobs" in [entry.path for entry in outcome.ledger]
    assert list(returned("chat", [raw], arriving=arriving, leaving=leaving)[1].ledger) == []


def test_what_a_server_tells_of_an_item_too_late_is_recorded() -> None:
    body = answer("responses", f"A{MARKUP}")
    raw = sent("responses", body, Form.STREAM)
    late = raw.replace(b'"status": "completed", "role"', b'"late": 1, "status": "completed", "role"')
    assert late != raw
    for text, due in ((raw, ["strange"]), (late, ["late", "strange"])):
        _, outcome = returned("responses", [text], facts=RequestFacts(tools={"f": {}}), options=GUIDED)
        assert [entry.path for entry in outcome.ledger if entry.path != "logprobs"] == due
