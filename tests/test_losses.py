"""What a provider's objects say where it is not read: an entry in the ledger, once, and none for what was read."""

import json
from typing import Any

import pytest

from tests import responses_stream
from tests.alike import Json, asked
from tests.answer_full import written
from tests.exchange import answered, route
from tests.lawful import GRAMMARS

Entry = tuple[str, str, str]


def entries(client: str, upstream: str, answer: Any, *, stream: bool = False, **members: Any) -> list[Entry]:
    """What the ledger has of an answer: a whole one, or the events of a stream."""
    body = written(upstream, answer) if isinstance(answer, list) else json.dumps(answer).encode()
    exchange = route(client, upstream).open(asked(client, stream=stream, **members))
    answered(exchange, body)
    return [
        (entry["path"], entry["action"], entry["reason"])
        for entry in exchange.ledger
        if entry["direction"] == "response"
    ]


def dropped(client: str, upstream: str, answer: Any, **members: Any) -> list[str]:
    """The paths of what was lost, but for what some client is not told anyway."""
    return [path for path, action, _ in entries(client, upstream, answer, **members) if action == "dropped"]


def crossing(upstream: str) -> list[str]:
    """The clients of other dialects."""
    return [client for client in GRAMMARS if client != upstream]


def told_late(item: Json) -> list[Json]:
    """The events of a response of one item, which is told when it is done."""
    done = responses_stream.event("response.output_item.done", output_index=0, item=item)
    return [responses_stream.created(), done, responses_stream.terminal(output=[item])]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", crossing("responses"))
@pytest.mark.parametrize(
    ("item", "due"),
    [
        (responses_stream.call('{"a":1}'), []),
        (responses_stream.custom("x"), []),
        (responses_stream.call('{"a":1}', input="x"), ["output[].input"]),
        ({**responses_stream.custom("x"), "arguments": "{}"}, ["output[].arguments"]),
        (responses_stream.call('{"a":1}', input=""), []),
    ],
)
def test_the_text_of_a_call_of_the_other_kind_is_recorded(
    client: str, item: Json, due: list[str], streamed: bool
) -> None:
    answer = told_late(item) if streamed else responses_stream.response(output=[item])
    assert dropped(client, "responses", answer) == due


@pytest.mark.parametrize("client", crossing("responses"))
@pytest.mark.parametrize("kind", ["function_call_arguments", "custom_tool_call_input"])
@pytest.mark.parametrize("step", ["delta", "done"])
def test_so_is_one_in_an_event(client: str, kind: str, step: str) -> None:
    item = responses_stream.custom("{}") if kind.startswith("custom") else responses_stream.call("{}")
    mine, other = ("input", "arguments") if kind.startswith("custom") else ("arguments", "input")
    told = responses_stream.event(
        f"response.{kind}.{step}", output_index=0, **{"delta" if step == "delta" else mine: "{}", other: "x"}
    )
    added = responses_stream.event("response.output_item.added", output_index=0, item={**item, mine: ""})
    begun, *rest = told_late(item)
    assert dropped(client, "responses", [begun, added, told, *rest]) == [f"event.{other}"]


@pytest.mark.parametrize("client", crossing("responses"))
def test_what_was_read_of_an_item_is_not_lost_because_another_has_an_odd_member(client: str) -> None:
    items = [responses_stream.message("hi", odd=1), responses_stream.call('{"a":1}', call_id="c")]
    assert dropped(client, "responses", responses_stream.response(output=items)) == ["output[].odd"]
    assert dropped(client, "responses", responses_stream.response(output=items[::-1])) == ["output[].odd"]


@pytest.mark.parametrize("client", crossing("messages"))
def test_what_was_read_of_an_event_is_not_lost_because_another_has_an_odd_member(client: str) -> None:
    frames = [
        {"type": "message_start", "message": {"id": "m", "model": "m", "role": "assistant", "content": []}, "odd": 1},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    assert dropped(client, "messages", frames, stream=True) == ["event.odd"]


# Responses: the text of all messages, told once more


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", crossing("responses"))
@pytest.mark.parametrize(
    ("output", "repeat", "lost"),
    [
        (["one"], "one", False),
        (["one", "two"], "onetwo", False),
        (["one"], "", False),
        (["one"], None, False),
        (["one"], "other", True),
        (["one"], "on", True),
        (["one"], "one more", True),
        (["one", "two"], "one", True),
        ([], "one", True),
        (["one"], ["one"], True),
    ],
)
def test_a_text_at_the_top_of_a_response_that_its_parts_do_not_say_is_recorded(
    client: str, output: list[str], repeat: Any, lost: bool, streamed: bool
) -> None:
    items = [responses_stream.message(text, id=text) for text in output]
    answer: Any = responses_stream.response(output=items, output_text=repeat)
    if streamed:
        done = [responses_stream.done(item, at) for at, item in enumerate(items)]
        answer = [responses_stream.created(), *done, responses_stream.terminal(output=[], output_text=repeat)]
    due = [("output_text", "dropped", "it differs from what the parts say")]
    assert entries(client, "responses", answer, stream=streamed).count(due[0]) == lost


@pytest.mark.parametrize("client", crossing("responses"))
def test_parts_that_are_told_in_deltas_and_a_refusal_are_no_other_text(client: str) -> None:
    parts = [
        responses_stream.text("he", part=0),
        responses_stream.text("llo", part=0),
        responses_stream.text("!", part=1),
    ]
    item = responses_stream.message("hello", "!")
    refused = responses_stream.refusal("no", id="m2")
    late = [responses_stream.added({**item, "content": []}), *parts, responses_stream.done(refused, 1)]
    answer = [responses_stream.created(), *late, responses_stream.terminal(output=[], output_text="hello!")]
    assert dropped(client, "responses", answer, stream=True) == []


# How the answer was made


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("odd", [7, ["flex"], {"name": "flex"}, "x" * 5000])
@pytest.mark.parametrize("upstream", ["chat", "responses"])
def test_a_service_tier_or_a_provider_that_is_no_text_is_recorded(upstream: str, odd: Any, streamed: bool) -> None:
    beside = {"service_tier": odd, "provider": odd}
    if upstream == "chat":
        told: Json = {"role": "assistant", "content": "x"}
        choices = [{"index": 0, "finish_reason": "stop", "delta" if streamed else "message": told}]
        answer: Any = {"id": "c", "model": "m", "choices": choices, **beside}
        answer = [answer] if streamed else answer
    else:
        item = responses_stream.message("x")
        answer = responses_stream.response(output=[item], **beside)
        answer = [*told_late(item)[:-1], responses_stream.terminal(output=[item], **beside)] if streamed else answer
    for client in crossing(upstream):
        told_odd = [
            path for path, action, _ in entries(client, upstream, answer, stream=streamed) if action == "ignored"
        ]
        assert told_odd == ["provider", "service_tier"]
