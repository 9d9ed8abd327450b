"""stages.dialects.responses.offered: the tools of a request, and what its answer repeats."""

from typing import Any

import pytest

from pipeline.events import ToolKind
from pipeline.toolnames import OfferedTool
from stages.dialects.responses.offered import echo_of, offered_tools

FUNCTION = {"type": "function", "name": "f", "parameters": {}}
CUSTOM = {"type": "custom", "name": "patch"}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools)}


def test_functions_and_freeform_tools_are_known_by_name() -> None:
    hosted = [{"type": "web_search"}, {"type": "mcp", "name": "x"}]
    assert offered_tools({"tools": [FUNCTION, CUSTOM, *hosted]}) == {
        "f": OfferedTool("f"),
        "patch": OfferedTool("patch", kind=ToolKind.CUSTOM),
    }


def test_a_tool_in_a_namespace_is_known_by_both_names() -> None:
    tool = OfferedTool("f", "collab")
    assert offered_tools({"tools": [namespace("collab", FUNCTION)]}) == {"collab__f": tool, "f": tool}


def test_the_default_namespace_is_none() -> None:
    assert offered_tools({"tools": [namespace("functions", CUSTOM)]}) == {
        "patch": OfferedTool("patch", kind=ToolKind.CUSTOM)
    }


def test_a_name_that_two_tools_have_is_the_one_without_a_namespace() -> None:
    assert offered_tools({"tools": [namespace("a", FUNCTION), namespace("b", FUNCTION)]}) == {
        "a__f": OfferedTool("f", "a"),
        "b__f": OfferedTool("f", "b"),
    }
    assert offered_tools({"tools": [namespace("a", FUNCTION), FUNCTION]}) == {
        "a__f": OfferedTool("f", "a"),
        "f": OfferedTool("f"),
    }


@pytest.mark.parametrize("kind", ["additional_tools", "tool_search_output"])
def test_tools_that_stand_among_the_items_are_known(kind: str) -> None:
    items = [{"type": "message", "tools": [CUSTOM]}, {"type": kind, "tools": [namespace("functions", FUNCTION)]}, "x"]
    assert offered_tools({"input": items}) == {"f": OfferedTool("f")}


@pytest.mark.parametrize("tools", [None, "x", [None, {}, {"type": "function"}, {"type": "namespace", "name": "n"}]])
def test_odd_tools_are_none(tools: Any) -> None:
    assert offered_tools({"tools": tools, "input": "go"}) == {}


def test_the_answer_repeats_what_the_request_says() -> None:
    asked = {"model": "m", "input": "go", "stream": True, "temperature": 0, "metadata": None, "include": []}
    assert echo_of(asked) == {"temperature": 0}
