"""pipeline.unread and pipeline.served: what stands beside an answer."""

from typing import Any

import pytest

from pipeline.events import Served
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.served import Serving, told_of
from pipeline.unread import LONGEST, MOST, Unread, brings, says


def paths(ledger: Ledger) -> list[str]:
    return [entry.path for entry in ledger]


def test_what_says_something_and_is_not_read_is_recorded() -> None:
    ledger = Ledger()
    Unread("Stage", ledger).note(
        {"a": 1, "b": 2, "c": None, "d": {"e": [0, ""]}, "f": {"g": [0, "x"]}}, frozenset({"a"}), "usage."
    )
    assert ledger.as_dicts() == [
        {
            "direction": "response",
            "stage": "Stage",
            "path": f"usage.{name}",
            "action": "dropped",
            "reason": "no event carries it",
        }
        for name in ("b", "f")
    ]


def test_a_member_that_was_recorded_is_known_and_one_that_said_nothing_yet_is_not() -> None:
    unread = Unread("Stage", Ledger())
    unread.note({"a": 1, "b": None}, frozenset({"c"}))
    assert unread.known(frozenset({"c"})) == {"a", "c"}
    assert unread.known(frozenset({"c"}), "usage.") == {"c"}
    assert unread.known(frozenset({"d"})) == {"d"}
    unread.note({"b": 2, "e": 3}, frozenset({"c"}), apart={"e"})
    assert paths(unread.ledger) == ["a", "b"]


def test_what_is_read_of_one_kind_of_object_is_not_of_another_that_stands_at_the_same_place() -> None:
    ledger = Ledger()
    unread, message, call = Unread("Stage", ledger), frozenset({"content"}), frozenset({"name"})
    for _ in range(2):
        unread.note({"content": "x", "odd": 1}, message, "output[].")
        unread.note({"name": "f"}, call, "output[].")
    assert [entry.path for entry in ledger] == ["output[].odd"]
    unread.note({"name": "f", "content": "x", "odd": 1}, call, "output[].")
    unread.note({"name": "f", "content": "x"}, message, "output[].")
    assert [entry.path for entry in ledger] == ["output[].content", "output[].name", "output[].odd"]
    assert unread.known(message, "output[].") == {"content", "odd", "name"}


@pytest.mark.parametrize("odd", [None, 7, "x", [1], True])
def test_what_is_no_object_has_no_members(odd: Any) -> None:
    ledger = Ledger()
    Unread("Stage", ledger).note(odd, frozenset())
    assert len(ledger) == 0


def test_names_are_bounded_in_length_and_in_number() -> None:
    ledger = Ledger()
    unread = Unread("Stage", ledger)
    unread.note({"n" * 100: 1}, frozenset())
    assert paths(ledger) == ["n" * LONGEST]
    for at in range(MOST + 5):
        unread.note({f"{at}": 1}, frozenset())
    assert len(unread.known(frozenset())) == MOST


@pytest.mark.parametrize("value", [None, 0, 0.0, False, "", [], {}, [None, 0], {"a": {"b": [""]}}])
def test_nothing_says_nothing(value: Any) -> None:
    assert not says(value)
    assert says([value, 1])
    assert says({"a": value, "b": "x"})


def test_a_member_that_is_new_brings_something_unless_it_is_empty() -> None:
    assert not brings({"a": 1}, {"a", "b"})
    assert not brings({"a": 1, "c": None}, {"a"})
    assert brings({"a": 1, "c": 2}, {"a"})


def test_the_last_word_counts_but_for_the_time() -> None:
    serving = Serving()
    assert (serving.begun(), serving.ended()) == (None, None)
    serving.hear({"made": 5, "service_tier": "auto"}, "made")
    assert serving.begun() == Served(5, "auto")
    assert serving.ended() is None
    serving.hear({"made": 6, "service_tier": "default", "provider": "P"}, "made")
    serving.hear({"service_tier": None}, "made")
    assert serving.ended() == Served(5, "default", "P")
    assert told_of(Served(5, "default", "P")) == {"service_tier": "default", "provider": "P"}
    assert told_of(Served(5)) == {}


@pytest.mark.parametrize("odd", [None, 7, "", [], "long"])
def test_an_odd_word_or_time_is_none(odd: Any) -> None:
    serving = Serving(Limits(id_chars=3), Ledger(), "Stage")
    serving.hear({"service_tier": odd, "provider": odd, "made": odd if odd != 7 else -7}, "made")
    assert serving.begun() is None
    told = [(entry.stage, entry.path, entry.action) for entry in serving.ledger]
    assert told == ([("Stage", name, "ignored") for name in ("made", "provider", "service_tier")] if odd else [])
