"""A Chat client over a Chat upstream: frames come back as they came; what a stage changed is patched."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
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
    ReasoningDelta,
    RefusalDelta,
    SignatureDelta,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolKind,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.outcome import Verdict
from pipeline.reply import Form
from pipeline.testing import EOF, Chunk, cut, play
from pipeline.toolnames import OfferedTool, RequestMap
from stages.dialects.chat.returned import ChatReturner
from stages.sse import SSEEncoder
from stages.verbatim import FrameReturner
from tests.exchange import answered, route, sent
from tests.goldens import FROM_CHAT
from tests.returning import payloads, replacing, returned, through
from tests.support import DONE, call, chunk, cuts_of, finish, fragment, reasoning, sse, text, usage

WANTED: dict[str, Any] = {"stream_options": {"include_usage": True}}
CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
Json = dict[str, Any]

STREAM: list[Any] = [
    chunk({"role": "assistant", "content": ""}, system_fingerprint="fp"),
    reasoning("Why"),
    text("Hé👍"),
    chunk({"content": "!", "weird": 1}, obfuscation="abc"),
    call(0, "a", "f", ""),
    call(0, arguments='{"x"'),
    text(" and"),
    call(1, "b", "g", "{}"),
    call(0, arguments=":1}"),
    chunk(None, usage=None),
    finish("tool_calls"),
    usage(),
    DONE,
]
RAW = b": hello\n\n" + sse(*STREAM[:5]).replace(b"\n", b"\r\n") + b": there\n" + sse(*STREAM[5:]) + b": bye\n\n"


# byte for byte


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", FROM_CHAT.cases)
def test_a_fixture_comes_back_as_it_came_but_for_our_error_behind_a_cut(case: str, chunk: Chunk) -> None:
    raw = FROM_CHAT.recording(case)
    if raw.lstrip().startswith((b"{", b"[", b"<")):
        return  # no stream
    out, outcome = returned("chat", cut(raw, chunk))
    if out == raw:
        return
    kept, _, error = out.rpartition(b"data: ")
    assert outcome.error is not None
    assert raw.startswith(kept)
    assert json.loads(error)["error"]["message"] == outcome.error.message
    assert DONE.encode() not in kept


@given(st.data())
def test_any_cut_of_a_stream_comes_back_as_it_came(data: st.DataObject) -> None:
    out, outcome = returned("chat", data.draw(cuts_of(RAW)))
    assert out == RAW
    assert (outcome.verdict, outcome.stop_reason) == (Verdict.COMPLETE, StopReason.TOOL_USE)
    assert list(outcome.ledger) == []


@given(st.integers(0, len(RAW) - 1))
def test_what_was_cut_comes_back_as_far_as_it_came_whole_and_then_the_error(size: int) -> None:
    out, outcome = returned("chat", [RAW[:size]])
    if outcome.verdict is Verdict.COMPLETE:
        assert b"tool_calls" in RAW[:size]
        assert with_lf(RAW).startswith(with_lf(out))
        return
    whole, _, error = out.rpartition(b"data: ")
    assert outcome.verdict is Verdict.CUT
    assert json.loads(error)["error"]["message"]
    assert with_lf(RAW).startswith(with_lf(whole))
    assert b'"finish_reason": "' not in whole


def with_lf(raw: bytes) -> bytes:
    """A stream without its carriage returns: a last event that lacks its blank line is given one of ours."""
    return raw.replace(b"\r", b"")


@pytest.mark.parametrize("open_", [[], [text("Hi")], [call(0, "a", "f", '{"x"')], [reasoning("Hm")]])
def test_a_cut_closes_nothing_and_says_nothing_of_an_end(open_: list[Json]) -> None:
    raw = sse(STREAM[0], *open_)
    out, _ = returned("chat", [raw])
    assert out.startswith(raw)
    (error,) = payloads(out[len(raw) :])
    assert error["error"]["type"] == "server_error"


def test_a_keep_alive_is_a_comment_between_frames() -> None:
    stage = FrameReturner(ChatReturner(), SSEEncoder())
    assert list(stage.idle()) == [b": keep-alive\n\n"]


@pytest.mark.parametrize("size", CUTS, ids=str)
@pytest.mark.parametrize("end", [[finish("tool_calls"), usage(), DONE], [usage(), finish(), DONE], [finish(), usage()]])
def test_a_client_that_did_not_ask_for_counts_gets_no_chunk_without_a_choice_but_the_outcome_has_them(
    size: Chunk, end: list[Any]
) -> None:
    beside = [{**chunk(), "choices": [], "prompt_filter_results": []}, chunk({"content": "."}, usage=usage()["usage"])]
    items = [STREAM[0], *beside, *end]
    shown = [item for item in items if item != usage()]
    out, outcome = returned("chat", cut(sse(*items), size), facts=RequestFacts(include_usage=False))
    assert out == sse(*shown)
    assert outcome.usage == Usage(input=10, output=5)
    assert returned("chat", cut(sse(*items), size))[0] == sse(*items)


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}, WANTED])
def test_a_route_shows_the_counts_to_a_client_that_asked_for_them(options: Json) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, **options}
    exchange = route("chat", "chat").open(json.dumps(asked).encode())
    assert sent(exchange)["stream_options"] == {"include_usage": True}
    body = answered(exchange, sse(*STREAM)).body
    assert body == sse(*STREAM) if options is WANTED else body == sse(*(item for item in STREAM if item != usage()))
    assert exchange.outcome.usage == Usage(input=10, output=5)


def test_further_choices_go_back_too() -> None:
    other = {**chunk(), "choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": None}]}
    raw = sse(text("A"), other, finish(), DONE)
    assert returned("chat", [raw])[0] == raw


def test_an_error_of_the_streams_goes_back_as_it_came() -> None:
    raw = sse(text("Hi"), {"error": {"type": "weird", "message": "x", "more": 1}})
    out, outcome = returned("chat", [raw])
    assert out == raw
    assert outcome.error is not None
    assert outcome.error.message == "x"


def test_a_whole_answer_for_a_stream_is_written_as_one() -> None:
    message = {"role": "assistant", "content": "Hi"}
    body = {"id": "c1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    out, outcome = returned("chat", [json.dumps(body).encode()], arriving=None)
    chunks = payloads(out)
    assert [one["choices"][0]["delta"] for one in chunks[:3]] == [
        {"role": "assistant", "content": None},
        {"content": "Hi"},
        {},
    ]
    assert [one["choices"][0]["finish_reason"] for one in chunks[:3]] == [None, None, "stop"]
    assert chunks[3:] == [DONE]
    assert outcome.verdict is Verdict.COMPLETE


@pytest.mark.parametrize("arriving", [Form.WHOLE, None])
def test_a_whole_answer_comes_back_as_it_came(arriving: Form | None) -> None:
    message = {"role": "assistant", "content": "Hi", "weird": 1.0, "tool_calls": [fragment(None, "a", "f", "{ }")]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}, {"index": 1, "message": {}}]
    body = json.dumps({"id": "c1", "choices": choices, "more": [1.50]}, indent=1)
    out, outcome = returned("chat", [body.encode()], arriving=arriving, leaving=Form.WHOLE)
    assert out == body.encode()
    assert (outcome.verdict, list(outcome.ledger)) == (Verdict.COMPLETE, [])


# patched


def changed(make: Callable[[Event], Iterable[Event]], items: Sequence[Any] = STREAM, **members: Any) -> list[Any]:
    """What a client gets if a stage stands in the middle; frames that were not changed are as they came."""
    out = through("chat", make, [sse(*items)], **members)
    for item in items:
        if item in payloads(out):
            assert sse(item) in out
    return payloads(out)


def replaced(old: Sequence[Any], *news: tuple[int, Any]) -> list[Any]:
    out = list(old)
    for at, new in news:
        out[at] = new
    return out


def test_a_text_that_was_changed_is_patched_and_its_frame_keeps_the_rest() -> None:
    patched = chunk({"content": "?", "weird": 1}, obfuscation="abc")
    assert changed(replacing("!", "?")) == replaced(STREAM, (3, patched))


def test_what_is_said_of_the_tokens_of_a_text_that_was_changed_goes() -> None:
    item = text("secret")
    item["choices"][0]["logprobs"] = {"content": [{"token": "secret"}]}
    items = [STREAM[0], item, finish(), DONE]
    patched = text("***")
    patched["choices"][0]["logprobs"] = None
    assert changed(replacing("secret", "***"), items) == replaced(items, (1, patched))


@pytest.mark.parametrize(
    ("delta", "patched"),
    [
        ({"reasoning": "ab", "reasoning_content": "ab"}, {"reasoning": "AB", "reasoning_content": "AB"}),
        ({"thinking": {"text": "ab", "x": 1}}, {"thinking": {"text": "AB", "x": 1}}),
        (
            {"reasoning_details": [{"type": "reasoning.text", "text": "a"}, {"type": "x"}, {"text": "b"}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "AB"}, {"type": "x"}, {"text": ""}]},
        ),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]}, "c"]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "AB"}]}, "C"]},
        ),
        ({"content": ["a", {"type": "x"}, {"type": "text", "text": "b"}]}, {"content": ["AB", {"type": "x"}]}),
        ({"content": "ab", "extra_content": {"google": {"thought": True}}}, None),
        ({"content": "ab", "reasoning_content": "c"}, {"content": "AB", "reasoning_content": "C"}),
        ({"refusal": "no"}, {"refusal": "NO"}),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, {"content": [{"type": "refusal", "refusal": "NO"}]}),
    ],
)
def test_every_spelling_of_a_text_is_patched_where_it_stands(delta: Json, patched: Json | None) -> None:
    def upper(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.upper()) if isinstance(one, TextDelta | ReasoningDelta | RefusalDelta) else one

    items = [STREAM[0], chunk(delta, weird=1), finish(), DONE]
    out = changed(upper, items)
    assert out[0] == items[0]
    if patched is not None:
        assert out[1] == chunk(patched, weird=1)
    assert out[1]["weird"] == 1
    assert out[2:] == items[2:]


def test_a_message_that_was_renamed_is_in_every_chunk() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        yield evolve(one, model="other") if isinstance(one, MessageStart) else one

    assert changed(renamed) == [item if item == DONE else {**item, "model": "other"} for item in STREAM]


def test_a_call_that_was_renamed_is_patched() -> None:
    def renamed(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock):
            one = evolve(one, block=evolve(one.block, id="z", name="h"))
        yield one

    items = [STREAM[0], chunk({"tool_calls": [fragment(0, "a", "f", "{ }", extra_content={"x": 1})]}), finish(), DONE]
    patched = chunk({"tool_calls": [fragment(0, "z", "h", "{ }", extra_content={"x": 1})]})
    assert changed(renamed, items) == replaced(items, (1, patched))
    legacy = [STREAM[0], chunk({"function_call": {"name": "f", "arguments": "{}"}}), finish("function_call"), DONE]
    assert changed(renamed, legacy) == replaced(legacy, (1, chunk({"function_call": {"name": "h", "arguments": "{}"}})))
    custom = [STREAM[0], chunk({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f"}}]})]
    patched = chunk({"tool_calls": [{"index": 0, "id": "z", "type": "custom", "custom": {"name": "h"}}]})
    assert changed(renamed, [*custom, finish(), DONE]) == [STREAM[0], patched, finish(), DONE]


def test_arguments_that_were_changed_are_patched() -> None:
    def spaced(one: Event) -> Iterable[Event]:
        yield evolve(one, text=one.text.replace(":", ": ")) if isinstance(one, ArgumentsDelta) else one

    assert changed(spaced) == replaced(STREAM, (8, call(0, arguments=": 1}")))


def test_a_finish_that_was_changed_is_patched_in_the_frame_that_told_it_and_so_are_the_counts() -> None:
    def ended(one: Event) -> Iterable[Event]:
        if isinstance(one, MessageDelta):
            one = evolve(one, stop_reason=StopReason.MAX_TOKENS, usage=Usage(input=3, output=4))
        yield one

    counts = changed(ended)[11]["usage"]
    assert counts == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert changed(ended) == replaced(STREAM, (10, finish("length")), (11, {**STREAM[11], "usage": counts}))
    late = [*STREAM[:10], chunk({"content": "."}, "stop", weird=1), DONE]
    counted = changed(ended, late, facts=RequestFacts(include_usage=False))
    assert counted == replaced(late, (10, chunk({"content": "."}, "length", weird=1)))
    assert changed(ended, late)[11]["choices"] == []


def test_a_finish_that_nobody_told_is_told_if_the_end_was_changed() -> None:
    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.REFUSAL) if isinstance(one, MessageDelta) else one

    out = changed(ended, [STREAM[0], text("a"), DONE])
    assert out[2]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]
    assert out[2]["system_fingerprint"] == "fp"
    assert out[3:] == [DONE]


def test_a_finish_that_was_left_out_with_its_frame_is_told_anew() -> None:
    def without(one: Event) -> Iterable[Event]:
        if not (isinstance(one, TextDelta) and one.text == "b"):
            yield one

    items = [STREAM[0], text("a"), chunk({"content": "b"}, "stop"), DONE]
    out = changed(without, items)
    assert out[2]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert out[3:] == [DONE]


def test_a_chunk_behind_the_finish_that_says_nothing_stays_there() -> None:
    def with_more(one: Event) -> Iterable[Event]:
        if isinstance(one, MessageDelta):
            yield TextDelta(0, "more")
        yield one

    items = [STREAM[0], text("a"), finish(), chunk({}, usage={"prompt_tokens": 1}), DONE]
    assert changed(with_more, items)[3:] == items[2:]


def test_an_end_that_no_frame_told_is_left_out_unless_something_was_changed() -> None:
    raw = sse(*STREAM[:11])
    assert returned("chat", [raw])[0] == raw
    assert changed(replacing("!", "?"), STREAM[:11])[-2:] == [STREAM[10], DONE]

    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.END_TURN) if isinstance(one, MessageDelta) else one

    assert changed(ended, STREAM[:11])[-2:] == [finish("stop"), DONE]


def test_a_finish_behind_which_too_much_comes_does_not_wait_for_the_terminal() -> None:
    raw = sse(STREAM[0], finish(), *[usage()] * 120, DONE)
    assert returned("chat", cut(raw, "frame"))[0] == raw

    def ended(one: Event) -> Iterable[Event]:
        yield evolve(one, stop_reason=StopReason.MAX_TOKENS) if isinstance(one, MessageDelta) else one

    assert [one for one in changed(ended, [STREAM[0], finish(), *[usage()] * 120, DONE]) if one == finish()] == [
        finish()
    ]


def test_a_call_that_was_put_in_has_the_next_number_and_those_behind_it_move() -> None:
    def with_call(one: Event) -> Iterable[Event]:
        if isinstance(one, BlockStart) and isinstance(one.block, ToolUseBlock) and one.block.id == "b":
            yield BlockStart(70, ToolUseBlock("new", "n"))
            yield BlockStop(70)
        yield one

    new = [{**STREAM[0], **call(1, "new", "n", "")}, {**STREAM[0], **call(1, arguments="{}")}]
    assert changed(with_call) == [*STREAM[:7], *new, call(2, "b", "g", "{}"), *STREAM[8:]]


def test_a_call_that_was_left_out_leaves_no_gap() -> None:
    def without(one: Event) -> Iterable[Event]:
        if getattr(one, "index", None) != 2:
            yield one

    assert changed(without) == [*STREAM[:4], STREAM[6], call(0, "b", "g", "{}"), *STREAM[9:]]


def test_of_several_calls_in_a_chunk_one_is_left_out() -> None:
    def without(one: Event) -> Iterable[Event]:
        if getattr(one, "index", None) != 0:
            yield one

    both = chunk({"tool_calls": [fragment(0, "a", "f", "{}"), fragment(1, "b", "g", "{ }")]})
    items = [STREAM[0], both, finish("tool_calls"), DONE]
    assert changed(without, items)[1]["choices"][0]["delta"]["tool_calls"][0]["id"] == "b"


def test_what_is_put_in_behind_the_finish_stands_before_it() -> None:
    def with_more(one: Event) -> Iterable[Event]:
        if isinstance(one, MessageDelta):
            yield TextDelta(0, "more")
        yield one

    more = {**STREAM[0], **text("more")}
    items = [STREAM[0], text("a"), finish(), usage(), DONE]
    assert changed(with_more, items) == [*items[:2], more, *items[2:]]
    joined = [STREAM[0], chunk({"content": "a"}, "stop"), text("b"), usage(), DONE]
    assert changed(with_more, joined) == [STREAM[0], text("a"), text("b"), more, finish(), usage(), DONE]


def test_a_text_that_was_split_is_written_in_its_frame_and_anew() -> None:
    def split(one: Event) -> Iterable[Event]:
        if isinstance(one, TextDelta) and one.text == "ab":
            yield from (TextDelta(one.index, letter, origin=one.origin) for letter in one.text)
        else:
            yield one

    items = [STREAM[0], chunk({"content": "ab", "weird": 1}), finish(), DONE]
    rest = {**STREAM[0], **text("b")}
    assert changed(split, items) == [STREAM[0], chunk({"content": "a", "weird": 1}), rest, *items[2:]]


def test_everything_that_is_made_anew_is_written() -> None:
    note = {"type": "url_citation"}
    tools = {"n": OfferedTool("n", kind=ToolKind.CUSTOM)}
    made: list[Event] = [
        MessageStart("c9", "m"),
        Ping(),
        Carry("chat", Frame(b'{"weird":1}')),
        BlockStart(0, TextBlock()),
        TextDelta(0, "Hi"),
        RefusalDelta(0, "no"),
        AnnotationDelta(0, note),
        SignatureDelta(1, "SIG"),
        BlockStop(0),
        BlockStart(2, ToolUseBlock("a", "n")),
        ArgumentsDelta(2, '{"input":"x"}'),
        BlockStop(2),
        ArgumentsDelta(9, "late"),
        MessageDelta(StopReason.TOOL_USE, None, Usage(1)),
        MessageStop(),
    ]
    returner = ChatReturner(facts=RequestFacts(map=RequestMap(tools=tools)), ledger=Ledger())
    out = b"".join(piece for step in play(FrameReturner(returner, SSEEncoder()), made, EOF) for piece in step)
    whose = {"object": "chat.completion.chunk", "id": "c9", "model": "m"}
    said = payloads(out)
    assert b": keep-alive\n\n" in out
    assert said.pop(1) == {"weird": 1}
    assert said.pop() == DONE
    assert said.pop()["usage"]["prompt_tokens"] == 1
    assert all(one == {**whose, "choices": one["choices"]} for one in said)
    assert [one["choices"][0]["delta"] for one in said] == [
        {"role": "assistant", "content": None},
        {"content": "Hi"},
        {"refusal": "no"},
        {"annotations": [note]},
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "n", "input": ""}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "x"}}]},
        {},
    ]
    assert said[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert {entry.path for entry in returner.ledger} == {"SignatureDelta", "ArgumentsDelta"}


def test_an_error_that_was_changed_is_written_anew() -> None:
    def kinder(one: Event) -> Iterable[Event]:
        yield evolve(one, message="sorry") if isinstance(one, StreamError) else one

    out = changed(kinder, [text("Hi"), {"error": {"type": "weird", "message": "x"}}])
    assert out[1]["error"]["message"] == "sorry"
    cut_ = StreamError(ErrorKind.CUT, "reset", "stream_cut", retryable=True)
    assert returned("chat", [sse(text("a"))])[1].error != cut_
