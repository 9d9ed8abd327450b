"""stages.scrub.fence: a code fence round a body is markup, and words in it are recorded, or stay text."""

from typing import Any

import pytest
from attrs import evolve

from stages.scrub.calls import LEFT
from stages.scrub.fence import Fence, fence, unfenced
from stages.scrub.grammar import Refused
from tests.scrubbing import CALL, HIDING, MARKUP, PROMPT, F, at_every_cut, at_every_size

EARLY = evolve(PROMPT, stream_calls=True)
BESIDE = ("dropped", LEFT.reason)
MENDED = ("mended", "the JSON of a call")
DEEP = "<｜tool▁call▁begin｜>"
NAMED = f"{DEEP}f<｜tool▁sep｜>"
ENDED = "<｜tool▁call▁end｜>"


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("```json\n {x", Fence("```"), "\n {x"),
        ("```\n{", Fence("```"), "\n{"),
        ("``` {", Fence("```"), "{"),
        ("```", Fence("```"), ""),
        ("````JSON \r\n[", Fence("````"), "\n["),
        ("~~~json\n{", Fence("~~~"), "\n{"),
        ("~~~~ tool_call{", Fence("~~~~"), "{"),
        ("```c++\n{", Fence("```", left=True), "\n{"),
        ("```json title=a.json\n{", Fence("```", left=True), "\n{"),
        ("```word{", Fence("```", left=True), "{"),
        ("```word [", Fence("```", left=True), "["),
        ("```two words {", Refused, ""),
        ("```a`b\n{", Refused, ""),
        (f"```{'a' * 257}\n", Refused, ""),
        ("``{", Refused, ""),
        ("~~`{", Refused, ""),
        ("x", Refused, ""),
    ],
)
def test_a_fence_is_taken_with_its_line(text: str, given: Any, left: str) -> None:
    assert at_every_size(fence, text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("\n```x", True, "x"),
        ("``````x", True, "x"),
        (f"{'`' * 600}x", True, "x"),
        ("``x", False, "``x"),
        ("\n~~~", False, "\n~~~"),
        ("", False, ""),
    ],
)
def test_a_fence_ends_with_its_marks_or_more_of_them(text: str, given: Any, left: str) -> None:
    assert at_every_size(Fence("```").close, text) == (given, left)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("```json\nls -l\n```", "ls -l"),
        ("\n```\nls -l```\n", "ls -l"),
        ("~~~sh\n```\n~~~", "```"),
        ("```\n```", ""),
        ("```\n\n a\n\n```", "\n a\n"),
        ("```ls```", "```ls```"),
        ("```sh\nls", "```sh\nls"),
        ("\r\n a \n", " a "),
        ("", ""),
    ],
)
def test_what_stands_in_a_fence(text: str, given: str) -> None:
    assert unfenced(text) == given


FRAMES = {
    "```json\n{}\n```": False,
    "```{}```": False,
    "````json\n{}\n````": False,
    "~~~JSON\r\n{}\r\n~~~": False,
    "```tool_call\n{}\n```": False,
    "```c++\n{}\n```": True,
    "``` word {}\n```": True,
    "```json title=a\n{}\n```": True,
}
"""Fences round a body, and whether their line says what is recorded."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("frame", FRAMES)
def test_what_the_line_of_a_fence_says_beside_the_language_is_recorded(frame: str, options: Any) -> None:
    for opener, body, closer in (
        ("<tool_call>\n", CALL, "\n</tool_call>"),
        ("<tool_call name=f>", '{"x": 1}', "</tool_call>"),
        (DEEP, CALL, ENDED),
        (NAMED, '{"x": 1}', ENDED),
        (f"{DEEP}function<｜tool▁sep｜>f\n", '{"x": 1}', ENDED),
    ):
        out = at_every_cut(f"a {opener}{frame.replace('{}', body)}{closer} b", options=options)
        assert out.content == ["a ", F, " b"]
        assert out.lost == ([BESIDE] if FRAMES[frame] else [])


def test_what_the_line_of_a_fence_says_is_recorded_once() -> None:
    out = at_every_cut(f"<tool_call>```word\n[{CALL}, {CALL}]```</tool_call>")
    assert (out.content, out.lost) == ([F, F], [BESIDE])


AFTER = {
    "\nNote: done\n": BESIDE,
    ', "n": 3}\n': BESIDE,
    '\n, "n": "} ``"}, [\n': BESIDE,
    "\nUse <tool_call to call\n": BESIDE,
    "}\n": MENDED,
    "\n": None,
}
"""What stands between a body and the end of its fence, and what is recorded of it."""


@pytest.mark.parametrize("options", [PROMPT, HIDING, EARLY])
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("marks", ["```", "~~~~", ""])
def test_what_stands_between_a_body_and_the_end_of_its_fence_is_recorded(after: str, marks: str, options: Any) -> None:
    for opener, body, closer in (
        ("<tool_call>\n", CALL, "\n</tool_call>"),
        ("<tool_call name=f>", '{"x": 1}', "</tool_call>"),
        (DEEP, CALL, ENDED),
        (f"{DEEP}function<｜tool▁sep｜>f\n", '{"x": 1}', ENDED),
    ):
        whole = f"{opener}{marks or '```'}json\n{body}{after}{marks}{closer}"
        out = at_every_cut(f"{whole}\n{MARKUP} b", options=options)
        assert out.content == [F, F, "b"]
        assert out.lost == ([AFTER[after]] if AFTER[after] else [])


def test_as_much_may_stand_between_a_body_and_the_end_of_its_fence_as_a_line_may_be_long() -> None:
    out = at_every_cut(f"<tool_call>```json\n{CALL}\n{'a' * 1000}\n```</tool_call>b")
    assert (out.content, out.lost) == ([F, "b"], [BESIDE])


@pytest.mark.parametrize(
    "after", ["\nSo:\n```sh\nls\n```\n", f"\n{'a' * 1100}", "\nand so on", " and\n<tool_call>x\n```sh\n```\n"]
)
def test_what_stands_behind_a_body_whose_fence_never_ends_is_the_readers(after: str) -> None:
    for opener, body in (("<tool_call>", CALL), (NAMED, '{"x": 1}')):
        out = at_every_cut(f"{opener}```json\n{body}{after}")
        assert (out.content, out.lost) == ([F, after.lstrip()], [])
    other = f"<tool_call>```json\n{CALL}\nand\n{MARKUP}\n```"
    assert [one for one in at_every_cut(other).content if isinstance(one, tuple)] == [F, F]


def test_another_body_may_stand_in_a_fence_or_behind_it() -> None:
    for between in ("\n", ", ", "\n```\n", " and\nso on\n```\n"):
        out = at_every_cut(f"<tool_call>```json\n{CALL}{between}{CALL}\n```</tool_call>b")
        assert (out.content, out.lost) == ([F, F, "b"], [BESIDE] if "and" in between else [])


@pytest.mark.parametrize("prose", ["```two words {}", "```a`b\n{}", "``{}"])
def test_prose_in_front_of_a_body_is_text_with_all_that_follows(prose: str) -> None:
    whole = f"<tool_call>{prose.replace('{}', CALL)}"
    assert at_every_cut(whole).content == [whole]


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("opener", ["<tool_call>", NAMED])
def test_a_word_behind_the_marks_that_end_a_fence_is_text(opener: str, options: Any) -> None:
    body = '{"x": 1}' if opener == NAMED else CALL
    out = at_every_cut(f"{opener}```json\n{body}\n```word and more", options=options)
    assert (out.content, out.lost) == ([F, "word and more"], [])


@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_the_words_of_a_comment_between_a_body_and_its_closer_are_recorded(options: Any) -> None:
    for opener, body, closer in (("<tool_call>", CALL, "</tool_call>"), (NAMED, '{"x": 1}', ENDED)):
        for comment, said in ((" // done\n", True), ("/* done */", True), (" //\n", False), ("/**/}", False)):
            out = at_every_cut(f"{opener}{body}{comment}{closer}b", options=options)
            assert out.content == [F, "b"]
            mended = [("mended", "the JSON of a call")] if "}" in comment else []
            assert out.lost == ([BESIDE] if said else mended)
    out = at_every_cut(f"<tool_call>{CALL} // and\n{CALL}</tool_call>", options=options)
    assert (out.content, out.lost) == ([F, F], [BESIDE])
