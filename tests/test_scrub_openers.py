"""stages.scrub.openers: what may open markup at a place, and in which order."""

from stages.scrub.grammar import Family, stray
from stages.scrub.openers import openers


def test_openers_stand_in_the_order_of_their_families_and_the_longest_first() -> None:
    one = Family(name="one", openers=("<b", "<", "<bc"), parse=stray)
    two = Family(name="two", openers=("<", "<bcd", "<x"), parse=stray)
    found = openers((one, two))
    assert found.at("a<bcd", 1) == [("<bc", one), ("<b", one), ("<", one), ("<bcd", two), ("<", two)]
    assert found.at("a<bcd", 0) == []
