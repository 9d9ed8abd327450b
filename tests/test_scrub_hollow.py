"""stages.scrub: bodies that say little, or lack their end: in a fence, without members, with nothing but a bracket."""

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from pipeline.route import AnswerOptions
from tests.canonical import BEGIN, CALL_A, TEXT, TOOLS, args, start, stop, text
from tests.scrubbing import CALL, MARKUP, NATIVE, NATIVE_HIDING, PROMPT, F, Scrubbed, at_every_cut, cuts

CALL_BEGIN, SEP, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
MENDED = [("mended", "the JSON of a call")]
FORMS = {
    "attributes": '<tool_call name="f">{}</tool_call>',
    "V3.1": f"{SECTION}{CALL_BEGIN}f{SEP}{{}}{CALL_END}{SECTION_END}",
    "V3": f"{SECTION}{CALL_BEGIN}function{SEP}f\n```json\n{{}}\n```{CALL_END}{SECTION_END}",
    "below": f"{CALL_BEGIN}f\n{{}}{CALL_END}",
}


def form(name: str, body: str) -> str:
    """A call that names its tool outside of its body."""
    before, _, behind = FORMS[name].partition("{}")
    return before + body + behind


@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=["prompt", "native"])
@pytest.mark.parametrize("name", FORMS)
def test_arguments_without_members_are_an_empty_object(name: str, options: AnswerOptions) -> None:
    for body in ("{{}}", "{/* none */}", "{\n// no args\n}"):
        out = at_every_cut(form(name, body), options=options)
        assert (out.content, out.lost) == ([("f", "{}")], MENDED)
    for body in ("{}", "{ \n }"):
        out = at_every_cut(form(name, body), options=options)
        assert (out.content, out.lost) == ([("f", body)], [])


@pytest.mark.parametrize("name", ["attributes", "V3.1", "V3"])
def test_they_are_no_input_of_a_freeform_tool(name: str) -> None:
    for body in ("{{}}", "{/* none */}", "{}"):
        assert at_every_cut(form(name, body), freeform=("f",)).content == [("f", "")]


FENCED = {
    "V3": (f"{CALL_BEGIN}function{SEP}f\n```json\n", f"```{CALL_END}"),
    "tildes": (f"{CALL_BEGIN}function{SEP}f\n~~~~json\n", f"~~~~{CALL_END}{SECTION_END}"),
    "section": (f"{SECTION}{CALL_BEGIN}f{SEP}```\n", f"```{CALL_END}{SECTION_END}"),
    "attributes": ('<tool_call name="f">\n```json\n', "```\n</tool_call>"),
}
EARLY = evolve(PROMPT, stream_calls=True)


@pytest.mark.parametrize("options", [PROMPT, NATIVE, EARLY], ids=["prompt", "native", "early"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("name", FENCED)
def test_a_last_bracket_may_be_missing_in_a_fence(name: str, end: str, options: AnswerOptions) -> None:
    before, behind = FENCED[name]
    for body in ('{"x": {"y": 1}', f'{{"x": "{CALL_END}"', '{"x": "</tool_call>"', '{"x": "```"', "{'x': [1, 2]"):
        out = at_every_cut(f"{before}{body}{end}{behind}", options=options)
        ((called, arguments),) = out.content
        assert (called, arguments.count("}"), out.lost) == ("f", body.count("}") + 1, MENDED)
    broken = at_every_cut(f'{before}{{"x": {{"y": {{"z": 1{end}{behind}', options=PROMPT)
    assert (broken.content, [action for action, _ in broken.lost]) == ([], ["dropped"])


@pytest.mark.parametrize("options", [PROMPT, NATIVE, EARLY], ids=["prompt", "native", "early"])
def test_so_it_may_of_what_says_its_call_itself(options: AnswerOptions) -> None:
    for fenced in (
        f"```json\n{CALL[:-1]}\n```",
        f"```\n{CALL}\n{CALL[:-1]}\n```",
        f"```\n{CALL}\n```\n```\n{CALL[:-1]}```",
    ):
        content = at_every_cut(f"<tool_call>\n{fenced}\n</tool_call>b", options=options).content
        assert content[:-2] == [F] * (fenced.count("name") - 1)
        assert [part[0] for part in content[-2:]] == ["f", "b"]


@pytest.mark.parametrize("options", [PROMPT, NATIVE, NATIVE_HIDING], ids=["prompt", "native", "hiding"])
@pytest.mark.parametrize(
    "markup",
    [
        '<tool_call name="f">{</tool_call>',
        '<tool_call name="f">\n{\n</tool_call>',
        "<tool_call>[</tool_call>",
        "<tool_call>{</tool_call>",
        "<tool_call>\n```json\n{</tool_call>",
        f"{CALL_BEGIN}f{SEP}{{{CALL_END}",
        f"{CALL_BEGIN}{{{CALL_END}",
        f"{SECTION}{CALL_BEGIN}[\n{CALL_END}{SECTION_END}",
    ],
)
def test_a_bracket_alone_makes_no_call_and_is_not_shown(markup: str, options: AnswerOptions) -> None:
    out = at_every_cut(f"a{markup}b", options=options)
    assert (out.content, [action for action, _ in out.lost]) == (["ab"], ["dropped"])


@pytest.mark.parametrize("options", [PROMPT, NATIVE], ids=["prompt", "native"])
@pytest.mark.parametrize("token", ["<|im_end|>", "<|endoftext|>", "<｜end▁of▁sentence｜>"])
def test_the_end_of_a_turn_closes_nothing_that_prose_speaks_of(token: str, options: AnswerOptions) -> None:
    prose = "I will use a <tool_call> tag. "
    assert at_every_cut(f"{prose}{MARKUP}{token}", options=options).content == [prose, F]
    both = f"{prose}Then {token} comes. A </tool_call> closes it."
    assert at_every_cut(both, options=options).content == [both]


@pytest.mark.parametrize("at", [10, 30, 38])
def test_a_fence_in_markup_that_is_text_ends_in_it(at: int) -> None:
    def content(parts: Sequence[str], behind: Sequence[str]) -> list[Any]:
        own = [start(1, CALL_A), args(1, "{}"), stop(1)]
        first = [start(0, TEXT), *(text(0, part) for part in parts), stop(0)]
        rest = [start(2, TEXT), *(text(2, part) for part in behind), stop(2)] if behind else []
        return Scrubbed(NATIVE).give(BEGIN, *first, *own, *rest, TOOLS).content

    written = f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>\n<thinking>hm</thinking>b"
    assert content([written], [])[-3:-1] == [["hm"], "b"]
    for size in (1, 7, 100):
        assert content([written[:at]], cuts(written[at:], size))[-2:] == [["hm"], "b"]
