"""stages.dialects.responses.usage: inclusive counts and ours."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Usage
from stages.dialects.responses.usage import usage_object, usage_of

counts = st.integers(0, 2**40)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"input_tokens": 10, "output_tokens": 5}, Usage(input=10, output=5)),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(input=10, cache_read=60, cache_write=30, output=50, reasoning=40),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
            Usage(2, 1, 0, 2),
        ),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}, Usage(output=9, reasoning=4)),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 90}}, Usage(input=10, cache_read=90)),
        ({"input_tokens": None, "output_tokens": True, "input_tokens_details": [1]}, Usage()),
        ({"input_tokens": 2.0, "output_tokens": float("inf")}, Usage(input=2)),
        ({"input_tokens": -1}, Usage()),
        ({}, Usage()),
    ],
)
def test_counts_are_exclusive(written: dict[str, Any], read: Usage) -> None:
    assert usage_of(written) == read


@given(st.builds(Usage, counts, counts, counts, counts, counts))
def test_counts_come_back_from_a_usage_object(usage: Usage) -> None:
    assert usage_of(usage_object(usage)) == usage


def test_a_usage_object_lacks_nothing_that_codex_demands() -> None:
    assert usage_object(Usage(input=10, cache_read=60, cache_write=30, output=50, reasoning=40)) == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 40},
        "total_tokens": 150,
    }
