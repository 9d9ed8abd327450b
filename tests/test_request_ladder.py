"""The ladder, reading members, names of tools, the order of turns: what all dialects' requests share."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.effort import budget_of_effort, effort_of, effort_of_budget, effort_under
from pipeline.errors import ClientError, ErrorKind
from pipeline.events import ToolKind
from pipeline.ladder import Ladder, Loss, Reading, Row, Rule, table, top_level
from pipeline.ledger import Ledger
from pipeline.limits import Limits
from pipeline.members import Members, join, read_body
from pipeline.request import (
    CustomTool,
    DocumentPart,
    Grammar,
    Part,
    Reasoning,
    ReasoningPart,
    Request,
    RequestOptions,
    Role,
    TextPart,
    ToolResultPart,
    ToolUsePart,
    Turn,
)
from pipeline.toolnames import (
    CallIds,
    OfferedTool,
    RequestMap,
    ToolNames,
    within,
    wrapped_description,
    wrapped_input,
)
from pipeline.turns import ORPHAN, UNANSWERED, bind, contiguous, document_text, joined, merge

ROWS = table(
    Row("kept", Rule.ACCEPT, "kept"),
    Row("lost", Rule.DROP, reason="no place", strict=Rule.REFUSE),
    Row("shown", Rule.DEGRADE, "text", "no place"),
    Row("never", Rule.REFUSE, reason="not here", kind=ErrorKind.NOT_FOUND, code="gone"),
    Row("deep.lost", Rule.DROP, reason="no place"),
    Row(UNANSWERED, Rule.DEGRADE, "an empty result", "every call needs one", strict=Rule.REFUSE),
    Row(ORPHAN, Rule.DEGRADE, "text", "every result needs one", strict=Rule.REFUSE),
)
BARRED = re.compile(r"[^a-zA-Z0-9_-]")


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


WORDS = {"one": 1}


@pytest.mark.parametrize(
    ("member", "read", "fault"),
    [
        ("text", lambda m: m.text("text"), "must be a string"),
        ("text", lambda m: m.need("text"), "must be a string"),
        ("absent", lambda m: m.need("absent"), "is required"),
        ("blank", lambda m: m.need("blank"), "is required"),
        ("blank", lambda m: m.word("blank", WORDS), "unknown value, must be one of one"),
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
    members = Members(
        {"text": 5, "blank": " ", "flag": True, "half": 1.5, "huge": float("inf"), "items": [{}, 2]}, "body[0]"
    )
    assert callable(read)
    with pytest.raises(ClientError, match=re.escape(f"body[0].{member}: {fault}")):
        read(members)


def test_a_member_that_is_null_counts_as_absent() -> None:
    members = Members({"a": None})
    assert not members.has("a")
    assert members.text("a", "default") == "default"
    assert members.word("a", WORDS) is None
    assert members.number("a") is None
    assert members.integer("a") is None
    assert members.flag("a") is None
    assert members.object("a") is None
    assert members.list("a") == []
    assert members.but() == {}


def test_members_of_the_right_kind_are_read() -> None:
    members = Members({"a": "x", "b": 1.0, "c": True, "d": {"e": 1}, "f": ["g"], "w": "one"})
    assert members.need("a") == "x"
    assert members.integer("b") == 1
    assert members.flag("c") is True
    inner = members.object("d")
    assert inner is not None
    assert (inner.where, inner.value) == ("d", {"e": 1})
    assert members.texts("f") == ("g",)
    assert members.word("w", WORDS) == 1
    assert members.but("a", "b", "c", "d", "f") == {"w": "one"}
    assert join("", "a") == "a"


# names and ids


def test_a_name_within_the_bounds_is_kept() -> None:
    names = ToolNames(64, BARRED)
    assert names.offer(OfferedTool("read_file")) == "read_file"


def test_a_long_name_is_shortened_and_found_again() -> None:
    names = ToolNames(64, BARRED)
    long = "mcp__" + "x" * 100
    given_name = names.offer(OfferedTool(long))
    assert len(given_name) == 64
    assert RequestMap(names.tools()).tool(given_name).name == long


def test_the_same_tool_always_gets_the_same_name() -> None:
    first, second = ToolNames(64, BARRED), ToolNames(64, BARRED)
    second.offer(OfferedTool("another"))
    assert first.name("", "y" * 80) == second.name("", "y" * 80)


def test_two_tools_never_share_a_name() -> None:
    names = ToolNames(64, BARRED)
    given_names = [
        names.name("", "a__b"),
        names.name("a", "b"),
        names.name("", "a.b"),
        names.name("", "a_b"),
        names.name("", "z" * 70),
        names.name("", "z" * 71),
    ]
    assert len(set(given_names)) == len(given_names)
    assert all(len(name) <= 64 and not BARRED.search(name) for name in given_names)


def test_a_namespace_stands_before_the_name_and_comes_back() -> None:
    names = ToolNames(64, BARRED)
    tool = OfferedTool("list_agents", "collaboration", ToolKind.CUSTOM, wrapped=True)
    assert names.offer(tool) == "collaboration__list_agents"
    assert RequestMap(names.tools()).tool("collaboration__list_agents") == tool


def test_a_tool_that_only_earlier_calls_name_is_found_again_but_not_offered() -> None:
    names = ToolNames(64, BARRED)
    names.offer(OfferedTool("a.b"))
    offered = names.see(OfferedTool("a.b", kind=ToolKind.CUSTOM))
    seen = names.see(OfferedTool("c.d"))
    found = names.map(CallIds(64, BARRED))
    assert found.tool(offered) == OfferedTool("a.b")
    assert found.tool(seen) == OfferedTool("c.d")
    assert list(found.offered) == [offered]


def test_a_tool_that_was_not_offered_is_itself() -> None:
    assert RequestMap().tool("unheard_of") == OfferedTool("unheard_of")
    assert list(RequestMap({"a": OfferedTool("a")}).offered) == ["a"]


@given(st.lists(st.text(), unique=True))
def test_ids_within_bounds_are_unique_and_reversible(ids: list[str]) -> None:
    calls = CallIds(40, BARRED)
    given_ids = [calls.id(one) for one in ids]
    assert len(set(given_ids)) == len(ids)
    assert [calls.back().get(one, one) for one in given_ids] == ids
    assert all(0 < len(one) <= 40 and not BARRED.search(one) for one in given_ids)


def test_an_empty_name_gets_one() -> None:
    assert within("", 64, BARRED, "") != ""


def test_a_freeform_tool_says_its_grammar_in_the_description() -> None:
    tool = CustomTool("apply_patch", "Edits.", Grammar("lark", 'start: "x"'))
    assert 'lark grammar:\nstart: "x"' in wrapped_description(tool, "Edits.")
    assert wrapped_description(tool, "").startswith("`input` must match")
    assert wrapped_description(CustomTool("t"), "Edits.") == "Edits."
    assert wrapped_input('a "b"') == '{"input":"a \\"b\\""}'


# efforts


@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1024, "minimal"), (1025, "low"), (4096, "low"), (12_000, "medium"), (32_000, "high"), (32_001, "xhigh")],
)
def test_a_budget_comes_to_an_effort(budget: int, effort: str) -> None:
    assert effort_of_budget(budget) == effort


def test_every_effort_has_a_budget_that_comes_to_it_again() -> None:
    for effort in ("minimal", "low", "medium", "high", "xhigh"):
        assert effort_of_budget(budget_of_effort(effort)) == effort
    assert budget_of_effort("none") == 0


@pytest.mark.parametrize(
    ("reasoning", "effort"),
    [
        (None, ""),
        (Reasoning(), ""),
        (Reasoning(True), ""),
        (Reasoning(False, "high"), "none"),
        (Reasoning(True, "max", 2000), "max"),
        (Reasoning(True, "", 10_000), "medium"),
        (Reasoning(None, "low"), "low"),
    ],
)
def test_the_effort_that_is_asked_for(reasoning: Reasoning | None, effort: str) -> None:
    assert effort_of(reasoning) == effort
    assert effort_under(reasoning, RequestOptions()) == effort
    assert effort_under(reasoning, RequestOptions(effort="xhigh")) == "xhigh"


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


def test_turns_of_one_role_become_one() -> None:
    merged = merge([user(TextPart("a")), user(TextPart("b")), assistant(TextPart("c"))])
    assert merged == [user(TextPart("a"), TextPart("b")), assistant(TextPart("c"))]


def test_text_that_a_call_parts_is_joined_by_a_blank_line() -> None:
    parts = (TextPart("a"), TextPart("b"), use("1"), TextPart(""), TextPart("c"), ReasoningPart("x"))
    assert contiguous(parts) == "ab\n\nc"
    assert contiguous((ReasoningPart("x"), TextPart("a"))) == "a"


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
    assert request.with_turns([said]).turns == (said,)


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
