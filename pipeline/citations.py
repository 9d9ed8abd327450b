"""What of a citation every dialect can show: the page."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from pipeline.word import word

SHOWN: Final = ("annotation", "translated", "of another API's citation the page is shown")
"""What the ledger says of the rest."""


@frozen
class Page:
    """A page that is cited."""

    url: str
    title: str


def page_of(annotation: Mapping[str, Any]) -> Page | None:
    """The page that a citation names, in whatever API's words; None if it names none. Some nest it by its type."""
    inner = annotation.get(word(annotation.get("type")))
    told = inner if isinstance(inner, dict) else annotation
    url, title = word(told.get("url")), word(told.get("title"))
    return Page(url, title or url) if url else None
