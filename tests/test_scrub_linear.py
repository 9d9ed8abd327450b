"""stages.scrub: work, and what is copied, is linear in the text, however hostile: counted, not timed."""

from collections.abc import Callable
from typing import ClassVar, SupportsIndex

import pytest

from pipeline.route import AnswerOptions
from stages.scrub import TagScrubber
from stages.scrub.families import FAMILIES
from stages.scrub.scanner import Scanner
from tests.canonical import BEGIN, TEXT, start, stop, text
from tests.scrubbing import CALL, MARKUP, NATIVE, PROMPT, TOOLS, calls_made, cuts
from tests.test_scrub_text import HTML


def body_of(size: int) -> str:
    inside = "\\n".join(["x = a < b </tool_call> ```"] * (size // 26))
    return f'<tool_call>{{"name": "f", "arguments": {{"s": "{inside}"}}}}</tool_call>'


LONG: dict[str, Callable[[int], str]] = {
    "a body": body_of,
    "a body that is mended": lambda size: body_of(size).replace('"s"', "'s'"),
    "a body that is cut": lambda size: body_of(size)[:-20],
    "a hopeless body": lambda size: body_of(size).replace('"s":', '"s" x'),
    "many bodies": lambda size: MARKUP * (size // len(MARKUP)),
    "bodies of nothing": lambda size: "<tool_call>{}</tool_call>" * (size // 25),
    "DeepSeek's calls in a tag": lambda size: f"<tool_call {'<｜tool▁call▁begin｜>{' * (size // 20)}",
    "many bodies in one": lambda size: f"<tool_call>{CALL * (size // len(CALL))}</tool_call>",
    "openers": lambda size: "<tool_call" * (size // 10),
    "openers with attributes": lambda size: "<tool_call a='" * (size // 14),
    "openers in the values of attributes": lambda size: "<tool_call" + ' a="<tool_call"' * (size // 14),
    "attributes": lambda size: "<tool_call" + ' a="b"' * (size // 6),
    "openers with bodies": lambda size: "<tool_call>{'a" * (size // 14),
    "openers in openers": lambda size: f"{'<tool_call>' * (size // 11)}x",
    "openers in openers that a body follows": lambda size: f"{'<tool_call>' * (size // 11)}{CALL}",
    "blanks in a tag": lambda size: f"<tool_call{' ' * size}x",
    "blanks behind an opener": lambda size: f"<tool_call>{' ' * size}x",
    "blanks behind a brace": lambda size: f'<tool_call>{{{" " * size}"name": "f"}}',
    "blanks behind a body": lambda size: f"<tool_call>{CALL}{' ' * size}x",
    "blanks in a section": lambda size: f"<｜tool▁calls▁begin｜>{' ' * size}x",
    "comments behind a body": lambda size: f"<tool_call>{CALL}{'// a' * (size // 4)}",
    "comments behind bodies": lambda size: f"<tool_call>{CALL}// " * (size // 50),
    "braces behind a body": lambda size: f"<tool_call>{CALL}{'}' * size}",
    "hopeless bodies": lambda size: "<tool_call>{'a' b</tool_call>" * (size // 29),
    "curly quotes that nothing closes": lambda size: '<tool_call>{"a": “x</tool_call> ' * (size // 29),
    "curly quotes in openers": lambda size: "<tool_call>{“a " * (size // 27) + "</tool_call>" * (size // 27),
    "curly quotes and brackets": lambda size: f"<tool_call>{{“{'} </tool_call>' * (size // 14)}",
    "escapes in a curly quote": lambda size: f"<tool_call>{{“{chr(92) * size}",
    "comments that nothing closes": lambda size: "<tool_call>{/* </tool_call>" * (size // 27),
    "comments that nothing closes, and brackets": lambda size: "<tool_call>{/*}</tool_call>" * (size // 27),
    "leaked quotes that nothing closes": lambda size: '<tool_call>{<|"|></tool_call> <' * (size // 31),
    "words in a fence": lambda size: f"<tool_call>```\n{CALL}{'a `<' * (size // 4)}",
    "fences that nothing closes": lambda size: f"<tool_call>```\n{CALL}, x\n<tool_call " * (size // 62),
    "marks in a fence": lambda size: f"<tool_call>```\n{CALL}, x\n{'``` x' * (size // 5)}",
    "bodies of no tool": lambda size: f"<tool_call name='f'>[{'{},' * (size // 3)}{{}}]",
    "calls without a body": lambda size: "<｜tool▁call▁begin｜>f<｜tool▁sep｜>a " * (size // 36),
    "angles": lambda size: "<" * size,
    "backticks": lambda size: "`" * size,
    "blanks": lambda size: f"{MARKUP}{' ' * size}x",
    "reasoning": lambda size: f"<think>{'a < b ' * (size // 6)}</think>x",
    "HTML": lambda size: HTML * (size // len(HTML)),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize(("size", "options"), [(4, PROMPT), (1_000_000, PROMPT), (50, NATIVE)])
def test_work_is_linear(kind: str, size: int, options: AnswerOptions) -> None:
    def work(length: int) -> Callable[[], object]:
        parts = ["Hi. ", *cuts(LONG[kind](length), size)]
        events = [BEGIN, start(0, TEXT), *(text(0, part) for part in parts), stop(0)]
        scrubber = TagScrubber(options=options, tools=TOOLS)
        return lambda: [scrubber.receive([event]) for event in events] and scrubber.receive_eof()

    work(1_000)()
    short, long = calls_made(work(4_000)), calls_made(work(16_000))
    assert long <= 4.5 * short + 500


class Counted(str):
    """A text of which it is counted how many characters are copied, into slices of it and sums with it."""

    __slots__ = ()
    copied: ClassVar[int] = 0

    def counted(self, text: str) -> "Counted":
        Counted.copied += len(text)
        return Counted(text)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        return self.counted(super().__getitem__(key))

    def __add__(self, other: str) -> str:
        return self.counted(super().__add__(other))

    def __radd__(self, other: str) -> str:
        return self.counted(other.__add__(self))


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("size", [4, 1_000_000])
def test_what_is_copied_is_linear(kind: str, size: int) -> None:
    def copied(length: int) -> int:
        before, scanner = Counted.copied, Scanner(FAMILIES, tools=TOOLS)
        for part in cuts(LONG[kind](length), size):
            scanner.feed(Counted(part))
        scanner.close()
        return Counted.copied - before

    short, long = copied(4_000), copied(16_000)
    assert long <= 4.5 * short + 500


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("before", ["", "<think>a"])
def test_how_much_is_held_is_told_in_linear_work(before: str, in_place: bool) -> None:
    def work(blanks: int) -> Callable[[], object]:
        scrubber = TagScrubber(options=PROMPT, tools=TOOLS, in_place=in_place)
        scrubber.receive([BEGIN, start(0, TEXT), *([text(0, before)] if before else [])])
        return lambda: [(scrubber.receive([text(0, "\n")]), scrubber.held) for _ in range(blanks)]

    assert work(10)() == [([], count) for count in range(1, 11)]
    short, long = calls_made(work(1_000)), calls_made(work(4_000))
    assert long <= 4.5 * short + 500
