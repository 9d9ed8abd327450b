"""stages.scrub.ends, and what a fence round a body ends with: small steps alone, and strings that only look like it."""

import json
import re
from functools import partial
from typing import Any

import pytest

from stages.scrub.ends import Ended, Ends, adrift
from stages.scrub.fence import FAR, Fence
from stages.scrub.grammar import Openings, Source, Unfinished, until
from stages.scrub.json_body import NOTHING
from tests.scrubbing import CALL, F, at_every_cut, at_every_size

ENDS = Ends(("</x>", "</xy>"), NOTHING)
FENCE = Fence("```")


@pytest.mark.parametrize(
    ("text", "near", "left"),
    [
        ("a\n```", True, "\n```"),
        ("a\n``` \t\r\nb", True, "\n``` \t\r\nb"),
        ("a ``````\n", True, " ``````\n"),
        ("a\n```</x>", True, "\n```</x>"),
        ("a\n``` </xy>", True, "\n``` </xy>"),
        ("a\n```X\n", False, ""),
        ("a\n```X", False, ""),
        ("a <</x>b", True, "</x>b"),
        ("a <```", True, "```"),
        ("a `````", True, " `````"),
        ("a ``", False, ""),
        (f"{'a' * FAR}</x>", True, "</x>"),
        (f"{'a' * (FAR + 1)}</x>", False, ""),
        (f"{'a' * (FAR + 1)}", False, ""),
    ],
)
def test_a_fence_ends_near_or_what_is_in_it_is_the_readers(text: str, near: bool, left: str) -> None:
    given, rest = at_every_size(partial(FENCE.rest, ends=ENDS), text)
    assert given is near
    if near:
        assert rest.strip(" \n") == left.strip(" \n")


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("a</x>b", ("a", "</x>"), "b"),
        ("a</xy>b", ("a", "</xy>"), "b"),
        ("a\nb</x>", ("a", "\n"), "b</x>"),
        ("a<o b</x>c", ("a<o b", "</x>"), "c"),
        ("<o<o\n", ("<o<o", "\n"), ""),
    ],
)
def test_words_end_with_what_closes_them(text: str, given: Any, left: str) -> None:

    def step(source: Source) -> Any:
        return (yield from MARKUP_BEGINS.until(source, "\n"))

    assert at_every_size(step, text) == (given, left)


def test_words_end_where_other_markup_begins_and_that_is_not_taken() -> None:

    def step(source: Source) -> Any:
        return (yield from MARKUP_BEGINS.until(source))

    assert at_every_size(step, "a<o b<o!c</x>") == (("", ""), "<o!c</x>")


def test_a_token_that_another_begins_with_is_taken_before_the_end() -> None:
    source = Source("abd", 0)
    with pytest.raises(StopIteration) as done:
        next(until(source, ("ab", "abc")))
    assert done.value.value == ("", "ab")


MARKUP_BEGINS = Ends(ENDS.closers, Openings(("<o",), re.compile("<o!")))


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("'a:'{<o!", Unfinished),
        ("'['\\<o!", Unfinished),
        ("[,',' '<o!", (Ended.CUT, 8)),
        ('"<o!', Unfinished),
        ('"\'"<<o!', Unfinished),
        ('"\\\\</x>', (Ended.CLOSED, 4)),
        ('"<</x>', (Ended.CLOSED, 3)),
        ("'</x>'", (Ended.CLOSED, 2)),
        (' {"<o!', Unfinished),
        ("{\"a':}\\", Unfinished),
        ("a<o!", (Ended.CUT, 2)),
        ("a</x>", (Ended.CLOSED, 2)),
        (":'</x>' b", (Ended.CLOSED, 3)),
        (":'</x>',</x>", (Ended.CLOSED, 9)),
    ],
)
def test_what_looks_like_a_string_stands_where_one_may(text: str, given: Any) -> None:
    assert at_every_size(partial(adrift, ends=MARKUP_BEGINS, before="{"), text)[0] == given


INNER = '<tool_call>{"name": "g"}</tool_call>'
NESTED = f"<tool_call>{{{INNER}}}</tool_call>"
LOOSE: dict[str, list[Any]] = {
    # markup in a string, of which the closer is the string's; the body's comes behind it
    f"{{'name': 'f', 'arguments': {{'x': 'a {INNER} b'}}}}</tool_call>c": [("f", {"x": f"a {INNER} b"}), "c"],
    f"{{'name': 'f', 'arguments': {{'x': '{INNER}{INNER}'}}}}</tool_call>c": [("f", {"x": INNER + INNER}), "c"],
    f"{{'name': 'f', 'arguments': {{'x': 'a {INNER} b}}}}</tool_call>c": ["c"],
    f"{{'name': 'f', 'arguments': {{'x': '{INNER}{INNER}}}}}</tool_call>c": ["c"],
    # brackets in a string, and what is no blank between the last of them and a closer
    "{'name': 'f', 'arguments': {'x': '}} < </tool_call> b'}}</tool_call>c": [("f", {"x": "}} < </tool_call> b"}), "c"],
    "{'name': 'f', 'arguments': {'x': '}}\\\\</tool_call> b'}}</tool_call>c": [("f", {"x": "}}\\</tool_call> b"}), "c"],
    "{'name': 'f', 'arguments': {'x': '}}{</tool_call> b'}}</tool_call>c": [("f", {"x": "}}{</tool_call> b"}), "c"],
    "{'name': 'f', 'arguments': {'x': 'a}} ``` </tool_call>c": ["c"],
    "{'name': 'f', 'arguments': {'x': '}} a</tool_call></tool_call> b'}}</tool_call>c": [
        ("f", {"x": "}} a</tool_call></tool_call> b"}),
        "c",
    ],
    f"{{'name': 'f', 'arguments': {{'x': '{NESTED} b}}}}</tool_call>c": ["c"],
    f"{{'name': 'f', 'arguments': {{'x': '{NESTED} b</tool_call>c": ["c"],
    # a closer behind brackets, which the string ends right behind
    "{'name': 'f', 'arguments': {'x': '}}</tool_call>'}}</tool_call>c": [("f", {"x": "}}</tool_call>"}), "c"],
    "{'name': 'f', 'arguments': {'x': 'a}} </tool_call>' }}</tool_call>c": [("f", {"x": "a}} </tool_call>"}), "c"],
    "{'name': 'f', 'arguments': {“x”: “}}</tool_call>”, 'y': 1}}</tool_call>c": [
        ("f", {"x": "}}</tool_call>", "y": 1}),
        "c",
    ],
    "{'name': 'f', 'arguments': {'x': [<|\"|>}]}}</tool_call><|\"|>]}}</tool_call>c": [
        ("f", {"x": ["}]}}</tool_call>"]}),
        "c",
    ],
    "{'name': 'f', 'arguments': {'x': 'a}}</tool_call>'s own": ["'s own"],
    "{'name': 'f', 'arguments': {'x': 1 // a}}</tool_call>\n} c": ["} c"],
    "{'name': 'f', 'arguments': {'x': 1 /* a}}</tool_call>*/} c": ["*/} c"],
    # what is escaped ends nothing, but in a comment nothing is
    "{'name': 'f', 'arguments': {'x': 'a\\\\', \"y\": \"}}</tool_call>\"}}</tool_call>c": [
        ("f", {"x": "a\\", "y": "}}</tool_call>"}),
        "c",
    ],
    "{'name': 'f', 'arguments': {'x': 'a\\'', \"y\": \"}}</tool_call>\"}}</tool_call>c": [
        ("f", {"x": "a'", "y": "}}</tool_call>"}),
        "c",
    ],
    '{"name": "f", // C:\\\n"arguments": {"x": "}}</tool_call>"}}</tool_call>c': [
        ("f", {"x": "}}</tool_call>"}),
        "c",
    ],
    # a string that held a closer, and ended, is not where the body ends
    "{'name': 'a </tool_call> b', \"k\": \"x\" y}</tool_call>c": ["c"],
}
"""Bodies whose strings strict JSON does not hold, and what becomes of them."""


@pytest.mark.parametrize("body", LOOSE)
def test_a_closer_in_a_string_is_the_strings_unless_markup_in_it_or_brackets_before_it_say_so(body: str) -> None:

    out = at_every_cut(f"<tool_call>{body}")
    assert [(one[0], json.loads(one[1])) if isinstance(one, tuple) else one for one in out.content] == LOOSE[body]


def test_another_call_stands_behind_a_body_whose_string_never_ends() -> None:
    call = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    out = at_every_cut(f"<tool_call>{{'name': 'f', 'arguments': {{'x': 'a {INNER} b}}}}</tool_call>{call}")
    assert out.content == [F]


def test_an_object_among_the_words_in_the_tag_of_a_whole_call_is_no_other_call() -> None:
    out = at_every_cut('<tool_call name="f" arguments=\'{"x": 1}\'>see {"name": "g"}</tool_call>b')
    assert out.content == [F, "b"]
    assert out.lost == [("dropped", "what stands beside the name and the arguments of a call")]


@pytest.mark.parametrize(("ticks", "near"), [(20, True), (64, False), (70, False)])
def test_a_closer_behind_many_marks_is_not_near(ticks: int, near: bool) -> None:
    words = f"a {'`' * ticks}</tool_call>b"
    assert at_every_cut(f"<tool_call>{CALL}{words}").content == [F, "b" if near else words]
