"""A stage that does what it is told, for tests of chains."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field
from hypothesis import strategies as st

from pipeline.errors import ErrorKind, StageError, UpstreamError
from pipeline.events import StreamError
from pipeline.stage import Stage

LOST = StreamError(ErrorKind.CUT, "the connection was lost")


@define(eq=False)
class Scripted(Stage[Any, Any]):
    """Passes everything on, but holds some items till the end and breaks at one."""

    name: str
    holds: str = field(default="", kw_only=True)
    breaks_at: Any = field(default=None, kw_only=True)
    breaks_at_end: bool = field(default=False, kw_only=True)
    makes_events: bool = field(default=False, kw_only=True)
    says: str = field(default="", kw_only=True)
    """What it says while nothing comes; `!`: it breaks."""
    held: int = field(default=0, init=False)
    ended: bool = field(default=False, init=False)
    kept: list[Any] = field(factory=list, init=False)
    seen: list[Any] = field(factory=list, init=False)
    ends: list[StreamError | None] = field(factory=list, init=False)

    def receive(self, items: Sequence[Any]) -> Sequence[Any]:
        out: list[Any] = []
        for item in items:
            self.seen.append(item)
            if item == self.breaks_at:
                raise StageError(f"{self.name} broke").after(out)
            (self.kept if item in [*self.holds] else out).append(item)
        self.held = len(self.kept)
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Any]:
        self.ends.append(cause)
        kept, self.kept, self.held = self.kept, [], 0
        if self.breaks_at_end:
            raise UpstreamError(f"{self.name} broke at the end").after(kept)
        return [*kept, cause] if self.makes_events and cause is not None else kept

    def idle(self) -> Sequence[Any]:
        if self.says == "!":
            raise StageError(f"{self.name} broke")
        return [*self.says]


SCRIPTS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    holds=st.sampled_from(["", "a", "b", "ab"]),
    breaks_at=st.sampled_from([None, None, *"abcd"]),
    breaks_at_end=st.booleans(),
    makes_events=st.booleans(),
)


def broke(name: str) -> StreamError:
    """The event that tells of a stage that broke at an item."""
    return StreamError(ErrorKind.INTERNAL, f"{name} broke")


def broke_at_end(name: str) -> StreamError:
    """The event that tells of a stage that broke at the end."""
    return StreamError(ErrorKind.INVALID_RESPONSE, f"{name} broke at the end", retryable=True)
