"""Frames that have the bytes they came as, for where a stream is written back."""

import re
from collections.abc import Sequence
from typing import Protocol

from attrs import define, field

from pipeline.errors import PipelineError
from pipeline.events import Frame, StreamError
from pipeline.stage import Stage

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_SILENT = re.compile(rb"(?:\xef\xbb\xbf)?(?:(?::[^\r\n]*)?(?>\r\n|\n|\r))*")  # blank lines and comments


class Decoder(Protocol):
    """Makes frames of bytes, whatever bytes each came as."""

    def receive(self, items: Sequence[bytes]) -> Sequence[Frame]:
        """The frames that end in what has come."""

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        """The last ones."""

    def at_once(self, data: bytes) -> Sequence[Frame]:
        """The frames of plain bytes up to their last blank line, with the bytes they came as; none if it is not so
        plain, and nothing is read."""


@define
class RawDecoder(Stage[bytes, Frame]):
    """Every frame of `decoder` has the bytes that it came as; what is no frame's is one without data.

    All bytes leave in order, each once, but for those of an event that the stream ended in: they are dropped, unless
    `decoder` makes a frame of them, which is given its blank line.
    """

    decoder: Decoder
    ended: bool = field(init=False, default=False)
    _raw: bytearray = field(init=False, factory=bytearray)
    """What has come since the last frame."""

    @property
    def held(self) -> int:  # type: ignore[override]  # computed here, stored elsewhere
        return len(self._raw)

    def receive(self, items: Sequence[bytes]) -> Sequence[Frame]:
        out: list[Frame] = []
        data = items[0] if len(items) == 1 else b"".join(items)
        try:
            if self._raw:
                data = self._feed(data, out, first=True)
            if data and not self._raw and (frames := self.decoder.at_once(data)):
                out += frames
                data = data[data.rfind(b"\n\n") + 2 :]
            if data:
                self._feed(data, out)
        except PipelineError as error:
            self._pass(error.take(), out)
            raise error.after(out) from error.__cause__
        return out

    def receive_eof(self, cause: StreamError | None = None) -> Sequence[Frame]:
        self.ended = True
        out: list[Frame] = []
        frames = self.decoder.receive_eof(cause)
        if frames:
            while not _BLANK_LINE.search(self._raw[-4:]):
                self._raw += b"\n"
            self._pass(frames, out)
        elif lines := _SILENT.match(self._raw):
            out += [Frame(b"", raw=lines.group())] if lines.end() else []
        self._raw.clear()
        return out

    def _feed(self, data: bytes, out: list[Frame], *, first: bool = False) -> bytes:
        """Read piece by piece, each up to a blank line, which may have begun in an earlier read; or only the `first`.

        What is left.
        """
        before, at = bytes(self._raw[-2:]), 0
        for found in _BLANK_LINE.finditer(before + data):
            if (end := found.end() - len(before)) > at:
                self._piece(data[at:end], out)
                at = end
                if first:
                    return data[at:]
        if at < len(data):
            self._piece(data[at:], out)
        return b""

    def _piece(self, piece: bytes, out: list[Frame]) -> None:
        self._raw += piece
        self._pass(self.decoder.receive((piece,)), out)

    def _pass(self, frames: Sequence[Frame], out: list[Frame]) -> None:
        """The frames that one piece made: the first has the bytes of all. Silence does not wait for one."""
        if frames:
            raws = [bytes(self._raw), *(b"" for _ in frames[1:])]
            out += [Frame(frame.data, frame.name, raw) for frame, raw in zip(frames, raws, strict=True)]
            self._raw.clear()
        elif _BLANK_LINE.search(self._raw[-4:]) and _SILENT.fullmatch(self._raw):
            out.append(Frame(b"", raw=bytes(self._raw)))
            self._raw.clear()
