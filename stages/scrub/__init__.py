"""Tool calls and reasoning that a model wrote as text."""

from stages.scrub.scrubber import TagScrubber

__all__ = ["TagScrubber"]
