"""An answer in whatever form it comes: what its server calls it is often wrong, so its first byte tells."""

from collections.abc import Sequence

from attrs import define, field

from pipeline.events import Event, StreamError
from pipeline.stage import Stage

BLANK = b" \t\r\n"
WHOLE = b"{[<"
"""What a whole body begins with: JSON, or a page for people, which is no answer. No line of a stream does."""
BOM = b"\xef\xbb\xbf"
KEPT = 64 * 1024
"""So many blanks are kept; some servers send them for as long as the model thinks."""


@define
class AnswerReader(Stage[bytes, Event]):
    """The events of an answer, which is read as a stream or as a whole body by its first byte that is not blank.

    Servers answer with JSON where a stream was asked for, stream where none was, and name the wrong content type. One
    that is empty is read as a whole body. The blanks before a whole body are its own, a byte order mark is not.
    """

    stream: Stage[bytes, Event]
    whole: Stage[bytes, Event]
    _chosen: Stage[bytes, Event] | None = field(init=False, default=None)
    _blank: bytes = field(init=False, default=b"")
    """What came before the first byte that tells."""

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._blank) if self._chosen is None else self._chosen.held

    @property
    def ended(self) -> bool:  # type: ignore[override]  # computed here, stored elsewhere
        return self._chosen is not None and self._chosen.ended

    def receive(self, items: Sequence[bytes]) -> Sequence[Event]:
        if self._chosen is not None:
            return self._chosen.receive(items)
        data = self._blank + b"".join(items)
        rest = data.lstrip(BLANK)
        body = data
        if BOM.startswith(rest[: len(BOM)]):
            body = rest[len(BOM) :]
            rest = body.lstrip(BLANK)
        if not rest:
            self._blank = data[-KEPT:]
            return ()
        self._chosen, data = (self.whole, body) if rest[0] in WHOLE else (self.stream, data)
        self._blank = b""
        return self._chosen.receive((data[max(0, len(data) - len(rest) - KEPT) :],))

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Event]:
        if self._chosen is None:
            self._chosen, self._blank = self.whole, b""
        return self._chosen.receive_eof(cause)
