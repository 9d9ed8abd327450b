"""stages.scrub.json_body, objects, mend, calls: where a body ends, what is mended and what is not."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import LimitExceeded
from stages.scrub.calls import ARGUMENTS, call_of, calls_in, input_of
from stages.scrub.grammar import Call, Lost, Source, Unfinished
from stages.scrub.json_body import Body, body
from stages.scrub.mend import meant_object
from stages.scrub.mend import mend as mended
from stages.scrub.objects import Value, members, objects
from tests.scrubbing import SIZES, cuts

CLOSERS = ("</c>", "<|end|>")

mend = partial(mended, depth=200)


def ended(whole: str, size: int, closers: tuple[str, ...] = CLOSERS, depth: int = 200) -> tuple[Body, str] | None:
    """The body that a text begins with, and what stands behind it; None if the text ends in the middle."""
    source = Source()
    reading = body(source, closers, depth)
    parts = cuts(whole, size)
    try:
        while True:
            next(reading)
            if parts:
                source.feed(parts.pop(0))
            source.over = not parts
    except StopIteration as end:
        read: Body = end.value
        return read, source.text[source.at :] + "".join(parts)
    except Unfinished:
        return None


@pytest.mark.parametrize(
    ("text", "behind", "whole"),
    [
        ('{"a": 1}', " x", True),
        ("{}", "}", True),
        ('{"a": {"b": [1, {}]}}', "</c>", True),
        ('[{"a": 1}, {"b": 2}]', "{}", True),
        ('{"a": "}</c>"}', "</c>", True),
        ('{"a": "\\"}\\\\"}', "", True),
        ('{"a" : "b" , "c" : "d" }', "x", True),
        ("{'a': '}\\'}'}", "</c>", True),
        ("{'a': \"'}\"}", "", True),
        ('{“a”: “}"”, ‘b’: ‘}’}', "", True),
        ('{a: <|"|>}<|"|>}', "", True),
        ('{a: <|"|>}<|">}', "", True),
        ('{"a": 1, // }\n "b": 2}', "x", True),
        ('{"a": 1 /* } */ }', "x", True),
        ('{{"a": 1}}', "}", True),
        ('{"a": 1', "</c> x", False),
        ('{"a": "b"', "<|end|>", False),
        ('{"a": "</c>", "b": 1', "</c>", False),
        ('{"a": "</c>"', "</c>", False),
        ("{nonsense", "</c> b", False),
        ('{"a" x "}"}', "</c> b", False),
        ('{"a": "5" tall"}}', "</c> b", False),
        ('{"parameters\': {"x": 1}}', "</c> b", False),
        ('{"a": [1}', "</c>", False),
        ('{"a": 1 / 2}', "</c>", False),
        ('{"a": <b>}', "</c>", False),
        ('{"a" "', "</c>", False),
    ],
)
def test_a_body_ends_where_its_brackets_match_or_at_a_closer(text: str, behind: str, whole: bool) -> None:
    for size in (*SIZES, 1000):
        assert ended(text + behind, size) == (Body(text, whole), behind)


@pytest.mark.parametrize("closer", ["end", "[/CALL]", "]<]", '"""', "/end", "#", "-->"])
def test_a_closer_may_begin_with_what_may_stand_in_a_body(closer: str) -> None:
    strict = '{"e": [true, -1, {"n": ["end", ""]}], "d": {}}'
    for text, whole in ((strict, True), (strict[:-1], False), ('{"a": "b"', False), ("{e: 1, n: [2]", False)):
        for size in (*SIZES, 1000):
            assert ended(f"{text}{closer} x", size, (closer,)) == (Body(text, whole), f"{closer} x"), text


def test_a_hopeless_body_ends_with_the_first_closer_from_its_beginning() -> None:
    for size in (*SIZES, 1000):
        assert ended('{"a": "x</c> <c>{"b": 1}</c>', size) == (Body('{"a": "x', False), '</c> <c>{"b": 1}</c>')


@pytest.mark.parametrize(
    "text", ["{", '{"a', '{"a": "\\', '{"a": "b" ', "{'", '{"a": 1 /', '{"a": 1 // x', '{a: <|"|>x', '{"a" x']
)
def test_a_body_that_is_cut_is_unfinished(text: str) -> None:
    for size in (*SIZES, 1000):
        assert ended(text, size) is None


def test_a_hopeless_body_that_nothing_can_close_is_unfinished() -> None:
    assert ended('{"a" x} and so on', 3, closers=()) is None


def test_a_body_that_is_nested_too_deeply_is_hopeless() -> None:
    deep = "[" * 6 + "]" * 6
    assert ended(f'{{"a": {deep}}}</c>', 4, depth=7) == (Body(f'{{"a": {deep}}}', True), "</c>")
    assert ended(f'{{"a": {deep}}}</c>', 4, depth=6) == (Body(f'{{"a": {deep}}}', False), "</c>")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=9,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


@given(OBJECTS, st.booleans(), st.sampled_from(SIZES))
def test_strict_json_ends_where_it_ends_and_keeps_its_text(value: dict[str, Any], ascii_only: bool, size: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    read = ended(f"{text}</c>", size)
    assert read == (Body(text, True), "</c>")
    found, end = members(text)
    assert end == len(text)
    assert {name: json.loads(member.text) for name, member in found.items()} == value
    assert all(member.text in text and not member.mended for member in found.values())
    assert mend(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("{'a': 'b'}", {"a": "b"}),
        ("{'a': 'it\\'s \"b\"'}", {"a": 'it\'s "b"'}),
        ('{"it\'s": 1}', {"it's": 1}),
        ("{“a”: “b”, ‘c’: ‘d’}", {"a": "b", "c": "d"}),
        ("{'a\": 1, \"b': 2}", {"a": 1, "b": 2}),
        ("{a: 1, b_c.d-e: {f: 2}}", {"a": 1, "b_c.d-e": {"f": 2}}),
        (
            "{a: True, b: False, c: None, d: true, e: false, f: null}",
            dict(zip("abcdef", [True, False, None] * 2, strict=True)),
        ),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        ('{"a": "\\d+ \\. \\\' \\" \\\\ \\/ \\b\\f\\n\\r\\t"}', {"a": "\\d+ \\. ' \" \\ / \b\f\n\r\t"}),
        ('{a: "\\u00e9\\ud83d\\ude00\\ud83d"}', {"a": "é😀\ufffd"}),
        ("{{'a': 1}}", {"a": 1}),
        ("{ { {'a': {'b': 2}} } }", {"a": {"b": 2}}),
        ('{"a": 1 /* } */, // b\n "c": 2} // d', {"a": 1, "c": 2}),
        ('{a: <|"|>b "c"<|"|>, d: <|"|>e<|">}', {"a": 'b "c"', "d": "e"}),
        ("{a: -1, b: 1.5, c: 1e3, d: 0}", {"a": -1, "b": 1.5, "c": 1000.0, "d": 0}),
        ("[{a: 1}, {b: 2},]", [{"a": 1}, {"b": 2}]),
        ("{}", {}),
        ("{,}", None),
        ("{a}", None),
        ("{a: b}", None),
        ("{a: 1 b: 2}", None),
        ("{a: 1;}", None),
        ("{'a': 1 2}", None),
        ("{'a': 01}", None),
        ("{'a': 1x}", None),
        ("{'a': NaN, 'b': Infinity}", None),
        ("{'a': 1e400}", None),
        ("{'a': undefined}", None),
        ("{'a': 'b' 'c'}", None),
        ("{'a': 'b}", None),
        ("{'a': 1} x", None),
        ("{'a': 1}}", None),
        ("{'a': 1", None),
        ("{'a': [1", None),
        ("{{'a': 1}", None),
        ("{{'a': 1}, 'b': 2}", None),
        ('"a"', None),
        ("a", None),
        ("1", None),
        ("", None),
    ],
)
def test_what_is_mended_and_what_is_not(text: str, value: Any) -> None:
    if value is not None:
        assert mend(text) == value
    else:
        with pytest.raises(ValueError, match=r"."):
            mend(text)


def test_a_last_bracket_may_be_missing_where_a_closer_stands() -> None:
    assert mend("{'a': {'b': 1}", missing=1) == {"a": {"b": 1}}
    assert mend("{'a': 1, ", missing=1) == {"a": 1}
    assert mend("[{'a': 1}", missing=1) == [{"a": 1}]
    assert mend("{{'a': 1}", missing=1) == {"a": 1}
    for text in ("{'a': {'b': 1", "{'a': ", "{'a'", "{'a': {'b': 1], "):
        with pytest.raises(ValueError, match=r"."):
            mend(text, missing=1)


def test_so_many_doubled_braces_are_one() -> None:
    assert mend("{" * 17 + "a: 1" + "}" * 17) == {"a": 1}
    with pytest.raises(ValueError, match=r"^too many braces$"):
        mend("{" * 18 + "a: 1" + "}" * 18)


def test_what_is_nested_too_deeply_is_not_mended() -> None:
    assert mend("{a: [[1,]]}", depth=3) == {"a": [[1]]}
    assert mend("[[], [], {a: []}]", depth=3) == [[], [], {"a": []}]
    for text, depth in (("{a: [[1,]]}", 2), ("[[], [[[]]]]", 3), ("[" * 10_000, 20_000)):
        with pytest.raises(ValueError, match=r"^nested too deeply$"):
            mend(text, depth=depth)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" a", "neither an object nor an array"),
        ("{} x", "something stands behind the value, at 3"),
        ("{a: b}", "no value at 4"),
        ("{'a' 1}", "no value for 'a'"),
        ("{{'a': 1}, 'b': 2}", "a doubled brace is not closed"),
        ("{'a': 1 2}", "no comma at 8"),
        ("{'a': 1", "} is missing"),
        ("[1", "] is missing"),
        ('{a: <|"|>x}', "no string at 9"),
        ("{a: 'x}", "no string at 4"),
        ("{a: 1e400}", "1e400 is too large"),
    ],
)
def test_why_a_text_is_not_mended_is_told(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as told:
        mend(text)
    assert str(told.value) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "no { at 0"),
        ('{"a" 1}', "no : at 5"),
        ('{"a":1 "b":2}', "no , at 7"),
        ("{a:1}", "no member at 1"),
        ('{"a":NaN}', "NaN is no JSON"),
        ('{"a":1e999}', "1e999 is no JSON"),
    ],
)
def test_why_a_text_is_no_strict_json_is_told(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as told:
        members(text)
    assert str(told.value) == reason


def test_blanks_and_comments_may_stand_before_an_object() -> None:
    assert mend(" // b\n{a: 1}") == {"a": 1}
    for text in (' {"a": 1} ', ' [{"a": 1}] '):
        (found,) = objects(Body(text, True), 200)
        assert found == {"a": Value(1, "1")}


def test_a_bracket_may_be_missing_only_where_a_closer_stands() -> None:
    for text, whole, value in (("{'a': {'b': 1}", True, None), ("{'a': {'b': 1}", False, {"b": 1})):
        (found,) = objects(Body(text, whole), 200)
        assert (found["a"].value if found else None) == value
    assert objects(Body("{'a': {'b': 1", False), 200) == [None]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"x": 1.0, "y": []}', '{"x":1.0,"y":[]}'),
        (' {"x": 1} ', '{"x":1}'),
        ("{'x': 1}", '{"x":1}'),
        (" {x: [1], \n", '{"x":[1]}'),
        ("{x: [1", None),
        ("[1]", None),
        ("[1,]", None),
        ('"a"', None),
        ("x", None),
        ("", None),
    ],
)
def test_what_object_a_text_means(text: str, meant: str | None) -> None:
    assert meant_object(text, depth=4) == meant


def test_what_is_nested_more_deeply_than_a_bound_means_no_object() -> None:
    for text in ('{"x":[[1]]}', "{x: [[1]]}"):
        assert meant_object(text, depth=3) == '{"x":[[1]]}'
        with pytest.raises(LimitExceeded):
            meant_object(text, depth=2)


def test_nor_is_it_read_as_a_body() -> None:
    assert objects(Body("{a: [[1,]]}", True), 2) == [None]
    (found,) = objects(Body("{a: [[1,]]}", True), 3)
    assert found is not None
    assert found["a"].value == [[1]]


def called(text: str, *, whole: bool = True, tool: str = "") -> list[Call | Lost]:
    return [*calls_in(Body(text, whole), 200, tool, tools={"f": {}, "g": {}}, freeform=("cu",))]


@pytest.mark.parametrize("key", ARGUMENTS)
def test_arguments_may_stand_under_several_names(key: str) -> None:
    assert called(f'{{"name": "f", "{key}": {{"x": 1}}}}') == [Call("f", '{"x": 1}')]


@pytest.mark.parametrize(
    ("arguments", "text", "mended"),
    [
        ('{"x": 1.0, "y":1E5, "z": -0}', '{"x": 1.0, "y":1E5, "z": -0}', False),
        ('{"x": 12345678901234567890123}', '{"x": 12345678901234567890123}', False),
        ('{"x": "\\ud83d"}', '{"x": "\\ufffd"}', True),
        ("null", "{}", False),
        ('""', "{}", False),
        ('" null "', "{}", False),
        ('"{\\"x\\": 1}"', '{"x": 1}', False),
        ('" {\\"x\\": 1.0}\\n"', '{"x": 1.0}', False),
        ('"{x: 1}"', '{"x":1}', True),
    ],
)
def test_arguments_are_as_the_model_wrote_them(arguments: str, text: str, mended: bool) -> None:
    assert called(f'{{"name": " f ", "arguments": {arguments}}}') == [Call("f", text, mended=mended)]


def test_the_first_name_for_arguments_that_is_there_counts() -> None:
    assert called('{"name": "f", "input": {"x": 2}, "parameters": {"x": 1}}') == [Call("f", '{"x": 1}', left=True)]
    assert called('{"name": "f"}') == [Call("f", "{}")]


def test_a_call_may_stand_in_a_member_of_its_kind() -> None:
    inner = '{"name": "f", "arguments": {"x": 1}}'
    assert called(f'{{"type": "function", "function": {inner}}}') == [Call("f", '{"x": 1}')]
    assert called(f"{{'type': 'function', 'function': {inner}}}") == [Call("f", '{"x":1}', mended=True)]
    assert called('{"function": "f", "arguments": {}}') == [Lost("the markup of a call names no tool")]


@pytest.mark.parametrize("arguments", ["[1]", "1", "true", '"go"', '"\\u00a0{}"', '"[1]"', '"{x"', '"{} x"'])
def test_arguments_that_are_no_object_make_no_call(arguments: str) -> None:
    assert called(f'{{"name": "f", "arguments": {arguments}}}') == [Lost("the arguments of a call are no JSON object")]


def test_arguments_in_a_string_that_are_nested_too_deeply_make_no_call() -> None:
    body_ = Body('{"name": "f", "arguments": "{x: [[1]]}"}', True)
    assert [*calls_in(body_, 3)] == [Call("f", '{"x":[[1]]}', mended=True)]
    assert [*calls_in(body_, 2)] == [Lost("the arguments of a call are no JSON object")]


def test_a_body_with_several_objects_makes_several_calls() -> None:
    one, two = '{"name": "f"}', '{"name": "g"}'
    assert called(f"[{one}, {two}]") == [Call("f", "{}"), Call("g", "{}")]
    assert called(f"[{one}, 1]") == [Call("f", "{}"), Lost("what stands in the markup of a call is no JSON object")]
    assert called(f"[{one}, {two},]") == [Call("f", "{}", mended=True), Call("g", "{}", mended=True)]
    assert called("[{'name': 'f'}, 1]") == [
        Call("f", "{}", mended=True),
        Lost("what stands in the markup of a call is no JSON object"),
    ]
    assert called("[]") == [Lost("the markup of a call is empty")]


def test_the_input_of_a_freeform_tool_is_the_one_string_of_its_arguments() -> None:
    assert input_of('{"input": "a\\nb"}') == "a\nb"
    assert input_of("{}") == ""
    for arguments in ('{"a": "b", "c": "d"}', '{"a": 1}'):
        assert input_of(arguments) == arguments


@pytest.mark.parametrize("key", ARGUMENTS)
def test_a_string_is_the_input_of_a_freeform_tool(key: str) -> None:
    for text in ("ls -l", "", '{"x": "y"}', "null"):
        (call,) = called(json.dumps({"name": "cu", key: text}))
        assert isinstance(call, Call)
        assert (call.name, input_of(call.arguments)) == ("cu", text)
    for text in ('{"name": "cu"}', '{"name": "cu", "arguments": null}', '{"name": "cu", "arguments": {}}'):
        assert called(text) == [Call("cu", '{"input":""}')]


def test_a_tool_may_be_named_outside_of_its_arguments() -> None:
    assert called('{"x": 1.0}', tool="f") == [Call("f", '{"x": 1.0}')]
    assert called("{x: 1}", tool="f") == [Call("f", '{"x":1}', mended=True)]
    assert called('{"name": "f"}', tool="f") == [Call("f", "{}")]
    for arguments in (
        '{"name": "g"}',
        '{"x": 1, "name": "f"}',
        '{"name": "h", "input": {}}',
        '{"name": 1, "args": {}}',
    ):
        assert called(arguments, tool="f") == [Call("f", arguments)]
    assert called('{"name": "g", "input": {}}', tool="f") == [Call("g", "{}")]
    assert called("[{}, {}]", tool="f") == [Lost("the arguments of a call are no JSON object")] * 2
    assert call_of("f", Body("{'x': 1}", True), 200) == Call("f", '{"x":1}', mended=True)
    assert call_of("f", Body('{"x": 1}', True), 200, "id") == Call("f", '{"x": 1}', "id")
    assert [*calls_in(Body("{x: [[1]]}", True), 2, "f")] == [
        Lost("what stands in the markup of a call is no JSON object")
    ]
    assert call_of("f", Body('{"x": 1', False), 200, "id") == Call("f", '{"x":1}', "id", mended=True)
    assert call_of(" ", Body("{}", True), 200) == Lost("the markup of a call names no tool")
    assert call_of("f", Body("[{}, {}]", True), 200) == Lost("the arguments of a call are no JSON object")
    assert call_of("f", Body("[1]", True), 200) == Lost("the arguments of a call are no JSON object")


@pytest.mark.parametrize(
    "text",
    [
        *('{"a":1,}', '{"a" 1}', "{a:1}", '{"a":1 "b":2}', '{"a":NaN}', '{"a":1e999}', '{"a":"\n"}', "{", '{"a":1} x'),
        *("[1 2]", '[{"a":1},]', "{1:2}", '{"a":1, "b"}', "[NaN]", '[{"a":1}]x', '[{"a":1} {"b":2}]'),
    ],
)
def test_strict_json_is_read_strictly(text: str) -> None:
    for found in objects(Body(text, True), 200):
        assert found is None or all(member.mended for member in found.values())
