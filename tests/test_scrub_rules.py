"""The rules of the systems that this was modelled on, by their names: each kept, or answered better."""

import json
from typing import Any

import pytest
from attrs import evolve

from pipeline.dialect import dialect
from pipeline.errors import ErrorKind
from pipeline.events import ArgumentsDelta, BlockStart, StopReason
from pipeline.limits import Limits
from pipeline.message import ToolUse
from pipeline.testing import play
from stages.recipe import default_chain
from stages.scrub import TagScrubber
from stages.scrub.gate import Fate, Progress, fate
from stages.scrub.mend import mend
from tests.canonical import BEGIN, BOOM, CALL_A, END, REASONING, TEXT, TOOLS, args, start, stop, text, think
from tests.exchange import whole
from tests.scrubbing import (
    CALL,
    HIDING,
    MARKUP,
    NATIVE,
    PROMPT,
    F,
    Scrubbed,
    at_every_cut,
    cuts,
    said,
    scrubbed,
)
from tests.scrubbing import TOOLS as OFFERED
from tests.support import DONE, Run, finish, sse
from tests.support import text as chat_text

# P: the tag scanner


def test_p1_both_pairs_are_read() -> None:
    assert at_every_cut(f'<tool_call id="x">{CALL}</tool_call>').content == [F]
    assert at_every_cut(f"<｜tool▁call▁begin｜>{CALL}<｜tool▁call▁end｜>").content == [F]


def test_p3_the_earliest_opener_wins_and_one_that_opens_nothing_is_passed_over() -> None:
    late = f"<｜tool▁call▁begin｜>{CALL}<｜tool▁call▁end｜>"
    assert at_every_cut(f"{MARKUP}{late}").content == [F, F]
    assert at_every_cut(f"<tool_call is{late}{MARKUP}").content == ["<tool_call is", F, F]
    inside = json.dumps({"name": "f", "arguments": {"s": late}})
    assert at_every_cut(f"<tool_call>{inside}</tool_call>").content == [("f", json.dumps({"s": late}))]


def test_p6_a_body_is_an_object_with_a_name_and_arguments_by_several_names() -> None:
    for key in ("arguments", "parameters", "args", "input"):
        assert scrubbed(f'<tool_call>{{"name": " f ", "{key}": {{"x": 1}}}}</tool_call>').content == [F]
    assert scrubbed('<tool_call>{"name": "f"}</tool_call>').content == [("f", "{}")]
    assert scrubbed('<tool_call>{"name": ""}</tool_call>').content == []


def test_p7_ids_are_unique_and_never_the_tags_own() -> None:
    ids = [id for _ in range(3) for id in scrubbed(f'<tool_call id="call_0">{CALL}</tool_call>{MARKUP}').ids]  # noqa: A001
    assert len(set(ids)) == 6
    assert "call_0" not in ids


def test_p12_text_before_markup_leaves_at_once() -> None:
    scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
    assert play(scrubber, [BEGIN, start(0, TEXT)], text(0, "a <tool_call"))[1] == [start(0, TEXT), text(0, "a ")]


def test_p14_a_dangling_tag_is_passed_on_untrimmed() -> None:
    assert at_every_cut(f"{MARKUP} a <tool_call> ").content == [F, "a <tool_call> "]


def test_p15_reasoning_and_calls_of_the_upstreams_own_are_not_looked_into() -> None:
    events = [
        BEGIN,
        start(0, REASONING),
        think(0, MARKUP),
        stop(0),
        start(1, CALL_A),
        args(1, json.dumps({"s": MARKUP})),
    ]
    assert Scrubbed().give(*events, stop(1), TOOLS).content == [[MARKUP], ("get_a", json.dumps({"s": MARKUP}))]


def test_p16_what_is_held_leaves_before_the_end_is_told() -> None:
    assert Scrubbed().give(*said("a <tool")).steps[-2][-1] is END


@pytest.mark.parametrize(
    ("native", "tools", "structured", "recovered"),
    [
        (False, True, False, True),
        (False, True, True, True),
        (True, True, False, True),
        (True, True, True, False),
        (True, False, False, False),
        (False, False, False, False),
    ],
)
def test_p17_when_calls_are_recovered(native: bool, tools: bool, structured: bool, recovered: bool) -> None:
    told = fate(
        "native" if native else "prompt", "verbatim", tools=tools, structured=structured, progress=Progress.OVER
    )
    assert (told is Fate.CALL) == recovered


def test_p18_without_tools_and_with_calls_of_its_own_the_text_is_as_it_was() -> None:
    assert scrubbed(MARKUP, tools={}).content == [MARKUP]
    own = [BEGIN, start(0, TEXT), text(0, MARKUP), stop(0), start(1, CALL_A), args(1, "{}"), stop(1), TOOLS]
    assert Scrubbed(NATIVE).give(*own).events == own


def test_p19_of_two_openers_the_first_is_text_if_no_tag_is_closed_there() -> None:
    out = at_every_cut(f"use <tool_call or <tool_call id=1>{CALL}</tool_call> ok")
    assert out.content == ["use <tool_call or ", F, " ok"]


def test_p20_the_scrubbers_own_tests() -> None:
    assert scrubbed("plain").content == ["plain"]
    assert scrubbed("value <tool").steps[2][1:] == [text(0, "value ")]
    assert at_every_cut(f"a<tool_call id='1'>{CALL}</tool_call>b").content == ["a", F, "b"]
    assert scrubbed("<tool_calls").steps[2][1:] == [text(0, "<tool_calls")]
    out = Scrubbed().give(*said(*cuts(f"Sure, looking that up. {MARKUP}done", 3)))
    assert "".join(out.deltas) == "Sure, looking that up. done"
    assert out.content == ["Sure, looking that up. ", F, "done"]


# J: relaxed JSON


@pytest.mark.parametrize(
    ("text_", "value"),
    [
        ('{a: <|"|>b<|"|>, c: <|"|>d<|">}', {"a": "b", "c": "d"}),  # J1
        ("{{{a: {b: 1}}}}", {"a": {"b": 1}}),  # J2
        ("{'a': 1, b.c-d: 2, \"e': 3, 'f\": 4}", {"a": 1, "b.c-d": 2, "e": 3, "f": 4}),  # J3
        ('{"it\'s": ["a: b", {"c": "{d}"}]}', {"it's": ["a: b", {"c": "{d}"}]}),  # J6
    ],
)
def test_j1_to_j3_what_is_mended(text_: str, value: Any) -> None:
    assert mend(text_, depth=200) == value
    assert scrubbed(f'<tool_call>{{name: "f", arguments: {text_}}}</tool_call>').content == [
        ("f", json.dumps(value, separators=(",", ":")))
    ]


@pytest.mark.parametrize("text_", ["{{a: 1}, {b: 2}}", "3", "garbage", "{{1}}"])
def test_j6_what_is_not(text_: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        mend(text_, depth=200)


def test_j5_no_arguments_are_an_empty_object_and_markers_in_a_string_stay() -> None:
    assert scrubbed('<tool_call>{"name": "f", "arguments": ""}</tool_call>').content == [("f", "{}")]
    kept = '{"s": "<tool_call> </tool_call> <|tool_call|>"}'
    assert at_every_cut(f'<tool_call>{{"name": "f", "arguments": {kept}}}</tool_call>').content == [("f", kept)]


# K: reasoning tags


def test_k3_look_alikes_and_lone_angles_are_released() -> None:
    for whole_ in ("a <thinker> b", "a < b", "<", "a <thin"):
        assert at_every_cut(whole_).content == [whole_]
    assert scrubbed("a <think", "er").steps[3][0] == text(0, "<think")
    assert at_every_cut("<think>a</thin b</think>c").content == [["a</thin b"], "c"]


def test_k4_unclosed_reasoning_is_reasoning_and_text_without_any_is_as_it_was() -> None:
    assert at_every_cut("<think>a b").content == [["a b"]]
    assert at_every_cut("a", options=evolve(PROMPT, reasoning_open=True)).content == [["a"]]
    assert at_every_cut(" a \n").content == [" a \n"]


def test_k5_reasoning_of_the_upstreams_own_leads_and_that_in_tags_follows_unsigned() -> None:
    events = [BEGIN, start(0, REASONING), think(0, "a"), stop(0), start(1, TEXT), text(1, "<think>b</think>c"), stop(1)]
    assert Scrubbed().give(*events, END).content == [["a"], ["b"], "c"]


def test_k6_several_sections() -> None:
    assert at_every_cut("<think>a</think>b\n<think>c</think>d").content == [["a"], "b\n", ["c"], "d"]


# W: weaknesses, answered


def test_w20_a_nameless_body_leaves_no_trace_in_the_deltas_or_in_the_whole() -> None:
    out = at_every_cut('a <tool_call>{"arguments": {}}</tool_call>')
    assert out.content == ["a "]
    assert out.lost == [("dropped", "the markup of a call names no tool")]


def test_w21_an_example_in_code_is_no_call() -> None:
    assert at_every_cut(f"```\n{MARKUP}\n```\n`{MARKUP}`").content == [f"```\n{MARKUP}\n```\n`{MARKUP}`"]


def test_w22_an_answer_in_json_is_no_call() -> None:
    for answer in ('{"name": "Alice", "age": 3}', '[{"name": "f", "arguments": {}}]', f"```json\n{CALL}\n```"):
        assert at_every_cut(answer).content == [answer]


def test_w23_deepseeks_real_form_is_read_and_its_outer_tokens_go() -> None:
    call = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"x": 1}\n```<｜tool▁call▁end｜>'
    assert at_every_cut(f"a<｜tool▁calls▁begin｜>{call}<｜tool▁calls▁end｜>").content == ["a", F]


def test_w24_a_closer_in_a_string_closes_nothing() -> None:
    arguments = '{"s": "say </tool_call> here"}'
    assert at_every_cut(f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>').content == [
        ("f", arguments)
    ]


def test_w25_an_angle_in_an_attribute_ends_no_tag() -> None:
    assert at_every_cut(f'<tool_call note="a > b">{CALL}</tool_call>').content == [F]


def test_w26_prose_stalls_nothing() -> None:
    whole_ = "The tag <tool_call is used when x > 3."
    steps = Scrubbed().give(*said(whole_, " And more.")).steps
    assert steps[2][1:] == [text(0, whole_)]
    limits = Limits(held_bytes=100)
    stalled = scrubbed("a <tool_call>{", *["x" * 30] * 9, limits=limits)
    assert stalled.content == ["a <tool_call>{" + "x" * 270]
    assert stalled.most <= 100


def test_w27_mixed_pairs_close_and_a_body_without_its_closer_is_a_call() -> None:
    for markup in (
        f"<｜tool▁call▁begin｜>{CALL}</tool_call>",
        f"<tool_call|>{CALL}<tool_call|>",
        f"<|tool_call|>{CALL}<tool_call|>",
        f"<TOOL_CALL>{CALL}</TOOL_CALL>",
        f"<tool_call>{CALL}",
    ):
        assert at_every_cut(markup).content == [F]
    assert at_every_cut("a <tool_call/> b").content == ["a  b"]


def test_w28_there_is_one_parser_for_streams_and_whole_answers() -> None:
    streamed, at_once = Run(), Run()
    options = evolve(NATIVE, recover="prompt")
    out = []
    for run, raw in ((streamed, sse(chat_text(MARKUP), finish(), DONE)), (at_once, whole(content=MARKUP))):
        facts = evolve(dialect("messages").facts({}), tools=OFFERED)
        run.chain = default_chain(dialect("chat"), dialect("messages"), arriving=None, facts=facts, options=options)
        out.append(run.all([raw]).count(b'"name":"f"'))
    assert out == [1, 1]


def test_w29_a_recovered_call_is_a_block_with_its_arguments_and_the_stop_reason_says_so() -> None:
    out = scrubbed(MARKUP)
    assert [type(event) for event in out.events[1:3]] == [BlockStart, ArgumentsDelta]
    assert isinstance(out.message.content[0], ToolUse)
    assert out.message.stop_reason is StopReason.TOOL_USE
    assert out.outcome.recovered == 1


def test_w31_a_cut_is_no_success() -> None:
    run = Run()
    run.all([sse(chat_text(f"a {MARKUP}"))])
    assert run.outcome.error is not None
    assert run.outcome.error.kind is ErrorKind.CUT


def test_w32_a_failure_loses_nothing_that_was_held_and_nothing_overtakes_it() -> None:
    assert Scrubbed().give(BEGIN, start(0, TEXT), text(0, "a <tool"), stop(0), BOOM).content == ["a <tool"]
    events = [BEGIN, start(0, TEXT), text(0, "a <tool"), stop(0), start(1, CALL_A), args(1, "{}"), stop(1), TOOLS]
    assert Scrubbed().give(*events).content == ["a <tool", ("get_a", "{}")]


def test_w33_deltas_and_the_whole_say_the_same() -> None:
    for options in (NATIVE, HIDING):
        own = [start(1, CALL_A), args(1, "{}"), stop(1), TOOLS]
        out = Scrubbed(options).give(BEGIN, start(0, TEXT), text(0, f"a {MARKUP} b"), stop(0), *own)
        assert "".join(out.deltas) == "".join(part for part in out.content if isinstance(part, str))


def test_w34_a_tail_that_looks_like_a_tag_is_not_lost() -> None:
    for tail in ("<", "<th", "</thi", "<think"):
        assert at_every_cut(f"a {tail}").content == [f"a {tail}"]
    assert at_every_cut("<think>a</think>b <").content == [["a"], "b <"]


def test_w35_odd_reasoning_tags() -> None:
    assert at_every_cut("a.</think>b", options=HIDING).content == ["a.b"]
    assert at_every_cut("a.</think>b").content == ["a.</think>b"]
    assert at_every_cut("<think foo='x'>a</think>b").content == [["a"], "b"]
    assert at_every_cut("<thinking>a</thinking>b").content == [["a"], "b"]
    assert at_every_cut("`<think>` and\n```\n<think>\n```\n").content == ["`<think>` and\n```\n<think>\n```\n"]
    assert at_every_cut("<THINK>a</THINK>").content == ["<THINK>a</THINK>"]


def test_a_name_that_is_not_offered_makes_a_call_all_the_same() -> None:
    assert scrubbed('<tool_call>{"name": "other"}</tool_call>').content == [("other", "{}")]
