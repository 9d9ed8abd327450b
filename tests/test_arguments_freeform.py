"""pipeline.arguments: a freeform tool's arguments, an object with one string or bare text, while they arrive."""

from typing import Any

import pytest

from pipeline.arguments import FreeformArguments
from pipeline.errors import LimitExceeded
from pipeline.limits import Limits

OBJECT = '{"input":"ls"}'
TOLD: dict[tuple[str, ...], tuple[list[str], bool, bool, int, Any, Any]] = {
    # fragments: what each may write, whole, something behind it, bytes withheld, at the end, at a cut
    (OBJECT,): ([OBJECT], True, False, 0, ("", True), ("", True)),
    ('{"in', 'put":"l', 's"}'): (["", '{"input":"l', 's"}'], True, False, 0, ("", True), ("", True)),
    (OBJECT, " \n"): ([OBJECT, ""], True, False, 0, ("", True), ("", True)),
    (OBJECT + " \t",): ([OBJECT], True, False, 0, ("", True), ("", True)),
    (OBJECT, "\x0b"): ([OBJECT, ""], True, True, 0, ("", True), ("", True)),
    (OBJECT, " ", "x"): ([OBJECT, "", ""], True, True, 0, ("", True), ("", True)),
    (OBJECT + "x", " "): ([OBJECT, ""], True, True, 0, ("", True), ("", True)),
    (OBJECT + "\x0b",): ([OBJECT], True, True, 0, ("", True), ("", True)),
    ("{}" + OBJECT,): ([OBJECT], True, False, 0, ("", True), ("", True)),
    ("null", OBJECT): (["", OBJECT], True, False, 0, ("", True), ("", True)),
    ('{"input":"l',): (['{"input":"l'], False, False, 0, ("", False), ("", False)),
    ('{"in',): ([""], False, False, 4, ('{"in', False), ('{"in', False)),
    ("{", '"in'): (["", ""], False, False, 4, ('{"in', False), ('{"in', False)),
    ("ls", " -l"): (["ls", " -l"], False, False, 0, ("", True), ("", False)),
    (" ", "\n", "ls"): (["", "", " \nls"], False, False, 0, ("", True), ("", False)),
    ("{ echo",): (["{ echo"], False, False, 0, ("", True), ("", False)),
    (): ([], False, False, 0, ("", True), ("", False)),
    (" ", " "): (["", ""], False, False, 2, ("", True), ("  ", False)),
    ("\x0b",): (["\x0b"], False, False, 0, ("", True), ("", False)),
    ("null",): ([""], False, False, 4, ("", True), ("null", False)),
    ("nul",): ([""], False, False, 3, ("nul", True), ("nul", False)),
    ("{}",): ([""], False, False, 2, ("", True), ("{}", False)),
}


@pytest.mark.parametrize("fragments", TOLD, ids=repr)
def test_what_of_them_may_be_written(fragments: tuple[str, ...]) -> None:
    written, whole, excess, held, end, cut = TOLD[fragments]
    arguments = FreeformArguments()
    assert [arguments.feed(fragment) for fragment in fragments] == written
    assert (arguments.complete, arguments.excess, arguments.held) == (whole, excess, held)
    assert len(arguments.withheld) == held
    assert arguments.close() == end
    assert arguments.close(cut=True) == cut


def test_they_are_bounded() -> None:
    arguments = FreeformArguments(Limits(arguments_bytes=4))
    arguments.feed("abcd")
    with pytest.raises(LimitExceeded, match="arguments of one call are larger than 4 bytes") as raised:
        arguments.feed("e")
    assert raised.value.code == "arguments_bytes"
