"""pipeline.arguments: what of a call's arguments may be written while they arrive."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.arguments import Arguments
from pipeline.errors import LimitExceeded
from pipeline.limits import Limits

NOTHING = ("", " ", "\n\t\r ", "null", " null\n")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a{}[]"\\é null,:\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3), json_values, min_size=1, max_size=3)
beginnings = st.lists(st.sampled_from(["{", "}", "[", "]", "null", "n", '"', "\\", " ", "1", ",", "a", '{"a":1}', ":"]))


def fed(*fragments: str) -> list[str]:
    """What may be written at each fragment."""
    arguments = Arguments()
    return [arguments.feed(fragment) for fragment in fragments]


def of(*fragments: str) -> Arguments:
    arguments = Arguments()
    for fragment in fragments:
        arguments.feed(fragment)
    return arguments


def cut_at(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places})
    return [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def test_an_object_is_written_as_it_comes() -> None:
    assert fed('{"x"', ": ", '1, "y":[{}]', "}") == ['{"x"', ": ", '1, "y":[{}]', "}"]


def test_an_object_that_has_come_whole_is_complete() -> None:
    assert not of('{"x":', "1").complete
    assert of('{"x":', "1", "}").complete
    assert of('{"x":', "1", "}").close() == ("", True)


def test_a_closing_bracket_in_a_string_ends_nothing() -> None:
    arguments = of('{"x":"}', "]", '\\"}', '"')
    assert not arguments.complete
    assert arguments.feed("}") == "}"
    assert arguments.complete


def test_a_bracket_is_counted_though_it_came_in_a_fragment_that_was_not_looked_through() -> None:
    arguments = of('{"x":{', '"y":', "[1,", "2]", "}")
    assert not arguments.complete
    arguments.feed("}")
    assert arguments.complete


def test_a_backslash_at_the_end_of_a_fragment_escapes_the_next_ones_first_quote() -> None:
    arguments = of('{"x":"}\\', '"}', '"')
    assert not arguments.complete
    assert arguments.feed("}") == "}"
    assert arguments.complete


def test_a_bracket_at_the_very_end_of_the_head_is_counted_once() -> None:
    arguments = of(" {\n ", '"a":{}', " }")
    assert arguments.complete


def test_an_array_is_complete_and_no_object() -> None:
    arguments = of(" [", "1", "]")
    assert arguments.complete
    assert arguments.close() == ("", False)


def test_an_empty_array_is_not_visibly_whole() -> None:
    arguments = of("[", "]")
    assert not arguments.complete
    assert arguments.close() == ("", False)


@pytest.mark.parametrize("text", ["1", "true", "nul!", "nothing", "no", "'x'", "x{}", "anull{}"])
def test_what_begins_no_object_is_passed_on(text: str) -> None:
    arguments = Arguments()
    assert arguments.feed(text) == text
    assert arguments.feed(' {"x":1} ') == ' {"x":1} '
    assert not arguments.complete
    assert arguments.close() == ("", False)


def test_a_value_whose_brackets_match_and_that_is_no_json_is_passed_on_with_what_follows() -> None:
    arguments = Arguments()
    assert arguments.feed('{"x":1,} tail') == '{"x":1,} tail'
    assert arguments.feed(" more}") == " more}"
    assert not arguments.complete
    assert not arguments.excess
    assert arguments.close() == ("", False)


def test_an_object_that_is_not_whole_is_none() -> None:
    assert of('{"x":').close() == ("", False)


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_blanks_and_null_become_an_empty_object_at_the_end(text: str) -> None:
    arguments = Arguments()
    assert arguments.feed(text) == ""
    assert not arguments.complete
    assert arguments.close() == ("{}", True)


def test_a_prefix_of_null_is_withheld_by_the_character() -> None:
    assert fed(*" null ") == [""] * 6
    assert fed(*"nuls") == ["", "", "", "nuls"]


def test_a_no_break_space_is_not_blank() -> None:
    assert fed("\u00a0") == ["\u00a0"]
    assert fed(" null\u00a0") == [" null\u00a0"]
    assert not of(json.dumps("\u00a0")).close()[1]
    assert of("{}", "\u00a0{").excess
    assert of('{"x":1}', "\u00a0").excess
    assert of('{"x":1}\u00a0').excess
    assert fed("{", "\u00a0", "}") == ["{", "\u00a0", "}"]


def test_null_that_is_not_whole_is_no_object() -> None:
    assert of("nul").close() == ("nul", False)


def test_blanks_inside_null_are_not_null() -> None:
    assert fed("nu", " ", "ll") == ["", "nu ", "ll"]
    assert not of("nu", " ", "ll").close()[1]


@pytest.mark.parametrize("half", [r"\ud83d", r"\uDE00", r"\ud83d\ud83d", r"\ude00\ud83d"])
def test_half_a_character_makes_it_no_json_that_every_client_reads(half: str) -> None:
    assert of(f'{{"x":"{half}"}}').close() == ("", False)
    whole = r'{"x":"\ud83d\ude00 \\ud83d"}'
    assert of(whole).close() == ("", True)


def test_null_and_then_an_object_is_the_object() -> None:
    assert fed("null", " ", '{"x":1}') == ["", "", '{"x":1}']
    assert fed(' null {"x":1}') == ['{"x":1}']


def test_null_in_front_of_a_brace_inside_the_object_stays() -> None:
    code = '{"code":"if null { null{} }"}'
    assert fed(code) == [code]


def test_null_and_then_anything_else_is_passed_on() -> None:
    assert fed("null", "[1]") == ["", "null[1]"]


def test_leading_blanks_of_an_object_are_written_with_it() -> None:
    assert fed("\n ", '{"x"') == ["", '\n {"x"']


def test_the_end_of_an_empty_object_is_withheld() -> None:
    assert fed("{}") == ["{"]
    assert fed("{", " ", "}") == ["{", " ", ""]
    arguments = of("{ }")
    assert not arguments.complete
    assert arguments.close() == ("}", True)


def test_an_empty_object_and_then_the_arguments_is_the_arguments() -> None:
    assert fed("{}", '{"x":1}') == ["{", '"x":1}']
    assert fed("{", "}", " {", '"x":1}') == ["{", "", "", '"x":1}']
    assert fed('{ }{"x":1}') == ['{ "x":1}']
    assert of("{}", '{"x":1}').complete


def test_an_empty_object_twice_is_one() -> None:
    arguments = of("{}", "{ ", "}")
    assert arguments.close() == ("}", True)
    assert not arguments.excess


def test_blanks_behind_an_empty_object_are_nothing() -> None:
    arguments = of("{}")
    assert arguments.feed(" \n") == ""
    assert not arguments.excess
    assert arguments.close() == ("}", True)


def test_text_behind_an_empty_object_is_excess_and_so_is_all_that_follows() -> None:
    arguments = of("{}")
    assert arguments.feed("x") == ""
    assert arguments.excess
    assert arguments.feed('{"x":1}') == ""
    assert arguments.close() == ("}", True)


def test_blanks_behind_a_whole_object_are_nothing() -> None:
    arguments = of('{"x":1}\n')
    assert arguments.feed(" ") == ""
    assert not arguments.excess


def test_text_behind_a_whole_object_is_excess_and_not_written() -> None:
    arguments = Arguments()
    assert arguments.feed('{"x":1} more') == '{"x":1}'
    assert arguments.excess
    assert arguments.feed(" ") == ""
    assert arguments.excess


def test_text_in_a_later_fragment_behind_a_whole_object_is_excess() -> None:
    arguments = of('{"x":1}')
    assert not arguments.excess
    assert arguments.feed('{"y":2}') == ""
    assert arguments.excess


def test_an_object_encoded_twice_is_withheld_and_unwrapped_at_the_end() -> None:
    arguments = Arguments()
    assert [arguments.feed(part) for part in (' "{\\"x\\"', ":1}", '" ')] == ["", "", ""]
    assert not arguments.complete
    assert not arguments.unwrapped
    assert arguments.close() == ('{"x":1}', True)
    assert arguments.unwrapped


@pytest.mark.parametrize("inner", NOTHING)
def test_nothing_encoded_twice_is_an_empty_object(inner: str) -> None:
    arguments = of(json.dumps(inner))
    assert arguments.close() == ("{}", True)
    assert arguments.unwrapped


@pytest.mark.parametrize("text", ['"hello"', '"[1]"', '"{"', '"{\\"x\\":1}', '"{\\"x\\":1}" more', '"\\"'])
def test_a_string_that_holds_no_object_is_none(text: str) -> None:
    arguments = of(text)
    assert arguments.close() == (text, False)
    assert not arguments.unwrapped


def test_a_string_that_holds_an_object_nested_too_deeply_holds_none() -> None:
    limits = Limits(json_depth=2)
    fits, deep = Arguments(limits), Arguments(limits)
    fits.feed(json.dumps('{"x":[' + " " * 9 + "]}"))
    deep.feed(json.dumps('{"x":[[' + " " * 9 + "]]}"))
    assert fits.close()[1]
    assert not deep.close()[1]


def test_a_string_that_is_nested_too_deeply_itself_holds_none() -> None:
    arguments = Arguments(Limits(json_depth=2))
    arguments.feed('"x" [[[[]]]]')
    assert not arguments.close()[1]


def test_what_is_withheld_is_counted_in_bytes() -> None:
    arguments = Arguments()
    arguments.feed(' "')
    assert arguments.held == 2
    arguments.feed("é日")
    assert (arguments.held, arguments.withheld) == (7, ' "é日')


def test_what_is_written_is_held_no_more() -> None:
    assert of(" nu").held == 3
    assert (of(" nu", "x").held, of(" nu", "x").withheld) == (0, "")
    assert (of(" ", "{").held, of(" ", "{").withheld) == (0, "")
    assert (of("{}").held, of("{}").withheld) == (1, "}")
    assert (of("{}", "{").held, of("{}", "{").withheld) == (0, "")


def test_what_may_lack_its_end_is_no_object_and_stays_as_it_is() -> None:
    assert of().close(cut=True) == ("", False)
    assert of("nul").close(cut=True) == ("nul", False)
    assert of("null").close(cut=True) == ("null", False)
    assert of('"{}"').close(cut=True) == ('"{}"', False)
    assert of('{"x":1').close(cut=True) == ("", False)
    assert of("{}").close(cut=True) == ("}", False)


def test_what_is_visibly_whole_lacks_no_end() -> None:
    assert of('{"x":1}').close(cut=True) == ("", True)


def test_arguments_beyond_their_bound_are_refused() -> None:
    arguments = Arguments(Limits(arguments_bytes=5))
    arguments.feed('{"é"')
    with pytest.raises(LimitExceeded) as raised:
        arguments.feed("x")
    assert str(raised.value) == "the arguments of one call are larger than 5 bytes"
    assert raised.value.code == "arguments_bytes"


def test_arguments_nested_too_deeply_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="JSON is nested deeper than 3 levels"):
        Arguments(Limits(json_depth=3)).feed('{"x":[[[]]]}')
    assert Arguments(Limits(json_depth=3)).feed('{"x":[[' + " " * 9 + "]]}")


def test_arguments_may_be_nested_as_deeply_as_their_bound_says() -> None:
    arguments = Arguments(Limits(json_depth=300))
    arguments.feed('{"x":' + "[" * 299 + "]" * 299 + "}")
    assert arguments.complete


def test_an_empty_fragment_is_nothing() -> None:
    assert fed("", "{", "", '"x":1', "", "}", "") == ["", "{", "", '"x":1', "", "}", ""]


@given(objects, st.sampled_from([None, 1]), st.lists(st.integers(0, 10_000)))
def test_an_object_survives_any_cut_and_nothing_of_it_is_withheld(
    value: dict[str, object], indent: int | None, places: list[int]
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    arguments = Arguments()
    for fragment in cut_at(text, places):
        assert arguments.feed(fragment) == fragment
    assert arguments.complete
    assert arguments.close() == ("", True)
    assert arguments.close(cut=True) == ("", True)


@given(objects, st.lists(st.integers(0, 10_000)))
def test_an_object_encoded_twice_survives_any_cut(value: dict[str, object], places: list[int]) -> None:
    text = json.dumps(value)
    arguments = of(*cut_at(json.dumps(text), places))
    assert arguments.close() == (text, True)


@given(beginnings, st.lists(st.integers(0, 10_000)), st.booleans())
@example(["n", " "], [1], False)
def test_any_cut_of_any_text_gives_the_same(parts: list[str], places: list[int], cut: bool) -> None:
    text = "".join(parts)
    one, many = Arguments(), Arguments()
    whole = one.feed(text)
    fragments = "".join(many.feed(fragment) for fragment in cut_at(text, places))
    assert fragments == whole
    assert many.close(cut=cut) == one.close(cut=cut)
    assert (many.complete, many.excess, many.held, many.unwrapped) == (
        one.complete,
        one.excess,
        one.held,
        one.unwrapped,
    )


@given(beginnings)
def test_what_ends_as_an_object_is_one_and_what_is_held_is_what_is_withheld(parts: list[str]) -> None:
    arguments = Arguments()
    written = ""
    for part in parts:
        written += arguments.feed(part)
        assert arguments.held == len(arguments.withheld)
    rest, is_object = arguments.close()
    if is_object:
        assert isinstance(json.loads(written + rest), dict)
