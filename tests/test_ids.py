"""pipeline.ids: no two calls of a message have the same id."""

import pytest

from pipeline.errors import LimitExceeded
from pipeline.ids import CallIds
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits


def ids(limits: Limits = DEFAULT_LIMITS) -> CallIds:
    return CallIds("Normalizer", "calls[].id", Ledger(), limits)


def test_an_id_stays_as_it_came() -> None:
    given = ids()
    assert [given.unique("a"), given.unique("b")] == ["a", "b"]
    assert not list(given.ledger)


def test_an_id_that_is_taken_gets_a_suffix_and_is_recorded() -> None:
    given = ids()
    assert [given.unique(name) for name in ("a", "a_2", "a", "a", "a_2")] == ["a", "a_2", "a_3", "a_4", "a_2_2"]
    assert [(entry.stage, entry.path, entry.action) for entry in given.ledger] == [
        ("Normalizer", "calls[].id", "renamed")
    ]


def test_a_call_without_an_id_gets_a_new_one() -> None:
    given = ids()
    first, second = given.unique(""), given.unique("")
    assert first.startswith("call_")
    assert first != second
    assert not list(given.ledger)


def test_many_calls_of_one_id_are_renamed_without_looking_through_them_all() -> None:
    given = ids()
    assert len({given.unique("a") for _ in range(3000)}) == 3000


@pytest.mark.parametrize("words", [("x" * 6,), ("a", "x" * 6)])
def test_an_endless_word_is_refused(words: tuple[str, ...]) -> None:
    ids(Limits(id_chars=6)).check(*words)
    with pytest.raises(LimitExceeded, match="longer than 5 characters"):
        ids(Limits(id_chars=5)).check(*words)
