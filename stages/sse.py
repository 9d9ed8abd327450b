"""Framing: bytes to frames and back, as server-sent events.

The rules are WHATWG's (HTML, section 9.2, "Server-sent events"); where providers need more, the docstrings say so.
"""

from collections.abc import Sequence
from enum import Enum, auto

from attrs import define, field

from pipeline.errors import LimitExceeded, StageError, UpstreamError
from pipeline.events import Frame, StreamError
from pipeline.framing import CR, LF, fields, is_json, uniform
from pipeline.ledger import Ledger
from pipeline.limits import DEFAULT_LIMITS, Limits
from pipeline.stage import Stage

BOM = b"\xef\xbb\xbf"

BEGINNINGS = (b"data:", b"event:", b"id:", b"retry:", b"error:", BOM)
"""What a line begins with that is no junk; a beginning of one, at the end of the stream, was cut."""


class Edge(Enum):
    """What the first byte of the next read may be, but for an ordinary one."""

    START = auto()
    """The byte order mark, or a part of it."""
    MIDDLE = auto()
    AFTER_CR = auto()
    """An LF that belongs to a line end which has already been counted."""


MIDDLE = Edge.MIDDLE  # looked up once: to find a member on its Enum costs as much as to find a blank line


@define
class SSEDecoder(Stage[bytes, Frame]):
    """Every event of the stream is one frame, made in the read that brought its blank line.

    The frames, and the failure behind them, do not depend on how the bytes were cut. The bytes of an unfinished event
    are copied once as they come and once when it is whole, so that the cost is linear. Nothing is decoded: data are
    bytes. Two things are not WHATWG's: a line of a field `error` (old llama.cpp) is data of an event of that name; at
    the end, a last event without its blank line is a frame if its data is whole. A stream without any frame that is
    one JSON text is one frame.

    Raises `LimitExceeded` at `limits.line_bytes` and `limits.frame_bytes`, and `UpstreamError` at a clean end if what
    came is no event stream.
    """

    limits: Limits = field(default=DEFAULT_LIMITS, kw_only=True)
    sentinels: tuple[bytes, ...] = field(default=(), kw_only=True)
    """Payloads that are whole though they are no JSON."""
    ledger: Ledger | None = field(default=None, kw_only=True)
    ended: bool = field(init=False, default=False)
    _edge: Edge = field(init=False, default=Edge.START)
    _block: bytearray = field(init=False, factory=bytearray)
    """The lines of the unfinished event, parted by LF."""
    _line: int = field(init=False, default=0)
    """Where its last line begins."""
    _bound: int = field(init=False)
    """What need not be looked at: no frame nor line in so many bytes is too long."""
    _made: int = field(init=False, default=0)
    _junk: bytearray = field(init=False, factory=bytearray)
    """Lines that are no event stream's, kept until there is a frame."""

    @_bound.default
    def _smaller(self) -> int:
        return min(self.limits.line_bytes, self.limits.frame_bytes)

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._block) + len(self._junk)

    def receive(self, items: Sequence[bytes]) -> Sequence[Frame]:
        data = items[0] if len(items) == 1 else b"".join(items)
        if not data or self.ended:
            return ()
        if self._edge is not MIDDLE or CR in data:
            data = self._with_lf(data)
            if not data:
                return ()
        block = self._block
        if not block and not self._junk:  # one event, as nearly all slow reads are
            alone = data.removeprefix(b"data: ").removesuffix(b"\n\n")
            if alone and len(data) - len(alone) == 8 and len(data) - 2 <= self._bound and LF not in alone:
                self._made += 1
                return [Frame(alone)]
        made: list[Frame] = []
        if block:
            if b"\n\n" not in data and (block[-1] != LF or data[0] != LF):
                self._hold(data, made)
                return made
            data = bytes(block) + data
            block.clear()
            self._line = 0
        if (end := data.rfind(b"\n\n")) >= 0:
            if end <= self._bound and (frames := uniform(data, end)):
                made = frames
            else:
                self._read(data[:end], made)
            end += 2
        else:
            end = 0
        if end < len(data):
            self._hold(data[end:].lstrip(b"\n"), made)
        if made:
            if self._junk:
                made[:0] = self._told_before()
            self._made += len(made)
        return made

    def at_once(self, data: bytes) -> list[Frame]:
        """The frames of `data` up to its last blank line, with the bytes they came as, if they are `uniform`.

        If not, or if something is kept that came before, none, and nothing is read.
        """
        end = data.rfind(b"\n\n")
        if end < 0 or end > self._bound or self._edge is not MIDDLE or self._block or self._junk or CR in data:
            return []
        frames = uniform(data, end)
        self._made += len(frames)
        if len(frames) == 1:
            return [Frame(frames[0].data, frames[0].name, data[: end + 2])]
        blocks = data[:end].split(b"\n\n") if frames else ()
        return [Frame(frame.data, frame.name, block + b"\n\n") for frame, block in zip(frames, blocks, strict=True)]

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        if self.ended:
            return ()
        self.ended = True
        try:
            return self._last(cause)
        finally:
            self._block.clear()
            self._junk.clear()

    def _last(self, cause: StreamError | None) -> Sequence[Frame]:
        """What the unfinished event is worth; if there was never a frame, what all that came is worth."""
        made: list[Frame] = []
        block = bytes(self._block)
        before, _, last = block.rpartition(b"\n")
        cut = any(beginning.startswith(last) for beginning in BEGINNINGS)
        name, data, junk = fields(before if cut else block)
        if data and (data.strip() in self.sentinels or is_json(data, self.limits.json_depth)):
            made.append(Frame(data, name))
        elif data:
            self._record("frame", "the stream ended inside it")
        if junk:
            self._keep(junk, [])
        if made:
            return [*self._told_before(), *made]
        body = bytes(self._junk.strip())
        if not body:
            return made
        if self._is_json(body):
            return [Frame(body)]
        if cause is None:
            message = f"the answer is not an event stream: {len(body)} bytes, and no event among them"
            raise UpstreamError(message, code="not_an_event_stream")
        return ()

    def _with_lf(self, data: bytes) -> bytes:
        """What is new in a read, its line ends all LF, the byte order mark left out."""
        if self._edge is Edge.START:
            data = bytes(self._block) + data
            self._block.clear()
            if len(data) < len(BOM) and BOM.startswith(data):
                self._block += data
                return b""
            data = data.removeprefix(BOM)
        elif self._edge is Edge.AFTER_CR:
            data = data.removeprefix(b"\n")
        self._edge = Edge.AFTER_CR if data.endswith(b"\r") else Edge.MIDDLE
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, blocks: bytes, made: list[Frame]) -> None:
        """Add the frames of whole blocks, looking at every line."""
        bounded = len(blocks) <= self._bound
        for block in blocks.split(b"\n\n"):
            if not bounded:
                self._check(block.strip(b"\n"), 0, made)
            name, data, junk = fields(block)
            if junk:
                self._keep(junk, made)
            if data:
                made.append(Frame(data, name))

    def _hold(self, data: bytes, made: list[Frame]) -> None:
        """Keep the beginning of a block, or more of one, until its blank line comes."""
        block, line = self._block, self._line
        if (at := data.rfind(b"\n")) >= 0:
            self._line = len(block) + at + 1
        block += data
        if len(block) > self._bound:
            self._check(block, line, made)

    def _check(self, block: bytes | bytearray, line: int, made: list[Frame]) -> None:
        """Fail if a block is too long, or one of its lines from `line` on; whichever shows first."""
        most = self.limits.line_bytes
        size = len(block) - block.endswith(b"\n")
        while size > line + most and (end := block.find(b"\n", line, line + most + 1)) >= 0:
            line = end + 1
        if size > line + most and line + most <= self.limits.frame_bytes:
            self._fail("a line of frame", "line_bytes", most, made)
        if size > self.limits.frame_bytes:
            self._fail("frame", "frame_bytes", self.limits.frame_bytes, made)

    def _keep(self, junk: list[bytes], made: list[Frame]) -> None:
        """Keep lines that are no event stream's and come before any frame: together they may be one JSON text."""
        if made or self._made:
            self._record("line", "it is none of an event stream")
            return
        self._junk += b"\n".join((*junk, b""))
        if len(self._junk) > self.limits.frame_bytes:
            self._fail("what came instead of frame", "frame_bytes", self.limits.frame_bytes, made)

    def _told_before(self) -> list[Frame]:
        """What came before the first frame: one frame if it is a JSON text (a bare error, say), else nothing."""
        body = bytes(self._junk.strip())
        self._junk.clear()
        if self._is_json(body):
            return [Frame(body)]
        if body:
            self._record("line", "it is none of an event stream")
        return []

    def _is_json(self, body: bytes) -> bool:
        return body[:1] in (b"{", b"[") and is_json(body, self.limits.json_depth)

    def _record(self, path: str, reason: str) -> None:
        if self.ledger is not None:
            self.ledger.record("SSEDecoder", path, "dropped", reason)

    def _fail(self, what: str, code: str, most: int, made: list[Frame]) -> None:
        number = self._made + len(made) + 1
        if made:
            made[:0] = self._told_before()
        self.ended = True
        self._block.clear()
        self._junk.clear()
        raise LimitExceeded(f"{what} {number} is longer than {most} bytes (limits.{code})", code=code).after(made)


@define
class SSEEncoder(Stage[Frame, bytes]):
    """The frames of one call are one bytes object of whole events, LF at every line's end.

    Data that holds line ends is written as several data lines. A frame without data is what it came as: a comment,
    or nothing.

    Raises `StageError` if an event name holds a line end.
    """

    ended: bool = field(init=False, default=False)
    _name: bytes = field(init=False, default=b"")
    """The last event name, and what an event of it begins with."""
    _begins: bytes = field(init=False, default=b"data: ")

    def receive(self, items: Sequence[Frame]) -> Sequence[bytes]:
        if self.ended:
            return ()
        out: list[bytes] = []
        for frame in items:
            data = frame.data
            if not data:
                if frame.raw:
                    out.append(frame.raw)
                continue
            if LF in data or CR in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
            name = frame.name
            if name != self._name:
                if LF in name or CR in name:
                    raise StageError(f"event name {name!r} holds a line end").after([b"".join(out)] if out else ())
                self._name = name
                self._begins = b"event: %b\ndata: " % name if name else b"data: "
            out += (self._begins, data, b"\n\n")
        return [b"".join(out)] if out else ()

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[bytes]:
        self.ended = True
        return ()
