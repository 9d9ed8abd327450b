"""The messages normalizer: what servers send, as canonical events."""

from typing import Any

import pytest

from pipeline.dialect import RequestFacts
from pipeline.errors import ErrorKind, LimitExceeded
from pipeline.events import (
    BlockStart,
    BlockStop,
    Carry,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.testing import EOF, play
from stages.dialects.messages.normalize import STOP_REASONS, MessagesNormalizer
from stages.dialects.messages.opaque import proof_of
from tests.messages_stream import (
    END,
    TEXT,
    THINKING,
    Json,
    begin,
    citation,
    event,
    events,
    frame,
    normalized,
    signature,
    start,
    stop,
    text,
    thinking,
    told,
)

START = MessageStart("msg_1", "m")
DONE = [MessageDelta(StopReason.END_TURN), MessageStop()]
CUT = StreamError(ErrorKind.CUT, "the upstream ended before its terminal event", "stream_cut", retryable=True)
COUNTS = {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1}
SAID = [BlockStart(0, TextBlock()), TextDelta(0, "Hi"), BlockStop(0)]


def losses(*items: Any) -> list[tuple[str, str, str]]:
    ledger = Ledger()
    events(*items, stage=MessagesNormalizer(ledger=ledger))
    return [(entry.path, entry.action, entry.reason) for entry in ledger]


def ends(*items: Any, **members: Any) -> list[Event]:
    """The last two events of a stream."""
    return events(begin(**members), *items)[-2:]


def test_a_stream_from_its_start_to_its_end() -> None:
    assert normalized(
        begin(usage=COUNTS),
        start(THINKING),
        thinking("Why"),
        signature("SIG"),
        stop(),
        start(TEXT, 1),
        event("ping"),
        text("Hi", 1),
        text("!", 1),
        stop(1),
        told(usage={"output_tokens": 5}),
        END,
    ) == [
        [MessageStart("msg_1", "m", Usage(10, 4, output=1))],
        [BlockStart(0, ReasoningBlock(splittable=False))],
        [ReasoningDelta(0, "Why")],
        [SignatureDelta(0, proof_of("thinking", "SIG"))],
        [BlockStop(0)],
        [BlockStart(1, TextBlock())],
        [Ping()],
        [TextDelta(1, "Hi")],
        [TextDelta(1, "!")],
        [BlockStop(1)],
        [Carry("messages", frame(told(usage={"output_tokens": 5})))],
        [MessageDelta(StopReason.END_TURN, usage=Usage(10, 4, output=5)), MessageStop()],
        [],
    ]


# the start


def test_the_message_starts_once() -> None:
    assert normalized(begin(), begin(id="msg_2"))[:2] == [[START], [Carry("messages", frame(begin(id="msg_2")))]]


@pytest.mark.parametrize("first", [start(TEXT), text("Hi"), stop(), told(), END])
def test_a_stream_without_its_first_event_starts_at_what_comes_first(first: Json) -> None:
    facts = RequestFacts(model="asked", usage=Usage(input=7))
    made = events(first, stage=MessagesNormalizer(facts=facts))
    assert made[0] == MessageStart("", "asked", Usage(input=7))


def test_a_ping_and_an_error_start_no_message() -> None:
    assert events(event("ping")) == [Ping(), CUT]


def test_a_start_that_counts_nothing_has_the_estimate() -> None:
    facts = RequestFacts(usage=Usage(input=7))
    for usage in (None, {}, {"input_tokens": None}, "x"):
        assert events(begin(usage=usage), stage=MessagesNormalizer(facts=facts))[0] == MessageStart(
            "msg_1", "m", Usage(input=7)
        )


@pytest.mark.parametrize("odd", [3, ["m"], "x" * 1001])
def test_odd_ids_and_models_are_none(odd: Any) -> None:
    facts = RequestFacts(model="asked")
    assert events(begin(id=odd, model=odd), stage=MessagesNormalizer(facts=facts))[0] == MessageStart("", "asked")
    assert ("id, model", "ignored", "no text, or a long one") in losses(begin(id=odd), told(), END)


def test_a_start_without_a_message_is_one() -> None:
    assert events(event("message_start"))[0] == MessageStart("", "")


# text and thinking


def test_a_block_that_begins_with_its_text_has_it() -> None:
    assert events(begin(), start({"type": "text", "text": "Hi"}), text("!"), stop())[1:-1] == [
        *SAID[:2],
        TextDelta(0, "!"),
        BlockStop(0),
    ]


def test_thinking_that_begins_whole_is_whole() -> None:
    whole = {"type": "thinking", "thinking": "Why", "signature": "SIG"}
    assert events(begin(), start(whole), stop())[1:-1] == [
        BlockStart(0, ReasoningBlock(splittable=False)),
        ReasoningDelta(0, "Why"),
        SignatureDelta(0, proof_of("thinking", "SIG")),
        BlockStop(0),
    ]


def test_a_signature_outweighs_the_one_that_the_block_began_with_and_of_unsigned_thinking_none_is_told() -> None:
    signed = events(begin(), start({**THINKING, "signature": "A"}), thinking("Why"), signature("B"), stop())
    assert [one for one in signed if isinstance(one, SignatureDelta)] == [SignatureDelta(0, proof_of("thinking", "B"))]
    unsigned = events(begin(), start({"type": "thinking"}), thinking("Why"), signature(""), stop())
    assert not any(isinstance(one, SignatureDelta) for one in unsigned)


def test_a_signature_without_its_thinking_is_recorded() -> None:
    lost = ("signature", "dropped", "no text, or no thinking that it could belong to")
    assert losses(begin(), start(TEXT), signature("A"), stop(), told(), END) == [lost]
    assert losses(begin(), start(THINKING), stop(), signature("A"), told(), END) == [lost]
    assert losses(begin(), start(THINKING), signature(3), stop(), told(), END) == [lost]


@pytest.mark.parametrize(
    ("one", "open_"),
    [
        (text("Hi"), [BlockStart(0, TextBlock()), TextDelta(0, "Hi")]),
        (thinking("Hi"), [BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "Hi")]),
    ],
)
def test_a_delta_whose_block_never_began_begins_it(one: Json, open_: list[Event]) -> None:
    assert events(begin(), one, stop(), told(), END)[1:] == [*open_, BlockStop(0), *DONE]
    mended = ("content_block_start", "mended", "a delta came whose block was not open")
    assert losses(begin(), one, told(), END) == [mended]


def test_a_delta_behind_the_end_of_its_block_begins_another() -> None:
    assert events(begin(), start(TEXT), text("Hi"), stop(), text("!"), told(), END)[1:-2] == [
        *SAID,
        BlockStart(1, TextBlock()),
        TextDelta(1, "!"),
        BlockStop(1),
    ]


def test_thinking_inside_a_text_is_thinking_and_the_text_goes_on() -> None:
    assert events(begin(), start(TEXT), text("Hi"), thinking("hm"), text("!"), thinking("."), stop())[1:-1] == [
        *SAID[:2],
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, "hm"),
        TextDelta(0, "!"),
        ReasoningDelta(1, "."),
        BlockStop(0),
        BlockStop(1),
    ]


def test_a_citation_is_a_note_on_its_text() -> None:
    note = {"type": "char_location", "cited_text": "x"}
    made = events(begin(), start({**TEXT, "citations": [note, 3]}), citation(note), citation("x"), text("Hi"), stop())
    assert [type(one).__name__ for one in made[1:-1]] == [
        "BlockStart",
        "AnnotationDelta",
        "AnnotationDelta",
        "TextDelta",
        "BlockStop",
    ]
    assert losses(begin(), citation(3), told(), END)[:1] == [("citation", "dropped", "no object")]
    assert losses(begin(), start({**TEXT, "citations": None}), stop(), told(), END) == []


def test_halves_of_a_character_are_joined() -> None:
    made = events(begin(), start(TEXT), text("a\ud83d"), text("\udc4d"), text("b\udc4d"), text("\ud83d"), stop())
    assert [one.text for one in made if isinstance(one, TextDelta)] == ["a", "👍", "b\ufffd", "\ufffd"]


def test_half_a_character_is_told_before_an_error() -> None:
    assert events(begin(), start(TEXT), text("a\ud83d"))[-2:] == [TextDelta(0, "\ufffd"), CUT]


# indexes


def test_indexes_are_ours_whatever_the_servers_are() -> None:
    made = events(begin(), start(TEXT, 7), text("Hi", 7), stop(7), start(TEXT, 3), text("!", 3), stop(3), told(), END)
    assert made[1:-2] == [*SAID, BlockStart(1, TextBlock()), TextDelta(1, "!"), BlockStop(1)]


@pytest.mark.parametrize("index", ["0", 0.0, "0.0"])
def test_an_index_may_be_written_oddly(index: Any) -> None:
    assert events(begin(), start(TEXT), text("Hi", index), stop(index))[1:-1] == SAID


@pytest.mark.parametrize("index", [None, True, "x", [0], 1.5, "9" * 5000, float("1e300")])
def test_what_names_no_index_is_of_the_block_that_began_last(index: Any) -> None:
    assert events(begin(), start(TEXT, index), text("Hi", index), stop(index))[1:-1] == SAID
    named = events(begin(), start(TEXT, 4), text("Hi", index), stop(index))
    assert named[1:-1] == SAID


def test_a_block_that_begins_under_the_index_of_an_open_one_ends_it() -> None:
    made = events(begin(), start(TEXT), text("Hi"), start(TEXT), text("!"), stop())
    assert made[1:-1] == [*SAID, BlockStart(1, TextBlock()), TextDelta(1, "!"), BlockStop(1)]


def test_blocks_that_overlap_are_kept_apart() -> None:
    made = events(begin(), start(TEXT), start(TEXT, 1), text("a"), text("b", 1), text("c"), stop(), stop(1))
    assert made[3:-1] == [TextDelta(0, "a"), TextDelta(1, "b"), TextDelta(0, "c"), BlockStop(0), BlockStop(1)]


def test_thinking_whose_end_was_left_out_ends_when_another_block_begins() -> None:
    made = events(begin(), start(THINKING), thinking("hm"), signature("S"), start(TEXT, 1), text("Hi", 1))
    assert made[3:6] == [
        SignatureDelta(0, proof_of("thinking", "S")),
        BlockStop(0),
        BlockStart(1, TextBlock()),
    ]


def test_what_was_never_stopped_stops_with_the_message() -> None:
    assert events(begin(), start(TEXT), text("Hi"), told(), END)[1:] == [*SAID, *DONE]


def test_blocks_are_bounded() -> None:
    stage = MessagesNormalizer(limits=Limits(blocks=2))
    with pytest.raises(LimitExceeded, match="more than 2 blocks") as raised:
        play(stage, *(frame(start(TEXT, at)) for at in range(3)))
    assert raised.value.code == "blocks"


# the end


@pytest.mark.parametrize(("word", "reason"), STOP_REASONS.items())
def test_every_stop_reason_is_known(word: str, reason: StopReason) -> None:
    assert ends(told(word), END) == [MessageDelta(reason), MessageStop()]


def test_a_stop_sequence_is_told() -> None:
    assert ends(told("stop_sequence", stop_sequence="##"), END)[0] == MessageDelta(StopReason.STOP_SEQUENCE, "##")


def test_an_unknown_stop_reason_ends_the_turn_and_is_recorded() -> None:
    assert ends(told("weird"), END) == DONE
    assert losses(begin(), told("weird"), END) == [("stop_reason", "translated", "an unknown one ends the turn")]


@pytest.mark.parametrize("reason", [None, 3, ""])
def test_a_later_reason_that_says_nothing_does_not_erase_the_first(reason: Any) -> None:
    later = told(reason, usage={"output_tokens": 7}, stop_sequence=None)
    ended = ends(told("max_tokens", usage={"output_tokens": 5}), later, END)
    assert ended[0] == MessageDelta(StopReason.MAX_TOKENS, usage=Usage(output=7))


def test_a_message_without_a_reason_ends_the_turn_and_is_recorded() -> None:
    assert ends(END) == DONE
    assert losses(begin(), END) == [("stop_reason", "mended", "none was told")]
    assert ends(event("message_delta"), END) == DONE


def test_a_refusal_that_says_nothing_is_explained() -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "no"}
    refused = MessageDelta(StopReason.REFUSAL)
    assert events(begin(), told("refusal", stop_details=why), END)[1:] == [
        BlockStart(0, TextBlock()),
        RefusalDelta(0, "no"),
        BlockStop(0),
        refused,
        MessageStop(),
    ]
    said = events(begin(), start(TEXT), text("Hi"), stop(), told("refusal", stop_details=why), END)
    assert said[1:] == [*SAID, refused, MessageStop()]
    for nothing in (None, {"explanation": None}, "x"):
        assert ends(told("refusal", stop_details=nothing), END) == [refused, MessageStop()]


def test_what_no_event_carries_of_the_end_is_recorded() -> None:
    assert losses(begin(), told(container={"id": "c"}, weird=None), END) == [
        ("container", "dropped", "no event carries it")
    ]


def test_counts_replace_and_null_keeps_what_was_said() -> None:
    final = {"input_tokens": 18, "cache_read_input_tokens": None, "cache_creation_input_tokens": 3, "output_tokens": 9}
    assert ends(told(usage=final), END, usage=COUNTS)[0] == MessageDelta(StopReason.END_TURN, usage=Usage(18, 4, 3, 9))


def test_nothing_is_read_behind_the_terminal() -> None:
    assert normalized(begin(), told(), END, text("Hi"), b"[DONE]", b"{")[3:] == [[], [], [], []]


@pytest.mark.parametrize("told_so_far", [[], [begin()], [begin(), told()], [begin(), start(TEXT), text("Hi")]])
def test_a_stream_that_ends_before_its_terminal_was_cut(told_so_far: list[Json]) -> None:
    assert events(*told_so_far)[-1] == CUT


def test_a_cause_of_the_end_is_told() -> None:
    cause = StreamError(ErrorKind.TIMEOUT, "silence", "idle", retryable=True)
    assert play(MessagesNormalizer(), frame(begin()), EOF(cause))[-1] == [cause]


def test_some_servers_end_with_a_sentinel_instead() -> None:
    assert events(begin(), told(), b"[DONE]")[1:] == DONE
    assert ("message_stop", "mended", "the stream ended with a sentinel instead") in losses(begin(), told(), b"[DONE]")
    assert events(begin(), b"[DONE]")[-1] == CUT
