"""One block at a time: what arrives interleaved leaves in order, and no tool call is ever split."""

from stages.interleave.buffer import InterleaveBuffer

__all__ = ["InterleaveBuffer"]
