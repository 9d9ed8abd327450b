"""Hypothesis without a clock: a test is not wrong because the machine is busy."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.register_profile("brief", deadline=None, max_examples=25, derandomize=True, database=None)
settings.load_profile("unhurried")
