"""stages.scrub.families.deepseek: whose call a body says, what belongs to which call, and the forms of a section."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.events import MessageDelta, StopReason
from stages.scrub.families.deepseek import CALL, CALL_END, SECTION, SECTION_END, SEPARATOR
from tests.canonical import BEGIN, TEXT, start, text
from tests.scrubbing import CALL as SAID
from tests.scrubbing import HIDING, PROMPT, F, Scrubbed, at_every_cut, cuts, scrubbed

EARLY = evolve(PROMPT, stream_calls=True)
B, D, S = CALL[0], CALL_END[0], SEPARATOR[0]
SB, SE = SECTION[0], SECTION_END[0]
ONE = f'{B}f{S}{{"x": 1}}{D}'
OTHER = SAID.replace('"f"', '"z"')
LENGTH = MessageDelta(StopReason.MAX_TOKENS)
G: dict[str, Any] = {"g": {"properties": {"name": {}, "arguments": {}, "text": {}}}}


def framed(markup: str) -> tuple[str, str]:
    return markup, f"{SB}{markup}{SE}"


SAYS: dict[str, list[Any]] = {
    f"{B}function{S}{SAID}{D}": [F],
    f"{B}f{S}{SAID}{D}": [F],
    f"{B}g{S}{SAID}{D}": [F],
    f"{B}g{S}\n```json\n{SAID}\n```{D}": [F],
    f"{B}function{S}g\n```json\n{SAID}\n```{D}": [F],
    f"{B}function{S}[{SAID}, {SAID}]{D}": [F, F],
    f"{B}function{S}{OTHER}{D}": [("z", '{"x": 1}')],
    f'{B}f{S}{{"id": "1", "name": "g", "arguments": {{}}}}{D}': [("g", "{}")],
    f'{B}function{S}{{"arguments": {{"x": 1}}, "name": "f"}}{D}': [F],
    f"{B}f{S}{{'name': 'g', 'arguments': {{}}}}{D}": [("g", "{}")],
    f'{B}f{S}{{"name": "z", "arguments": {{}}}}{D}': [("f", '{"name": "z", "arguments": {}}')],
    f'{B}f{S}{{"name": "g", "y": 1}}{D}': [("f", '{"name": "g", "y": 1}')],
    f'{B}f{S}{{"name": 3, "input": 1}}{D}': [("f", '{"name": 3, "input": 1}')],
    f'{B}f{S}{{"id": 3}}{D}': [("f", '{"id": 3}')],
    f'{B}f{S}{{"x": 1, "name": "g", "arguments": {{}}}}{D}': [("f", '{"x": 1, "name": "g", "arguments": {}}')],
    f'{B}function{S}{{"name": "Bob", "y": 1}}{D}': [("function", '{"name": "Bob", "y": 1}')],
}
"""Whose call a body is."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("markup", SAYS)
def test_a_body_that_says_a_call_of_a_tool_is_that_one(markup: str, options: Any) -> None:
    for whole in framed(markup):
        out = at_every_cut(whole, options=options)
        assert out.content == SAYS[markup]
        assert set(out.lost) <= ({("mended", "the JSON of a call")} if "'" in markup else set())


@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_what_a_tool_calls_its_own_arguments_says_no_call(options: Any) -> None:
    for body in ('{"name": "f", "arguments": {"x": 1}}', '{"name": "g"}', '{"name": "f", "text": "a"}'):
        for markup in (f"{B}g{S}{body}{D}", f"{B}function{S}g\n```json\n{body}\n```{D}"):
            assert at_every_cut(markup, options=options, tools={"f": {}, **G}).content == [("g", body)]
    for schema in ({}, {"properties": None}):
        tools: dict[str, Any] = {"function": schema, "f": {}}
        out = at_every_cut(f'{B}function{S}{{"name": "z", "input": {{}}}}{D}', options=options, tools=tools)
        assert out.content == [("function", '{"name": "z", "input": {}}')]


def test_arguments_are_told_as_they_come_unless_they_may_say_a_call() -> None:
    for body, early in (('{"x": "aaaa', True), ('{"name": "Bob", "x": "aaaa', True), ('{"id": "aaaa', False)):
        stage = Scrubbed(EARLY).stage()
        stage.receive([BEGIN, start(0, TEXT)])
        assert bool(stage.receive([text(0, f"{B}f{S}{body}")])) == early


@pytest.mark.parametrize("behind", [f'{B}g{S}{{"y": ', B, f"{B} prose", f"{B}g", B[:13], f"{B}g{S}a", f"{SB}{B}g{S}"])
@pytest.mark.parametrize("glue", ["", "\n"])
def test_what_closes_a_call_belongs_to_it_whatever_comes_behind(behind: str, glue: str) -> None:
    for before in (ONE, f"{SB}{ONE}", f"{SB}{ONE}{glue}{ONE}", f"{B}f{S}{{}}{D}", f"{B}{SAID}{D}"):
        for options in (PROMPT, HIDING):
            out = at_every_cut(f"{before}{glue}{behind}", options=options, end=LENGTH)
            shown = [one for one in out.content if isinstance(one, str)]
            assert len(out.content) - len(shown) == before.count(B)
            hidden = options is HIDING and bool(out.lost)
            assert shown == ([] if hidden else [behind])
            assert out.message.stop_reason is StopReason.MAX_TOKENS


EMPTY = ["", "\n", "null", " null\n", "```json\n```", "```\n\n```", "\n```json\nnull\n```", " " * 100]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_a_name_with_nothing_behind_it_is_a_call_without_arguments(empty: str, options: Any) -> None:
    for opening in (f"{B}f{S}", f"{B}function{S}f\n"):
        for closing in (D, SE):
            out = at_every_cut(f"{SB}{opening}{empty}{closing}b", options=options)
            assert (out.content, out.lost) == ([("f", "{}"), "b"], [])
    assert at_every_cut(f"{B}f{S}{empty}").content == [f"{B}f{S}{empty}"]


def test_so_is_a_tool_that_is_called_as_the_mere_kind_is() -> None:
    assert at_every_cut(f"{B}function{S}{D}", tools={"function": {}}).content == [("function", "{}")]
    assert at_every_cut(f"{B}function{S}{D}").lost == [("dropped", "the markup of a call names no tool")]


FORMS: dict[str, list[Any]] = {
    f"{SB}{SAID}{SE}": [F],
    f"{SB}\n{SAID}\n{SE}": [F],
    f"{SB}[{SAID}, {SAID}]{SE}": [F, F],
    f"{SB}```json\n{SAID}\n```{SE}": [F],
    f"{SB}{SAID}{D}{SE}": [F],
    f"{SB}{SAID}": [F],
    f"{SB}{SAID}\n{SAID}{SE}": [F, F],
    f"{B}{SAID},{SAID}{D}{ONE}{SE}": [F, F, F],
    f"<|tool_calls|>[{SAID}]<|/tool_calls|>": [F],
    f"{B}[{SAID}]{D}": [F],
    f"{B}\n[ {SAID} , {SAID} ]\n{D}": [F, F],
    f"{SB}I look.{ONE}{SE}": ["I look.", F],
    f"{SB}\nI look:\n{ONE}{ONE}{SE}": ["I look:\n", F, F],
    f'{B}f\n{{"x": 1}}{D}': [F],
    f'{B}f \n\n {{"x": 1}}{D}': [F],
    f'{B}f\n```json\n{{"x": 1}}\n```{D}': [F],
    f"{B}g\n{SAID}{D}": [F],
}


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("markup", FORMS)
def test_the_forms_of_a_section_and_of_a_call(markup: str, options: Any) -> None:
    for before in ([], ["a "]):
        out = at_every_cut("".join(before) + markup, options=options)
        shown = FORMS[markup]
        if before and isinstance(shown[0], str):
            assert out.content[0].split() == ["a", *shown[0].split()]
            assert out.content[1:] == shown[1:]
        else:
            assert out.content == [*before, *shown]
        assert out.lost == []


def test_behind_a_body_another_that_makes_no_call_is_text_where_nothing_closes_it() -> None:
    for opener in (B, SB):
        assert at_every_cut(f'{opener}{SAID}\n{{"a": 1}}\nand so on').content == [F, '{"a": 1}\nand so on']
        out = at_every_cut(f'{opener}{SAID}\n{{"a": 1}}{D}b')
        assert (out.content, out.lost) == ([F, "b"], [("dropped", "the markup of a call names no tool")])


@pytest.mark.parametrize("at", range(len(CALL)))
def test_so_in_every_spelling(at: int) -> None:
    for markup in (*FORMS, *SAYS):
        other = markup
        for tokens in (SECTION, SECTION_END, CALL, CALL_END, SEPARATOR):
            other = other.replace(tokens[0], tokens[at])
        assert scrubbed(*cuts(other, 3)).content == scrubbed(markup).content
    bare = SECTION[len(CALL) + at]
    assert scrubbed(f"{bare}{SAID}{SE}").content == [F]


PROSE = [
    f"The tokens {SB} and {B} open.",
    f"The token {SB} and then `{ONE}`.",
    f"{SB}{'many words ' * 9}",
    f"{SB}{{ 1 is a set",
    f"{B}{{ 1 is a set",
    f"{SB}[1] is a reference",
    f"{B}[1] is a reference",
    f"{B}f\nand so on",
    f"{B}f\n",
    f"{B}a word\n{{}}",
    f"{B}f\n[1]",
]


@pytest.mark.parametrize("options", [PROMPT, HIDING])
@pytest.mark.parametrize("prose", PROSE)
def test_what_speaks_of_them_is_text(prose: str, options: Any) -> None:
    out = at_every_cut(prose, options=options)
    assert (out.content, out.lost) == ([prose], [])


@pytest.mark.parametrize(
    "opening", [B, SB, f"{B}f{S}", f"{B}function{S}", f"{B}function{S}f ", f"{B}function{S}f\n", f"{SB}{B}"]
)
@pytest.mark.parametrize("word", ["prose ", "那是文字", "it's-"])
def test_of_prose_at_most_64_characters_are_held(opening: str, word: str) -> None:
    prose = opening + word * 100
    for size in (1, 7):
        out = scrubbed(*cuts(prose, size))
        assert out.content == [prose]
        assert out.most <= len(opening.encode()) + (64 + size + 7) * max(len(char.encode()) for char in word)


def test_a_long_name_is_one() -> None:
    for name in ("n" * 250, "my tool", "a" * 64, "werk" * 16):
        out = at_every_cut(f'{B}{name}{S}{{"x": 1}}{D}')
        assert out.content == [(name, '{"x": 1}')]
    assert scrubbed(*cuts(f"{B}function{S}{'n' * 250}\n```json\n{{}}\n```{D}", 7)).content == [("n" * 250, "{}")]
