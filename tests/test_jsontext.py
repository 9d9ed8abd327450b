"""pipeline.jsontext: JSON as providers write it, and where a value ends."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.errors import LimitExceeded
from pipeline.jsontext import (
    JSONScanner,
    as_written,
    check_depth,
    dumps,
    exact,
    is_object,
    is_whole,
    loads,
    several,
    size_of,
    value_of,
    verbatim,
    whole_text,
)

HIGH, LOW = "\ud83d", "\udc4d"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
containers = st.lists(anything, max_size=4) | st.dictionaries(st.text(max_size=4), anything, max_size=4)
texts = st.text(alphabet=st.sampled_from('{}[]"\\ aé'))


def ends_of(fragments: list[str]) -> int:
    """Where, in all the fragments, a scanner sees the value end; -1 if nowhere."""
    scanner, before = JSONScanner(), 0
    for fragment in fragments:
        end = scanner.feed(fragment)
        if end >= 0:
            return before + end
        before += len(fragment)
    return -1


def test_json_is_read() -> None:
    assert loads(b'{"x":[1,"a"]}') == {"x": [1, "a"]}
    assert loads('{"x":"\u00e9"}') == {"x": "é"}


@pytest.mark.parametrize("text", ["", "{", "{'x':1}", "NaN", '[Infinity, "\ud800"]', "1 2"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # whose words they are does not matter
        loads(text)
    assert str(raised.value)


def test_a_lone_surrogate_stays_in_its_string() -> None:
    assert loads(b'{"x":"\\ud83d"}') == {"x": HIGH}


def test_invalid_utf_8_becomes_a_replacement_character() -> None:
    assert loads(b'{"x":"\xff"}') == {"x": "\ufffd"}


def test_an_integer_above_64_bits_survives_the_exact_reading() -> None:
    assert exact(b"[123456789012345678901234567890]") == [123456789012345678901234567890]
    assert exact("[1]") == [1]


def test_a_number_that_is_nearly_too_large_is_a_number() -> None:
    assert loads("[1e308,-1e-400]") == [1e308, 0.0]
    assert exact("[1e308,1.5]") == [1e308, 1.5]
    assert exact("9" * 308) == int("9" * 308)


def test_a_word_that_is_no_json_is_named() -> None:
    with pytest.raises(ValueError, match="-Infinity is no JSON"):
        exact("-Infinity")


def test_json_nested_beyond_python_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        exact("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        list(several(b"[" * 100_000))


def test_json_nested_deeper_than_its_bound_is_refused() -> None:
    assert loads("[" * 3 + " " * 9 + "]" * 3, 3) == [[[]]]
    with pytest.raises(LimitExceeded, match="JSON is nested deeper than 3 levels") as raised:
        loads(b"[" * 4 + b"]" * 4, 3)
    assert raised.value.code == "json_depth"


def test_brackets_in_strings_are_no_nesting() -> None:
    assert loads('["[[[["]', 3) == ["[[[["]
    assert loads(b'["{{{{"]', 3) == ["{{{{"]


def test_depth_is_checked_of_bytes_and_of_text() -> None:
    check_depth("[[]]", 2)
    check_depth(b"[{}]", 2)
    with pytest.raises(LimitExceeded):
        check_depth("[{[]}]", 2)
    with pytest.raises(LimitExceeded):
        check_depth(b"{[{}]}", 2)


def test_several_texts_are_read_one_behind_the_other() -> None:
    assert list(several(b' {"x":1}{"y":2}\n [3] ')) == [{"x": 1}, {"y": 2}, [3]]
    assert list(several(b"  ")) == []


def test_several_texts_end_at_the_first_that_is_none() -> None:
    read = several(b"[1] nonsense")
    assert next(read) == [1]
    with pytest.raises(ValueError, match="Expecting value"):
        next(read)


def test_json_is_written_compactly() -> None:
    assert dumps({"x": [1, "é"]}) == '{"x":[1,"é"]}'.encode()


def test_what_orjson_refuses_to_write_is_written() -> None:
    assert dumps({"x": 123456789012345678901, "y": "é"}) == '{"x":123456789012345678901,"y":"é"}'.encode()


def test_a_lone_surrogate_is_written_as_a_replacement_character_and_a_pair_as_its_character() -> None:
    assert dumps([f"a{HIGH}", f"{LOW}b", HIGH + LOW]) == '["a\ufffd","\ufffdb","\U0001f44d"]'.encode()


def test_text_with_a_lone_surrogate_is_not_whole() -> None:
    assert is_whole("é")
    assert not is_whole(f"a{LOW}")


def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    assert whole_text(f"{HIGH}{LOW} {LOW}{HIGH} {HIGH}") == "\U0001f44d \ufffd\ufffd \ufffd"
    assert whole_text("plain") == "plain"


def test_a_size_is_counted_in_bytes() -> None:
    assert [size_of(text) for text in ("", "ab", "é", "\U0001f44d", HIGH)] == [0, 2, 2, 4, 3]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(' {"x":1}\n', True), ("{}", True), ("[{}]", False), ('{"x":}', False), ("{} {}", False), ("", False)],
)
def test_an_object_is_told_from_anything_else(text: str, is_one: bool) -> None:
    assert is_object(text) is is_one


def test_an_object_nested_too_deeply_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        is_object('{"x":[[]]}', 2)


def test_a_value_ends_behind_its_last_bracket() -> None:
    assert JSONScanner().feed(' {"a":[1]} x') == 10
    assert JSONScanner().feed('[{"a":1}') == -1


def test_brackets_and_escaped_quotes_in_strings_end_nothing() -> None:
    assert JSONScanner().feed('{"a":"}\\"]","b":1}') == 18


def test_a_value_ends_in_the_fragment_that_brings_its_last_bracket() -> None:
    scanner = JSONScanner()
    assert [scanner.feed(fragment) for fragment in ('{"a', '":[', "]", " }x")] == [-1, -1, -1, 2]


def test_an_escape_cut_in_two_escapes() -> None:
    scanner = JSONScanner()
    assert [scanner.feed(fragment) for fragment in ('["\\', "", '"]', '\\\\"', "]")] == [-1, -1, -1, -1, 1]


def test_a_value_nested_deeper_than_the_bound_is_refused() -> None:
    assert JSONScanner(2).feed("[[]]") == 4
    with pytest.raises(LimitExceeded, match="JSON is nested deeper than 2 levels") as raised:
        JSONScanner(2).feed("[[[")
    assert raised.value.code == "json_depth"


@given(containers, texts, st.lists(st.integers(0, 10_000)))
def test_a_value_is_seen_to_end_where_a_parser_sees_it(value: object, behind: str, places: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cuts = sorted({0, len(text + behind), *(place % (len(text + behind) + 1) for place in places)})
    assert ends_of([(text + behind)[begin:end] for begin, end in pairwise(cuts)]) == len(text)


@given(texts, st.lists(st.integers(0, 10_000)))
@example('["\\\\"]', [3])
def test_any_cut_of_any_text_is_scanned_the_same(text: str, places: list[int]) -> None:
    cuts = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    assert ends_of([text[begin:end] for begin, end in pairwise(cuts)]) == ends_of([text])


@given(anything)
def test_what_is_written_is_read_back(value: object) -> None:
    assert exact(dumps(value)) == value


@given(st.text(alphabet=st.characters() | st.sampled_from([HIGH, LOW])))
def test_whole_text_is_text_that_can_be_encoded(text: str) -> None:
    whole = whole_text(text)
    assert is_whole(whole)
    assert whole.encode().decode() == whole


def test_numbers_are_written_as_they_were_read() -> None:
    text = '{"a":[1.50,1e400,-0.0,1E2,123456789012345678,12345678901234567890],"b":{"c":-9223372036854775809,"d":7}}'
    read = as_written(text.encode())
    assert dumps(read) == text.encode()
    assert read["b"]["d"] == 7
    assert as_written(b'["\xff", null, true]') == ["\ufffd", None, True]
    for odd in (b"[NaN]", b"{", b"[1.]"):
        with pytest.raises(ValueError, match=r"Expecting|is no JSON"):
            as_written(odd)


# Texts in values


@pytest.mark.parametrize(
    "text", ['{"x": 1.10}', "[1,  2]", "12345678901234567890123", "1E400", '"\\u00e9"', '{"x":"é"}']
)
def test_a_text_stands_in_a_value_as_it_is(text: str) -> None:
    assert dumps({"a": verbatim(text)}) == f'{{"a":{text}}}'.encode()


def test_half_a_character_in_a_text_is_replaced_since_it_breaks_strict_readers() -> None:
    assert dumps({"a": verbatim('{"x": "\\ud83d"}')}) == '{"a":{"x":"\ufffd"}}'.encode()
    assert dumps({"a": verbatim('"\\ud83d\\ude00"')}) == b'{"a":"\\ud83d\\ude00"}'


def test_a_text_stands_beside_what_only_the_standard_library_writes() -> None:
    value = {"a": verbatim("[1.10]"), "b": 2**70, "c": [verbatim("1e400"), "\ud83d"], "d": "0", "e": verbatim('"x"')}
    assert dumps(value) == f'{{"a":[1.10],"b":{2**70},"c":[1e400,"\ufffd"],"d":"0","e":"x"}}'.encode()


TOO_LARGE = ["1e400", "-1E+999", "1.5e308000", "9" * 309, "-" + "9" * 5_000]


@pytest.mark.parametrize("digits", TOO_LARGE)
def test_a_number_too_large_to_be_one_stays_its_text(digits: str) -> None:
    text = f'{{"x":[{digits},1],"y":{{"z":{digits}}}}}'
    for value in (loads(text), loads(text.encode()), exact(text), next(several(text.encode()))):
        assert dumps(value) == text.encode()
        assert dumps({"a": value, "b": 2**70}) == f'{{"a":{text},"b":{2**70}}}'.encode()
        assert not isinstance(value["x"][0], int | float)
    assert loads(digits) == verbatim(digits)


@pytest.mark.parametrize("digits", TOO_LARGE)
def test_a_number_too_large_to_be_one_is_looked_at_like_any_other(digits: str) -> None:
    assert is_object(f'{{"x":{digits},"y":"\\ud83d\\ude00"}}')
    assert not is_object(f'{{"x":{digits},"y":"\\ud83d"}}')
    assert dumps(verbatim(f'[{digits},"\\ud83d"]')) == f'[{digits},"\ufffd"]'.encode()


@pytest.mark.parametrize("text", ["", "{", "nope", "NaN", "{} {}"])
def test_what_is_no_json_stands_in_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra data|is no JSON"):
        verbatim(text)


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, b"x"])
def test_what_is_no_json_is_not_written(value: object) -> None:
    with pytest.raises(TypeError, match="is no JSON"):
        dumps(value)


def test_what_a_client_echoes_is_a_value_or_nothing_but_never_a_fault() -> None:
    assert value_of('{"a":[1]}') == {"a": [1]}
    assert value_of("no json") is None
    assert value_of("[" * 300 + "]" * 300) is None
