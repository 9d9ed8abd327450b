"""Token counts, as Messages servers write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Usage
from stages.dialects.messages.usage import counts_of, usage_of


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (None, None),
        ("x", None),
        ({}, None),
        ({"service_tier": "standard", "input_tokens": None, "output_tokens": "5"}, None),
        ({"input_tokens": 0}, Usage()),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, output=5)),
        (
            {
                "input_tokens": 10,
                "cache_creation_input_tokens": 30,
                "cache_read_input_tokens": 60,
                "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 50,
                "output_tokens_details": {"thinking_tokens": 40},
                "server_tool_use": {"web_search_requests": 1},
            },
            Usage(10, 60, 30, 50, 40),
        ),
        ({"input_tokens": 10.0, "output_tokens": -3, "output_tokens_details": 7}, Usage(10)),
        ({"input_tokens": True, "output_tokens": float("inf"), "cache_read_input_tokens": 1}, Usage(cache_read=1)),
    ],
)
def test_counts_are_read_and_odd_ones_count_as_absent(counts: Any, usage: Usage | None) -> None:
    assert usage_of(counts) == usage


def test_what_is_not_said_stays_as_it_was() -> None:
    before = Usage(10, 4, 3, 1, 0)
    assert usage_of({"output_tokens": 5}, before) == Usage(10, 4, 3, 5)
    assert usage_of({"input_tokens": 18, "cache_read_input_tokens": 0}, before) == Usage(18, 0, 3, 1)
    for nothing in (None, {}, {"input_tokens": None}):
        assert usage_of(nothing, before) is before


@given(st.builds(Usage, *[st.integers(0, 99)] * 5))
def test_counts_come_back(usage: Usage) -> None:
    assert usage_of(counts_of(usage)) == usage
