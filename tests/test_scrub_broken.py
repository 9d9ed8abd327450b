"""Bodies that break off or cannot be read: nothing in their strings ends them, and what was cut is not called."""

import json
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from attrs import evolve

from stages.scrub.families import FAMILIES
from stages.scrub.families.deepseek import CALL, SECTION
from stages.scrub.families.hermes import OPENERS
from stages.scrub.grammar import Source
from stages.scrub.openers import openings
from tests.scrubbing import CALL as BODY
from tests.scrubbing import HIDING, MARKUP, PROMPT, F, at_every_cut, cuts, scrubbed

O, E = "<tool_call>", "</tool_call>"  # noqa: E741
B, D, S = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
SB, SE = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
NONE = "what stands in the markup of a call is no JSON object"
NO_ARGUMENTS = "the arguments of a call are no JSON object"
BROKEN = "a call broke off where other markup begins"
INNER = "<tool_call>{'name': 'g', 'arguments': {'path': '/'}}</tool_call>"
EARLY = evolve(PROMPT, stream_calls=True)
ODD = ("", ">", "> a", "s>{", "_id>{", " is", '"', "`", "``>{")
"""What stands behind an opener that opens nothing."""


@pytest.mark.parametrize("options", [PROMPT, HIDING])
@pytest.mark.parametrize(
    "body",
    [
        f'{{"name": "f" "arguments": {{"text": "Example: {INNER}"}}}}',
        f'{{"name": "f", "arguments": {{"n": 1 "text": "Example: {INNER}"}}}}',
        f'{{"name": "f", "arguments": {{"n": [1}}, "text": "Example: {INNER}"}}}}',
        f'{{"name": "f" "arguments": {{"text": "a \\" b {E}"}}}}',
        f"{{'name': 'f' 'arguments': {{'text': 'Example: {MARKUP}'}}}}",
        f'{{"name": "f", "arguments": {{"text": "Wrap it in a "{O}" tag"}}}}',
        f'{{"name": "f", "arguments": {{"text": "say "hi", and {O} too"}}}}',
        f'{{"name": "f" "arguments": {{"x": "a" "b {E} c": "d"}}}}',
        '{"name": "f" "arguments": {"x": "<tool_calls>"}}',
        '{"name": "f" "arguments": {"x": "<toolcall"}}',
        '{"name": "f" "arguments": {"x": <tool_call_id>3}}',
        '{"name": "f" "arguments": {"x": 1}} <tool_call matters',
        '{"name" f <tool_calling ',
        '{"name" f <tool_call>! ',
        '{"name" f " ',
        '{"name": ""x}',
    ],
)
def test_nothing_in_a_string_of_a_body_that_cannot_be_read_is_markup(body: str, options: Any) -> None:
    out = at_every_cut(f"{O}{body}{E} tail", options=options)
    assert out.content == ["tail"]
    assert out.lost == [("dropped", NONE)]


@pytest.mark.parametrize(
    "arguments",
    [
        f'{{"x" "a {B}g{S}{{}}{D} b"}}',
        f'{{"x" "a {B} b"}}',
        f'{{"x": "say "{B}" now"}}',
        f'{{"x": "say "{SB}" now"}}',
        f'{{"x" "a {SE} b"}}',
        f'{{"x": 1 {B}. 2}}',
    ],
)
def test_so_it_is_between_deepseeks_tokens(arguments: str) -> None:
    out = at_every_cut(f"{SB}{B}f{S}{arguments}{D}{SE} tail")
    assert out.content == ["tail"]
    assert out.lost == [("dropped", NO_ARGUMENTS)]


@pytest.mark.parametrize(
    ("body", "behind"),
    [
        ('{"name": "f", "arguments": {"x": "abc', "\n"),
        ('{"name": "f", "arguments": {"x": "abc}}', "\n"),
        ('{"name": "f" "arguments": {"x": "abc', 'He said "no", and'),
        ('{"name": "f" "x', ""),
        ('{"name" "f', ', "and so on"'),
    ],
)
def test_a_closer_in_what_only_looked_like_a_string_ends_the_body(body: str, behind: str) -> None:
    out = at_every_cut(f"{O}{body}{E}{behind}{MARKUP} tail")
    assert out.content == [*([behind] if behind.strip() else []), F, " tail" if behind.strip() else "tail"]
    assert out.lost == [("dropped", NONE)]


@pytest.mark.parametrize(
    ("begun", "made"),
    [
        ('{"name": "g", "arguments": {"y": 2}\n', True),
        ('{"arguments": {"y": 2}, "name": "g"\n', True),
        ('{"name": "g", "arguments": "{\\"y\\": 2}"', True),
        ('{"function": {"name": "g", "arguments": {"y": 2}}', True),
        ('[{"name": "g", "arguments": {"y": 2}}\n', True),
        ('[{"name": "g", "arguments": {"y": 2}}, ', True),
        ('{"name": "g", "arguments": {"y": 2}, ', False),
        ('{"name": "g", "arguments": {"y": 2}, "id": 1', False),
        ('{"name": "g", "arguments": {"y": 2', False),
        ('{"name": "g", "arguments": {"y": ', False),
        ('{"name": "g", "arguments": {', False),
        ('{"name": "g", "arguments": null', False),
        ('{"name": "g", ', False),
        ('{"name": "g"', False),
        ('{"function": {"name": "g"}', False),
    ],
)
@pytest.mark.parametrize("other", [MARKUP, f'{B}f{S}{{"x": 1}}{D}', f'{SB}{B}f{S}{{"x": 1}}{D}{SE}', f"{B}{BODY}{D}"])
def test_of_a_call_that_broke_off_only_the_last_bracket_may_be_missing(begun: str, made: bool, other: str) -> None:
    out = at_every_cut(f"{O}{begun}{other}")
    called = [(name, json.loads(arguments)) for name, arguments in out.content]
    assert called == [*([("g", {"y": 2})] if made else []), ("f", {"x": 1})]
    action, reason = out.lost[0]
    assert (action == "mended") if made else (action == "dropped" and reason in (BROKEN, NONE))


@pytest.mark.parametrize("begun", ['{"path": "/", ', '{"path": "/"', '{"path": "/" ', '{"a": {}'])
@pytest.mark.parametrize("other", [f'{B}f{S}{{"x": 1}}{D}', f'{SB}{B}f{S}{{"x": 1}}{D}{SE}', MARKUP])
def test_arguments_that_broke_off_are_none(begun: str, other: str) -> None:
    for opener in (f"{B}g{S}", f"{SB}{B}function{S}g\n```json\n", '<tool_call name="g">'):
        out = at_every_cut(f"{opener}{begun}{other}")
        assert out.content == [F]
        assert out.lost == [("dropped", BROKEN)]


def test_a_section_ends_a_body_before_it() -> None:
    for body in ('{"x": 1}\n', '{"x": 1} // a\n'):
        out = at_every_cut(f'{SB}{B}f{S}{body}{SB}{B}g{S}{{"y": 2}}{D}{SE}')
        assert [one for one in out.content if isinstance(one, tuple)] == [F, ("g", '{"y": 2}')]


def reading(steps: Generator[None, None, bool]) -> Iterator[bool]:
    """What some steps come to, if they need no more text."""
    try:
        next(steps)
    except StopIteration as end:
        yield end.value


@pytest.mark.parametrize("opener", [*OPENERS, *CALL, *SECTION])
def test_an_opener_is_one_only_where_markup_surely_begins(opener: str) -> None:
    found = openings(FAMILIES)
    behind = {
        **{f"{opener}{more}": opener in OPENERS for more in (">{", ">\n[", "|> ```", ' id="a">', " a = b")},
        **{f"{opener}{more}": opener in (*CALL, *SECTION) for more in ("{", "\n```", "[{", "\n[ {")},
        **{f"{opener}{more}": opener in CALL for more in (f"f{S}", f"function{S}", "f\n{", "f.g \n ```")},
        f"{opener}{B}": opener in SECTION,
        f"{opener}\n {B}": opener in SECTION,
        **dict.fromkeys((f"{opener}{more}" for more in ODD), False),
        f"{opener}{' ' * 200}{{": False,
    }
    for text, surely in behind.items():
        said: list[bool] = []
        for over in (True, False):
            said += [*reading(found.here(Source(text, 0, over)))]
        assert said == [surely, *([surely] if surely or len(text) > 200 else [])], text


@pytest.mark.parametrize(
    ("behind", "lost"),
    [
        (f" done{E}", ("dropped", "what stands beside the name and the arguments of a call")),
        (f"// done\n{E}", ("dropped", "what stands beside the name and the arguments of a call")),
        (f"}}{E}", ("mended", "the JSON of a call")),
        (f"\n}} \n}}{E}", ("mended", "the JSON of a call")),
        ("</tool_call >", None),
        ("</tool_call\n>", None),
        (E, None),
    ],
)
def test_what_stands_between_a_body_and_its_closer_is_recorded(behind: str, lost: tuple[str, str] | None) -> None:
    out = at_every_cut(f"{O}{BODY}{behind} tail")
    assert out.content == [F, "tail"]
    assert out.lost == ([] if lost is None else [lost])


def test_words_far_from_a_closer_are_the_readers() -> None:
    for words in ("a" * 65, f"{'a' * 60}\n{'b' * 5}"):
        out = at_every_cut(f"{O}{BODY} {words}{E}", options=HIDING)
        assert out.content == [F, words]
        assert out.lost == [("dropped", "a token of markup that has nothing to close")]
    for words in ("a" * 64, f"{'a' * 60}\n \n{'b' * 4}"):
        assert at_every_cut(f"{O}{BODY} {words}{E}b").content == [F, "b"]


def test_a_closer_that_is_hidden_is_recorded() -> None:
    out = at_every_cut(f"a{E}b", options=HIDING)
    assert (out.content, out.lost) == (["ab"], [("dropped", "a token of markup that has nothing to close")])
    out = at_every_cut(f"{MARKUP}{E}<|im_end|>b", options=HIDING)
    assert (out.content, out.lost) == ([F, "b"], [])


def test_arguments_beside_a_function_are_its_arguments() -> None:
    out = at_every_cut(f'{O}{{"function": {{"name": "f"}}, "arguments": {{"x": 1}}, "type": "function"}}{E}')
    assert (out.content, out.lost) == ([F], [])


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize(
    "body",
    [
        '{"name": "f", "arguments": {"x": 1}, "arguments": {"x": 2}}',
        '{"name": "f", "name": "g", "arguments": {"x": 1}}',
        '{"arguments": {"x": 1}, "name": "f", "arguments": {}, "arguments": []}',
    ],
)
def test_what_a_call_says_first_counts_and_the_rest_is_recorded(body: str, options: Any) -> None:
    out = at_every_cut(f"{O}{body}{E}{MARKUP}", options=options)
    assert (out.content, out.lost) == ([F, F], [("dropped", "what stands beside the name and the arguments of a call")])


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize(
    "body",
    [
        '{"name": "f", "arguments": {"x": 1}, "arguments": {"x": 2},}',
        '{"name": "f", "name": "g", "arguments": {"x": 1},}',
        '{{"name": "f", "arguments": {"x": 1}, "name": "g"}}',
        '[{"name": "f", "arguments": {"x": 1}, "arguments": 2},]',
        '{"function": {"name": "f", "arguments": {"x": 1}, "name": "g"}, "function": {},}',
        '{"arguments": {"x": 1}, "name": "f", "arguments": {}, "arguments": [],}',
    ],
)
def test_so_it_does_where_the_body_is_mended(body: str, options: Any) -> None:
    out = at_every_cut(f"{O}{body}{E}", options=options)
    assert [(name, json.loads(arguments)) for name, arguments in out.content] == [("f", {"x": 1})]
    assert sorted(action for action, _ in out.lost) == ["dropped", "mended"]


@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_of_what_arguments_say_twice_the_last_counts_as_it_does_to_readers_of_json(options: Any) -> None:
    for comma in ("", ","):
        for whole in (
            f'{O}{{"name": "f", "arguments": {{"name": 2, "name": 1{comma}}}}}{E}',
            f'{B}f{S}{{"name": 2, "name": 1{comma}}}{D}',
        ):
            out = at_every_cut(whole, options=options)
            assert [(name, json.loads(arguments)) for name, arguments in out.content] == [("f", {"name": 1})]


def test_so_it_is_recorded_where_the_body_is_mended() -> None:
    out = at_every_cut(f"{O}{{'name': 'f', 'arguments': {{'x': 2, 'x': 1}}}}{E}")
    assert out.content == [("f", '{"x":1}')]
    assert [action for action, _ in out.lost] == ["dropped", "mended"]


@pytest.mark.parametrize(
    "hostile",
    [
        '{"a" "' + "'\"" * 9000,
        '{"a" ' + '"b" ' * 9000,
        '{"a" ' + f"{O} " * 5000,
        '{"a" ' + f'"{O}": ' * 4000,
        '{"a" ' + f'{B}"' * 4000,
        '{"a": ' + f'"{O}", ' * 4000,
        '{"a" ' + "<tool_call a" * 4000,
    ],
)
def test_what_is_hostile_costs_no_more_than_its_length(hostile: str) -> None:
    for opener in (O, f"{B}f{S}"):
        out = scrubbed(*cuts(f"{opener}{hostile}", 4))
        assert out.content == [f"{opener}{hostile}"]
