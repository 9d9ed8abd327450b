"""stages.scrub.gate: which markup becomes a call, in every form of answer."""

import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from pipeline.dialect import RequestFacts, dialect
from pipeline.outcome import Outcome
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from stages.recipe import default_chain
from stages.scrub import gate
from stages.scrub.families import FAMILIES
from stages.scrub.gate import Fate, Progress
from tests.exchange import answered, calls, opened, route, whole
from tests.messages_client import folded
from tests.scrubbing import MARKUP, TOOLS
from tests.support import DONE, call, events_of, finish, read, sse, text

SAID = f"Hi. {MARKUP} ok"
CUT_OUT = "Hi.  ok"


def stream(structured: bool, size: int = 5) -> bytes:
    """The answer as a stream, with a call in the upstream's own form behind the text, or none."""
    parts = [text(SAID[at : at + size]) for at in range(0, len(SAID), size)]
    own = [call(0, "own", "g", '{"y":2}')] if structured else []
    return sse(*parts, *own, finish("tool_calls" if structured else "stop"), DONE)


def body(structured: bool) -> bytes:
    """The same as a whole answer."""
    own = {"tool_calls": calls(("own", "g", '{"y":2}'))} if structured else {}
    return whole("tool_calls" if structured else "stop", content=SAID, **own)


FORMS: dict[str, tuple[Callable[[bool], bytes], Form]] = {
    "stream": (stream, Form.STREAM),
    "whole": (body, Form.WHOLE),
    "JSON for a stream": (body, Form.STREAM),
    "a stream for JSON": (stream, Form.WHOLE),
}


def given(form: str, structured: bool, options: AnswerOptions, tools: bool = True) -> tuple[str, list[Any], str, int]:
    """What a client gets: its text, its calls, the stop reason, and how many calls were recovered."""
    raw, leaving = FORMS[form]
    outcome = Outcome()
    facts = RequestFacts(tools=TOOLS if tools else {})
    chain = default_chain(
        dialect("chat"),
        dialect("messages"),
        arriving=None,
        leaving=leaving,
        facts=facts,
        options=options,
        outcome=outcome,
    )
    out = b"".join([*chain.receive([raw(structured)]), *chain.receive_eof()])
    message = folded(out) if leaving is Form.STREAM else json.loads(out)
    said = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    called = [(block["name"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]
    return said, called, message["stop_reason"], outcome.recovered


RECOVERED, OWN = ("f", {"x": 1}), ("g", {"y": 2})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("residue", ["verbatim", "hide"])
def test_a_model_that_is_told_to_write_calls_as_text_always_means_them(form: str, residue: Any) -> None:
    options = AnswerOptions(recover="prompt", residue=residue)
    assert given(form, False, options) == (CUT_OUT, [RECOVERED], "tool_use", 1)
    assert given(form, True, options) == (CUT_OUT, [RECOVERED, OWN], "tool_use", 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("residue", ["verbatim", "hide"])
def test_a_native_caller_means_them_if_it_makes_no_call_in_its_own_form(form: str, residue: Any) -> None:
    options = AnswerOptions(recover="native", residue=residue)
    assert given(form, False, options) == (CUT_OUT, [RECOVERED], "tool_use", 1)
    kept = SAID if residue == "verbatim" else CUT_OUT
    assert given(form, True, options) == (kept, [OWN], "tool_use", 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("recover", "tools"), [("off", True), ("off", False), ("native", False), ("prompt", False)])
@pytest.mark.parametrize("residue", ["verbatim", "hide"])
def test_markup_is_text_where_no_tool_is_offered_or_nothing_is_recovered(
    form: str, recover: Any, tools: bool, residue: Any
) -> None:
    options = AnswerOptions(recover=recover, residue=residue)
    assert given(form, False, options, tools) == (SAID, [], "end_turn", 0)
    assert given(form, True, options, tools) == (SAID, [OWN], "tool_use", 0)


@pytest.mark.parametrize("recover", ["native", "prompt"])
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("size", [1, 100])
def test_a_stream_without_tools_is_untouched(recover: Any, structured: bool, size: int) -> None:
    raw = stream(structured, size)
    assert written(raw, AnswerOptions(recover=recover), {}) == written(raw, AnswerOptions(recover="off"), {})


WHOLE = {(False, 2, True), (False, 100, False), (True, 100, False), (True, 100, True)}
"""Where no delta ends in what may become markup: such a one leaves in two."""


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("tools", [True, False])
def test_a_native_answer_with_a_call_of_its_own_is_unchanged_in_deltas_and_text(
    first: bool, size: int, tools: bool
) -> None:
    parts = [text(SAID[at : at + size]) for at in range(0, len(SAID), size)]
    own = call(0, "own", "g", '{"y":2}')
    raw = sse(*([own, *parts] if first else [*parts, own]), finish("tool_calls"), DONE)
    offered = TOOLS if tools else {}
    got, off = written(raw, AnswerOptions(), offered), written(raw, AnswerOptions(recover="off"), offered)
    assert folded(got) == folded(off)
    assert "".join(deltas(got)) == "".join(deltas(off))
    whole = size == 1 or (first, size, tools) in WHOLE
    assert parted(deltas(got), deltas(off)) == (0 if whole else 1)
    assert (got == off) is whole


def parted(ours: list[str], theirs: list[str]) -> int:
    """How many deltas were parted in two, where text is not to wait for what follows it; none may be joined."""
    left = ours[::-1]
    for delta in theirs:
        if (first := left.pop()) != delta:
            assert first + left.pop() == delta
    assert not left
    return len(ours) - len(theirs)


def deltas(raw: bytes) -> list[str]:
    """The text of each delta of a stream."""
    return [event["delta"]["text"] for event in events_of(raw) if event.get("delta", {}).get("type") == "text_delta"]


def written(raw: bytes, options: AnswerOptions, tools: dict[str, Any]) -> bytes:
    """A stream for a client, byte for byte."""
    chain = default_chain(dialect("chat"), dialect("messages"), facts=RequestFacts(tools=tools), options=options)
    return b"".join([*chain.receive([raw]), *chain.receive_eof()])


TABLE = {
    ("off", "verbatim", True, False, Progress.OVER): Fate.TEXT,
    ("prompt", "verbatim", False, False, Progress.OVER): Fate.TEXT,
    ("native", "hide", False, True, Progress.OVER): Fate.TEXT,
    ("prompt", "hide", True, True, Progress.OPEN): Fate.CALL,
    ("prompt", "verbatim", True, False, Progress.CUT): Fate.CALL,
    ("native", "verbatim", True, False, Progress.OPEN): Fate.UNDECIDED,
    ("native", "verbatim", True, False, Progress.OVER): Fate.CALL,
    ("native", "hide", True, False, Progress.CUT): Fate.TEXT,
    ("native", "verbatim", True, True, Progress.OPEN): Fate.TEXT,
    ("native", "hide", True, True, Progress.OPEN): Fate.HIDDEN,
    ("native", "hide", True, True, Progress.CUT): Fate.HIDDEN,
}


@pytest.mark.parametrize("facts", TABLE, ids=str)
def test_the_gate_is_one_function(facts: Any) -> None:
    recover, residue, tools, structured, progress = facts
    fate = gate.fate(recover, residue, tools=tools, structured=structured, progress=progress)
    assert fate is TABLE[facts]


def test_only_a_native_caller_in_the_middle_of_its_turn_is_undecided() -> None:
    cases: Iterable[Any] = product(
        ["native", "prompt", "off"], ["verbatim", "hide"], [True, False], [True, False], Progress
    )
    for recover, residue, tools, structured, progress in cases:
        fate = gate.fate(recover, residue, tools=tools, structured=structured, progress=progress)
        waits = recover == "native" and tools and not structured and progress is Progress.OPEN
        assert (fate is Fate.UNDECIDED) == waits


def test_families_of_calls_are_looked_for_only_where_they_may_matter() -> None:
    assert all(family.reasoning for family in gate.read(FAMILIES, calls=False))
    assert gate.read(FAMILIES, calls=True) == FAMILIES


TOOL = {"name": "f", "input_schema": {"type": "object"}}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("members", "recovered"),
    [
        ({}, 0),
        ({"tools": [TOOL]}, 1),
        ({"tools": [TOOL], "tool_choice": {"type": "none"}}, 0),
        ({"tools": [TOOL], "tool_choice": {"type": "any"}}, 1),
        ({"tools": [{**TOOL, "name": "f" * 80}]}, 1),
    ],
)
def test_an_exchange_goes_by_the_tools_of_its_own_request(
    streamed: bool, members: dict[str, Any], recovered: int
) -> None:
    exchange = opened(streamed, **members)
    got = answered(exchange, stream(False))
    assert exchange.outcome.recovered == recovered
    assert got.message["stop_reason"] == ("tool_use" if recovered else "end_turn")


def test_a_tool_that_the_upstream_knows_by_another_name_is_called_by_the_clients() -> None:
    name = "f" * 80
    exchange = opened(True, tools=[{**TOOL, "name": name}], on=route(answers=AnswerOptions(recover="prompt")))
    (theirs,) = exchange.facts.tools
    raw = sse(text(f'<tool_call>{{"name": "{theirs}"}}</tool_call>'), finish(), DONE)
    assert [block["name"] for block in answered(exchange, raw).message["content"]] == [name]
    assert theirs != name


def test_ids_are_unique_over_turns() -> None:
    ids = []
    for _ in range(20):
        exchange = opened(True, tools=[TOOL], on=route(answers=AnswerOptions(recover="prompt")))
        raw = sse(text(f'{MARKUP}<tool_call id=\'call_0\'>{{"name":"f"}}</tool_call>'), finish(), DONE)
        ids += [block[2] for block in read(answered(exchange, raw).body).blocks]
    assert len(set(ids)) == len(ids) == 40
