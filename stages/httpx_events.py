"""For those who already read their streams with httpx-sse: its events as frames."""

from collections.abc import Sequence

from attrs import define, field
from httpx_sse import ServerSentEvent

from pipeline.events import Frame, StreamError
from pipeline.jsontext import whole_text
from pipeline.stage import Stage

DEFAULT_NAME = "message"
"""What httpx-sse calls an event that has no name."""


@define
class ServerSentEvents(Stage[ServerSentEvent, Frame]):
    """Every event of httpx-sse that has data is the frame that `SSEDecoder` makes of the same bytes.

    What httpx-sse does not hand on cannot be mended here: the first event behind a byte order mark, a last event
    without its blank line, a body that is no event stream, a line of a field `error`, and bytes that are no UTF-8: it
    replaces them. An event that says its name is `message` is one without a name.
    """

    ended: bool = field(init=False, default=False)

    def receive(self, items: Sequence[ServerSentEvent]) -> Sequence[Frame]:
        if self.ended:
            return ()
        return [Frame(whole_text(item.data).encode(), name_of(item)) for item in items if item.data]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        self.ended = True
        return ()


def name_of(event: ServerSentEvent) -> bytes:
    """An event's name, empty if it has none."""
    return b"" if event.event == DEFAULT_NAME else whole_text(event.event).encode()
