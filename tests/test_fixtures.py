"""Every fixture against its goldens, at every cut. `python -m tests.update_goldens` writes them anew."""

import tomllib
from typing import Any

import pytest

from pipeline.testing import Chunk
from tests.support import read, same_ids
from tests.update_goldens import CASES, FOLDER, TRANSCRIPTS, golden, recording, transcript

CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
MEMBERS = {"modelled_on", "shows", "ending", "recorded"}


def facts(case: str) -> dict[str, Any]:
    """What stands beside a fixture."""
    return tomllib.loads((FOLDER / f"{case}.toml").read_text())


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_messages_client_gets_what_the_golden_says_at_every_cut(case: str, chunk: Chunk) -> None:
    out, run = golden(case, chunk)
    assert out == (FOLDER / f"{case}.messages.sse").read_bytes()
    assert run.outcome.verdict == facts(case)["ending"]
    assert sorted({entry.path for entry in run.ledger}) == facts(case).get("recorded", [])


@pytest.mark.parametrize("case", CASES)
def test_a_golden_is_a_legal_stream_that_ends_as_it_says(case: str) -> None:
    answer = read((FOLDER / f"{case}.messages.sse").read_bytes())
    assert answer.ended == (facts(case)["ending"] == "complete")
    assert (answer.error is None) == answer.ended


@pytest.mark.parametrize("case", TRANSCRIPTS)
def test_the_chat_normalizer_makes_of_a_fixture_what_its_transcript_says(case: str) -> None:
    assert transcript(case) == (FOLDER / f"{case}.normalized.txt").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_says_what_it_is_modelled_on_and_what_it_shows(case: str) -> None:
    assert set(facts(case)) - {"recorded"} == MEMBERS - {"recorded"}
    assert facts(case)["modelled_on"]
    assert facts(case)["shows"].endswith(".")
    assert recording(case)


def test_nothing_lies_beside_the_fixtures_that_belongs_to_none() -> None:
    assert len(CASES) >= 60
    kinds = (".sse", ".toml", ".messages.sse", ".normalized.txt")
    known = {f"{case}{kind}" for case in CASES for kind in kinds}
    assert {path.name for path in FOLDER.iterdir()} <= known


def test_only_minted_ids_are_numbered() -> None:
    one, other = b"call_" + b"0123456789ab" * 2, b"msg_" + b"f" * 24
    assert same_ids(b" ".join([one, other, one, b"call_a", b"msg_1"])) == b"id0 id1 id0 call_a msg_1"
