"""stages.validate: the law of a message, raised, mended or reported."""

from operator import is_
from typing import Any

import pytest

from pipeline.errors import ErrorKind, LimitExceeded, StageError
from pipeline.events import (
    AnnotationDelta,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.testing import EOF, UnknownEvent, play
from stages.validate import BlockValidator, Mode
from tests.canonical import (
    BEGIN,
    BOOM,
    CALL_A,
    CALL_B,
    CUT,
    END,
    FREEFORM,
    ITEM,
    REASONING,
    TEXT,
    TOOLS,
    args,
    last,
    losses,
    start,
    stop,
    text,
    think,
)

SIGNED, CITED, DENIED, STOP = SignatureDelta(0, "sig"), AnnotationDelta(0, {}), RefusalDelta(0, "no"), MessageStop()
SUPPLIED = MessageStart("", "")
CLOSED = BlockStop(0, complete=False)
MISSING = StreamError(ErrorKind.CUT, "the stream ended before its terminal", "stream_cut", True)

PHASES: dict[str, list[Event]] = {
    "before": [],
    "ready": [BEGIN],
    "text": [BEGIN, start(0, TEXT)],
    "reasoning": [BEGIN, start(0, REASONING)],
    "call": [BEGIN, start(0, CALL_A)],
    "item": [BEGIN, start(0, ServerBlock("chat", {}))],
    "redacted": [BEGIN, start(0, RedactedReasoningBlock("blob"))],
    "closing": [BEGIN, END],
    "ended": [BEGIN, END, STOP],
    "failed": [BEGIN, BOOM],
}

EVENTS: dict[str, Event] = {
    "begin": MessageStart("other", "m"),
    "start": start(1, TEXT),
    "text": text(0, "a"),
    "refusal": DENIED,
    "reasoning": think(0, "A"),
    "signature": SIGNED,
    "citation": CITED,
    "arguments": args(0, "{"),
    "stop": stop(0),
    "finish": END,
    "end": STOP,
    "error": BOOM,
}

LAWFUL: dict[str, set[str]] = {
    "before": {"begin", "error"},
    "ready": {"finish", "error"},
    "text": {"text", "refusal", "citation", "stop"},
    "reasoning": {"reasoning", "signature", "stop"},
    "call": {"arguments", "stop", "error"},
    "item": {"arguments", "stop"},
    "redacted": {"stop"},
    "closing": {"end", "error"},
    "ended": set(),
    "failed": set(),
}
"""What may come, of `EVENTS`, in each phase. Anything else is a breach."""

OPENED: dict[str, list[Event]] = {
    "start": [start(0, TEXT)],
    "text": [start(0, TEXT), text(0, "a")],
    "refusal": [start(0, TEXT), DENIED],
    "reasoning": [start(0, REASONING), think(0, "A")],
    "finish": [END],
    "end": [END, STOP],
}
IN_A_BLOCK: dict[str, list[Event]] = {
    "start": [start(1, TEXT)],
    "text": [start(1, TEXT), text(1, "a")],
    "refusal": [start(1, TEXT), RefusalDelta(1, "no")],
    "reasoning": [start(1, REASONING), think(1, "A")],
    "finish": [END],
    "end": [END, STOP],
    "error": [BOOM],
}

PAIRS = [(phase, name) for phase in PHASES for name in EVENTS]


def mended(phase: str, name: str) -> list[Event]:
    """What comes instead of a breach."""
    if phase in ("closing", "ended", "failed") or name == "begin":
        return []
    if phase == "before":
        return [SUPPLIED, *OPENED.get(name, [])]
    if phase == "ready":
        return OPENED.get(name, [])
    return [BlockStop(0, complete=name != "error"), *IN_A_BLOCK[name]] if name in IN_A_BLOCK else []


def validator(mode: Mode, phase: str) -> BlockValidator:
    stage = BlockValidator(mode=mode)
    play(stage, PHASES[phase])
    return stage


@pytest.mark.parametrize(("phase", "name"), PAIRS)
def test_strict_lets_what_is_lawful_pass_and_raises_at_the_rest(phase: str, name: str) -> None:
    stage = validator(Mode.STRICT, phase)
    if name in LAWFUL[phase]:
        assert play(stage, EVENTS[name]) == [[EVENTS[name]]]
    else:
        with pytest.raises(StageError):
            play(stage, EVENTS[name])


@pytest.mark.parametrize(("phase", "name"), PAIRS)
def test_repair_lets_what_is_lawful_pass_and_mends_and_records_the_rest(phase: str, name: str) -> None:
    stage = validator(Mode.REPAIR, phase)
    if name in LAWFUL[phase]:
        assert last(stage, EVENTS[name]) == [EVENTS[name]]
        assert not list(stage.ledger)
    elif phase == "call" and name in IN_A_BLOCK:  # a call is never closed for what comes: clients would run it
        with pytest.raises(StageError, match=r" would cut the call in block 0$"):
            play(stage, EVENTS[name])
    else:
        instead = mended(phase, name)
        assert last(stage, EVENTS[name]) == instead
        passed = any(type(event) is type(EVENTS[name]) for event in instead)
        assert [*losses(stage.ledger)][-1][1] == ("mended" if passed else "dropped")


@pytest.mark.parametrize(("phase", "name"), PAIRS)
def test_report_records_a_breach_and_changes_nothing(phase: str, name: str) -> None:
    stage = validator(Mode.REPORT, phase)
    assert last(stage, EVENTS[name])[0] is EVENTS[name]
    assert {entry.action for entry in stage.ledger} == (set() if name in LAWFUL[phase] else {"reported"})


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("phase", PHASES)
def test_what_belongs_to_no_block_passes_before_the_terminal(phase: str, mode: Mode) -> None:
    passes = phase not in ("ended", "failed") or mode is Mode.REPORT
    assert last(validator(mode, phase), [Ping(), UnknownEvent()]) == ([Ping(), UnknownEvent()] if passes else [])


@pytest.mark.parametrize("mode", Mode)
def test_a_lawful_message_passes_unchanged(mode: Mode) -> None:
    stage = BlockValidator(mode=mode)
    events: list[Event] = [BEGIN, start(0, REASONING), think(0, "A"), SIGNED, stop(0), start(1, CALL_A), args(1, "{}")]
    events += [stop(1), TOOLS, STOP]
    assert all(map(is_, [event for made in play(stage, *events, EOF) for event in made], events))
    assert not list(stage.ledger)


# What is said of a breach


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([text(2, "a")], "TextDelta for block 2 before the start"),
        ([STOP], "MessageStop before the start"),
        ([BEGIN, BEGIN], "MessageStart where a block or the end is due"),
        ([BEGIN, STOP], "MessageStop where a block or the end is due"),
        ([BEGIN, text(2, "a")], "TextDelta for block 2, which was never opened"),
        ([BEGIN, start(0, TEXT), stop(0), text(1, "a")], "TextDelta for block 1, which was never opened"),
        ([BEGIN, stop(2)], "BlockStop for block 2, which was never opened"),
        ([BEGIN, start(0, TEXT), stop(0), text(0, "a")], "TextDelta for block 0, which is closed"),
        ([BEGIN, start(0, TEXT), stop(0), stop(0)], "BlockStop for block 0, which is closed"),
        ([BEGIN, start(3, TEXT)], "BlockStart for block 3, due is 0"),
        ([BEGIN, start(0, TEXT), start(1, TEXT)], "BlockStart for block 1 while block 0 is open"),
        ([BEGIN, start(0, TEXT), text(1, "a")], "TextDelta for block 1 while block 0 is open"),
        ([BEGIN, start(0, TEXT), stop(1)], "BlockStop for block 1 while block 0 is open"),
        ([BEGIN, start(0, TEXT), END], "MessageDelta while block 0 is open"),
        ([BEGIN, start(0, TEXT), BOOM], "StreamError while block 0 is open"),
        ([BEGIN, start(0, TEXT), think(0, "A")], "ReasoningDelta for block 0, a TextBlock"),
        ([BEGIN, END, text(0, "a")], "TextDelta for block 0 after the end was told"),
        ([BEGIN, END, END], "MessageDelta after the end was told"),
        ([BEGIN, END, STOP, STOP], "MessageStop after the terminal"),
        ([BEGIN, TOOLS], "stop reason tool_use though no whole call was written"),
        ([BEGIN, start(0, CALL_A), stop(0), END], "stop reason end_turn though a whole call was written"),
        ([BEGIN, EOF], "the stream ended before its terminal"),
    ],
)
def test_a_breach_names_the_event_and_the_state(steps: list[Any], said: str) -> None:
    with pytest.raises(StageError) as raised:
        play(BlockValidator(mode=Mode.STRICT), *steps)
    assert str(raised.value) == said
    for mode, action in ((Mode.REPAIR, "mended"), (Mode.REPORT, "reported")):
        stage = BlockValidator(mode=mode)
        play(stage, *steps)
        path = "EOF" if steps[-1] is EOF else type(steps[-1]).__name__
        found = {(path, action, said), *([(path, "dropped", said)] if mode is Mode.REPAIR else [])}
        assert found & {*losses(stage.ledger)}
        assert {(entry.direction, entry.stage) for entry in stage.ledger} == {("response", "BlockValidator")}


# Repair


def test_repair_is_the_default() -> None:
    assert BlockValidator().mode is Mode.REPAIR


def test_blocks_are_renumbered() -> None:
    stage = BlockValidator()
    assert play(stage, [BEGIN, start(4, TEXT)], text(4, "a"), DENIED, stop(4), start(4, REASONING), think(4, "A"))[
        1:
    ] == [
        [text(0, "a")],
        [stop(0), start(1, TEXT), RefusalDelta(1, "no")],
        [],
        [stop(1), start(2, REASONING)],
        [think(2, "A")],
    ]


def test_a_stop_is_renumbered_and_keeps_its_word() -> None:
    stage = BlockValidator()
    play(stage, BEGIN, start(2, CALL_A))
    assert last(stage, stop(2, complete=False)) == [stop(0, complete=False)]


def test_an_index_that_a_closed_block_left_with_is_not_taken_for_an_open_one() -> None:
    stage = BlockValidator()
    play(stage, BEGIN, start(1, TEXT))
    assert last(stage, text(0, "a")) == [stop(0), start(1, TEXT), text(1, "a")]


def test_a_block_that_was_reopened_goes_on_under_its_old_index() -> None:
    stage = BlockValidator()
    play(stage, BEGIN, start(0, TEXT), text(0, "a"), start(1, REASONING), think(1, "A"))
    assert play(stage, text(0, "b"), text(0, "c"), stop(0), text(0, "d")) == [
        [stop(1), start(2, TEXT), text(2, "b")],
        [text(2, "c")],
        [stop(2)],
        [start(3, TEXT), text(3, "d")],
    ]


def test_nothing_behind_an_error_in_an_open_call_is_passed_on() -> None:
    assert last(validator(Mode.REPAIR, "call"), [args(0, "{"), BOOM, args(0, "}"), stop(0)]) == [args(0, "{"), BOOM]


def test_arguments_do_not_go_on_in_another_block() -> None:
    stage = BlockValidator()
    play(stage, BEGIN, start(0, CALL_A), stop(0), start(1, TEXT))
    assert play(stage, args(0, "{}"), text(1, "a")) == [[], [text(1, "a")]]
    assert losses(stage.ledger)[0][:2] == ("ArgumentsDelta", "dropped")


def test_a_message_that_ends_without_its_reason_is_given_one() -> None:
    assert last(BlockValidator(), BEGIN, start(0, CALL_A), stop(0), STOP) == [TOOLS, STOP]


@pytest.mark.parametrize("reason", StopReason)
def test_a_stop_reason_fits_what_was_written(reason: StopReason) -> None:
    finish = MessageDelta(reason, "sequence")
    uncalled = StopReason.END_TURN if reason is StopReason.TOOL_USE else reason
    assert last(BlockValidator(), BEGIN, finish) == [MessageDelta(uncalled, "sequence")]
    called = BlockValidator()
    play(called, BEGIN, start(0, CALL_A), stop(0), start(1, CALL_B), stop(1, complete=False), start(2, TEXT), stop(2))
    wanted = StopReason.TOOL_USE if reason is StopReason.END_TURN else reason
    assert last(called, finish) == [MessageDelta(wanted, "sequence")]


def test_tool_use_is_not_claimed_for_a_call_that_is_not_whole_nor_for_another_block() -> None:
    usage = Usage(output=3)
    stage = BlockValidator()
    play(stage, BEGIN, start(0, FREEFORM), stop(0, complete=False), start(1, ITEM), stop(1))
    assert last(stage, MessageDelta(StopReason.TOOL_USE, None, usage)) == [
        MessageDelta(StopReason.END_TURN, None, usage)
    ]


# Endings


def test_an_error_leaves_an_open_call_open() -> None:
    for mode in Mode:
        assert last(validator(mode, "call"), [args(0, "{"), BOOM]) == [args(0, "{"), BOOM]


def test_the_stage_has_ended_with_its_terminal() -> None:
    for terminal in (STOP, BOOM):
        stage = validator(Mode.REPAIR, "closing")
        assert not stage.ended
        play(stage, terminal)
        assert stage.ended


def test_a_report_goes_on_behind_the_terminal() -> None:
    stage = validator(Mode.REPORT, "ended")
    assert not stage.ended
    assert last(stage, [start(0, TEXT), text(0, "a"), stop(0), BOOM]) == [start(0, TEXT), text(0, "a"), stop(0), BOOM]
    assert len(stage.ledger) == 4


@pytest.mark.parametrize(("phase", "closed"), [("before", []), ("ready", []), ("text", [CLOSED]), ("call", [])])
def test_a_stream_without_a_terminal_was_cut(phase: str, closed: list[Event]) -> None:
    assert last(validator(Mode.REPAIR, phase), EOF) == [*closed, MISSING]
    assert last(validator(Mode.REPORT, phase), EOF) == []


@pytest.mark.parametrize(("phase", "closed"), [("before", []), ("ready", []), ("text", [CLOSED]), ("call", [])])
def test_the_cause_of_a_sudden_end_is_told(phase: str, closed: list[Event]) -> None:
    assert last(validator(Mode.REPAIR, phase), EOF(CUT)) == [*closed, CUT]
    assert last(validator(Mode.REPORT, phase), EOF(CUT)) == [CUT]
    if not closed:
        assert last(validator(Mode.STRICT, phase), EOF(CUT)) == [CUT]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("phase", ["ended", "failed"])
def test_nothing_is_told_behind_the_terminal(phase: str, mode: Mode) -> None:
    stage = validator(mode, phase)
    assert play(stage, EOF, EOF(CUT)) == [[], []]
    assert not list(stage.ledger)


def test_what_of_one_read_was_dropped_is_not_called_mended_for_the_sake_of_its_like() -> None:
    stage = BlockValidator()
    assert last(stage, [BEGIN, BEGIN]) == [BEGIN]
    assert [entry.action for entry in stage.ledger] == ["dropped"]


@pytest.mark.parametrize(
    ("event", "named"),
    [(start(1, TEXT), "BlockStart for block 1"), (END, "MessageDelta"), (text(0, "a"), "TextDelta for block 0")],
)
def test_what_would_cut_a_call_is_named(event: Event, named: str) -> None:
    with pytest.raises(StageError, match=f"^{named} would cut the call in block 0$"):
        play(validator(Mode.REPAIR, "call"), event)


def test_a_call_that_was_open_at_the_message_s_end_is_not_whole() -> None:
    stage = validator(Mode.REPORT, "call")
    play(stage, TOOLS)
    said = ["MessageDelta while block 0 is open", "stop reason tool_use though no whole call was written"]
    assert sorted(entry.reason for entry in stage.ledger) == said


def test_blocks_are_bounded() -> None:
    stage = BlockValidator(limits=Limits(blocks=1))
    play(stage, BEGIN, start(0, TEXT), stop(0))
    with pytest.raises(LimitExceeded) as raised:
        stage.receive([Ping(), start(1, TEXT)])
    assert (str(raised.value), raised.value.code) == ("the message has more than 1 blocks", "blocks")
    assert list(raised.value.made) == [Ping()]
    assert last(stage, EOF(BOOM)) == [BOOM]


def test_breaches_go_to_the_ledger_that_was_given() -> None:
    ledger = Ledger()
    play(BlockValidator(ledger=ledger), STOP)
    assert len(ledger) == 2


@pytest.mark.parametrize("came", [[5], [5, 7], [0, 5, 3], [0, 1, 5]])
def test_it_is_told_which_blocks_were_open_whatever_their_indexes(came: list[int]) -> None:
    stage = BlockValidator()
    play(stage, BEGIN, *(event for index in came for event in (start(index, TEXT), stop(index))))
    for index in range(9):
        known = "is closed" if index in came else "was never opened"
        before = len(stage.ledger)
        play(stage, stop(index))
        assert [entry.reason for entry in stage.ledger][before:] == [f"BlockStop for block {index}, which {known}"]
