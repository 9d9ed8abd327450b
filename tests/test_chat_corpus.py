"""Recorded Responses streams, and fault streams, as a Chat client gets them, where they lie beside the project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.dialect import dialect
from pipeline.ledger import Ledger
from pipeline.outcome import Outcome
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.lawful import check_law
from tests.support import same_ids

SHARED = Path(__file__).parents[2] / "shared"
CASES, CORPUS = SHARED / "cases" / "streams.jsonl", SHARED / "corpus"

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="../shared does not lie beside the project")
CHAT, RESPONSES = dialect("chat"), dialect("responses")


def recordings() -> list[str]:
    """Every other recording."""
    lines = (CORPUS / "manifest.jsonl").read_bytes().splitlines() if CORPUS.exists() else []
    rows = [json.loads(line) for line in lines]
    wanted = {"dialect": "responses", "sub_dialect": "responses", "kind": "stream", "status": 200}
    return [row["file"] for row in rows if wanted.items() <= row.items()][::2]


def cases() -> list[dict[str, Any]]:
    """The cases of this pair."""
    lines = CASES.read_bytes().splitlines() if CASES.exists() else []  # bytes: only LF ends a line
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["from"] == "responses" and "chat" in row["to"] and not row.get("arguable")]


def framed(frame: Any) -> str:
    if isinstance(frame, str):
        return frame if frame != "[DONE]" else "data: [DONE]\n\n"
    return f"event: {frame.get('type')}\ndata: {json.dumps(frame)}\n\n"


def client(recorded: bytes, chunk: Chunk = None) -> tuple[bytes, Outcome]:
    """What a Chat client gets, and how it ended."""
    outcome = Outcome(ledger=Ledger())
    chain = default_chain(RESPONSES, CHAT, outcome=outcome)
    made = [piece for read in cut(recorded, chunk) for piece in chain.receive([read])]
    return b"".join([*made, *chain.receive_eof()]), outcome


@pytest.mark.parametrize("file", recordings())
def test_a_recording_is_a_lawful_stream_and_the_same_at_every_cut(file: str) -> None:
    recorded = (CORPUS / file).read_bytes()
    out, _ = client(recorded)
    check_law("chat", out)
    assert same_clock(client(recorded, 61)[0]) == same_clock(out)
    short, outcome = client(recorded[: len(recorded) // 2])
    check_law("chat", short)
    assert (b"data: [DONE]" in short) == (outcome.verdict == "complete")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_fault_stream_is_a_lawful_stream_and_ends_as_it_should(case: dict[str, Any]) -> None:
    frames = case.get("frames")
    if frames is None:
        pytest.skip("bytes, not frames")
    out, outcome = client("".join(map(framed, frames)).encode("utf-8", "surrogatepass"))
    check_law("chat", out)
    assert outcome.verdict == case["want"]["ending"]
    assert out.endswith(b"data: [DONE]\n\n") is (outcome.verdict == "complete")


def same_clock(stream: bytes) -> bytes:
    """A stream whose minted ids are numbered, without its time."""
    return re.sub(rb'"created":\d+', b"", same_ids(stream))


def test_they_are_there() -> None:
    assert len(recordings()) >= 60
    assert len(cases()) >= 60
