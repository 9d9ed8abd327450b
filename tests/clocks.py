"""Clocks for tests of time: they jump to the next timer when nothing else can be done, and else stand still."""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from trio.testing import MockClock


class JumpingSelector(selectors.DefaultSelector):
    """Never waits: what it would have waited is added to its clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for nothing")
        self.now += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that tells its selector's time."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


Backend = tuple[str, dict[str, Any]]

BACKENDS: dict[str, Callable[[], Backend]] = {
    "asyncio": lambda: ("asyncio", {"loop_factory": JumpingLoop}),
    "trio": lambda: ("trio", {"clock": MockClock(autojump_threshold=0)}),
}
"""A fresh backend, for anyio's `anyio_backend` fixture, by name."""
