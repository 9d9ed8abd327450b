"""Server-sent events, block by block: the text between two blank lines (WHATWG HTML, section 9.2)."""

from pipeline.events import Frame
from pipeline.jsontext import loads

CR, LF = b"\r\n"


def uniform(data: bytes, end: int) -> list[Frame]:
    """The frames of the blocks before `end` if each is one data line, or each an event line and a data line; else none.

    This is the way of nearly every read, so it counts line ends instead of looking at lines.
    """
    if data.startswith(b"data: "):
        run = data[6:end]
        if LF not in run:
            return [Frame(run)] if run else []
        payloads = run.split(b"\n\ndata: ")
        if run.count(b"\n") == 2 * len(payloads) - 2 and all(payloads):
            return [Frame(payload) for payload in payloads]
    elif data[:7] == b"event: ":
        run = data[7:end]
        name, _, payload = run.partition(b"\ndata: ")
        if payload and LF not in payload and LF not in name:
            return [Frame(payload, name)]
        rows = [row.partition(b"\ndata: ") for row in run.split(b"\n\nevent: ")]
        if run.count(b"\n") == 3 * len(rows) - 2 and all(payload for _, _, payload in rows):
            return [Frame(payload, name) for name, _, payload in rows]
    return []


def fields(block: bytes) -> tuple[bytes, bytes, list[bytes]]:
    """A block's event name, its data, and the lines that are neither empty nor a comment nor a known field."""
    name = b""
    data: list[bytes] = []
    junk: list[bytes] = []
    for line in block.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"data":
            data.append(value.removeprefix(b" "))
        elif key == b"event":
            name = value.removeprefix(b" ")
        elif key == b"error":
            name = name or key
            data.append(value.removeprefix(b" "))
        elif key and key not in (b"id", b"retry"):
            junk.append(line)
    return name, b"\n".join(data), junk


def is_json(data: bytes, depth: int) -> bool:
    """Whether `data` is one whole JSON text."""
    try:
        loads(data, depth)
    except ValueError:
        return False
    return True
