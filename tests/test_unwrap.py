"""stages.unwrap: the input of a freeform tool that the upstream knows as a function of one string."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import ArgumentsDelta, BlockStart, BlockStop, Event, ToolKind, ToolUseBlock
from pipeline.limits import Limits
from pipeline.testing import EOF, check_stage, play
from pipeline.toolnames import OfferedTool, RequestMap, wrapped_input
from stages.unwrap import InputUnwrapper
from tests.canonical import BEGIN, BOOM, END, TEXT, args, losses, start, stop, text

PATCH = OfferedTool("patch", kind=ToolKind.CUSTOM, wrapped=True)
MAP = RequestMap(
    tools={"patch": PATCH, "other": OfferedTool("other"), "free": OfferedTool("free", kind=ToolKind.CUSTOM)}
)
OPEN = start(3, ToolUseBlock("i", "patch"))
OPENED = start(3, ToolUseBlock("i", "patch", ToolKind.CUSTOM))


def unwrapper(limits: Limits | None = None) -> InputUnwrapper:
    return InputUnwrapper(MAP, limits=limits or Limits())


def pieces(*fragments: str, limits: Limits | None = None) -> list[str]:
    """What is written with each fragment, and at the stop."""
    _, *steps = play(unwrapper(limits), OPEN, *(args(3, fragment) for fragment in fragments), stop(3))
    return ["".join(event.text for event in made if isinstance(event, ArgumentsDelta)) for made in steps]


def whole(*fragments: str) -> str:
    """All that is written."""
    return "".join(pieces(*fragments))


def test_a_wrapped_call_is_freeform_again_step_by_step() -> None:
    steps = play(unwrapper(), OPEN, args(3, '{"input": "ab'), args(3, "c\\n"), args(3, 'd"'), args(3, "}"), stop(3))
    assert steps == [[OPENED], [args(3, "ab")], [args(3, "c\n")], [args(3, "d")], [], [stop(3)]]


@pytest.mark.parametrize(
    "block", [ToolUseBlock("i", "other"), ToolUseBlock("i", "invented"), ToolUseBlock("i", "free", ToolKind.CUSTOM)]
)
def test_other_calls_go_on_as_they_came(block: ToolUseBlock) -> None:
    events: list[Event] = [start(3, block), args(3, '{"input":"a"}'), stop(3)]
    assert play(unwrapper(), *events) == [[event] for event in events]
    assert play(unwrapper(), events) == [events]


def test_a_freeform_tool_that_the_upstream_calls_as_a_function_is_freeform_too() -> None:
    came: list[Event] = [start(3, ToolUseBlock("i", "free")), args(3, '{"input":"a"}'), stop(3)]
    opened = start(3, ToolUseBlock("i", "free", ToolKind.CUSTOM))
    assert play(unwrapper(), *came) == [[opened], [args(3, "a")], [stop(3)]]


def test_a_read_without_a_call_goes_on_as_it_came() -> None:
    events: list[Event] = [text(0, "a"), args(1, "b"), stop(1)]
    assert unwrapper().receive(events) is events


def test_the_call_behind_a_wrapped_one_is_itself() -> None:
    behind: list[Event] = [start(4, ToolUseBlock("j", "other")), args(4, '{"input":"a"}'), stop(4)]
    assert play(unwrapper(), [OPEN, args(3, '{"input":"x"}'), stop(3)], behind)[1] == behind


# The string, as it comes


@pytest.mark.parametrize(
    ("fragments", "due"),
    [
        (('{"input":"', "a", '"}'), ["", "a", "", ""]),
        (("{", '"inp', 'ut"', ":", '"', "a", '"', "}"), ["", "", "", "", "", "a", "", "", ""]),
        ((' {\n\t"input" \r\n: "a', '" \n}'), ["a", "", ""]),
        (('{"input":"\\', 'n"}'), ["", "\n", ""]),
        (('{"input":"\\\\', 'n"}'), ["\\", "n", ""]),
        (('{"input":"\\u00', 'e9x"}'), ["", "éx", ""]),
        (('{"input":"\\u', "0", "0", "e", "9", '"}'), ["", "", "", "", "é", "", ""]),
        (('{"input":"a\\ud83d', '\\ude00b"}'), ["a", "😀b", ""]),
        (('{"input":"\\uD83D', "\\uDE", '00"}'), ["", "", "😀", ""]),
        (('{"input":"\\ud83d', 'x"}'), ["", "\ufffdx", ""]),
        (('{"input":"\\ud83d"}',), ["\ufffd", ""]),
        (('{"input":"\\\\ud83d', 'x"}'), ["\\ud83d", "x", ""]),
        (('{"input":"a"', "}"), ["a", "", ""]),
        (('{"input":"a\\"b', '"}'), ['a"b', "", ""]),
        (('{"input":""}',), ["", ""]),
        (('{"input":"a\nb', '"}'), ["a\nb", "", ""]),
    ],
)
def test_the_string_is_unescaped_as_it_comes(fragments: tuple[str, ...], due: list[str]) -> None:
    assert pieces(*fragments) == due


@given(st.data())
def test_any_input_comes_back_whatever_the_pieces(data: st.DataObject) -> None:
    said = data.draw(st.text(st.sampled_from('aé日👍 \n\t"\\/{}u')) | st.text(st.characters(codec="utf-8")))
    ascii_only = data.draw(st.booleans())
    text = json.dumps({"input": said}, ensure_ascii=ascii_only) if data.draw(st.booleans()) else wrapped_input(said)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=9)))
    fragments = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert whole(text) == whole(*fragments) == whole(*text) == said


def test_an_escape_that_the_limit_cut_is_nothing() -> None:
    cut = BlockStop(3, complete=False)
    assert play(unwrapper(), OPEN, args(3, '{"input":"ab\\u00'), cut)[1:] == [[args(3, "ab")], [cut]]
    assert play(unwrapper(), OPEN, args(3, '{"input":"ab\\ud83d'), cut)[1:] == [[args(3, "ab")], [cut]]


# What is not one string


def taken(*fragments: str) -> tuple[str, bool]:
    """All that is written, and whether it is recorded that the arguments are the input itself."""
    stage = unwrapper()
    _, *steps = play(stage, OPEN, *(args(3, fragment) for fragment in fragments), stop(3))
    text = "".join(event.text for made in steps for event in made if isinstance(event, ArgumentsDelta))
    return text, [entry.reason for entry in stage.ledger] == ["they are no object that holds it"]


@pytest.mark.parametrize(
    "arguments",
    [
        "7",
        "null",
        "[1].map(String)",
        "*** Begin Patch\n+a",
        "{ let x = 1 }",
        '{"in',
        '{"input',
        '{"input":7}',
        '{"input":null}',
        '{"input":["a"]}',
        '{"patch":"a"}',
        '{"patch":"a","input":7}',
        '{"inputs":"b"}',
        '{"' + "x" * 200 + '":"a"}',
        '{"\\u0070atch":"a"}',
        '"a" + "b"',
        "{}; go()",
    ],
)
def test_what_is_not_one_string_is_the_input_as_it_was_written(arguments: str) -> None:
    assert taken(arguments) == taken(*arguments) == (arguments, True)


@pytest.mark.parametrize("arguments", ['"a\\nb"', ' "a\\nb" ', json.dumps('{"input": "a\\nb"}'), json.dumps("a\nb")])
def test_a_string_is_what_it_says(arguments: str) -> None:
    assert taken(arguments) == taken(*arguments) == ("a\nb", True)


@pytest.mark.parametrize("arguments", ["", " ", "{}", " { } "])
def test_no_input_is_an_empty_one(arguments: str) -> None:
    assert taken(arguments) == taken(*arguments) == ("", False)


def test_bare_text_is_written_as_it_comes_once_it_can_be_nothing_else() -> None:
    assert pieces("*** ", "Begin", " Patch") == ["*** ", "Begin", " Patch", ""]
    assert pieces(" ", "{", " let", " x }") == ["", "", " { let", " x }", ""]
    assert pieces('{"', "pat", 'ch":1}') == ["", "", "", '{"patch":1}']


@pytest.mark.parametrize(
    "arguments", ['{"\\u0069nput":"a\\n"}', '{"input"' + " " * 200 + ':"a\\n"}', '\n{ "inpu\\u0074" : "a\\n" }']
)
def test_one_string_is_one_however_it_is_spelled(arguments: str) -> None:
    assert pieces(arguments) == ["", "a\n"]


def test_half_a_character_in_it_is_replaced() -> None:
    assert whole('{"\\u0069nput":"\\ud83d"}') == "\ufffd"


@pytest.mark.parametrize("behind", ['"', '" ', '" \n} ', '"}'])
def test_what_closes_the_string_is_no_loss(behind: str) -> None:
    stage = unwrapper()
    play(stage, OPEN, args(3, '{"input":"a' + behind), stop(3))
    assert len(stage.ledger) == 0


@pytest.mark.parametrize("behind", ['","x":1}', '" "b"}'])
def test_what_stands_behind_the_string_is_recorded(behind: str) -> None:
    stage = unwrapper()
    steps = play(stage, OPEN, *(args(3, letter) for letter in '{"input":"a' + behind), stop(3))
    assert "".join(event.text for made in steps for event in made if isinstance(event, ArgumentsDelta)) == "a"
    assert losses(stage.ledger) == [("arguments", "dropped", "they stand beside the input")]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":1,"input":"x"}',
        '{"input":"x","b":2}',
        '{"a":{"input":"y"},"input":"x","b":[]}',
        '{"\\u0069nput":"x","b":2}',
    ],
)
@pytest.mark.parametrize("twice", [False, True])
def test_the_input_is_the_string_wherever_it_stands_and_the_rest_is_recorded(arguments: str, twice: bool) -> None:
    written = json.dumps(arguments) if twice else arguments
    for size in (1, 2, 7, 99):
        stage = unwrapper()
        cut = [written[at : at + size] for at in range(0, len(written), size)]
        steps = play(stage, OPEN, *(args(3, piece) for piece in cut), stop(3))
        assert "".join(event.text for made in steps for event in made if isinstance(event, ArgumentsDelta)) == "x"
        assert ("arguments", "dropped", "they stand beside the input") in losses(stage.ledger)


@pytest.mark.parametrize("broken", ["\\uzzzz", "\\u12 456"])
def test_what_is_no_escape_is_given_as_it_came_and_so_is_all_behind_it(broken: str) -> None:
    assert pieces('{"input":"a' + broken, 'b\\n"}') == ["a" + broken, 'b\\n"}', ""]


def test_an_unknown_escape_is_given_as_it_came() -> None:
    assert pieces('{"input":"a\\xb', 'c"}') == ["a\\xb", "c", ""]


def test_arguments_nested_too_deeply_are_given_as_they_came() -> None:
    deep = "[" * 300 + "]" * 300
    assert whole(deep) == deep


def test_what_is_kept_is_counted_and_let_go_at_its_bound() -> None:
    stage = unwrapper(Limits(held_bytes=10))
    play(stage, OPEN, args(3, '"é",'))
    assert stage.held == 5
    assert play(stage, args(3, "abcdef"), args(3, "g"), stop(3)) == [[args(3, '"é",abcdef')], [args(3, "g")], [stop(3)]]
    assert stage.held == 0


# Endings


def test_what_is_kept_goes_out_before_an_error() -> None:
    assert play(unwrapper(), OPEN, [args(3, '{"i'), BOOM])[1] == [args(3, '{"i'), BOOM]
    stage = unwrapper()
    assert play(stage, OPEN, args(3, '{"i'), EOF(BOOM))[2] == [args(3, '{"i'), BOOM]
    assert stage.ended
    assert play(unwrapper(), OPEN, args(3, '{"i'), EOF)[2] == [args(3, '{"i')]


def test_the_rules_of_every_stage_are_kept() -> None:
    events: list[Event] = [BEGIN, OPEN, *(args(3, letter) for letter in '{"input":"é\\ud83d\\ude00"}'), stop(3)]
    events += [start(4, ToolUseBlock("i", "patch")), args(4, "{}"), stop(4), BlockStart(5, TEXT), stop(5), END]
    check_stage(unwrapper, events)
