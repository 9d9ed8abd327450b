"""stages.scrub.families: what each parser takes, and what it leaves, by itself."""

from typing import Any

import pytest

from pipeline.limits import Limits
from stages.scrub.calls import LEFT, NO_ARGUMENTS, NO_BODY, NO_NAME
from stages.scrub.families import deepseek, hermes, think
from stages.scrub.families.deepseek import CALL, CALL_END, SECTION, SECTION_END, SEPARATOR, TURN_END
from stages.scrub.grammar import Call, Found, Part, Refused, Unfinished
from tests.parsed import place, so_far, whole
from tests.scrubbing import CALL as SAID

B, D, S, T = CALL[0], CALL_END[0], SEPARATOR[0], TURN_END[0]
SB, SE = SECTION[0], SECTION_END[0]
FREE: dict[str, Any] = {"freeform": ("cu",), "tools": {"f": {}, "g": {}, "cu": {}}}
F = Call("f", '{"x": 1}')
BODY = '{"x": 1}'


def parser(opener: str, **asked: Any) -> Any:
    """The parser that reads behind an opener, which stands there."""
    families = (*deepseek.FAMILIES, *hermes.FAMILIES, *think.FAMILIES)
    (family,) = (one for one in families if opener in one.openers and not one.stray)
    at = place(opener, **asked)
    return lambda source: family.parse(source, at)


def read(markup: str, **asked: Any) -> tuple[Any, str]:
    """What is read of markup, and what is left of it."""
    opener = max((one for one in (*SECTION, *CALL, *hermes.OPENERS) if markup.startswith(one)), key=len)
    return whole(markup.removeprefix(opener), parser(opener, **asked))


def told(markup: str, opener: str = B, **asked: Any) -> list[Found]:
    """What is told early of a call whose end has not come."""
    return so_far(markup.removeprefix(opener), parser(opener, early=True, **asked))


@pytest.mark.parametrize(
    ("markup", "left"),
    [
        (f"{B}f{S}{BODY}{D}b", "b"),
        (f"{B}f{S}{BODY}{D}{T}b", f"{T}b"),
        (f"{B}f{S}{BODY}{SE}b", "b"),
        (f"{B}f{S}{BODY}{D}{SE}b", "b"),
        (f"{B}f{S}{BODY}{D}\n{SE}\n{T}b", "b"),
        (f"{B}f{S}{BODY}{SE}{T}b", "b"),
        (f"{SB}{B}f{S}{BODY}{D}{SE}{T}b", "b"),
        (f"{SB}{SAID}{SE}b", "b"),
        (f"{SB}{SAID}{SE} {T}b", "b"),
        (f"{SB}{SAID}{D}{SE}{T}b", "b"),
        (f"{SB}{SAID}{T}b", f"{T}b"),
        (f"{B}{SAID}{D}b", "b"),
        (f"{B}{SAID}b", "b"),
    ],
)
def test_a_call_is_taken_with_all_that_closes_it_and_its_section(markup: str, left: str) -> None:
    assert read(markup) == ([F], left)


@pytest.mark.parametrize(
    ("markup", "left"),
    [
        (f"{SB}{SE}b", "b"),
        (f"{SB}{SE}{SE}b", f"{SE}b"),
        (f"{SB}\n{SE}{T}b", "b"),
        (f"{SB}I look: {B}{SAID}", f"I look: {B}{SAID}"),
        (f"{SB}\nI look.{B}f{S}{{", f"I look.{B}f{S}{{"),
    ],
)
def test_a_section_without_a_call_of_its_own_makes_nothing(markup: str, left: str) -> None:
    assert read(markup) == ([], left)


@pytest.mark.parametrize(
    "markup",
    [
        SB,
        f"{SB} ",
        f"{SB}words",
        f"{SB}words {B} opens",
        f"{SB}words <tool_call>{SAID}",
        f"{SB}words {SB}{SAID}",
        f"{SB}words `{B}{SAID}`",
        f"{SB}{'a' * 65}{B}{SAID}",
        f"{B}{'n' * 257}{S}{BODY}{D}",
    ],
)
def test_what_surely_opens_no_call_is_refused(markup: str) -> None:
    assert read(markup) == (Refused, "")


def test_a_section_that_words_follow_in_a_line_that_speaks_of_it_is_prose() -> None:
    behind = f"and then {B}{SAID}"
    for blank, mentioned in ((" ", True), ("\t", True), ("\n", False), ("", False)):
        given = read(f"{SB}{blank}{behind}", line=False)
        assert given == ((Refused, "") if mentioned else ([], behind))
    for asked in ({"line": True}, {"line": False, "glued": True}):
        assert read(f"{SB} {behind}", **asked) == ([], behind)


@pytest.mark.parametrize("count", [1, 256, 257])
def test_a_name_behind_the_mere_kind_has_at_most_256_characters(count: int) -> None:
    name = "n" * count
    call = Call(name, BODY) if count <= 256 else NO_ARGUMENTS
    assert read(f"{B}function{S}{name}\n```json\n{BODY}\n```{D}b") == ([call], "b")


def test_a_name_has_at_most_256_characters() -> None:
    assert read(f"{B}{'n' * 256}{S}{BODY}{D}") == ([Call("n" * 256, BODY)], "")


SAYS: dict[str, list[Any]] = {
    f"{B}function{S}{SAID}{D}": [F],
    f"{B}function{S}[{SAID}]{D}": [F],
    f'{B}function{S}[{SAID}, {{"a": 1}}]{D}': [F, NO_NAME],
    f'{B}function{S}{{"name": "f", "a": 1}}{D}': [Call("f", "{}", left=True)],
    f"{B}function{S}{{'name': 'f', 'arguments': {{'x': 1}}}}{D}": [Call("f", '{"x":1}', mended=True)],
    f'{B}function{S}{{"name": "cu", "arguments": "ls"}}{D}': [Call("cu", '{"input":"ls"}')],
    f'{B}f{S}{{"name": "cu", "arguments": "ls"}}{D}': [Call("cu", '{"input":"ls"}')],
    f'{B}g{S}{{"name": "\\u0066", "arguments": {BODY}}}{D}': [F],
    f'{B}g{S}{{"name" : "f", "arguments": {BODY}}}{D}': [F],
    f'{B}g{S}{{"name" /**/: "f", "arguments": {BODY}}}{D}': [
        Call("g", '{"name":"f","arguments":{"x":1}}', mended=True)
    ],
    f'{B}g{S}{{"name": 3, "arguments": {BODY}}}{D}': [Call("g", f'{{"name": 3, "arguments": {BODY}}}')],
    f"{B}f{S}null{D}": [Call("f", "{}")],
    f'{B}cu{S}{{"input": "ls"}}{D}': [Call("cu", '{"input": "ls"}')],
    f'{B}cu{S}{{"cmd": "ls"}}{D}': [Call("cu", '{"input":"ls"}', left=True)],
    f'{B}cu{S}{{"cmd" "ls"}}{D}': [Call("cu", '{"input":"{\\"cmd\\" \\"ls\\"}"}')],
    f"{B}cu{S}{{}}{D}": [Call("cu", '{"input":""}')],
    f"{B}cu{S}{{ }}{D}": [Call("cu", '{"input":""}')],
    f"{B}cu{S}{D}": [NO_ARGUMENTS],
    f'{B}f{S}{BODY} {{"y": 2}}{D}': [F, LEFT],
    f"{B}f{S}{BODY} {SAID}{D}": [F, LEFT],
}
"""What a body behind a name says."""


@pytest.mark.parametrize("markup", SAYS)
def test_whose_call_a_body_is_that_stands_behind_a_name(markup: str) -> None:
    assert read(f"{markup}b", **FREE) == (SAYS[markup], "b")


def test_the_name_that_a_body_says_may_be_as_long_as_an_id() -> None:
    for limit, length, own in ((1000, 300, True), (9, 9, True), (9, 10, False)):
        name = "n" * length
        body = f'{{"name": "{name}", "arguments": {BODY}}}'
        asked: dict[str, Any] = {"limits": Limits(id_chars=limit), "tools": {"g": {}, name: {}}}
        assert read(f"{B}g{S}{body}{D}", **asked) == ([Call(name, BODY) if own else Call("g", body)], "")


@pytest.mark.parametrize(
    ("markup", "parts"),
    [
        (f'{B}f{S}{{"x": "aa', [Part("f", '{"x": "aa')]),
        (f'{B}f{S}{{"{"x" * 65}": "aa', [Part("f", f'{{"{"x" * 65}": "aa')]),
        (f'{B}f{S}{{"name": 3, "x": "aa', [Part("f", '{"name": 3, "x": "aa')]),
        (f'{B}f{S}{{"name": "z", "x": "aa', [Part("f", '{"name": "z", "x": "aa')]),
        (f'{B}f{S}{{"name": "f", "arguments": {{"x": "aa', [Part("f", "")]),
        (f'{B}f{S}{{"name": "g", "arguments": {{"x": "aa', []),
        (f'{B}f{S}{{"id": "1", "name": "f", "arguments": {{"x": "aa', []),
        (f'{B}function{S}{{"name": "f", "arguments": {{"x": "aa', [Part("f", '{"x": "aa')]),
        (f'{B}function{S}{{"name": "z", "arguments": {{"x": "aa', []),
        (f"{B}function{S}[{SAID}", []),
        (f'{B}{{"name": "f", "arguments": {{"x": "aa', [Part("f", '{"x": "aa')]),
    ],
)
def test_a_call_is_told_early_if_its_name_is_certain(markup: str, parts: list[Found]) -> None:
    assert told(markup) == parts


TAG = "<tool_call name=f arguments='{\"x\": 1}'>"
OTHER = '{"name": "g", "arguments": {"y": 2}}'
G = Call("g", '{"y": 2}', left=True)
END = "</tool_call>"
WHOLE: dict[str, list[Any]] = {
    f"{TAG}\ufeff{OTHER}{END}": [G],
    f"{TAG}\u200b\n```json\n{OTHER}\n```{END}": [G],
    f"{TAG}{OTHER}{END}": [G],
    f"{TAG}\u200b{END}": [F],
    f"{TAG}{END}": [F],
    f"{TAG}words{END}": [F, LEFT],
    f"{TAG}```sh\nwords\n```{END}": [F, LEFT],
    f"{TAG}words {OTHER}{END}": [F, LEFT],
    f"<tool_call name=f arguments=3>words{END}": [NO_ARGUMENTS, LEFT],
    f"<tool_call name=f arguments=3>{END}": [NO_ARGUMENTS],
    "<tool_call name=f arguments=\"{'x': 1}\"/>": [Call("f", '{"x":1}', mended=True)],
    '<tool_call name=cu input="ls"/>': [Call("cu", '{"input":"ls"}')],
    "<tool_call name='f'/>": [NO_BODY],
    "<tool_call name=f arguments=\"{'x': 1}\">words</tool_call>": [Call("f", '{"x":1}', mended=True), LEFT],
    "<tool_call name=f arguments=\"{'x': 1}\"></tool_call>": [Call("f", '{"x":1}', mended=True)],
    f"<tool_call name=cu>{END}": [NO_BODY],
    f"<tool_call name=cu>\ufeff{END}": [NO_BODY],
    f"<tool_call name=cu>{{}}{END}": [Call("cu", '{"input":""}')],
    f"<tool_call name=cu>```json\n{{ }}\n```{END}": [Call("cu", '{"input":""}')],
    f'<tool_call name=cu>\ufeff{{"input": "ls"}}{END}': [Call("cu", '{"input": "ls"}')],
    f"<tool_call name=cu>\u200bls{END}": [Call("cu", '{"input":"\u200bls"}')],
    f"<tool_call name=cu><tool_call name=g>{BODY}{END}": [Call("g", BODY, left=True)],
}
"""Tags that say something of their call, with what stands in them."""


@pytest.mark.parametrize("markup", WHOLE)
def test_what_stands_in_a_tag_that_names_its_tool(markup: str) -> None:
    assert read(f"{markup}b", **FREE) == (WHOLE[markup], "b")


FENCED: dict[str, list[Any]] = {
    f"<tool_call>\n```word\n{SAID}\n```\n{END}": [Call("f", '{"x": 1}', left=True)],
    f"<tool_call>```\n{SAID}\n{'so ' * 99}\n```{END}": [F, LEFT],
    f"<tool_call><tool_call>```\n{SAID}\n```{END}": [F],
    f"{B}```word\n{SAID}\n```{D}": [Call("f", '{"x": 1}', left=True)],
    f"{B}```\n{SAID}\n{'so ' * 99}\n```{D}": [F, LEFT],
    f"{SB}```word\n{SAID}\n```{SE}": [Call("f", '{"x": 1}', left=True)],
    f"{B}f{S}```\n{BODY}\n{'so ' * 99}\n```{D}": [F, LEFT],
    f"{B}f\n```word\n{BODY}\n```{D}": [Call("f", '{"x": 1}', left=True)],
}
"""Bodies in a fence."""


@pytest.mark.parametrize("markup", FENCED)
def test_a_fence_round_a_body_is_taken_with_what_it_says(markup: str) -> None:
    assert read(f"{markup}b") == (FENCED[markup], "b")


@pytest.mark.parametrize(
    ("behind", "mentioned", "made"),
    [
        (" words", False, True),
        (" words", True, False),
        ("words", True, False),
        ("\nwords", True, True),
        ("\r\nwords", True, True),
        ("", True, True),
        (f" <tool_call>{SAID}", True, True),
        (f" {B}{SAID}", True, True),
        (" <tool_call> words", True, False),
    ],
)
def test_a_tag_that_says_its_call_and_that_nothing_closes(behind: str, mentioned: bool, made: bool) -> None:
    assert read(f"{TAG}{behind}", line=not mentioned) == (([F], behind) if made else (Refused, ""))
    assert read(f"{TAG}{behind}", line=False, glued=True) == ([F], behind)
    assert read(f"<tool_call name=f arguments=3>{behind}") == (Refused, "")


def test_of_free_text_that_has_not_begun_nothing_is_cut() -> None:
    assert read("<tool_call name=cu>", **FREE) == (Refused, "")
    assert read("<tool_call name=cu>\ufeff \n", **FREE) == (Refused, "")
    assert read("<tool_call name=cu>l", **FREE) == (Unfinished, "")
