"""A frame's payload, where it is not one JSON text."""

from typing import Any

from pipeline.errors import UpstreamError
from pipeline.jsontext import several
from pipeline.ledger import Ledger


def payloads(data: bytes, sentinel: bytes, stage: str, ledger: Ledger) -> tuple[list[Any], bool]:
    """The JSON values that a frame holds, and whether `sentinel` stands behind them (or alone).

    Servers that forget the blank line between two events send several in one frame. Text that does not start like
    JSON is ignored, and recorded for `stage`.

    Raises `UpstreamError` if it starts like JSON and does not parse.
    """
    data = data.strip()
    if data.startswith(sentinel):
        return [], True
    if not data.startswith((b"{", b"[")):
        ledger.record(stage, "frame", "ignored", "data that is no JSON")
        return [], False
    end = data.endswith(sentinel)
    try:
        values = list(several(data.removesuffix(sentinel)))
    except ValueError as error:
        raise UpstreamError("a frame starts like JSON and does not parse", code="invalid_json") from error
    if len(values) == 1 and not end:
        ledger.record(stage, "frame", "mended", "it holds numbers that are no JSON")
    else:
        ledger.record(stage, "frame", "parted", "several JSON texts in one frame")
    return values, end
