"""Notes on a text, in the words that Responses has for them."""

from collections.abc import Mapping
from typing import Any, Final

from pipeline.citations import page_of
from pipeline.word import word
from stages.dialects.responses.written import URL_CITATION, Json

NOTES: Final = ("url_citation", "file_citation", "container_file_citation", "file_path")
"""The notes that Responses has."""


def flat_note(annotation: Mapping[str, Any]) -> Json | None:
    """An annotation in the form that Responses has, or None if it has none. Some APIs nest its members by its type."""
    kind = word(annotation.get("type"))
    if kind not in NOTES:
        return None
    inner = annotation.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else dict(annotation)


def page_note(annotation: Mapping[str, Any]) -> Json | None:
    """A citation of another API as one of a page, for all of its text; None if it names no page."""
    page = page_of(annotation)
    return None if page is None else {"type": URL_CITATION, "url": page.url, "title": page.title}
