"""stages.scrub.mend: what is said again in what is mended."""

import pytest

from stages.scrub.mend import mend_told


@pytest.mark.parametrize("text", ["{'a': 1, 'a': 2}", "[{'a': 1, 'a': 2}, {'a': 1, 'a': 2}]"])
def test_of_a_member_that_is_said_again_the_last_counts_but_in_each_call_the_first(text: str) -> None:
    last, first = ({"a": 2}, {"a": 1})
    several = text.startswith("[")
    assert mend_told(text, depth=9) == ([last, last] if several else last, True)
    assert mend_told(text, depth=9, call=True) == ([first, first] if several else first, True)


def test_no_bracket_may_be_missing_unless_it_is_said_to_be() -> None:
    with pytest.raises(ValueError, match="} is missing"):
        mend_told("{'a': 1", depth=9)
    assert mend_told("{'a': 1", depth=9, missing=1) == ({"a": 1}, False)
