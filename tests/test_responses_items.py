"""stages.dialects.responses.items: messages, reasoning and hosted items, as events."""

from typing import Any

import pytest

from pipeline.events import (
    AnnotationDelta,
    BlockStart,
    BlockStop,
    Event,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RedactedReasoningBlock,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    TextBlock,
    TextDelta,
)
from pipeline.ledger import Ledger
from stages.dialects.responses.normalize import ResponsesNormalizer
from stages.dialects.responses.opaque import proof_of
from tests.responses_stream import (
    Json,
    added,
    created,
    done,
    event,
    events,
    message,
    normalized,
    raw,
    reasoning,
    refusal,
    summary,
    terminal,
    text,
)

START = MessageStart("resp_1", "m")
END: list[Event] = [MessageDelta(StopReason.END_TURN), MessageStop()]
WHOLE = ReasoningBlock(splittable=False)
NOTE = {"type": "url_citation", "url": "https://e.org"}


def between(*items: Any, stage: ResponsesNormalizer | None = None) -> list[Event]:
    """What these frames make between the start and the end, without what is only carried."""
    made = events(created(), *items, terminal(), stage=stage)
    assert (made[0], made[-2:]) == (START, END)
    return [one for one in made[1:-2] if hasattr(one, "index")]


def losses(*items: Any) -> list[tuple[str, str]]:
    """What is recorded of a stream of these."""
    ledger = Ledger()
    events(created(), *items, stage=ResponsesNormalizer(ledger=ledger))
    return [(entry.path, entry.reason) for entry in ledger]


def texts(made: list[Event]) -> str:
    return "".join(one.text for one in made if isinstance(one, TextDelta | ReasoningDelta | RefusalDelta))


def part_done(kind: str, place: int = 0, at: int = 0, id: str = "m1", **members: Any) -> Json:  # noqa: A002
    return event(kind, output_index=place, item_id=id, content_index=at, **members)


def test_a_message_streams_and_ends_when_it_is_done() -> None:
    made = normalized(created(), added(message()), text("Hi"), text("!"), done(message("Hi!")), terminal())
    assert made[2] == [BlockStart(0, TextBlock()), TextDelta(0, "Hi")]
    assert made[3] == [TextDelta(0, "!")]
    assert made[4] == [BlockStop(0)]


def test_an_item_that_says_nothing_has_no_block() -> None:
    assert between(added(message()), done(message()), added(reasoning(), 1), done(reasoning(), 1)) == []


def test_a_message_that_was_cut_says_so() -> None:
    cut = {**message("Hi"), "status": "incomplete"}
    assert between(added(message()), text("Hi"), done(cut))[-1] == BlockStop(0, complete=False)


def test_each_part_of_a_message_is_a_block() -> None:
    assert between(text("a"), text("b", part=1), done(message("a", "b"))) == [
        *[BlockStart(0, TextBlock()), TextDelta(0, "a")],
        *[BlockStart(1, TextBlock()), TextDelta(1, "b")],
        *[BlockStop(0), BlockStop(1)],
    ]


@pytest.mark.parametrize(
    "told",
    [
        part_done("response.output_text.done", text="Hello"),
        part_done("response.content_part.done", part={"type": "output_text", "text": "Hello"}),
        done(message("Hello")),
        done({**message(), "content": "Hello"}),
    ],
)
@pytest.mark.parametrize("streamed", [(), (text("He"),), (text("He", part=None),), (text("Hello"),)])
def test_what_the_deltas_did_not_say_is_said_once(told: Json, streamed: tuple[Json, ...]) -> None:
    assert texts(between(added(message()), *streamed, told, done(message("Hello")))) == "Hello"


def test_what_only_the_end_of_the_message_tells_has_its_own_block() -> None:
    made = events(created(), added(message()), text("He"), done(message("He")), terminal(output=[message("Hello")]))
    assert made[4:-2] == [BlockStop(0), BlockStart(1, TextBlock()), TextDelta(1, "llo"), BlockStop(1)]


def test_a_snapshot_of_another_text_is_recorded_and_not_said() -> None:
    stream = (added(message()), text("Hello"), done(message("Howdy, all")))
    assert texts(between(*stream)) == "Hello"
    assert losses(*stream) == [("snapshot", "it differs from what was streamed")]


def test_text_behind_the_end_of_its_item_is_recorded() -> None:
    late = (
        added(message()),
        text("t"),
        done(message("t")),
        text("NO"),
        part_done("response.output_text.done", text="tNO"),
    )
    assert texts(between(*late)) == "t"
    assert losses(*late) == [("output_text.delta", "it came after the end of its item")]


def test_a_refusal_has_a_block_of_its_own() -> None:
    no = part_done("response.refusal.delta", delta="no")
    made = events(created(), added(message()), text("a"), no, done(refusal("no")), terminal())
    assert made[4:6] == [BlockStart(1, TextBlock()), RefusalDelta(1, "no")]
    assert made[6:8] == [BlockStop(0), BlockStop(1)]
    assert made[-2] == MessageDelta(StopReason.REFUSAL)


@pytest.mark.parametrize(
    "told", [part_done("response.refusal.done", refusal="no"), done(refusal("no")), terminal(output=[refusal("no")])]
)
def test_a_refusal_that_only_a_snapshot_tells_is_said(told: Json) -> None:
    made = events(created(), told, terminal())
    assert RefusalDelta(0, "no") in made
    assert MessageDelta(StopReason.REFUSAL) in made


def test_an_annotation_is_passed_on_once() -> None:
    noted = part_done("response.output_text.annotation.added", annotation=NOTE)
    whole = {**message(), "content": [{"type": "output_text", "text": "a", "annotations": [NOTE, {"more": 1}, 7]}]}
    made = between(text("a"), noted, done(whole), terminal(output=[whole]))
    assert [one.annotation for one in made if isinstance(one, AnnotationDelta)] == [NOTE, {"more": 1}]


def test_an_annotation_before_its_text_opens_the_block() -> None:
    noted = part_done("response.output_text.annotation.added", annotation=NOTE)
    assert between(noted, text("a"))[:2] == [BlockStart(0, TextBlock()), AnnotationDelta(0, NOTE)]


def test_an_annotation_behind_its_text_is_recorded() -> None:
    noted = part_done("response.output_text.annotation.added", annotation=NOTE)
    odd = part_done("response.output_text.annotation.added", annotation=3)
    assert losses(text("a"), done(message("a")), noted, odd) == [("annotation", "it came after the end of its text")]


def test_what_no_event_carries_is_recorded() -> None:
    parts = [{"type": "output_text", "text": "a", "logprobs": [1]}, {"type": "picture"}, None]
    whole = {**message(), "content": parts, "phase": "commentary"}
    assert losses(text("a") | {"logprobs": [{}]}, done(whole)) == [
        ("content[]", "a part that is no text"),
        ("logprobs", "no text that they could belong to"),
        ("phase", "no event carries it"),
    ]


@pytest.mark.parametrize("content", [None, 3, {"text": "a"}])
def test_content_that_is_no_list_says_nothing(content: Any) -> None:
    assert between(done({**message(), "content": content})) == []


def test_reasoning_opens_at_its_first_text_and_is_not_splittable() -> None:
    made = normalized(created(), added(reasoning()), summary(""), summary("A"), done(reasoning("A")), terminal())
    assert not any(isinstance(one, BlockStart) for one in made[1] + made[2])
    assert made[3] == [BlockStart(0, WHOLE), ReasoningDelta(0, "A")]
    assert made[4] == [BlockStop(0)]


def test_a_blank_line_stands_between_two_parts_that_speak() -> None:
    made = between(
        summary("A"), summary("a"), summary("", part=1), summary("B", part=2), done(reasoning("Aa", "", "B"))
    )
    assert texts(made) == "Aa\n\nB"


def test_a_reasoning_delta_without_an_index_is_passed_on_untouched() -> None:
    made = between(added(reasoning()), summary("A", part=None), summary("B", part=None), done(reasoning("A", "B")))
    assert texts(made) == "AB"


def test_two_reasoning_items_are_two_blocks() -> None:
    made = between(summary("A"), done(reasoning("A")), summary("B", 1, id="rs2"), done(reasoning("B", id="rs2"), 1))
    assert [one for one in made if isinstance(one, BlockStart | BlockStop)] == [
        BlockStart(0, WHOLE),
        BlockStop(0),
        BlockStart(1, WHOLE),
        BlockStop(1),
    ]


@pytest.mark.parametrize(
    "told",
    [
        event("response.reasoning_summary_text.done", output_index=0, item_id="rs1", summary_index=0, text="Ab"),
        event(
            "response.reasoning_summary_part.done", output_index=0, item_id="rs1", summary_index=0, part={"text": "Ab"}
        ),
        done(reasoning("Ab")),
        terminal(output=[reasoning("Ab")]),
    ],
)
@pytest.mark.parametrize("streamed", [(), (summary("A"),), (summary("Ab"),)])
def test_reasoning_that_the_deltas_did_not_say_is_said_once(told: Json, streamed: tuple[Json, ...]) -> None:
    made = events(created(), added(reasoning()), *streamed, told, terminal(output=[reasoning("Ab")]))
    assert texts(made) == "Ab"


@pytest.mark.parametrize(
    "told",
    [
        event("response.reasoning_text.done", output_index=0, item_id="rs1", content_index=0, text="Ab"),
        part_done("response.reasoning_part.done", id="rs1", part={"type": "reasoning_text", "text": "Ab"}),
        part_done("response.content_part.done", id="rs1", part={"type": "reasoning_text", "text": "Ab"}),
        done(reasoning(content=["Ab"])),
    ],
)
def test_raw_reasoning_is_read_like_a_summary(told: Json) -> None:
    assert texts(between(added(reasoning()), raw("A"), told)) == "Ab"


def test_the_reasoning_that_streams_first_is_shown_and_the_other_recorded() -> None:
    told = event("response.reasoning_text.done", output_index=0, item_id="rs1", content_index=0, text="raw")
    stream = (added(reasoning()), summary("S"), raw("raw"), told, done(reasoning("S", content=["raw"])))
    assert texts(between(*stream)) == "S"
    assert losses(*stream) == [("content", "an item's summary and its raw text are not both shown")]


def test_of_a_whole_item_the_raw_text_is_shown() -> None:
    assert texts(between(done(reasoning("S", content=["a", "b"])))) == "a\n\nb"


def test_the_blob_comes_last_with_what_brings_the_item_back() -> None:
    made = between(added(reasoning(blob="half")), summary("A"), done(reasoning("A", "B", blob="E")))
    assert made[-2:] == [SignatureDelta(0, proof_of(reasoning("A", "B", blob="E"))), BlockStop(0)]
    assert texts(made) == "A\n\nB"


def test_an_item_with_a_blob_alone_is_redacted_reasoning() -> None:
    block = RedactedReasoningBlock(proof_of(reasoning(blob="E")))
    assert between(added(reasoning()), done(reasoning(blob="E"))) == [BlockStart(0, block), BlockStop(0)]


def test_the_blob_of_an_announcement_is_not_the_whole_of_it() -> None:
    assert between(added(reasoning(blob="half"))) == []


def test_a_blob_that_only_the_end_of_the_message_tells_is_carried() -> None:
    made = events(created(), summary("A"), terminal(output=[reasoning("A", blob="E")]))
    assert SignatureDelta(0, proof_of(reasoning("A", blob="E"))) in made


def test_reasoning_behind_the_end_of_its_item_is_recorded() -> None:
    stream = (summary("A"), done(reasoning("A")), summary("B"), terminal(output=[reasoning("ABC")]))
    assert texts(events(created(), *stream)) == "A"
    assert losses(*stream) == [
        ("reasoning delta", "it came after the end of its item"),
        ("snapshot", "it tells more than the item had at its end"),
    ]


def test_an_empty_part_of_reasoning_says_nothing() -> None:
    told = event("response.reasoning_text.done", output_index=0, item_id="rs1", content_index=0, text="")
    assert texts(between(told, summary("S"))) == "S"


def test_a_hosted_item_is_carried_whole_when_it_is_done() -> None:
    begun = {"type": "web_search_call", "id": "ws1", "status": "in_progress"}
    ended = {**begun, "status": "completed", "action": {"type": "search", "query": "q"}}
    made = normalized(
        created(), added(begun), event("response.web_search_call.searching", item_id="ws1"), done(ended), terminal()
    )
    assert made[3] == [BlockStart(0, ServerBlock("responses", ended)), BlockStop(0)]
    assert len(made[1]) == len(made[2]) == 1


def test_a_hosted_item_is_carried_once() -> None:
    item = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    made = events(created(), added(item), done(item), terminal(output=[{**item, "id": "other"}]))
    assert made[2:-2] == [BlockStart(0, ServerBlock("responses", item)), BlockStop(0)]


def test_a_hosted_item_that_never_ends_is_carried_as_it_was_announced() -> None:
    item = {"type": "mcp_list_tools", "id": "x"}
    assert between(added(item)) == [BlockStart(0, ServerBlock("responses", item)), BlockStop(0)]


def test_a_hosted_item_that_failed_says_so() -> None:
    item = {"type": "mcp_call", "id": "x", "status": "failed"}
    assert between(done(item))[-1] == BlockStop(0, complete=False)


def test_a_hosted_item_that_an_error_cuts_is_not_carried() -> None:
    assert not any(isinstance(one, BlockStart) for one in events(created(), added({"type": "mcp_call", "id": "x"})))


@pytest.mark.parametrize(
    ("streamed", "told", "same"),
    [
        ([text("Hel", id="x1")], message("Hello", id="x2"), True),
        ([text("Hel", 5, id="x1")], message("Hello", id="x2"), True),
        ([text("Hel", 5, id="x1")], message("Howdy", id="x2"), False),
        ([part_done("response.refusal.delta", 5, delta="n")], refusal("no", id="x2"), True),
        ([part_done("response.refusal.delta", 5, delta="n")], refusal("yes", id="x2"), False),
        ([summary("A", 5)], reasoning("Ab", id="x2"), True),
        ([summary("A", 5)], reasoning("B", id="x2"), False),
        ([raw("A", 5)], reasoning("S", content=["Ab"], id="x2"), True),
        ([done({"type": "mcp_call", "id": "x1"}, 5)], {"type": "mcp_call", "id": "x2"}, True),
        ([added({"type": "mcp_call", "id": "x1"}, 5)], {"type": "mcp_call", "id": "x2"}, True),
        ([added({"type": "mcp_call", "id": "x1"}, 5)], {"type": "other_call", "id": "x2"}, False),
    ],
)
def test_an_item_is_known_again_under_another_id_by_what_it_says(streamed: list[Json], told: Json, same: bool) -> None:
    made = events(created(), *streamed, terminal(output=[told]))
    assert sum(isinstance(one, BlockStart) for one in made) == (1 if same else 2)


def test_half_a_character_is_joined_with_the_other_half() -> None:
    halves = (b'{"type":"response.output_text.delta","output_index":0,"item_id":"m1","content_index":0,"delta":"%s"}',)
    made = between(halves[0] % rb"a\ud83d", halves[0] % rb"\ude00b")
    assert texts(made) == "a\U0001f600b"


def test_half_a_character_without_the_other_is_a_mark() -> None:
    half = rb'{"type":"response.output_text.delta","output_index":0,"item_id":"m1","content_index":0,"delta":"a\ud83d"}'
    assert texts(between(half)) == "a\ufffd"
    alone = half.replace(b"a\\ud83d", b"\\ud83d")
    assert between(alone) == []
    assert between(alone.replace(b"output_text", b"reasoning_text")) == []
