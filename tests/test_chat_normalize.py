"""The chat normalizer: what vendors send, as canonical events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dialect import RequestFacts
from pipeline.errors import UpstreamError
from pipeline.events import (
    AnnotationDelta,
    ArgumentsDelta,
    BlockStart,
    BlockStop,
    Carry,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    ReasoningBlock,
    ReasoningDelta,
    RefusalDelta,
    Served,
    StopReason,
    StreamError,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
)
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS
from pipeline.testing import check_stage, play
from stages.dialects.chat import DIALECT
from stages.dialects.chat.normalize import ChatNormalizer
from tests.chat_read import START, events, lost, normalized, said
from tests.support import (
    DONE,
    Chance,
    call,
    chat_streams,
    chunk,
    finish,
    fragment,
    frame,
    reasoning,
    text,
    usage,
)

# The plain course


def test_a_stream_step_by_step() -> None:
    assert normalized(
        chunk({"role": "assistant", "content": ""}),
        reasoning("A"),
        reasoning("B"),
        text("c"),
        text("d"),
        call(0, "i", "f", ""),
        call(0, arguments="{}"),
        finish("tool_calls"),
        usage(),
        DONE,
    ) == [
        [START],
        [BlockStart(0, ReasoningBlock()), ReasoningDelta(0, "A")],
        [ReasoningDelta(0, "B")],
        [BlockStart(1, TextBlock()), TextDelta(1, "c")],
        [TextDelta(1, "d")],
        [BlockStart(2, ToolUseBlock("i", "f"))],
        [ArgumentsDelta(2, "{}")],
        [BlockStop(2)],
        [Carry("chat", frame(usage()))],
        [BlockStop(0), BlockStop(1), MessageDelta(StopReason.TOOL_USE, None, Usage(10, output=5)), MessageStop()],
        [],
    ]


def test_everything_in_one_chunk_comes_in_the_order_reasoning_text_refusal_calls() -> None:
    delta = {
        "tool_calls": [fragment(0, "i", "f", "{}")],
        "refusal": "no",
        "content": "T",
        "reasoning": "R",
    }
    assert events(chunk(delta, "stop", usage=usage()["usage"])) == [
        MessageStart("c1", "m", Usage(10, output=5), Served(1)),
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "R"),
        BlockStart(1, TextBlock()),
        TextDelta(1, "T"),
        BlockStart(2, TextBlock()),
        RefusalDelta(2, "no"),
        BlockStart(3, ToolUseBlock("i", "f")),
        ArgumentsDelta(3, "{}"),
        BlockStop(3),
        BlockStop(0),
        BlockStop(1),
        BlockStop(2),
        MessageDelta(StopReason.REFUSAL, None, Usage(10, output=5)),
        MessageStop(),
    ]


@given(chat_streams())
def test_the_rules_of_every_stage(stream: Chance) -> None:
    check_stage(ChatNormalizer, [frame(item) for item in stream.items])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_reasoning_has_many_names(name: str) -> None:
    assert said(chunk({name: "A"}), chunk({name: "B", "content": ""}), chunk({name: "C"})) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        ReasoningDelta(0, "B"),
        ReasoningDelta(0, "C"),
        BlockStop(0),
    ]


def test_reasoning_that_repeats_what_came_is_read_once() -> None:
    steps = ["The user", "The user asks", "The user asks why"]
    deltas = said(*(chunk({"reasoning_details": [{"text": step}]}) for step in steps))[1:-1]
    assert deltas == [ReasoningDelta(0, part) for part in ("The user", " asks", " why")]


def test_reasoning_that_only_begins_alike_is_kept() -> None:
    deltas = said(chunk({"reasoning_content": "Wait"}), chunk({"reasoning_content": "Wait, no."}))[1:-1]
    assert deltas == [ReasoningDelta(0, "Wait"), ReasoningDelta(0, "Wait, no.")]


@pytest.mark.parametrize("odd", [b"NaN", b"-Infinity", b"[NaN," + b"1" * 5000 + b"]"])
def test_a_number_that_is_no_json_spoils_no_chunk(odd: bytes) -> None:
    stage = ChatNormalizer()
    data = b'{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":%s}]}' % odd
    assert TextDelta(0, "a") in stage.receive([Frame(data)])
    assert ("frame", "mended") in {(entry.path, entry.action) for entry in stage.ledger}


def test_the_list_of_a_content_is_read_part_by_part() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "A"}]}, {"type": "text", "text": "b"}, "c"]
    assert said(chunk({"content": parts, "reasoning": "A"})) == [
        BlockStart(0, ReasoningBlock()),
        ReasoningDelta(0, "A"),
        BlockStart(1, TextBlock()),
        TextDelta(1, "b"),
        TextDelta(1, "c"),
        BlockStop(0),
        BlockStop(1),
    ]


def test_a_refusal_is_a_text_of_its_own() -> None:
    assert said(text("a"), chunk({"refusal": "I"}), chunk({"refusal": " won't"})) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        BlockStart(1, TextBlock()),
        RefusalDelta(1, "I"),
        RefusalDelta(1, " won't"),
        BlockStop(0),
        BlockStop(1),
    ]


def test_annotations_belong_to_the_text() -> None:
    assert said(chunk({"content": "a", "annotations": [{"type": "url_citation"}]}))[2] == AnnotationDelta(
        0, {"type": "url_citation"}
    )
    assert lost(chunk({"annotations": [{"type": "url_citation"}]})) == {("annotations[]", "dropped")}
    assert lost(chunk({"content": "a", "annotations": ["odd"]})) == {("annotations[]", "dropped")}


def test_a_call_goes_on_while_text_and_reasoning_come_between() -> None:
    assert said(call(0, "i", "f", '{"x":'), reasoning("R"), call(0, arguments="1}"), text("t")) == [
        BlockStart(0, ToolUseBlock("i", "f")),
        ArgumentsDelta(0, '{"x":'),
        BlockStart(1, ReasoningBlock()),
        ReasoningDelta(1, "R"),
        ArgumentsDelta(0, "1}"),
        BlockStart(2, TextBlock()),
        TextDelta(2, "t"),
        BlockStop(0),
        BlockStop(1),
        BlockStop(2),
    ]


def test_the_deprecated_function_call_is_one_call() -> None:
    deltas: list[dict[str, Any]] = [{"name": "f", "arguments": ""}, {"arguments": '{"x"'}, {"arguments": ":1}"}]
    made = said(*(chunk({"function_call": delta}) for delta in deltas))
    assert isinstance(made[0], BlockStart)
    assert isinstance(made[0].block, ToolUseBlock)
    assert made[0].block.name == "f"
    assert made[1:] == [ArgumentsDelta(0, '{"x"'), ArgumentsDelta(0, ":1}"), BlockStop(0)]


def test_the_deprecated_twin_of_a_call_is_not_another_call() -> None:
    delta = {"tool_calls": [fragment(0, "i", "f", "{}")], "function_call": {"name": "f", "arguments": "{}"}}
    assert said(chunk(delta)) == [BlockStart(0, ToolUseBlock("i", "f")), ArgumentsDelta(0, "{}"), BlockStop(0)]


def test_arguments_as_an_object_keep_their_numbers() -> None:
    raw = '{"id":12345678901234567890123,"f":1.0}'
    entry = f'{{"index":0,"id":"i","function":{{"name":"f","arguments":{raw}}}}}'
    data = f'{{"id":"c1","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{entry}]}}}}]}}'
    assert said(data)[1] == ArgumentsDelta(0, raw)


def test_one_entry_in_place_of_a_list_of_calls_is_read() -> None:
    assert said(chunk({"tool_calls": fragment(0, "i", "f", "{}")})) == [
        BlockStart(0, ToolUseBlock("i", "f")),
        ArgumentsDelta(0, "{}"),
        BlockStop(0),
    ]


# The start


def test_the_message_begins_at_the_first_chunk_that_says_something_of_it() -> None:
    filtered = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{}]}
    assert normalized(filtered, text("a"))[:2] == [
        [Carry("chat", frame(filtered))],
        [START, BlockStart(0, TextBlock()), TextDelta(0, "a")],
    ]


@pytest.mark.parametrize(
    ("members", "start"),
    [
        ({"id": None, "model": None}, MessageStart("", "asked", served=Served(1))),
        ({"id": 7, "model": ["m"]}, MessageStart("", "asked", served=Served(1))),
        ({"id": "x" * 1001, "model": "x" * 1001}, MessageStart("", "asked", served=Served(1))),
        ({"id": "x" * 1000, "model": "x" * 1000}, MessageStart("x" * 1000, "x" * 1000, served=Served(1))),
    ],
)
def test_an_odd_id_or_model_is_none(members: dict[str, Any], start: MessageStart) -> None:
    stage = ChatNormalizer(facts=RequestFacts(model="asked"))
    assert events({**text("a"), **members}, stage=stage)[0] == start
    assert bool(len(stage.ledger)) == (start.id == "" and members["id"] is not None)


def test_the_first_frames_counts_or_else_the_estimate_stand_in_the_start() -> None:
    facts = RequestFacts(usage=Usage(99))
    assert events(text("a"), stage=ChatNormalizer(facts=facts))[0] == MessageStart("c1", "m", Usage(99), Served(1))
    counted = {**text("a"), "usage": {"prompt_tokens": 7}}
    assert events(counted, stage=ChatNormalizer(facts=facts))[0] == MessageStart("c1", "m", Usage(7), Served(1))


def test_counts_of_later_frames_of_the_same_read_do_not_stand_in_the_start() -> None:
    (made,) = play(ChatNormalizer(), [frame(text("a")), frame(usage())])
    assert made[0] == START


# One odd member never drops a chunk


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"object": "ping"},
        chunk(None),
        chunk({"content": None, "role": None, "tool_calls": None, "function_call": None, "refusal": None}),
        chunk({"content": "", "reasoning_content": "", "reasoning": None, "tool_calls": []}),
        chunk({}, "null"),
        chunk({}, ""),
        {**text(""), "usage": None, "x_groq": None, "error": None, "base_resp": {"status_code": 0}},
        {"id": "c1", "choices": [{"index": 0, "content_filter_results": {}, "content_filter_offsets": {}}]},
    ],
)
def test_a_chunk_that_says_nothing_is_nothing(odd: dict[str, Any]) -> None:
    assert said(text("a"), odd, text("b")) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        TextDelta(0, "b"),
        BlockStop(0),
    ]
    assert lost(text("a"), odd, text("b")) == set()


@pytest.mark.parametrize(
    ("odd", "path"),
    [
        ({"choices": ["odd"]}, "choices[]"),
        ({"choices": [{"index": 0, "delta": "odd"}]}, "choices[].delta"),
        ({"id": "c1", "model": "m", "choices": {"0": {}}}, "choices"),
        (chunk({"content": 7}), "content"),
        (chunk({"refusal": 5}), "refusal"),
        (chunk({"content": [{"type": "image_url"}]}), "content[]"),
        (chunk({"tool_calls": "odd"}), "tool_calls[]"),
        (chunk({"audio": {"data": "x"}}), "choices[].delta.audio"),
        ({"choices": [{"index": 1, "delta": {"content": "other"}}]}, "choices[]"),
        ({**text(""), "choices": [{**text("")["choices"][0], "logprobs": {"content": [{}]}}]}, "choices[].logprobs"),
        ("[]", "frame"),
        ("7", "frame"),
        (": keepalive", "frame"),
        ("null", "frame"),
    ],
)
def test_what_cannot_be_read_is_recorded_and_nothing_else_is_lost(odd: Any, path: str) -> None:
    assert said(text("a"), odd, text("b"))[1:3] == [TextDelta(0, "a"), TextDelta(0, "b")]
    assert {name for name, _ in lost(text("a"), odd, text("b"))} == {path}


def test_what_a_chunk_says_beside_an_odd_member_is_read() -> None:
    choice = {"index": "0", "delta": {"content": "a", "tool_calls": [7], "annotations": 7}, "logprobs": 7, "odd": {}}
    assert said({"id": "c1", "model": "m", "choices": [choice], "usage": 7}) == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "a"),
        BlockStop(0),
    ]


@pytest.mark.parametrize("index", [0, None, "0", 0.0])
def test_the_first_choice_is_read(index: Any) -> None:
    assert said({"choices": [{"index": index, "delta": {"content": "a"}}]})[1] == TextDelta(0, "a")


def test_text_and_calls_may_stand_in_several_entries_for_the_one_choice() -> None:
    choices = [
        {"index": 0, "delta": {"content": "t"}, "finish_reason": "stop"},
        {"index": 0, "delta": {"tool_calls": [fragment(0, "i", "f", "{}")]}, "finish_reason": "tool_calls"},
    ]
    assert events({"id": "c1", "model": "m", "choices": choices}, DONE)[1:] == [
        BlockStart(0, TextBlock()),
        TextDelta(0, "t"),
        BlockStart(1, ToolUseBlock("i", "f")),
        ArgumentsDelta(1, "{}"),
        BlockStop(1),
        BlockStop(0),
        MessageDelta(StopReason.TOOL_USE),
        MessageStop(),
    ]


def test_further_choices_are_recorded_and_not_mixed_in() -> None:
    both = {
        "choices": [text("a")["choices"][0], {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]
    }
    assert said(both) == [BlockStart(0, TextBlock()), TextDelta(0, "a"), BlockStop(0)]
    assert lost(both) == {("choices[]", "dropped")}


# The dialect's object


def test_the_dialect_hands_out_a_normalizer() -> None:
    facts = DIALECT.facts({"model": "m"})
    assert facts == RequestFacts(model="m", stream=False, include_usage=False)
    assert DIALECT.facts({"model": 7, "stream": True, "stream_options": {"include_usage": True}}) == RequestFacts()
    ledger = Ledger()
    stage = DIALECT.normalizer(facts=facts, ledger=ledger, limits=DEFAULT_LIMITS)
    assert play(stage, frame(DONE))[0][0] == MessageStart("", "m")
    assert len(ledger) == 1
    assert list(DIALECT.sentinels) == [b"[DONE]"]
    assert DIALECT.name == "chat"


@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "id",
                            "model",
                            "choices",
                            "delta",
                            "message",
                            "content",
                            "tool_calls",
                            "function",
                            "name",
                            "index",
                            "arguments",
                            "finish_reason",
                            "usage",
                            "error",
                            "reasoning_details",
                            "type",
                            "thinking",
                            "x_groq",
                            "base_resp",
                            "annotations",
                            "function_call",
                            "custom",
                            "input",
                            "extra_content",
                            "google",
                        ]
                    ),
                    inner,
                )
            ),
            max_leaves=12,
        ),
        max_size=4,
    )
)
def test_no_json_value_breaks_it(values: list[Any]) -> None:
    stage = ChatNormalizer()
    try:
        made = events(*({"choices": [{"delta": value}]} for value in values), *values, stage=stage)
    except UpstreamError:
        return
    assert isinstance(made[-1], MessageStop | StreamError)
