"""What stands within an event or an item that no event of ours carries."""

from typing import Any, Final

from pipeline.logprobs import note_unread
from pipeline.unread import Unread

OF_EVENT: Final = frozenset(
    {
        *("type", "sequence_number", "event_id", "response_id", "response", "item", "item_id", "output_index", "part"),
        *("content_index", "summary_index", "annotation_index", "annotation", "delta", "text", "refusal", "logprobs"),
        *("obfuscation", "call_id", "name", "namespace"),
    }
)
"""The members of an event that are read, or say nothing of the answer."""

OF_WHOLE_CALL: Final = {
    "response.function_call_arguments.done": OF_EVENT | {"arguments"},
    "response.custom_tool_call_input.done": OF_EVENT | {"input"},
}
"""The same of those that tell the whole text of a call."""

NAMING: Final = frozenset({"sequence_number", "event_id", "response_id"})
"""Those that name an event."""

COMMON: Final = frozenset({"type", "id", "status"})
"""The members of every item that are read."""
OF_TEXT: Final = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
OF_REASONING: Final = frozenset({"type", "text"})
"""The members of a part that are read."""
OF_PAGE: Final = frozenset({"type", "url", "title", "start_index", "end_index"})
"""The members of a page that is cited."""


def note_part(part: Any, unread: Unread, prefix: str = "output[].content[].", read: frozenset[str] = OF_TEXT) -> None:
    """Record what of a part is not read. `prefix`: where it stands."""
    unread.note(part, read, prefix)
    if isinstance(part, dict):
        note_unread(part.get("logprobs"), unread, "logprobs")
        notes = part.get("annotations")
        for name in ("annotations", "logprobs"):
            if not isinstance(part.get(name), list):
                note_odd(part.get(name), unread, f"{prefix}{name}")
        for note in notes if isinstance(notes, list) else ():
            note_citation(note, unread)


def note_odd(value: Any, unread: Unread, path: str) -> None:
    """Record what says something and is of another kind than what stands there, once a message."""
    unread.note({"": value}, frozenset(), path)


def note_citation(note: Any, unread: Unread) -> None:
    """Record what of a cited page is not read; of notes of other types the client is told the whole, or nothing."""
    if isinstance(note, dict) and note.get("type") == "url_citation":
        unread.note(note, OF_PAGE, "annotations[].")
