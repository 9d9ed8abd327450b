"""stages.scrub: a call that was drafted in reasoning, and what the model went on to."""

import json

import pytest
from attrs import evolve

from pipeline.dialect import RequestFacts
from pipeline.events import MessageDelta, StopReason, TextDelta
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from tests.canonical import BOOM, CUT, LIMIT
from tests.markup_streams import chatted, messaged, responded, sse, told, whole
from tests.returning import returned
from tests.scrubbing import (
    CALL,
    HIDING,
    MARKUP,
    NATIVE,
    NATIVE_HIDING,
    PROMPT,
    F,
    at_every_cut,
    cuts,
    scrubbed,
)
from tests.scrubbing import TOOLS as OFFERED

STREAMS = {"messages": messaged, "chat": chatted, "responses": responded}
OPTIONS = (PROMPT, NATIVE, HIDING, NATIVE_HIDING)
WAYS = ("prompt", "native", "prompt-hiding", "native-hiding")
DRAFT = '<tool_call>{"name": "f", "arguments": {"x": 0}}</tool_call>'
DRAFTED = ("f", '{"x": 0}')
WEIGHED = f"<think>Draft: {DRAFT} No.</think>"
THOUGHT = [f"Draft: {DRAFT} No."]
V31 = '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
V31_DRAFT = '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 0}<｜tool▁call▁end｜>'
SPELLINGS = {"tag": MARKUP, "attributes": '<tool_call name="f">{"x": 1}</tool_call>', "DeepSeek": V31}


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_a_draft_is_a_thought_if_the_call_itself_follows(options: AnswerOptions, between: str) -> None:
    for markup in SPELLINGS.values():
        assert at_every_cut(f"{WEIGHED}{between}{markup}", options=options).content == [THOUGHT, F]
    other = f"<think>{V31_DRAFT}</think>{between}{V31}"
    assert at_every_cut(other, options=options).content == [[V31_DRAFT], F]


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
def test_so_are_those_of_several_thinkings(options: AnswerOptions) -> None:
    twice = f"{WEIGHED}\n<think>Or {DRAFT}</think>\n{MARKUP}"
    (thought, call) = at_every_cut(twice, options=options).content
    assert (thought, call) == ([f"{THOUGHT[0]}Or {DRAFT}"], F)
    assert at_every_cut(f"{WEIGHED}{MARKUP}{MARKUP}", options=options).content == [THOUGHT, F, F]


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
def test_a_call_in_reasoning_behind_the_answer_is_meant_if_nothing_follows_it(options: AnswerOptions) -> None:
    assert at_every_cut(f"{MARKUP}<think>{DRAFT}</think>", options=options).content == [F, DRAFTED]
    both = f"{WEIGHED}{MARKUP}<think>{DRAFT}</think>"
    assert at_every_cut(both, options=options).content == [THOUGHT, F, DRAFTED]
    assert at_every_cut(f"{WEIGHED}\n\n", options=options).content == [["Draft:"], DRAFTED, ["No."]]


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
@pytest.mark.parametrize(
    "broken",
    [
        "<tool_call>{}</tool_call>",
        '<tool_call>{"name": "f", "arguments": 1}</tool_call>',
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>[1]<｜tool▁call▁end｜>",
    ],
)
def test_a_call_behind_it_that_cannot_be_read_is_no_reason_to_make_the_draft(
    options: AnswerOptions, broken: str
) -> None:
    out = at_every_cut(f"{WEIGHED}\n{broken}", options=options)
    assert out.content == [THOUGHT]
    assert [action for action, _ in out.lost] == ["dropped"]


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
@pytest.mark.parametrize("begun", [MARKUP[:30], V31[:50]])
def test_nor_is_one_that_the_end_cuts(options: AnswerOptions, begun: str) -> None:
    shown = [] if options.unfinished == "hide" else [begun]
    assert at_every_cut(f"{WEIGHED}\n{begun}", options=options, end=LIMIT).content[:1] == [THOUGHT]
    assert [text.lstrip() for text in at_every_cut(f"{WEIGHED}\n{begun}", options=options).content[1:]] == shown


def test_an_answer_that_was_cut_behind_it_makes_no_draft() -> None:
    for options in OPTIONS:
        native = options.recover == "native"
        for end in (BOOM, CUT):
            out = at_every_cut(f"{WEIGHED}{MARKUP}", options=options, end=end)
            assert out.content == [THOUGHT, MARKUP if native else F]


def test_a_draft_waits_until_a_call_behind_it_is_whole() -> None:
    steps = scrubbed(WEIGHED, "\n<tool_", f"call>{CALL[:-1]}", "}", "</tool_call>").steps
    assert steps[3:5] == [[], []]
    assert len(steps[5]) > 4


def test_a_call_that_leaves_early_makes_a_thought_of_the_draft_as_soon_as_it_is_named() -> None:
    options = evolve(PROMPT, stream_calls=True)
    assert at_every_cut(f"{WEIGHED}\n{MARKUP}", options=options).content == [THOUGHT, F]
    steps = scrubbed(WEIGHED, "\n<tool_call>", CALL[:30], CALL[30:], options=options).steps
    assert steps[3] == []
    assert len(steps[4]) > 2


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=WAYS[:2])
def test_in_every_dialect_the_tool_runs_once_streamed_as_whole(name: str, options: AnswerOptions) -> None:
    written = f"{WEIGHED}\n\n{MARKUP}"
    stream = sse(*STREAMS[name]([("text", cuts(written, 7))]))
    body = json.dumps(whole(name, [("text", [written])])).encode()
    for raw, arriving in ((stream, Form.STREAM), (body, Form.WHOLE)):
        facts = RequestFacts(tools=OFFERED)
        out, outcome = returned(name, [raw], arriving=arriving, leaving=Form.WHOLE, facts=facts, options=options)
        assert outcome.recovered == 1
        said = told(name, json.loads(out))
        assert sorted(said) == sorted([("reasoning", "".join(THOUGHT[0].split())), ("call", "f{'x':1}")])


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
@pytest.mark.parametrize("closed", ["", "</think>"])
@pytest.mark.parametrize("reason", [StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW, StopReason.REFUSAL])
def test_nobody_knows_what_was_meant_of_an_answer_that_the_model_did_not_end(
    options: AnswerOptions, closed: str, reason: StopReason
) -> None:
    text = f"<think>I could {DRAFT} but no. Rather I{closed}"
    shown = f"I could {DRAFT} but no. Rather I"
    assert at_every_cut(text, options=options, end=MessageDelta(reason)).content == [[shown]]
    assert at_every_cut(text, options=options).content[1] == DRAFTED


@pytest.mark.parametrize("begun", [DRAFT, '<tool_call>{"name": "f", '])
def test_an_answer_behind_a_draft_does_not_wait_where_it_is_shown_in_any_case(begun: str) -> None:
    parts = [f"<think>I could {begun} no.</think>\n\n", "The", " answer", " is 4."]
    for options, waits in ((NATIVE, False), (PROMPT, False), (NATIVE_HIDING, True)):
        steps = scrubbed(*parts, options=options).steps
        assert [any(isinstance(event, TextDelta) for event in step) for step in steps[3:6]] == [not waits] * 3
