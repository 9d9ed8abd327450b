"""Recordings whose text holds calls and reasoning, against their goldens, at every cut. `python -m
tests.test_scrub_fixtures` writes the goldens anew; read the difference before you keep it."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipeline.dialect import RequestFacts, dialect
from pipeline.outcome import Outcome
from pipeline.route import AnswerOptions
from pipeline.testing import Chunk, cut
from stages.recipe import default_chain
from tests.support import read, same_ids

FOLDER = Path(__file__).parent.parent / "fixtures" / "markup"
CASES = sorted(path.name.removesuffix(".sse") for path in FOLDER.glob("*.sse") if path.name.count(".") == 1)
CUTS: list[Chunk] = [1, 2, 3, 7, 64, "frame", None]
MEMBERS = {"modelled_on", "shows", "ending", "calls", "tools"}


def facts(case: str) -> dict[str, Any]:
    """What stands beside a fixture."""
    return tomllib.loads((FOLDER / f"{case}.toml").read_text())


def golden(case: str, chunk: Chunk = None) -> tuple[bytes, Outcome]:
    """What a Messages client gets of a fixture, and how it ended."""
    said, outcome = facts(case), Outcome()
    chain = default_chain(
        dialect("chat"),
        dialect("messages"),
        facts=RequestFacts(tools={name: {} for name in said["tools"]}),
        options=AnswerOptions(recover=said.get("recover", "native")),
        outcome=outcome,
    )
    reads = cut((FOLDER / f"{case}.sse").read_bytes(), chunk)
    out = [item for part in reads for item in chain.receive([part])]
    return same_ids(b"".join([*out, *chain.receive_eof()])), outcome


@pytest.mark.parametrize("chunk", CUTS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_messages_client_gets_what_the_golden_says_at_every_cut(case: str, chunk: Chunk) -> None:
    out, outcome = golden(case, chunk)
    assert out == (FOLDER / f"{case}.messages.sse").read_bytes()
    assert outcome.verdict == facts(case)["ending"]
    assert len(outcome.ledger) == 0


@pytest.mark.parametrize("case", CASES)
def test_a_golden_makes_the_calls_that_it_says_and_shows_none_of_their_tokens(case: str) -> None:
    answer = read((FOLDER / f"{case}.messages.sse").read_bytes())
    assert [name for name, _ in answer.calls] == facts(case)["calls"]
    assert ("<" in answer.said("text")) == (case == "native-too")
    assert answer.stop == ("tool_use" if facts(case)["calls"] else "end_turn")


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_says_what_it_is_modelled_on_and_what_it_shows(case: str) -> None:
    assert set(facts(case)) - {"recover"} == MEMBERS
    assert facts(case)["modelled_on"]
    assert facts(case)["shows"].endswith(".")


def test_nothing_lies_beside_the_fixtures_that_belongs_to_none() -> None:
    assert len(CASES) == 4
    known = {f"{case}{kind}" for case in CASES for kind in (".sse", ".toml", ".messages.sse")}
    assert {path.name for path in FOLDER.iterdir()} == known


def main() -> None:
    """Write the goldens."""
    for case in CASES:
        (FOLDER / f"{case}.messages.sse").write_bytes(golden(case)[0])


if __name__ == "__main__":
    main()
