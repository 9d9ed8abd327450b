"""Names and ids of tools that an upstream accepts, and efforts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.effort import budget_of_effort, effort_of, effort_of_budget, effort_under
from pipeline.events import ToolKind
from pipeline.request import (
    CustomTool,
    Grammar,
    Reasoning,
    RequestOptions,
)
from pipeline.toolnames import (
    OfferedTool,
    RequestMap,
    ToolNames,
    UpstreamIds,
    within,
    wrapped_description,
    wrapped_input,
)

BARRED = re.compile(r"[^a-zA-Z0-9_-]")


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
    found = names.map(UpstreamIds(64, BARRED))
    assert found.tool(offered) == OfferedTool("a.b")
    assert found.tool(seen) == OfferedTool("c.d")
    assert list(found.offered) == [offered]


def test_a_tool_that_was_not_offered_is_itself() -> None:
    assert RequestMap().tool("unheard_of") == OfferedTool("unheard_of")
    assert list(RequestMap({"a": OfferedTool("a")}).offered) == ["a"]


@given(st.lists(st.text(), unique=True))
def test_ids_within_bounds_are_unique_and_reversible(ids: list[str]) -> None:
    calls = UpstreamIds(40, BARRED)
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
