"""Hypothesis without a clock: a test is not wrong because the machine is busy."""

from hypothesis import Phase, settings

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
