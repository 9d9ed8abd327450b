"""`include` of a Responses request: what of it other dialects' answers hold, and what is lost."""

import json

import pytest

from tests.exchange import route, sent

HONOURED = ["reasoning.encrypted_content"]
LOST = [
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "of tomorrow",
]
GIVEN = [LOST[0], *HONOURED, *LOST[1:]]


@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_each_value_that_no_answer_of_another_dialect_holds_is_recorded_and_no_other(upstream: str) -> None:
    exchange = route("responses", upstream).open(json.dumps({"model": "m", "input": "go", "include": GIVEN}).encode())
    assert "include" not in sent(exchange)
    assert [(entry["path"], entry["action"]) for entry in exchange.ledger] == [
        (f"include[{at}]", "dropped") for at, word in enumerate(GIVEN) if word in LOST
    ]


def test_the_odds_of_tokens_are_asked_for_where_they_can_be() -> None:
    given = json.dumps({"model": "m", "input": "go", "include": ["message.output_text.logprobs"]}).encode()
    exchange = route("responses", "chat").open(given)
    assert (sent(exchange)["logprobs"], exchange.ledger) == (True, [])
    assert [entry["path"] for entry in route("responses", "messages").open(given).ledger] == ["include"]


def test_its_own_dialect_is_told_every_value() -> None:
    exchange = route("responses", "responses").open(
        json.dumps({"model": "m", "input": "go", "include": [*GIVEN, 7]}).encode()
    )
    assert sent(exchange)["include"] == [*GIVEN, 7]
    assert [entry["path"] for entry in exchange.ledger] == ["include[8]"]
