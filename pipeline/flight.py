"""The frames of a stream that are on their way to be written back."""

from collections import deque
from typing import TYPE_CHECKING, Final

from attrs import define, field

if TYPE_CHECKING:
    from pipeline.events import Origin

MOST: Final = 1 << 24
"""So many bytes of frames are remembered, beside those of the last read."""
OVERHEAD: Final = 100
"""What a frame takes besides its bytes, or more."""


@define(eq=False)
class Flight:
    """The frames of one stream that were read and not given up yet, oldest first, so that what stands in one that
    never arrives can be told. Bounded in bytes: then the oldest are forgotten.
    """

    due: int = 0
    """Those before this one have arrived, or nobody waits for them any more."""
    over: bool = False
    """No more frames come, and all were passed on."""
    forgotten: int = 0
    """Some before this one were forgotten."""
    _read: "list[Origin]" = field(init=False, factory=list)
    """Those of the last read, which mostly are given up before the next."""
    _frames: "deque[Origin] | None" = field(init=False, default=None)
    """Those of earlier ones; mostly none, because an empty one takes half a kilobyte."""
    _size: int = field(init=False, default=0)

    def read(self) -> "list[Origin]":
        """A list for the frames that come now."""
        for frame in self._read:
            if frame.made:
                self._keep(frame)
        if self._frames is not None:
            self._prune(self._frames)
        self._read = read = list["Origin"]()
        return read

    def left_out(self, before: int | None = None) -> "list[Origin]":
        """Those before a number, or all, which are due and have not arrived: they never will. They are taken off."""
        left: list[Origin] = []
        frames = self._frames
        while frames and (before is None or frames[0].number < before):
            left.append(self._next(frames))
        count = next((at for at, frame in enumerate(self._read) if before is not None and frame.number >= before), None)
        left += self._read[:count]
        del self._read[:count]
        return [frame for frame in left if frame.number >= self.due and frame.made]

    def _keep(self, frame: "Origin") -> None:
        if self._frames is None:
            self._frames = deque()
        self._frames.append(frame)
        self._size += OVERHEAD + len(frame.raw)
        if self._size > MOST:
            self._prune(self._frames)
            while self._size > MOST:
                self.forgotten = self._next(self._frames).number + 1

    def _prune(self, frames: "deque[Origin]") -> None:
        """Those that have arrived are not under way any more."""
        while frames and (frames[0].number < self.due or not frames[0].made):
            self._next(frames)
        if not frames:
            self._frames = None

    def _next(self, frames: "deque[Origin]") -> "Origin":
        frame = frames.popleft()
        self._size -= OVERHEAD + len(frame.raw)
        return frame
