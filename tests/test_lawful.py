"""Recorded streams, and fault streams, as clients of other dialects get them, where they lie beside the project."""

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.lawful import GRAMMARS, check_law
from tests.support import same_ids

MARKUP = ("texttool", "thinktag")
"""Kinds that are about markup in the text."""
SHARED = Path(__file__).parents[2] / "shared"
CASES, CORPUS = SHARED / "cases" / "streams.jsonl", SHARED / "corpus"

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="../shared does not lie beside the project")

Pair = tuple[str, str]
PAIRS: list[Pair] = [*permutations(GRAMMARS, 2)]
"""Upstream and client."""


def recordings() -> list[tuple[Pair, str]]:
    """Every fourth recording of each upstream, for each client."""
    lines = (CORPUS / "manifest.jsonl").read_bytes().splitlines() if CORPUS.exists() else []
    rows = [json.loads(line) for line in lines]
    found = []
    for upstream, client in PAIRS:
        wanted = {"dialect": upstream, "sub_dialect": upstream, "kind": "stream", "status": 200}
        files = [row["file"] for row in rows if wanted.items() <= row.items()]
        found += [((upstream, client), file) for file in files[::4]]
    return found


def cases() -> list[tuple[Pair, dict[str, Any]]]:
    """The fault streams of each pair that are told in frames."""
    lines = CASES.read_bytes().splitlines() if CASES.exists() else []  # bytes: only LF ends a line
    rows = [json.loads(line) for line in lines]
    sure = [row for row in rows if not row.get("arguable") and "frames" in row and row["kind"] not in MARKUP]
    return [(pair, row) for row in sure for pair in PAIRS if pair[0] == row["from"] and pair[1] in row["to"]]


def framed(frame: Any) -> str:
    if isinstance(frame, str):
        return frame if frame != "[DONE]" else "data: [DONE]\n\n"
    name = frame.get("type") if isinstance(frame, dict) else None
    return f"event: {name}\ndata: {json.dumps(frame)}\n\n" if name else f"data: {json.dumps(frame)}\n\n"


def crossed(pair: Pair, recorded: bytes, chunk: Chunk = None) -> tuple[bytes, Outcome]:
    """What the client gets, and how it ended."""
    upstream, client = map(dialect, pair)
    outcome = Outcome(ledger=Ledger())
    chain = default_chain(upstream, client, outcome=outcome)
    made = [piece for read in cut(recorded, chunk) for piece in chain.receive([read])]
    return b"".join([*made, *chain.receive_eof()]), outcome


@pytest.mark.parametrize(("pair", "file"), recordings(), ids=str)
def test_a_recording_is_a_lawful_stream_and_the_same_at_every_cut(pair: Pair, file: str) -> None:
    recorded = (CORPUS / file).read_bytes()
    out, _ = crossed(pair, recorded)
    check_law(pair[1], out)
    assert same_clock(crossed(pair, recorded, 61)[0]) == same_clock(out)
    check_law(pair[1], crossed(pair, recorded[: len(recorded) // 2])[0])


@pytest.mark.parametrize(("pair", "case"), cases(), ids=lambda one: one["id"] if isinstance(one, dict) else one[1])
def test_a_fault_stream_is_a_lawful_stream_and_ends_as_it_should(pair: Pair, case: dict[str, Any]) -> None:
    out, outcome = crossed(pair, "".join(map(framed, case["frames"])).encode("utf-8", "surrogatepass"))
    check_law(pair[1], out)
    endings = case["want"]["ending"]
    assert outcome.verdict in ([endings] if isinstance(endings, str) else endings)
    if pair[1] == "chat":
        assert out.endswith(b"data: [DONE]\n\n") is (outcome.verdict == "complete")


def same_clock(stream: bytes) -> bytes:
    """A stream without its time and the ids that are made anew."""
    return re.sub(rb'[0-9a-f]{32}|"created(_at)?":[0-9]+', b"", same_ids(stream))


def test_they_are_there() -> None:
    assert len(recordings()) >= 200
    assert len(cases()) >= 300
