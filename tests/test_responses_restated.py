"""A Responses stream over itself in which something was changed: patched, and what repeats it restated."""

import json
from collections.abc import Callable, Iterable, Sequence

from attrs import evolve

from pipeline.errors import ErrorKind
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Event,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    ServerBlock,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.testing import EOF, play
from stages.dialects.responses.returned import ResponsesReturner
from stages.sse import SSEEncoder
from stages.verbatim import FrameReturner
from tests.responses_stream import (
    Json,
    added,
    arguments,
    arguments_done,
    call,
    created,
    custom,
    done,
    event,
    message,
    reasoning,
    refusal,
    summary,
    terminal,
    text,
)
from tests.returning import payloads, replacing, through
from tests.test_responses_returned import (
    CALL,
    SEARCH,
    SPOKEN,
    STREAM,
    THOUGHT,
    numbered,
    part_added,
    sse,
    summary_done,
    text_done,
)


def changed(make: Callable[[Event], Iterable[Event]], items: Sequence[Json] = STREAM) -> list[Json]:
    """What a client gets if a stage stands in the middle; frames that were not changed are as they came."""
    out = through("responses", make, [sse(*items)])
    said = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    for item in items:
        if item in said:
            assert sse(item) in out
    return said


def replaced(old: Sequence[Json], *news: tuple[int, Json]) -> list[Json]:
    out = list(old)
    for at, new in news:
        out[at] = {**new, "sequence_number": at}
    return out


def output(*items: Json) -> Json:
    """The terminal of the stream with another output."""
    return {**STREAM[-1], "response": {**STREAM[-1]["response"], "output": list(items)}}


def test_a_text_that_was_changed_is_patched_and_what_repeats_it_restated() -> None:
    new = message("Hé👍?", phase="final")
    assert changed(replacing("!", "?")) == replaced(
        STREAM,
        (17, text("?", 1)),
        (21, text_done("Hé👍?", 1)[0]),
        (22, text_done("Hé👍?", 1)[1]),
        (23, done(new, 1)),
        (28, output(THOUGHT, new, CALL, SEARCH)),
    )


def test_what_is_said_of_the_tokens_of_a_text_that_was_changed_goes() -> None:
    tokens = [{"token": "secret"}]
    item = message("secret")
    item["content"][0]["logprobs"] = tokens
    whole = [{**one, "logprobs": tokens} for one in text_done("secret")[:1]]
    items = numbered(created(), {**text("secret"), "logprobs": tokens}, *whole, done(item), terminal(output=[item]))
    out = changed(replacing("secret", "***"), items)
    assert b"secret" not in json.dumps(out).encode()
    assert out[1]["logprobs"] == out[2]["logprobs"] == []
    assert out[3]["item"]["content"][0]["text"] == "***"


def test_reasoning_that_was_changed_is_restated_part_by_part() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, ReasoningDelta) else one

    new = reasoning("WHY", "HOW", blob="BLOB")
    first, second = summary_done("WHY"), summary_done("HOW", at=1)
    assert changed(upper) == replaced(
        STREAM,
        (4, summary("WHY")),
        (5, first[0]),
        (6, first[1]),
        (8, summary("HOW", part=1)),
        (9, second[0]),
        (10, second[1]),
        (11, done(new)),
        (28, output(new, SPOKEN, CALL, SEARCH)),
    )


def test_a_call_that_was_renamed_and_its_arguments_are_restated() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock):
            one = evolve(one, block=evolve(one.block, id="z", name="h"))
        elif isinstance(one, ArgumentsDelta):
            one = evolve(one, text=one.text.replace(":", ": "))
        yield one

    new = call('{"x": 1}', "h", "z")
    assert changed(renamed) == replaced(
        STREAM,
        (15, added({**new, "arguments": "", "status": "in_progress"}, 2)),
        (18, arguments(": 1}", 2)),
        (19, arguments_done('{"x": 1}', 2, name="h")),
        (20, done(new, 2)),
        (28, output(THOUGHT, SPOKEN, new, SEARCH)),
    )


def test_a_response_that_was_renamed_is_told_so_wherever_it_is() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        yield evolve(one, id="resp_2", model="other") if isinstance(one, MessageStart) else one

    new = {"id": "resp_2", "model": "other"}
    assert changed(renamed) == [
        {**one, "response": {**one["response"], **new}} if "response" in one else one for one in STREAM
    ]


def test_a_text_that_was_left_out_is_not_repeated_and_numbers_close_up() -> None:
    def without(one: Event) -> Iterable[Event]:
        if not (isinstance(one, TextDelta) and one.text == "!"):
            yield one

    new = message("Hé👍", phase="final")
    items = [*STREAM[:17], *STREAM[18:]]
    rest = replaced(
        items,
        (20, text_done("Hé👍", 1)[0]),
        (21, text_done("Hé👍", 1)[1]),
        (22, done(new, 1)),
        (27, output(THOUGHT, new, CALL, SEARCH)),
    )
    assert changed(without) == [{**one, "sequence_number": at} for at, one in enumerate(rest)]


def test_a_call_that_was_left_out_is_told_nowhere() -> None:
    def without(one: Event) -> Iterable[Event]:
        if not (isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock)):
            yield one

    call_ = {**call("{}"), "arguments": "", "status": "in_progress"}
    items = numbered(created(), added(call_), arguments("{}"), done(call("{}")), terminal(output=[call("{}")]))
    out = changed(without, items)
    assert [one["type"] for one in out] == ["response.created", "response.completed"]
    assert out[1]["response"]["output"] == []


def test_an_end_that_was_changed_is_told_by_the_terminal() -> None:
    def ended(one: Event) -> Iterable[Event]:
        if isinstance(one, MessageDelta):
            one = evolve(one, stop_reason=StopReason.MAX_TOKENS, usage=Usage(input=3))
        yield one

    last = changed(ended)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (last["response"]["usage"]["input_tokens"], last["response"]["usage"]["weird"]) == (3, 3)


def test_an_item_that_was_put_in_has_the_next_place_and_those_behind_it_move() -> None:
    def with_call(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, BlockStop) and one.index == 0:
            yield BlockStart(70, ToolUseBlock("new", "n"))
            yield ArgumentsDelta(70, "{}")
            yield BlockStop(70)

    first, second = message("a", id="m1"), message("b", id="m2")
    items = numbered(
        created(),
        added(message()),
        text("a"),
        done(first),
        added(message(id="m2"), 1),
        text("b", 1, id="m2"),
        done(second, 1),
        terminal(output=[first, second]),
    )
    out = changed(with_call, items)
    new = {**call("{}", "n", "new", id="fc_new")}
    assert [one.get("output_index") for one in out[4:8]] == [1, 1, 1, 1]
    assert out[7]["item"] == new
    assert [one["output_index"] for one in out[8:11]] == [2, 2, 2]
    assert out[-1]["response"]["output"] == [first, new, second]


def test_a_block_that_is_ended_in_the_middle_ends_its_item_and_what_the_server_says_behind_it_goes() -> None:
    def ending(one: Event) -> Iterable[Event]:
        if isinstance(one, TextDelta) and one.text == "b":
            yield BlockStop(0)
            yield BlockStart(70, TextBlock())
            yield TextDelta(70, "c", origin=one.origin)
        elif isinstance(one, BlockStop):
            yield BlockStop(70, origin=one.origin)
        else:
            yield one

    item = message("ab")
    items = numbered(
        created(),
        added({**message(), "status": "in_progress"}),
        part_added(),
        text("a"),
        {**text("b"), "weird": 1},
        *text_done("ab"),
        done(item),
        terminal(output=[item]),
    )
    out = changed(ending, items)
    assert out[:4] == items[:4]
    assert out[4:7] == [
        {**one, "sequence_number": at}
        for at, one in enumerate([*text_done("a"), done({**message("a"), "status": "completed"})], 4)
    ]
    own = {"item_id": out[7]["item"]["id"], "output_index": 1, "content_index": 0}
    assert out[9] == {**text("c"), "weird": 1, "logprobs": [], **own, "sequence_number": 9}
    assert out[12]["item"]["content"][0]["text"] == "c"
    assert out[13]["response"]["output"] == [out[6]["item"], out[12]["item"]]
    assert len(out) == 14


def test_an_answer_that_only_its_terminal_tells_is_told_anew_if_it_was_changed() -> None:
    items = numbered(created(), terminal(output=[message("a!")]))
    out = changed(replacing("!", "?"), items)
    assert out[-1]["response"]["output"][0]["content"][0]["text"] == "a?"
    assert len(out[-1]["response"]["output"]) == 1
    whole = numbered(created(), done(message("a!")), terminal(output=[message("a!")]))
    out = changed(replacing("!", "?"), whole)
    assert [item["content"][0]["text"] for item in out[-1]["response"]["output"]] == ["a?"]


def test_what_is_made_anew_for_an_item_of_the_servers_goes_to_it() -> None:
    def more(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, TextDelta) and one.text == "a":
            yield TextDelta(one.index, "b")
        if isinstance(one, ArgumentsDelta):
            yield ArgumentsDelta(one.index, " ")

    items = numbered(
        created(),
        added(message()),
        part_added(),
        text("a"),
        done(message("a")),
        added({**custom(), "status": "in_progress"}, 1),
        event("response.custom_tool_call_input.delta", output_index=1, item_id="ctc1", delta="x"),
        done(custom("x", status="completed"), 1),
        terminal(output=[message("a"), custom("x", status="completed")]),
    )
    out = changed(more, items)
    assert out[4]["delta"] == "b"
    assert out[5]["item"]["content"][0]["text"] == "ab"
    assert out[8]["type"] == "response.custom_tool_call_input.delta"
    assert out[-1]["response"]["output"][1]["input"] == "x "


def test_everything_that_is_made_anew_is_written() -> None:
    made: list[Event] = [
        MessageStart("resp_9", "m"),
        Ping(),
        Carry("responses", Frame(b'{"type":"response.weird","sequence_number":0}', b"response.weird")),
        BlockStart(0, ReasoningBlock(splittable=False)),
        ReasoningDelta(0, "hm"),
        SignatureDelta(0, '{"id":"rs","encrypted_content":"B"}'),
        BlockStop(0),
        BlockStart(1, TextBlock()),
        TextDelta(1, "Hi"),
        RefusalDelta(1, "no"),
        AnnotationDelta(1, {"type": "other"}),
        BlockStop(1),
        TextDelta(1, "late"),
        BlockStart(2, ServerBlock("messages", {})),
        BlockStop(2),
        MessageDelta(StopReason.MAX_TOKENS, None, Usage(1)),
        MessageStop(),
    ]
    returner = ResponsesReturner(ledger=Ledger())
    out = b"".join(piece for step in play(FrameReturner(returner, SSEEncoder()), made, EOF) for piece in step)
    said = payloads(out)
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    assert [one["type"] for one in said[2:4]] == ["keepalive", "response.weird"]
    last = said[-1]
    assert last["type"] == "response.incomplete"
    assert [item["type"] for item in last["response"]["output"]] == ["reasoning", "message"]
    assert last["response"]["output"][0]["encrypted_content"] == "B"
    assert {entry.path for entry in returner.ledger} == {"annotation", "TextDelta", "ServerBlock[2]"}


def test_an_error_that_was_changed_is_written_anew() -> None:
    def kinder(one: Event) -> Iterable[Event]:
        yield evolve(one, message="sorry") if isinstance(one, StreamError) else one

    for last in (event("error", error={"message": "x"}), terminal("failed", error={"message": "x"}, weird=1)):
        out = changed(kinder, numbered(created(), last))
        assert out[1]["type"] == "response.failed"
        assert out[1]["response"]["error"]["message"] == "sorry"


def test_a_refusal_that_was_changed_is_restated() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, RefusalDelta) else one

    where = {"output_index": 0, "item_id": "m1", "content_index": 0}
    items = numbered(
        created(),
        added(message()),
        event("response.refusal.delta", **where, delta="no"),
        event("response.refusal.done", **where, refusal="no"),
        done(refusal("no")),
        terminal(output=[refusal("no")]),
    )
    out = changed(upper, items)
    assert (out[2]["delta"], out[3]["refusal"]) == ("NO", "NO")
    assert out[5]["response"]["output"] == [refusal("NO")]


def test_a_failure_of_ours_is_told_behind_what_is_open() -> None:
    cause = StreamError(ErrorKind.RATE_LIMIT, "slow down", "", retryable=True)
    stage = FrameReturner(ResponsesReturner(), SSEEncoder())
    made: list[Event] = [MessageStart("resp_1", "m"), BlockStart(0, TextBlock()), TextDelta(0, "Hi")]
    out = payloads(b"".join(piece for step in play(stage, made, EOF(cause)) for piece in step))
    assert out[-1]["response"]["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
    assert out[-1]["response"]["output"][0]["status"] == "incomplete"
