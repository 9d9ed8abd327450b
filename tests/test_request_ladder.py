"""The ladder, and reading a body member by member."""

import re

import pytest

from pipeline.errors import ClientError, ErrorKind
from pipeline.ladder import Ladder, Loss, Reading, Row, Rule, table, top_level
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.members import Members, join, read_body
from pipeline.turns import ORPHAN, UNANSWERED

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


# the ladder


def test_what_is_accepted_is_not_recorded() -> None:
    steps = ladder()
    assert steps.lose("kept", "a.kept") is Rule.ACCEPT
    assert len(steps.ledger) == 0


def test_what_is_dropped_is_recorded_without_its_value() -> None:
    steps = ladder()
    assert steps.lose("lost", "a[0].lost") is Rule.DROP
    assert steps.ledger.as_dicts() == [
        {
            "direction": "request",
            "stage": "test request",
            "path": "a[0].lost",
            "action": "dropped",
            "reason": "no place",
        }
    ]


def test_what_is_degraded_is_recorded_with_what_it_became() -> None:
    steps = ladder()
    assert steps.lose("shown", "a") is Rule.DEGRADE
    assert next(iter(steps.ledger)).action == "degraded to text"


def test_a_strict_route_refuses_what_a_lenient_one_drops() -> None:
    with pytest.raises(ClientError, match=r"^a\[0\]\.lost: no place$"):
        ladder(strict=True).lose("lost", "a[0].lost")


def test_a_strict_route_keeps_the_rule_of_a_row_that_has_no_other() -> None:
    assert ladder(strict=True).lose("shown", "a") is Rule.DEGRADE


def test_a_refusal_has_the_class_and_code_of_its_row() -> None:
    with pytest.raises(ClientError) as caught:
        ladder().settle([Loss("x", ROWS["never"])])
    assert (caught.value.status, caught.value.code) == (404, "gone")


def test_a_member_has_one_row() -> None:
    with pytest.raises(ValueError, match="two rows"):
        table(Row("a", Rule.DROP), Row("a", Rule.REFUSE))


def test_members_of_the_body_are_told_from_deeper_ones() -> None:
    assert top_level(ROWS, Rule.DROP) == ("lost",)


def test_reading_tells_known_own_and_unknown_members_apart() -> None:
    reading = Reading(ROWS)
    body = Members({"kept": 1, "lost": 2, "other": 3, "nothing": None}, "b")
    rest = reading.rest(body, ("kept",), {"lost": "lost"})
    assert rest == {"where": "b", "private": {"lost": 2}, "extras": {"other": 3}}
    assert reading.losses == [Loss("b.lost", ROWS["lost"])]


# bodies and members


def test_a_body_is_one_json_object() -> None:
    assert read_body(b'{"a":1}', limits=Limits()) == {"a": 1}


def test_a_long_number_in_a_body_is_not_rounded() -> None:
    assert read_body(b'{"a":12345678901234567890123}', limits=Limits()) == {"a": 12345678901234567890123}


def test_a_word_that_nobody_knows_is_a_loss_and_no_fault() -> None:
    reading = Reading(ROWS)
    members = Members({"a": "one", "b": "two", "c": None}, "body[0]")
    assert [reading.word(members, name, {"one": 1}) for name in ("a", "b", "c", "d")] == [1, None, None, None]
    with pytest.raises(ClientError, match=re.escape("body[0].b: unknown value, must be one of one")):
        Ladder("S", ROWS, Ledger()).settle(reading.losses)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"1", b'{"a":1}{"b":2}', b"null", b'{"a":NaN}'])
def test_a_body_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        read_body(data, limits=Limits())
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


def test_an_oversized_body_is_refused_with_413() -> None:
    with pytest.raises(ClientError) as caught:
        read_body(b'{"a":"' + b"x" * 100 + b'"}', limits=Limits(request_bytes=50))
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_a_body_nested_too_deeply_is_refused_with_400() -> None:
    with pytest.raises(ClientError) as caught:
        read_body(b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", limits=Limits())
    assert (caught.value.status, caught.value.code) == (400, "json_depth")


BOUND = Limits(id_chars=3)


@pytest.mark.parametrize(
    ("member", "read", "fault"),
    [
        ("text", lambda m: m.text("text"), "must be a string"),
        ("text", lambda m: m.need("text"), "must be a string"),
        ("absent", lambda m: m.need("absent"), "is required"),
        ("blank", lambda m: m.need("blank"), "is required"),
        ("text", lambda m: m.given("text"), "must be a string"),
        ("absent", lambda m: m.given("absent"), "must be a string"),
        ("null", lambda m: m.given("null"), "must be a string"),
        ("text", lambda m: m.call_id("text", BOUND), "must be a string"),
        ("blank", lambda m: m.call_id("blank", BOUND), "is required"),
        ("long", lambda m: m.call_id("long", BOUND), "is longer than 3 characters"),
        ("text", lambda m: m.object("text"), "must be an object"),
        ("text", lambda m: m.list("text"), "must be a list"),
        ("flag", lambda m: m.number("flag"), "must be a number"),
        ("blank", lambda m: m.number("blank"), "must be a number"),
        ("half", lambda m: m.integer("half"), "must be a whole number"),
        ("huge", lambda m: m.integer("huge"), "must be a number"),
        ("text", lambda m: m.flag("text"), "must be true or false"),
        ("items[1]", lambda m: list(m.objects("items")), "must be an object"),
        ("items[0]", lambda m: m.texts("items"), "must be a string"),
    ],
)
def test_a_member_of_the_wrong_kind_is_named(member: str, read: object, fault: str) -> None:
    texts = {"text": 5, "blank": " ", "null": None, "long": "abcd"}
    members = Members({**texts, "flag": True, "half": 1.5, "huge": float("inf"), "items": [{}, 2]}, "body[0]")
    assert callable(read)
    with pytest.raises(ClientError, match=re.escape(f"body[0].{member}: {fault}")):
        read(members)


def test_a_member_that_is_null_counts_as_absent() -> None:
    members = Members({"a": None})
    assert not members.has("a")
    assert members.text("a", "default") == "default"
    assert members.number("a") is None
    assert members.integer("a") is None
    assert members.flag("a") is None
    assert members.object("a") is None
    assert members.list("a") == []
    assert members.but() == {}


def test_members_of_the_right_kind_are_read() -> None:
    members = Members(
        {"a": "x", "b": 1.0, "c": True, "d": {"e": 1}, "f": ["g"], "w": "one", "empty": "", "id": " abc "}
    )
    assert members.need("a") == members.given("a") == "x"
    assert members.given("empty") == ""
    assert members.call_id("id", BOUND) == "abc"
    assert members.integer("b") == 1
    assert members.flag("c") is True
    inner = members.object("d")
    assert inner is not None
    assert (inner.where, inner.value) == ("d", {"e": 1})
    assert members.texts("f") == ("g",)
    assert members.but("a", "b", "c", "d", "f", "id") == {"w": "one", "empty": ""}
    assert join("", "a") == "a"
