"""pipeline.encoder: what holds of every dialect's encoder at its end and while nothing comes."""

from collections.abc import Sequence

from pipeline.encoder import Encoder
from pipeline.errors import ErrorKind
from pipeline.events import Event, Frame, MessageStop, Ping, StreamError
from pipeline.testing import EOF, play

PING = Frame(b"ping")
CAUSE = StreamError(ErrorKind.TIMEOUT, "nothing came", "idle", True)


class Words(Encoder):
    """Writes the name of each event, and the message of an error."""

    def receive(self, items: Sequence[Event]) -> Sequence[Frame]:
        self.ended = self.ended or any(isinstance(event, MessageStop) for event in items)
        return [Frame(type(event).__name__.encode()) for event in items]

    def _error(self, event: StreamError, out: list[Frame]) -> None:
        self.ended = True
        out.append(Frame(event.message.encode()))

    def _ping(self, event: Ping, out: list[Frame]) -> None:
        out.append(PING)


def test_an_end_before_the_terminal_is_an_error_told_once() -> None:
    assert play(Words(), EOF, EOF) == [[Frame(b"the stream ended before its terminal")], []]
    assert Words().receive_eof(CAUSE) == [Frame(b"nothing came")]


def test_an_end_behind_the_terminal_is_nothing() -> None:
    stage = Words()
    assert play(stage, [MessageStop()], EOF) == [[Frame(b"MessageStop")], []]
    assert stage.receive_eof(CAUSE) == []


def test_there_is_a_keep_alive_until_the_end() -> None:
    stage = Words()
    assert stage.idle() == [PING]
    stage.receive([MessageStop()])
    assert stage.idle() == []
