"""stages.scrub: markup that was begun in reasoning and not finished ends with it: what follows is the answer."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.limits import Limits
from pipeline.route import AnswerOptions
from tests.scrubbing import HIDING, MARKUP, NATIVE, NATIVE_HIDING, PROMPT, F, at_every_cut, calls_made, cuts, scrubbed

OPTIONS = (PROMPT, NATIVE, HIDING, NATIVE_HIDING)
WAYS = ("prompt", "native", "prompt-hiding", "native-hiding")
C, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"
ANSWER = "The answer is 4."
BEGUN = [
    '<tool_call>\n{"name": "f", "arguments": {"x',
    '<tool_call>{"name": "f", "arguments": {"x": 1, "y": "and so on.',
    '<tool_call>{"name": "f", "arguments": ... and so on.',
    '<tool_call>\n{"name": "f", "arguments": {"x": 1}',
    '<tool_call>\n```json\n{"name": "f", "arguments": {"x": 1}',
    '<tool_call>[{"name": "f"}',
    "<tool_call>{'name': 'f', 'arguments': {'x",
    '<tool_call>{"name": "f", // as he said',
    '<tool_call>{"name": "f" "x", "y',
    '<tool_call name="f">{"x": 1',
    '<tool_call name="f">',
    "<tool_call>",
    f'{C}f{SEP}{{"x": 1',
    f'{C}f{SEP}{{"x": "a',
    f"{C}f{SEP}",
    f"{C}f",
    f'{C}function{SEP}f\n```json\n{{"x": [1',
    f'<｜tool▁calls▁begin｜>{C}f{SEP}{{"x": {{',
    "<｜tool▁calls▁begin｜>",
]


@pytest.mark.parametrize("options", OPTIONS, ids=WAYS)
@pytest.mark.parametrize("begun", BEGUN)
def test_the_answer_is_text_whatever_was_begun_in_reasoning(begun: str, options: AnswerOptions) -> None:
    assert at_every_cut(f"<think>I see {begun}\n</think>\n\n{ANSWER}", options=options).content == [
        [f"I see {begun}"],
        ANSWER,
    ]
    opened = evolve(options, reasoning_open=True)
    assert scrubbed(f"I see {begun}\n</thinking>{ANSWER}", options=opened).content == [[f"I see {begun}"], ANSWER]


@pytest.mark.parametrize("begun", BEGUN)
def test_the_answer_comes_as_it_is_written(begun: str) -> None:
    steps = scrubbed(f"<think>{begun}\n</think>\n", "\nThe", " answer", " is 4.").steps
    assert [len(step) for step in steps[4:6]] == [1, 1]


@pytest.mark.parametrize("freeform", [(), ("f",)])
def test_free_text_that_was_begun_in_it_ends_with_it_too(freeform: Any) -> None:
    for begun in ('<tool_call name="f">ls -l', f"{C}f{SEP}ls -l"):
        out = at_every_cut(f"<think>{begun}\n</think>{ANSWER}", freeform=freeform)
        assert out.content == [[begun], ANSWER]


@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=WAYS[:2])
def test_what_ends_reasoning_is_a_strings_where_that_closes(options: AnswerOptions) -> None:
    said = '{"x": "</think>", "y": "a\\"</think>\\\\"}'
    for markup in (
        f'<tool_call>{{"name": "f", "arguments": {said}}}</tool_call>',
        f"{C}f{SEP}{said}<｜tool▁call▁end｜>",
    ):
        assert at_every_cut(f"<think>a {markup}</think>", options=options).content == [["a"], ("f", said)]
        assert at_every_cut(f"<think>a {markup}</think>b", options=options).content == [[f"a {markup}"], "b"]


@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=WAYS[:2])
def test_it_is_none_where_that_does_not_close_or_is_no_strict_one(options: AnswerOptions) -> None:
    begun = '<tool_call>{"name": "f", "arguments": {"x'
    for answer in (ANSWER, 'He said "hi".', 'a\n"b": "c"}}', "a\\", "<", "</think"):
        assert at_every_cut(f"<think>{begun}</think>{answer}", options=options).content == [[begun], answer]
    lines = '<tool_call>{"name": "f", "arguments": {"x": "a\nb"}}</tool_call>'
    assert at_every_cut(f"<think>{lines}</think>", options=options).content == [("f", '{"x":"a\\nb"}')]
    assert at_every_cut(f"<think>{lines[:-20]}</think>c", options=options).content == [[lines[:-20]], "c"]


@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=WAYS[:2])
def test_a_call_that_lacks_its_last_bracket_is_one_if_nothing_follows(options: AnswerOptions) -> None:
    begun = '<tool_call>\n{"name": "f", "arguments": {"x": 1}'
    out = at_every_cut(f"<think>a {begun}\n</think>\n", options=options)
    assert (out.content, out.lost) == ([["a"], ("f", '{"x":1}')], [("mended", "the JSON of a call")])
    assert at_every_cut(f"<think>a {begun}\n</think>\n{MARKUP}", options=options).content == [[f"a {begun}"], F]
    cut = at_every_cut(f"<think>a {begun[:-1]}\n</think>\n", options=options)
    assert cut.content == [["a"]]
    assert [action for action, _ in cut.lost] == ["dropped"]
    named = at_every_cut(f'<think>a {C}f{SEP}{{"x": {{}}</think>', options=options)
    assert (named.content, named.lost) == ([["a"]], [("dropped", "a call broke off where other markup begins")])


def test_outside_of_reasoning_it_ends_nothing() -> None:
    said = '{"x": "a\\n</think>", "y": 1}'
    markup = f'<tool_call>{{"name": "f", "arguments": {said}}}</tool_call>'
    assert at_every_cut(f"<think>a</think>{markup}").content == [["a"], ("f", said)]


def test_markup_that_grows_beyond_the_bound_in_reasoning_ends_with_it_all_the_same() -> None:
    begun = f'<tool_call>{{"name": "f", "arguments": {{"s": "{"é" * 60}'
    whole = f"<think>{begun}</think>{'b' * 300}"
    for size in (10, 17, 1000):
        out = scrubbed(*cuts(whole, size), limits=Limits(held_bytes=200))
        assert out.content == [[begun], "b" * 300]
        assert out.most <= 200 or size == 1000


def test_the_work_is_linear_in_what_is_drafted() -> None:
    def work(count: int) -> int:
        said = ", ".join(f'"k{at}": "a < b\\n </think> c"' for at in range(count))
        whole = f'<think><tool_call>{{"name": "f", "arguments": {{{said}}}}}</tool_call></think>'
        return calls_made(lambda: scrubbed(*cuts(whole, 4)))

    assert work(400) < 2.3 * work(200)
