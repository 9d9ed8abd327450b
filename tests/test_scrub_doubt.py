"""Strings and comments that strict JSON does not hold, and that nothing ends: the closer of the body does."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.errors import UpstreamError
from pipeline.events import MessageDelta, StopReason
from pipeline.message import ToolUse
from tests.canonical import BEGIN, TEXT, start, text
from tests.scrubbing import HIDING, MARKUP, PROMPT, F, Scrubbed, at_every_cut, said
from tests.test_scrub_broken import NO_ARGUMENTS, NONE, B, D, E, O, S

MENDED = ("mended", "the JSON of a call")
EARLY = evolve(PROMPT, stream_calls=True)
CUT = MessageDelta(StopReason.MAX_TOKENS)
NEVER_ENDS = (
    '{"a":“x"}',
    '{"a":‘x\'}',
    '{"a":“x}',
    "{'a':'x}",
    '{"a":x it\'s}',
    '{"u":http://x}',
    '{"a":1 /* c }',
    '{"a":[1, /* c ]}',
    '{"a":<|"|>x}',
    '{"a":{"b":‘c}}',
    '{"a":“{x}"}',
    '{"a":“\\“x}',
)
"""Arguments with something that would end behind them, with all their brackets."""
UNCLOSED = ('{"a":“x"', "{'a':'x", '{"a":1 /* c', '{"a":<|"|>x', '{"a":“x{"', '{"a":“x} \'', "{‘a\\")
"""The same without."""


@pytest.mark.parametrize("options", [PROMPT, HIDING])
@pytest.mark.parametrize("arguments", [*NEVER_ENDS, *UNCLOSED])
def test_a_body_whose_string_never_ends_takes_none_behind_it_along(arguments: str, options: Any) -> None:
    whole = arguments in NEVER_ENDS
    body = f'{{"name": "f", "arguments": {arguments}{"}" if whole else ""}'
    for behind in (f" and {MARKUP} end", f"\n{MARKUP}\n{MARKUP}", " and end", f' and {B}f{S}{{"x": 1}}{D} end'):
        out = at_every_cut(f"{O}{body}{E}{behind}", options=options)
        assert [one for one in out.content if isinstance(one, tuple)] == [F] * (behind.count(E) + behind.count(D))
        assert "".join(one for one in out.content if isinstance(one, str)).split() == [
            word for word in ("and", "end") if word in behind
        ]
        assert out.lost == [("dropped", NONE)]


@pytest.mark.parametrize("fence", [("", ""), ("```json\n", "\n```"), ("~~~\n", "\n~~~")])
@pytest.mark.parametrize("arguments", [*NEVER_ENDS, *UNCLOSED])
def test_so_it_is_between_deepseeks_tokens(arguments: str, fence: tuple[str, str]) -> None:
    body = arguments.join(fence)
    out = at_every_cut(f'{B}f{S}{body}{D} and {B}f{S}{{"x": 1}}{D} end')
    assert out.content == ["and ", F, " end"]
    assert out.lost == [("dropped", NO_ARGUMENTS)]


@pytest.mark.parametrize("arguments", NEVER_ENDS)
@pytest.mark.parametrize("frame", [("", ""), ("```json\n", "\n```")])
def test_what_follows_it_does_not_wait(arguments: str, frame: tuple[str, str]) -> None:
    body = f'{{"name": "f", "arguments": {arguments}}}'.join(frame)
    stage = Scrubbed().stage()
    for event in (BEGIN, start(0, TEXT), text(0, f"{O}{body}{E}")):
        stage.receive([event])
    assert [*stage.receive([text(0, "a")])][-1] == text(0, "a")
    assert stage.held == 0


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ('{“name": "f", "arguments": {"x": 1}}', ("f", '{"x":1}')),
        ("{‘name': 'f', ‘arguments': {\"x\": 1}}", ("f", '{"x":1}')),
        ('{“name": "f", "arguments": {"x": 1}', ("f", '{"x":1}')),
        (f"{{'name': 'f', 'arguments': {{'x': 'a {E} b'}}}}", ("f", f'{{"x":"a {E} b"}}')),
        (f"{{'name': 'f', 'arguments': {{'x': '}} {E} b'}}}}", ("f", f'{{"x":"}} {E} b"}}')),
        (f"{{'name': 'f', 'arguments': {{'x': '}}}} a {E} b'}}}}", ("f", f'{{"x":"}}}} a {E} b"}}')),
        (f"{{'name': 'f', 'arguments': {{“x”: “{O}{{}}{E} {O}{{}}{E}”}}}}", ("f", f'{{"x":"{O}{{}}{E} {O}{{}}{E}"}}')),
        (f"{{'name': 'f', 'arguments': {{‘x’: <|\"|>a {E}<|\">}}}}", ("f", f'{{"x":"a {E}"}}')),
        (f'{{"name": "f", "arguments": {{"x": 1 /* {E} */}}}}', ("f", '{"x":1}')),
        (f'{{"name": "f", "arguments": {{"x": 1 // {O}{{}}{E}\n}}}}', ("f", '{"x":1}')),
        (f"{{'name': 'f', 'arguments': {{'x': '\\' {E} b'}}}}", ("f", f'{{"x":"\' {E} b"}}')),
    ],
)
def test_what_can_be_mended_still_is(body: str, made: tuple[str, str]) -> None:
    out = at_every_cut(f"{O}{body}{E} and {MARKUP} end")
    assert out.content == [made, "and ", F, " end"]
    assert out.lost == [MENDED]


@pytest.mark.parametrize("quote", ["'", "“", "‘", "/*"])
def test_a_quote_too_many_costs_no_other_call(quote: str) -> None:
    whole = '{"name": "f", "arguments": {"a": "Paris", "n": 3, "l": ["a", "b"]}}'
    for at in range(1, len(whole)):
        out = Scrubbed().give(*said(f"{O}{whole[:at]}{quote}{whole[at:]}{E}\n{MARKUP} end"))
        assert out.content[-2] == F, whole[:at]
        assert out.content[-1].strip() == "end", whole[:at]
        assert len(out.content) == 3 or out.lost, whole[:at]


@pytest.mark.parametrize(
    "begun", [f'{{"a": “x {O}{{}}{E}', f"{{'a': 'x {O}{{ ", '{"a": /* x', "{'a': 'x", '{"a": "x' + E]
)
def test_a_message_that_ends_in_a_string_or_a_comment_is_shown_where_no_closer_stands(begun: str) -> None:
    out = at_every_cut(f"{O}{begun}")
    assert (out.content, out.lost) == ([f"{O}{begun}"], [])


@pytest.mark.parametrize("begun", [f"“x {E}", f"'x {E} '", f"/* x {E}"])
def test_a_call_that_was_told_ends_with_a_message_that_its_limit_cut(begun: str) -> None:
    body = f'{O}{{"name": "f", "arguments": {{"a": 1, "b": {begun}'
    out = Scrubbed(EARLY).give(*said(body, end=CUT))
    (call,) = out.message.content
    assert isinstance(call, ToolUse)
    assert (call.name, call.arguments, out.lost) == ("f", '{"a": 1', [])
    with pytest.raises(UpstreamError):
        Scrubbed(EARLY).give(*said(f"{body}{MARKUP}"))


@pytest.mark.parametrize("too_many", [",", ":", "[", "]", ", ", "\n:"])
def test_a_sign_too_many_at_the_beginning_of_a_body_is_no_prose(too_many: str) -> None:
    for closer in (E, f"{E}\n{MARKUP}"):
        out = at_every_cut(f'{O}{{{too_many}"name": "f", "arguments": {{"x": 1}}}}{closer}')
        assert (out.content, out.lost) == ([F] * (closer != E), [("dropped", NONE)])
    for prose in ("{...}", "{ <json> }", "{…}", "{1}"):
        assert at_every_cut(f"{O}{prose}{E}").content == [f"{O}{prose}{E}"]
