"""The order of turns that every provider demands, and the request itself."""

import pytest

from pipeline.errors import ClientError, ErrorKind
from pipeline.ladder import Ladder, Row, Rule, table
from pipeline.ledger import Ledger
from pipeline.request import (
    DocumentPart,
    Part,
    ReasoningPart,
    Request,
    Role,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.turns import ORPHAN, UNANSWERED, bind, contiguous, distinct, document_text, joined
from tests.request_shapes import BUILDS, read, request, written

ROWS = table(
    Row("kept", Rule.ACCEPT, "kept"),
    Row("lost", Rule.DROP, reason="no place", strict=Rule.REFUSE),
    Row("shown", Rule.DEGRADE, "text", "no place"),
    Row("never", Rule.REFUSE, reason="not here", kind=ErrorKind.NOT_FOUND, code="gone"),
    Row("deep.lost", Rule.DROP, reason="no place"),
    Row(UNANSWERED, Rule.DEGRADE, "an empty result", "every call needs one", strict=Rule.REFUSE),
    Row(ORPHAN, Rule.DEGRADE, "text", "every result needs one", strict=Rule.REFUSE),
)


def ladder(strict: bool = False) -> Ladder:
    return Ladder("test request", ROWS, Ledger(direction="request"), strict)


# turns


def use(call: str, where: str = "") -> ToolUsePart:
    return ToolUsePart(call, "f", "{}", where=where)


def result(call: str, text: str = "r", where: str = "") -> ToolResultPart:
    return ToolResultPart(call, (TextPart(text),), where=where)


def user(*parts: Part) -> Turn:
    return Turn(Role.USER, parts)


def assistant(*parts: Part) -> Turn:
    return Turn(Role.ASSISTANT, parts)


def test_results_in_their_place_stay_as_they_are() -> None:
    turns = [user(TextPart("go")), assistant(use("1"), use("2")), user(result("1"), result("2"), TextPart("on"))]
    steps = ladder()
    assert bind(turns, steps) == turns
    assert len(steps.ledger) == 0


def test_results_stand_before_what_the_user_says() -> None:
    turns = [assistant(use("1")), user(TextPart("on"), result("1"))]
    assert bind(turns, ladder())[1] == user(result("1"), TextPart("on"))


def ids(turns: list[Turn]) -> list[list[str]]:
    return [[part.id for part in turn.parts if isinstance(part, ToolUsePart | ToolResultPart)] for turn in turns]


def test_an_id_that_is_used_again_gets_a_suffix_with_its_result() -> None:
    turns = [assistant(use("1")), user(result("1", "a"), TextPart("on"))] * 3
    assert ids(distinct(turns)) == [["1"], ["1"], ["1_2"], ["1_2"], ["1_3"], ["1_3"]]
    assert distinct(turns)[:2] == turns[:2]
    assert distinct(turns[:4]) == distinct(turns)[:4]


def test_calls_of_one_turn_with_one_id_keep_their_results_in_order() -> None:
    turns = [assistant(use("1"), use("2"), use("1")), user(result("1", "a"), result("2", "b"), result("1", "c"))]
    call, answer = distinct(turns)
    assert ids([call, answer]) == [["1", "2", "1_2"], ["1", "2", "1_2"]]
    assert [part.parts for part in answer.parts if isinstance(part, ToolResultPart)] == [
        (TextPart(text),) for text in "abc"
    ]


@pytest.mark.parametrize(("upstream", "later"), [("messages", "a_2"), ("chat", "a"), ("responses", "a")])
def test_ids_that_are_used_again_are_told_apart_only_where_they_are_refused(upstream: str, later: str) -> None:
    said = (assistant(use("a")), user(result("a")))
    again = read(upstream, written(upstream, request(user(TextPart("go")), *said, *said)))
    assert ids(list(again.turns)) == [[], ["a"], ["a"], [later], [later]]


def test_a_suffix_is_none_that_another_call_has() -> None:
    turns = [assistant(use("1_2")), assistant(use("1")), assistant(use("1")), assistant(use("1_2"))]
    assert ids(distinct(turns)) == [["1_2"], ["1"], ["1_3"], ["1_2_2"]]


def test_a_late_result_moves_behind_its_call() -> None:
    turns = [assistant(use("1")), assistant(TextPart("and")), Turn(Role.SYSTEM, (TextPart("s"),)), user(result("1"))]
    assert bind(turns, ladder()) == [
        assistant(use("1")),
        user(result("1")),
        assistant(TextPart("and")),
        Turn(Role.SYSTEM, (TextPart("s"),)),
    ]


def test_an_id_used_again_binds_each_result_to_the_call_before_it() -> None:
    turns = [assistant(use("1")), user(result("1", "a")), assistant(use("1")), user(result("1", "b"))]
    assert bind(turns, ladder()) == turns


def test_a_call_without_result_gets_one_and_is_recorded() -> None:
    steps = ladder()
    bound = bind([assistant(use("1", "m[0]"), use("2", "m[1]")), user(result("2"))], steps)
    assert [part.id for part in bound[1].parts if isinstance(part, ToolResultPart)] == ["2", "1"]
    assert [entry.path for entry in steps.ledger] == ["m[0]"]
    with pytest.raises(ClientError, match=r"m\[0\]"):
        bind([assistant(use("1", "m[0]"))], ladder(strict=True))


def test_a_call_at_the_very_end_gets_its_result_in_a_turn_of_its_own() -> None:
    assert [turn.role for turn in bind([assistant(use("1"))], ladder())] == [Role.ASSISTANT, Role.USER]


def test_a_result_without_call_becomes_text() -> None:
    steps = ladder()
    bound = bind([user(result("9", "lost", "m[0]"))], steps)
    assert joined(bound[0].parts) == "[result of the tool call 9]\n\nlost"
    assert [entry.action for entry in steps.ledger] == ["degraded to text"]
    with pytest.raises(ClientError, match=r"m\[0\]"):
        bind([user(result("9", "lost", "m[0]"))], ladder(strict=True))


def test_a_result_without_call_may_be_dropped_with_its_turn() -> None:
    rows = {**ROWS, ORPHAN: Row(ORPHAN, Rule.DROP, reason="no call")}
    assert bind([user(result("9"))], Ladder("t", rows, Ledger())) == []


def test_an_empty_turn_stays() -> None:
    assert bind([user()], ladder()) == [user()]


def test_text_that_a_call_parts_is_joined_by_a_blank_line() -> None:
    parts = (TextPart("a"), TextPart("b"), use("1"), TextPart(""), TextPart("c"), ReasoningPart("x"))
    assert contiguous(parts) == "ab\n\nc"
    assert contiguous((ReasoningPart("x"), TextPart("a"))) == "a"


def test_text_that_only_reasoning_parted_is_one() -> None:
    assert contiguous((TextPart("Hel"), ReasoningPart("x"), TextPart("lo"))) == "Hello"
    assert contiguous((TextPart("a"), ReasoningPart("x"), use("1"), ReasoningPart("y"), TextPart("b"))) == "a\n\nb"
    turn = assistant(TextPart("Hel"), ReasoningPart("x"), TextPart("lo"))
    for upstream in BUILDS:
        again = read(upstream, written(upstream, request(user(TextPart("go")), turn, user(TextPart("on"))))).turns
        assert len(again) == 3
        assert joined(again[1].parts, "") == "Hello"
    items = written("responses", request(user(TextPart("go")), turn, user(TextPart("on"))))["input"]
    assert [item["type"] for item in items] == ["message"] * 3


def test_a_document_as_text_begins_with_its_name() -> None:
    assert document_text(DocumentPart("body", "name", "about")) == "name\nabout\n\nbody"
    assert document_text(DocumentPart((TextPart("x"),))) == ""


# the request


def test_a_request_tells_its_instructions_from_its_conversation() -> None:
    system = Turn(Role.SYSTEM, (TextPart("a"),))
    leading = Turn(Role.DEVELOPER, (TextPart("b"),))
    said = user(TextPart("c"))
    later = Turn(Role.SYSTEM, (TextPart("d"),))
    request = Request(dialect="x", model="m", system=(system,), turns=(leading, said, later))
    assert request.instructions() == ((system, leading), (said, later))
    assert list(request.parts()) == [TextPart("a"), TextPart("b"), TextPart("c"), TextPart("d")]


def test_a_request_names_the_clients_member() -> None:
    request = Request(dialect="x", model="m", turns=(), paths={"stop": "stop_sequences"})
    assert (request.path("stop"), request.path("seed")) == ("stop_sequences", "seed")


def test_a_long_user_id_becomes_its_hash() -> None:
    short = Request(dialect="x", model="m", turns=(), user="u1")
    long = Request(dialect="x", model="m", turns=(), user="u" * 65)
    assert short.user_within(64) == "u1"
    assert len(long.user_within(64)) == 64
    assert "u" * 10 not in long.user_within(64)
    assert Request(dialect="x", model="m", turns=()).user_within(64) == ""


def test_a_bound_keeps_within_the_upstreams() -> None:
    asked = Request(dialect="x", model="m", turns=(), max_tokens=100)
    assert (asked.bound(None), asked.bound(50), asked.bound(200)) == (100, 50, 100)
    assert Request(dialect="x", model="m", turns=()).bound(50) is None
