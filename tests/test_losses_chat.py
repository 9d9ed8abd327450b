"""What a Chat answer says a second time, and otherwise, in one message: an entry in the ledger, once."""

import json
from typing import Any

import pytest

from tests.alike import Json
from tests.test_losses import crossing, dropped

CLIENTS = crossing("chat")


def answer(message: Json, stream: bool) -> Any:
    """An answer of one message, whole or streamed."""
    choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": {"role": "assistant", **message}}
    told = {"id": "c", "model": "m", "choices": [choice]}
    return [told] if stream else told


def lost(client: str, message: Json, stream: bool) -> list[str]:
    """What the ledger has of it."""
    assert json.dumps(message)
    return dropped(client, "chat", answer(message, stream), stream=stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize(
    "beside",
    [
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "one"}]},
                {"type": "text", "text": "x"},
            ]
        },
        {"content": [{"type": "reasoning", "text": "one"}]},
    ],
)
def test_reasoning_beside_a_thinking_part_is_recorded_unless_that_says_it(
    client: str, beside: Json, name: str, stream: bool
) -> None:
    assert lost(client, {**beside, name: "other"}, stream) == ["choices[].delta.reasoning"]
    assert lost(client, {**beside, name: "one"}, stream) == []
    assert lost(client, {**beside, name: ""}, stream) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_reasoning_that_the_parts_say_together_is_no_other(client: str) -> None:
    parts = [{"type": "thinking", "thinking": text} for text in ("one", "two")]
    for joined in ("onetwo", "one\n\ntwo", "two"):
        assert lost(client, {"content": parts, "reasoning_content": joined}, True) == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("part", "due"),
    [
        ({"type": "text", "text": "a"}, []),
        ({"text": "a", "refusal": "b"}, ["refusal"]),
        ({"type": "text", "text": "a", "thinking": "b"}, ["thinking"]),
        ({"type": "output_text", "text": "a", "summary": "b", "reasoning": "c"}, ["reasoning", "summary"]),
        ({"type": "thinking", "thinking": "a", "closed": True}, []),
        ({"type": "thinking", "thinking": "a", "text": "b"}, ["text"]),
        ({"type": "reasoning", "summary": "a", "thinking": ""}, []),
        ({"type": "reasoning", "text": "a", "reasoning": "b"}, ["reasoning"]),
        ({"type": "refusal", "refusal": "a", "text": "b"}, ["text"]),
    ],
)
def test_a_second_text_of_a_part_is_recorded(client: str, part: Json, due: list[str], stream: bool) -> None:
    paths = [f"choices[].delta.content[].{name}" for name in due]
    assert lost(client, {"content": [part, {"type": "text", "text": "x"}]}, stream) == paths


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_part_twice_is_one_loss_and_another_part_is_read_as_its_own(client: str) -> None:
    parts = [
        {"type": "text", "text": "a", "odd": 1},
        {"type": "thinking", "thinking": "b"},
        {"type": "text", "text": "c"},
    ]
    assert lost(client, {"content": [*parts, *parts]}, True) == ["choices[].delta.content[].odd"]
