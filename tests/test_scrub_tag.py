"""stages.scrub.tag, outside: an opening tag, and the calls that its attributes say."""

from typing import Any

import pytest
from attrs import evolve

from stages.scrub.calls import LEFT, NO_ARGUMENTS, NO_BODY, NO_NAME
from stages.scrub.grammar import Refused
from stages.scrub.tag import Tag, tag
from tests.scrubbing import CALL, MARKUP, PROMPT, F, Scrubbed, at_every_cut, at_every_size, cuts, said

CLOSED = Tag(closed=True)
EARLY = evolve(PROMPT, stream_calls=True)
GIVEN = ("f", '{"a":1}')


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        (">x", {}, "x"),
        (" \n>x", {}, "x"),
        ("|>x", {}, "x"),
        (" |>x", {}, "x"),
        ("/>x", CLOSED, "x"),
        (" />x", CLOSED, "x"),
        (" a='b'>x", {"a": "b"}, "x"),
        (' a = "b>"\n c-d.e=\'"\' >x', {"a": "b>", "c-d.e": '"'}, "x"),
        (' a=""/>x', Tag({"a": ""}, closed=True), "x"),
        (' a=""|>x', {"a": ""}, "x"),
        ("a>", Refused, ""),
        ("", Refused, ""),
        (" ", Refused, ""),
        ("/x", Refused, ""),
        ("/ >", Refused, ""),
        ("|x", Refused, ""),
        (" a>", Refused, ""),
        (" a b>", Refused, ""),
        (" a=b>x", {"a": "b"}, "x"),
        (" a=b c = d|>x", {"a": "b", "c": "d"}, "x"),
        (" a=b/>x", {"a": "b/"}, "x"),
        (" a=/b/c/ d=/>x", {"a": "/b/c/", "d": "/"}, "x"),
        (" a=b / >x", Refused, ""),
        (" a=b />x", Tag({"a": "b"}, closed=True), "x"),
        (" a='b'/>x", Tag({"a": "b"}, closed=True), "x"),
        (" a=b/|>x", {"a": "b/"}, "x"),
        (" a='b',c=d ,\te=f,>x", {"a": "b", "c": "d", "e": "f"}, "x"),
        (" a='\\'b\\\\'>x", {"a": "\\'b\\\\"}, "x"),
        (" a='b\\", Refused, ""),
        (" a='b'\"c\">", Refused, ""),
        (" a=b=c>", Refused, ""),
        (" a=,b=c>", Refused, ""),
        (" a=b,,c=d>", Refused, ""),
        (" ,a=b>", Refused, ""),
        (" a=>", Refused, ""),
        (" a=", Refused, ""),
        (" a=b", Refused, ""),
        (" a='b", Refused, ""),
        (" a='b'", Refused, ""),
        (" a='b'c='d'>", Refused, ""),
        (" 1='b'>", Refused, ""),
        (" X='b'>", {"X": "b"}, ""),
    ],
)
def test_a_tag_has_attributes_and_nothing_else(text: str, given: Any, left: str) -> None:
    assert at_every_size(tag, text) == (Tag(given) if isinstance(given, dict) else given, left)


ALONE: dict[str, Any] = {
    """name="f" arguments='{"a":1}'""": GIVEN,
    """name='f' arguments="{\\"a\\":1}\"""": GIVEN,
    """name="f" arguments="{&quot;a&quot;:1}\"""": GIVEN,
    """arguments='{"a":1}' id=1 type=function name="f\"""": GIVEN,
    """name="f" parameters='{"a":1}'""": GIVEN,
    """name="f" input='{"a": "&amp;\\\\n"}'""": ("f", '{"a": "&amp;\\\\n"}'),
    """name="f" arguments=\"\"""": ("f", "{}"),
    """name="f" arguments="null\"""": ("f", "{}"),
    """name="cu" input="ls -l\"""": ("cu", '{"input":"ls -l"}'),
}
"""What a tag says of a call, where it is all that does."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("attributes", ALONE)
def test_a_call_may_be_said_by_its_tag_alone(attributes: str, options: Any) -> None:
    for whole in (
        f"a <tool_call {attributes}/> b",
        f"a <tool_call {attributes}></tool_call> b",
        f"a <toolcall {attributes}>\n</toolcall> b",
        f"a <tool_call {attributes}>```\n</tool_call> b",
    ):
        out = at_every_cut(whole, options=options, freeform=("cu",))
        name, arguments = ALONE[attributes]
        assert out.content == ["a ", (name, "ls -l" if name == "cu" else arguments), " b"]
        assert out.lost == []


def test_what_is_mended_of_it_is_recorded() -> None:
    out = at_every_cut("""<tool_call name="f" arguments="{'a': 1}"/>""")
    assert (out.content, out.lost) == ([GIVEN], [("mended", "the JSON of a call")])


@pytest.mark.parametrize(
    ("attributes", "lost"),
    [
        ("", [NO_BODY]),
        ('id="1" name="f"', [NO_BODY]),
        ('name="f" path="x"', [NO_BODY, LEFT]),
        ("arguments='{}'", [NO_NAME]),
        ("arguments='{}' x=y", [NO_NAME, LEFT]),
        ("name=f arguments='[1]'", [NO_ARGUMENTS]),
        ("name=f arguments=go", [NO_ARGUMENTS]),
    ],
)
def test_a_tag_that_says_no_call_leaves_no_trace_but_in_the_ledger(attributes: str, lost: list[Any]) -> None:
    for behind in ("></tool_call>", " />"):
        out = at_every_cut(f"a <tool_call {attributes}{behind} b")
        assert out.content == ["a  b"]
        assert out.lost == [("dropped", one.reason) for one in lost]


BODIES: dict[tuple[str, str], tuple[Any, bool]] = {
    ("name=f arguments='{\"a\":1}'", "{}"): (GIVEN, False),
    ("name=f arguments='{\"a\":1}'", '{"name": "f"}'): (GIVEN, False),
    ("arguments='{\"a\":1}'", '{"name": "f"}'): (GIVEN, False),
    ("arguments='{\"a\":1}'", '{"name": "f", "arguments": {}}'): (GIVEN, False),
    ("arguments='{\"a\":1}'", '{"name": "f", "arguments": null}'): (GIVEN, False),
    ("arguments='{\"a\":1}' x=y", '{"name": "f"}'): (GIVEN, True),
    ("arguments='{\"a\":1}'", '{"name": "f", "b": 1}'): (GIVEN, True),
    ("name=f arguments='{\"a\":1}'", '{"x": 1}'): (F, True),
    ("arguments='{\"a\":1}'", CALL): (F, True),
    ("arguments=go", '{"name": "f"}'): (("f", "{}"), True),
    ("name=f path=/a/b/", '{"x": 1}'): (F, True),
    ("name=f path=/a/b/", CALL): (F, True),
    ("name=f id=1 type=function", CALL): (F, False),
}
"""What a tag and a body say together, and whether something is left."""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("both", BODIES)
def test_what_a_body_lacks_its_tag_may_say_and_all_else_that_it_says_is_recorded(
    both: tuple[str, str], options: Any
) -> None:
    attributes, body = both
    out = at_every_cut(f"<tool_call {attributes}>{body}</tool_call>", options=options)
    call, left = BODIES[both]
    assert out.content == [call]
    assert out.lost == ([("dropped", LEFT.reason)] if left else [])


def test_of_several_calls_in_a_body_none_is_given_the_arguments_of_the_tag() -> None:
    for bodies, calls in ((f'[{{"name": "g"}}, {CALL}]', [("g", "{}"), F]), (f'{{"name": "g"}}{CALL}', None)):
        for options in (PROMPT, EARLY):
            out = at_every_cut(f"<tool_call arguments='{{\"a\":1}}'>{bodies}</tool_call>", options=options)
            assert out.content == (calls or [("g", '{"a":1}'), F])
            assert out.lost == ([("dropped", LEFT.reason)] if calls else [])


def test_what_a_tag_says_beside_a_body_that_makes_no_call_is_recorded() -> None:
    out = at_every_cut("<tool_call path=/x>{}</tool_call>")
    assert (out.content, out.lost) == ([], [("dropped", NO_NAME.reason), ("dropped", LEFT.reason)])


def test_tags_round_a_tag_say_what_it_does_not() -> None:
    whole = '<tool_call name="f" path="x">\n<tool_call name="g">{"x": 1}</tool_call>'
    out = at_every_cut(whole)
    assert (out.content, out.lost) == ([("g", '{"x": 1}')], [("dropped", LEFT.reason)])


@pytest.mark.parametrize(
    "other", [MARKUP, '<tool_call name="f" arguments=\'{"x": 1}\'/>', f"<tool_call>\n```\n{CALL}```</tool_call>"]
)
def test_a_call_that_a_tag_says_is_one_where_another_begins_behind_it(other: str) -> None:
    for between in ("", "\n"):
        out = at_every_cut(f"""a <tool_call name="g" arguments='{{"a":1}}'>{between}{other} b""")
        assert (out.content, out.lost) == (["a ", ("g", '{"a":1}'), F, " b"], [])
    whole = """<tool_call name="g" arguments='{"a":1}'><tool_call> is no call"""
    assert at_every_cut(whole).content == [("g", '{"a":1}'), "<tool_call> is no call"]
    assert at_every_cut(f"a {whole}").content == [f"a {whole}"]


def test_a_slash_belongs_to_a_value_without_quotes_as_in_html() -> None:
    assert at_every_cut('<tool_call name=f/>{"x": 1}</tool_call>').content == [("f/", '{"x": 1}')]
    for prose in ("<tool_call name=f/>", "<tool_call name=f/> and so on"):
        assert at_every_cut(prose).content == [prose]
    assert at_every_cut("<think path=/a/b/>c</think>d").content == [["c"], "d"]
    assert at_every_cut("<think path=/a/b/ />c").content == ["c"]


SAID = """<tool_call name="f" arguments='{"x": 1}'>"""
SAYS_G = """<tool_call name="g" arguments='{}'>"""


@pytest.mark.parametrize("options", [PROMPT, EARLY])
@pytest.mark.parametrize("opener", [SAID, SAID.replace("tool_call", "toolcall"), f"<tool_call name=g>{SAID}"])
def test_a_call_that_its_tag_says_is_made_whatever_stands_in_it(opener: str, options: Any) -> None:
    for inside in ("hello", " null", '""', "<!-- x -->", "[]", "[1]", "{no}", "a\nb", "\n```\nhm\n```\n", " `x` "):
        for closer in ("</tool_call>", "\n</tool_call >", "<|/tool_call|>"):
            out = at_every_cut(f"a {opener}{inside}{closer} b", options=options)
            assert out.content == ["a ", F, " b"]
            assert out.lost == [("dropped", LEFT.reason)]


@pytest.mark.parametrize("options", [PROMPT, EARLY])
def test_so_it_is_where_nothing_closes_it(options: Any) -> None:
    for whole, content in {
        SAID: [F],
        f"a {SAID}": ["a ", F],
        f"a {SAID}\n b": ["a ", F, "\n b"],
        f"a\n{SAID} b": ["a\n", F, " b"],
        f"{SAID}\n{SAYS_G}\n b": [F, ("g", "{}"), "b"],
        f"a {SAID}{SAYS_G}": ["a ", F, ("g", "{}")],
        f"{SAID} and\n{MARKUP} b": [F, "and\n", F, " b"],
        f"{SAID}```": [F, "```"],
    }.items():
        out = at_every_cut(whole, options=options)
        assert (out.content, out.lost) == (content, [])


def test_a_line_that_speaks_of_such_a_tag_is_prose() -> None:
    for prose in (f"Write {SAID} for f", f"Write `{SAID}` for f", f"a {SAID} b `</tool_call>` c"):
        for options in (PROMPT, EARLY):
            assert at_every_cut(prose, options=options).content == [prose]


def test_of_what_a_tag_says_twice_the_first_counts_as_in_html() -> None:
    for attributes in ("""name="f" name="g" arguments='{"x": 1}'""", """arguments='{"x": 1}' name=f arguments='{}'"""):
        for behind in ("/>", "></tool_call>", ">", ">hello</tool_call>"):
            out = at_every_cut(f"a <tool_call {attributes}{behind}")
            assert out.content == ["a ", F]
            assert out.lost == [("dropped", LEFT.reason)]
    assert at_every_size(tag, " a=b a=c|>x") == (Tag({"a": "b"}, repeated=True), "x")


def test_of_tags_in_tags_the_inner_one_counts_and_what_it_hides_is_recorded() -> None:
    for around, lost in (("name=f", True), ("name=g", False), ("id=1 type=a", False), ("arguments=x", True)):
        out = at_every_cut(f"<tool_call {around}><tool_call id=2 type=b name=g arguments='{{}}'>{{}}</tool_call>")
        assert (out.content, out.lost) == ([("g", "{}")], [("dropped", LEFT.reason)] * lost)


def test_a_tag_that_says_no_whole_call_is_text_where_nothing_closes_it() -> None:
    for whole in ("<tool_call name=f>", "<tool_call name=f arguments=go> so", "<tool_call arguments='{}'> so"):
        assert at_every_cut(whole).content == [whole]
        assert Scrubbed(EARLY).give(*said(*cuts(whole, 3))).content == [whole]
