"""stages.scrub: a call written as text begins as soon as its name is certain, and what was written is kept to."""

import json
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts, dialect
from pipeline.errors import ErrorKind, LimitExceeded, UpstreamError
from pipeline.events import (
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    Ping,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.limits import Limits
from pipeline.message import ToolUse, assemble
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.testing import EOF, check_stage, play
from stages.recipe import default_chain
from stages.scrub import TagScrubber
from stages.scrub.calls import calls_in
from stages.scrub.early import Beginning
from stages.scrub.grammar import Family, Found, Place, Source
from stages.scrub.json_body import body
from stages.scrub.opened import rest_of
from tests.canonical import BEGIN, BOOM, CALL_A, CUT, END, LIMIT, REASONING, TEXT, args, start, stop, text, think
from tests.scrubbing import MARKUP, NATIVE, PROMPT, TOOLS, F, Scrubbed, cuts, said
from tests.support import DONE, events_of, finish, sse
from tests.support import text as upstream_text

EARLY = evolve(PROMPT, stream_calls=True)
OPEN = '<tool_call>{"name": "f", '
DEEP = "<｜tool▁call▁begin｜>f<｜tool▁sep｜>"


def stage(**asked: Any) -> TagScrubber:
    return TagScrubber(**{"options": EARLY, "tools": TOOLS, **asked})


def short(*steps: Sequence[Event]) -> list[list[Any]]:
    """Of each step: names of calls that open, fragments of arguments, whether a call was whole; text."""
    calls: set[int] = set()
    told: list[list[Any]] = []
    for step in steps:
        told.append([])
        for event in step:
            if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock):
                calls.add(event.index)
                told[-1].append([event.block.name])
            elif isinstance(event, ArgumentsDelta | TextDelta):
                told[-1].append(event.text)
            elif isinstance(event, BlockStop) and event.index in calls:
                told[-1].append(event.complete)
    return told


def steps(*parts: str, **asked: Any) -> list[list[Any]]:
    """What each delta brings."""
    return short(*play(stage(**asked), *said(*parts)))[2:-2]


def test_a_call_begins_when_its_name_is_certain_and_its_arguments_follow() -> None:
    first = ('a <tool_call>{"na', 'me": "f"', ', "argu', 'ments": {"x": "ab', "c", 'd", "y":')
    assert steps(*first, " [1, 2", "], ", '"z": {}}', "}</", "tool_call>") == [
        ["a "],
        [["f"]],
        [],
        ['{"x": "ab'],
        ["c"],
        ['d"'],
        [', "y": [1'],
        [", 2]"],
        [', "z": {}}'],
        [True],
        [],
    ]


@pytest.mark.parametrize(
    ("parts", "opens"),
    [
        (('<tool_call>{"name": "f', '", "arguments": {}}</tool_call>'), 1),
        (('<tool_call>{"arguments": {"x": 1}, "name": "f"', "}</tool_call>"), 0),
        (('<tool_call>{"type": "function", "function": {"name": "f"', "}}"), 0),
        (("<tool_call name='f'>", "{", '"x":', "1}</tool_call>"), 2),
        (("<tool_call name='f'>", '{"name":', ' "f"', "}</tool_call>"), 2),
        (("<tool_call name='f'>", "{}"), 1),
        (("<tool_call name='f'>", '{"name": "g", ', '"x": 1', "}</tool_call>"), 3),
        ((DEEP, '{"x"', ":", "1}"), 2),
        ((DEEP, "{}"), 1),
        (('<｜tool▁call▁begin｜>{"name": "f"', "}<｜tool▁call▁end｜>"), 0),
        (('<tool_call>{"name": "\\u0066"', "}</tool_call>"), 0),
    ],
)
def test_where_a_name_is_certain(parts: tuple[str, ...], opens: int) -> None:
    assert [["f"] in step for step in steps(*parts)].index(True) == opens


@pytest.mark.parametrize(
    "first",
    [
        '<tool_call>[{"name": "f"',
        '<tool_call>{"name": " "',
        '<tool_call>{"name": 1',
        "<tool_call>{'name': 'f'",
        '<tool_call>{{"name": "f"',
        '<tool_call>{"x": {"name": "f"}',
        '<tool_call name="f">{"name": 1, "x": 1',
        f'<tool_call>{{"name": "{"f" * 1001}"',
        f'<tool_call>{{"{"k" * 1001}": 1, "name": "f"',
        f'<tool_call>{{{" " * 1001}"name": "f"',
        f'<tool_call>{{"k": {"1" * 1001}, "name": "f"',
        '<tool_call>{"k": 01, "name": "f"',
        '<tool_call>{"k": 1e999, "name": "f"',
        '<tool_call>{"k": NaN, "name": "f"',
        '<think>hm <tool_call>{"name": "f"',
    ],
)
def test_what_is_not_certain_does_not_begin(first: str) -> None:
    for size in (1, 5, 5000):
        assert not any([name] in step for step in steps(*cuts(first, size)) for name in ("f", "", " ", "f" * 1001))


def test_it_is_off_by_default_and_where_a_call_may_turn_out_to_be_none() -> None:
    other: list[dict[str, Any]] = [
        {"options": PROMPT},
        {"options": evolve(NATIVE, stream_calls=True)},
        {"in_place": True},
        {"tools": {}},
    ]
    for asked in other:
        assert not any(["f"] in step for step in steps(OPEN, **asked))


def test_what_may_be_mended_waits_for_what_follows() -> None:
    assert steps(f'{OPEN}"arguments": {{"x": 1, ', "}}</tool_call>") == [[["f"], '{"x": 1'], ["}", True]]
    assert steps(f'{OPEN}"arguments": {{"x": "a\nb', '", "y": \'c\'', ", 'z': [1,], }}</tool_call>") == [
        [["f"], '{"x": "a'],
        [],
        ['\\nb", "y": "c", "z": [1]}', True],
    ]


@pytest.mark.parametrize("at", range(1, 12))
def test_an_escape_that_is_cut_goes_on_when_it_is_whole(at: int) -> None:
    pair = r"\ud83d\ude00"
    parts = (f'{OPEN}"arguments": {{"x": "a{pair[:at]}', f"{pair[at:]}b", '"}}</tool_call>')
    assert steps(*parts) == [[["f"], '{"x": "a'], [f"{pair}b"], ['"}', True]]


@pytest.mark.parametrize("body", ['"parameters": {"x": 1}}', '"arguments": "{\\"x\\": 1}"}'])
def test_arguments_that_are_said_otherwise_follow_when_the_body_is_whole(body: str) -> None:
    assert steps(OPEN + body[:-1], body[-1]) == [[["f"]], ['{"x": 1}', True]]


@pytest.mark.parametrize("levels", [48, 49, 50, 51, 150])
def test_what_is_nested_deeply_follows_when_the_body_is_whole(levels: int) -> None:
    nested = "[" * levels + "]" * levels
    first, last = steps(f'{OPEN}"arguments": {{"x": {nested}', "}}")
    assert first == [["f"], f'{{"x": {nested}' if levels <= 49 else '{"x": ' + "[" * 49]
    assert "".join([first[1], *last[:-1]]) == f'{{"x": {nested}}}'
    assert last[-1] is True


def test_freeform_input_follows_when_it_is_whole() -> None:
    out = Scrubbed(EARLY, freeform=["f"]).give(*said(f'{OPEN}"arguments": {{"input": "l', 's"}}</tool_call>'))
    assert out.content == [("f", "ls")]
    (block,) = (event.block for event in out.events if isinstance(event, BlockStart))
    assert isinstance(block, ToolUseBlock)
    assert block.kind is ToolKind.CUSTOM


def test_so_does_input_that_is_a_string() -> None:
    out = Scrubbed(EARLY, freeform=["f"]).give(*said(f'{OPEN}"arguments": "l', 's"}</tool_call>'))
    assert out.content == [("f", "ls")]


def test_what_comes_meanwhile_waits_behind_it_in_order() -> None:
    between: list[Event] = [
        *(stop(0), start(1, REASONING), think(1, "hm"), stop(1)),
        *(Ping(), start(2, CALL_A), args(2, "{}"), stop(2), start(3, TEXT)),
    ]
    scrubber = stage()
    play(scrubber, [BEGIN, start(0, TEXT)], text(0, f'{OPEN}"arguments": {{"x": '))
    assert play(scrubber, *between) == [[]] * len(between)
    assert play(scrubber, text(3, "1"), text(3, "}}</tool_call>b")) == [
        [],
        [
            *(args(0, '"x": 1}'), stop(0)),
            *(start(1, REASONING), think(1, "hm"), stop(1)),
            *(Ping(), start(2, CALL_A), args(2, "{}"), stop(2)),
            *(start(3, TEXT), text(3, "b")),
        ],
    ]


def test_so_does_what_comes_for_a_block_that_is_open_still() -> None:
    scrubber = stage()
    play(scrubber, [BEGIN, start(0, CALL_A), args(0, "{"), start(1, TEXT)], text(1, OPEN))
    assert play(scrubber, args(0, "}"), [args(0, " ")]) == [[], []]
    assert play(scrubber, text(1, '"x": 1}'))[0][1:] == [stop(1), args(0, "}"), args(0, " ")]


HOPELESS = [
    f'{OPEN}"arguments": {{"x": "a" oops}}}}</tool_call>b',
    f'{OPEN}"arguments": {{"x": 1]}}</tool_call>b',
    f'{OPEN}"function": {{"name": "g"}}}}</tool_call>b',
    f'{OPEN}"arguments": 1}}</tool_call>b',
    f'{OPEN}"x": 1 // </tool_call>\n "a" b}}</tool_call>c',
    f"{OPEN}",
    f'{OPEN}"arguments": {{"x": "a',
    f'{OPEN}"arguments": {{}} /* ',
    f'{OPEN}"arguments": {{"x": 1}}</tool',
]


def failed(whole: list[str]) -> tuple[list[Any], list[tuple[str, str]]]:
    """What is written of an answer that fails, and what is lost."""
    scrubber = stage()
    out: list[Event] = []
    error = None
    for event in said(*whole):
        try:
            out += scrubber.receive([event])
        except UpstreamError as raised:
            error = raised
            break
    assert error is not None
    out += error.take()
    assert (error.kind, error.retryable) == (ErrorKind.INVALID_TOOL_ARGUMENTS, True)
    assert scrubber.receive_eof() == []
    assert scrubber.held == 0
    (call,) = assemble(out).content
    assert isinstance(call, ToolUse)
    assert not any(isinstance(event, BlockStop) for event in out)
    return [call.name, call.arguments], [(entry.path, entry.reason) for entry in scrubber.ledger]


@pytest.mark.parametrize("whole", HOPELESS)
def test_a_call_that_cannot_be_ended_is_left_open_and_fails_the_stream(whole: str) -> None:
    first = failed([whole])
    for size in (1, 2, 3, 7, 23):
        assert failed(cuts(whole, size)) == first


@pytest.mark.parametrize("end", [[BOOM], []])
def test_a_call_that_a_cut_ends_is_left_open_and_what_waited_is_recorded(end: list[Event]) -> None:
    scrubber = stage()
    events = [BEGIN, start(0, TEXT), text(0, OPEN), stop(0), start(1, REASONING), think(1, "hm"), stop(1)]
    out = [event for step in play(scrubber, *events, *end) for event in step]
    assert (scrubber.held == 0) == bool(end)
    out += play(scrubber, EOF)[0]
    assert short(out) == [[["f"]]]
    assert [event for event in out if isinstance(event, BlockStart)] == [out[1]]
    assert out[2:] == end
    assert [(entry.stage, entry.path, entry.action, entry.reason) for entry in scrubber.ledger] == [
        ("TagScrubber", "block", "dropped", "it waited behind a call that was cut")
    ]
    assert scrubber.receive_eof(CUT) == []


def test_a_call_that_a_limit_cuts_is_closed_and_not_whole() -> None:
    parts = said(f'a{OPEN}"arguments": {{"x": 1', end=LIMIT)
    assert short(*play(stage(), *parts))[2:] == [["a", ["f"], "{"], [], [False]]
    assert play(stage(), *parts)[-1] == [BlockStop(1, False), LIMIT]


def test_so_it_is_where_what_is_unfinished_is_hidden() -> None:
    parts = said(f'a{OPEN}"arguments": {{"x": 1', end=LIMIT)
    asked = evolve(EARLY, unfinished="hide")
    assert short(*play(stage(options=asked), *parts))[2:] == [["a", ["f"], "{"], [], [False]]


def test_what_a_broken_call_costs_with_it_are_the_calls_behind() -> None:
    whole = f"{OPEN}oops}}</tool_call>{MARKUP}"
    assert Scrubbed(PROMPT).give(*said(*cuts(whole, 3))).content == [F]
    with pytest.raises(UpstreamError, match="are no JSON object"):
        play(stage(), *said(*cuts(whole, 3)))


@pytest.mark.parametrize("short_of", [0, 1])
def test_a_call_is_no_larger_than_the_bound(short_of: int) -> None:
    whole = f'{OPEN}"arguments": {{"x": "{"a" * 50}"}}}}'
    scrubber = stage(limits=Limits(held_bytes=len(whole) - short_of))
    play(scrubber, [BEGIN, start(0, TEXT)], *(text(0, part) for part in cuts(whole[:-1], 5)))
    assert scrubber.held == len(whole) - 1
    if short_of:
        with pytest.raises(LimitExceeded, match="is larger than") as raised:
            scrubber.receive([text(0, whole[-1])])
        assert raised.value.code == "held_bytes"
        assert scrubber.receive_eof() == []
    else:
        assert scrubber.receive([text(0, whole[-1])]) == [stop(0)]


def weak(source: Source, place: Place) -> Generator[Found | None, None, None]:
    """A family that prose may hold."""
    yield from calls_in((yield from body(source, (), 9, Beginning(place) if place.early else None)), 9)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("last", "whole"), [("}}</tool_call>", True), ("]", False)])
def test_a_client_sees_a_call_begin_and_one_that_breaks_is_never_closed(size: int, last: str, whole: bool) -> None:
    facts = RequestFacts(tools=TOOLS)
    chain = default_chain(dialect("chat"), dialect("messages"), facts=facts, options=EARLY)
    parts = cuts(f'{OPEN}"arguments": {{"x": 1{last}', 5)
    frames = sse(*map(upstream_text, parts), finish(), DONE)
    out = b"".join(chain.receive([frames[at : at + size] for at in range(0, len(frames), size)]))
    out += b"".join(chain.receive_eof())
    names = [event["type"] for event in events_of(out)]
    assert names[:3] == ["message_start", "content_block_start", "content_block_delta"]
    assert names[-1] == ("message_stop" if whole else "error")
    assert ("content_block_stop" in names) == whole


def test_a_client_that_wants_a_whole_answer_loses_only_what_cannot_be_read() -> None:
    raw = sse(upstream_text(OPEN), upstream_text("oops</tool_call> b"), finish(), DONE)
    facts = RequestFacts(tools=TOOLS)
    chain = default_chain(dialect("chat"), dialect("messages"), facts=facts, options=EARLY, leaving=Form.WHOLE)
    message = json.loads(b"".join([*chain.receive([raw]), *chain.receive_eof()]))
    assert [block.get("text") for block in message["content"]] == ["b"]


def test_weak_markup_begins_only_if_the_name_is_offered() -> None:
    families = (Family(name="weak", openers=("call:",), parse=weak, weak=True),)
    options = evolve(EARLY, weak=("weak",))
    for name, first in (("f", [["f"]]), ("h", [])):
        parts = [f'call:{{"name": "{name}"', ', "arguments": {"x": 1}}']
        given_ = short(*play(stage(families=families, options=options), *said(*parts)))[2:-2]
        assert given_ == ([first, ['{"x": 1}', True]] if first else [[], parts])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.text(max_size=4), values, max_size=4)
sizes = st.integers(min_value=1, max_value=30)
names = st.sampled_from(["f", "g", " f ", "h\n"])


@st.composite
def answers(draw: st.DrawFn) -> str:
    """An answer with calls in it, in several spellings."""
    out = []
    for _ in range(draw(st.integers(1, 3))):
        name, given_ = draw(names), draw(arguments)
        indent = draw(st.sampled_from([None, 1]))
        ascii_ = draw(st.booleans())
        key = draw(st.sampled_from(["arguments", "parameters"]))
        said_ = {"name": name, key: given_} if draw(st.booleans()) else {key: given_, "name": name}
        wrapped = {"function": said_} if draw(st.booleans()) else said_
        nameless = {key: value for key, value in given_.items() if key != "name"}
        spellings = [
            f"<tool_call>{json.dumps(wrapped, indent=indent, ensure_ascii=ascii_)}</tool_call>",
            f"<tool_call name='f'>{json.dumps({'q': 1, **nameless}, indent=indent)}</tool_call>",
            f"{DEEP}{json.dumps(given_, indent=indent)}<｜tool▁call▁end｜>",
        ]
        out += [draw(st.sampled_from(["", "a ", "\n"])), draw(st.sampled_from(spellings))]
    return "".join(out)


@given(answers(), sizes)
def test_the_message_is_the_same_as_without(whole: str, size: int) -> None:
    due = Scrubbed(PROMPT).give(*said(whole))
    out = Scrubbed(EARLY).give(*said(*cuts(whole, size)))
    assert out.content == due.content
    assert out.lost == due.lost
    assert out.outcome.recovered == due.outcome.recovered
    assert out.message.stop_reason == due.message.stop_reason


LOOSE = {'"': "'", ", ": ",\n // a\n", "}": ",}", "]": ",]", "true": "True", "a": "\n"}


@given(answers(), sizes, st.sampled_from(sorted(LOOSE)), st.integers(0, 40))
def test_a_body_that_is_not_strict_says_the_same_or_fails_at_every_cut(
    whole: str, size: int, strict: str, skipped: int
) -> None:
    at = whole.find(strict, whole.find("{") + skipped)
    loose = whole[:at] + LOOSE[strict] + whole[at + len(strict) :] if at >= 0 else whole
    first, fails = ended([loose])
    assert ended(cuts(loose, size)) == (first, fails)
    if not fails:
        assert list(map(meaning, first)) == list(map(meaning, ended([loose], PROMPT)[0]))


def ended(parts: list[str], options: AnswerOptions = EARLY) -> tuple[list[Any], bool]:
    """The content of an answer, and whether it failed."""
    scrubber = stage(options=options)
    out: list[Event] = []
    try:
        for event in said(*parts):
            out += scrubber.receive([event])
    except UpstreamError as error:
        out += error.take()
    out += scrubber.receive_eof()
    content = [
        (part.name, part.arguments) if isinstance(part, ToolUse) else (type(part).__name__, getattr(part, "text", ""))
        for part in assemble(out).content
    ]
    return content, not isinstance(out[-1], MessageDelta)


def meaning(part: tuple[str, str]) -> tuple[str, Any]:
    return part if part[0] in ("Text", "Reasoning") else (part[0], json.loads(part[1]))


@pytest.mark.parametrize(
    ("written", "whole", "rest"),
    [
        ("", '{"x":1}', '{"x":1}'),
        ('{"x": 1}', '{"x":1}', ""),
        ('{"x": 1', '{"x":1,"y":[2]}', ', "y": [2]}'),
        ('{"x": [1, {"y": "ü\\n', '{"x":[1,{"y":"ü\\nb","z":null},true]}', 'b", "z": null}, true]}'),
        ("{", '{"x":1}', '"x": 1}'),
        ('{"x": 1', '{"x":2}', None),
        ('{"x": "a', '{"x":"b"}', None),
        ('{"x": "a', '{"x":1}', None),
        ('{"x": [', '{"x":{}}', None),
        ('{"x": 1', "no JSON", None),
        ('{"x": "a\\"b', '{"x":"a\\"bc"}', 'c"}'),
    ],
)
def test_the_rest_makes_of_a_beginning_what_was_meant(written: str, whole: str, rest: str | None) -> None:
    found = rest_of(written, whole)
    assert (found is None) == (rest is None)
    if found is not None and rest is not None:
        assert json.loads(written + found) == json.loads(whole)
        assert found.replace(" ", "") == rest.replace(" ", "")


@given(arguments, st.data())
def test_any_beginning_that_may_be_told_is_made_whole(value: dict[str, Any], data: st.DataObject) -> None:
    whole = json.dumps(value)
    told = [event.text for event in flat(f'{OPEN}"arguments": {whole[: data.draw(st.integers(1, len(whole)))]}')]
    rest = rest_of("".join(told), json.dumps(value, separators=(",", ":"), sort_keys=True))
    assert rest is not None
    assert json.loads("".join(told) + rest) == value


def flat(part: str) -> list[ArgumentsDelta]:
    return [event for step in play(stage(), *said(part)[:-2]) for event in step if isinstance(event, ArgumentsDelta)]


@pytest.mark.parametrize("end", [[END], [BOOM], []])
def test_it_keeps_the_rules_of_every_stage(end: list[Event]) -> None:
    events = said("a", OPEN, '"arguments": {"x"', ": 1}", "}</tool_call> b", OPEN, '"arguments": {}}</tool_call>')[:-1]

    def equal(ours: Any, theirs: Any) -> bool:
        return bool(short(ours) == short(theirs))

    check_stage(stage, [*events, *end], equal=equal)
