"""One answer toward a client of its own dialect in the other form, and toward any other: they are told the same."""

from pathlib import Path

import pytest

from pipeline.outcome import Verdict
from pipeline.reply import Form
from tests.alike import Heard, heard
from tests.lawful import GRAMMARS
from tests.returning import returned

FIXTURES = Path(__file__).parents[1] / "fixtures"
STREAMS = [
    pytest.param(name, file, id=f"{name}-{file.stem}")
    for name in GRAMMARS
    for file in sorted((FIXTURES / name).glob("*.sse"))
    if file.name.count(".") == 1
]
MENDED = {"arguments", "tool_calls[]", "tool_calls[].id", "tool_calls[].function.name", "frame", "choices[]"}
"""What a stage of every route does to an answer, whoever gets it."""
OWN = {("choices[]", "dropped"), ("arguments", "dropped")}
"""What is lost toward another dialect alone: all choices but the first. What was cut of a call's arguments, which has
no place in a whole Messages answer, is compared by the calls."""


def check(own: Heard, other: Heard) -> None:
    """Fail unless both clients run the same calls, show the same text and know the same of the end."""
    assert own.calls == other.calls
    assert own.verdict is other.verdict
    if own.verdict is Verdict.COMPLETE:
        assert (own.text, own.status) == (other.text, other.status)
    else:
        assert own.text.startswith(other.text)  # a response that failed is one all the same, with its text
    known = {entry for entry in other.ledger if entry[0] in MENDED} - OWN
    assert known <= set(own.ledger)


def test_there_are_fixtures() -> None:
    assert len(STREAMS) > 130


@pytest.mark.parametrize(("name", "file"), STREAMS)
def test_a_stream_is_told_as_a_whole_answer_as_every_other_client_is_told_it(name: str, file: Path) -> None:
    raw = file.read_bytes()
    own = heard(name, name, [raw], stream=False)
    for other in GRAMMARS.keys() - {name}:
        check(own, heard(other, name, [raw], stream=False))


@pytest.mark.parametrize(("name", "file"), STREAMS)
def test_a_whole_answer_is_told_as_a_stream_as_every_other_client_is_told_it(name: str, file: Path) -> None:
    body, _ = returned(name, [file.read_bytes()], arriving=Form.STREAM, leaving=Form.WHOLE)
    own = heard(name, name, [body], stream=True)
    for other in GRAMMARS.keys() - {name}:
        check(own, heard(other, name, [body], stream=True))
