"""What brings a reasoning item back to the provider that made it: its id, its blob, and how its text is parted.

As a signature (or the data of redacted reasoning) it is compact JSON:
`{"id": "rs_1", "encrypted_content": "...", "summary": [12, 40]}`. The list holds the length in characters of each part
of the text, which are joined by a blank line; it is called `content` where the text is raw reasoning.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from attrs import frozen

from pipeline.jsontext import dumps, loads

JOINT = "\n\n"
"""What stands between two parts of a reasoning text."""

PART_TYPES = {"summary": "summary_text", "content": "reasoning_text"}


@frozen
class Opaque:
    """The proof of one reasoning item."""

    id: str
    blob: str
    member: str = "summary"
    lengths: tuple[int, ...] = ()

    @classmethod
    def read(cls, signature: str) -> Self | None:
        """The proof that a signature is, or None if it is none of ours."""
        if not signature.startswith("{"):
            return None
        try:
            said = loads(signature)
        except ValueError:
            return None
        member = "content" if "content" in said else "summary"
        match said:
            case {"id": str(name), "encrypted_content": str(blob)}:
                lengths = said.get(member, ())
                return cls(name, blob, member, tuple(length for length in lengths if isinstance(length, int)))
        return None

    def written(self) -> str:
        """The proof as a signature."""
        said = {"id": self.id, "encrypted_content": self.blob}
        return dumps({**said, self.member: list(self.lengths)} if self.lengths else said).decode()

    def item(self, text: str) -> dict[str, Any]:
        """The reasoning item whose text it belongs to; a text that was edited is one part."""
        return reasoning_item(self.id, self.member, parted(text, self.lengths), self.blob)


def reasoning_item(name: str, member: str, texts: Sequence[str], blob: str = "") -> dict[str, Any]:
    """A reasoning item with the parts of its text in `member`: `summary` or `content`."""
    item: dict[str, Any] = {"id": name, "type": "reasoning", "summary": []}
    if texts:
        item[member] = [{"type": PART_TYPES[member], "text": text} for text in texts]
    if blob:
        item["encrypted_content"] = blob
    return item


def parted(text: str, lengths: Sequence[int]) -> list[str]:
    """A text cut into its parts, if their lengths fit it; else it is one part, or none if it is empty."""
    if not text:
        return []
    if sum(lengths) + len(JOINT) * (len(lengths) - 1) != len(text):
        return [text]
    parts, at = [], 0
    for length in lengths:
        parts.append(text[at : at + length])
        at += length + len(JOINT)
    return parts if JOINT.join(parts) == text else [text]


def parts_of(item: Mapping[str, Any]) -> dict[str, list[str]]:
    """The texts of a reasoning item's parts, empty ones too, by the member they stand in."""
    return {member: _texts(item.get(member)) for member in PART_TYPES}


def _texts(parts: Any) -> list[str]:
    if isinstance(parts, str):
        return [parts]
    if not isinstance(parts, list):
        return []
    return [_text(part.get("text") if isinstance(part, dict) else part) for part in parts]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
