"""stages.scrub.strings: control characters name nothing, and half a character becomes U+FFFD."""

import json

import pytest
from attrs import evolve

from pipeline.message import ToolUse, assemble
from pipeline.route import AnswerOptions
from stages.scrub.calls import NO_NAME
from stages.scrub.strings import whole_escapes
from tests.exchange import answered, opened, route, whole
from tests.scrubbing import PROMPT, SIZES, Scrubbed, at_every_cut, cuts, said
from tests.support import DONE, finish, sse
from tests.support import text as spoken

EARLY = evolve(PROMPT, stream_calls=True)
LONE, FIRST, SECOND = "\\ud800", "\\ud83d", "\\ude00"
MENDED = ("mended", "the JSON of a call")

FORMS = {
    "body": '<tool_call>{"name": "NAME", "arguments": {"x": "VALUE"}}</tool_call>',
    "arguments first": '<tool_call>{"arguments": {"x": "VALUE"}, "name": "NAME"}</tool_call>',
    "function": '<tool_call>{"function": {"name": "NAME", "arguments": {"x": "VALUE"}}}</tool_call>',
    "array": '<tool_call>[{"name": "NAME", "arguments": {"x": "VALUE"}}]</tool_call>',
    "mended": '<tool_call>{"name": "NAME", "arguments": {"x": "VALUE",}}</tool_call>',
    "attribute": '<tool_call name="NAME">{"x": "VALUE"}</tool_call>',
    "V3": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n{"x": "VALUE"}\n```<｜tool▁call▁end｜>',
    "V3.1": '<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{"x": "VALUE"}<｜tool▁call▁end｜>',
    "tokens": '<｜tool▁call▁begin｜>{"name": "NAME", "arguments": {"x": "VALUE"}}<｜tool▁call▁end｜>',
}
"""Each form of a call."""

SAYS = {
    f"a{LONE}b": "a\ufffdb",
    f"{FIRST}{SECOND}": "😀",
    f"{FIRST}": "\ufffd",
    f"{SECOND}{FIRST}": "\ufffd\ufffd",
    f"{FIRST}{FIRST}{SECOND}": "\ufffd😀",
    f"\\\\ud800 {LONE}": "\\ud800 \ufffd",
    f"{LONE}\\n{LONE}\\u0041": "\ufffd\n\ufffdA",
}
"""What strings with halves of characters say."""


def made(form: str, name: str = "f", value: str = "1") -> str:
    return FORMS[form].replace("NAME", name).replace("VALUE", value)


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", SAYS)
def test_half_a_character_in_arguments_becomes_u_fffd(value: str, form: str, options: AnswerOptions) -> None:
    whole = f"a {made(form, value=value)} b"
    for parts in ([whole], *(cuts(whole, size) for size in SIZES)):
        out = Scrubbed(options).give(*said(*parts))
        (before, (name, arguments), behind) = out.content
        assert (before, name, behind) == ("a ", "f", " b")
        assert "\\ud800" not in arguments.replace("\\\\ud800", "")
        assert json.loads(arguments) == {"x": SAYS[value]}
        assert out.lost == ([] if value == f"{FIRST}{SECOND}" and form != "mended" else [MENDED])


@pytest.mark.parametrize("value", SAYS)
def test_so_it_does_where_arguments_were_encoded_twice(value: str) -> None:
    for inner in (f'{{"x": "{value}"}}', f'{{"x": "{value}",}}'):
        for text in (json.dumps(inner), '"' + inner.replace('"', '\\"') + '"'):
            out = at_every_cut(f'<tool_call>{{"name": "f", "arguments": {text}}}</tool_call>')
            if text == json.dumps(inner) or not ("\\\\" in value or "\\n" in value):
                assert json.loads(out.content[0][1]) == {"x": SAYS[value]}
                out.content[0][1].encode()


def test_the_text_of_whole_characters_stays_as_it_is_written() -> None:
    for text in (r'{"a": "\ud83d\ude00", "b":  "\\ud800"}', '{"a": 1}', '{"a": "😀"}'):
        assert whole_escapes(text) == text
    assert whole_escapes(r'{"a": "\ud83d", "b":  "\\\ude00"}') == r'{"a": "\ufffd", "b":  "\\\ufffd"}'


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("value", [f"a{LONE}b", f"{FIRST}{SECOND}"])
def test_a_stream_at_any_cut_and_a_whole_answer_say_the_same(value: str, options: AnswerOptions) -> None:
    written = made("body", value=value)
    streams = [sse(*map(spoken, cuts(written, size)), finish(), DONE) for size in (1, 3, 1000)]
    for raw, streamed in ((whole(content=written), False), *((stream, True) for stream in streams)):
        exchange = opened(streamed, route(answers=options), tools=[{"name": "f", "input_schema": {"type": "object"}}])
        got = answered(exchange, raw)
        assert [block["input"] for block in got.message["content"]] == [{"x": SAYS[value]}]
        assert got.message["stop_reason"] == "tool_use"


NO_NAMES = ["f\\u0000", "\\u0000", "f\\ng", "\\u001bf", "f\\u007f", "f\\u0085g", f"f{LONE}", f"{FIRST}x"]


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_a_name_names_no_tool(form: str, name: str, options: AnswerOptions) -> None:
    if form in ("attribute", "V3", "V3.1"):
        name = json.loads(f'"{name}"')
        if "\n" in name or not name.isascii():
            pytest.skip("there it ends the name, or cannot come")
    whole = f"a {made(form, name)} b"
    for parts in ([whole], *(cuts(whole, size) for size in SIZES)):
        out = Scrubbed(options).give(*said(*parts))
        assert out.content == ["a  b"]
        assert ("dropped", NO_NAME.reason) in out.lost


def test_blanks_round_a_name_are_none_of_it() -> None:
    for options in (PROMPT, EARLY):
        for form in FORMS:
            name = " f " if form[0] != "V" else "f "
            out = Scrubbed(options).give(*said(*made(form, name)))
            assert [part.name for part in assemble(out.events).content if isinstance(part, ToolUse)] == ["f"]
            assert not [reason for action, reason in out.lost if action == "dropped"]
