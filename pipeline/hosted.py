"""Items of tools that a provider runs, where they cannot be shown."""

from pipeline.events import Block
from pipeline.message import Content
from pipeline.word import word


def path_of(index: int, item: Block | Content) -> str:
    """What the ledger calls an item: which block or content of the message it is, and of which type."""
    kind = word(getattr(item, "payload", {}).get("type"))
    return f"ServerBlock[{index}] {kind[:64]}".rstrip()
