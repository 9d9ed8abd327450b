"""What a Chat client's request says that its answer depends on."""

from typing import Any

import pytest

from pipeline.events import ToolKind
from stages.dialects.chat import DIALECT


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        (
            {
                "tools": [
                    {"type": "function", "function": {"name": "f"}},
                    {"type": "custom", "custom": {"name": "c"}},
                    {"type": "custom", "custom": {"name": 5}},
                    {"function": None},
                    7,
                ],
                "functions": [{"name": "old"}],
            },
            {"f": ToolKind.FUNCTION, "c": ToolKind.CUSTOM, "old": ToolKind.FUNCTION},
        ),
        ({"tools": {}, "functions": None}, {}),
    ],
)
def test_the_answer_depends_on_the_tools_that_were_declared(
    request_: dict[str, Any], tools: dict[str, ToolKind]
) -> None:
    told = DIALECT.facts(request_).map.tools
    assert {name: tool.kind for name, tool in told.items()} == tools
    assert all(tool.name == name for name, tool in told.items())


@pytest.mark.parametrize("options", [None, True, {}, {"include_usage": False}, {"include_usage": 1}])
def test_counts_are_wanted_only_by_a_client_that_says_so(options: Any) -> None:
    assert DIALECT.facts({"stream_options": options}).include_usage is False
