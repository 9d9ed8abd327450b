"""A Messages client over a Messages upstream: frames come back as they came; what a stage changed is patched."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from attrs import define, evolve
from hypothesis import given as examples
from hypothesis import strategies as st

from pipeline.dialect import dialect
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
from pipeline.outcome import Outcome, Verdict
from pipeline.reply import Form
from pipeline.route import AnswerOptions
from pipeline.stage import EventStage, Stage
from pipeline.testing import EOF, Chunk, cut, play
from stages.dialects.messages.normalize import MessagesNormalizer
from stages.dialects.messages.opaque import proof_of
from stages.dialects.messages.returned import MessagesReturner
from stages.raw import RawDecoder
from stages.recipe import default_chain
from stages.sse import SSEDecoder, SSEEncoder
from stages.verbatim import FrameReturner, OriginKeeper
from tests.canonical import losses
from tests.goldens import FROM_MESSAGES
from tests.messages_stream import (
    END,
    TEXT,
    THINKING,
    Json,
    begin,
    call,
    citation,
    event,
    given,
    message,
    search,
    signature,
    sse,
    start,
    stop,
    text,
    thinking,
    told,
)
from tests.support import cuts_of, read
from tests.test_messages_properties import ANY_ORDER

MESSAGES = dialect("messages")
CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
COUNTS = {"input_tokens": 10, "output_tokens": 1, "service_tier": "standard"}


def converted(reads: Iterable[bytes], **members: Any) -> tuple[bytes, Outcome]:
    """What a Messages client gets of a Messages stream, and how it ended."""
    outcome = Outcome(ledger=Ledger())
    chain = default_chain(MESSAGES, MESSAGES, outcome=outcome, ledger=outcome.ledger, **members)
    made = [piece for part in reads for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()]), outcome


# byte for byte


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", FROM_MESSAGES.cases)
def test_a_fixture_comes_back_as_it_came_but_for_our_error_behind_a_cut(case: str, chunk: Chunk) -> None:
    raw = FROM_MESSAGES.recording(case)
    if not raw.startswith((b"event", b"data", b":")):
        return  # no stream
    out, outcome = converted(cut(raw, chunk))
    failed_by_us = outcome.error is not None and b"event: error" not in raw
    if failed_by_us:
        whole = raw[: raw.rfind(b"\n\n", 0, len(raw) - (2 if case == "broken-frame" else 0)) + 2]
        assert out.startswith(whole)
        assert b"event: error\n" in out[len(whole) :]
        assert out.count(b"event: error") == 1
    else:
        assert out == raw
    assert list(outcome.ledger) == [] or case == "broken-frame"


STREAM = [
    begin(usage=COUNTS, weird={"a": 1}),
    event("ping"),
    start(THINKING),
    thinking("Why"),
    signature("SIG"),
    stop(),
    start(search(), 1),
    given('{"query":"q"}', 1),
    stop(1),
    start({**TEXT, "weird": 1}, 2),
    citation({"type": "char_location"}, 2),
    {**text("Hé👍", 2), "weird": 1},
    text("!", 2),
    stop(2),
    start(call(caller={"type": "direct"}), 3),
    given('{"x"', 3),
    given(":1}", 3),
    stop(3),
    event("hologram", x=1),
    told("tool_use", usage={"output_tokens": 5, "iterations": []}, container={"id": "c"}),
    END,
    event("ping"),
]
RAW = b": hello\n\n" + sse(STREAM[:9]).replace(b"\n", b"\r\n") + b": there\n" + sse(STREAM[9:]) + b"data: [DONE]\n\n"


@examples(st.data())
def test_any_cut_of_a_stream_comes_back_as_it_came(data: st.DataObject) -> None:
    out, outcome = converted(data.draw(cuts_of(RAW)))
    assert out == RAW
    assert outcome.verdict is Verdict.COMPLETE
    assert outcome.stop_reason is StopReason.TOOL_USE


@examples(st.lists(st.sampled_from([*ANY_ORDER, start(TEXT, None), start(TEXT, "x"), text("z", [1])]), max_size=14))
def test_whatever_law_a_stream_breaks_it_comes_back_as_it_came(items: list[Json]) -> None:
    raw = sse(items)
    out, outcome = converted([raw])
    if outcome.error is None or (outcome.error.kind is ErrorKind.API and outcome.error.code == ""):
        assert out == raw
    elif outcome.verdict is Verdict.CUT:
        halves = any(b"ud83d" in part for part in cut(raw, "frame"))
        assert out.startswith(raw) or halves
    else:
        assert outcome.error.code == "nameless_tool_call"


@examples(st.integers(1, len(RAW) - 1))
def test_what_was_cut_comes_back_as_far_as_it_came_whole_and_then_the_error(size: int) -> None:
    out, outcome = converted([RAW[:size]])
    closing = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":'
    if b'"message_stop"}' in RAW[:size]:
        assert RAW.startswith(out)
        assert outcome.verdict is Verdict.COMPLETE
        return
    whole, _, error = out.rpartition(b"event: error\n")
    assert outcome.verdict is Verdict.CUT
    assert b"stream_cut" not in whole
    assert json.loads(error.partition(b"data: ")[2])["error"]["type"] == "api_error"
    kept = whole if with_lf(RAW).startswith(with_lf(whole)) else whole[: whole.rindex(closing)]
    assert with_lf(RAW).startswith(with_lf(kept))
    frames = [len(part) for part in cut(RAW, "frame")]
    assert len(kept) >= max((sum(frames[:at]) for at in range(len(frames)) if sum(frames[:at]) <= size), default=0)


def with_lf(raw: bytes) -> bytes:
    """A stream without its carriage returns: a last event that lacks its blank line is given one of ours."""
    return raw.replace(b"\r", b"")


@pytest.mark.parametrize(
    ("open_", "closed"),
    [
        ([], []),
        ([start(TEXT), text("Hi")], [stop()]),
        ([start(THINKING, 0), thinking("Hm", 0)], [stop()]),
        ([start(search()), given("{", 0)], [stop()]),
        ([start(call()), given("{", 0)], []),
        ([start(TEXT), text("Hi"), stop()], []),
        ([start(TEXT), text("Hi"), stop(), told()], []),
    ],
)
def test_a_cut_closes_what_is_open_but_for_a_call(open_: list[Json], closed: list[Json]) -> None:
    raw = sse([begin(usage=COUNTS), *open_])
    out, _ = converted([raw])
    assert out.startswith(raw)
    rest = [json.loads(line[6:]) for line in out[len(raw) :].split(b"\n") if line.startswith(b"data: ")]
    assert rest[:-1] == closed
    assert rest[-1]["type"] == "error"


def test_a_keep_alive_is_a_ping_between_frames() -> None:
    chain = default_chain(MESSAGES, MESSAGES, options=AnswerOptions(recover="off"))
    raw = sse([begin(), start(TEXT)])
    assert b"".join(chain.receive([raw[:-5]])) == sse([begin()])
    assert list(chain.idle()) == [b'event: ping\ndata: {"type":"ping"}\n\n']
    assert b"".join(chain.receive([raw[-5:]])) == sse([start(TEXT)])


def test_a_whole_answer_for_a_stream_is_written_as_one() -> None:
    body = message({"type": "text", "text": "Hi"}, call(input={"x": 1}), stop_reason="tool_use", usage=COUNTS)
    out, outcome = converted([json.dumps(body).encode()], arriving=None)
    answer = read(out)
    assert (answer.said("text"), answer.calls, answer.stop) == ("Hi", [("f", {"x": 1})], "tool_use")
    assert outcome.verdict is Verdict.COMPLETE


def test_a_signature_stays_what_it_was_in_a_whole_answer_too() -> None:
    body = message({"type": "thinking", "thinking": "hm", "signature": "SIG"}, stop_reason="end_turn", usage=COUNTS)
    out, _ = converted([json.dumps(body).encode()], arriving=Form.WHOLE, leaving=Form.STREAM)
    assert read(out).signatures == ["SIG"]


@pytest.mark.parametrize("arriving", [Form.WHOLE, None])
def test_a_whole_answer_comes_back_as_it_came(arriving: Form | None) -> None:
    body = json.dumps(message({**TEXT, "text": "Hi", "weird": 1}, stop_reason="end_turn", weird=[1.0]), indent=1)
    out, outcome = converted([body.encode()], arriving=arriving, leaving=Form.WHOLE)
    assert out == body.encode()
    assert (outcome.verdict, list(outcome.ledger)) == (Verdict.COMPLETE, [])


def test_a_stream_for_a_whole_answer_is_one_whose_signatures_stay_what_they_were() -> None:
    out, outcome = converted([RAW], arriving=None, leaving=Form.WHOLE)
    answer = json.loads(out)
    assert [block["type"] for block in answer["content"]] == ["thinking", "server_tool_use", "text", "tool_use"]
    assert answer["content"][0]["signature"] == "SIG"
    assert answer["content"][2]["citations"] == [{"type": "char_location"}]
    assert answer["container"]
    assert losses(outcome.ledger) == [("hologram", "dropped", "a whole answer has no place for it")]


def test_a_whole_answer_that_failed_is_no_body() -> None:
    out, outcome = converted(
        [b'{"type":"error","error":{"type":"x","message":"no"}}'], leaving=Form.WHOLE, arriving=None
    )
    assert (out, outcome.verdict) == (b"", Verdict.FAILED)


# patched


@define
class Each(EventStage):
    """What a function makes of each event."""

    make: Callable[[Event], Iterable[Event]]

    def on_event(self, event: Event) -> Iterable[Event]:
        return self.make(event)


def changed(make: Callable[[Event], Iterable[Event]], items: Sequence[Json] = STREAM) -> list[Json]:
    """What a client gets if a stage stands in the middle."""
    reading = RawDecoder(SSEDecoder(sentinels=(b"[DONE]",))) | OriginKeeper(MessagesNormalizer(), "messages")
    chain: Stage[bytes, bytes] = reading | Each(make) | FrameReturner(MessagesReturner(), SSEEncoder())
    out = b"".join([*chain.receive([sse(items)]), *chain.receive_eof()])
    return [json.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]


def replaced(old: Sequence[Json], *news: tuple[int, Json]) -> list[Json]:
    out = list(old)
    for at, new in news:
        out[at] = new
    return out


def test_a_text_that_was_changed_is_patched_and_its_frame_keeps_the_rest() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, TextDelta) else one

    assert changed(upper) == replaced(STREAM, (11, {**text("HÉ👍", 2), "weird": 1}))


def test_a_start_that_was_changed_is_patched() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock):
            one = evolve(one, block=evolve(one.block, id="b", name="g"))
        elif isinstance(one, MessageStart):
            one = evolve(one, model="other", usage=Usage(7))
        yield one

    usage = {**COUNTS, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    start_ = begin(usage={**usage, "input_tokens": 7, "output_tokens": 0}, weird={"a": 1}, model="other")
    assert changed(renamed) == replaced(STREAM, (0, start_), (14, start(call("b", "g", caller={"type": "direct"}), 3)))


def test_a_text_that_a_block_begins_with_is_patched_in_it() -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, TextDelta) else one

    items = [begin(), start({"type": "text", "text": "hi", "weird": 1}), stop(), told(), END]
    assert changed(upper, items) == replaced(items, (1, start({"type": "text", "text": "HI", "weird": 1})))


@pytest.mark.parametrize("index", [None, "x", [0]])
def test_a_start_whose_index_is_odd_is_written_anew_if_it_was_changed(index: Any) -> None:
    def renamed(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart):
            one = evolve(one, block=ToolUseBlock("b", "g"))
        yield one

    items = [begin(), start(call(), index), given("{}", 0), stop(0), told("tool_use"), END]
    assert changed(renamed, items)[1] == start(call("b", "g"))


def test_an_end_that_was_changed_is_patched_in_the_frame_that_told_it() -> None:
    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.END_TURN) if isinstance(one, MessageDelta) else one

    patched = changed(ended)
    assert patched[:19] == STREAM[:19]
    assert patched[19]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c"}}
    assert patched[19]["usage"]["iterations"] == []
    assert patched[20:] == STREAM[20:]


def test_of_an_end_that_was_told_in_pieces_the_last_is_patched_and_what_stood_between_stays_there() -> None:
    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.REFUSAL) if isinstance(one, MessageDelta) else one

    items = [begin(), told(None), event("ping"), told("max_tokens", weird=1), event("ping"), END]
    assert changed(ended, items) == replaced(items, (3, {**told("refusal", weird=1), "usage": {"output_tokens": 0}}))


def test_an_end_behind_which_too_much_comes_does_not_wait_for_the_terminal() -> None:
    reading = RawDecoder(SSEDecoder()) | OriginKeeper(MessagesNormalizer(), "messages")
    chain: Stage[bytes, bytes] = reading | FrameReturner(MessagesReturner(), SSEEncoder())
    ping = sse([event("ping")])
    assert b"".join(chain.receive([sse([begin(), told()]) + ping * 98])) == sse([begin()])
    assert b"".join(chain.receive([ping])) == sse([told()]) + ping * 99
    assert b"".join(chain.receive([ping + sse([END])])) == ping + sse([END])


def test_an_end_that_nobody_told_is_told_if_it_was_changed() -> None:
    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.MAX_TOKENS) if isinstance(one, MessageDelta) else one

    assert changed(ended, [begin(), END])[1:] == [
        event("message_delta", delta={"stop_reason": "max_tokens", "stop_sequence": None}, usage={"output_tokens": 0}),
        END,
    ]


def test_blocks_behind_one_that_was_left_out_move_up() -> None:
    def without_thinking(one: Event) -> Iterable[Event]:
        if not (getattr(one, "index", None) == 0 or _is(one, "signature_delta")):
            yield one

    moved = [{**item, "index": item["index"] - 1} if "index" in item else item for item in [*STREAM[:2], *STREAM[6:]]]
    assert changed(without_thinking) == moved


def _is(one: Event, word: str) -> bool:
    return isinstance(one, Carry) and word.encode() in one.frame.data


def test_a_call_that_was_put_in_stands_between_the_blocks_and_those_behind_it_move_down() -> None:
    def with_call(one: Event) -> Iterable[Event]:
        yield one
        if isinstance(one, BlockStop) and one.index == 0:
            yield BlockStart(70, ToolUseBlock("new", "n"))
            yield ArgumentsDelta(70, "{}")
            yield BlockStop(70)

    items = [begin(), start(TEXT), text("a"), stop(), start(TEXT, 1), text("b", 1), stop(1), told(), END]
    assert changed(with_call, items) == [
        *items[:4],
        start(call("new", "n"), 1),
        given("{}", 1),
        stop(1),
        start(TEXT, 2),
        text("b", 2),
        stop(2),
        *items[7:],
    ]


def test_what_is_made_anew_for_a_block_of_the_streams_goes_to_it() -> None:
    def split(one: Event) -> Iterable[Event]:
        if isinstance(one, TextDelta):
            yield from (TextDelta(one.index, letter) for letter in one.text)
        else:
            yield one

    items = [begin(), start(TEXT), text("ab"), stop(), told(), END]
    assert changed(split, items) == [*items[:2], text("a"), text("b"), *items[3:]]


def test_everything_that_is_made_anew_is_written() -> None:
    note = {"type": "char_location"}
    made: list[Event] = [
        MessageStart("msg_1", "m", Usage(1)),
        Ping(),
        Carry("messages", Frame(b'{"type":"weird"}', b"weird")),
        BlockStart(0, ReasoningBlock()),
        SignatureDelta(0, proof_of("thinking", "SIG")),
        BlockStop(0),
        BlockStart(1, TextBlock()),
        RefusalDelta(1, "no"),
        AnnotationDelta(1, note),
        AnnotationDelta(1, {"type": "other"}),
        BlockStop(1),
        TextDelta(1, "late"),
        BlockStart(2, ServerBlock("responses", {})),
        MessageDelta(StopReason.REFUSAL, None, Usage(1)),
        MessageStop(),
    ]
    ledger = Ledger()
    stage = FrameReturner(MessagesReturner(ledger=ledger), SSEEncoder())
    out = b"".join(piece for step in play(stage, made, EOF) for piece in step)
    events = [json.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]
    assert [one["type"] for one in events] == [
        "message_start",
        "ping",
        "weird",
        *["content_block_start", "content_block_delta", "content_block_stop"],
        *["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
        "message_delta",
        "message_stop",
    ]
    assert events[4] == signature("SIG")
    assert events[8] == citation(note, 1)
    assert {entry.path for entry in ledger} == {"AnnotationDelta", "TextDelta", "ServerBlock"}


def test_an_error_of_the_streams_goes_back_as_it_came() -> None:
    raw = sse([begin(), start(TEXT), text("Hi"), event("error", error={"type": "weird", "message": "x", "more": 1})])
    out, outcome = converted([raw])
    assert out == raw
    assert outcome.error == StreamError(ErrorKind.API, "x", "weird", retryable=True)
