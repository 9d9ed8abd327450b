"""What may stand between a body and its closer is looked for in linear work: counted, not timed."""

from collections.abc import Callable

import pytest

from tests.scrubbing import CALL, Scrubbed, calls_made, cuts, said
from tests.test_scrub_behind import OTHER, E, O

SAID = "<tool_call name=f arguments='{}'>"
LONG = {
    "words": f"{O}{CALL} a\n",
    "backticks": f"{O}{CALL} a ` b\n",
    "closers in backticks": f"{O}{CALL} a `{E}` b\n",
    "fences": f"{O}{CALL}\n```json\n",
    "other bodies": f"{O}{CALL} then {OTHER}",
    "comments": f"{O}{CALL} /* a",
    "brackets": f"{O}{CALL}]}};",
    "keys": f"{O}{CALL} {{ a",
    "tags": f"{SAID} a ",
    "tags in lines": f"a {SAID} ",
    "tags in tags": f"<tool_call name=g>{SAID}",
    "strings": f"{O}{{'a': '}}{E}' ",
}
"""What is hostile because a closer may stand behind it."""


@pytest.mark.parametrize("blanks", ["", "\n" * 99])
@pytest.mark.parametrize("size", [4, 1_000_000])
@pytest.mark.parametrize("kind", LONG)
def test_to_look_for_a_closer_costs_no_more_than_the_text(kind: str, size: int, blanks: str) -> None:
    one = LONG[kind] + blanks

    def work(length: int) -> Callable[[], object]:
        stage, events = Scrubbed().stage(), said(*cuts(one * (length // len(one)), size))
        return lambda: [stage.receive([event]) for event in events]

    work(1_000)()
    assert calls_made(work(8_000)) <= 4.5 * calls_made(work(2_000)) + 500
