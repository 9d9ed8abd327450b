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
