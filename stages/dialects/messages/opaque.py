"""What brings reasoning back to the Messages provider that made it.

As a signature (or the data of redacted reasoning) it is the content block but for its text, as compact JSON:
`{"type":"thinking","signature":"..."}` or `{"type":"redacted_thinking","data":"..."}`. So the provider gets back the
block that it sent, also where a client of another dialect cannot tell one kind from the other.
"""

from typing import Any

from pipeline.jsontext import dumps, value_of

MEMBERS = {"thinking": "signature", "redacted_thinking": "data"}
"""Where the blob stands in a block of each type."""


def proof_of(kind: str, blob: str) -> str:
    """The signature that the blob of a block of type `kind` is carried as."""
    return dumps({"type": kind, MEMBERS[kind]: blob}).decode()


def block_of(signature: str, text: str = "") -> dict[str, Any] | None:
    """The block that a signature carries, with the text that it was signed for; None if it carries none."""
    if not signature.startswith("{"):
        return None
    block = value_of(signature)
    if not isinstance(block, dict) or not isinstance(block.get(MEMBERS.get(str(block.get("type")), "")), str):
        return None
    return {"type": block["type"], "thinking": text, **block} if block["type"] == "thinking" else block


def blob_of(signature: str) -> str:
    """The blob that a signature carries; an opaque text of another provider is one as it is."""
    block = block_of(signature)
    return signature if block is None else str(block[MEMBERS[block["type"]]])
