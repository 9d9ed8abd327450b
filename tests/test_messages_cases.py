"""The sure cases of messages to responses from the neighbouring `../shared/cases`, where it lies beside the project."""

import json
from typing import Any

import pytest

from pipeline import envelope
from pipeline.dialect import RequestFacts, dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.responses_client import Heard, heard, same_clock
from tests.test_cases import FILE, merged, stream_of, value_of

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="../shared/cases does not lie beside the project")

STOPS = {"max_tokens": "incomplete", "error": "failed", "end_turn": "completed", "tool_use": "completed"}


def cases() -> list[dict[str, Any]]:
    """The cases that are for us."""
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []
    found = [json.loads(line) for line in lines]
    ours = [case for case in found if case["from"] == "messages" and "responses" in case["to"]]
    return [case for case in ours if not case.get("arguable")]


def converted(case: dict[str, Any], chunk: Chunk) -> tuple[bytes, Ledger, Outcome]:
    """What a Responses client gets of a case, and what is said of it."""
    ledger, outcome, client = Ledger(), Outcome(), dialect("responses")
    request = (case.get("request") or {}).get("responses")
    facts = RequestFacts() if request is None else client.facts(request)
    chain = default_chain(dialect("messages"), client, facts=facts, ledger=ledger, outcome=outcome)
    made = [piece for part in cut(stream_of(case), chunk) for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()]), ledger, outcome


def blocks_of(said: Heard) -> list[list[Any]]:
    """An answer's items in the words of a case."""
    out: list[list[Any]] = []
    for kind, *rest in said.blocks:
        if kind == "tool":
            name, text, call_id, done = rest
            out.append(["tool", name, value_of(text) if done else text, call_id])
        elif kind == "reasoning" and not rest[0]:
            out.append(["redacted", "*"])
        else:
            out.append([kind, *rest])
    return merged(out)


@pytest.mark.parametrize("chunk", [None, 1, 7], ids=str)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_case_comes_out_as_it_should(case: dict[str, Any], chunk: Chunk) -> None:
    out, ledger, outcome = converted(case, chunk)
    said, want = heard(out), case["want"]
    if not want.get("custom"):  # a freeform call's input is no JSON
        assert blocks_of(said) == merged(want["blocks"])
    assert outcome.verdict == want["ending"]
    assert said.status == STOPS[want["stop"]]
    assert want.get("error", "") in (said.response["error"] or {"message": ""})["message"]
    assert len(ledger) > 0 or not want.get("ledger")
    if counts := want.get("usage"):
        usage = said.response["usage"]
        assert usage["input_tokens"] == counts["input"] + counts["cache_read"] + counts["cache_write"]
        assert usage["input_tokens_details"]["cached_tokens"] == counts["cache_read"]
        assert usage["output_tokens"] == counts["output"]
        assert usage["output_tokens_details"]["reasoning_tokens"] == counts["reasoning"]
    assert all(envelope.open(blob, upstream="messages", text="") or envelope.unseal(blob) for blob in said.blobs)
    assert same_clock(out) == same_clock(converted(case, None)[0])


def test_the_cases_are_there() -> None:
    assert len(cases()) >= 40
