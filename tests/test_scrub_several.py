"""stages.scrub.several: the calls of a body and of those behind it, what parts them, and which of them are the
reader's."""

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from stages.scrub.calls import LEFT, MENDED, NO_ARGUMENTS, NO_NAME, NO_OBJECT
from stages.scrub.fence import Fence
from stages.scrub.grammar import Call, Found, Part, Plain, Source, Unfinished
from stages.scrub.json_body import Behind
from stages.scrub.outside import Outside
from stages.scrub.several import bodies
from tests.parsed import place, so_far, whole

END = ("</t>",)
SAID, OTHER = '{"name": "f", "arguments": {"x": 1}}', '{"name": "g", "arguments": {"y": 2}}'
F, G = Call("f", '{"x": 1}'), Call("g", '{"y": 2}')
NONE, UNNAMED = '{"a": 1}', '{"name": 3}'
NAMED = Outside({"name": "f"})
GIVEN = Outside({"name": "f", "arguments": '{"x": 1}'})
Step = Generator[Found | None, None, Behind]


def several(source: Source, outside: Outside, around: Fence | None, **asked: Any) -> Step:
    return (yield from bodies(source, place("<t", **asked), END, outside, around))


def read(text: str, outside: Outside = Outside(), around: Fence | None = None, **asked: Any) -> tuple[Any, str]:  # noqa: B008
    """What is found, and what is left."""
    return whole(text, partial(several, outside=outside, around=around, **asked))


def ended(text: str, outside: Outside = Outside(), around: Fence | None = None) -> Behind:  # noqa: B008
    """What stands behind the last one."""
    source = Source(text, over=True)
    steps = several(source, outside, around)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        behind: Behind = end.value
        return behind


@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        (f"{SAID}</t>b", [F], "b"),
        (f"{SAID}b", [F], "b"),
        (f"{SAID}{OTHER}</t>b", [F, G], "b"),
        (f"{SAID}\n, {OTHER}\n</t>b", [F, G], "b"),
        (f"{SAID}{OTHER}{SAID}</t>b", [F, G, F], "b"),
        (f"{SAID}{OTHER}b", [F, G], "b"),
        (f"{SAID}}}{OTHER}</t>b", [F, MENDED, G], "b"),
        (f"{SAID} and {OTHER}</t>b", [F, LEFT, G], "b"),
        (f"{SAID}}} and {OTHER}</t>b", [F, MENDED, LEFT, G], "b"),
        (f"{SAID} and {OTHER} and {SAID}</t>b", [F, LEFT, G, LEFT, F], "b"),
        (f"[{SAID}, {OTHER}]{SAID}</t>b", [F, G, F], "b"),
        (f"{NONE}</t>b", [NO_NAME], "b"),
        (f"{NONE}b", [NO_NAME], "b"),
        (f"{NONE}{SAID}b", [NO_NAME, F], "b"),
    ],
)
def test_calls_stand_one_behind_another(text: str, found: Any, left: str) -> None:
    assert read(text) == (found, left)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        (f"{SAID}{NONE}</t>b", [F, NO_NAME], "b"),
        (f"{SAID}{NONE}b", [F, Plain()], "b"),
        (f"{SAID}{NONE}", [F, Plain()], ""),
        (f"{SAID} and {OTHER}</t>b", [F, LEFT, G], "b"),
        (f"{SAID} and {OTHER}b", [F, Plain()], "b"),
        (f"{SAID} and {OTHER}</", [F, LEFT, G], ""),
        (f"{SAID}}} and {OTHER}b", [F, Plain()], "b"),
        (f"{SAID} and {UNNAMED}</t>b", [F, LEFT, NO_NAME], "b"),
        (f"{SAID} and {UNNAMED}b", [F, Plain()], "b"),
        (f"{SAID} and {NONE}</t>b", [F], "b"),
        (f"{SAID} and {NONE}b", [F], f" and {NONE}b"),
        (f"{SAID}[{OTHER}]</t>b", [F, LEFT, G], "b"),
        (f"{SAID}[{OTHER}]b", [F, Plain()], "]b"),
        (f"{SAID}{NONE}{OTHER}</t>b", [F, NO_NAME, G], "b"),
        (f"{SAID}{NONE}{OTHER}b", [F, NO_NAME, G], "b"),
        (f"{SAID}{NONE}{NONE}b", [F, Plain()], "b"),
        (f"{SAID}{NONE}{NONE}{OTHER}b", [F, NO_NAME, NO_NAME, G], "b"),
        (f"{SAID}{NONE} and {OTHER}b", [F, Plain()], "b"),
        (f"{SAID} and {OTHER} or {SAID}b", [F, Plain()], "b"),
        (f"{SAID} and {OTHER} or {SAID}</t>b", [F, LEFT, G, LEFT, F], "b"),
        (f"{SAID} and {OTHER}{SAID} or {OTHER}b", [F, LEFT, G, F, Plain()], "b"),
    ],
)
def test_another_body_that_is_doubtful_is_the_readers_unless_a_closer_or_another_call_stands_behind_it(
    text: str, found: Any, left: str, early: bool
) -> None:
    made, behind = read(text, early=early)
    assert ([one for one in made if not isinstance(one, Part)], behind) == (found, left)


def test_each_may_be_mended_and_break_off_where_other_markup_begins() -> None:
    made, single = Call("f", '{"x":1}', mended=True), "{'name': 'f', 'arguments': {'x': 1}}"
    assert read(f"{single}{single}</t>b") == ([made, made], "b")
    assert read(f"{OTHER}{SAID[:-1]}<tool_call>{{") == ([G, made], "<tool_call>{")
    assert read("{}</t>b", Outside({"name": "f", "arguments": "{'x': 1}"})) == ([made], "b")


def test_of_what_stands_in_its_fence_behind_a_body_nothing_is_the_readers() -> None:
    far = "so " * 99
    assert read(f"{SAID}\n{far}\n```</t>b", around=Fence("```")) == ([F], "b")
    assert read(f"{SAID}\n{far}\n```\n{OTHER}</t>b", around=Fence("```")) == ([F, LEFT, G], "b")
    assert read(f"{SAID}\n{far}\n```</t>b") == ([F], f"\n{far}\n```</t>b")


def test_what_ends_the_last_one_is_told() -> None:
    assert ended(f"{SAID}</t>b") == Behind("</t>")
    assert ended(f"{SAID}{OTHER}</t>") == Behind("</t>")
    assert ended(f"{SAID} and {OTHER} then</t>") == Behind("</t>", said=True)
    assert ended(f"{SAID} and {OTHER}}}</t>") == Behind("</t>", mended=True)
    assert ended(f"{SAID} and {NONE}</t>") == Behind("</t>", said=True)
    assert ended(f"{SAID}\n```word\n{OTHER}\nso\n```</t>") == Behind("</t>", said=True)
    assert ended(f"{SAID}</") == Behind("</")
    assert ended(f"{SAID}b") == Behind()


@pytest.mark.parametrize(
    ("text", "outside", "found"),
    [
        (f"{SAID}</t>", Outside({"id": "1"}), [F]),
        (f"{SAID}{OTHER}</t>", Outside({"path": "x"}), [Call("f", '{"x": 1}', left=True), G]),
        ('{"y": 2}</t>', NAMED, [Call("f", '{"y": 2}')]),
        ('{"y": 2}{"z": 3}</t>', NAMED, [Call("f", '{"y": 2}'), Call("f", '{"z": 3}')]),
        (f'{{"y": 2}}{OTHER}</t>', NAMED, [Call("f", '{"y": 2}'), G]),
        (f'{{"y": 2}}[{NONE}]</t>', NAMED, [Call("f", '{"y": 2}')]),
        ("{}</t>", GIVEN, [F]),
        ("{}{}</t>", GIVEN, [F, Call("f", "{}")]),
        ('{"y": 2}{"z": 3}</t>', GIVEN, [Call("f", '{"y": 2}', left=True), Call("f", '{"z": 3}')]),
        (f"{OTHER}{SAID}</t>", GIVEN, [Call("g", '{"y": 2}', left=True), F]),
        ("[1]</t>", Outside({"path": "x"}), [NO_OBJECT, LEFT]),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_a_name_that_a_tag_says_is_every_ones_and_all_else_the_firsts(
    text: str, outside: Outside, found: Any, early: bool
) -> None:
    made, left = read(f"{text}b", outside, early=early)
    assert ([one for one in made if not isinstance(one, Part)], left) == (found, "b")


WORDS = Fence("```", left=True)
LEFT_F, LEFT_G = Call("f", '{"x": 1}', left=True), Call("g", '{"y": 2}', left=True)


@pytest.mark.parametrize(
    ("text", "around", "found"),
    [
        (f"{SAID}\n```</t>", Fence("```"), [F]),
        (f"{SAID}\n```</t>", WORDS, [LEFT_F]),
        (f"{SAID}\n{OTHER}\n```</t>", WORDS, [LEFT_F, G]),
        (f"{SAID}\n```\n```json\n{OTHER}\n```</t>", WORDS, [LEFT_F, G]),
        (f"{SAID}\n```\n```word\n{OTHER}\n```</t>", Fence("```"), [F, LEFT_G]),
        (f"{SAID}\n```word\n{OTHER}\n```</t>", None, [F, LEFT_G]),
        (f"{SAID}\n~~~word\n{OTHER}\n~~~\n{SAID}</t>", None, [F, LEFT_G, F]),
        (f"{SAID}\n```word\n{OTHER}\n```\n~~~\n{SAID}\n~~~</t>", None, [F, LEFT_G, F]),
        (f"{SAID}\n```word\n{OTHER}\nso\n```</t>", None, [F, LEFT_G]),
        (f"{SAID}\nso\n```\n{OTHER}</t>", Fence("```"), [F, LEFT, G]),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_each_body_has_a_fence_of_its_own(text: str, around: Fence | None, found: Any, early: bool) -> None:
    made, left = read(f"{text}b", Outside(), around, early=early)
    assert ([one for one in made if not isinstance(one, Part)], left) == (found, "b")


OPEN_F, OPEN_G = '{"name": "f", "arguments": {"x": "aa', '{"name": "g", "arguments": {"y": "bb'


@pytest.mark.parametrize(
    ("text", "outside", "found"),
    [
        (OPEN_F, Outside(), [Part("f", '{"x": "aa')]),
        (f"{SAID}{OPEN_G}", Outside(), [Part("f", '{"x": 1}'), F, Part("g", '{"y": "bb')]),
        (f"{SAID} and {OPEN_G}", Outside(), [Part("f", '{"x": 1}'), F]),
        (f"{SAID}}}{OPEN_G}", Outside(), [Part("f", '{"x": 1}'), F]),
        (OPEN_G, NAMED, []),
        (OPEN_F, NAMED, [Part("f", "")]),
        ('{"y": "aa', NAMED, [Part("f", "")]),
        ('{"y": "aa', GIVEN, []),
        (f"{{}}{OPEN_F}", GIVEN, [F, Part("f", "")]),
        ('{"y": 1}{"z": "aa', NAMED, [Part("f", ""), Call("f", '{"y": 1}'), Part("f", "")]),
    ],
)
def test_a_call_is_told_early_where_nothing_else_may_be_its_own(text: str, outside: Outside, found: Any) -> None:
    assert so_far(text, partial(several, outside=outside, around=None, early=True)) == found
    assert not any(isinstance(one, Part) for one in so_far(text, partial(several, outside=outside, around=None)))


def test_a_call_that_was_told_is_made_whatever_stands_behind_it() -> None:
    begun = [Part("f", '{"x": 1}'), F, Part("g", "")]
    assert read(f'{SAID}{{"name": "g", "input": 3}}b', early=True) == ([*begun, NO_ARGUMENTS], "b")
    assert read(f'{SAID}{{"name": "g", "input": 3}}b') == ([F, Plain()], "b")


def test_the_input_of_a_freeform_tool_may_stand_in_any_of_them() -> None:
    text = '{"name": "f", "arguments": "ls"}'
    call = Call("f", '{"input":"ls"}')
    assert read(f"{text}{text}</t>b", freeform=("f",)) == ([call, call], "b")
    given = Outside({"name": "f", "arguments": "ls"})
    assert read("{}</t>b", given, freeform=("f",)) == ([Call("f", '{"input":""}', left=True)], "b")


def test_a_body_that_the_message_ends_in_is_unfinished() -> None:
    for text in (OPEN_F, f"{SAID}{OPEN_G}", f"{SAID}\n```\n{OPEN_G}"):
        assert read(text) == (Unfinished, "")
