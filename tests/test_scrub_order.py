"""stages.scrub: in which order things leave, what waits for what, and how it all ends."""

from typing import Any

import pytest
from attrs import evolve

from pipeline.events import (
    AnnotationDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStop,
    Ping,
    ReasoningBlock,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextDelta,
    ToolUseBlock,
)
from pipeline.limits import Limits
from pipeline.testing import EOF, UnknownEvent, check_stage, play
from stages.scrub import TagScrubber
from tests.canonical import (
    BEGIN,
    BOOM,
    CALL_A,
    CUT,
    END,
    LIMIT,
    REASONING,
    TEXT,
    TOOLS,
    args,
    start,
    stop,
    text,
    think,
)
from tests.scrubbing import (
    CALL,
    HIDING,
    MARKUP,
    NATIVE,
    NATIVE_HIDING,
    PROMPT,
    F,
    Scrubbed,
    at_every_cut,
    cuts,
    said,
    scrubbed,
)
from tests.scrubbing import TOOLS as OFFERED

OWN: list[Event] = [start(1, CALL_A), args(1, "{}"), stop(1)]
A = ("get_a", "{}")
HALF, REST = MARKUP[:20], MARKUP[20:]


def thought_between(before: str, between: str, behind: str) -> list[Event]:
    """Text, reasoning of the upstream's own, text."""
    return [
        BEGIN,
        *(start(0, TEXT), text(0, before), stop(0)),
        *(start(1, REASONING), think(1, between), stop(1)),
        *(start(2, TEXT), text(2, behind), stop(2)),
        END,
    ]


def own_between(before: str, behind: str) -> list[Event]:
    """Text, a call in the upstream's own form, text."""
    first, last = [start(0, TEXT), text(0, before), stop(0)], [start(2, TEXT), text(2, behind), stop(2)]
    return [BEGIN, *first, *OWN, *last, TOOLS]


def test_a_call_leaves_as_soon_as_its_body_is_whole() -> None:
    scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
    steps = play(scrubber, [BEGIN, start(0, TEXT)], text(0, "Hi."), text(0, f"<tool_call>{CALL[:-1]}"), text(0, "}"))
    assert steps[1] == [start(0, TEXT), text(0, "Hi.")]
    assert steps[2] == []
    block = steps[3][1]
    assert isinstance(block, BlockStart)
    assert isinstance(block.block, ToolUseBlock)
    assert block.block.name == "f"
    assert steps[3] == [stop(0), block, args(1, F[1]), stop(1)]
    assert play(scrubber, text(0, "</tool_call>"), text(0, " b"), stop(0), END) == [
        [],
        [start(2, TEXT), text(2, " b")],
        [stop(2)],
        [MessageDelta(StopReason.TOOL_USE)],
    ]


def test_events_that_nothing_is_cut_from_are_passed_on_as_they_are() -> None:
    events: list[Event] = [
        BEGIN,
        Ping(),
        *(start(0, REASONING), think(0, "<think>"), SignatureDelta(0, "s"), stop(0)),
        *(
            start(1, TEXT),
            Ping(),
            text(1, "\n"),
            text(1, "a"),
            Carry("d", Frame(b"x")),
            text(1, "b <"),
            text(1, "c"),
            stop(1),
        ),
        *(start(2, CALL_A), args(2, "<tool_call>"), args(2, "{"), stop(2, complete=False)),
        *(start(3, TEXT), RefusalDelta(3, MARKUP), AnnotationDelta(3, {}), stop(3)),
        TOOLS,
        MessageStop(),
    ]
    for options in (NATIVE, PROMPT):
        out = Scrubbed(options).give(*events).events
        assert [event for event in out if not isinstance(event, TextDelta)] == [
            event for event in events if not isinstance(event, TextDelta)
        ]
        assert all(any(event is one for one in events) for event in out if event not in (text(1, "b "), text(1, "<")))


@pytest.mark.parametrize("at", range(1, len(MARKUP)))
def test_markup_cut_by_reasoning_is_still_markup_and_the_reasoning_waits_behind_it(at: int) -> None:
    out = Scrubbed().give(*thought_between(f"a{MARKUP[:at]}", "hm", f"{MARKUP[at:]}b"))
    assert out.content == ["a", F, ["hm"], "b"]


@pytest.mark.parametrize("at", range(1, len("<tool_cab")))
def test_text_cut_by_reasoning_stays_in_order(at: int) -> None:
    whole = "<tool_cab"
    out = Scrubbed().give(*thought_between(f"a{whole[:at]}", "hm", f"{whole[at:]} b"))
    assert out.content == [f"a{whole[:at]}", ["hm"], f"{whole[at:]} b"]


def test_a_reasoning_tag_cut_by_reasoning_stays_one() -> None:
    out = Scrubbed().give(*thought_between("<think>a", "hm", "b</think>c"))
    assert out.content == [["a"], ["hm"], ["b"], "c"]


SCATTERED: list[tuple[list[str], list[Any]]] = [
    (["<tool_call>", '{"name":"f"', "}</tool_call>"], [("f", "{}"), ["hm"], ["hm"]]),
    (["<thi", "nk", ">x</think>y"], [["hm"], ["hm"], ["x"], "y"]),
    (["a <tool_call>", '{"name":"f"', '}</tool_call>{"'], ["a ", ("f", "{}"), ["hm"], ["hm"], '{"']),
    (["<think>a", " ", "b</think>c"], [["a"], ["hm"], ["hm"], [" b"], "c"]),
    (["<think>", "a", "</think>", "<tool_c", "all>", "{}</tool_call>"], [["hm"], ["a"], *[["hm"]] * 4]),
]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", [PROMPT, NATIVE, evolve(PROMPT, stream_calls=True)])
@pytest.mark.parametrize(("parts", "content"), SCATTERED)
def test_a_block_of_text_of_which_nothing_is_left_is_none(
    parts: list[str], content: list[Any], options: Any, in_place: bool
) -> None:
    made = Scrubbed(options, in_place=in_place).give(BEGIN, *between(parts, reasoned=True), END)
    assert made.content == content


@pytest.mark.parametrize("in_place", [False, True])
def test_a_block_of_text_that_is_all_reasoning_is_none(in_place: bool) -> None:
    for parts, rest in ((["<think>a", "b", "</think>c"], "b"), (["<think>a", " ", "b</think>c"], " b")):
        out = Scrubbed(in_place=in_place).give(BEGIN, *between(parts), END)
        assert out.content == [*([[f"a{rest}"]] if in_place else [["a"], [rest]]), "c"]


def between(parts: list[str], *, reasoned: bool = False) -> list[Event]:
    """Each part in a block of its own; `reasoned`: between any two is reasoning."""
    out: list[Event] = []
    for at, part in enumerate(parts):
        out += [start(2 * at, TEXT), text(2 * at, part), stop(2 * at)]
        if reasoned and at < len(parts) - 1:
            out += [start(2 * at + 1, REASONING), think(2 * at + 1, "hm"), stop(2 * at + 1)]
    return out


def test_all_that_comes_while_markup_is_under_way_waits_behind_it_in_order() -> None:
    between: list[Event] = [Ping(), Carry("d", Frame(b"x")), UnknownEvent()]
    scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
    play(scrubber, [BEGIN, start(0, TEXT), text(0, HALF)])
    assert play(scrubber, *between) == [[], [], []]
    (out,) = play(scrubber, text(0, REST))
    assert out[-3:] == between
    assert isinstance(out[0], BlockStart)


def test_two_unclosed_openers_the_earlier_one_holds() -> None:
    whole = f"use <tool_call or {MARKUP} ok"
    assert at_every_cut(whole).content == ["use <tool_call or ", F, " ok"]
    assert at_every_cut(f'use <tool_call id="{MARKUP}').content == ['use <tool_call id="', F]
    nested = '<tool_call>{"name": "f", "arguments": {"s": "<tool_call>{"}}</tool_call>'
    assert at_every_cut(nested).content == [("f", '{"s": "<tool_call>{"}')]


def test_a_native_callers_markup_and_all_behind_it_waits_for_the_end_of_the_turn() -> None:
    scrubber = TagScrubber(options=NATIVE, tools=OFFERED)
    steps = play(scrubber, [BEGIN, start(0, TEXT), text(0, f"a {MARKUP}")], text(0, " b"), stop(0), Ping(), END)
    assert steps[0] == [BEGIN, start(0, TEXT), text(0, "a ")]
    assert steps[1:4] == [[], [], []]
    last = steps[4]
    assert [type(event).__name__ for event in last] == [
        *("BlockStop", "BlockStart", "ArgumentsDelta", "BlockStop"),
        *("BlockStart", "TextDelta", "BlockStop", "Ping", "MessageDelta"),
    ]


def test_a_call_of_the_models_own_lets_go_of_all_that_waits_at_once_as_it_was() -> None:
    scrubber = TagScrubber(options=NATIVE, tools=OFFERED)
    parts = cuts(f"a{MARKUP} {MARKUP} b", 3)
    for part in parts:
        play(scrubber, [text(0, part)])
    before = play(TagScrubber(options=NATIVE, tools={}), *(text(0, part) for part in parts))
    whole = "".join(event.text for step in before for event in step if isinstance(event, TextDelta))
    assert whole == "".join(parts)
    own = play(scrubber, start(1, CALL_A))[0]
    assert "".join(event.text for event in own if isinstance(event, TextDelta)) in whole
    assert scrubber.held == 0
    assert isinstance(own[-1], BlockStart)


@pytest.mark.parametrize("at", range(len(MARKUP) + 1))
def test_a_call_of_the_models_own_in_the_middle_of_markup_leaves_the_text_as_it_was(at: int) -> None:
    events = [
        BEGIN,
        start(0, TEXT),
        text(0, f"a{MARKUP[:at]}"),
        stop(0),
        *OWN,
        start(2, TEXT),
        text(2, f"{MARKUP[at:]}b"),
    ]
    out = Scrubbed(NATIVE).give(*events, stop(2), TOOLS)
    assert out.content == [f"a{MARKUP[:at]}", A, f"{MARKUP[at:]}b"]


@pytest.mark.parametrize("at", range(len(MARKUP) + 1))
def test_with_residue_hidden_it_is_not_shown_and_makes_no_call(at: int) -> None:
    events = [
        BEGIN,
        start(0, TEXT),
        text(0, f"a{MARKUP[:at]}"),
        stop(0),
        *OWN,
        start(2, TEXT),
        text(2, f"{MARKUP[at:]}b"),
    ]
    out = Scrubbed(NATIVE_HIDING).give(*events, stop(2), TOOLS)
    assert out.content == ["a", A, "b"]
    assert out.outcome.recovered == 0


def test_behind_a_call_of_the_models_own_nothing_waits() -> None:
    scrubber = TagScrubber(options=NATIVE, tools=OFFERED)
    play(scrubber, [BEGIN, start(0, CALL_A), stop(0)])
    assert play(scrubber, [start(1, TEXT), text(1, MARKUP)]) == [[start(1, TEXT), text(1, MARKUP)]]


@pytest.mark.parametrize("end", [BOOM, CUT])
def test_on_a_cut_what_a_native_caller_wrote_is_passed_on_as_it_was(end: StreamError) -> None:
    out = Scrubbed(NATIVE).give(BEGIN, start(0, TEXT), text(0, f"a {MARKUP} b"), stop(0), end)
    assert out.content == [f"a {MARKUP} b"]
    assert out.events[-1] is end


@pytest.mark.parametrize("cause", [None, CUT])
def test_at_a_sudden_end_what_is_held_goes_out_first(cause: StreamError | None) -> None:
    scrubber = TagScrubber(options=NATIVE, tools=OFFERED)
    steps = play(scrubber, [BEGIN, start(0, TEXT), text(0, "a"), text(0, MARKUP)], EOF if cause is None else EOF(cause))
    assert steps[1] == [text(0, MARKUP), stop(0), *([] if cause is None else [cause])]
    assert scrubber.held == 0
    assert play(scrubber, text(0, "x")) == [[]]
    assert [*scrubber.receive_eof(CUT)] == []


def test_an_empty_delta_is_nothing() -> None:
    assert Scrubbed().give(*said("", "a", "", "<", "", "b")).content == ["a<b"]


def test_nothing_comes_behind_the_end() -> None:
    for end in (EOF, BOOM):
        scrubber = TagScrubber(options=PROMPT, tools=OFFERED)
        play(scrubber, [BEGIN, start(0, TEXT)], text(0, "a"), text(0, "b"), end)
        assert play(scrubber, text(0, "x"), [text(0, "x"), stop(0)]) == [[], []]


def test_a_call_that_was_written_before_a_cut_stays() -> None:
    out = Scrubbed().give(BEGIN, start(0, TEXT), text(0, f"{MARKUP}<tool_"), stop(0), BOOM)
    assert out.content == [F, "<tool_"]


@pytest.mark.parametrize("end", [END, BOOM])
def test_the_end_lets_go_of_an_opener(end: Event) -> None:
    for whole in (
        "a <tool_c",
        "a <tool_call>",
        "a <tool_call>\n",
        "a <",
        "a <tool_call id='x",
        "<th",
        "a <think>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁calls▁begin｜>\n",
    ):
        for options in (PROMPT, HIDING, NATIVE):
            assert at_every_cut(whole, end=end, options=options).content == [whole]


CUT_BODIES = [
    '<tool_call>{"name": "f", "argu',
    "<tool_call>{",
    f"<tool_call>{CALL[:-1]}",
    "<tool_call>{'a",
    "<tool_call>{“a",
    '<tool_call>{"a": 1, //',
    '<tool_call>{"a": "\\',
    '<tool_call>{"a" b}',
    "<｜tool▁calls▁begin｜><｜tool▁ca",
    "<｜tool▁call▁begin｜>func",
    "<｜tool▁call▁begin｜>f<｜tool",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>",
    "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
]


@pytest.mark.parametrize("end", [END, LIMIT, BOOM])
@pytest.mark.parametrize("body", CUT_BODIES)
def test_a_body_that_the_end_cut_makes_no_call_and_is_shown_or_hidden(body: str, end: Event) -> None:
    shown = at_every_cut(f"a {body}", end=end, options=PROMPT)
    assert shown.content == [f"a {body}"]
    assert shown.lost == []
    hidden = at_every_cut(f"a {body}", end=end, options=HIDING)
    assert hidden.content == ["a "]
    assert hidden.lost == [("dropped", "markup of a call that the end of the answer cut")]


def test_behind_a_whole_call_only_what_was_cut_is_unfinished() -> None:
    whole = f"<tool_call>{CALL}{CALL[:9]}"
    assert at_every_cut(whole, options=PROMPT).content == [F, CALL[:9]]
    assert at_every_cut(whole, options=HIDING).content == [F]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (StopReason.END_TURN, StopReason.TOOL_USE),
        (StopReason.TOOL_USE, StopReason.TOOL_USE),
        *((reason, reason) for reason in (StopReason.MAX_TOKENS, StopReason.REFUSAL, StopReason.STOP_SEQUENCE)),
    ],
)
def test_the_stop_reason_says_tool_use_unless_a_limit_a_refusal_or_a_stop_sequence_stands(
    reason: StopReason, told: StopReason
) -> None:
    end = MessageDelta(reason)
    assert Scrubbed().give(*said(MARKUP, end=end)).message.stop_reason is told
    assert Scrubbed().give(*said("a", end=end)).message.stop_reason is reason


def test_ids_differ_from_each_other_and_from_the_models_own() -> None:
    own = ToolUseBlock("call_0", "g")
    events = [BEGIN, start(0, own), stop(0), start(1, TEXT), *(text(1, MARKUP) for _ in range(9)), stop(1), END]
    ids = Scrubbed(HIDING).give(*events).ids
    assert len(set(ids)) == 10
    assert ids[0] == "call_0"
    assert not set(ids) & set(scrubbed(MARKUP).ids)


def test_the_bound_decides_for_a_native_caller_and_fails_nothing() -> None:
    limits = Limits(held_bytes=200)
    parts = [f"a {MARKUP}", *["b" * 50] * 10]
    out = Scrubbed(NATIVE, limits=limits).give(*said(*parts))
    assert out.content == ["a ", F, "b" * 500]
    assert out.most <= 200 + 50
    late = Scrubbed(NATIVE, limits=limits).give(
        BEGIN, start(0, TEXT), *(text(0, part) for part in parts), stop(0), *OWN, END
    )
    assert late.content == ["a ", F, "b" * 500, A]


def test_markup_that_grows_beyond_the_bound_is_text() -> None:
    whole = f'<tool_call>{{"name": "f", "arguments": {{"s": "{"é" * 300}"}}}}</tool_call> b'
    out = scrubbed(*cuts(whole, 10), limits=Limits(held_bytes=200))
    assert "".join(out.content) == whole
    assert out.most <= 200
    assert scrubbed(*cuts(whole, 10)).content[0][0] == "f"


def test_a_call_whose_name_is_too_long_is_dropped() -> None:
    markup = f'<tool_call>{{"name": "{"f" * 11}"}}</tool_call>'
    out = scrubbed(f"a {markup}", limits=Limits(id_chars=10))
    assert out.content == ["a "]
    assert out.lost == [("dropped", "a call whose name or id is too long")]


def test_calls_in_reasoning_are_meant_only_if_the_model_says_nothing_more() -> None:
    weighed = f"<think>a {MARKUP}</think>"
    assert at_every_cut(weighed).content == [["a"], F]
    assert at_every_cut(f"{weighed}\n").content == [["a"], F]
    assert at_every_cut(f"{weighed}b").content == [[f"a {MARKUP}"], "b"]
    own = Scrubbed(PROMPT).give(BEGIN, start(0, TEXT), text(0, weighed), stop(0), *OWN, TOOLS)
    assert own.content == [[f"a {MARKUP}"], A]
    cut = Scrubbed(PROMPT).give(BEGIN, start(0, TEXT), text(0, f"<think>a {MARKUP}"), stop(0), BOOM)
    assert cut.content == [[f"a {MARKUP}"]]


def test_reasoning_that_the_prompt_opened_ends_with_the_first_closer() -> None:
    options = evolve(PROMPT, reasoning_open=True)
    assert at_every_cut("a</think>b", options=options).content == [["a"], "b"]
    assert at_every_cut("a\n</thinking>\n\nb", options=options).content == [["a"], "b"]
    assert at_every_cut("<think>\na</think>b", options=options).content == [["a"], "b"]
    assert at_every_cut("a <think> b</think>c", options=options).content == [["a <think> b"], "c"]
    assert at_every_cut("no closer", options=options).content == [["no closer"]]
    assert at_every_cut(f"a\n{MARKUP}", options=options).content == [["a"], F]
    assert at_every_cut("a</think>b", options=options, tools={}).content == [["a"], "b"]


def test_blanks_around_markup_go_and_blanks_of_the_text_stay() -> None:
    for whole, content in {
        f"\n\n{MARKUP}\n\n\n{MARKUP}\n\n": [F, F],
        f"a\n{MARKUP}\n\nb": ["a\n", F, "\n\nb"],
        f"\n{MARKUP} a": [F, "a"],
        "<think>x</think>\n\na": [["x"], "a"],
        "  \n a ": ["  \n a "],
        f"a {MARKUP} \n": ["a ", F],
    }.items():
        assert at_every_cut(whole).content == content


def test_reasoning_in_tags_has_a_block_of_its_own_without_a_signature() -> None:
    events = scrubbed("<think>a", " b", "</think>c").events
    assert events[1:5] == [start(0, ReasoningBlock()), think(0, "a"), think(0, " b"), stop(0)]
    assert events[5:] == [start(1, TEXT), text(1, "c"), stop(1), END]


def test_a_citation_of_text_that_was_cut_out_is_recorded() -> None:
    out = Scrubbed().give(BEGIN, start(0, TEXT), text(0, MARKUP), AnnotationDelta(0, {}), stop(0), END)
    assert out.content == [F]
    assert out.lost == [("dropped", "the text that it belongs to was markup")]


def test_a_mended_call_is_recorded() -> None:
    assert scrubbed("<tool_call>{'name': 'f'}</tool_call>").lost == [("mended", "the JSON of a call")]


LONG = [
    *said("Hi. <think>", "a", f"</think> <tool_call>{CALL[:9]}", CALL[9:], "</tool_call>", "b <", "c", "```", MARKUP)[
        :-2
    ],
    stop(0),
    *OWN,
    *(start(2, REASONING), think(2, "x"), stop(2)),
    *(start(3, TEXT), text(3, MARKUP), stop(3)),
]


@pytest.mark.parametrize("options", [NATIVE, PROMPT, HIDING, NATIVE_HIDING])
@pytest.mark.parametrize("end", [[END, MessageStop()], [BOOM], []])
def test_it_keeps_the_rules_of_every_stage(options: Any, end: list[Event]) -> None:
    def equal(ours: Any, theirs: Any) -> bool:
        return bool(nameless(ours) == nameless(theirs))

    check_stage(lambda: TagScrubber(options=options, tools=OFFERED), [*LONG, *end], equal=equal)


def nameless(events: list[Event]) -> list[Event]:
    """Events without the ids that are minted."""
    return [
        BlockStart(event.index, ToolUseBlock("", event.block.name))
        if isinstance(event, BlockStart) and isinstance(event.block, ToolUseBlock)
        else event
        for event in events
    ]


def test_two_blocks_that_overlap_are_told_apart_as_far_as_text_goes() -> None:
    events = [BEGIN, start(7, TEXT), text(7, "a"), start(9, CALL_A), args(9, "{}"), stop(9), text(7, "b"), stop(7), END]
    out = Scrubbed().give(*events)
    assert out.content == ["a", A, "b"]
    assert [event.index for event in out.events if isinstance(event, BlockStop)] == [0, 1, 2]
