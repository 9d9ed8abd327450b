"""The sure cases of responses to messages from the neighbouring `../shared/cases`, where it lies beside the project."""

import json
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.support import read, same_ids
from tests.test_cases import FILE, fits, stream_of

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="../shared/cases does not lie beside the project")


def cases() -> list[dict[str, Any]]:
    """The cases that are for us; a blob alone is shown once there are envelopes for it."""
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []
    found = [json.loads(line) for line in lines]
    ours = [case for case in found if case["from"] == "responses" and "messages" in case["to"]]
    for case in ours:
        case["want"]["blocks"] = joined(case["want"]["blocks"])
    return [case for case in ours if not case.get("arguable") and not case["want"].get("opaque")]


def joined(blocks: list[list[Any]]) -> list[list[Any]]:
    """Between two parts of a summary stands a blank line."""
    out: list[list[Any]] = []
    for block in blocks:
        if out and block[0] == out[-1][0] == "reasoning":
            out[-1] = ["reasoning", f"{out[-1][1]}\n\n{block[1]}"]
        else:
            out.append(block)
    return out


def converted(case: dict[str, Any], chunk: Chunk) -> tuple[bytes, Ledger, Outcome]:
    """What a Messages client gets of a case, and what is said of it."""
    ledger, outcome = Ledger(), Outcome()
    chain = default_chain(dialect("responses"), dialect("messages"), ledger=ledger, outcome=outcome)
    made = [piece for part in cut(stream_of(case), chunk) for piece in chain.receive([part])]
    return b"".join([*made, *chain.receive_eof()]), ledger, outcome


@pytest.mark.parametrize("chunk", [None, 1, 7], ids=str)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_case_comes_out_as_it_should(case: dict[str, Any], chunk: Chunk) -> None:
    out, ledger, outcome = converted(case, chunk)
    answer, want = read(out), case["want"]
    assert fits(case, answer)
    assert outcome.verdict == want["ending"]
    assert ("error" if answer.error else answer.stop) == want["stop"]
    assert want.get("error", "") in (answer.error or {"message": ""})["message"]
    assert len(ledger) > 0 or not want.get("ledger")
    if counts := want.get("usage"):
        names = {"input": "input_tokens", "cache_read": "cache_read_input_tokens", "output": "output_tokens"}
        names["cache_write"] = "cache_creation_input_tokens"
        assert {name: answer.usage[told] for name, told in names.items()} == {name: counts[name] for name in names}
    assert same_ids(out) == same_ids(converted(case, None)[0])


def test_the_cases_are_there() -> None:
    assert len(cases()) >= 55
