"""Token counts, as vendors write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Usage
from stages.dialects.chat.usage import usage_of


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, output=5)),
        # OpenAI: cached and written tokens are a part of the prompt's, reasoning of the completion's
        (
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens": 50,
                "completion_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 150,
            },
            Usage(10, 60, 30, 50, 20),
        ),
        # Alibaba
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_input_tokens": 30}},
            Usage(10, 60, 30),
        ),
        # Moonshot
        ({"prompt_tokens": 100, "cached_tokens": 90}, Usage(10, 90)),
        # DeepSeek
        ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, Usage(36, 64)),
        # servers that also write Anthropic's names
        (
            {"prompt_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
            Usage(10, 60, 30),
        ),
        # the same told twice
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}, "cache_read_input_tokens": 60},
            Usage(40, 60),
        ),
        # all of it cached
        ({"prompt_tokens": 90, "cached_tokens": 90}, Usage(0, 90)),
        # more cached than prompt tokens: exclusive already
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}}, Usage(10, 90)),
        # xAI: the total tells that the reasoning is no part of the completion
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "completion_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 35,
            },
            Usage(10, output=25, reasoning=20),
        ),
        # Copilot
        ({"completion_tokens": 30, "reasoning_tokens": 20, "total_tokens": 30}, Usage(0, output=30, reasoning=20)),
    ],
)
def test_counts_become_exclusive(counts: dict[str, Any], usage: Usage) -> None:
    assert usage_of(counts) == usage


@pytest.mark.parametrize("odd", [None, True, "7", [], {}, -7, float("inf"), float("nan")])
def test_an_odd_count_is_none(odd: Any) -> None:
    counts = {
        "prompt_tokens": odd,
        "completion_tokens": odd,
        "total_tokens": odd,
        "prompt_tokens_details": {"cached_tokens": odd},
        "completion_tokens_details": odd,
    }
    assert usage_of(counts) == Usage()


def test_a_count_may_be_a_fraction() -> None:
    assert usage_of({"prompt_tokens": 10.0, "completion_tokens": 5.9}) == Usage(10, output=5)


def test_what_is_not_told_stays_as_it_was() -> None:
    before = Usage(1, 2, 3, 4, 5)
    assert usage_of({}, before) == before
    assert usage_of({"prompt_tokens": None, "completion_tokens": None}, before) == before
    assert usage_of({"prompt_tokens": 10}, before) == Usage(10, 0, 0, 4, 5)
    assert usage_of({"completion_tokens": 9}, before) == Usage(1, 2, 3, 9, 0)


@given(
    st.dictionaries(
        st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"]),
        st.integers(-5, 100) | st.none() | st.floats() | st.text(max_size=2),
    )
)
def test_no_count_is_ever_negative(counts: dict[str, Any]) -> None:
    usage = usage_of(counts)
    assert min(usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) >= 0
