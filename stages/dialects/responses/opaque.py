"""What brings a reasoning item back to the provider that made it, and the texts of one.

As a signature (or the data of redacted reasoning) it is the whole item but for its `type`, as compact JSON:
`{"id":"rs_1","summary":[{"type":"summary_text","text":"..."}],"encrypted_content":"..."}`. So the provider gets every
member back as it was, its id and its blob together.
"""

from collections.abc import Mapping
from typing import Any

from pipeline.jsontext import dumps, value_of

JOINT = "\n\n"
"""What stands between two parts of a reasoning text."""

TEXTS = ("summary", "content")
"""The members of a reasoning item in which parts of its text stand."""

BLOB = "encrypted_content"

OURS = "sw1_"
"""What stands behind `rs_` in the id of reasoning that was read out of a text of the upstream's, which knows no such
item."""


def proof_of(item: Mapping[str, Any]) -> str:
    """The signature that a reasoning item is carried as; empty if it has no blob."""
    blob = item.get(BLOB)
    if not isinstance(blob, str) or not blob:
        return ""
    return dumps({name: value for name, value in item.items() if name != "type"}).decode()


def item_of(signature: str) -> dict[str, Any] | None:
    """The reasoning item that a signature carries, or None if it carries none."""
    if not signature.startswith("{"):
        return None
    item = value_of(signature)
    return {"type": "reasoning", **item} if isinstance(item, dict) and proof_of(item) else None


def parts_of(item: Mapping[str, Any]) -> dict[str, list[str]]:
    """The texts of a reasoning item's parts, empty ones too, by the member they stand in."""
    return {member: _texts(item.get(member)) for member in TEXTS}


def _texts(parts: Any) -> list[str]:
    if isinstance(parts, str):
        return [parts]
    if not isinstance(parts, list):
        return []
    return [_text(part.get("text") if isinstance(part, dict) else part) for part in parts]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
