"""Tool calls and reasoning that a model wrote as text."""

from stages.scrub.mend import meant_object
from stages.scrub.scrubber import TagScrubber

__all__ = ["TagScrubber", "meant_object"]
