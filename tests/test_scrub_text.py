"""stages.scrub.scanner, openers, code: plain text passes at once, and quoted markup is text."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.events import Event, TextDelta
from pipeline.testing import play
from stages.scrub import TagScrubber
from stages.scrub.code import Code
from stages.scrub.families import FAMILIES
from stages.scrub.openers import openers
from stages.scrub.scanner import Kind, Scanner
from tests.canonical import BEGIN, CALL_A, REASONING, TEXT, args, start, stop, text, think
from tests.scrubbing import (
    CALL,
    HIDING,
    MARKUP,
    NATIVE,
    NATIVE_HIDING,
    PROMPT,
    SIZES,
    TOOLS,
    Scrubbed,
    calls_made,
    cuts,
    said,
)

ENGLISH = (
    'A weir holds a river back just enough to make it orderly. That is its job; "no more", they\'d say - or less!\n\n'
    "It isn't a dam: what arrives leaves (sooner or later), and in order.\n * one\n * two, `code`, and [a link](url)\n"
)
CODE = (
    "```cpp\ntemplate <typename T, typename tool_t> std::vector<T> f(const std::map<int, T>& m) {\n"
    "  if (a < b && c << 2 > d) { return {}; }\n}\n```\n"
    "    for (tool of tools) { x = x <<< 1; } // <t> <tool> <think_about> <to\n"
    "def f(x): return [y for y in x if y <= 3] or {'a': {1: 2}}\n$ cat <<EOF > out.txt | grep '<' 2>&1\n~~~\n"
)
HTML = (
    "<!DOCTYPE html><html><head><title>t</title></head><body class='tool'><table><thead><tr><th>a</th></tr></thead>"
    "<tbody><tr><td>1</td></tr></tbody></table><textarea></textarea><template/><tt>x</tt><details>y</details>"
    '<input type="text" value="<"/><br/><!-- <t --></body></html>\n'
)
MATHS = "1 < 2 <= 3 << 4; $a<b$, {x | x < t}, \\(\\langle x\\rangle\\), a<t<b, <x|y>, |x|<|y|, <|x|>, ∀t<▁, 2<｜3\n"
PLAIN = {"English": ENGLISH, "code": CODE, "HTML": HTML, "mathematics": MATHS}


@pytest.mark.parametrize("options", [PROMPT, HIDING, NATIVE, NATIVE_HIDING])
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("size", [*SIZES, 1000])
def test_of_plain_text_at_most_64_characters_are_ever_held(kind: str, size: int, options: Any) -> None:
    whole = PLAIN[kind]
    out = Scrubbed(options).give(*said(*cuts(whole, size)))
    assert out.content == [whole]
    assert out.most <= 64
    came = shown = 0
    for part, step in zip(cuts(whole, size), out.steps[2:], strict=False):
        came += len(part)
        shown += sum(len(event.text) for event in step if isinstance(event, TextDelta))
        assert came - shown <= 64


@pytest.mark.parametrize("words", [ENGLISH, "1 + 1 = 2 & so on; x > y", "emoji 🌧️ and ◁ and [ and ]", "a\n  b\n\n"])
def test_text_without_the_beginning_of_markup_leaves_in_the_read_that_brought_it(words: str) -> None:
    scrubber = TagScrubber(options=PROMPT, tools=TOOLS)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, "x")])
    for size in SIZES:
        for part in cuts(words, size):
            event = text(0, part)
            (out,) = play(scrubber, event)
            assert "".join(one.text for one in out if isinstance(one, TextDelta)) == part
            assert len(out) > 1 or out[0] is event
    assert scrubber.held == 0


def test_no_more_is_held_than_may_become_markup() -> None:
    for whole, held in {
        "a <": "<",
        "a <tool_c": "<tool_c",
        "a <tool_cx": "",
        "a <table": "",
        "a < ": "",
        "a <<": "<",
        "a <tool_<tool_": "<tool_",
        "a <tool_call> ": "<tool_call> ",
        "a <tool_call> t": "",
        "a <tool_call ": "<tool_call ",
        "a <tool_call or": "<tool_call or",
        "a <tool_call or ": "<tool_call or ",
        "a <tool_call or x": "",
        "a <tool_calls": "",
        "a </tool_call": "</tool_call",
        "a ```": "",
        "a `<think>": "",
        "a <｜tool▁": "<｜tool▁",
        "a <think>": "<think>",
        "a <think> ": "",
    }.items():
        for size in (1, 100):
            scanner = Scanner(FAMILIES, tools=TOOLS)
            told = [piece for part in cuts(whole, size) for piece in scanner.feed(part)]
            assert "".join(piece.raw for piece in told) == whole.removesuffix(held), whole
            assert {piece.kind for piece in told} == {Kind.TEXT}
            assert scanner.held == len(held.encode())
            assert "".join(piece.raw for piece in scanner.close()) == held


@given(st.text(st.sampled_from("<>|/{}[]\"'`~ \ntoolcalhink_｜▁:,\\"), max_size=60), st.integers(1, 5))
@settings(max_examples=300)
def test_pieces_in_order_are_the_text(whole: str, size: int) -> None:
    scanner = Scanner(FAMILIES, tools=TOOLS)
    pieces = [piece for part in cuts(whole, size) for piece in scanner.feed(part)]
    assert "".join(piece.raw for piece in [*pieces, *scanner.close()]) == whole
    assert scanner.held == 0


TOKENS = [
    *("<tool_call>", "</tool_call>", CALL, "{", "}", '"', "'", "\n", " ", "<think>", "</think>", "<", "```", "`", "a "),
    *('<tool_call id="x">', "<tool_call|>", "[", "]", ",", "<thinking>", "<tool_", "\\", "//", "/* */", "“a”"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "f", "<｜tool▁sep｜>", "{}", "function", "\n```json\n"),
    *("<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", '<|"|>', "~~~", "é", MARKUP),
]


@given(
    st.lists(st.sampled_from(TOKENS), min_size=1, max_size=12).map("".join),
    st.sampled_from(SIZES),
    st.sampled_from([PROMPT, HIDING, NATIVE, NATIVE_HIDING]),
)
@settings(max_examples=400)
def test_what_becomes_of_a_text_does_not_depend_on_its_cut(whole: str, size: int, options: Any) -> None:
    first, other = Scrubbed(options).give(*said(whole)), Scrubbed(options).give(*said(*cuts(whole, size)))
    assert other.content == first.content
    assert other.lost == first.lost


def scrubber_in_text(*, in_place: bool = False) -> TagScrubber:
    """A scrubber that is in the middle of text. In place another text has begun before it, and ended in it."""
    scrubber = TagScrubber(options=PROMPT, tools=TOOLS, in_place=in_place)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, "x")])
    if in_place:
        play(scrubber, [start(1, TEXT), text(1, "x"), text(0, "x"), stop(1)])
    return scrubber


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("reads", [1, 100])
def test_plain_text_takes_a_short_way_and_leaves_as_what_came(reads: int, in_place: bool) -> None:
    def work(words: str) -> int:
        scrubber, events = scrubber_in_text(in_place=in_place), [text(0, words) for _ in range(100)]
        batches = [events] if reads == 1 else [[event] for event in events]
        out: list[Any] = []
        made = calls_made(lambda: out.extend(one for batch in batches for one in scrubber.receive(batch)))
        assert all(one is event for one, event in zip(out, events, strict=True))
        return made

    assert 3 * work("word ") < work("a < b")


@pytest.mark.parametrize(("block", "made"), [(CALL_A, args), (REASONING, think)])
def test_so_do_a_calls_arguments_and_reasoning(block: Any, made: Callable[[int, str], Event]) -> None:
    def work(index: int) -> int:
        scrubber = scrubber_in_text()
        play(scrubber, [stop(0), start(index, block)])
        event = made(index, "1")
        return calls_made(lambda: [scrubber.receive([event]) for _ in range(100)])

    assert 2 * work(1) < work(5)


def test_openers_that_begin_alike_are_told_apart() -> None:
    known = openers(FAMILIES)
    assert [token for token, _ in known.at("x<thinking>", 1)] == ["<think", "<thinking"]
    assert known.at("x<table>", 1) == []
    assert openers(FAMILIES) is known
    assert openers((), False).search("<`~") is None


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", False),
        ("a `b", True),
        ("a `b` ", False),
        ("a `b\n", False),
        ("a ``b` ", True),
        ("a ``b`` ", False),
        ("```\n", True),
        ("```py\nx\n", True),
        ("```\nx\n```\n", False),
        ("```\nx\n```", False),
        ("```\nx\n``\n", True),
        ("```\nx\n````\n", False),
        ("````\nx\n```\n", True),
        ("```\nx\n```py\n", True),
        ("```\nx\n~~~\n", True),
        ("~~~\nx\n~~~\n", False),
        ("~~~ `a\n", True),
        ("a `~~~b", True),
        ("a ~~~`b", True),
        ("a ~~~`b`", False),
        ("a ~~~\n", False),
        ("a ```\n", False),
        ("```a``` ", False),
        ("```a``` b\n", False),
        ("  ```\n", True),
        ("\u00a0\t```\n", True),
        ("```\nx ```\n", True),
        ("```\n```\n```\n", True),
        ("```\nx\n```~~~\n", True),
        ("~~```\n", False),
        ("~~~a~~~ ", True),
        ("~~~a~~~\n", True),
        ("<~~~\n", False),
        ("<tool_call is~~~\n", False),
        ("- ```\n", True),
        ("-```\n", False),
        ("- a ```\n", False),
        ("  12. ```\n", True),
        ("1) * ```\n", True),
        ("1234567890. ```\n", False),
        ("1.```\n", False),
        ("+ ~~~\n", True),
        ("- ```\n  x\n  ```\n", False),
        ("- ```\n- ```\n", True),
        ("```\n> ```\n", True),
        ("> ```\n> ", True),
        (">> ```\n>> x\n>> ```\n", False),
        ("> ```\n- ```\n", True),
        (f"{' ' * 100}```\n", True),
        (f"{'> ' * 32}```\n", True),
        (f"{'> ' * 33}```\n", False),
        (f"{'>' * 65} ```\n", False),
    ],
)
def test_code_is_told_from_text(before: str, inside: bool) -> None:
    for size in (1, 2, 100):
        scanner = Scanner(FAMILIES, tools=TOOLS)
        for part in cuts(before, size):
            scanner.feed(part)
        told = [*scanner.feed(MARKUP), *scanner.close()]
        assert (Kind.CALLS not in {piece.kind for piece in told}) == inside
    assert not Code().inside
