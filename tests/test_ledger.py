"""pipeline.ledger: what could not be carried."""

from pipeline.ledger import Ledger, LedgerEntry


def test_entries_stand_in_the_order_of_their_words_each_once() -> None:
    ledger = Ledger()
    for path in ("b", "a", "b"):
        ledger.record("Stage", path, "dropped", "no place for it")
    assert list(ledger) == [
        LedgerEntry("response", "Stage", "a", "dropped", "no place for it"),
        LedgerEntry("response", "Stage", "b", "dropped", "no place for it"),
    ]
    assert len(ledger) == 2


def test_those_of_a_request_stand_in_order_of_first_appearance() -> None:
    ledger = Ledger("request")
    for path in ("b", "a", "b"):
        ledger.record("Stage", path, "dropped", "no place for it")
    assert [entry.path for entry in ledger] == ["b", "a"]


def test_a_ledger_says_which_direction_its_losses_are_of() -> None:
    ledger = Ledger("request")
    ledger.record("Stage", "member", "dropped", "nobody reads it")
    assert ledger.as_dicts() == [
        {
            "direction": "request",
            "stage": "Stage",
            "path": "member",
            "action": "dropped",
            "reason": "nobody reads it",
        }
    ]


def test_behind_the_bound_one_entry_says_that_there_were_more() -> None:
    ledger = Ledger(most=2)
    for path in ("a", "b", "c", "d"):
        ledger.record("Stage", path, "dropped", "why")
    assert [entry.path for entry in ledger] == ["*", "a", "b"]
    assert ledger.as_dicts()[0] == {
        "direction": "response",
        "stage": "Ledger",
        "path": "*",
        "action": "not recorded",
        "reason": "more than 2 entries",
    }


def test_a_loss_that_stands_there_already_is_not_one_too_many() -> None:
    ledger = Ledger(most=1)
    ledger.record("Stage", "a", "dropped", "why")
    ledger.record("Stage", "a", "dropped", "why")
    assert [entry.path for entry in ledger] == ["a"]


def test_two_ledgers_share_nothing() -> None:
    one, other = Ledger(), Ledger()
    one.record("Stage", "a", "dropped", "why")
    assert len(other) == 0
