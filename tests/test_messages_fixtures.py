"""Every Messages fixture against its goldens, at every cut. `python -m tests.messages_goldens` writes them anew."""

import tomllib
from typing import Any

import pytest

from pipeline.testing import Chunk
from tests.messages_goldens import CASES, FOLDER, TRANSCRIPTS, Run, recording, transcript
from tests.responses_client import heard

CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
STATUSES = {"complete": {"completed", "incomplete"}, "cut": {"failed"}, "failed": {"failed"}}


def facts(case: str) -> dict[str, Any]:
    """What stands beside a fixture."""
    return tomllib.loads((FOLDER / f"{case}.toml").read_text())


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_responses_client_gets_what_the_golden_says_at_every_cut(case: str, chunk: Chunk) -> None:
    run = Run()
    assert run.of(case, chunk) == (FOLDER / f"{case}.responses.sse").read_bytes()
    assert run.outcome.verdict == facts(case)["ending"]
    assert sorted({entry.path for entry in run.ledger}) == facts(case).get("recorded", [])


@pytest.mark.parametrize("case", CASES)
def test_a_golden_is_a_legal_stream_that_ends_as_it_says(case: str) -> None:
    said = heard((FOLDER / f"{case}.responses.sse").read_bytes())
    assert said.status in STATUSES[facts(case)["ending"]]
    assert (said.response["error"] is None) == (said.status != "failed")


@pytest.mark.parametrize("case", TRANSCRIPTS)
def test_the_normalizer_makes_of_a_fixture_what_its_transcript_says(case: str) -> None:
    assert transcript(case) == (FOLDER / f"{case}.normalized.txt").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_says_what_it_is_modelled_on_and_what_it_shows(case: str) -> None:
    assert set(facts(case)) - {"recorded"} == {"modelled_on", "shows", "ending"}
    assert facts(case)["modelled_on"]
    assert facts(case)["shows"].endswith(".")
    assert recording(case)


def test_nothing_lies_beside_the_fixtures_that_belongs_to_none() -> None:
    assert len(CASES) >= 40
    known = {f"{case}{kind}" for case in CASES for kind in (".sse", ".toml", ".responses.sse", ".normalized.txt")}
    assert {path.name for path in FOLDER.iterdir()} <= known
