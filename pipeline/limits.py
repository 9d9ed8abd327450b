"""How much of anything one stream may take."""

from attrs import frozen


@frozen(kw_only=True)
class Limits:
    """The bounds of one stream. Sizes are bytes, times seconds."""

    line_bytes: int = 16 * 1024 * 1024
    frame_bytes: int = 16 * 1024 * 1024
    held_bytes: int = 4 * 1024 * 1024
    arguments_bytes: int = 16 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    request_bytes: int = 64 * 1024 * 1024
    error_bytes: int = 1024 * 1024
    blocks: int = 10_000
    id_chars: int = 1_000
    json_depth: int = 200
    ledger_entries: int = 1_000
    idle_seconds: float = 300.0
    ping_seconds: float = 10.0


DEFAULT_LIMITS = Limits()
