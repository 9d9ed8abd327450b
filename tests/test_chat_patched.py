"""A whole Chat answer over itself: a message that was changed keeps its other members, and its form."""

from collections.abc import Iterable

import pytest

from pipeline.dialect import RequestFacts
from pipeline.events import (
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    RedactedReasoningBlock,
    ServerBlock,
    TextBlock,
    TextDelta,
)
from pipeline.ledger import Ledger
from pipeline.toolnames import OfferedTool, RequestMap
from tests.patching import ARGUMENTS, MARKUP, Json, chat, made, scrubbed, upper, without_ids


def test_a_chat_message_is_patched_in_the_members_that_it_has() -> None:
    odd = {
        "content": [{"type": "text", "text": f"A {MARKUP}", "odd": 1}, {"type": "image"}, {"type": "text", "text": "B"}]
    }
    said = scrubbed("chat", chat(**odd))["choices"][0]["message"]
    assert said["content"] == [
        {"type": "text", "text": "A ", "odd": 1},
        {"type": "image"},
        {"type": "text", "text": "B"},
    ]
    assert [without_ids(call) for call in said["tool_calls"]] == [
        {"type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
    ]
    assert scrubbed("chat", chat([{"type": "text", "text": MARKUP}]))["choices"][0]["message"]["content"] is None
    assert scrubbed("chat", chat(MARKUP))["choices"][0]["message"]["content"] is None
    noted = chat(f"{MARKUP}A", annotations=[{"type": "odd"}], function_call=None, tool_calls=None)
    said = scrubbed("chat", noted)["choices"][0]["message"]
    assert (said["content"], said["annotations"], said["function_call"]) == ("A", [{"type": "odd"}], None)


@pytest.mark.parametrize("member", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_that_was_recovered_joins_what_came(member: str) -> None:
    said = scrubbed("chat", chat("<think>why</think>A", **{member: "Hm. "}))["choices"][0]["message"]
    assert (said["content"], said[member]) == ("A", "Hm. why")
    said = scrubbed("chat", chat("<think>why</think>A"))["choices"][0]["message"]
    assert (said["content"], said["reasoning_content"]) == ("A", "why")


def test_reasoning_that_was_recovered_leaves_a_proof_what_it_is_of() -> None:
    blob = {"type": "reasoning.encrypted", "data": "x"}
    said = scrubbed("chat", chat("<think>why</think>A", reasoning=None, reasoning_details=[blob]))
    message = said["choices"][0]["message"]
    assert (message["reasoning_content"], message["reasoning_details"]) == ("why", [blob])
    signed = {"type": "reasoning.text", "text": "Hm. ", "signature": "s"}
    said = scrubbed("chat", chat("<think>why</think>A", reasoning_details=[signed, "odd"]))
    details = said["choices"][0]["message"]["reasoning_details"]
    assert details == [signed, "odd", {"type": "reasoning.text", "text": "why"}]
    bare = [{"type": "reasoning.summary", "summary": "Hm. "}, {"type": "reasoning.text", "text": "So. "}]
    said = scrubbed("chat", chat("<think>why</think>A", reasoning_details=bare))
    details = said["choices"][0]["message"]["reasoning_details"]
    assert [detail.get("summary", detail.get("text")) for detail in details] == ["Hm. So. why", ""]


def test_an_answer_whose_first_choice_is_lacking_is_written_anew() -> None:
    def make(event: Event) -> Iterable[Event]:
        yield event
        if isinstance(event, MessageStart):
            yield from (BlockStart(0, TextBlock()), TextDelta(0, "Hi"), BlockStop(0))

    body = chat("A")
    del body["choices"][0]
    assert made("chat", body, make)["choices"][0]["message"]["content"] == "Hi"


def test_an_answer_that_has_a_delta_too_is_patched_in_its_message() -> None:
    body = chat(f"A{MARKUP}")
    body["choices"][0]["delta"] = {"role": "assistant", "content": ""}
    out = scrubbed("chat", body)["choices"][0]
    assert (out["message"]["content"], out["delta"]) == ("A", {"role": "assistant", "content": ""})
    del body["choices"][0]["message"]
    body["choices"][0]["delta"]["content"] = f"A{MARKUP}"
    assert scrubbed("chat", body)["choices"][0]["delta"]["content"] == "A"


def test_calls_of_a_chat_message_are_patched_one_by_one() -> None:
    first: Json = {
        "id": "a",
        "index": 0,
        "type": "function",
        "odd": 1,
        "function": {"name": "f", "arguments": "{}", "odd": 1},
    }
    second = {"id": "b", "index": 1, "type": "custom", "custom": {"name": "g", "input": "x"}}
    body = chat(f"A{MARKUP}", tool_calls=[first, second])
    calls = scrubbed("chat", body)["choices"][0]["message"]["tool_calls"]
    assert calls[1:] == [first, second]
    renamed = {"f": OfferedTool("down"), "g": OfferedTool("g")}
    facts = RequestFacts(map=RequestMap(tools=renamed, ids={"a": "A"}))
    new = {**first, "id": "A", "function": {**first["function"], "name": "down"}}
    calls = made("chat", body, lambda event: [event], facts)["choices"][0]["message"]["tool_calls"]
    assert calls == [new, second]
    gone = made("chat", body, lambda event: [] if getattr(event, "index", 0) else [event])
    assert "tool_calls" not in gone["choices"][0]["message"]
    odd = made("chat", chat("A", tool_calls=[first, {"index": 0, "function": {"arguments": " "}}]), upper, facts)
    (call,) = odd["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "A", "type": "function", "function": {"name": "down", "arguments": "{} "}}


def test_a_call_in_the_old_form_keeps_it() -> None:
    old = {"name": "f", "arguments": "{}", "odd": 1}
    said = scrubbed("chat", chat(f"A{MARKUP}", function_call=old))["choices"][0]["message"]
    assert said["function_call"] == old
    assert [call["function"]["name"] for call in said["tool_calls"]] == ["f"]
    facts = RequestFacts(map=RequestMap(tools={"f": OfferedTool("down")}))
    said = made("chat", chat("A", function_call=old), lambda event: [event], facts)["choices"][0]["message"]
    assert (said["function_call"], "tool_calls" in said) == ({**old, "name": "down"}, False)
    twice = chat("A", function_call=old, tool_calls=[{"id": "a", "type": "function", "function": old}])
    said = made("chat", twice, lambda event: [event], facts)["choices"][0]["message"]
    assert (said["function_call"], said["tool_calls"][0]["function"]) == (old, {**old, "name": "down"})


def test_what_chat_cannot_hold_is_recorded() -> None:
    def make(event: Event) -> Iterable[Event]:
        if isinstance(event, MessageDelta):
            yield from (BlockStart(8, RedactedReasoningBlock("x")), BlockStop(8))
            yield from (BlockStart(9, ServerBlock("chat", {})), BlockStop(9))
        yield event

    ledger = Ledger()
    out = made("chat", chat("A", refusal="no"), make, ledger=ledger)
    assert out == chat("A", refusal="no")
    assert [entry.path for entry in ledger if entry.action == "dropped"] == ["RedactedReasoning", "ServerItem"]
    assert made("chat", chat("a", refusal="no"), upper)["choices"][0]["message"]["refusal"] == "NO"
