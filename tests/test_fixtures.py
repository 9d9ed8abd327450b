"""Every fixture of every dialect against its goldens, at every cut. `python -m tests.goldens` writes them anew."""

from collections.abc import Iterable

import pytest

from pipeline.testing import Chunk
from tests.goldens import ALL, FROM_CHAT, FROM_MESSAGES, FROM_RESPONSES, Goldens
from tests.responses_client import heard
from tests.support import read, same_ids

CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
LEAST = [(FROM_CHAT, 60), (FROM_MESSAGES, 40), (FROM_RESPONSES, 30)]
STATUSES = {"complete": {"completed", "incomplete"}, "cut": {"failed"}, "failed": {"failed"}}


def named(goldens: Goldens, cases: Iterable[str]) -> list[object]:
    """Fixtures, called by their dialect and their name."""
    return [pytest.param(goldens, case, id=f"{goldens.upstream}-{case}") for case in cases]


CASES = [one for goldens in ALL for one in named(goldens, goldens.cases)]
TRANSCRIPTS = [one for goldens in ALL for one in named(goldens, goldens.transcripts)]
FOR_MESSAGES = [one for goldens in (FROM_CHAT, FROM_RESPONSES) for one in named(goldens, goldens.cases)]


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize(("goldens", "case"), CASES)
def test_a_client_gets_what_the_golden_says_at_every_cut(goldens: Goldens, case: str, chunk: Chunk) -> None:
    out, outcome, ledger = goldens.made(case, chunk)
    assert out == goldens.golden(case).read_bytes()
    assert outcome.verdict == goldens.facts(case)["ending"]
    assert sorted({entry.path for entry in ledger}) == goldens.facts(case).get("recorded", [])


@pytest.mark.parametrize(("goldens", "case"), FOR_MESSAGES)
def test_a_golden_of_messages_is_a_legal_stream_that_ends_as_it_says(goldens: Goldens, case: str) -> None:
    answer = read(goldens.golden(case).read_bytes())
    assert answer.ended == (goldens.facts(case)["ending"] == "complete")
    assert (answer.error is None) == answer.ended


@pytest.mark.parametrize("case", FROM_MESSAGES.cases)
def test_a_golden_of_responses_is_a_legal_stream_that_ends_as_it_says(case: str) -> None:
    said = heard(FROM_MESSAGES.golden(case).read_bytes())
    assert said.status in STATUSES[FROM_MESSAGES.facts(case)["ending"]]
    assert (said.response["error"] is None) == (said.status != "failed")


@pytest.mark.parametrize(("goldens", "case"), TRANSCRIPTS)
def test_the_normalizer_makes_of_a_fixture_what_its_transcript_says(goldens: Goldens, case: str) -> None:
    assert goldens.transcript(case) == goldens.transcribed(case).read_bytes()


@pytest.mark.parametrize(("goldens", "case"), CASES)
def test_a_fixture_says_what_it_is_modelled_on_and_what_it_shows(goldens: Goldens, case: str) -> None:
    facts = goldens.facts(case)
    assert set(facts) - {"recorded"} == {"modelled_on", "shows", "ending"}
    assert facts["modelled_on"]
    assert facts["shows"].endswith(".")
    assert goldens.recording(case)


@pytest.mark.parametrize(("goldens", "least"), LEAST, ids=lambda it: getattr(it, "upstream", None))
def test_nothing_lies_beside_the_fixtures_that_belongs_to_none(goldens: Goldens, least: int) -> None:
    assert len(goldens.cases) >= least
    kinds = (".sse", ".toml", f".{goldens.client}.sse")
    known = {f"{case}{kind}" for case in goldens.cases for kind in kinds}
    known |= {goldens.transcribed(case).name for case in goldens.transcripts}
    assert {path.name for path in goldens.folder.iterdir()} <= known


def test_only_minted_ids_are_numbered() -> None:
    one, other = b"call_" + b"0123456789ab" * 2, b"msg_" + b"f" * 24
    assert same_ids(b" ".join([one, other, one, b"call_a", b"msg_1"])) == b"id0 id1 id0 call_a msg_1"
