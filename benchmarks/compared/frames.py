"""Event-stream frames, as the HTML standard reads them: name and data. It owes our decoder nothing."""

import re
from collections.abc import Iterator


def frames(body: bytes) -> Iterator[tuple[str, bytes]]:
    """The dispatched events; a last one without its blank line is none."""
    name, data = "", list[bytes]()
    *lines, _ = re.split(rb"\r\n|\n|\r", body)
    for line in lines:
        if not line:
            if data:
                yield name, b"\n".join(data)
            name, data = "", []
            continue
        member, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if member == b"data":
            data.append(value)
        elif member == b"event":
            name = value.decode("utf-8", "replace")
