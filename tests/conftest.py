"""Hypothesis without a clock: a test is not wrong because the machine is busy."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings

LOOPS = 10
"""So many seconds of work is far more than a test does under mutation testing: what it tests was made to loop."""

settings.register_profile("unhurried", deadline=None)
settings.register_profile(
    "brief",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # mutation testing asks whether a test fails, not where it fails first
)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Mutation testing makes loops that never end; their tests fail soon, by the work they did and not by the clock."""
    if settings.get_current_profile_name() != "brief":
        yield
        return
    signal.signal(signal.SIGPROF, _loops)
    signal.setitimer(signal.ITIMER_PROF, LOOPS, 1)  # again and again: what loops may catch it
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def _loops(*_: object) -> None:
    raise AssertionError("it never ends")
