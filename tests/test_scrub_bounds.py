"""stages.scrub: what is held back to the very byte, what is let go at once, and what is no state of the text."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.errors import LimitExceeded
from pipeline.events import (
    AnnotationDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    Ping,
    ReasoningDelta,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    TextDelta,
    ToolKind,
    ToolUseBlock,
)
from pipeline.limits import Limits
from pipeline.route import AnswerOptions
from pipeline.testing import EOF, UnknownEvent, play
from stages.scrub import TagScrubber
from stages.scrub.families import FAMILIES
from stages.scrub.scanner import Kind, Scanner
from stages.scrub.tape import EVENT
from tests.canonical import BEGIN, CALL_A, CALL_B, END, REASONING, TEXT, TOOLS, args, start, stop, text, think
from tests.scrubbing import CALL, HIDING, MARKUP, NATIVE, PROMPT, F, Scrubbed, at_every_cut, cuts, said, scrubbed
from tests.scrubbing import TOOLS as OFFERED

OPENER = "<tool_call>"
OWN: list[Event] = [start(1, CALL_A), args(1, "{}"), stop(1)]
A = ("get_a", "{}")


@pytest.mark.parametrize("short", [0, 1])
def test_markup_may_be_as_long_as_the_bound_and_no_longer(short: int) -> None:
    limits = Limits(held_bytes=len(OPENER + CALL) - short)
    for parts in ((f"a{OPENER}", CALL), (f"a{OPENER}", *cuts(CALL, 3))):
        assert scrubbed(*parts, limits=limits).content == ([f"a{OPENER}{CALL}"] if short else ["a", F])


@pytest.mark.parametrize("short", [0, 1])
def test_each_body_of_several_may_be_so_long(short: int) -> None:
    most = len(OPENER + CALL)
    rest = CALL.rjust(most + short)
    assert scrubbed(OPENER, CALL, rest, limits=Limits(held_bytes=most)).content == [F, CALL if short else F]


@pytest.mark.parametrize("short", [0, 1])
def test_so_long_may_be_what_waits_for_the_gate(short: int) -> None:
    limits = Limits(held_bytes=len(MARKUP) + EVENT - short)
    events = [BEGIN, start(0, TEXT), text(0, "a"), text(0, MARKUP), stop(0), *OWN, TOOLS]
    assert Scrubbed(NATIVE, limits=limits).give(*events).content == (["a", F, A] if short else [f"a{MARKUP}", A])


@pytest.mark.parametrize("most", [9, 10])
def test_so_long_may_be_a_name_and_an_id(most: int) -> None:
    out = scrubbed(f'<tool_call>{{"name": "{"f" * 10}"}}</tool_call>', limits=Limits(id_chars=most))
    assert out.content == ([("f" * 10, "{}")] if most == 10 else [])


R = [start(1, REASONING), *(think(1, "r" * 100) for _ in range(50))]
BESIDE: list[Event] = [Ping(), Carry("d", Frame(b"x" * 9)), UnknownEvent()]
BLANKS: list[Event] = [text(0, "\n")] * 2000
WAITING: dict[str, tuple[AnswerOptions, list[Event]]] = {
    "reasoning behind what may become markup": (PROMPT, [text(0, "a <"), stop(0), *R]),
    "reasoning behind a call under way": (PROMPT, [text(0, f"{OPENER}{{"), stop(0), *R]),
    "reasoning behind a call that waits for the gate": (NATIVE, [text(0, MARKUP), stop(0), *R]),
    "calls that wait for the gate": (NATIVE, [text(0, MARKUP)] * 100),
    "reasoning behind a call in reasoning": (PROMPT, [text(0, f"<think>{MARKUP}"), stop(0), *R]),
    "reasoning behind the end of reasoning": (PROMPT, [text(0, "<think>a</thi"), stop(0), *R]),
    "reasoning behind two calls": (NATIVE, [text(0, f"{MARKUP}{OPENER}{{"), stop(0), *R]),
    "blanks at the beginning": (PROMPT, BLANKS),
    "blanks behind a call": (PROMPT, [text(0, MARKUP), *BLANKS]),
    "blanks behind text and a call": (PROMPT, [text(0, f"a{MARKUP}"), *BLANKS]),
    "blanks in reasoning": (PROMPT, [text(0, "<think>a"), *BLANKS]),
    "events of no block behind blanks": (PROMPT, [text(0, "\n"), *BESIDE * 100]),
    "events of no block behind the start of a text": (PROMPT, BESIDE * 100),
    "citations": (PROMPT, [text(0, f"a{OPENER}{{"), *[AnnotationDelta(0, {"x": "y" * 300})] * 9]),
    "signatures": (PROMPT, [text(0, f"a{OPENER}{{"), *[SignatureDelta(7, "s" * 300)] * 9]),
    "refusals": (PROMPT, [text(0, f"a{OPENER}{{"), *[RefusalDelta(0, "n" * 300)] * 9]),
    "frames": (PROMPT, [text(0, f"a{OPENER}{{"), *[Carry("d", Frame(b"x" * 300))] * 9]),
    "starts": (PROMPT, [text(0, f"a{OPENER}{{"), *[start(9, ServerBlock("d", {"x": "y" * 300}))] * 9]),
}
"""What may wait for long, by what it is."""


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", WAITING)
def test_whatever_waits_is_counted_and_leaves_at_the_bound(name: str, in_place: bool) -> None:
    options, events = WAITING[name]
    most, held, given, made = 1000, 0, 0, 0
    scrubber = TagScrubber(options=options, tools=OFFERED, limits=Limits(held_bytes=most), in_place=in_place)
    scrubber.receive([BEGIN, start(0, TEXT)])
    for event in events:
        given += size(event)
        made += sum(map(size, scrubber.receive([event])))
        held = max(held, scrubber.held)
        assert scrubber.held <= most
        assert given - made <= scrubber.held + 500 or name == "blanks behind a call"
    assert held > most / 2 or name == "blanks behind a call", "it was not counted"


def size(event: Event) -> int:
    """Bytes of what an event says."""
    said = [getattr(event, name, "") for name in ("text", "signature", "annotation", "block")]
    beside = 50 * isinstance(event, Ping | UnknownEvent) + (len(event.frame.data) if isinstance(event, Carry) else 0)
    return sum(len(str(one)) for one in said) + beside


def test_at_the_bound_a_call_that_waits_is_recovered_and_what_is_no_call_yet_is_text() -> None:
    limits = Limits(held_bytes=1000)
    for options, parts, content in (
        (NATIVE, [MARKUP], [F, "r"]),
        (PROMPT, [f"{OPENER}{{"], [f"{OPENER}{{", "r"]),
        (PROMPT, ["<think>a</thi"], [["a</thi"], "r"]),
        (NATIVE, [f"{MARKUP}{OPENER}{{"], [F, f"{OPENER}{{", "r"]),
        (PROMPT, [f"<think>{MARKUP}"], [F, "r"]),
    ):
        out = Scrubbed(options, limits=limits).give(*said(*parts)[:-1], *R, stop(1), END)
        assert [["r"] if part == ["r" * 5000] else part for part in out.content] == [*content[:-1], ["r"]]


def test_at_the_bound_a_call_that_was_begun_fails_the_stream_and_stays_open() -> None:
    early = evolve(PROMPT, stream_calls=True)
    scrubber = TagScrubber(options=early, tools=OFFERED, limits=Limits(held_bytes=1000))
    scrubber.receive([BEGIN, start(0, TEXT), text(0, '<tool_call>{"name": "f", "arguments": {'), stop(0)])
    held = scrubber.held
    for event in R[:5]:
        assert list(scrubber.receive([event])) == []
    assert scrubber.held > held + 400
    with pytest.raises(LimitExceeded, match="with what waits behind it"):
        scrubber.receive(R)
    assert list(scrubber.receive_eof()) == []


def test_blanks_that_are_written_at_the_bound_are_text_and_reasoning_to_what_follows() -> None:
    limits = Limits(held_bytes=10)
    blank = ["\n" * 6] * 2
    assert Scrubbed(limits=limits).give(*said(*blank, MARKUP, " b")).content == ["\n" * 12, F, " b"]
    assert Scrubbed(limits=limits).give(*said("<think>a", *blank, " b</think>c")).content == [
        ["a" + "\n" * 12 + " b"],
        "c",
    ]
    assert Scrubbed(limits=limits).give(*said(f"a{MARKUP}", *blank, MARKUP)).content == ["a", F, "\n" * 12, F]


def test_behind_markup_that_was_too_long_the_line_goes_on() -> None:
    limits = Limits(held_bytes=60)
    whole = f'{OPENER}{{"{"a" * 55}'
    assert scrubbed(*cuts(whole, 10), f"~~~\n{MARKUP}", limits=limits).content == [f"{whole}~~~\n", F]


@pytest.mark.parametrize("markup", [f"{OPENER}{{", "<tool_call ", f"{OPENER}\n", "<tool_c", "<｜tool▁call▁begin｜>f"])
def test_a_call_of_the_models_own_lets_go_of_markup_under_way(markup: str) -> None:
    scrubber = TagScrubber(options=NATIVE, tools=OFFERED)
    first, own, then, last = play(
        scrubber,
        [BEGIN, start(0, TEXT), text(0, f"a{markup}"), stop(0)],
        OWN,
        [start(2, TEXT), text(2, f"b{OPENER}{{")],
        [stop(2), TOOLS],
    )
    assert first == [BEGIN, start(0, TEXT), text(0, "a")]
    assert own == [text(0, markup), stop(0), *OWN]
    assert "".join(event.text for event in then if isinstance(event, TextDelta)) == f"b{OPENER}{{"
    assert last == [stop(2), TOOLS]


def test_but_not_of_a_tag_of_reasoning() -> None:
    events = [BEGIN, start(0, TEXT), text(0, "<think "), stop(0), *OWN, start(2, TEXT), text(2, "a='b'>c</think>d")]
    assert Scrubbed(NATIVE).give(*events, stop(2), TOOLS).content == [A, ["c"], "d"]


@pytest.mark.parametrize(("recover", "tools"), [("off", OFFERED), ("native", {}), ("prompt", {})])
def test_where_markup_of_calls_is_text_none_is_held(recover: Any, tools: dict[str, Any]) -> None:
    scrubber = TagScrubber(options=evolve(PROMPT, recover=recover), tools=tools)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, "a")])
    assert play(scrubber, text(0, f"b{OPENER}{{")) == [[text(0, f"b{OPENER}{{")]]
    assert scrubber.held == 0


def test_nothing_of_any_block_comes_behind_the_end() -> None:
    for index in (0, 1):
        scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
        play(scrubber, [BEGIN, start(index, TEXT), text(index, "a")], EOF)
        assert play(scrubber, text(1, "x"), text(0, "x"), [text(1, "x"), text(1, "x")]) == [[], [], []]


def test_closers_belong_to_the_openers_that_were_told_as_text() -> None:
    for whole, shown in {
        "a <tool_call> b\n</tool_call>\nc": "a <tool_call> b\n</tool_call>\nc",
        "a <tool_call> b </tool_call> c\n</tool_call>\nd": "a <tool_call> b </tool_call> c\n\nd",
        "<tool_call> or <tool_call> a\n</tool_call>\n</tool_call>\n</tool_call>\nb": (
            "<tool_call> or <tool_call> a\n</tool_call>\n</tool_call>\n\nb"
        ),
    }.items():
        assert "".join(at_every_cut(whole, options=HIDING).content) == shown


def test_a_closer_at_a_lines_end_or_the_texts_is_no_mention() -> None:
    for whole, shown in {
        "a </tool_call>\nb": "a \nb",
        "a </tool_call>": "a ",
        "a </tool_call> b": "a </tool_call> b",
    }.items():
        assert "".join(at_every_cut(whole, options=HIDING).content) == shown


def test_an_opener_of_reasoning_may_come_again_behind_blanks_only() -> None:
    opened = evolve(PROMPT, reasoning_open=True)
    assert at_every_cut("<think>\n<think>a</think>b").content == [["a"], "b"]
    assert at_every_cut("<think>a\n<think>b</think>c").content == [["a\n<think>b"], "c"]
    assert at_every_cut("\n\n<think>\na</think>b", options=opened).content == [["a"], "b"]
    assert at_every_cut("\n\na</think>b", options=opened).content == [["a"], "b"]


def test_markup_that_the_end_cuts_in_reasoning_is_reasoning() -> None:
    assert at_every_cut(f"<think>a {OPENER}{{").content == [[f"a {OPENER}{{"]]
    assert at_every_cut(f"<think>a {OPENER}{{", options=HIDING).content == [["a"]]
    assert at_every_cut(f"<think>a {MARKUP}{OPENER}{{").content == [["a"], F, [f"{OPENER}{{"]]


def test_blanks_that_no_markup_stands_beside_are_text() -> None:
    assert Scrubbed().give(*said(" ", "\n")).content == [" \n"]
    behind = [BEGIN, start(0, REASONING), think(0, "hm"), stop(0), start(1, TEXT), text(1, " "), stop(1), END]
    assert Scrubbed().give(*behind).content == [["hm"], " "]
    assert Scrubbed().give(*said(" ", MARKUP, "\n")).content == [F]


def test_the_input_of_a_freeform_tool_is_its_one_argument() -> None:
    markup = '<tool_call>{"name": "f", "arguments": {"input": "ls"}}</tool_call>'
    for freeform, kind, arguments in (
        (["f"], ToolKind.CUSTOM, "ls"),
        (["g"], ToolKind.FUNCTION, '{"input": "ls"}'),
    ):
        out = Scrubbed(freeform=freeform).give(*said(markup))
        assert out.content == [("f", arguments)]
        (block,) = (event.block for event in out.events if isinstance(event, BlockStart))
        assert isinstance(block, ToolUseBlock)
        assert block.kind is kind


def test_every_call_that_was_recovered_is_counted() -> None:
    out = scrubbed(f"{MARKUP} and {MARKUP}<tool_call>{{}}</tool_call>")
    assert out.outcome.recovered == 2


@pytest.mark.parametrize("complete", [True, False])
def test_events_of_blocks_that_overlap_go_to_their_own(complete: bool) -> None:
    scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
    play(scrubber, [BEGIN, start(1, CALL_A), start(0, CALL_B)])
    events = (args(1, "{}"), args(0, "[]"), BlockStop(1, complete), BlockStop(0, complete))
    moved = (args(0, "{}"), args(1, "[]"), BlockStop(0, complete), BlockStop(1, complete))
    assert play(scrubber, *events) == [[event] for event in moved]


def test_events_of_a_block_that_never_began_are_passed_on() -> None:
    events: list[Event] = [args(3, "{}"), think(4, "hm"), SignatureDelta(5, "s"), RefusalDelta(6, "no"), stop(3)]
    assert play(TagScrubber(options=PROMPT, tools=OFFERED), *events) == [[event] for event in events]


def test_text_of_a_block_that_ended_opens_one_anew() -> None:
    out = Scrubbed().give(BEGIN, start(0, TEXT), text(0, "a"), stop(0), text(0, "b"), text(0, "c"), END)
    assert out.content == ["a", "bc"]


def test_an_empty_block_of_text_stays_unless_markup_was_cut_out_before_it() -> None:
    empty = [start(0, TEXT), stop(0)]
    assert play(TagScrubber(options=PROMPT, tools=OFFERED), *empty) == [[], empty]
    again = [start(1, TEXT), stop(1), END]
    assert Scrubbed().give(BEGIN, start(0, TEXT), text(0, MARKUP), stop(0), *again).content == [F]


def test_what_is_no_text_leaves_at_once_behind_text_and_behind_the_blanks_before_it() -> None:
    scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, "a")])
    assert play(scrubber, Ping(), stop(0), Ping()) == [[Ping()], [stop(0)], [Ping()]]
    steps = play(scrubber, [start(1, TEXT), text(1, MARKUP), text(1, "b"), text(1, " ")], RefusalDelta(1, "no"))
    assert steps[1] == [RefusalDelta(2, "no")]
    other = TagScrubber(options=PROMPT, tools=OFFERED)
    refused = play(other, start(0, TEXT), text(0, " "), RefusalDelta(0, "no"))
    assert refused == [[], [], [start(0, TEXT), text(0, " "), RefusalDelta(0, "no")]]


def test_a_scanner_that_ends_in_reasoning_tells_all() -> None:
    scanner = Scanner(FAMILIES, tools=OFFERED, reasoning_open=True)
    told = [*scanner.feed("a <"), *scanner.feed("tool <"), *scanner.close()]
    assert "".join(piece.raw for piece in told) == "a <tool <"
    assert {piece.kind for piece in told} == {Kind.THOUGHT}


def test_what_is_let_go_is_text_for_all_that_follows() -> None:
    scanner = Scanner(FAMILIES, tools=OFFERED)
    assert scanner.feed("<tool_c") == []
    assert [(piece.kind, piece.raw) for piece in scanner.let_go()] == [(Kind.TEXT, "<tool_c")]
    assert scanner.held == 0
    assert scanner.feed(f"``` no fence\n{MARKUP}")[-1].kind is Kind.CALLS  # marks within a line open none
    assert {piece.kind for piece in scanner.feed(f"\n``` a fence\n{MARKUP}")} == {Kind.TEXT}


@pytest.mark.parametrize("in_place", [False, True])
def test_blanks_that_may_not_wait_behind_reasoning_make_no_empty_delta(in_place: bool) -> None:
    out = Scrubbed(limits=Limits(held_bytes=30), in_place=in_place).give(
        *said("a<think>hm</think>", " " * 20, " " * 20, "b")
    )
    assert out.content == ["a", ["hm"], " " * 40 + "b"]
    assert all(event.text for event in out.events if isinstance(event, ReasoningDelta))


def test_blanks_that_wait_leave_before_a_refusal_of_their_block() -> None:
    steps = play(
        TagScrubber(options=PROMPT, tools=OFFERED),
        [BEGIN, start(0, TEXT), text(0, "a"), text(0, "<tool_call></tool_call>"), text(0, " ")],
        RefusalDelta(0, "no"),
    )
    assert steps[1] == [text(0, " "), RefusalDelta(0, "no")]


def test_what_waits_behind_a_call_that_is_written_counts_no_more_when_it_has_left() -> None:
    scrubber = TagScrubber(options=evolve(PROMPT, stream_calls=True), tools=OFFERED)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, '<tool_call>{"name": "f", "arguments": {'), start(1, TEXT)])
    assert scrubber.held > EVENT
    play(scrubber, text(1, "}}</tool_call>b"))
    assert scrubber.held == 0
