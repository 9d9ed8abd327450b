"""Text and arguments that a Responses stream tells as it announces them: they stand before the deltas behind them."""

from itertools import product

import pytest

from pipeline.errors import LimitExceeded
from pipeline.events import Frame
from pipeline.limits import Limits
from pipeline.message import Message, Reasoning, Refusal, Text, ToolUse, assemble
from pipeline.testing import check_stage
from stages.dialects.responses.announced import Announced
from stages.dialects.responses.normalize import ResponsesNormalizer
from tests.alike import Json, heard
from tests.lawful import GRAMMARS
from tests.patching import response
from tests.responses_stream import frame
from tests.test_bridged_arguments import named
from tests.test_bridged_output import gathered

MESSAGE: Json = {"type": "message", "id": "m", "role": "assistant", "content": []}
THOUGHT: Json = {"type": "reasoning", "id": "m", "summary": []}
CALL: Json = {"type": "function_call", "id": "m", "call_id": "c", "name": "f", "arguments": ""}
CUSTOM: Json = {"type": "custom_tool_call", "id": "m", "call_id": "c", "name": "f", "input": ""}
AT: Json = {"output_index": 0, "item_id": "m"}


def part_of(kind: str, text: str) -> Json:
    return {"type": kind, "refusal" if kind == "refusal" else "text": text}


def begun(kind: str, text: str, how: str) -> list[Json]:
    """The announcement of an item, which tells a text: in itself, or in that of its part."""
    if kind in ("function_call", "custom_tool_call"):
        item = {**CALL, "arguments": text} if kind == "function_call" else {**CUSTOM, "input": text}
        return [{"type": "response.output_item.added", "output_index": 0, "item": item}]
    member = "summary" if kind == "summary_text" else "content"
    item = MESSAGE if kind in ("output_text", "refusal") else THOUGHT
    part = part_of(kind, text)
    if how == "item":
        return [{"type": "response.output_item.added", "output_index": 0, "item": {**item, member: [part]}}]
    event = {"summary_text": "reasoning_summary_part", "reasoning_text": "reasoning_part"}.get(kind, "content_part")
    event = "content_part" if how == "part of content" and kind == "reasoning_text" else event
    spot = {**AT, "summary_index" if kind == "summary_text" else "content_index": 0}
    announced = {"type": "response.output_item.added", "output_index": 0, "item": item}
    return [announced, {"type": f"response.{event}.added", **spot, "part": part}]


EVENTS = {
    "output_text": "output_text",
    "refusal": "refusal",
    "summary_text": "reasoning_summary_text",
    "reasoning_text": "reasoning_text",
    "function_call": "function_call_arguments",
    "custom_tool_call": "custom_tool_call_input",
}
MEMBERS = {"refusal": "refusal", "function_call": "arguments", "custom_tool_call": "input"}
TEXTS = [
    *product(("output_text", "refusal", "summary_text"), ("item", "part")),
    *(("reasoning_text", how) for how in ("item", "part", "part of content")),
    ("custom_tool_call", "item"),
]


def told(kind: str, *deltas: str, whole: str | None = None) -> list[Json]:
    """The deltas of a text, and its end."""
    spot = {**AT, "summary_index" if kind == "summary_text" else "content_index": 0}
    event = f"response.{EVENTS[kind]}"
    ends = [] if whole is None else [{"type": f"{event}.done", **spot, MEMBERS.get(kind, "text"): whole}]
    return [*({"type": f"{event}.delta", **spot, "delta": delta} for delta in deltas), *ends]


END: Json = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}


def frames(*events: Json) -> list[Frame]:
    return [*map(frame, events)]


def read(*events: Json) -> tuple[Message, list[tuple[str, str]]]:
    """The message of a stream, and what of it was lost."""
    stage = ResponsesNormalizer()
    message = assemble(stage.receive(frames(*events)))
    assert stage.held == 0
    return message, [(entry.path, entry.action) for entry in stage.ledger]


def said(*events: Json) -> str:
    """The only text of a stream, of which nothing is lost."""
    message, lost = read(*events)
    assert lost == []
    (content,) = message.content
    assert isinstance(content, Text | Refusal | Reasoning | ToolUse)
    return content.arguments if isinstance(content, ToolUse) else content.text


@pytest.mark.parametrize(("kind", "how"), TEXTS)
@pytest.mark.parametrize(
    ("deltas", "whole", "due"),
    [
        (["lo"], None, "Hello"),
        (["lo", " you"], None, "Hello you"),
        (["lo"], "Hello", "Hello"),
        (["Hel", "lo"], None, "Hello"),
        (["Hel", "lo"], "Hello", "Hello"),
        (["He", "llo"], None, "Hello"),
        (["H", "e", "l", "l", "o"], "Hello", "Hello"),
        (["Hello"], None, "Hello"),
        (["He", "y"], None, "HelHey"),
        (["He"], None, "Hel"),
        (["He"], "Hello", "Hello"),
        ([], None, "Hel"),
        ([], "", "Hel"),
        ([], "Hello", "Hello"),
        ([], "other", "other"),
    ],
    ids=str,
)
def test_announced_text_stands_before_the_deltas_that_do_not_tell_it_again(
    kind: str, how: str, deltas: list[str], whole: str | None, due: str
) -> None:
    assert said(*begun(kind, "Hel", how), *told(kind, *deltas, whole=whole), END) == due


@pytest.mark.parametrize("client", GRAMMARS)
@pytest.mark.parametrize("how", ["item", "part"])
@pytest.mark.parametrize("deltas", [["lo"], ["Hel", "lo"]], ids=str)
def test_every_client_is_told_it(client: str, how: str, deltas: list[str]) -> None:
    end = {**END, "response": {**response(), "output": []}}
    raw = named([*begun("output_text", "Hel", how), *told("output_text", *deltas), end])
    for stream in (True, False):
        assert heard(client, "responses", [raw], stream=stream).text == "Hello"


@pytest.mark.parametrize(("kind", "how"), TEXTS)
@pytest.mark.parametrize("deltas", [[], ["He"], ["lo"], ["He", "llo"]], ids=str)
def test_the_whole_answer_over_itself_has_it_in_its_part(kind: str, how: str, deltas: list[str]) -> None:
    body, lost = gathered([*begun(kind, "Hel", how), *told(kind, *deltas)])
    text = "Hel" if deltas in ([], ["He"]) else "Hello"
    (item,) = body["output"]
    assert (item["id"], lost) == ("m", [])
    if kind == "custom_tool_call":
        assert item["input"] == text
    else:
        (part,) = item["summary" if kind == "summary_text" else "content"]
        assert part == {**part, **part_of(kind, text)}


def test_whole_arguments_over_itself_are_those_of_the_deltas() -> None:
    body, lost = gathered([*begun("function_call", '{"a":1}', "item"), *told("function_call", '{"b"', ":2}")])
    assert ([item["arguments"] for item in body["output"]], lost) == (['{"b":2}'], [("announcement", "dropped")])
    body, lost = gathered([*begun("function_call", '{"a"', "item"), *told("function_call", ":2}")])
    assert ([item["arguments"] for item in body["output"]], lost) == (['{"a":2}'], [])


@pytest.mark.parametrize(
    ("announced", "deltas", "whole", "due", "lost"),
    [
        ('{"a"', [":1}"], None, '{"a":1}', 0),
        ('{"a"', [":1}"], '{"a":1}', '{"a":1}', 0),
        ('{"a"', ['{"a"', ":1}"], '{"a":1}', '{"a":1}', 0),
        ('{"a":1}', ['{"a":1}'], None, '{"a":1}', 0),
        ('{"a":1}', ['{"a"', ":1}"], None, '{"a":1}', 0),
        ('{"a":1}', ['{"a"', ":2}"], '{"a":2}', '{"a":2}', 1),
        ('{"a":1}', ['{"b":2}'], None, '{"b":2}', 1),
        ("{}", ['{"b"', ":2}"], '{"b":2}', '{"b":2}', 0),
        ('{"a":1}', [], None, '{"a":1}', 0),
        ('{"a":1}', [], '{"a":1}', '{"a":1}', 0),
        ('{"a":1}', ['{"a"'], None, '{"a":1}', 0),
    ],
    ids=str,
)
def test_announced_arguments_stand_before_the_deltas_unless_they_are_whole(
    announced: str, deltas: list[str], whole: str | None, due: str, lost: int
) -> None:
    message, entries = read(
        *begun("function_call", announced, "item"), *told("function_call", *deltas, whole=whole), END
    )
    assert [content.arguments for content in message.content if isinstance(content, ToolUse)] == [due]
    assert entries == [("announcement", "dropped")] * lost


@pytest.mark.parametrize(("kind", "how"), TEXTS)
def test_the_end_tells_what_the_announcement_told(kind: str, how: str) -> None:
    items = begun(kind, "Hel", how)
    whole = begun(kind, "Hello", "item")[0]["item"]
    end = {**END, "response": {**END["response"], "output": [whole]}}
    for between in ([], [{"type": "response.output_item.done", "output_index": 0, "item": whole}]):
        assert said(*items, *between, end) == "Hello"
        assert said(*items, *told(kind, "He"), *between, end) == "Hello"


@pytest.mark.parametrize(("kind", "how"), TEXTS)
@pytest.mark.parametrize("deltas", [[], ["He"]], ids=str)
def test_a_stream_that_fails_tells_it_before(kind: str, how: str, deltas: list[str]) -> None:
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"message": "boom"}}}
    stage = ResponsesNormalizer()
    message = assemble(stage.receive(frames(*begun(kind, "Hel", how), *told(kind, *deltas), failed)))
    texts = [getattr(one, "arguments", getattr(one, "text", "")) for one in message.content]
    assert (texts, message.error is not None, stage.held) == (["Hel"], True, 0)


def test_what_was_said_is_announced_no_more() -> None:
    text = told("output_text", "Hello")
    assert said(*text, *begun("output_text", "Hel", "item"), *told("output_text", " you"), END) == "Hello you"
    assert said(*begun("output_text", "x", "item"), *begun("output_text", "Hel", "part")[1:], *text, END) == "Hello"


def test_what_waits_is_bounded_and_the_rules_of_every_stage_are_kept() -> None:
    stage = ResponsesNormalizer(limits=Limits(held_bytes=3))
    first, second = begun("output_text", "Hel", "part"), begun("output_text", "Hell", "part")
    stage.receive(frames(*first))
    assert stage.held == 3
    with pytest.raises(LimitExceeded, match="announced text"):
        ResponsesNormalizer(limits=Limits(held_bytes=3)).receive(frames(*second))
    check_stage(ResponsesNormalizer, frames(*first, *told("output_text", "lo"), END))


def test_a_delta_may_tell_it_again_piece_by_piece() -> None:
    first = Announced("abc")
    assert [first.behind(piece) for piece in ("a", "b", "cd")] == [None, None, "abcd"]
    assert Announced("abc").behind("x") == "abcx"
    assert Announced("abc", whole=True).behind("x") == "x"
