"""One block at a time: what arrives interleaved leaves in order, and no tool call is ever split."""

from stages.interleave.buffer import InterleaveBuffer
from stages.interleave.meant import meant

__all__ = ["InterleaveBuffer", "meant"]
