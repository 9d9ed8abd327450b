"""What every dialect's encoder has alike: where it stands, and how its stream ends."""

from abc import abstractmethod
from collections.abc import Sequence

from attrs import define, field

from pipeline.errors import ErrorKind
from pipeline.events import Event, Frame, Ping, StreamError
from pipeline.ledger import Ledger
from pipeline.stage import Stage


@define
class Encoder(Stage[Event, Frame]):
    """A dialect's frames: behind the end nothing is said, and an end before the terminal is an error.

    A dialect's `receive` writes the deltas that are like the last one without a call of its own for each: they are
    nearly all there is, and a call would be a hundredth of all the work of a route.
    """

    ledger: Ledger = field(factory=Ledger, kw_only=True)
    ended: bool = field(init=False, default=False)
    _plain: type[Event] | None = field(init=False, default=None)
    """The class of the deltas that are written as they are, and the index of their block."""
    _source: int = field(init=False, default=-1)

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        out: list[Frame] = []
        if not self.ended:
            cut = StreamError(ErrorKind.CUT, "the stream ended before its terminal", "stream_cut", True)
            self._error(cause or cut, out)
        return out

    def idle(self) -> Sequence[Frame]:
        out: list[Frame] = []
        if not self.ended:
            self._ping(Ping(), out)
        return out

    @abstractmethod
    def _error(self, event: StreamError, out: list[Frame]) -> None:
        """The message ends with an error."""

    @abstractmethod
    def _ping(self, event: Ping, out: list[Frame]) -> None:
        """A keep-alive, if the stream is where one may stand."""
